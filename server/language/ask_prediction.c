/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_prediction.h"

struct reader {
    struct json *in;
    uint8_t *text; /* the parts so far; room for all that the body has left */
    size_t bytes;
    bool has_type, has_content;
    struct error *err;
};

/* A text is never longer than its string in JSON. */
static enum status add_text(struct reader *r)
{
    struct json_string text;
    TRY(json_read_string(r->in, &text, r->err));
    json_string_decode(&text, r->text + r->bytes);
    r->bytes += text.bytes;
    return ST_OK;
}

/* Is the string that comes next |expected|? */
static enum status read_type(struct reader *r, const char *expected)
{
    struct json_string type;
    TRY(json_read_string(r->in, &type, r->err));
    return json_string_is(&type, expected)
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected \"%s\"", expected);
}

static enum status read_part(struct reader *r)
{
    bool has_type = false, has_text = false;
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        if (json_string_is(&key, "type")) {
            TRY(read_type(r, "text"));
            has_type = true;
        } else if (json_string_is(&key, "text")) {
            TRY(add_text(r));
            has_text = true;
        } else {
            TRY(json_skip(r->in, r->err));
        }
    }
    return has_type && has_text
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected a part of type text with a text");
}

static enum status read_content(struct reader *r)
{
    r->has_content = true;
    if (json_peek(r->in) != JSON_ARRAY) {
        return add_text(r);
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read_part(r));
    }
}

static enum status read_member(struct reader *r, const struct json_string *key)
{
    if (json_string_is(key, "type")) {
        r->has_type = true;
        return read_type(r, "content");
    }
    return json_string_is(key, "content") ? read_content(r) : json_skip(r->in, r->err);
}

enum status ask_prediction(struct json *in, struct arena *arena, struct span *out,
                           struct error *err)
{
    struct reader r = {.in = in, .err = err};
    struct json ahead = *in;
    TRY(json_skip(&ahead, err)); /* it ends where the text ends at the latest */
    r.text = arena_alloc(arena, (size_t)(ahead.at - in->at) + 1);
    if (!r.text) {
        return arena_fail(arena, "the request", err);
    }
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            break;
        }
        TRY(read_member(&r, &key));
    }
    if (!r.has_type || !r.has_content) {
        return json_fail(in, err, ST_INVALID, "expected type \"content\" and a content");
    }
    *out = span_of(r.text, r.bytes);
    return ST_OK;
}
