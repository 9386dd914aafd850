/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/card/derive.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "runtime/program/adapt.h"
#include "runtime/program/program.h"
#include "server/model/card/card.h"
#include "server/model/card/derive_priv.h"

#define FACT_BYTES_MAX CARD_BYTES_MAX

static const char *const words[DERIVE_KINDS] = {
    [DERIVE_DESCRIPTION] = "description",
    [DERIVE_GENERATION] = "generation",
    [DERIVE_IMAGE] = "image",
    [DERIVE_LABELS] = "labels",
    [DERIVE_ANSWER] = "answer",
};

const char *derive_word(enum derive_kind kind)
{
    return words[kind];
}

/* ---- facts ----------------------------------------------------------------------------------- */

struct buf *derive_say(struct derive *derive, enum derive_kind kind, const char *fmt, ...)
{
    struct derive_fact *fact = &derive->facts[kind];
    va_list args;
    va_start(args, fmt);
    vsnprintf(fact->from, sizeof(fact->from), fmt, args);
    va_end(args);
    buf_reset(&fact->json);
    return &fact->json;
}

void derive_note(struct derive *derive, const char *fmt, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    if (derive->note_count == DERIVE_NOTES_MAX) {
        return;
    }
    va_start(args, fmt);
    vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    error_set(&derive->notes[derive->note_count++], ST_INVALID, "%s", text);
}

bool derive_has_any(const struct derive *derive)
{
    for (int kind = 0; kind < DERIVE_KINDS; kind++) {
        if (derive_has(derive, (enum derive_kind)kind)) {
            return true;
        }
    }
    return false;
}

enum status derive_init(struct derive *derive, const struct beside *beside,
                        const struct derive_own *own, const struct rt_method *method,
                        struct error *err)
{
    const struct document *metadata = &beside->files[BESIDE_METADATA];
    *derive = (struct derive){.own = *own};
    for (int kind = 0; kind < DERIVE_KINDS; kind++) {
        buf_init(&derive->facts[kind].json, FACT_BYTES_MAX);
    }
    if (metadata->root) {
        derive_from_yolo(derive, metadata, method);
    }
    if (!derive_has_any(derive)) {
        derive_from_hub(derive, beside, method);
    }
    derive_from_generation(derive, &beside->files[BESIDE_GENERATION], method);
    for (int kind = 0; kind < DERIVE_KINDS; kind++) {
        if (buf_failed(&derive->facts[kind].json)) {
            return error_no_memory(err, "the card");
        }
    }
    return ST_OK;
}

void derive_fini(struct derive *derive)
{
    for (int kind = 0; kind < DERIVE_KINDS; kind++) {
        buf_fini(&derive->facts[kind].json);
    }
}

/* ---- values ---------------------------------------------------------------------------------- */

static const struct cJSON *find(const struct cJSON *object, const char *key, enum json_type type)
{
    const struct cJSON *value = document_find(object, key);
    return value && document_type(value) == type ? value : NULL;
}

bool derive_find_text(const struct document *in, const struct cJSON *object, const char *key,
                      const char **out)
{
    const struct cJSON *value = find(object, key, JSON_STRING);
    struct error ignored;
    return value && document_text(in, value, out, &ignored) == ST_OK;
}

bool derive_find_u32(const struct document *in, const struct cJSON *object, const char *key,
                     uint32_t max, uint32_t *out)
{
    const struct cJSON *value = find(object, key, JSON_NUMBER);
    struct error ignored;
    uint64_t number;
    if (!value || document_u64_from(in, value, 1, max, &number, &ignored) != ST_OK) {
        return false;
    }
    *out = (uint32_t)number;
    return true;
}

bool derive_find_f64(const struct document *in, const struct cJSON *object, const char *key,
                     double *out)
{
    const struct cJSON *value = find(object, key, JSON_NUMBER);
    struct error ignored;
    return value && document_f64(in, value, out, &ignored) == ST_OK;
}

bool derive_find_bool(const struct document *in, const struct cJSON *object, const char *key,
                      bool *out)
{
    const struct cJSON *value = document_find(object, key);
    struct error ignored;
    return value && document_bool(in, value, out, &ignored) == ST_OK;
}

bool derive_read_pair(const struct document *in, const struct cJSON *value, uint32_t out[2])
{
    uint32_t count = 0;
    bool is_list = value && document_type(value) == JSON_ARRAY;
    for (const struct cJSON *at = is_list ? document_first(value) : NULL; at;
         at = document_next(at)) {
        struct error ignored;
        uint64_t number;
        if (count == 2 ||
            document_u64_from(in, at, 1, IMAGE_SIDE_MAX, &number, &ignored) != ST_OK) {
            return false;
        }
        out[count++] = (uint32_t)number;
    }
    return count == 2;
}

/* ---- names of classes ------------------------------------------------------------------------ */

static uint32_t count_items(const struct cJSON *value)
{
    uint32_t count = 0;
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        count++;
    }
    return count;
}

/* The number that |key| is. False: it is none below |count|, or written in another way. */
static bool read_key(const char *key, uint32_t count, uint32_t *out)
{
    char *end;
    char canonical[16];
    unsigned long number = strtoul(key, &end, 10);
    snprintf(canonical, sizeof(canonical), "%lu", number);
    *out = (uint32_t)number;
    return number < count && strcmp(canonical, key) == 0;
}

/* Each key is another one, so each name gets a place of its own. */
static bool take_names(const struct document *in, const struct cJSON *value,
                       struct derive_names *names)
{
    bool is_object = document_type(value) == JSON_OBJECT;
    uint32_t index = 0;
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        struct error ignored;
        if ((is_object && !read_key(document_key(at), names->count, &index)) ||
            document_type(at) != JSON_STRING ||
            document_text(in, at, &names->items[index], &ignored) != ST_OK) {
            return false;
        }
        index++;
    }
    return true;
}

bool derive_read_names(const struct document *in, const struct cJSON *value,
                       struct derive_names *out)
{
    enum json_type type = value ? document_type(value) : JSON_NULL;
    *out = (struct derive_names){.count = 0};
    if (type != JSON_OBJECT && type != JSON_ARRAY) {
        return false;
    }
    out->count = count_items(value);
    out->items = out->count > 0 && out->count <= CARD_LABELS_MAX
                     ? calloc(out->count, sizeof(*out->items))
                     : NULL;
    if (out->items && take_names(in, value, out)) {
        return true;
    }
    derive_free_names(out);
    return false;
}

void derive_free_names(struct derive_names *names)
{
    free(names->items);
    *names = (struct derive_names){.count = 0};
}

void derive_print_names(const struct derive_names *names, struct buf *out)
{
    for (uint32_t i = 0; i < names->count; i++) {
        buf_add_str(out, i ? ", " : "[");
        json_print_string(out, span_str(names->items[i]));
    }
    buf_add_char(out, ']');
}

/* ---- the program ----------------------------------------------------------------------------- */

bool derive_find_picture(const struct rt_method *method, uint32_t *out_index,
                         struct rt_pixels *out_pixels)
{
    uint32_t count = rt_method_input_count(method);
    bool has_any = false;
    for (uint32_t i = 0; i < count; i++) {
        struct rt_pixels pixels;
        struct error ignored;
        const struct rt_io *io = rt_method_input(method, i);
        bool is_named = rt_io_is_called(io, span_str("pixel_values"));
        if (io->kind != RT_IO_TENSOR || (has_any && !is_named) ||
            rt_adapt_find_pixels(method, i, &pixels, &ignored) != ST_OK ||
            (pixels.channels != 1 && pixels.channels != 3)) {
            continue;
        }
        *out_index = i;
        *out_pixels = pixels;
        has_any = true;
    }
    return has_any;
}

bool derive_check_sides(struct derive *derive, const struct rt_pixels *pixels, uint32_t height,
                        uint32_t width, const char *from)
{
    bool fits = (pixels->has_any_height ? height <= pixels->height : height == pixels->height) &&
                (pixels->has_any_width ? width <= pixels->width : width == pixels->width);
    if (!fits) {
        derive_note(derive,
                    "%s: pictures of %u x %u (height x width), but the program takes %u x %u", from,
                    height, width, pixels->height, pixels->width);
    }
    return fits;
}

/* ---- a card ---------------------------------------------------------------------------------- */

static void print_fact(const struct derive *derive, enum derive_kind kind, const char **before,
                       struct buf *out)
{
    const struct derive_fact *fact = &derive->facts[kind];
    if (derive_has(derive, kind)) {
        buf_printf(out, "%s\"%s\": ", *before, words[kind]);
        buf_add(out, fact->json.ptr, fact->json.len);
        *before = ", ";
    }
}

/* {"ALIAS": {FACTS}} */
static void print_io(const struct derive *derive, const char *key, const struct rt_io *io,
                     enum derive_kind first, enum derive_kind last, const char **before,
                     struct buf *out)
{
    const char *inner = "";
    if (!derive_has(derive, first) && !derive_has(derive, last)) {
        return;
    }
    buf_printf(out, "%s\"%s\": {\"%s\": {", *before, key, io->alias);
    for (int kind = (int)first; kind <= (int)last; kind++) {
        print_fact(derive, (enum derive_kind)kind, &inner, out);
    }
    buf_add_str(out, "}}");
    *before = ",\n ";
}

void derive_print(const struct derive *derive, const struct rt_method *method, struct buf *out)
{
    const char *before = "";
    buf_add_char(out, '{');
    print_fact(derive, DERIVE_DESCRIPTION, &before, out);
    print_fact(derive, DERIVE_GENERATION, &before, out);
    if (derive_has(derive, DERIVE_IMAGE)) {
        print_io(derive, "inputs", rt_method_input(method, derive->input), DERIVE_IMAGE,
                 DERIVE_IMAGE, &before, out);
    }
    if (derive_has(derive, DERIVE_LABELS) || derive_has(derive, DERIVE_ANSWER)) {
        print_io(derive, "outputs", rt_method_result(method, derive->output), DERIVE_LABELS,
                 DERIVE_ANSWER, &before, out);
    }
    buf_add_str(out, "}\n");
}
