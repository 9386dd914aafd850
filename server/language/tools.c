/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/language/tools.h"

#include <string.h>

#include "base/buf.h"
#include "protocol/json.h"
#include "server/language/ask_text.h"
#include "server/language/tools_priv.h"
#include "server/language/words.h"

/* A special token of DeepSeek. */
#define BAR(name) "<\uff5c" name "\uff5c>"

static const struct tools_family families[] = {
#define TOOLS(name, sign, begin, open, separator, close, form, quote, call)                        \
    {#name, sign, begin, open, separator, close, TOOLS_##form, quote, call},
#include "server/language/tools.def"
};

#define FAMILIES (sizeof(families) / sizeof(families[0]))

/* ---- families -------------------------------------------------------------------------------- */

static bool has_sign(struct span source, const char *sign)
{
    return memmem(source.ptr, source.len, sign, strlen(sign)) != NULL;
}

const struct tools_family *tools_family_find(struct span source)
{
    size_t i = 0;
    while (!has_sign(source, families[i].sign)) {
        i++;
    }
    return &families[i]; /* the last row has no sign, which stands in each */
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
#define TOOLS(name, sign, begin, open, separator, close, form, quote, call) #name " "
#include "server/language/tools.def"
        ;
    return names;
}

void tools_rules_init(struct tools_rules *rules, const struct tools_family *family,
                      const struct words *words)
{
    const char *const marks[] = {family->begin, family->open,  family->separator,
                                 family->close, family->quote, "[CALL_ID]"};
    uint32_t separator;
    *rules = (struct tools_rules){.family = family, .begin = UINT32_MAX};
    rules->has_form = *family->call && (!*family->separator ||
                                        words_find(words, span_str(family->separator), &separator));
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

const struct value *tools_member(const struct value *map, const char *name)
{
    return map ? value_map_get(map, span_str(name)) : NULL;
}

static bool is_string(const struct value *value)
{
    return value && value->kind == VALUE_STRING;
}

/* A tool has its name in its "function", and one beside that does not count; some clients send a
 * tool without the inner object. NULL: it has none. */
static const struct value *name_of(const struct value *tool)
{
    const struct value *inner = tools_member(tools_member(tool, "function"), "name");
    const struct value *own = tools_member(tool, "name");
    return is_string(inner) ? inner : is_string(own) ? own : NULL;
}

const struct value *tools_named(const struct value *tools, struct span name)
{
    for (size_t i = 0; tools->kind == VALUE_LIST && i < tools->list->count; i++) {
        const struct value *known = name_of(&tools->list->items[i]);
        if (known && span_equal(known->string, name)) {
            return &tools->list->items[i];
        }
    }
    return NULL;
}

struct span tools_only_name(const struct value *tools)
{
    bool is_one = tools->kind == VALUE_LIST && tools->list->count == 1;
    const struct value *name = is_one ? name_of(&tools->list->items[0]) : NULL;
    return name ? name->string : span_str("");
}

enum status tools_parse(struct span tools, struct arena *arena, struct value *out,
                        struct error *err)
{
    const struct value_limits limits = VALUE_LIMITS_DEFAULT;
    return value_parse(tools, &limits, arena, out, err) == ST_OK ? ST_OK
                                                                 : error_prefix(err, "tools: ");
}

static bool is_one_of(const struct value *name, const struct span *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (name && span_equal(name->string, names[i])) {
            return true;
        }
    }
    return false;
}

/* Passes over an element of an array that value_parse() has read. */
static enum status take_element(struct json *in, struct span *out, struct error *err)
{
    enum json_type type = json_peek(in); /* moves to the value */
    const uint8_t *begin = in->at;
    if (type == JSON_OBJECT || type == JSON_ARRAY) {
        return json_skip_loosely(in, out, err);
    }
    TRY(json_skip(in, err));
    *out = span_of(begin, (size_t)(in->at - begin));
    return ST_OK;
}

/* |known|: what |tools| is; |kept| has room for all of it. */
static enum status keep(struct span tools, const struct value *known, const struct span *names,
                        uint32_t count, struct buf *kept, struct error *err)
{
    struct json in;
    json_init(&in, tools);
    TRY(json_array(&in, err));
    buf_add_char(kept, '[');
    for (size_t i = 0;; i++) {
        struct span text;
        TRY(json_element(&in, err));
        if (in.is_closed) {
            break;
        }
        TRY(take_element(&in, &text, err));
        if (i < known->list->count && is_one_of(name_of(&known->list->items[i]), names, count)) {
            buf_add_str(kept, kept->len > 1 ? "," : "");
            buf_add(kept, text.ptr, text.len);
        }
    }
    buf_add_char(kept, ']');
    return ST_OK;
}

enum status tools_keep(struct span tools, const struct span *names, uint32_t count,
                       struct arena *arena, struct span *out, struct error *err)
{
    struct arena own;
    struct buf kept;
    struct value known;
    arena_init(&own, TOOLS_BYTES_MAX);
    buf_init(&kept, tools.len + 2);
    enum status status = tools_parse(tools, &own, &known, err);
    if (status == ST_OK && known.kind != VALUE_LIST) {
        status = error_set(err, ST_INVALID, "tools: expected a list");
    }
    if (status == ST_OK) {
        status = keep(tools, &known, names, count, &kept, err);
    }
    if (status == ST_OK) {
        status = ask_text_keep(arena, &kept, out, err);
    }
    buf_fini(&kept);
    arena_fini(&own);
    return status;
}
