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
#define TOOLS(name, sign, begin, open, separator, close, form, quote)                              \
    {#name, sign, begin, open, separator, close, TOOLS_##form, quote},
#include "server/language/tools.def"
};

#define TOOLS_BYTES_MAX ((size_t)64 << 20) /* of those of a request, once they are read */

#define FAMILIES (sizeof(families) / sizeof(families[0]))

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

/* Reads them as the chat template does, so it and the calls know the same. */
static enum status parse_tools(struct span tools, struct arena *arena, struct value *out,
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
    enum status status = parse_tools(tools, &own, &known, err);
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

/* ---- calls ----------------------------------------------------------------------------------- */

/* |name| as a string of JSON. Empty: no memory. */
static struct span print_name(struct arena *arena, struct span name)
{
    struct buf text;
    buf_init(&text, name.len * 6 + 2);
    json_print_string(&text, name);
    const char *copy = buf_failed(&text) ? NULL : arena_strdup(arena, text.ptr, text.len);
    struct span printed = copy ? span_of(copy, text.len) : span_str("");
    buf_fini(&text);
    return printed;
}

bool tools_add(struct tools_reading *reading, struct span name, struct span arguments)
{
    struct tools_calls *out = reading->out;
    if (name.len == 0 || !tools_named(reading->tools, name) || out->count == TOOLS_CALLS_MAX) {
        return false;
    }
    struct span printed = print_name(reading->arena, name);
    out->calls[out->count] = (struct tools_call){printed, arguments};
    out->count += printed.len > 0;
    return printed.len > 0;
}

/* The name as a model writes it. */
static bool is_known(const struct value *tools, const struct json_string *name)
{
    for (size_t i = 0; tools->kind == VALUE_LIST && i < tools->list->count; i++) {
        const struct value *known = name_of(&tools->list->items[i]);
        if (known && json_string_is_text(name, known->string)) {
            return true;
        }
    }
    return false;
}

bool tools_has_words(struct span json)
{
    bool is_quoted = false;
    for (size_t i = 0; i < json.len; i++) {
        if (is_quoted && json.ptr[i] == '\\') {
            i++;
        } else if (json.ptr[i] == '"') {
            is_quoted = !is_quoted;
        } else if (!is_quoted && (json.ptr[i] == 'N' || json.ptr[i] == 'I')) {
            return true;
        }
    }
    return false;
}

/* {"name": ..., "arguments": ...} comes next. False: it is no call of one of the tools. */
static bool read_call(const struct value *tools, struct json *in, struct tools_calls *out)
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
    if (call.name.len == 0 || !is_known(tools, &name) || tools_has_words(call.arguments)) {
        return false;
    }
    out->calls[out->count++] = call;
    return true;
}

/* One call, or an array of calls, at least one, and nothing else. */
static bool read_calls(const struct value *tools, struct span text, struct tools_calls *out)
{
    struct json in;
    struct error ignored;
    uint32_t before = out->count;
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
            return out->count > before && json_end(&in, &ignored) == ST_OK;
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
 * before the next one: a stop token may stand for the mark. |*has_close|: the mark may be there; an
 * absent one is not looked for again. */
static struct span take_block(const struct tools_family *family, struct span *text, bool *has_close)
{
    const uint8_t *end = text->ptr + text->len;
    const uint8_t *close = *has_close ? tools_mark(*text, family->close) : NULL;
    const uint8_t *stop = close ? close : tools_mark(*text, family->open);
    struct span block = span_of(text->ptr, (size_t)((stop ? stop : end) - text->ptr));
    const uint8_t *rest = close ? close + strlen(family->close) : block.ptr + block.len;
    *text = span_of(rest, (size_t)(end - rest));
    *has_close = close != NULL;
    return block;
}

/* All calls between marks; a block that is no call ends the search, and none counts. */
static bool read_blocks(struct tools_reading *reading, struct span text)
{
    const struct tools_family *family = reading->family;
    const uint8_t *end = text.ptr + text.len, *open = tools_mark(text, family->open);
    bool has_close = true;
    while (open) {
        open += strlen(family->open);
        struct span rest = span_of(open, (size_t)(end - open));
        if (!tools_read_block(reading, take_block(family, &rest, &has_close))) {
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

/* Most answers have no call, and then the tools need not be read. */
static bool may_call(const struct tools_family *family, struct span text)
{
    struct span whole = span_trim(text, TOOLS_BLANKS);
    return whole.len > 0 &&
           (whole.ptr[0] == '{' || whole.ptr[0] == '[' || tools_mark(text, family->begin));
}

/* A whole answer of JSON comes first: then marks are in its texts. */
static bool read_answer(struct tools_reading *reading, struct span text)
{
    reading->out->text_bytes = 0;
    if (tools_read_json(reading, span_trim(text, TOOLS_BLANKS))) {
        return true;
    }
    reading->out->count = 0;
    return read_marked(reading, text);
}

void tools_find(const struct tools_family *family, struct span tools, struct span text,
                struct arena *arena, struct tools_calls *out)
{
    struct value known;
    struct error ignored;
    struct tools_reading reading = {family, &known, arena, out};
    *out = (struct tools_calls){.text_bytes = text.len};
    if (tools.len == 0 || !may_call(family, text) ||
        parse_tools(tools, arena, &known, &ignored) != ST_OK) {
        return;
    }
    if (!read_answer(&reading, text)) {
        out->count = 0;
        out->text_bytes = text.len;
    } else if (span_trim(span_of(text.ptr, out->text_bytes), TOOLS_BLANKS).len == 0) {
        out->text_bytes = 0;
    }
}

/* The tool that has to be called, as a string of JSON; empty: there is no such. */
static struct span chosen_name(struct span tools, struct span chosen, struct arena *arena)
{
    struct value known;
    struct error ignored;
    bool is_known = chosen.len > 0 && parse_tools(tools, arena, &known, &ignored) == ST_OK &&
                    tools_named(&known, chosen);
    return is_known ? print_name(arena, chosen) : span_str("");
}

void tools_find_cut(struct span tools, struct span chosen, struct span text, struct arena *arena,
                    struct tools_calls *out)
{
    struct json in;
    struct json_string key;
    struct error ignored;
    struct tools_call call = {chosen_name(tools, chosen, arena), span_str("")};
    json_init(&in, text);
    bool is_read = json_object(&in, &ignored) == ST_OK;
    while (is_read && json_member(&in, &key, &ignored) == ST_OK && !in.is_closed) {
        json_peek(&in); /* moves to the value */
        const uint8_t *begin = in.at, *end = text.ptr + text.len;
        if (json_string_is(&key, "arguments")) {
            /* A model may write a key twice, or more keys than json_skip() counts. */
            call.arguments = span_of(begin, (size_t)(end - begin));
            is_read = json_skip_loosely(&in, &call.arguments, &ignored) == ST_OK;
        } else {
            is_read = json_skip(&in, &ignored) == ST_OK;
            bool is_name = is_read && json_string_is(&key, "name");
            call.name = is_name ? span_of(begin, (size_t)(in.at - begin)) : call.name;
        }
    }
    out->calls[0] = call;
    out->count = call.name.len > 0;
    out->is_cut = !in.is_closed;
    out->text_bytes = out->count > 0 ? 0 : text.len;
}

size_t tools_plain_bytes(const struct tools_family *family, struct span text, size_t known,
                         size_t *blanks)
{
    size_t mark_len = strlen(family->begin);
    while (known == 0 && *blanks < text.len && tools_is_blank(text.ptr[*blanks])) {
        ++*blanks;
    }
    size_t first = *blanks < text.len ? *blanks : text.len;
    if (known == 0 && (first == text.len || text.ptr[first] == '{' || text.ptr[first] == '[')) {
        return 0;
    }
    size_t begin = known == 0 ? first : known; /* before a mark blanks belong to no text */
    for (size_t at = begin; at < text.len && mark_len > 0; at++) {
        size_t left = text.len - at, len = left < mark_len ? left : mark_len;
        if (memcmp(text.ptr + at, family->begin, len) == 0) {
            return at == first && known == 0 ? 0 : at;
        }
    }
    return text.len;
}
