/* SPDX-License-Identifier: MIT */
/* Calls whose arguments stand between tags, without quotes. */
#include "config.h"

#include "protocol/json.h"
#include "server/language/tools_priv.h"

/* What stands around names and values. Behind the name of a value there may be attributes. */
struct style {
    const char *call, *call_end, *key, *key_end, *attributes_end, *value, *value_end, *end;
};

static const struct style styles[] = {
    [TOOLS_TAGS] = {"<function=", ">", "<parameter=", ">", "", "", "</parameter>", "</function>"},
    [TOOLS_KEYS] = {"", "", "<arg_key>", "</arg_key>", "", "<arg_value>", "</arg_value>", ""},
    [TOOLS_INVOKE] = {"<invoke name=\"", "\">", "<parameter name=\"", "\">", "", "", "</parameter>",
                      "</invoke>"},
    [TOOLS_MARKED] = {"<" TOOLS_DSML "invoke name=\"", "\">", "<" TOOLS_DSML "parameter name=\"",
                      "\"", ">", "", "</" TOOLS_DSML "parameter>", "</" TOOLS_DSML "invoke>"},
};

static tools_step_f read_key, read_value;

static const struct style *style_of(const struct tools_reader *reader)
{
    return &styles[reader->family->form];
}

/* ---- values ---------------------------------------------------------------------------------- */

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

static bool is_json(struct span text)
{
    struct tools_json json = {0};
    size_t len = tools_json_read(&json, text);
    tools_json_end(&json);
    return json.state == TOOLS_JSON_DONE && len == text.len;
}

/* One newline at each end belongs to the tags. */
static struct span unlined(struct span text)
{
    size_t first = text.len > 0 && text.ptr[0] == '\n';
    text = span_of(text.ptr + first, text.len - first);
    text.len -= text.len > 0 && text.ptr[text.len - 1] == '\n';
    return text;
}

/* A value is written without quotes: its schema tells whether it is a string. */
static void print_by_schema(const struct value *schema, struct span text, struct buf *out)
{
    struct span bare = span_trim(text, TOOLS_BLANKS);
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

static void print_value(const struct tools_pieces *pieces, struct span text, struct buf *out)
{
    struct span bare = span_trim(text, TOOLS_BLANKS);
    if (pieces->kind == TOOLS_IS_JSON && is_json(bare)) {
        buf_add(out, bare.ptr, bare.len);
    } else if (pieces->kind != TOOLS_BY_SCHEMA) {
        json_print_string(out, text);
    } else {
        const struct value *schemas = pieces->schemas;
        print_by_schema(schemas ? value_map_get(schemas, pieces->key) : NULL, text, out);
    }
}

static enum tools_step add_piece(struct tools_reader *reader, struct span value)
{
    tools_piece_begin(reader);
    json_print_string(&reader->made, reader->pieces.key);
    buf_add_char(&reader->made, ':');
    print_value(&reader->pieces, value, &reader->made);
    enum tools_step step = tools_piece_end(reader, true);
    return step == TOOLS_GOES_ON ? tools_go(reader, read_key) : step;
}

/* A value without its end goes up to the next key, or to the end of the call. */
static size_t bare_end(const struct tools_reader *reader, size_t end)
{
    const struct style *style = style_of(reader);
    const char *const marks[] = {style->key, style->end};
    struct span text = tools_between(reader, reader->at, end);
    for (size_t i = 0; i < 2; i++) {
        size_t len = strlen(marks[i]);
        const uint8_t *mark = len > 0 ? memmem(text.ptr, text.len, marks[i], len) : NULL;
        text.len = mark ? (size_t)(mark - text.ptr) : text.len;
    }
    return reader->at + text.len;
}

/* Finds the end of a value, or else that of the call, which is sought once for all its values:
 * before |reader->closed| no value has an end. */
static bool seek_end(struct tools_reader *reader, bool *out_is_bare, size_t *out_at)
{
    const char *const marks[] = {style_of(reader)->value_end, reader->family->close};
    size_t which = 1;
    if (reader->at >= reader->closed) {
        if (tools_seek(reader, marks, 2, &which, out_at) != TOOLS_FOUND) {
            return false;
        }
        reader->closed = which == 1 ? *out_at : 0;
    }
    *out_is_bare = which == 1;
    *out_at = which == 1 ? reader->closed : *out_at;
    return true;
}

static enum tools_step read_value(struct tools_reader *reader)
{
    bool is_bare;
    size_t at, begin = reader->at;
    if (!seek_end(reader, &is_bare, &at)) {
        return tools_wait(reader);
    }
    size_t end = is_bare ? bare_end(reader, at) : at;
    tools_move(reader, is_bare ? end : at + strlen(style_of(reader)->value_end));
    return add_piece(reader, tools_between(reader, begin, end));
}

/* ---- keys ------------------------------------------------------------------------------------ */

/* With its key the call has begun. */
static enum tools_step begin_value(struct tools_reader *reader)
{
    enum tools_step step = tools_pieces_call(reader);
    return step == TOOLS_GOES_ON ? tools_go(reader, read_value) : step;
}

static enum tools_step read_value_open(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    enum tools_found found = tools_take(reader, style_of(reader)->value);
    return found == TOOLS_FOUND    ? begin_value(reader)
           : found == TOOLS_PARTLY ? tools_wait(reader)
                                   : TOOLS_REFUSES;
}

static bool has_text(struct span text, const char *part)
{
    return memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

static enum tools_step read_attributes(struct tools_reader *reader)
{
    const struct style *style = style_of(reader);
    size_t which, at;
    if (tools_seek(reader, &style->attributes_end, 1, &which, &at) != TOOLS_FOUND) {
        return tools_wait(reader);
    }
    struct span attributes = tools_between(reader, reader->at, at);
    reader->pieces.kind = has_text(attributes, "string=\"true\"")    ? TOOLS_IS_TEXT
                          : has_text(attributes, "string=\"false\"") ? TOOLS_IS_JSON
                                                                     : TOOLS_BY_SCHEMA;
    tools_move(reader, at + strlen(style->attributes_end));
    return begin_value(reader);
}

static enum tools_step read_key_name(struct tools_reader *reader)
{
    const struct style *style = style_of(reader);
    size_t which, at;
    if (tools_seek(reader, &style->key_end, 1, &which, &at) != TOOLS_FOUND) {
        return tools_wait(reader);
    }
    struct span key = span_trim(tools_between(reader, reader->at, at), TOOLS_BLANKS);
    reader->pieces.key = tools_keep_text(reader, key);
    if (reader->pieces.key.len < key.len) {
        return TOOLS_REFUSES; /* no memory */
    }
    tools_move(reader, at + strlen(style->key_end));
    return *style->attributes_end ? tools_go(reader, read_attributes)
           : *style->value        ? tools_go(reader, read_value_open)
                                  : begin_value(reader);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Another call may come in the same block. */
static enum tools_step read_behind(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return reader->is_over ? TOOLS_ENDS : TOOLS_WAITS;
    }
    enum tools_found call = tools_next(reader, style_of(reader)->call);
    return call == TOOLS_PARTLY
               ? tools_wait(reader)
               : tools_go(reader, call == TOOLS_FOUND ? tools_read_tags : tools_behind_call);
}

/* A key, or the end of the call. A stop token may stand for the marks. */
static enum tools_step read_key(struct tools_reader *reader)
{
    const struct style *style = style_of(reader);
    const char *const marks[] = {style->key, style->end, reader->family->close,
                                 reader->family->open};
    enum tools_found best = TOOLS_ABSENT;
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return reader->is_over ? tools_pieces_end(reader, read_behind) : TOOLS_WAITS;
    }
    for (size_t i = 0; i < 4; i++) {
        enum tools_found found =
            i < 2 ? tools_take(reader, marks[i]) : tools_next(reader, marks[i]);
        if (found == TOOLS_FOUND) {
            return i == 0 ? tools_go(reader, read_key_name) : tools_pieces_end(reader, read_behind);
        }
        best = found > best ? found : best;
    }
    return best == TOOLS_PARTLY ? tools_wait(reader) : TOOLS_REFUSES;
}

static enum tools_step begin_call(struct tools_reader *reader, size_t end, size_t next)
{
    struct span name = span_trim(tools_between(reader, reader->at, end), TOOLS_BLANKS);
    enum tools_step step = tools_pieces_begin(reader, name);
    tools_move(reader, next);
    return step == TOOLS_GOES_ON ? tools_go(reader, read_key) : step;
}

/* The name ends with its tag; without one, before the first key or where the call ends. */
static enum tools_step read_name(struct tools_reader *reader)
{
    const struct style *style = style_of(reader);
    const struct tools_family *family = reader->family;
    const char *const marks[] = {style->call_end, *style->call ? "" : style->key, family->close,
                                 family->open};
    size_t which, at, end = reader->text.len;
    enum tools_found found = tools_seek(reader, marks, 4, &which, &at);
    if (found == TOOLS_PARTLY) {
        return TOOLS_WAITS;
    }
    if (found == TOOLS_ABSENT) {
        return *style->call ? tools_wait(reader) : begin_call(reader, end, end);
    }
    return which == 0     ? begin_call(reader, at, at + strlen(style->call_end))
           : *style->call ? TOOLS_REFUSES
                          : begin_call(reader, at, at);
}

enum tools_step tools_read_tags(struct tools_reader *reader)
{
    const struct style *style = style_of(reader);
    enum tools_found found = *style->call ? tools_take(reader, style->call) : TOOLS_FOUND;
    return found == TOOLS_FOUND    ? tools_go(reader, read_name)
           : found == TOOLS_PARTLY ? tools_wait(reader)
                                   : TOOLS_REFUSES;
}
