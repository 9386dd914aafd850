/* SPDX-License-Identifier: MIT */
/*
 * Members of Cohere's /v2/chat that OpenAI's API does not have, or has in another form. Source: the
 * page "Chat API (v2)" of Cohere's documentation, and cohere-python 7.3.
 *
 *     messages[].content: a text, or blocks
 *       text                               a part of the message
 *       thinking                           reasoning_content of the assistant's message
 *       document                           a part of a tool's message: the JSON of its data
 *     messages[].tool_plan                 the text beside calls, if the message has no content
 */
#include "config.h"

#include <stddef.h>

#include "base/buf.h"
#include "server/language/ask_priv.h"
#include "server/language/ask_text.h"

/* ---- blocks ---------------------------------------------------------------------------------- */

struct block {
    struct span type, text, thinking, data;
};

struct message {
    struct span role, plan, calls, id, thought;
    struct buf parts; /* of its content, as JSON with commas between them */
    bool has_content;
};

static void add_part(struct message *message, struct span text)
{
    buf_add_str(&message->parts, message->parts.len ? "," : "");
    ask_text_add(&message->parts, "{\"type\":\"text\",\"text\":", text);
    buf_add_str(&message->parts, "}");
}

/* Models read text: a document is its JSON. */
static void add_document(struct message *message, struct span data)
{
    buf_add_str(&message->parts, message->parts.len ? "," : "");
    buf_add_str(&message->parts, "{\"type\":\"text\",\"text\":");
    json_print_string(&message->parts, data);
    buf_add_str(&message->parts, "}");
}

/* {"id": "...", "data": {...}}; a text is one by itself. */
static enum status read_document(struct ask_reader *r, struct span *out)
{
    if (json_peek(r->in) != JSON_OBJECT) {
        return ask_text_take(r->in, out, r->err);
    }
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(ask_text_take(r->in, json_string_is(&key, "data") ? out : NULL, r->err));
    }
}

static enum status add_block(struct ask_reader *r, struct message *message,
                             const struct block *block)
{
    bool is_thought = span_is(block->type, "\"thinking\"");
    if (span_is(block->type, "\"text\"") && ask_text_is_string(block->text)) {
        add_part(message, block->text);
        return ST_OK;
    }
    if (is_thought && ask_text_is_string(block->thinking)) {
        message->thought = block->thinking;
        return ST_OK;
    }
    if (span_is(block->type, "\"document\"") && block->data.len > 0) {
        add_document(message, block->data);
        return ST_OK;
    }
    return json_fail(r->in, r->err, ST_INVALID,
                     "expected a block of type text, thinking or document with a member of that "
                     "name, got %.*s",
                     SPAN_SHORT(block->type));
}

static enum status read_block(struct ask_reader *r, struct message *message)
{
    struct block block = {.type = {0}};
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return add_block(r, message, &block);
        }
        struct span *at = json_string_is(&key, "type")       ? &block.type
                          : json_string_is(&key, "text")     ? &block.text
                          : json_string_is(&key, "thinking") ? &block.thinking
                                                             : NULL;
        TRY(json_string_is(&key, "document") ? read_document(r, &block.data)
                                             : ask_text_take(r->in, at, r->err));
    }
}

static enum status read_content(struct ask_reader *r, struct message *message)
{
    struct span text;
    message->has_content = json_peek(r->in) != JSON_NULL;
    if (json_peek(r->in) != JSON_ARRAY) {
        TRY(ask_text_take(r->in, &text, r->err));
        if (message->has_content && !ask_text_is_string(text)) {
            return json_fail(r->in, r->err, ST_INVALID, "expected a text or a list of blocks");
        }
        if (message->has_content) {
            add_part(message, text);
        }
        return ST_OK;
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        TRY(read_block(r, message));
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool says_something(struct span raw)
{
    return raw.len > 0 && !span_is(raw, "null") && !span_is(raw, "[]");
}

static enum status add_message(struct ask_reader *r, struct message *message, struct buf *items)
{
    if (!ask_text_is_string(message->role)) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a message with a role");
    }
    if (!message->has_content && ask_text_is_string(message->plan)) {
        add_part(message, message->plan);
    }
    buf_add_str(items, items->len ? "," : "");
    ask_text_add(items, "{\"role\":", message->role);
    if (message->has_content || message->parts.len > 0) {
        buf_add_str(items, ",\"content\":[");
        buf_add(items, message->parts.ptr, message->parts.len);
        buf_add_str(items, "]");
    } else if (!span_is(message->role, "\"user\"")) {
        buf_add_str(items, ",\"content\":\"\"");
    }
    ask_text_add(items, ",\"reasoning_content\":", message->thought);
    if (says_something(message->calls)) {
        ask_text_add(items, ",\"tool_calls\":", message->calls);
    }
    if (says_something(message->id)) {
        ask_text_add(items, ",\"tool_call_id\":", message->id);
    }
    buf_add_str(items, "}");
    return buf_failed(&message->parts) ? arena_fail(r->arena, "the request", r->err) : ST_OK;
}

static enum status read_members(struct ask_reader *r, struct message *message, struct buf *items)
{
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return add_message(r, message, items);
        }
        struct span *at = json_string_is(&key, "role")           ? &message->role
                          : json_string_is(&key, "tool_plan")    ? &message->plan
                          : json_string_is(&key, "tool_calls")   ? &message->calls
                          : json_string_is(&key, "tool_call_id") ? &message->id
                                                                 : NULL;
        TRY(json_string_is(&key, "content") ? read_content(r, message)
                                            : ask_text_take(r->in, at, r->err));
    }
}

static enum status read_message(struct ask_reader *r, struct buf *items)
{
    struct message message = {.has_content = false};
    buf_init(&message.parts, ASK_MESSAGES_BYTES_MAX);
    enum status status = read_members(r, &message, items);
    buf_fini(&message.parts);
    return status;
}

enum status ask_cohere_messages(struct ask_reader *r)
{
    return ask_read_messages(r, read_message);
}

/* ---- other members --------------------------------------------------------------------------- */

enum status ask_cohere_choice(struct ask_reader *r)
{
    struct json_string word;
    TRY(json_read_string(r->in, &word, r->err));
    r->ask->needs_call = json_string_is(&word, "REQUIRED");
    r->ask->drops_tools = json_string_is(&word, "NONE");
    return r->ask->needs_call || r->ask->drops_tools
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected \"REQUIRED\" or \"NONE\"");
}
