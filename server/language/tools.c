/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/tools.h"

#include <string.h>

#include "protocol/json.h"

static const char begin_mark[] = "<tool_call>", end_mark[] = "</tool_call>";
#define BEGIN_BYTES (sizeof(begin_mark) - 1)
#define END_BYTES (sizeof(end_mark) - 1)

#define BLANKS " \n\r\t"

static bool is_blank(uint8_t c)
{
    return memchr(BLANKS, c, strlen(BLANKS)) != NULL;
}

/* ---- the tools of the request ---------------------------------------------------------------- */

/* The string at "name" of the object that comes next, or nothing. A tool has it in its "function",
 * and one beside that does not count; some clients send a tool without the inner object. */
static bool read_name(struct json *in, bool is_function, struct json_string *out)
{
    struct error ignored;
    struct json_string own = {0}, inner = {0};
    if (json_object(in, &ignored) != ST_OK) {
        return false;
    }
    while (true) {
        struct json_string key;
        bool is_read;
        if (json_member(in, &key, &ignored) != ST_OK) {
            return false;
        }
        if (in->is_closed) {
            *out = inner.raw.ptr ? inner : own;
            return true;
        }
        if (json_string_is(&key, "name") && json_peek(in) == JSON_STRING) {
            is_read = json_read_string(in, &own, &ignored) == ST_OK;
        } else if (!is_function && json_string_is(&key, "function") &&
                   json_peek(in) == JSON_OBJECT) {
            is_read = read_name(in, true, &inner);
        } else {
            is_read = json_skip(in, &ignored) == ST_OK;
        }
        if (!is_read) {
            return false;
        }
    }
}

/* The name of a tool as a model writes it; or, if that is NULL, as a request means it. */
struct wanted {
    const struct json_string *written;
    struct span meant;
};

static bool is_wanted(const struct json_string *known, const struct wanted *wanted)
{
    return known->raw.ptr && (wanted->written ? json_string_equal(known, wanted->written)
                                              : json_string_is_text(known, wanted->meant));
}

/* Its name as it stands in |tools|, with its quotes; empty: there is no such tool. */
static struct span find_tool(struct span tools, const struct wanted *wanted)
{
    struct json in;
    struct error ignored;
    json_init(&in, tools);
    if (json_array(&in, &ignored) != ST_OK) {
        return span_str("");
    }
    while (json_element(&in, &ignored) == ST_OK && !in.is_closed) {
        struct json_string known;
        if (!read_name(&in, false, &known)) {
            return span_str("");
        }
        if (is_wanted(&known, wanted)) {
            return span_of(known.raw.ptr - 1, known.raw.len + 2);
        }
    }
    return span_str("");
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* {"name": ..., "arguments": ...} comes next. False: it is no call of one of the tools. */
static bool read_call(struct span tools, struct json *in, struct tools_calls *out)
{
    struct error ignored;
    struct json_string name = {0};
    struct tools_call call = {.arguments = span_str("{}")};
    if (out->count == TOOLS_CALLS_MAX || json_peek(in) != JSON_OBJECT ||
        json_object(in, &ignored) != ST_OK) {
        return false;
    }
    while (true) {
        struct json_string key;
        if (json_member(in, &key, &ignored) != ST_OK) {
            return false;
        }
        if (in->is_closed) {
            break;
        }
        bool are_arguments =
            json_string_is(&key, "arguments") || json_string_is(&key, "parameters");
        bool is_object = json_peek(in) == JSON_OBJECT; /* moves to the value */
        const uint8_t *begin = in->at;
        if (json_string_is(&key, "name") && json_peek(in) == JSON_STRING) {
            if (json_read_string(in, &name, &ignored) != ST_OK) {
                return false;
            }
            call.name = span_of(begin, (size_t)(in->at - begin));
        } else if (json_skip(in, &ignored) != ST_OK || (are_arguments && !is_object)) {
            return false;
        } else if (are_arguments) {
            call.arguments = span_of(begin, (size_t)(in->at - begin));
        }
    }
    if (call.name.len == 0 || find_tool(tools, &(struct wanted){.written = &name}).len == 0) {
        return false;
    }
    out->calls[out->count++] = call;
    return true;
}

/* One call, or an array of calls, and nothing else. */
static bool read_calls(struct span tools, struct span text, struct tools_calls *out)
{
    struct json in;
    struct error ignored;
    json_init(&in, text);
    if (json_peek(&in) != JSON_ARRAY) {
        return read_call(tools, &in, out) && json_end(&in, &ignored) == ST_OK;
    }
    if (json_array(&in, &ignored) != ST_OK) {
        return false;
    }
    while (true) {
        if (json_element(&in, &ignored) != ST_OK) {
            return false;
        }
        if (in.is_closed) {
            return json_end(&in, &ignored) == ST_OK;
        }
        if (!read_call(tools, &in, out)) {
            return false;
        }
    }
}

static const uint8_t *find(struct span text, const char *mark, size_t bytes)
{
    return text.len >= bytes ? memmem(text.ptr, text.len, mark, bytes) : NULL;
}

/* All calls between marks; a block that is no call ends the search, and none counts. */
static bool read_blocks(struct span tools, struct span text, struct tools_calls *out)
{
    const uint8_t *begin = find(text, begin_mark, BEGIN_BYTES), *end = text.ptr + text.len;
    out->text_bytes = begin ? (size_t)(begin - text.ptr) : 0;
    while (begin) {
        begin += BEGIN_BYTES;
        const uint8_t *close = find(span_of(begin, (size_t)(end - begin)), end_mark, END_BYTES);
        const uint8_t *stop = close ? close : end; /* a stop token may stand for the mark */
        if (!read_calls(tools, span_trim(span_of(begin, (size_t)(stop - begin)), BLANKS), out)) {
            return false;
        }
        begin = close ? find(span_of(close, (size_t)(end - close)), begin_mark, BEGIN_BYTES) : NULL;
    }
    return out->count > 0;
}

void tools_find(struct span tools, struct span text, struct tools_calls *out)
{
    struct span whole = span_trim(text, BLANKS);
    out->count = 0;
    out->is_cut = false;
    out->text_bytes = text.len;
    if (tools.len == 0) {
        return;
    }
    bool is_whole = read_calls(tools, whole, out); /* then marks are in its texts */
    bool has_marks = !is_whole && find(text, begin_mark, BEGIN_BYTES) != NULL;
    out->count = is_whole ? out->count : 0;
    bool is_read = is_whole || (has_marks && read_blocks(tools, text, out));
    if (!is_read) {
        out->count = 0;
        out->text_bytes = text.len;
    } else if (has_marks) {
        out->text_bytes =
            span_trim(span_of(text.ptr, out->text_bytes), BLANKS).len ? out->text_bytes : 0;
    } else {
        out->text_bytes = 0;
    }
}

/* Where the object at |at| ends; NULL: it is cut. json_skip() need not take it: a model may write a
 * key twice, or more keys than that counts. */
static const uint8_t *object_end(const uint8_t *at, const uint8_t *end)
{
    size_t depth = 0;
    bool is_quoted = false;
    for (; at < end; at++) {
        if (is_quoted && *at == '\\') {
            at++;
        } else if (*at == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && *at == '{') {
            depth++;
        } else if (!is_quoted && *at == '}' && depth > 0 && --depth == 0) {
            return at + 1;
        }
    }
    return NULL;
}

void tools_find_cut(struct span tools, struct span chosen, struct span text,
                    struct tools_calls *out)
{
    struct json in;
    struct json_string key;
    struct error ignored;
    struct tools_call call = {find_tool(tools, &(struct wanted){.meant = chosen}), span_str("")};
    json_init(&in, text);
    bool is_read = json_object(&in, &ignored) == ST_OK;
    while (is_read && json_member(&in, &key, &ignored) == ST_OK && !in.is_closed) {
        json_peek(&in); /* moves to the value */
        const uint8_t *begin = in.at, *end = text.ptr + text.len;
        if (json_string_is(&key, "arguments")) {
            const uint8_t *stop = object_end(begin, end);
            is_read = stop != NULL;
            in.at = stop ? stop : end;
            call.arguments = span_of(begin, (size_t)(in.at - begin));
        } else {
            is_read = json_skip(&in, &ignored) == ST_OK;
            bool is_name = is_read && json_string_is(&key, "name");
            call.name = is_name ? span_of(begin, (size_t)(in.at - begin)) : call.name;
        }
    }
    out->calls[0] = call;
    out->count = call.name.len > 0;
    out->is_cut = !in.is_closed;
    out->text_bytes = 0;
}

size_t tools_plain_bytes(struct span text, size_t known)
{
    size_t at = 0;
    while (known == 0 && at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    if (known == 0 && (at == text.len || text.ptr[at] == '{' || text.ptr[at] == '[')) {
        return 0;
    }
    for (at = known; at < text.len; at++) {
        size_t left = text.len - at, len = left < BEGIN_BYTES ? left : BEGIN_BYTES;
        if (memcmp(text.ptr + at, begin_mark, len) == 0) {
            break;
        }
    }
    return at;
}
