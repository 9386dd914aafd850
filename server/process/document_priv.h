/* SPDX-License-Identifier: MIT */
/* Shared by the check of a document's text and its tree. */
#ifndef PTED_SERVER_PROCESS_DOCUMENT_PRIV_H
#define PTED_SERVER_PROCESS_DOCUMENT_PRIV_H

#include "server/process/document.h"

/* Checks that |text|, without the NUL at its end, is a document, and puts blanks for its comments.
 * Appends to |places| where in |text| each value begins, as uint32_t, in the order of the text. */
MUST_CHECK enum status document_scan(struct buf *text, uint32_t values_max, struct buf *places,
                                     struct error *err);

/* Sets an error about the byte at |offset| of |text|: "PATH: WHAT (line 7, column 21)". */
enum status document_fail_at(struct span text, size_t offset, const char *path, const char *what,
                             enum status code, struct error *err);

#endif
