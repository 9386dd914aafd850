/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_values.h"

#include <string.h>

#include "base/check.h"

static const char what[] = "the request";

enum status ask_read_text(struct json *in, struct arena *arena, struct span *out, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    return json_string_copy(&text, arena, what, out, err);
}

enum status ask_read_model(struct json *in, struct arena *arena, const char **out,
                           struct error *err)
{
    struct span text;
    TRY(ask_read_text(in, arena, &text, err));
    if (memchr(text.ptr, 0, text.len)) {
        return json_fail(in, err, ST_INVALID, "expected the name of a model");
    }
    *out = (const char *)text.ptr;
    return ST_OK;
}

enum status ask_read_ids(struct json *in, struct arena *arena, uint32_t max, const uint32_t **out,
                         uint32_t *out_count, struct error *err)
{
    uint32_t room = json_count_elements(in, max + 1), count = 0;
    uint32_t *ids = arena_array(arena, (size_t)room + 1, sizeof(*ids));
    if (!ids) {
        return arena_fail(arena, what, err);
    }
    TRY(json_array(in, err));
    while (true) {
        uint64_t id;
        TRY(json_element(in, err));
        if (in->is_closed) {
            break;
        }
        TRY(json_read_u64(in, &id, err));
        if (id >= UINT32_MAX || count == max) {
            return json_fail(in, err, ST_INVALID, "expected at most %u ids of tokens", max);
        }
        must(count < room);
        ids[count++] = (uint32_t)id;
    }
    *out = ids;
    *out_count = count;
    return ST_OK;
}

bool ask_is_list_of_ids(const struct json *in)
{
    struct json ahead = *in;
    struct error ignored;
    return json_array(&ahead, &ignored) == ST_OK && json_element(&ahead, &ignored) == ST_OK &&
           !ahead.is_closed && json_peek(&ahead) == JSON_NUMBER;
}
