/* SPDX-License-Identifier: MIT */
/* Answers that grow: where calls begin and end. The forms of calls have files of their own. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/language/tools_priv.h"

#define READER_MAGIC 0x746f6f6c

/* ---- the text -------------------------------------------------------------------------------- */

struct span tools_between(const struct tools_reader *reader, size_t begin, size_t end)
{
    return span_of(reader->text.ptr + begin, end - begin);
}

struct span tools_left(const struct tools_reader *reader)
{
    return tools_between(reader, reader->at, reader->text.len);
}

void tools_move(struct tools_reader *reader, size_t at)
{
    reader->at = reader->sought = at;
}

bool tools_peek(struct tools_reader *reader, uint8_t *out)
{
    while (reader->at < reader->text.len && tools_is_blank(reader->text.ptr[reader->at])) {
        reader->at++;
    }
    tools_move(reader, reader->at);
    bool is_there = reader->at < reader->text.len;
    *out = is_there ? reader->text.ptr[reader->at] : 0;
    return is_there;
}

/* Is |mark|, which is not empty, at |at|? */
static enum tools_found look_at(const struct tools_reader *reader, size_t at, const char *mark)
{
    size_t left = reader->text.len - at, mark_len = strlen(mark);
    size_t len = left < mark_len ? left : mark_len;
    if (memcmp(reader->text.ptr + at, mark, len) != 0) {
        return TOOLS_ABSENT;
    }
    return len == mark_len ? TOOLS_FOUND : TOOLS_PARTLY;
}

enum tools_found tools_next(const struct tools_reader *reader, const char *mark)
{
    return *mark ? look_at(reader, reader->at, mark) : TOOLS_ABSENT;
}

enum tools_found tools_take(struct tools_reader *reader, const char *mark)
{
    enum tools_found found = tools_next(reader, mark);
    if (found == TOOLS_FOUND) {
        tools_move(reader, reader->at + strlen(mark));
    }
    return found;
}

/* Looks for the marks at |at|. */
static enum tools_found seek_at(const struct tools_reader *reader, size_t at,
                                const char *const *marks, size_t count, size_t *out_which)
{
    enum tools_found best = TOOLS_ABSENT;
    for (size_t i = 0; i < count && best != TOOLS_FOUND; i++) {
        bool may_be = *marks[i] && reader->text.ptr[at] == (uint8_t)*marks[i];
        enum tools_found found = may_be ? look_at(reader, at, marks[i]) : TOOLS_ABSENT;
        *out_which = i;
        best = found > best ? found : best;
    }
    return best;
}

enum tools_found tools_seek(struct tools_reader *reader, const char *const *marks, size_t count,
                            size_t *out_which, size_t *out_at)
{
    while (reader->sought < reader->text.len) {
        enum tools_found found = seek_at(reader, reader->sought, marks, count, out_which);
        *out_at = reader->sought;
        if (found == TOOLS_FOUND || (found == TOOLS_PARTLY && !reader->is_over)) {
            return found;
        }
        reader->sought++;
    }
    return reader->is_over ? TOOLS_ABSENT : TOOLS_PARTLY;
}

enum tools_step tools_wait(const struct tools_reader *reader)
{
    return reader->is_over ? TOOLS_IS_CUT : TOOLS_WAITS;
}

enum tools_step tools_go(struct tools_reader *reader, tools_step_f *next)
{
    reader->next = next;
    return TOOLS_GOES_ON;
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct span tools_keep_text(struct tools_reader *reader, struct span text)
{
    const char *copy = arena_strdup(&reader->arena, text.ptr, text.len);
    return copy ? span_of(copy, text.len) : span_str("");
}

static const struct value *known_tools(struct tools_reader *reader)
{
    struct error ignored;
    if (!reader->has_known &&
        tools_parse(reader->wanted.tools, &reader->arena, &reader->known, &ignored) != ST_OK) {
        reader->known = (struct value){.kind = VALUE_NONE};
    }
    reader->has_known = true;
    return &reader->known;
}

const struct value *tools_reader_tool(struct tools_reader *reader, struct span name)
{
    return name.len > 0 ? tools_named(known_tools(reader), name) : NULL;
}

/* |name| as a string of JSON. Empty: no memory. */
static struct span print_name(struct tools_reader *reader, struct span name)
{
    struct buf text;
    buf_init(&text, name.len * 6 + 2);
    json_print_string(&text, name);
    struct span printed =
        buf_failed(&text) ? span_str("") : tools_keep_text(reader, buf_span(&text));
    buf_fini(&text);
    return printed;
}

enum tools_step tools_begin_call(struct tools_reader *reader, struct span name,
                                 struct tools_place place)
{
    struct tools_calls *calls = &reader->calls;
    if (!tools_reader_tool(reader, name)) {
        return TOOLS_REFUSES;
    }
    if (calls->count == reader->wanted.call_max) {
        return TOOLS_ENDS;
    }
    struct span printed = print_name(reader, name);
    if (printed.len == 0) {
        return TOOLS_REFUSES;
    }
    calls->calls[calls->count] = (struct tools_call){.name = printed};
    reader->places[calls->count++] = place;
    calls->is_cut = true;
    return TOOLS_GOES_ON;
}

void tools_set_arguments(struct tools_reader *reader, size_t len, bool are_whole)
{
    must(reader->calls.count > 0);
    reader->places[reader->calls.count - 1].len = len;
    reader->calls.is_cut = !are_whole;
}

enum tools_step tools_add_empty_call(struct tools_reader *reader, struct span name)
{
    struct tools_place place = {.begin = reader->made.len, .is_made = true};
    enum tools_step step = tools_begin_call(reader, name, place);
    if (step != TOOLS_GOES_ON) {
        return step;
    }
    buf_add_str(&reader->made, "{}");
    if (buf_failed(&reader->made)) {
        return TOOLS_REFUSES;
    }
    tools_set_arguments(reader, 2, true);
    return TOOLS_GOES_ON;
}

/* ---- where calls stand ----------------------------------------------------------------------- */

/* Behind the mark that opens a call. */
static enum tools_step read_block(struct tools_reader *reader)
{
    static tools_step_f *const forms[] = {
        [TOOLS_JSON] = NULL,
        [TOOLS_NAMED] = tools_read_named,
        [TOOLS_TAGS] = tools_read_tags,
        [TOOLS_KEYS] = tools_read_tags,
        [TOOLS_INVOKE] = tools_read_tags,
        [TOOLS_MARKED] = tools_read_tags,
        [TOOLS_PYTHON] = tools_read_literals,
        [TOOLS_BRACES] = tools_read_literals,
    };
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    tools_step_f *form = c == '{'   ? tools_read_object /* most families may write it, too */
                         : c == '[' ? tools_read_list
                                    : forms[reader->family->form];
    return form ? tools_go(reader, form) : TOOLS_REFUSES;
}

static enum tools_step read_open(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    enum tools_found found = tools_take(reader, reader->family->open);
    return found == TOOLS_FOUND    ? tools_go(reader, read_block)
           : found == TOOLS_PARTLY ? tools_wait(reader)
                                   : TOOLS_REFUSES;
}

enum tools_step tools_behind_call(struct tools_reader *reader)
{
    size_t which, at;
    if (reader->is_whole || reader->calls.count == reader->wanted.call_max) {
        return TOOLS_ENDS;
    }
    enum tools_found found = tools_seek(reader, &reader->family->open, 1, &which, &at);
    if (found != TOOLS_FOUND) {
        return found == TOOLS_PARTLY ? TOOLS_WAITS : TOOLS_ENDS;
    }
    tools_move(reader, at);
    return tools_go(reader, read_open);
}

/* Blanks before a call at the very beginning are no text; others are told, if text is before
 * them. */
static void tell_text(struct tools_reader *reader, size_t end)
{
    reader->calls.text_bytes = end == reader->first ? 0 : end;
}

/* In the answer's text. */
static enum tools_step read_text(struct tools_reader *reader)
{
    const struct tools_family *family = reader->family;
    size_t which, at;
    enum tools_found found = tools_seek(reader, &family->begin, 1, &which, &at);
    tell_text(reader, reader->sought);
    if (found != TOOLS_FOUND) {
        return found == TOOLS_PARTLY ? TOOLS_WAITS : TOOLS_REFUSES;
    }
    bool is_open = strcmp(family->begin, family->open) == 0;
    tools_move(reader, is_open ? at : at + strlen(family->begin));
    return tools_go(reader, read_open);
}

/* A whole answer of JSON comes first: then marks are in its texts. */
static enum tools_step read_first(struct tools_reader *reader)
{
    uint8_t c;
    if (!tools_peek(reader, &c)) {
        return tools_wait(reader);
    }
    reader->first = reader->at;
    reader->is_whole = c == '{' || c == '[';
    return tools_go(reader, c == '{' ? tools_read_object : c == '[' ? tools_read_list : read_text);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The tool that has to be called; empty: none, or one of several. */
static struct span needed_tool(struct tools_reader *reader)
{
    const struct tools_wanted *wanted = &reader->wanted;
    return wanted->chosen.len > 0 || !wanted->needs_call ? wanted->chosen
                                                         : tools_only_name(known_tools(reader));
}

/* Of a call that has not begun the name may be known. */
static void begin_cut_call(struct tools_reader *reader)
{
    const struct tools_object *object = &reader->object;
    const struct tools_pieces *pieces = &reader->pieces;
    struct span name = object->is_open && !object->has_begun ? object->name
                       : !pieces->has_begun                  ? pieces->name
                                                             : span_str("");
    if (name.len == 0 && reader->calls.count == 0) {
        name = needed_tool(reader);
    }
    if (name.len > 0) {
        (void)tools_begin_call(reader, name, (struct tools_place){.is_made = true});
    }
}

/* What has begun counts; without that, there may be calls elsewhere in the text. */
static void end_reading(struct tools_reader *reader)
{
    bool goes_back = reader->calls.count == 0 && reader->is_whole;
    reader->is_text = reader->calls.count == 0 && !reader->is_whole;
    reader->is_whole = false;
    reader->object = (struct tools_object){0};
    reader->pieces = (struct tools_pieces){0};
    reader->closed = 0;
    reader->next = goes_back ? read_text : NULL;
    if (goes_back) {
        tools_move(reader, reader->first);
    }
}

static void read_on(struct tools_reader *reader)
{
    enum tools_step step = TOOLS_GOES_ON;
    while (reader->next && step != TOOLS_WAITS) {
        step = reader->next(reader);
        if (step == TOOLS_IS_CUT) {
            begin_cut_call(reader);
        }
        if (step > TOOLS_WAITS) {
            end_reading(reader);
        }
    }
}

static void set_spans(struct tools_reader *reader)
{
    struct tools_calls *calls = &reader->calls;
    for (uint32_t i = 0; i < calls->count; i++) {
        const struct tools_place *place = &reader->places[i];
        const uint8_t *from = place->is_made ? reader->made.ptr : reader->text.ptr;
        calls->calls[i].arguments =
            place->len > 0 ? span_of(from + place->begin, place->len) : span_str("");
    }
}

const struct tools_calls *tools_reader_read(struct tools_reader *reader, struct span text,
                                            bool is_over)
{
    OBJ_CHECK(reader, READER_MAGIC);
    must(text.len >= reader->text.len);
    reader->text = text;
    reader->is_over = is_over;
    read_on(reader);
    if (is_over && reader->calls.count == 0 && needed_tool(reader).len > 0) {
        begin_cut_call(reader);
        reader->is_text = reader->calls.count == 0;
        reader->calls.text_bytes = 0;
    }
    if (reader->is_text) {
        reader->calls.text_bytes = text.len;
    }
    set_spans(reader);
    return &reader->calls;
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status tools_reader_new(const struct tools_family *family, const struct tools_wanted *wanted,
                             struct tools_reader **out, struct error *err)
{
    struct tools_reader *reader = calloc(1, sizeof(*reader));
    if (!reader) {
        return error_no_memory(err, "the calls of an answer");
    }
    must(wanted->call_max > 0 && wanted->call_max <= TOOLS_CALLS_MAX);
    reader->magic = READER_MAGIC;
    reader->family = family;
    reader->wanted = *wanted;
    arena_init(&reader->arena, TOOLS_BYTES_MAX);
    buf_init(&reader->made, TOOLS_MADE_BYTES_MAX);
    tools_reader_restart(reader);
    *out = reader;
    return ST_OK;
}

void tools_reader_restart(struct tools_reader *reader)
{
    OBJ_CHECK(reader, READER_MAGIC);
    arena_reset(&reader->arena);
    reader->has_known = false;
    reader->text = span_str("");
    reader->is_over = reader->is_text = reader->is_whole = false;
    reader->next = read_first;
    reader->first = 0;
    tools_move(reader, 0);
    buf_reset(&reader->made);
    reader->calls.count = 0;
    reader->calls.is_cut = false;
    reader->calls.text_bytes = 0;
    reader->object = (struct tools_object){0};
    reader->pieces = (struct tools_pieces){0};
    reader->keys = NULL; /* they were in the arena */
    reader->key_capacity = 0;
    reader->closed = 0;
}

void tools_reader_free(struct tools_reader *reader)
{
    if (reader) {
        OBJ_CHECK(reader, READER_MAGIC);
        arena_fini(&reader->arena);
        buf_fini(&reader->made);
        reader->magic = 0;
        free(reader);
    }
}

size_t tools_reader_bytes(const struct tools_reader *reader)
{
    OBJ_CHECK(reader, READER_MAGIC);
    return sizeof(*reader) + reader->arena.used_bytes + reader->made.capacity;
}
