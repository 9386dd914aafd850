/* SPDX-License-Identifier: MIT */
/* Reads whole files of moderate size into memory. Any thread; blocks. A fifo without a writer is
 * empty. */
#ifndef PTED_SERVER_PROCESS_FILE_H
#define PTED_SERVER_PROCESS_FILE_H

#include "base/buf.h"
#include "base/status.h"

/* Appends the content of |path|. Fails as status_of_errno() says, with ST_TOO_LARGE beyond the
 * maximum of |out|, and with ST_EXHAUSTED for lack of memory. The text is the reason without the
 * path; the caller puts a name in front. */
MUST_CHECK enum status file_read(const char *path, struct buf *out, struct error *err);

#endif
