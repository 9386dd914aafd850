/* SPDX-License-Identifier: MIT */
/* Pieces of JSON that go from a request into another text of JSON as they are. */
#ifndef PTED_SERVER_LANGUAGE_ASK_TEXT_H
#define PTED_SERVER_LANGUAGE_ASK_TEXT_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "protocol/json.h"

/* Reads the value that comes next: |*out| is its text, with the quotes of a string; it lies in the
 * body. Of an object, a list or a string just the brackets and ends have been looked at: templates
 * read them as value_parse() does. With |out| NULL the value is passed over. ST_INVALID. */
MUST_CHECK enum status ask_text_take(struct json *in, struct span *out, struct error *err);

/* Appends |before| and |raw|, unless |raw| is empty. */
void ask_text_add(struct buf *out, const char *before, struct span raw);

/* Is |raw| a string of JSON, an object? */
static inline bool ask_text_is_string(struct span raw)
{
    return raw.len > 0 && raw.ptr[0] == '"';
}

static inline bool ask_text_is_object(struct span raw)
{
    return raw.len > 0 && raw.ptr[0] == '{';
}

/* Copies |text| into |arena|. ST_EXHAUSTED: |text| has failed, or there is no memory. */
MUST_CHECK enum status ask_text_keep(struct arena *arena, const struct buf *text, struct span *out,
                                     struct error *err);

/* Likewise, as a list whose |items| have commas between them; without items |*out| is empty. */
MUST_CHECK enum status ask_text_keep_list(struct arena *arena, const struct buf *items,
                                          struct span *out, struct error *err);

#endif
