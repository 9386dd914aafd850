/* SPDX-License-Identifier: MIT */
/* What clients see of a model's method: inputs, outputs, structure, an example, placement. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/example.h"
#include "runtime/program/signature.h"
#include "server/model/model.h"
#include "server/model/placement.h"

#define FIXED_BYTES_MAX (1 << 20)

static struct oip_type type_of(const struct rt_io *io)
{
    return (struct oip_type){.is_bytes = io->kind == RT_IO_STRING, .dtype = io->dtype};
}

static struct shape shape_of(const struct rt_io *io)
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

/* All but None, which has no entry in the protocol. */
static enum status describe(struct arena *arena, const struct rt_method *method, bool is_input,
                            struct model_io **out_ios, uint32_t *out_count, struct error *err)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    struct model_io *ios = arena_array(arena, count, sizeof(*ios));
    if (!ios) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io =
            is_input ? rt_method_input(method, i) : rt_method_result(method, i);
        if (io->kind != RT_IO_NONE) {
            ios[used++] = (struct model_io){
                .index = i,
                .kind = io->kind,
                .io = io,
                .meta = {.name = io->name,
                         .type = type_of(io),
                         .shape = shape_of(io),
                         .is_optional = io->is_fixed},
            };
        }
    }
    *out_ios = ios;
    *out_count = used;
    return ST_OK;
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
    return (struct call_io){
        .kind = kinds[io->kind],
        .dtype = io->dtype,
        .shape = io->kind == RT_IO_TENSOR ? shape_of(io) : (struct shape){.rank = 0},
        .bounds = io->shape,
        .fixed = print_fixed(arena, io),
    };
}

static enum status describe_call(struct arena *arena, const struct rt_method *method,
                                 struct call_method *out, struct error *err)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct call_io *ios = arena_array(arena, (size_t)inputs + results, sizeof(*ios));
    if (!ios) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        ios[i] = io_of(arena, rt_method_input(method, i));
    }
    for (uint32_t i = 0; i < results; i++) {
        ios[inputs + i] = io_of(arena, rt_method_result(method, i));
    }
    *out = (struct call_method){&rt_method_signature(method)->structure, ios, ios + inputs, inputs,
                                results};
    return ST_OK;
}

/* Shapes that a call may have, for those who have none of their own. */
static enum status choose_example(struct model *model, struct error *err)
{
    uint32_t count = rt_method_input_count(model->method);
    struct shape *shapes = arena_array(&model->arena, count, sizeof(*shapes));
    struct error ignored;
    if (!shapes) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    if (rt_method_failure(model->method) ||
        rt_example_shapes(model->method, NULL, shapes, &ignored) != ST_OK) {
        return ST_OK;
    }
    model->example = shapes;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct model_io *io = &model->inputs[i];
        bool is_dynamic = rt_method_input(model->method, io->index)->dynamic_dims != 0;
        model->inputs[i].example = is_dynamic ? &shapes[io->index] : NULL;
    }
    return ST_OK;
}

enum status model_describe(struct model *model, struct rt_method *method,
                           const struct hal_device *device, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model_state(model) == MODEL_LOADING && !model->method);
    struct arena *arena = &model->arena;
    const char *name = rt_method_name(method);
    model->program = rt_program_ref(rt_method_program(method));
    model->method = method;
    model->method_name = arena_strdup(arena, name, strlen(name));
    uint32_t steps = rt_pipeline_step_count(method);
    model->steps_before = arena_array(arena, steps, sizeof(*model->steps_before));
    if (!model->steps_before || !model->method_name) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    model->step_count = steps;
    TRY(describe(arena, method, true, &model->inputs, &model->input_count, err));
    TRY(describe(arena, method, false, &model->outputs, &model->output_count, err));
    TRY(describe_call(arena, method, &model->call, err));
    model->placement = placement_print(arena, device, method);
    return choose_example(model, err);
}
