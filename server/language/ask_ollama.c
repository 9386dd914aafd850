/* SPDX-License-Identifier: MIT */
/* Members of Ollama's /api/chat and /api/generate that OpenAI's API does not have, or has in
 * another form. Source: the page "API" of Ollama's documentation. */
#include "config.h"

#include <stddef.h>

#include "base/buf.h"
#include "server/language/ask_priv.h"
#include "server/language/ask_reasoning.h"
#include "server/language/ask_text.h"
#include "server/language/ask_values.h"

#define TOKENS_MAX (1 << 24) /* of an answer, as of other requests */

/* ---- messages -------------------------------------------------------------------------------- */

struct message {
    struct span role, content, thinking, calls, name, id, images;
};

/* A member of a message, and what the templates of models call it. */
static const struct {
    const char *name, *before;
    size_t offset;
} message_members[] = {
    {"role", NULL, offsetof(struct message, role)},
    {"content", NULL, offsetof(struct message, content)},
    {"images", NULL, offsetof(struct message, images)},
    {"thinking", ",\"reasoning_content\":", offsetof(struct message, thinking)},
    {"tool_calls", ",\"tool_calls\":", offsetof(struct message, calls)},
    {"tool_name", ",\"name\":", offsetof(struct message, name)},
    {"tool_call_id", ",\"tool_call_id\":", offsetof(struct message, id)},
};

#define MESSAGE_MEMBERS (sizeof(message_members) / sizeof(message_members[0]))

static struct span *member_at(struct message *message, size_t row)
{
    return (struct span *)(void *)((char *)message + message_members[row].offset);
}

/* Libraries write out what nobody has set. */
static bool says_something(struct span raw)
{
    return raw.len > 0 && !span_is(raw, "null") && !span_is(raw, "\"\"") && !span_is(raw, "[]");
}

static enum status add_message(struct ask_reader *r, struct message *message, struct buf *items)
{
    if (!ask_text_is_string(message->role)) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a message with a role");
    }
    if (says_something(message->images)) {
        return json_fail(r->in, r->err, ST_INVALID, "language models take no images here");
    }
    buf_add_str(items, items->len ? "," : "");
    ask_text_add(items, "{\"role\":", message->role);
    ask_text_add(items, ",\"content\":",
                 says_something(message->content) ? message->content : span_str("\"\""));
    for (size_t i = 0; i < MESSAGE_MEMBERS; i++) {
        struct span raw = *member_at(message, i);
        if (message_members[i].before && says_something(raw)) {
            ask_text_add(items, message_members[i].before, raw);
        }
    }
    buf_add_str(items, "}");
    return ST_OK;
}

static enum status read_message(struct ask_reader *r, struct buf *items)
{
    struct message message = {.role = {0}};
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        struct span *at = NULL;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return add_message(r, &message, items);
        }
        for (size_t i = 0; i < MESSAGE_MEMBERS; i++) {
            at = json_string_is(&key, message_members[i].name) ? member_at(&message, i) : at;
        }
        TRY(ask_text_take(r->in, at, r->err));
    }
}

enum status ask_ollama_messages(struct ask_reader *r)
{
    return ask_read_messages(r, read_message);
}

/* ---- a prompt -------------------------------------------------------------------------------- */

/* A text, decoded, and as it stands in the body; empty: nothing is said. */
static enum status read_both(struct ask_reader *r, struct span *text, struct span *raw)
{
    (void)json_peek(r->in); /* passes over white space */
    const uint8_t *begin = r->in->at;
    TRY(ask_read_text(r->in, r->arena, text, r->err));
    *raw = text->len ? span_of(begin, (size_t)(r->in->at - begin)) : span_str("");
    return ST_OK;
}

enum status ask_ollama_prompt(struct ask_reader *r)
{
    struct ask *ask = r->ask;
    struct span text, raw;
    struct buf items;
    TRY(read_both(r, &text, &raw));
    if (text.len == 0) {
        return ST_OK;
    }
    ask->prompts = arena_array(r->arena, 1, sizeof(ask->prompts[0]));
    if (!ask->prompts) {
        return arena_fail(r->arena, "the request", r->err);
    }
    ask->prompts[ask->prompt_count++] = (struct ask_prompt){.text = text};
    buf_init(&items, ASK_MESSAGES_BYTES_MAX);
    ask_text_add(&items, "{\"role\":\"user\",\"content\":", raw);
    buf_add_str(&items, "}");
    enum status status = ask_text_keep_list(r->arena, &items, &ask->messages, r->err);
    buf_fini(&items);
    return status;
}

enum status ask_ollama_system(struct ask_reader *r)
{
    struct span text;
    return read_both(r, &text, &r->ask->instructions);
}

/* ---- other members --------------------------------------------------------------------------- */

enum status ask_ollama_model(struct ask_reader *r)
{
    return ask_read_tagged_model(r->in, r->arena, &r->ask->model, r->err);
}

enum status ask_ollama_think(struct ask_reader *r)
{
    bool is_wanted;
    if (json_peek(r->in) == JSON_STRING) {
        return ask_effort(r->in, r->arena, r->ask, r->err);
    }
    TRY(json_read_bool(r->in, &is_wanted, r->err));
    r->ask->thinking = is_wanted ? ASK_THINKING_ON : ASK_THINKING_OFF;
    return ST_OK;
}

enum status ask_ollama_seed(struct ask_reader *r)
{
    int64_t seed;
    TRY(json_read_i64(r->in, &seed, r->err));
    r->ask->has_seed = seed != -1;
    r->ask->sampler.seed = (uint64_t)seed;
    return ST_OK;
}

enum status ask_ollama_count(struct ask_reader *r)
{
    int64_t count;
    TRY(json_read_i64(r->in, &count, r->err));
    if (count > TOKENS_MAX) {
        return json_fail(r->in, r->err, ST_INVALID, "expected a number up to %d", TOKENS_MAX);
    }
    r->ask->max_tokens = count < 1 ? UINT32_MAX : (uint32_t)count;
    return ST_OK;
}
