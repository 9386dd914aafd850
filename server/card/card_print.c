/* SPDX-License-Identifier: MIT */
/* A first card, for a person to go on with: present names, shapes as descriptions, constants. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/call.h"
#include "protocol/json.h"
#include "runtime/program/example.h"
#include "runtime/program/program.h"
#include "server/card/call_method.h"
#include "server/card/card.h"

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
        buf_printf(out, "%s%s%" PRIi64, dim ? "," : "", io->dynamic_dims >> dim & 1 ? "<=" : "",
                   io->shape.dims[dim]);
    }
    buf_add_char(out, ']');
}

static void print_io(struct buf *out, const char *indent, const struct rt_io *io)
{
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
    buf_add_char(out, '}');
    buf_fini(&type);
}

static void print_ios(struct buf *out, const char *indent, const char *key,
                      const struct rt_method *method, enum rt_side side)
{
    uint32_t count =
        side == RT_INPUT ? rt_method_input_count(method) : rt_method_result_count(method);
    buf_printf(out, "%s\"%s\": [\n", indent, key);
    for (uint32_t i = 0; i < count; i++) {
        print_io(out, indent,
                 side == RT_INPUT ? rt_method_input(method, i) : rt_method_result(method, i));
        buf_add_str(out, i + 1 < count ? ",\n" : "\n");
    }
    buf_printf(out, "%s]", indent);
}

/* A call of the smallest shapes that the method takes. */
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
        if (io->kind == RT_IO_TENSOR && io->dynamic_dims) {
            buf_add_str(out, before);
            print_string(out, io->name);
            buf_printf(out, ": %s", shape_print(&shapes[i], text));
            before = ", ";
        }
    }
    buf_add_str(out, "}}]");
}

static void print_method(struct buf *out, const char *indent, struct rt_method *method,
                         struct arena *arena)
{
    print_ios(out, indent, "inputs", method, RT_INPUT);
    buf_add_str(out, ",\n");
    print_ios(out, indent, "outputs", method, RT_RESULT);
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
        print_method(out, "      ", method, arena);
        buf_add_str(out, "\n    }");
        before = ",\n";
        has_any = true;
    }
    buf_add_str(out, has_any ? "\n  }" : "");
    buf_fini(&ignored);
}

void card_print(const struct rt_program *program, struct buf *out)
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
    buf_add_str(out, "  \"description\": \"\"");
    if (by_default) {
        buf_add_str(out, ",\n");
        print_method(out, "  ", by_default, &arena);
    }
    print_others(out, program, &arena);
    buf_add_str(out, "\n}\n");
    out->failed |= arena.refusal != ST_OK;
    arena_fini(&arena);
}
