/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/thoughts.h"

#include <string.h>

#include "server/language/ask.h"

static const struct value *get(const struct value *map, const char *name)
{
    return value_map_get(map, span_str(name));
}

/* ---- messages -------------------------------------------------------------------------------- */

/* The text of a part of a thought, or nothing. */
static struct span part_text(const struct value *part)
{
    const struct value *text = get(part, "text");
    return text && text->kind == VALUE_STRING ? text->string : span_str("");
}

/* The texts of |parts|, one behind the other. NULL in |out->ptr|: no memory. */
static struct span join(const struct value_list *parts, struct arena *arena)
{
    size_t bytes = 0, at = 0;
    for (size_t i = 0; i < parts->count; i++) {
        bytes += part_text(&parts->items[i]).len;
    }
    uint8_t *all = arena_alloc(arena, bytes + 1);
    for (size_t i = 0; all && i < parts->count; i++) {
        struct span text = part_text(&parts->items[i]);
        memcpy(all + at, text.ptr, text.len);
        at += text.len;
    }
    return span_of(all, bytes);
}

/* The thought that a client has sent; NULL: none. */
static const struct value *find_thought(const struct value *message)
{
    static const char *const names[] = {"reasoning_content", "reasoning"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct value *thought = get(message, names[i]);
        if (thought && (thought->kind == VALUE_STRING || thought->kind == VALUE_LIST)) {
            return thought;
        }
    }
    return NULL;
}

/* gpt-oss' template has either a content or a thought beside calls. */
static bool has_content_and_calls(const struct value *message)
{
    const struct value *content = get(message, "content"), *calls = get(message, "tool_calls");
    bool is_empty = !content || content->kind == VALUE_NONE ||
                    (content->kind == VALUE_STRING && content->string.len == 0);
    return !is_empty && calls && calls->kind == VALUE_LIST && calls->list->count > 0;
}

bool thoughts_settle(struct value *message, struct arena *arena)
{
    const struct value *found = find_thought(message);
    if (!found) {
        return true;
    }
    struct value thought = *found;
    if (thought.kind == VALUE_LIST) {
        thought = value_string(join(thought.list, arena));
        if (!thought.string.ptr) {
            return false;
        }
    }
    return value_map_set(arena, message, "reasoning_content", thought) &&
           value_map_set(arena, message, "reasoning", thought) &&
           (get(message, "thinking") || has_content_and_calls(message) ||
            value_map_set(arena, message, "thinking", thought));
}

/* ---- requests -------------------------------------------------------------------------------- */

static bool set_unless_given(struct arena *arena, struct value *context, const char *name,
                             struct value value)
{
    return get(context, name) || value_map_set(arena, context, name, value);
}

bool thoughts_ask(const struct ask *ask, struct arena *arena, struct value *context)
{
    struct value wanted = value_bool(ask->thinking == ASK_THINKING_ON);
    if (ask->effort.len > 0 && ask->thinking == ASK_THINKING_ON &&
        !set_unless_given(arena, context, "reasoning_effort", value_string(ask->effort))) {
        return false;
    }
    return ask->thinking == ASK_THINKING_UNSAID ||
           (set_unless_given(arena, context, "enable_thinking", wanted) &&
            set_unless_given(arena, context, "thinking", wanted));
}
