/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/ask_tools.h"

#include "server/language/ask_values.h"
#include "server/language/tools.h"

struct choice {
    struct json *in;
    struct arena *arena;
    struct ask *ask;
    struct json_string type, mode;
    struct span *allowed; /* NULL: no list has come */
    struct error *err;
};

static enum status read_object(struct choice *choice, bool is_inner);

/* The name of an allowed tool. */
static enum status read_allowed_name(struct choice *choice, bool is_inner)
{
    struct ask *ask = choice->ask;
    TRY(json_object(choice->in, choice->err));
    while (true) {
        struct json_string key;
        TRY(json_member(choice->in, &key, choice->err));
        if (choice->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "name")) {
            TRY(ask_read_text(choice->in, choice->arena,
                              &choice->allowed[ask->allowed_tool_count - 1], choice->err));
        } else if (json_string_is(&key, "function") && !is_inner) {
            TRY(read_allowed_name(choice, true));
        } else {
            TRY(json_skip(choice->in, choice->err));
        }
    }
}

static enum status read_allowed(struct choice *choice)
{
    struct ask *ask = choice->ask;
    choice->allowed = arena_array(choice->arena, ASK_ALLOWED_MAX, sizeof(choice->allowed[0]));
    if (!choice->allowed) {
        return arena_fail(choice->arena, "the request", choice->err);
    }
    ask->allowed_tools = choice->allowed;
    TRY(json_array(choice->in, choice->err));
    while (true) {
        TRY(json_element(choice->in, choice->err));
        if (choice->in->is_closed) {
            return ST_OK;
        }
        if (ask->allowed_tool_count == ASK_ALLOWED_MAX) {
            return json_fail(choice->in, choice->err, ST_INVALID, "expected at most %d tools",
                             ASK_ALLOWED_MAX);
        }
        choice->allowed[ask->allowed_tool_count++] = span_str("");
        TRY(read_allowed_name(choice, false));
    }
}

static enum status read_member(struct choice *choice, const struct json_string *key, bool is_inner)
{
    struct json *in = choice->in;
    if (json_string_is(key, "name")) {
        return ask_read_text(in, choice->arena, &choice->ask->chosen_tool, choice->err);
    }
    if (json_string_is(key, "type") && !is_inner) {
        return json_read_string(in, &choice->type, choice->err);
    }
    if (json_string_is(key, "mode")) {
        return json_read_string(in, &choice->mode, choice->err);
    }
    if (json_string_is(key, "tools") && !choice->allowed) {
        return read_allowed(choice);
    }
    bool is_object = json_string_is(key, "function") || json_string_is(key, "allowed_tools");
    return is_object && !is_inner ? read_object(choice, true) : json_skip(in, choice->err);
}

static enum status read_object(struct choice *choice, bool is_inner)
{
    TRY(json_object(choice->in, choice->err));
    while (true) {
        struct json_string key;
        TRY(json_member(choice->in, &key, choice->err));
        if (choice->in->is_closed) {
            return ST_OK;
        }
        TRY(read_member(choice, &key, is_inner));
    }
}

/* A function, or a list of allowed tools. */
static enum status read_chosen(struct choice *choice)
{
    struct ask *ask = choice->ask;
    TRY(read_object(choice, false));
    if (json_string_is(&choice->type, "allowed_tools") && choice->allowed) {
        ask->needs_call = json_string_is(&choice->mode, "required");
        return ask->needs_call || json_string_is(&choice->mode, "auto")
                   ? ST_OK
                   : json_fail(choice->in, choice->err, ST_INVALID,
                               "expected the mode \"auto\" or \"required\"");
    }
    ask->needs_call = true;
    return ask->chosen_tool.len > 0 && json_string_is(&choice->type, "function")
               ? ST_OK
               : json_fail(choice->in, choice->err, ST_INVALID,
                           "expected the type \"function\" and the name of one, or "
                           "\"allowed_tools\" and a list");
}

enum status ask_tool_choice(struct json *in, struct arena *arena, struct ask *ask,
                            struct error *err)
{
    struct choice choice = {.in = in, .arena = arena, .ask = ask, .err = err};
    struct json_string word = {0};
    bool is_object = json_peek(in) == JSON_OBJECT;
    const uint8_t *begin = in->at;
    TRY(is_object ? read_chosen(&choice) : json_read_string(in, &word, err));
    ask->given_choice = span_of(begin, (size_t)(in->at - begin));
    if (is_object) {
        return ST_OK;
    }
    ask->drops_tools = json_string_is(&word, "none");
    ask->needs_call = json_string_is(&word, "required");
    return ask->needs_call || ask->drops_tools || json_string_is(&word, "auto")
               ? ST_OK
               : json_fail(in, err, ST_INVALID,
                           "expected \"none\", \"auto\", \"required\" or a function");
}

enum status ask_tools_keep_allowed(struct arena *arena, struct ask *ask, struct error *err)
{
    return ask->allowed_tools && ask->tools.len > 0
               ? tools_keep(ask->tools, ask->allowed_tools, ask->allowed_tool_count, arena,
                            &ask->tools, err)
               : ST_OK;
}
