/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/chat.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/language/ask.h"
#include "server/language/thinking.h"
#include "server/language/thoughts.h"
#include "server/language/tools.h"
#include "server/process/document.h"
#include "server/process/file.h"
#include "server/text/template/template.h"

/* tokenizer_config.json lists thousands of added tokens. */
#define CONFIG_BYTES_MAX (16 << 20)
#define CONFIG_VALUES_MAX (1 << 20)

static const struct {
    const char *name;
    enum chat_token token;
} token_names[] = {{"bos_token", CHAT_BOS},
                   {"eos_token", CHAT_EOS},
                   {"pad_token", CHAT_PAD},
                   {"unk_token", CHAT_UNK}};

#define TOKEN_NAMES (sizeof(token_names) / sizeof(token_names[0]))

/* ---- files ----------------------------------------------------------------------------------- */

static enum status compile(struct chat *chat, struct span source)
{
    chat->thinking = thinking_family_find(source);
    chat->tools = tools_family_find(source);
    enum status status = template_parse(source, &chat->template, &chat->failure);
    chat->knows_developer = memmem(source.ptr, source.len, "developer", 9) != NULL;
    if (status != ST_OK) {
        chat->template = NULL;
        chat->is_refused = true;
        error_prefix(&chat->failure, "chat template: ");
        chat->failure.code = ST_UNSUPPORTED; /* no client can mend it */
    }
    if (status != ST_OK) {
        return status == ST_EXHAUSTED ? status : ST_OK;
    }
    chat->source = strndup((const char *)source.ptr, source.len);
    return chat->source ? ST_OK : ST_EXHAUSTED;
}

static const struct cJSON *find(const struct cJSON *object, const char *key)
{
    const struct cJSON *member =
        document_type(object) == JSON_OBJECT ? document_first(object) : NULL;
    while (member && !document_is(member, key)) {
        member = document_next(member);
    }
    return member;
}

/* A text, or {"content": TEXT}. */
static enum status take_token(const struct document *document, const struct cJSON *value,
                              char **out, struct error *err)
{
    const struct cJSON *content = find(value, "content");
    const char *text;
    value = content ? content : value;
    if (document_type(value) == JSON_NULL) {
        return ST_OK;
    }
    TRY(document_text(document, value, &text, err));
    *out = strdup(text);
    return *out ? ST_OK : error_no_memory(err, "a chat template");
}

/* A text; or several, and the text called "default" counts. */
static enum status take_template(struct chat *chat, const struct document *document,
                                 const struct cJSON *value, struct error *err)
{
    const char *source;
    if (document_type(value) == JSON_ARRAY) {
        const struct cJSON *item = document_first(value), *chosen = NULL;
        for (; item; item = document_next(item)) {
            const struct cJSON *name = find(item, "name");
            const char *text;
            if (name && document_text(document, name, &text, err) == ST_OK &&
                (strcmp(text, "default") == 0 || !chosen)) {
                chosen = find(item, "template");
            }
        }
        value = chosen;
    }
    if (!value || document_type(value) == JSON_NULL) {
        return ST_OK;
    }
    TRY(document_text(document, value, &source, err));
    return compile(chat, span_str(source)) == ST_OK ? ST_OK
                                                    : error_no_memory(err, "a chat template");
}

static enum status read_config(struct chat *chat, const struct document *document,
                               struct error *err)
{
    TRY(document_need(document, document->root, JSON_OBJECT, err));
    for (size_t i = 0; i < TOKEN_NAMES; i++) {
        const struct cJSON *value = find(document->root, token_names[i].name);
        if (value) {
            TRY(take_token(document, value, &chat->tokens[token_names[i].token], err));
        }
    }
    const struct cJSON *source = find(document->root, "chat_template");
    return source ? take_template(chat, document, source, err) : ST_OK;
}

static enum status open_config(struct chat *chat, const char *path, struct error *err)
{
    const struct document_limits limits = {CONFIG_BYTES_MAX, CONFIG_VALUES_MAX};
    struct document document;
    if (access(path, F_OK) != 0) {
        return ST_OK;
    }
    TRY(document_open(path, &limits, &document, err));
    enum status status = read_config(chat, &document, err);
    document_close(&document);
    return status;
}

static enum status open_jinja(struct chat *chat, const char *path, struct error *err)
{
    struct buf source;
    if (access(path, F_OK) != 0) {
        return ST_OK;
    }
    buf_init(&source, TEMPLATE_SOURCE_MAX);
    enum status status = file_read(path, &source, err);
    if (status == ST_OK && compile(chat, buf_span(&source)) != ST_OK) {
        status = error_no_memory(err, "a chat template");
    }
    buf_fini(&source);
    return status;
}

enum status chat_open(struct chat *chat, const char *config, const char *jinja, struct error *err)
{
    *chat = (struct chat){0};
    error_set(&chat->failure, ST_UNSUPPORTED, CHAT_NO_TEMPLATE);
    TRY(open_config(chat, config, err));
    return chat->template ? ST_OK : open_jinja(chat, jinja, err);
}

void chat_close(struct chat *chat)
{
    template_free(chat->template);
    free(chat->source);
    for (int i = 0; i < CHAT_TOKENS; i++) {
        free(chat->tokens[i]);
    }
    *chat = (struct chat){0};
}

/* ---- prompts --------------------------------------------------------------------------------- */

static struct span key(const char *name)
{
    return span_str(name);
}

/* The text of a part of type text or refusal; NULL: it is of another type. */
static const struct value *text_of(const struct value *part)
{
    const struct value *text = value_map_get(part, key("text"));
    text = text ? text : value_map_get(part, key("refusal"));
    return text && text->kind == VALUE_STRING ? text : NULL;
}

/* The texts of content in parts, one behind the other; other parts are for other models. */
static enum status join_parts(const struct value *parts, struct arena *arena, struct value *out,
                              struct error *err)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < parts->list->count; i++) {
        const struct value *text = text_of(&parts->list->items[i]);
        if (!text) {
            return error_set(err, ST_INVALID, "content[%zu]: expected a part of type text", i);
        }
        bytes += text->string.len;
    }
    uint8_t *all = arena_alloc(arena, bytes + 1);
    if (!all) {
        return arena_fail(arena, "messages", err);
    }
    for (size_t i = 0; i < parts->list->count; i++) {
        struct span text = text_of(&parts->list->items[i])->string;
        memcpy(all + at, text.ptr, text.len);
        at += text.len;
    }
    *out = value_string(span_of(all, bytes));
    return ST_OK;
}

/* What the arguments of a call stand for: an object, as its text or itself; none, null and blanks
 * are an empty one. A text that is no JSON stays a text. False: no memory. */
static bool settle_arguments(const struct value *given, struct arena *arena, struct value *out)
{
    const struct value_limits limits = VALUE_LIMITS_DEFAULT;
    struct error ignored;
    *out = *given;
    if (given->kind == VALUE_STRING && span_trim(given->string, " \t\r\n").len == 0) {
        *out = (struct value){.kind = VALUE_NONE};
    } else if (given->kind == VALUE_STRING) {
        enum status status = value_parse(given->string, &limits, arena, out, &ignored);
        *out = status == ST_OK ? *out : *given;
    }
    return out->kind != VALUE_NONE || value_map_new(arena, out);
}

/* Templates know the arguments of earlier calls as objects; clients send their text. False: no
 * memory. */
static bool settle_calls(struct value *message, struct arena *arena)
{
    const struct value *calls = value_map_get(message, key("tool_calls"));
    for (size_t i = 0; calls && calls->kind == VALUE_LIST && i < calls->list->count; i++) {
        const struct value *given = value_map_get(&calls->list->items[i], key("function"));
        const struct value *arguments = given ? value_map_get(given, key("arguments")) : NULL;
        struct value function, settled;
        if (!arguments) {
            continue;
        }
        function = *given; /* the same map */
        if (!settle_arguments(arguments, arena, &settled) ||
            !value_map_set(arena, &function, "arguments", settled)) {
            return false;
        }
    }
    return true;
}

/* A message is a map with a role; its content becomes one text. */
static enum status settle_message(struct value *message, struct arena *arena, struct error *err)
{
    const struct value *role = value_map_get(message, key("role"));
    const struct value *content = value_map_get(message, key("content"));
    if (message->kind != VALUE_MAP || !role || role->kind != VALUE_STRING) {
        return error_set(err, ST_INVALID, "expected an object with a role");
    }
    if (!content && span_is(role->string, "user")) {
        return error_set(err, ST_INVALID, "content is missing"); /* no template does without */
    }
    if (!settle_calls(message, arena) || !thoughts_settle(message, arena)) {
        return arena_fail(arena, "messages", err);
    }
    if (content && content->kind == VALUE_LIST) {
        struct value text;
        TRY(join_parts(content, arena, &text, err));
        return value_map_set(arena, message, "content", text) ? ST_OK
                                                              : arena_fail(arena, "messages", err);
    }
    if (content && content->kind != VALUE_STRING && content->kind != VALUE_NONE) {
        return error_set(err, ST_INVALID, "content: expected a string or a list, got %s",
                         value_kind_text(content->kind));
    }
    return ST_OK;
}

/* The role "developer" is newer than most templates, which know it as "system". */
static bool settle_role(const struct chat *chat, struct value *message, struct arena *arena)
{
    const struct value *role = value_map_get(message, key("role"));
    return chat->knows_developer || !span_is(role->string, "developer") ||
           value_map_set(arena, message, "role", value_string(span_str("system")));
}

/* The member |name| of the request, if it is there. */
static enum status read_json(struct span json, const char *name, struct arena *arena,
                             struct value *out, struct error *err)
{
    const struct value_limits limits = VALUE_LIMITS_DEFAULT;
    if (json.len && value_parse(json, &limits, arena, out, err) != ST_OK) {
        return error_prefix(err, "%s: ", name);
    }
    return ST_OK;
}

/* The instructions become the first message, and |messages| follow. */
static enum status add_instructions(const struct ask *ask, struct arena *arena,
                                    struct value *messages, struct error *err)
{
    struct value content, message, all;
    TRY(read_json(ask->instructions, "instructions", arena, &content, err));
    bool is_made = value_map_new(arena, &message) &&
                   value_map_set(arena, &message, "role", value_string(span_str("system"))) &&
                   value_map_set(arena, &message, "content", content) &&
                   value_list_new(arena, &all) && value_list_add(arena, &all, message);
    for (size_t i = 0; is_made && i < messages->list->count; i++) {
        is_made = value_list_add(arena, &all, messages->list->items[i]);
    }
    if (!is_made) {
        return arena_fail(arena, "messages", err);
    }
    *messages = all;
    return ST_OK;
}

static enum status read_messages(const struct chat *chat, const struct ask *ask,
                                 struct arena *arena, struct value *out, struct error *err)
{
    TRY(read_json(ask->messages, "messages", arena, out, err));
    if (out->list->count == 0) {
        return error_set(err, ST_INVALID, "messages: expected at least one");
    }
    if (ask->instructions.len) {
        TRY(add_instructions(ask, arena, out, err));
    }
    for (size_t i = 0; i < out->list->count; i++) {
        if (settle_message(&out->list->items[i], arena, err) != ST_OK) {
            return error_prefix(err, "messages[%zu]: ", i);
        }
        if (!settle_role(chat, &out->list->items[i], arena)) {
            return arena_fail(arena, "messages", err);
        }
    }
    return ST_OK;
}

/* What the client gives the template (chat_template_kwargs), and over that what pted knows. */
static enum status make_context(const struct chat *chat, const struct ask *ask, struct arena *arena,
                                struct value *out, struct error *err)
{
    struct value messages, tools = {0};
    TRY(read_messages(chat, ask, arena, &messages, err));
    TRY(read_json(ask->tools, "tools", arena, &tools, err));
    TRY(read_json(ask->template_values, "chat_template_kwargs", arena, out, err));
    bool is_made = (ask->template_values.len || value_map_new(arena, out)) &&
                   value_map_set(arena, out, "messages", messages) &&
                   value_map_set(arena, out, "add_generation_prompt", value_bool(true)) &&
                   thoughts_ask(ask, arena, out);
    if (tools.kind == VALUE_LIST && tools.list->count > 0) {
        is_made = is_made && value_map_set(arena, out, "tools", tools);
    }
    for (size_t i = 0; is_made && i < TOKEN_NAMES; i++) {
        const char *text = chat->tokens[token_names[i].token];
        is_made =
            !text || value_map_set(arena, out, token_names[i].name, value_string(span_str(text)));
    }
    return is_made ? ST_OK : arena_fail(arena, "messages", err);
}

/* The last message is the beginning of the answer: the template does not get it. */
static struct span take_beginning(const struct ask *ask, const struct value *context)
{
    const struct value *messages = value_map_get(context, key("messages"));
    const struct value *content = NULL;
    if (ask->continues && messages->list->count > 0) {
        content = value_map_get(&messages->list->items[--messages->list->count], key("content"));
    }
    return content && content->kind == VALUE_STRING ? content->string : span_str("");
}

/* Clients send null as the content beside calls of tools; here it becomes an empty text. False:
 * there is none. */
static bool empty_nulls(const struct value *context, struct arena *arena)
{
    const struct value *messages = value_map_get(context, key("messages"));
    bool has_any = false;
    for (size_t i = 0; i < messages->list->count; i++) {
        struct value *message = &messages->list->items[i];
        const struct value *content = value_map_get(message, key("content"));
        if (content && content->kind == VALUE_NONE) {
            has_any = value_map_set(arena, message, "content", value_string(span_str("")));
        }
    }
    return has_any;
}

enum status chat_render(const struct chat *chat, const struct ask *ask, struct arena *arena,
                        struct buf *out, struct error *err)
{
    const struct template_limits limits = TEMPLATE_LIMITS_DEFAULT;
    struct value context;
    if (!chat->template) {
        *err = chat->failure;
        return err->code;
    }
    TRY(make_context(chat, ask, arena, &context, err));
    struct span beginning = take_beginning(ask, &context);
    size_t before = out->len;
    enum status status = template_render(chat->template, &context, &limits, arena, out, err);
    if (status == ST_INVALID && empty_nulls(&context, arena)) { /* some add null to a text */
        struct error ignored;
        out->len = before;
        status = template_render(chat->template, &context, &limits, arena, out, &ignored);
    }
    buf_add(out, beginning.ptr, beginning.len);
    return status == ST_OK ? ST_OK : error_prefix(err, "chat template: ");
}
