/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_message.h"

#include <stddef.h>
#include <string.h>

#include "base/buf.h"
#include "server/language/ask_text.h"
#include "server/language/ask_values.h"

/* The text is not much longer than the body, which is bounded. */
#define TEXT_BYTES_MAX (1 << 30)
#define MESSAGES_MAX 4096

/* What the blocks of one message are, as JSON with commas between the items. */
struct reader {
    struct json *in;
    struct buf text;    /* messages so far */
    struct buf parts;   /* texts of the present message */
    struct buf calls;   /* of the present message */
    struct buf results; /* likewise, each a message of its own */
    struct buf result;  /* the content of the present result */
    struct span thought;
    bool goes_on; /* the last message is the assistant's and calls nothing */
    uint32_t count;
    struct error *err;
};

static void reader_init(struct reader *r, struct json *in, struct error *err)
{
    *r = (struct reader){.in = in, .err = err};
    in->may_repeat = true; /* as in Python, the last one counts */
    buf_init(&r->text, TEXT_BYTES_MAX);
    buf_init(&r->parts, TEXT_BYTES_MAX);
    buf_init(&r->calls, TEXT_BYTES_MAX);
    buf_init(&r->results, TEXT_BYTES_MAX);
    buf_init(&r->result, TEXT_BYTES_MAX);
}

/* Returns whether there was memory for all of it. */
static bool reader_fini(struct reader *r)
{
    struct buf *const all[] = {&r->text, &r->parts, &r->calls, &r->results, &r->result};
    bool has_failed = false;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        has_failed |= buf_failed(all[i]);
        buf_fini(all[i]);
    }
    return !has_failed;
}

/* ---- versions ------------------------------------------------------------------------------- */

/* Before this version events had another form. A later one, 2026-10-21, has taken away members of
 * requests alone; those mean the same here as before. */
enum status ask_message_verify_version(struct span version, struct error *err)
{
    static const char first[] = "2023-06-01";
    bool is_date = version.len == sizeof(first) - 1;
    for (size_t i = 0; is_date && i < version.len; i++) {
        uint8_t c = version.ptr[i];
        is_date = first[i] == '-' ? c == '-' : c >= '0' && c <= '9';
    }
    return version.len == 0 || (is_date && memcmp(version.ptr, first, version.len) >= 0)
               ? ST_OK
               : error_set(err, ST_INVALID, "anthropic-version: expected %s or later, got '%.*s'",
                           first, SPAN_SHORT(version));
}

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block {
    struct span type, text, thinking, id, name, input, tool_use_id;
    bool has_content;
};

static const struct {
    const char *name;
    size_t offset;
} block_members[] = {
    {"type", offsetof(struct block, type)},
    {"text", offsetof(struct block, text)},
    {"thinking", offsetof(struct block, thinking)},
    {"id", offsetof(struct block, id)},
    {"name", offsetof(struct block, name)},
    {"input", offsetof(struct block, input)},
    {"tool_use_id", offsetof(struct block, tool_use_id)},
};

static enum status read_content(struct reader *r, bool is_result);

static enum status read_block_member(struct reader *r, const struct json_string *key,
                                     struct block *block)
{
    struct span *at = NULL;
    if (json_string_is(key, "content")) {
        block->has_content = true;
        return read_content(r, true);
    }
    for (size_t i = 0; i < sizeof(block_members) / sizeof(block_members[0]); i++) {
        if (json_string_is(key, block_members[i].name)) {
            at = (struct span *)(void *)((char *)block + block_members[i].offset);
        }
    }
    return ask_text_take(r->in, at, r->err);
}

static void separate(struct buf *out)
{
    buf_add_str(out, out->len ? "," : "");
}

static enum status add_text(struct reader *r, const struct block *block, struct buf *out)
{
    if (!ask_text_is_string(block->text)) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a text in text");
    }
    separate(out);
    ask_text_add(out, "{\"type\":\"text\",\"text\":", block->text);
    buf_add_str(out, "}");
    return ST_OK;
}

static enum status add_call(struct reader *r, const struct block *block)
{
    if (!ask_text_is_string(block->id) || !ask_text_is_string(block->name) ||
        !ask_text_is_object(block->input)) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "a tool_use: expected id, name, and an object as input");
    }
    separate(&r->calls);
    ask_text_add(&r->calls, "{\"id\":", block->id);
    ask_text_add(&r->calls, ",\"type\":\"function\",\"function\":{\"name\":", block->name);
    ask_text_add(&r->calls, ",\"arguments\":", block->input);
    buf_add_str(&r->calls, "}}");
    return ST_OK;
}

static enum status add_result(struct reader *r, const struct block *block)
{
    if (!ask_text_is_string(block->tool_use_id)) {
        return json_fail(r->in, r->err, ST_INVALID, "a tool_result: expected tool_use_id");
    }
    separate(&r->results);
    ask_text_add(&r->results, "{\"role\":\"tool\",\"tool_call_id\":", block->tool_use_id);
    buf_add_str(&r->results, ",\"content\":[");
    buf_add(&r->results, r->result.ptr, block->has_content ? r->result.len : 0);
    buf_add_str(&r->results, "]}");
    return ST_OK;
}

static enum status add_thought(struct reader *r, const struct block *block)
{
    if (!ask_text_is_string(block->thinking)) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a text in thinking");
    }
    r->thought = block->thinking;
    return ST_OK;
}

/* In a result there are texts alone. */
static enum status add_block(struct reader *r, const struct block *block, bool is_result)
{
    if (span_is(block->type, "\"text\"")) {
        return add_text(r, block, is_result ? &r->result : &r->parts);
    }
    if (span_is(block->type, "\"image\"")) {
        return json_fail(r->in, r->err, ST_INVALID, "language models take no images here");
    }
    if (!is_result && span_is(block->type, "\"tool_use\"")) {
        return add_call(r, block);
    }
    if (!is_result && span_is(block->type, "\"tool_result\"")) {
        return add_result(r, block);
    }
    if (!is_result && span_is(block->type, "\"thinking\"")) {
        return add_thought(r, block);
    }
    if (!is_result && span_is(block->type, "\"redacted_thinking\"")) {
        return ST_OK;
    }
    return json_fail(r->in, r->err, ST_INVALID, "expected a block of type %s, got %.*s",
                     is_result ? "text" : "text, thinking, tool_use or tool_result",
                     SPAN_SHORT(block->type));
}

static enum status read_block(struct reader *r, bool is_result)
{
    struct block block = {.has_content = false};
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return add_block(r, &block, is_result);
        }
        if (is_result && json_string_is(&key, "content")) {
            TRY(json_skip(r->in, r->err)); /* of a block that is refused: results do not nest */
        } else {
            TRY(read_block_member(r, &key, &block));
        }
    }
}

/* A text, or a list of blocks: of a message, or of the result of a tool. */
static enum status read_content(struct reader *r, bool is_result)
{
    if (is_result) {
        buf_reset(&r->result);
    }
    if (json_peek(r->in) != JSON_ARRAY) {
        struct block block = {.has_content = false};
        TRY(ask_text_take(r->in, &block.text, r->err));
        return ask_text_is_string(block.text)
                   ? add_text(r, &block, is_result ? &r->result : &r->parts)
                   : json_fail(r->in, r->err, ST_INVALID, "expected a text or a list of blocks");
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read_block(r, is_result));
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static void add_parts(struct reader *r, const char *role)
{
    separate(&r->text);
    buf_printf(&r->text, "{\"role\":\"%s\",\"content\":[", role);
    buf_add(&r->text, r->parts.ptr, r->parts.len);
    buf_add_str(&r->text, "]");
}

static void add_assistant(struct reader *r)
{
    add_parts(r, "assistant");
    ask_text_add(&r->text, ",\"reasoning_content\":", r->thought);
    ask_text_add(&r->text, ",\"tool_calls\":[", buf_span(&r->calls));
    buf_add_str(&r->text, r->calls.len ? "]}" : "}");
    r->goes_on = r->calls.len == 0 && r->parts.len > 0;
}

static void add_user(struct reader *r)
{
    if (r->results.len) {
        separate(&r->text);
        buf_add(&r->text, r->results.ptr, r->results.len);
    }
    if (r->parts.len || !r->results.len) {
        add_parts(r, "user");
        buf_add_str(&r->text, "}");
    }
}

static enum status add_message(struct reader *r, struct span role)
{
    bool is_assistant = span_is(role, "\"assistant\""), is_user = span_is(role, "\"user\"");
    bool has_more = r->calls.len > 0 || r->thought.len > 0;
    r->goes_on = false;
    if (!is_user && !is_assistant && !span_is(role, "\"system\"")) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected the role \"user\", \"assistant\" or \"system\"");
    }
    if ((!is_assistant && has_more) || (!is_user && r->results.len > 0)) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "only the assistant has thinking and tool_use, and only the user "
                         "tool_result");
    }
    if (is_assistant) {
        add_assistant(r);
    } else if (is_user) {
        add_user(r);
    } else {
        add_parts(r, "system");
        buf_add_str(&r->text, "}");
    }
    return ST_OK;
}

/* Forgets the content of the message before, and that of this one which does not count. */
static void drop_content(struct reader *r)
{
    buf_reset(&r->parts);
    buf_reset(&r->calls);
    buf_reset(&r->results);
    r->thought = span_str("");
}

static enum status read_message(struct reader *r)
{
    struct span role = {0};
    bool has_content = false;
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        if (json_string_is(&key, "content")) {
            has_content = true;
            drop_content(r);
            TRY(read_content(r, false));
        } else {
            TRY(ask_text_take(r->in, json_string_is(&key, "role") ? &role : NULL, r->err));
        }
    }
    if (!has_content || ++r->count > MESSAGES_MAX) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "expected at most %d messages, each with a content", MESSAGES_MAX);
    }
    return add_message(r, role);
}

static enum status read_turns(struct reader *r)
{
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return r->count > 0 ? ST_OK
                                : json_fail(r->in, r->err, ST_INVALID, "expected at least one");
        }
        TRY(read_message(r));
    }
}

static enum status finish(struct reader *r, enum status status, struct arena *arena,
                          const struct buf *items, struct span *out)
{
    r->in->may_repeat = false;
    if (status == ST_OK) {
        status = ask_text_keep_list(arena, items, out, r->err);
    }
    return reader_fini(r) || status != ST_OK ? status : arena_fail(arena, "the request", r->err);
}

enum status ask_message_turns(struct json *in, struct arena *arena, struct ask *ask,
                              struct error *err)
{
    struct reader r;
    reader_init(&r, in, err);
    enum status status = read_turns(&r);
    ask->continues = r.goes_on;
    return finish(&r, status, arena, &r.text, &ask->messages);
}

enum status ask_message_system(struct json *in, struct arena *arena, struct ask *ask,
                               struct error *err)
{
    struct reader r;
    reader_init(&r, in, err);
    enum status status = read_content(&r, true);
    return finish(&r, status, arena, &r.result, &ask->instructions);
}

/* ---- tools ----------------------------------------------------------------------------------- */

static enum status add_tool(struct json *in, struct buf *out, const struct span *members,
                            struct error *err)
{
    struct span type = members[0], name = members[1], schema = members[3];
    if (type.len && !span_is(type, "\"custom\"") && !span_is(type, "null")) {
        return json_fail(in, err, ST_INVALID,
                         "expected a tool of type custom: the server has none of its own, got "
                         "%.*s",
                         SPAN_SHORT(type));
    }
    if (!ask_text_is_string(name) || !ask_text_is_object(schema)) {
        return json_fail(in, err, ST_INVALID, "expected a tool with name and input_schema");
    }
    separate(out);
    ask_text_add(out, "{\"type\":\"function\",\"function\":{\"name\":", name);
    ask_text_add(out, ",\"description\":", members[2]);
    ask_text_add(out, ",\"parameters\":", schema);
    buf_add_str(out, "}}");
    return ST_OK;
}

static enum status read_tool(struct json *in, struct buf *out, struct error *err)
{
    static const char *const names[] = {"type", "name", "description", "input_schema"};
    struct span members[4] = {{0}};
    TRY(json_object(in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return add_tool(in, out, members, err);
        }
        struct span *at = NULL;
        for (int i = 0; i < 4; i++) {
            at = json_string_is(&key, names[i]) ? &members[i] : at;
        }
        TRY(ask_text_take(in, at, err));
    }
}

static enum status read_tools(struct json *in, struct buf *out, struct error *err)
{
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(read_tool(in, out, err));
    }
}

enum status ask_message_tools(struct json *in, struct arena *arena, struct ask *ask,
                              struct error *err)
{
    struct reader r;
    reader_init(&r, in, err);
    enum status status = read_tools(in, &r.parts, err);
    return finish(&r, status, arena, &r.parts, &ask->tools);
}

/* {"type": "enabled", "budget_tokens": 1024}; a budget is not kept. */
enum status ask_message_thinking(struct json *in, struct ask *ask, struct error *err)
{
    struct json_string key, type = {0};
    TRY(json_object(in, err));
    while (true) {
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            break;
        }
        TRY(json_string_is(&key, "type") ? json_read_string(in, &type, err) : json_skip(in, err));
    }
    bool is_off = json_string_is(&type, "disabled");
    ask->thinking = is_off ? ASK_THINKING_OFF : ASK_THINKING_ON;
    return is_off || json_string_is(&type, "enabled") || json_string_is(&type, "adaptive")
               ? ST_OK
               : json_fail(in, err, ST_INVALID,
                           "expected the type \"enabled\", \"adaptive\" or \"disabled\"");
}

enum status ask_message_choice(struct json *in, struct arena *arena, struct ask *ask,
                               struct error *err)
{
    struct json_string key, type = {0};
    TRY(json_object(in, err));
    while (true) {
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            break;
        }
        if (json_string_is(&key, "type")) {
            TRY(json_read_string(in, &type, err));
        } else if (json_string_is(&key, "name")) {
            TRY(ask_read_text(in, arena, &ask->chosen_tool, err));
        } else if (json_string_is(&key, "disable_parallel_tool_use")) {
            TRY(json_read_bool(in, &ask->has_one_call, err));
        } else {
            TRY(json_skip(in, err));
        }
    }
    bool is_tool = json_string_is(&type, "tool"), is_auto = json_string_is(&type, "auto");
    ask->drops_tools = json_string_is(&type, "none");
    ask->needs_call = is_tool || json_string_is(&type, "any");
    bool is_known = is_auto || ask->drops_tools || ask->needs_call;
    return is_known && is_tool == (ask->chosen_tool.len > 0)
               ? ST_OK
               : json_fail(
                     in, err, ST_INVALID,
                     "expected the type \"auto\", \"none\", \"any\", or \"tool\" with a name");
}
