/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_response.h"

#include <string.h>

#include "base/buf.h"
#include "server/language/ask_text.h"

/* The text is not much longer than the body, which is bounded. */
#define TEXT_BYTES_MAX (1 << 30)
#define ITEMS_MAX 4096

struct reader {
    struct json *in;
    struct buf text;    /* messages, with commas between them */
    struct buf content; /* of the present item: a value of JSON */
    struct buf summary; /* likewise, of an item of type reasoning */
    struct buf thought; /* of the assistant's next message: a value of JSON; empty: none */
    bool is_assistant;  /* the last message is the assistant's and not closed ... */
    bool has_calls;     /* ... nor is its list of calls */
    uint32_t count;
    struct error *err;
};

struct item {
    struct json_string type, role;
    struct span call_id, name, arguments; /* with their quotes */
    bool has_type, has_role, has_content, has_summary;
};

/* Reads a text as it stands, with its quotes. */
static enum status read_text(struct reader *r, struct span *out)
{
    TRY(ask_text_take(r->in, out, r->err));
    return ask_text_is_string(*out) ? ST_OK
                                    : json_fail(r->in, r->err, ST_INVALID, "expected a string");
}

/* ---- the parts of a content ------------------------------------------------------------------ */

static bool is_text(const struct json_string *type)
{
    return json_string_is(type, "input_text") || json_string_is(type, "output_text") ||
           json_string_is(type, "text") || json_string_is(type, "reasoning_text") ||
           json_string_is(type, "summary_text") || json_string_is(type, "refusal");
}

static enum status read_part(struct reader *r, struct buf *out)
{
    struct json_string key, type = {0};
    struct span text = {0};
    TRY(json_object(r->in, r->err));
    while (true) {
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        if (json_string_is(&key, "type")) {
            TRY(json_read_string(r->in, &type, r->err));
        } else if (json_string_is(&key, "text") || json_string_is(&key, "refusal")) {
            TRY(read_text(r, &text));
        } else {
            TRY(ask_text_take(r->in, NULL, r->err));
        }
    }
    if (!is_text(&type) || text.len == 0) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected a part of type input_text or output_text with a text");
    }
    ask_text_add(out, "{\"type\":\"text\",\"text\":", text);
    buf_add_str(out, "}");
    return ST_OK;
}

/* A text, or a list of parts. */
static enum status read_content(struct reader *r, struct buf *out)
{
    buf_reset(out);
    if (json_peek(r->in) == JSON_NULL) {
        buf_add_str(out, "\"\"");
        return json_read_null(r->in, r->err);
    }
    if (json_peek(r->in) != JSON_ARRAY) {
        struct span text;
        TRY(read_text(r, &text));
        buf_add(out, text.ptr, text.len);
        return ST_OK;
    }
    buf_add_str(out, "[");
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            buf_add_str(out, "]");
            return ST_OK;
        }
        buf_add_str(out, out->len > 1 ? "," : "");
        TRY(read_part(r, out));
    }
}

/* ---- items ----------------------------------------------------------------------------------- */

static void close_message(struct reader *r)
{
    if (r->is_assistant) {
        buf_add_str(&r->text, r->has_calls ? "]}" : "}");
    }
    r->is_assistant = r->has_calls = false;
}

static void begin_message(struct reader *r)
{
    close_message(r);
    buf_add_str(&r->text, r->text.len ? "," : "");
}

/* |value| is a text or a list of parts, and there is something in it. */
static bool is_filled(bool has, const struct buf *value)
{
    return has && value->len > 2;
}

static void keep_thought(struct reader *r, const struct item *item)
{
    const struct buf *from = is_filled(item->has_content, &r->content)   ? &r->content
                             : is_filled(item->has_summary, &r->summary) ? &r->summary
                                                                         : NULL;
    if (from) {
        buf_reset(&r->thought);
        buf_add(&r->thought, from->ptr, from->len);
    }
}

/* The thought becomes a member of the message that is open. */
static void add_thought(struct reader *r)
{
    if (r->thought.len > 0) {
        buf_add_str(&r->text, ",\"reasoning_content\":");
        buf_add(&r->text, r->thought.ptr, r->thought.len);
        buf_reset(&r->thought);
    }
}

static enum status add_message(struct reader *r, const struct item *item)
{
    if (!item->has_role || !item->has_content) {
        return json_fail(r->in, r->err, ST_INVALID, "a message: expected a role and a content");
    }
    begin_message(r);
    buf_add_str(&r->text, "{\"role\":");
    if (json_string_is(&item->role, "developer")) {
        buf_add_str(&r->text, "\"system\"");
    } else {
        buf_add_char(&r->text, '"');
        buf_add(&r->text, item->role.raw.ptr, item->role.raw.len);
        buf_add_char(&r->text, '"');
    }
    buf_add_str(&r->text, ",\"content\":");
    buf_add(&r->text, r->content.ptr, r->content.len);
    r->is_assistant = json_string_is(&item->role, "assistant");
    if (r->is_assistant) {
        add_thought(r);
    }
    buf_reset(&r->thought);
    buf_add_str(&r->text, r->is_assistant ? "" : "}");
    return ST_OK;
}

static enum status add_call(struct reader *r, const struct item *item)
{
    if (item->call_id.len == 0 || item->name.len == 0 || item->arguments.len == 0) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "a function_call: expected call_id, name and arguments");
    }
    if (!r->is_assistant || r->thought.len > 0) {
        begin_message(r);
        buf_add_str(&r->text, "{\"role\":\"assistant\",\"content\":\"\"");
        add_thought(r);
        r->is_assistant = true;
    }
    buf_add_str(&r->text, r->has_calls ? "," : ",\"tool_calls\":[");
    r->has_calls = true;
    ask_text_add(&r->text, "{\"id\":", item->call_id);
    ask_text_add(&r->text, ",\"type\":\"function\",\"function\":{\"name\":", item->name);
    ask_text_add(&r->text, ",\"arguments\":", item->arguments);
    buf_add_str(&r->text, "}}");
    return ST_OK;
}

static enum status add_output(struct reader *r, const struct item *item)
{
    if (item->call_id.len == 0 || !item->has_content) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "a function_call_output: expected call_id and output");
    }
    begin_message(r);
    buf_reset(&r->thought);
    ask_text_add(&r->text, "{\"role\":\"tool\",\"tool_call_id\":", item->call_id);
    buf_add_str(&r->text, ",\"content\":");
    buf_add(&r->text, r->content.ptr, r->content.len);
    buf_add_str(&r->text, "}");
    return ST_OK;
}

static enum status add_item(struct reader *r, const struct item *item)
{
    if (!item->has_type || json_string_is(&item->type, "message")) {
        return add_message(r, item);
    }
    if (json_string_is(&item->type, "function_call")) {
        return add_call(r, item);
    }
    if (json_string_is(&item->type, "function_call_output")) {
        return add_output(r, item);
    }
    if (json_string_is(&item->type, "reasoning")) {
        keep_thought(r, item);
        return ST_OK;
    }
    return json_fail(r->in, r->err, ST_INVALID,
                     "expected an item of type message, function_call or function_call_output, got "
                     "\"%.*s\"",
                     SPAN_SHORT(item->type.raw));
}

static enum status read_member(struct reader *r, const struct json_string *key, struct item *item)
{
    struct {
        const char *name;
        struct span *value;
    } const members[] = {
        {"call_id", &item->call_id},
        {"name", &item->name},
        {"arguments", &item->arguments},
    };
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        if (json_string_is(key, members[i].name)) {
            return read_text(r, members[i].value);
        }
    }
    bool is_type = json_string_is(key, "type");
    if (is_type || json_string_is(key, "role")) {
        *(is_type ? &item->has_type : &item->has_role) = true;
        return json_read_string(r->in, is_type ? &item->type : &item->role, r->err);
    }
    if (json_string_is(key, "content") || json_string_is(key, "output")) {
        item->has_content = true;
        return read_content(r, &r->content);
    }
    if (json_string_is(key, "summary")) {
        item->has_summary = true;
        return read_content(r, &r->summary);
    }
    return ask_text_take(r->in, NULL, r->err);
}

static enum status read_item(struct reader *r)
{
    struct item item = {0};
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        TRY(read_member(r, &key, &item));
    }
    if (++r->count > ITEMS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected at most %d items", ITEMS_MAX);
    }
    return add_item(r, &item);
}

static enum status read_items(struct reader *r)
{
    if (json_peek(r->in) != JSON_ARRAY) {
        TRY(read_content(r, &r->content));
        buf_add_str(&r->text, "{\"role\":\"user\",\"content\":");
        buf_add(&r->text, r->content.ptr, r->content.len);
        buf_add_str(&r->text, "}");
        return ST_OK;
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            close_message(r);
            return ST_OK;
        }
        TRY(read_item(r));
    }
}

/* ---- members --------------------------------------------------------------------------------- */

enum status ask_response_input(struct json *in, struct arena *arena, struct ask *ask,
                               struct error *err)
{
    struct reader r = {.in = in, .err = err};
    buf_init(&r.text, TEXT_BYTES_MAX);
    buf_init(&r.content, TEXT_BYTES_MAX);
    buf_init(&r.summary, TEXT_BYTES_MAX);
    buf_init(&r.thought, TEXT_BYTES_MAX);
    in->may_repeat = true; /* as in Python, the last one counts */
    enum status status = read_items(&r);
    in->may_repeat = false;
    if (status == ST_OK && (buf_failed(&r.content) || buf_failed(&r.thought))) {
        status = arena_fail(arena, "the request", err);
    }
    if (status == ST_OK) {
        status = ask_text_keep_list(arena, &r.text, &ask->messages, err);
    }
    buf_fini(&r.text);
    buf_fini(&r.content);
    buf_fini(&r.summary);
    buf_fini(&r.thought);
    return status;
}

enum status ask_response_instructions(struct json *in, struct ask *ask, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    ask->instructions = span_of(text.raw.ptr - 1, text.raw.len + 2); /* with its quotes */
    return ST_OK;
}

/* ---- tools ----------------------------------------------------------------------------------- */

static enum status take_raw(struct json *in, struct span *out, struct error *err)
{
    (void)json_peek(in); /* passes over the white space before the value */
    const uint8_t *begin = in->at;
    TRY(json_skip(in, err));
    *out = span_of(begin, (size_t)(in->at - begin));
    return ST_OK;
}

static void add_raw(struct buf *out, const char *before, struct span raw)
{
    if (raw.len) {
        buf_add_str(out, before);
        buf_add(out, raw.ptr, raw.len);
    }
}

static enum status read_tool(struct json *in, struct buf *out, struct error *err)
{
    struct span type = {0}, name = {0}, description = {0}, parameters = {0};
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            break;
        }
        struct span ignored, *at = json_string_is(&key, "type")          ? &type
                                   : json_string_is(&key, "name")        ? &name
                                   : json_string_is(&key, "description") ? &description
                                   : json_string_is(&key, "parameters")  ? &parameters
                                                                         : &ignored;
        TRY(take_raw(in, at, err));
    }
    if (!span_is(type, "\"function\"") || name.len == 0 || name.ptr[0] != '"') {
        return json_fail(in, err, ST_INVALID, "expected a tool of type function with a name");
    }
    buf_add_str(out, out->len > 1 ? "," : "");
    add_raw(out, "{\"type\":\"function\",\"function\":{\"name\":", name);
    add_raw(out, ",\"description\":", description);
    add_raw(out, ",\"parameters\":", parameters);
    buf_add_str(out, "}}");
    return ST_OK;
}

static enum status read_tools(struct json *in, struct buf *out, struct error *err)
{
    buf_add_str(out, "[");
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            buf_add_str(out, "]");
            return ST_OK;
        }
        TRY(read_tool(in, out, err));
    }
}

enum status ask_response_tools(struct json *in, struct arena *arena, struct ask *ask,
                               struct error *err)
{
    struct buf text;
    (void)json_peek(in);
    const uint8_t *begin = in->at;
    buf_init(&text, TEXT_BYTES_MAX);
    enum status status = read_tools(in, &text, err);
    if (status == ST_OK) {
        ask->given_tools = span_of(begin, (size_t)(in->at - begin));
        status = ask_text_keep(arena, &text, &ask->tools, err);
    }
    buf_fini(&text);
    return status;
}
