/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/yaml.h"

#include <string.h>

#include "protocol/json.h"
#include "protocol/number.h"
#include "server/process/file.h"
#include "server/process/libyaml.h"

/* A value that an alias can name: a part of the text. */
struct anchor {
    char *name; /* owned */
    size_t begin, end;
    bool is_open; /* its end is not known yet */
};

/* A mapping or a sequence that is being written. */
struct level {
    bool is_mapping;
    bool has_key;    /* of a mapping: a value comes next */
    bool has_items;  /* the next one needs a comma */
    uint32_t anchor; /* of the whole, or YAML_ANCHORS_MAX */
};

struct writer {
    const struct libyaml *lib;
    yaml_parser_t parser;
    struct buf *out;
    size_t line; /* of |out| */
    struct level levels[DOCUMENT_DEPTH_MAX];
    uint32_t depth;
    struct anchor anchors[YAML_ANCHORS_MAX];
    uint32_t anchor_count;
    bool is_done; /* the document has ended */
};

static enum status fail(const yaml_mark_t *mark, const char *text, enum status code,
                        struct error *err)
{
    return error_set(err, code, "%s (line %zu, column %zu)", text, mark->line + 1,
                     mark->column + 1);
}

/* ---- anchors --------------------------------------------------------------------------------- */

static struct anchor *find_anchor(struct writer *w, const yaml_char_t *name)
{
    for (uint32_t i = w->anchor_count; i > 0; i--) {
        if (strcmp(w->anchors[i - 1].name, (const char *)name) == 0) {
            return &w->anchors[i - 1];
        }
    }
    return NULL;
}

/* Notes that the value with the anchor |name|, which may be NULL, begins here. */
static enum status open_anchor(struct writer *w, const yaml_char_t *name, const yaml_mark_t *mark,
                               uint32_t *out, struct error *err)
{
    *out = YAML_ANCHORS_MAX;
    if (!name) {
        return ST_OK;
    }
    if (w->anchor_count == YAML_ANCHORS_MAX) {
        _Static_assert(YAML_ANCHORS_MAX == 64, "the error names it");
        return fail(mark, "expected at most 64 anchors", ST_TOO_LARGE, err);
    }
    char *copy = strdup((const char *)name);
    if (!copy) {
        return error_no_memory(err, "an anchor");
    }
    *out = w->anchor_count++;
    w->anchors[*out] = (struct anchor){.name = copy, .begin = w->out->len, .is_open = true};
    return ST_OK;
}

static void close_anchor(struct writer *w, uint32_t index)
{
    if (index < YAML_ANCHORS_MAX) {
        w->anchors[index].end = w->out->len;
        w->anchors[index].is_open = false;
    }
}

static enum status put_alias(struct writer *w, const yaml_event_t *event, struct error *err)
{
    const struct anchor *anchor = find_anchor(w, event->data.alias.anchor);
    if (!anchor || anchor->is_open) {
        return fail(&event->start_mark,
                    anchor ? "an alias within the anchor that it names"
                           : "an alias without an anchor",
                    ST_INVALID, err);
    }
    size_t len = anchor->end - anchor->begin;
    uint8_t *to = buf_reserve(w->out, len);
    if (to) { /* otherwise the buffer has failed */
        memcpy(to, w->out->ptr + anchor->begin, len);
        buf_commit(w->out, len);
    }
    return ST_OK;
}

/* ---- values ---------------------------------------------------------------------------------- */

/* Is |text| a number of JSON? */
static bool is_number(struct span text)
{
    const uint8_t *end = text.ptr + text.len;
    double ignored;
    return text.len > 0 && text.len <= DOCUMENT_NUMBER_MAX &&
           number_read_f64(text.ptr, end, &ignored) == end;
}

/* The word of JSON for a scalar without quotes, or NULL. */
static const char *word_of(struct span text)
{
    static const struct {
        const char *word, *json;
    } words[] = {
        {"", "null"},     {"~", "null"},      {"null", "null"},   {"Null", "null"},
        {"true", "true"}, {"True", "true"},   {"TRUE", "true"},   {"false", "false"},
        {"NULL", "null"}, {"False", "false"}, {"FALSE", "false"},
    };
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (span_is(text, words[i].word)) {
            return words[i].json;
        }
    }
    return NULL;
}

static void put_scalar(struct writer *w, const yaml_event_t *event, bool is_key)
{
    struct span text = span_of((const char *)event->data.scalar.value, event->data.scalar.length);
    bool is_plain = event->data.scalar.plain_implicit && !is_key;
    const char *word = is_plain ? word_of(text) : NULL;
    if (word) {
        buf_add_str(w->out, word);
    } else if (is_plain && is_number(text)) {
        buf_add(w->out, text.ptr, text.len);
    } else {
        json_print_string(w->out, text);
    }
}

/* ---- structure ------------------------------------------------------------------------------- */

/* What stands between this value or key and the one before it. */
static void begin_item(struct writer *w)
{
    struct level *level = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    if (level && level->is_mapping && level->has_key) {
        buf_add_char(w->out, ':');
    } else if (level && level->has_items) {
        buf_add_char(w->out, ',');
    }
}

/* A key or a value has been written. */
static void end_item(struct writer *w)
{
    struct level *level = w->depth > 0 ? &w->levels[w->depth - 1] : NULL;
    if (level) {
        level->has_key = level->is_mapping && !level->has_key;
        level->has_items = true;
    }
}

static bool is_key_next(const struct writer *w)
{
    return w->depth > 0 && w->levels[w->depth - 1].is_mapping && !w->levels[w->depth - 1].has_key;
}

static enum status begin_level(struct writer *w, const yaml_event_t *event, bool is_mapping,
                               struct error *err)
{
    const yaml_char_t *name =
        is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    uint32_t anchor;
    if (w->depth == DOCUMENT_DEPTH_MAX) {
        return fail(&event->start_mark, "nested too deep", ST_TOO_LARGE, err);
    }
    TRY(open_anchor(w, name, &event->start_mark, &anchor, err));
    buf_add_char(w->out, is_mapping ? '{' : '[');
    w->levels[w->depth++] = (struct level){.is_mapping = is_mapping, .anchor = anchor};
    return ST_OK;
}

static void end_level(struct writer *w)
{
    const struct level *level = &w->levels[--w->depth];
    buf_add_char(w->out, level->is_mapping ? '}' : ']');
    close_anchor(w, level->anchor);
    end_item(w);
}

static enum status add_scalar(struct writer *w, const yaml_event_t *event, struct error *err)
{
    uint32_t anchor;
    TRY(open_anchor(w, event->data.scalar.anchor, &event->start_mark, &anchor, err));
    put_scalar(w, event, is_key_next(w));
    close_anchor(w, anchor);
    end_item(w);
    return ST_OK;
}

static enum status add_value(struct writer *w, const yaml_event_t *event, struct error *err)
{
    bool is_scalar = event->type == YAML_SCALAR_EVENT;
    if (is_key_next(w) && !is_scalar) {
        return fail(&event->start_mark, "expected a key that is a text", ST_INVALID, err);
    }
    /* Lines are those of the file, so that errors can say them. */
    for (; w->line < event->start_mark.line; w->line++) {
        buf_add_char(w->out, '\n');
    }
    begin_item(w);
    if (is_scalar) {
        return add_scalar(w, event, err);
    }
    if (event->type == YAML_ALIAS_EVENT) {
        TRY(put_alias(w, event, err));
        end_item(w);
        return ST_OK;
    }
    return begin_level(w, event, event->type == YAML_MAPPING_START_EVENT, err);
}

static enum status add_event(struct writer *w, const yaml_event_t *event, struct error *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
    case YAML_ALIAS_EVENT:
    case YAML_MAPPING_START_EVENT:
    case YAML_SEQUENCE_START_EVENT:
        return add_value(w, event, err);
    case YAML_MAPPING_END_EVENT:
    case YAML_SEQUENCE_END_EVENT:
        end_level(w);
        return ST_OK;
    case YAML_DOCUMENT_START_EVENT:
        return w->is_done ? fail(&event->start_mark, "expected one document", ST_INVALID, err)
                          : ST_OK;
    case YAML_DOCUMENT_END_EVENT:
        w->is_done = true;
        return ST_OK;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
        break;
    }
    return ST_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static enum status refuse_syntax(const yaml_parser_t *parser, struct error *err)
{
    if (parser->error == YAML_MEMORY_ERROR) {
        return error_no_memory(err, "YAML");
    }
    char text[ERROR_TEXT_MAX / 2];
    snprintf(text, sizeof(text), "no YAML: %s", parser->problem ? parser->problem : "unknown");
    return fail(&parser->problem_mark, text, ST_INVALID, err);
}

static enum status write_all(struct writer *w, struct error *err)
{
    enum status status = ST_OK;
    for (bool is_more = true; is_more && status == ST_OK;) {
        yaml_event_t event;
        if (!w->lib->parser_parse(&w->parser, &event)) {
            return refuse_syntax(&w->parser, err);
        }
        is_more = event.type != YAML_STREAM_END_EVENT;
        status = add_event(w, &event, err);
        w->lib->event_delete(&event);
        if (status == ST_OK && buf_failed(w->out)) {
            status = error_set(err, w->out->lacks_memory ? ST_EXHAUSTED : ST_TOO_LARGE,
                               "the values take more than %zu bytes", w->out->max_bytes);
        }
    }
    if (status == ST_OK && !w->is_done) {
        buf_add_str(w->out, "null");
    }
    return status;
}

static enum status write_json(struct span text, struct buf *out, struct error *err)
{
    struct writer w = {.out = out};
    TRY(libyaml_load(&w.lib, err));
    if (!w.lib->parser_initialize(&w.parser)) {
        return error_no_memory(err, "YAML");
    }
    /* libyaml wants an address also for no bytes. */
    w.lib->parser_set_input_string(&w.parser, text.len ? text.ptr : (const uint8_t *)"", text.len);
    enum status status = write_all(&w, err);
    w.lib->parser_delete(&w.parser);
    for (uint32_t i = 0; i < w.anchor_count; i++) {
        free(w.anchors[i].name);
    }
    return status;
}

enum status yaml_parse(struct span text, const struct document_limits *limits, struct document *out,
                       struct error *err)
{
    struct buf json;
    *out = (struct document){.root = NULL};
    buf_init(&json, limits->bytes_max);
    enum status status = write_json(text, &json, err);
    if (status == ST_OK) {
        status = document_parse(buf_span(&json), limits, out, err);
    }
    buf_fini(&json);
    return status;
}

enum status yaml_open(const char *path, const struct document_limits *limits, struct document *out,
                      struct error *err)
{
    struct buf text;
    buf_init(&text, limits->bytes_max);
    enum status status = file_read(path, &text, err);
    if (status == ST_OK) {
        status = yaml_parse(buf_span(&text), limits, out, err);
    }
    buf_fini(&text);
    return status;
}
