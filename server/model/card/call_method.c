/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/card/call_method.h"

#include <string.h>

#include "base/table.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "runtime/program/signature.h"

#define FIXED_BYTES_MAX (1 << 20)

struct shape card_shape_of(const struct rt_io *io)
{
    struct shape shape = io->shape;
    if (io->kind == RT_IO_STRING) {
        return (struct shape){.rank = 1, .dims = {1}};
    }
    for (int dim = 0; dim < shape.rank; dim++) {
        if (io->dynamic_dims & 1u << dim) {
            shape.dims[dim] = -1;
        }
    }
    return shape;
}

/* The one value that is taken, as JSON; NULL where any is, or without memory. */
static const char *print_fixed(struct arena *arena, const struct rt_io *io)
{
    struct buf text;
    uint8_t number[NUMBER_TEXT_MAX];
    if (!io->is_fixed) {
        return NULL;
    }
    buf_init(&text, FIXED_BYTES_MAX);
    if (io->kind == RT_IO_STRING) {
        json_print_string(&text, io->value.s);
    } else if (io->kind == RT_IO_BOOL) {
        buf_add_str(&text, io->value.b ? "true" : "false");
    } else {
        buf_add(&text, number,
                io->kind == RT_IO_INT ? number_print_i64(number, io->value.i)
                                      : number_print_f64(number, io->value.f, NUMBER_NAN_STRING));
    }
    const char *fixed = buf_failed(&text) ? NULL : arena_strdup(arena, text.ptr, text.len);
    buf_fini(&text);
    return fixed;
}

static struct call_io io_of(struct arena *arena, const struct rt_io *io)
{
    static const enum call_kind kinds[] = {
        [RT_IO_NONE] = CALL_NONE,    [RT_IO_TENSOR] = CALL_TENSOR, [RT_IO_INT] = CALL_SCALAR,
        [RT_IO_FLOAT] = CALL_SCALAR, [RT_IO_BOOL] = CALL_SCALAR,   [RT_IO_STRING] = CALL_STRING,
    };
    TABLE_ENDS_WITH(kinds, RT_IO_STRING);
    return (struct call_io){
        .kind = kinds[io->kind],
        .dtype = io->dtype,
        .shape = io->kind == RT_IO_TENSOR ? card_shape_of(io) : (struct shape){.rank = 0},
        .bounds = io->shape,
        .fixed = print_fixed(arena, io),
    };
}

enum status card_describe_call(struct arena *arena, const struct rt_method *method,
                               struct call_method *out, struct error *err)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct call_io *ios = arena_array(arena, (size_t)inputs + results, sizeof(*ios));
    if (!ios) {
        return error_no_memory(err, "the description of a model");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        const struct rt_io *io = rt_method_input(method, i);
        ios[i] = io_of(arena, io);
        ios[i].name = strcmp(io->name, io->alias) != 0 ? io->name : NULL;
    }
    for (uint32_t i = 0; i < results; i++) {
        ios[inputs + i] = io_of(arena, rt_method_result(method, i));
    }
    *out = (struct call_method){&rt_method_signature(method)->structure, ios, ios + inputs, inputs,
                                results};
    return ST_OK;
}
