/* SPDX-License-Identifier: MIT */
/* Text of tables in manuals, as mdoc(7) wants it. Dashes belong to options: troff would make
 * hyphens of them. */
#ifndef PTED_SERVER_PROCESS_MANUAL_H
#define PTED_SERVER_PROCESS_MANUAL_H

#include "base/buf.h"

void manual_print_text(const char *text, struct buf *out);

/* With a capital letter and a dot, and the end of the line. */
void manual_print_sentence(const char *text, struct buf *out);

#endif
