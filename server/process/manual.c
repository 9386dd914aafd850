/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/manual.h"

#include <ctype.h>

void manual_print_text(const char *text, struct buf *out)
{
    for (const char *c = text; *c; c++) {
        buf_add_str(out, *c == '-' ? "\\" : "");
        buf_add_char(out, *c);
    }
}

void manual_print_sentence(const char *text, struct buf *out)
{
    buf_add_char(out, (char)toupper((unsigned char)*text));
    manual_print_text(text + 1, out);
    buf_add_str(out, ".\n");
}
