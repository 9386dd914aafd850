/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_text.h"

#include <string.h>

enum status ask_text_take(struct json *in, struct span *out, struct error *err)
{
    enum json_type type = json_peek(in); /* passes over the white space before the value */
    const uint8_t *begin = in->at;
    struct span ignored;
    out = out ? out : &ignored;
    if (type == JSON_OBJECT || type == JSON_ARRAY || type == JSON_STRING) {
        return json_skip_loosely(in, out, err);
    }
    TRY(json_skip(in, err));
    *out = span_of(begin, (size_t)(in->at - begin));
    return ST_OK;
}

void ask_text_add(struct buf *out, const char *before, struct span raw)
{
    if (raw.len) {
        buf_add_str(out, before);
        buf_add(out, raw.ptr, raw.len);
    }
}

enum status ask_text_keep_list(struct arena *arena, const struct buf *items, struct span *out,
                               struct error *err)
{
    uint8_t *copy = buf_failed(items) ? NULL : arena_alloc(arena, items->len + 2);
    if (!copy) {
        return arena_fail(arena, "the request", err);
    }
    copy[0] = '[';
    if (items->len) {
        memcpy(copy + 1, items->ptr, items->len);
    }
    copy[items->len + 1] = ']';
    *out = span_of(copy, items->len ? items->len + 2 : 0);
    return ST_OK;
}

enum status ask_text_keep(struct arena *arena, const struct buf *text, struct span *out,
                          struct error *err)
{
    const char *copy = buf_failed(text) ? NULL : arena_strdup(arena, text->ptr, text->len);
    if (!copy) {
        return arena_fail(arena, "the request", err);
    }
    *out = span_of(copy, text->len);
    return ST_OK;
}
