/* SPDX-License-Identifier: MIT */
/* A first card, for a person to go on with: present names, shapes as descriptions, constants. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/call.h"
#include "protocol/json.h"
#include "runtime/program/adapt.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "server/model/card/call_method.h"
#include "server/model/card/card.h"
#include "server/model/card/derive.h"

#define ARENA_BYTES_MAX ((size_t)16 << 20)
#define CONSTANT_BYTES_MAX 512
#define TEXT_BYTES 256

static void print_string(struct buf *out, const char *text)
{
    json_print_string(out, span_str(text));
}

/* "float32[<=360,1,8,8]" */
static void print_type(struct buf *out, const struct rt_io *io)
{
    if (io->kind != RT_IO_TENSOR) {
        buf_add_str(out, io->kind == RT_IO_STRING  ? "a text"
                         : io->kind == RT_IO_BOOL  ? "a boolean"
                         : io->kind == RT_IO_FLOAT ? "a number"
                                                   : "a whole number");
        return;
    }
    buf_printf(out, "%s[", dtype_name(io->dtype));
    for (int dim = 0; dim < io->shape.rank; dim++) {
        buf_printf(out, "%s%s%" PRIi64, dim ? "," : "", rt_io_is_dynamic(io, dim) ? "<=" : "",
                   io->shape.dims[dim]);
    }
    buf_add_char(out, ']');
}

/* ---- pictures -------------------------------------------------------------------------------- */

/* The steps of torchvision for its classifiers of pictures of this size; other pictures are only
 * resized. */
static void print_image(struct buf *out, const struct rt_io *io, const struct rt_pixels *pixels)
{
    bool is_usual = pixels->channels == 3 && dtype_is_float(io->dtype);
    buf_add_str(out, "\"image\": {");
    if (is_usual && pixels->height == pixels->width) {
        buf_printf(out, "\"resize\": %" PRIu32 ", \"crop\"",
                   (uint32_t)(((uint64_t)pixels->height * 8 + 3) / 7));
    } else {
        buf_add_str(out, "\"resize\"");
    }
    buf_printf(out, ": [%" PRIu32 ", %" PRIu32 "]", pixels->height, pixels->width);
    if (is_usual) {
        buf_add_str(out, ", \"mean\": [0.485, 0.456, 0.406], \"std\": [0.229, 0.224, 0.225]");
    }
    if (pixels->is_nhwc) {
        buf_add_str(out, ", \"layout\": \"nhwc\"");
    }
    buf_add_char(out, '}');
}

/* Might the input be a picture? Then a card can name its channels. */
static bool find_pixels(const struct rt_method *method, uint32_t index, struct rt_pixels *out)
{
    struct error ignored;
    return rt_method_input(method, index)->kind == RT_IO_TENSOR && !rt_method_failure(method) &&
           rt_adapt_find_pixels(method, index, out, &ignored) == ST_OK &&
           (out->channels == 1 || out->channels == 3) && out->height > 1 && out->width > 1 &&
           out->height <= IMAGE_SIDE_MAX && out->width <= IMAGE_SIDE_MAX;
}

/* Is it without a name, and may it be called "image"? */
static bool is_only(const struct rt_method *method, uint32_t index)
{
    const struct rt_io *io = rt_method_input(method, index);
    struct rt_pixels ignored;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_io_is_called(rt_method_input(method, i), span_str("image")) ||
            (i != index && find_pixels(method, i, &ignored))) {
            return false;
        }
    }
    return strcmp(io->name, io->alias) == 0;
}

/* A comment: nobody knows whether the input is a picture, and it would no longer take numbers as it
 * does now. */
static void propose_image(struct buf *out, const char *indent, const struct rt_method *method,
                          uint32_t index)
{
    struct rt_pixels pixels;
    if (find_pixels(method, index, &pixels)) {
        buf_printf(out, "\n%s   // without these slashes, clients send JPEG, PNG and WebP:\n",
                   indent);
        buf_printf(out, "%s   // , ", indent);
        if (is_only(method, index)) {
            buf_add_str(out, "\"name\": \"image\", ");
        }
        print_image(out, rt_method_input(method, index), &pixels);
        buf_printf(out, "\n%s  ", indent);
    }
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

/* A member that does not come from the program, and where it comes from. */
static void print_fact(struct buf *out, const char *indent, const struct derive *derive,
                       enum derive_kind kind)
{
    const struct derive_fact *fact = &derive->facts[kind];
    if (derive_has(derive, kind)) {
        buf_printf(out, "\n%s   // %s\n%s   , \"%s\": ", indent, fact->from, indent,
                   derive_word(kind));
        buf_add(out, fact->json.ptr, fact->json.len);
    }
}

/* What |derive|, which may be NULL, says of an input or output. False: nothing. */
static bool print_facts(struct buf *out, const char *indent, const struct derive *derive,
                        enum rt_side side, uint32_t index)
{
    bool is_input = side == RT_INPUT;
    uint32_t about = !derive ? UINT32_MAX : is_input ? derive->input : derive->output;
    size_t before = out->len;
    if (about != index) {
        return false;
    }
    for (int kind = is_input ? DERIVE_IMAGE : DERIVE_LABELS;
         kind <= (int)(is_input ? DERIVE_IMAGE : DERIVE_ANSWER); kind++) {
        print_fact(out, indent, derive, (enum derive_kind)kind);
    }
    if (out->len == before) {
        return false;
    }
    buf_printf(out, "\n%s  ", indent);
    return true;
}

static void print_io(struct buf *out, const char *indent, const struct rt_method *method,
                     enum rt_side side, uint32_t index, const struct derive *derive)
{
    const struct rt_io *io =
        side == RT_INPUT ? rt_method_input(method, index) : rt_method_result(method, index);
    struct buf type;
    if (io->kind == RT_IO_NONE) {
        buf_printf(out, "%s  null", indent);
        return;
    }
    buf_init(&type, TEXT_BYTES);
    print_type(&type, io);
    buf_printf(out, "%s  {", indent);
    if (strcmp(io->name, io->alias) != 0) {
        buf_add_str(out, "\"name\": ");
        print_string(out, io->name);
        buf_add_str(out, ", ");
    }
    buf_add_str(out, "\"description\": ");
    json_print_string(out, buf_span(&type));
    if (!print_facts(out, indent, derive, side, index) && side == RT_INPUT) {
        propose_image(out, indent, method, index);
    }
    buf_add_char(out, '}');
    buf_fini(&type);
}

static void print_ios(struct buf *out, const char *indent, const char *key,
                      const struct rt_method *method, enum rt_side side,
                      const struct derive *derive)
{
    uint32_t count =
        side == RT_INPUT ? rt_method_input_count(method) : rt_method_result_count(method);
    buf_printf(out, "%s\"%s\": [\n", indent, key);
    for (uint32_t i = 0; i < count; i++) {
        print_io(out, indent, method, side, i, derive);
        buf_add_str(out, i + 1 < count ? ",\n" : "\n");
    }
    buf_printf(out, "%s]", indent);
}

/* A call of the smallest shapes that the method takes. Shapes of pictures are left out: they are
 * the default, and a line of the card may change them. */
static void print_warm_up(struct buf *out, const char *indent, struct rt_method *method,
                          struct arena *arena)
{
    uint32_t count = rt_method_input_count(method);
    struct shape *shapes = arena_array(arena, (size_t)count + 1, sizeof(*shapes));
    char text[SHAPE_TEXT_MAX];
    const char *before = "";
    struct error ignored;
    if (!shapes || rt_method_failure(method) ||
        rt_example_shapes(method, NULL, shapes, &ignored) != ST_OK) {
        return;
    }
    buf_printf(out, ",\n%s\"warm_up\": [{\"shapes\": {", indent);
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct rt_pixels ignored_pixels;
        if (io->kind == RT_IO_TENSOR && io->dynamic_dims &&
            !find_pixels(method, i, &ignored_pixels)) {
            buf_add_str(out, before);
            print_string(out, io->name);
            buf_printf(out, ": %s", shape_print(&shapes[i], text));
            before = ", ";
        }
    }
    buf_add_str(out, "}}]");
}

static void print_method(struct buf *out, const char *indent, struct rt_method *method,
                         const struct derive *derive, struct arena *arena)
{
    print_ios(out, indent, "inputs", method, RT_INPUT, derive);
    buf_add_str(out, ",\n");
    print_ios(out, indent, "outputs", method, RT_RESULT, derive);
    print_warm_up(out, indent, method, arena);
}

/* ---- constants ------------------------------------------------------------------------------- */

/* The value of a method without inputs whose results are known. */
static bool print_value(struct rt_method *method, struct arena *arena, struct buf *out)
{
    struct call_method call;
    struct call_result *results;
    struct error ignored;
    if (rt_method_failure(method) || rt_method_input_count(method) > 0 ||
        rt_method_result_count(method) == 0 ||
        card_describe_call(arena, method, &call, &ignored) != ST_OK) {
        return false;
    }
    results = arena_array(arena, call.result_count, sizeof(*results));
    for (uint32_t i = 0; results && i < call.result_count; i++) {
        results[i].shape = call.results[i].shape;
        if (!rt_method_constant_result(method, i, &results[i].bytes) ||
            results[i].bytes.len > CONSTANT_BYTES_MAX) {
            return false;
        }
    }
    if (results) {
        call_print_value(&call, results, out);
    }
    return results && !buf_failed(out);
}

/* Comments: constants often say what a model is for, and how long its inputs may be. */
static bool print_constant(struct buf *out, struct rt_method *method, struct arena *arena)
{
    struct buf value;
    buf_init(&value, CONSTANT_BYTES_MAX);
    bool is_constant = print_value(method, arena, &value);
    if (is_constant) {
        buf_add_str(out, "  // ");
        print_string(out, rt_method_name(method)); /* no name ends the comment */
        buf_printf(out, ": %.*s\n", SPAN_FMT(buf_span(&value)));
    }
    buf_fini(&value);
    return is_constant;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Texts that a method without inputs gives. */
struct texts {
    struct span *items; /* in an arena */
    uint32_t count;
};

/* One text with a line for each. */
static bool split_lines(struct span text, struct arena *arena, struct texts *out)
{
    const struct span *items;
    struct error ignored;
    bool has_lines = memchr(text.ptr, '\n', text.len) != NULL;
    if (!has_lines || card_take_lines(arena, text, &items, &out->count, &ignored) != ST_OK) {
        return false;
    }
    out->items = arena_array(arena, out->count, sizeof(*out->items));
    for (uint32_t i = 0; out->items && i < out->count; i++) {
        out->items[i] = items[i];
    }
    return out->items != NULL;
}

/* The constant results of |method|, if all are texts in UTF-8. */
static bool find_texts(const struct rt_method *method, struct arena *arena, struct texts *out)
{
    uint32_t count = rt_method_result_count(method);
    *out = (struct texts){.count = count};
    if (rt_method_failure(method) || rt_method_input_count(method) > 0 || count == 0) {
        return false;
    }
    out->items = arena_array(arena, count, sizeof(*out->items));
    for (uint32_t i = 0; out->items && i < count; i++) {
        if (rt_method_result(method, i)->kind != RT_IO_STRING ||
            !rt_method_constant_result(method, i, &out->items[i]) || !json_is_utf8(out->items[i])) {
            return false;
        }
    }
    return out->items && (count > 1 || split_lines(out->items[0], arena, out));
}

/* The elements of a row, at most: files often have no more than the largest sizes. */
static uint64_t row_numel(const struct rt_io *io)
{
    uint64_t count = 1;
    for (uint8_t dim = io->shape.rank > 1; dim < io->shape.rank; dim++) {
        count *= (uint64_t)io->shape.dims[dim];
    }
    return count;
}

/* Is there an output with |count| classes, which has such labels then? */
static bool has_classes(const struct rt_program *program, uint32_t count)
{
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        const struct rt_method *method = rt_program_method(program, i);
        for (uint32_t k = 0; k < rt_method_result_count(method); k++) {
            const struct rt_io *io = rt_method_result(method, k);
            if (!rt_method_failure(method) && io->kind == RT_IO_TENSOR && row_numel(io) == count) {
                return true;
            }
        }
    }
    return false;
}

/* As many texts as an output has classes are taken for the labels of these. */
static void print_labels(struct buf *out, const struct rt_program *program, struct arena *arena)
{
    struct texts texts;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        if (!find_texts(rt_program_method(program, i), arena, &texts) || texts.count < 2 ||
            texts.count > CARD_LABELS_MAX || !has_classes(program, texts.count)) {
            continue;
        }
        buf_add_str(out, ",\n  \"labels\": [");
        for (uint32_t k = 0; k < texts.count; k++) {
            buf_add_str(out, k ? ", " : "");
            json_print_string(out, texts.items[k]);
        }
        buf_add_char(out, ']');
        return;
    }
}

/* ---- the card -------------------------------------------------------------------------------- */

static void print_others(struct buf *out, const struct rt_program *program, struct arena *arena)
{
    const char *before = ",\n  \"methods\": {\n";
    bool has_any = false;
    struct buf ignored;
    buf_init(&ignored, CONSTANT_BYTES_MAX);
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        buf_reset(&ignored);
        if (method == rt_program_default_method(program) || print_value(method, arena, &ignored)) {
            continue;
        }
        buf_printf(out, "%s    ", before);
        print_string(out, rt_method_name(method));
        buf_add_str(out, ": {\n");
        print_method(out, "      ", method, NULL, arena);
        buf_add_str(out, "\n    }");
        before = ",\n";
        has_any = true;
    }
    buf_add_str(out, has_any ? "\n  }" : "");
    buf_fini(&ignored);
}

static void print_description(const struct derive *derive, struct buf *out)
{
    if (derive && derive_has(derive, DERIVE_DESCRIPTION)) {
        const struct derive_fact *fact = &derive->facts[DERIVE_DESCRIPTION];
        buf_printf(out, "  // %s\n  \"description\": ", fact->from);
        buf_add(out, fact->json.ptr, fact->json.len);
    } else {
        buf_add_str(out, "  \"description\": \"\"");
    }
    if (derive && derive_has(derive, DERIVE_GENERATION)) {
        print_fact(out, "", derive, DERIVE_GENERATION);
    }
    if (derive && derive->carry_count > 0) {
        buf_printf(out,
                   "\n  // export.json: %u inputs of the file are a cache, which pted keeps\n  ",
                   derive->carry_count);
    }
}

void card_print(const struct rt_program *program, const struct derive *derive, struct buf *out)
{
    struct rt_method *by_default = rt_program_default_method(program);
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    buf_add_str(out, "{\n");
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *method = rt_program_method(program, i);
        if (method != by_default) {
            (void)print_constant(out, method, &arena);
        }
    }
    print_description(derive, out);
    if (by_default) {
        buf_add_str(out, ",\n");
        print_method(out, "  ", by_default, derive, &arena);
    }
    if (!derive || !derive_has(derive, DERIVE_LABELS)) {
        print_labels(out, program, &arena);
    }
    print_others(out, program, &arena);
    buf_add_str(out, "\n}\n");
    out->failed |= arena.refusal != ST_OK;
    arena_fini(&arena);
}
