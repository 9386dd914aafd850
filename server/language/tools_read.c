/* SPDX-License-Identifier: MIT */
/* The forms of calls that are no plain JSON, see tools.def. */
#include "config.h"

#include <string.h>

#include "protocol/json.h"
#include "server/language/tools_literal.h"
#include "server/language/tools_priv.h"

static struct span between(const uint8_t *begin, const uint8_t *end)
{
    return span_of(begin, (size_t)(end - begin));
}

static struct span trimmed(struct span text)
{
    return span_trim(text, TOOLS_BLANKS);
}

static struct span behind(struct span text, size_t bytes)
{
    return span_of(text.ptr + bytes, text.len - bytes);
}

static bool is_json(struct span text)
{
    struct json in;
    struct error ignored;
    json_init(&in, text);
    return json_skip(&in, &ignored) == ST_OK && json_end(&in, &ignored) == ST_OK &&
           !tools_has_words(text);
}

static bool is_object(struct span text)
{
    return text.len > 0 && text.ptr[0] == '{' && is_json(text);
}

/* Adds the call whose arguments are |made|, which moves into the arena. They may have a name twice:
 * then it is no call, as if the model had written JSON. */
static bool add_made(struct tools_reading *reading, struct span name, const struct buf *made)
{
    const char *copy = buf_failed(made) || !is_object(buf_span(made))
                           ? NULL
                           : arena_strdup(reading->arena, made->ptr, made->len);
    return copy && tools_add(reading, name, span_of(copy, made->len));
}

/* ---- a name and an object -------------------------------------------------------------------- */

/* "functions.f:0" and "f[CALL_ID]123" are f. */
static struct span plain_name(struct span name)
{
    static const char prefix[] = "functions.";
    name = trimmed(name);
    if (span_begins(name, prefix)) {
        name = behind(name, sizeof(prefix) - 1);
    }
    const uint8_t *id = tools_mark(name, "[CALL_ID]");
    name = id ? between(name.ptr, id) : name;
    size_t len = 0;
    while (len < name.len && !strchr(TOOLS_BLANKS "<:", name.ptr[len])) {
        len++;
    }
    return span_of(name.ptr, len);
}

/* DeepSeek V3 has the kind of tool before the separator, and the name on the first line behind it.
 */
static void take_kind(struct span *name, struct span *rest)
{
    const uint8_t *line = memchr(rest->ptr, '\n', rest->len);
    if (span_is(*name, "function") && line && rest->ptr[0] != '{') {
        *name = trimmed(between(rest->ptr, line));
        *rest = trimmed(between(line, rest->ptr + rest->len));
    }
}

/* Without the fence of a block of code. */
static struct span unfenced(struct span text)
{
    if (span_begins(text, "```json")) {
        text = behind(text, 7);
    }
    const uint8_t *fence = tools_mark(text, "\n```");
    return trimmed(fence ? between(text.ptr, fence) : text);
}

static bool read_named(struct tools_reading *reading, struct span block)
{
    const char *separator = reading->family->separator;
    const uint8_t *mark = tools_mark(block, separator), *end = block.ptr + block.len;
    size_t mark_len = mark ? strlen(separator) : 0;
    if (!mark) {
        mark = memchr(block.ptr, '{', block.len);
    }
    if (!mark) {
        return false;
    }
    struct span name = plain_name(between(block.ptr, mark));
    struct span rest = trimmed(between(mark + mark_len, end));
    if (rest.len > 0) {
        take_kind(&name, &rest);
    }
    rest = unfenced(rest);
    rest = rest.len > 0 ? rest : span_str("{}");
    return is_object(rest) && tools_add(reading, name, rest);
}

/* ---- tags ------------------------------------------------------------------------------------ */

/* What stands around names and values. */
struct style {
    const char *call, *call_end, *key, *key_end, *value, *value_end, *end;
};

static const struct style styles[] = {
    [TOOLS_TAGS] = {"<function=", ">", "<parameter=", ">", "", "</parameter>", "</function>"},
    [TOOLS_KEYS] = {"", "", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", ""},
    [TOOLS_INVOKE] = {"<invoke name=\"", "\">", "<parameter name=\"", "\">", "", "</parameter>",
                      "</invoke>"},
};

static bool says_string(const struct value *type)
{
    return type && type->kind == VALUE_STRING && span_is(type->string, "string");
}

/* May a value of |schema| be a string? */
static bool may_be_string(const struct value *schema)
{
    static const char *const unions[] = {"anyOf", "oneOf", "type"};
    if (says_string(tools_member(schema, "type"))) {
        return true;
    }
    for (size_t i = 0; i < sizeof(unions) / sizeof(unions[0]); i++) {
        const struct value *list = tools_member(schema, unions[i]);
        for (size_t j = 0; list && list->kind == VALUE_LIST && j < list->list->count; j++) {
            const struct value *item = &list->list->items[j];
            if (says_string(item) || says_string(tools_member(item, "type"))) {
                return true;
            }
        }
    }
    return false;
}

/* The schemas of the arguments of the tool |name|; NULL: none. */
static const struct value *find_schemas(const struct value *tools, struct span name)
{
    const struct value *tool = tools_named(tools, name), *inner = tools_member(tool, "function");
    return tools_member(tools_member(inner ? inner : tool, "parameters"), "properties");
}

/* One newline at each end belongs to the tags. */
static struct span unlined(struct span text)
{
    if (text.len > 0 && text.ptr[0] == '\n') {
        text = behind(text, 1);
    }
    text.len -= text.len > 0 && text.ptr[text.len - 1] == '\n';
    return text;
}

/* A value is written without quotes: its schema tells whether it is a string. */
static void print_value(const struct value *schema, struct span text, struct buf *out)
{
    struct span bare = trimmed(text);
    bool is_string = may_be_string(schema);
    const char *word = span_is(bare, "None")    ? "null"
                       : is_string              ? NULL
                       : span_is(bare, "True")  ? "true"
                       : span_is(bare, "False") ? "false"
                                                : NULL;
    if (is_string && says_string(tools_member(schema, "type"))) {
        json_print_string(out, unlined(text));
    } else if (word) {
        buf_add_str(out, word);
    } else if (is_string ? span_is(bare, "null") : is_json(bare)) {
        buf_add(out, bare.ptr, bare.len);
    } else {
        json_print_string(out, unlined(text));
    }
}

/* Takes the text up to |mark| off |text|, and the mark. False: it is not there. */
static bool take_until(struct span *text, const char *mark, struct span *out)
{
    const uint8_t *at = *mark ? tools_mark(*text, mark) : text->ptr;
    if (!at) {
        return false;
    }
    *out = between(text->ptr, at);
    *text = behind(*text, out->len + strlen(mark));
    return true;
}

/* A value without its end goes up to the next key, or to the end of the call. |*has_end|: there may
 * be such an end; an absent one is not looked for again. */
static struct span take_value(const struct style *style, struct span *text, bool *has_end)
{
    struct span value;
    *has_end = *has_end && take_until(text, style->value_end, &value);
    if (*has_end) {
        return value;
    }
    const uint8_t *key = tools_mark(*text, style->key);
    const uint8_t *stop = key ? key : tools_mark(*text, style->end);
    stop = stop ? stop : text->ptr + text->len;
    value = between(text->ptr, stop);
    *text = between(stop, text->ptr + text->len);
    return value;
}

/* Takes the key, and moves to its value. */
static bool take_key(const struct style *style, struct span *text, struct span *key)
{
    *text = behind(*text, strlen(style->key));
    if (!take_until(text, style->key_end, key)) {
        return false;
    }
    *key = trimmed(*key);
    struct span value = trimmed(*text);
    if (*style->value) {
        if (!span_begins(value, style->value)) {
            return false;
        }
        *text = behind(value, strlen(style->value));
    }
    return true;
}

/* The arguments of a tool with |schemas|, which may be NULL, up to the end of the call. More of
 * them than JSON_KEYS_MAX are no object for add_made(). */
static bool read_arguments(const struct style *style, const struct value *schemas,
                           struct span *text, struct buf *out)
{
    struct span ignored, key;
    bool has_end = true;
    buf_add_char(out, '{');
    for (uint32_t count = 0; count <= JSON_KEYS_MAX; count++) {
        *text = trimmed(*text);
        if (!span_begins(*text, style->key)) {
            break;
        }
        if (!take_key(style, text, &key)) {
            return false;
        }
        buf_add_str(out, count ? "," : "");
        json_print_string(out, key);
        buf_add_char(out, ':');
        print_value(schemas ? value_map_get(schemas, key) : NULL, take_value(style, text, &has_end),
                    out);
    }
    buf_add_char(out, '}');
    if (*style->end && span_begins(*text, style->end)) {
        (void)take_until(text, style->end, &ignored);
        return true;
    }
    return text->len == 0;
}

static bool read_name(const struct style *style, struct span *text, struct span *out)
{
    struct span ignored;
    if (*style->call) {
        return take_until(text, style->call, &ignored) && trimmed(ignored).len == 0 &&
               take_until(text, style->call_end, out);
    }
    const uint8_t *key = tools_mark(*text, style->key);
    *out = key ? between(text->ptr, key) : *text;
    *text = behind(*text, out->len);
    return true;
}

static bool read_tagged(struct tools_reading *reading, struct span block)
{
    const struct style *style = &styles[reading->family->form];
    struct buf made;
    struct span name;
    bool is_read = block.len > 0;
    buf_init(&made, TOOLS_MADE_BYTES_MAX);
    while (is_read && block.len > 0) {
        buf_reset(&made);
        is_read = read_name(style, &block, &name);
        name = is_read ? trimmed(name) : name;
        is_read = is_read &&
                  read_arguments(style, find_schemas(reading->tools, name), &block, &made) &&
                  add_made(reading, name, &made);
        block = trimmed(block);
    }
    buf_fini(&made);
    return is_read;
}

/* ---- literals -------------------------------------------------------------------------------- */

/* "f(a=1)", or "call:f{a:1}". */
static bool read_literal_call(struct tools_reading *reading, struct tools_literal *in)
{
    bool is_python = reading->family->form == TOOLS_PYTHON;
    struct span name;
    if (!is_python && !tools_literal_take(in, "call:")) {
        return false;
    }
    name = tools_literal_name(in);
    buf_reset(in->out);
    return name.len > 0 && tools_literal_take(in, is_python ? "(" : "{") &&
           tools_literal_members(in, is_python ? "=" : ":", is_python ? ")" : "}") &&
           add_made(reading, name, in->out);
}

static bool read_literal_calls(struct tools_reading *reading, struct tools_literal *in)
{
    bool is_listed = tools_literal_take(in, "[");
    bool is_read = read_literal_call(reading, in);
    while (is_read && in->at < in->end) {
        bool goes_on = tools_literal_take(in, ",");
        if (is_listed && tools_literal_take(in, "]")) {
            is_listed = false;
            break;
        }
        if (in->at == in->end || (is_listed && !goes_on)) {
            break;
        }
        is_read = read_literal_call(reading, in);
    }
    return is_read && trimmed(between(in->at, in->end)).len == 0;
}

static bool read_literals(struct tools_reading *reading, struct span block)
{
    struct buf made;
    buf_init(&made, TOOLS_MADE_BYTES_MAX);
    struct tools_literal in = {.at = block.ptr,
                               .end = block.ptr + block.len,
                               .quote = span_str(reading->family->quote),
                               .out = &made};
    bool is_read = read_literal_calls(reading, &in);
    buf_fini(&made);
    return is_read;
}

/* ---- forms ----------------------------------------------------------------------------------- */

bool tools_read_block(struct tools_reading *reading, struct span block)
{
    uint32_t before = reading->out->count;
    block = trimmed(block);
    if (tools_read_json(reading, block)) { /* most families may write it, too */
        return true;
    }
    reading->out->count = before;
    switch (reading->family->form) {
    case TOOLS_JSON:
        return false;
    case TOOLS_NAMED:
        return read_named(reading, block);
    case TOOLS_TAGS:
    case TOOLS_KEYS:
    case TOOLS_INVOKE:
        return read_tagged(reading, block);
    case TOOLS_PYTHON:
    case TOOLS_BRACES:
        return read_literals(reading, block);
    }
    return false;
}
