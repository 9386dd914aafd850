/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/tools.h"

#include <string.h>

#include "protocol/json.h"
#include "server/language/tools_priv.h"
#include "server/language/words.h"

/* A special token of DeepSeek. */
#define BAR(name) "<\uff5c" name "\uff5c>"

static const struct tools_family families[] = {
#define TOOLS(name, sign, begin, open, separator, close, form, quote)                              \
    {#name, sign, begin, open, separator, close, TOOLS_##form, quote},
#include "server/language/tools.def"
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

static bool is_blank(uint8_t c)
{
    return memchr(TOOLS_BLANKS, c, strlen(TOOLS_BLANKS)) != NULL;
}

/* ---- families -------------------------------------------------------------------------------- */

const uint8_t *tools_mark(struct span text, const char *mark)
{
    size_t len = strlen(mark);
    return len > 0 && text.len >= len ? memmem(text.ptr, text.len, mark, len) : NULL;
}

const struct tools_family *tools_family_find(struct span source)
{
    size_t i = 0;
    while (*families[i].sign && !tools_mark(source, families[i].sign)) {
        i++;
    }
    return &families[i]; /* the last row has no sign */
}

const struct tools_family *tools_family_named(const char *name)
{
    for (size_t i = 0; i < FAMILIES; i++) {
        if (strcmp(families[i].name, name) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

const char *tools_family_names(void)
{
    static const char names[] = ""
#define TOOLS(name, sign, begin, open, separator, close, form, quote) #name " "
#include "server/language/tools.def"
        ;
    return names;
}

void tools_rules_init(struct tools_rules *rules, const struct tools_family *family,
                      const struct words *words)
{
    const char *const marks[] = {family->begin, family->open,  family->separator,
                                 family->close, family->quote, "[CALL_ID]"};
    *rules = (struct tools_rules){.family = family, .begin = UINT32_MAX};
    if (*family->begin && !words_find(words, span_str(family->begin), &rules->begin)) {
        rules->begin = UINT32_MAX;
    }
    for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
        uint32_t id;
        if (*marks[i] && words_find(words, span_str(marks[i]), &id) &&
            words_is_special(words, id)) {
            rules->ids[rules->count++] = id;
        }
    }
}

bool tools_rules_have(const struct tools_rules *rules, uint32_t id)
{
    for (uint32_t i = 0; i < rules->count; i++) {
        if (rules->ids[i] == id) {
            return true;
        }
    }
    return false;
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

static bool is_one_of(const struct json_string *name, const struct span *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (name->raw.ptr && json_string_is_text(name, names[i])) {
            return true;
        }
    }
    return false;
}

enum status tools_keep(struct span tools, const struct span *names, uint32_t count,
                       struct arena *arena, struct span *out, struct error *err)
{
    struct json in;
    struct json_string name;
    char *kept = arena_alloc(arena, tools.len + 2);
    size_t len = 0;
    if (!kept) {
        return arena_fail(arena, "the request", err);
    }
    json_init(&in, tools);
    TRY(json_array(&in, err));
    kept[len++] = '[';
    while (true) {
        TRY(json_element(&in, err));
        if (in.is_closed) {
            break;
        }
        json_peek(&in); /* moves to the value */
        const uint8_t *begin = in.at;
        struct json ahead = in;
        bool is_kept = read_name(&ahead, false, &name) && is_one_of(&name, names, count);
        TRY(json_skip(&in, err));
        if (is_kept) {
            size_t bytes = (size_t)(in.at - begin);
            kept[len] = ',';
            len += len > 1;
            memcpy(kept + len, begin, bytes);
            len += bytes;
        }
    }
    kept[len++] = ']';
    *out = span_of(kept, len);
    return ST_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

bool tools_add(struct tools_reading *reading, struct span name, struct span arguments)
{
    struct tools_calls *out = reading->out;
    struct span known = find_tool(reading->tools, &(struct wanted){.meant = name});
    if (name.len == 0 || known.len == 0 || out->count == TOOLS_CALLS_MAX) {
        return false;
    }
    out->calls[out->count++] = (struct tools_call){known, arguments};
    return true;
}

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

bool tools_read_json(struct tools_reading *reading, struct span text)
{
    return read_calls(reading->tools, text, reading->out);
}

/* The end of the block that begins at |text|, and where reading goes on. Without its mark it ends
 * before the next one: a stop token may stand for the mark. */
static struct span take_block(const struct tools_family *family, struct span *text)
{
    const uint8_t *end = text->ptr + text->len, *close = tools_mark(*text, family->close);
    const uint8_t *stop = close ? close : tools_mark(*text, family->open);
    struct span block = span_of(text->ptr, (size_t)((stop ? stop : end) - text->ptr));
    const uint8_t *rest = close ? close + strlen(family->close) : block.ptr + block.len;
    *text = span_of(rest, (size_t)(end - rest));
    return block;
}

/* All calls between marks; a block that is no call ends the search, and none counts. */
static bool read_blocks(struct tools_reading *reading, struct span text)
{
    const struct tools_family *family = reading->family;
    const uint8_t *end = text.ptr + text.len, *open = tools_mark(text, family->open);
    while (open) {
        open += strlen(family->open);
        struct span rest = span_of(open, (size_t)(end - open));
        if (!tools_read_block(reading, take_block(family, &rest))) {
            return false;
        }
        open = tools_mark(rest, family->open);
    }
    return reading->out->count > 0;
}

/* Without marks all of the answer has to be calls. */
static bool read_marked(struct tools_reading *reading, struct span text)
{
    const struct tools_family *family = reading->family;
    const uint8_t *begin = tools_mark(text, family->begin);
    if (begin) {
        reading->out->text_bytes = (size_t)(begin - text.ptr);
        return read_blocks(reading, span_of(begin, text.len - reading->out->text_bytes));
    }
    text = span_trim(text, TOOLS_BLANKS);
    return family->form == TOOLS_PYTHON && text.len > 0 && text.ptr[0] == '[' &&
           tools_read_block(reading, text);
}

void tools_find(const struct tools_family *family, struct span tools, struct span text,
                struct arena *arena, struct tools_calls *out)
{
    struct tools_reading reading = {family, tools, arena, out};
    struct span whole = span_trim(text, TOOLS_BLANKS);
    *out = (struct tools_calls){.text_bytes = text.len};
    if (tools.len == 0) {
        return;
    }
    bool is_read = tools_read_json(&reading, whole); /* then marks are in its texts */
    if (is_read) {
        out->text_bytes = 0;
    } else {
        out->count = 0;
        out->text_bytes = 0;
        is_read = read_marked(&reading, text);
    }
    if (!is_read) {
        out->count = 0;
        out->text_bytes = text.len;
    } else if (span_trim(span_of(text.ptr, out->text_bytes), TOOLS_BLANKS).len == 0) {
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

size_t tools_plain_bytes(const struct tools_family *family, struct span text, size_t known)
{
    size_t at = 0, mark_len = strlen(family->begin);
    while (known == 0 && at < text.len && is_blank(text.ptr[at])) {
        at++;
    }
    if (known == 0 && (at == text.len || text.ptr[at] == '{' || text.ptr[at] == '[')) {
        return 0;
    }
    size_t blanks = known == 0 ? at : text.len + 1; /* before a mark they belong to no text */
    for (at = known; at < text.len && mark_len > 0; at++) {
        size_t left = text.len - at, len = left < mark_len ? left : mark_len;
        if (memcmp(text.ptr + at, family->begin, len) == 0) {
            return at == blanks ? 0 : at;
        }
    }
    return text.len;
}
