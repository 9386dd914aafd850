/* SPDX-License-Identifier: MIT */
/* Whole files of moderate size into memory. Any thread; blocks. */
#ifndef PTED_SERVER_FILE_H
#define PTED_SERVER_FILE_H

#include "base/buf.h"
#include "base/status.h"

/*
 * Appends what |path| contains. Fails as status_of_errno() has it, and with ST_TOO_LARGE beyond the
 * maximum of |out|; the text is the reason without the path, for the caller to put a name before.
 */
MUST_CHECK enum status file_read(const char *path, struct buf *out, struct error *err);

#endif
