/* SPDX-License-Identifier: MIT */
/* What clients see of a program's methods: inputs, outputs, structure, constants, placement. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/example.h"
#include "runtime/program/signature.h"
#include "server/model_priv.h"
#include "server/placement.h"
#include "server/route.h"

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
static enum status describe(struct models *models, const struct rt_method *method, bool is_input,
                            struct model_io **out_ios, uint32_t *out_count, struct error *err)
{
    uint32_t count = is_input ? rt_method_input_count(method) : rt_method_result_count(method);
    struct model_io *ios = arena_array(&models->arena, count, sizeof(*ios));
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

static struct call_slot slot_of(struct arena *arena, const struct rt_io *io)
{
    static const enum call_kind kinds[] = {
        [RT_IO_NONE] = CALL_NONE,    [RT_IO_TENSOR] = CALL_TENSOR, [RT_IO_INT] = CALL_SCALAR,
        [RT_IO_FLOAT] = CALL_SCALAR, [RT_IO_BOOL] = CALL_SCALAR,   [RT_IO_STRING] = CALL_STRING,
    };
    return (struct call_slot){
        .kind = kinds[io->kind],
        .dtype = io->dtype,
        .shape = io->kind == RT_IO_TENSOR ? shape_of(io) : (struct shape){.rank = 0},
        .bounds = io->shape,
        .fixed = print_fixed(arena, io),
    };
}

static enum status describe_call(struct models *models, const struct rt_method *method,
                                 struct call_method *out, struct error *err)
{
    struct arena *arena = &models->arena;
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct call_slot *slots = arena_array(arena, (size_t)inputs + results, sizeof(*slots));
    if (!slots) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    for (uint32_t i = 0; i < inputs; i++) {
        slots[i] = slot_of(arena, rt_method_input(method, i));
    }
    for (uint32_t i = 0; i < results; i++) {
        slots[inputs + i] = slot_of(arena, rt_method_result(method, i));
    }
    *out = (struct call_method){&rt_method_signature(method)->structure, slots, slots + inputs,
                                inputs, results};
    return ST_OK;
}

/* Shapes that a call may have, for those who have none of their own. */
static enum status choose_example(struct models *models, struct model *model, struct error *err)
{
    uint32_t count = rt_method_input_count(model->method);
    struct shape *shapes = arena_array(&models->arena, count, sizeof(*shapes));
    struct error ignored;
    if (!shapes) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    if (!model_is_ready(model) ||
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

static enum status add_method(struct models *models, struct span file, struct span name,
                              uint32_t version, struct rt_method *method, struct error *err)
{
    struct model *model;
    TRY(models_add(models, file, name, version, &model, err));
    model->program = rt_program_ref(rt_method_program(method));
    model->method = method;
    model->step_count = rt_pipeline_step_count(method);
    model->steps_before =
        arena_array(&models->arena, model->step_count, sizeof(*model->steps_before));
    if (!model->steps_before) {
        return error_set(err, ST_EXHAUSTED, "model description: out of memory");
    }
    const struct error *failure = rt_method_failure(method);
    if (failure) {
        model_fail(model, failure);
    }
    TRY(describe(models, method, true, &model->inputs, &model->input_count, err));
    TRY(describe(models, method, false, &model->outputs, &model->output_count, err));
    TRY(describe_call(models, method, &model->call, err));
    return choose_example(models, model, err);
}

/* ---- constant methods ------------------------------------------------------------------------ */

/* A longer value is left out: calling the method gives it. */
#define CONSTANT_TEXT_MAX 4096
#define CONSTANTS_TEXT_MAX (256 << 10)

/* The value of a method without inputs whose results are known; false: it is none, or too long. */
static bool print_constant(struct arena *arena, const struct model *model, struct buf *out)
{
    const struct call_method *call = &model->call;
    struct call_result *results = arena_array(arena, call->result_count, sizeof(*results));
    if (!results || call->input_count > 0 || call->result_count == 0) {
        return false;
    }
    for (uint32_t i = 0; i < call->result_count; i++) {
        results[i].shape = call->results[i].shape;
        if (!rt_method_constant_result(model->method, i, &results[i].bytes) ||
            results[i].bytes.len > CONSTANT_TEXT_MAX) {
            return false;
        }
    }
    call_print_value(call, results, out);
    return !buf_failed(out);
}

/* {"get_width":10} of a program whose methods are the last |count| models; NULL without any. */
static const char *print_constants(struct models *models, uint32_t count)
{
    struct buf all, one;
    buf_init(&all, CONSTANTS_TEXT_MAX);
    buf_init(&one, CONSTANT_TEXT_MAX);
    for (uint32_t i = models->item_count - count; i < models->item_count; i++) {
        buf_reset(&one);
        if (print_constant(&models->arena, &models->items[i], &one)) {
            buf_add_char(&all, all.len ? ',' : '{');
            json_print_string(&all, span_str(rt_method_name(models->items[i].method)));
            buf_add_char(&all, ':');
            buf_add(&all, one.ptr, one.len);
        }
    }
    buf_add_char(&all, '}');
    const char *text =
        all.len > 1 && !buf_failed(&all) ? arena_strdup(&models->arena, all.ptr, all.len) : NULL;
    buf_fini(&one);
    buf_fini(&all);
    return text;
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* "NAME.METHOD". */
static struct span name_method(struct span file, const struct rt_method *method,
                               char text[2 * ROUTE_MODEL_MAX])
{
    int len =
        snprintf(text, 2 * ROUTE_MODEL_MAX, "%.*s.%s", SPAN_FMT(file), rt_method_name(method));
    must(len > 0);
    return span_of(text, (size_t)len < 2 * ROUTE_MODEL_MAX ? (size_t)len : 2 * ROUTE_MODEL_MAX - 1);
}

/* The method has the file's name, and its own for an alias, if that is an address at all. */
static enum status add_default(struct models *models, struct span file, uint32_t version,
                               struct rt_method *method, struct error *err)
{
    char text[2 * ROUTE_MODEL_MAX];
    struct span alias = name_method(file, method, text);
    TRY(add_method(models, file, file, version, method, err));
    if (!rt_method_has_own_work(method) || !model_name_is_valid(alias)) {
        return ST_OK;
    }
    struct model *model = &models->items[models->item_count - 1];
    model->alias = arena_strdup(&models->arena, alias.ptr, alias.len);
    return model->alias ? ST_OK : error_set(err, ST_EXHAUSTED, "models: out of memory");
}

enum status models_add_program(struct models *models, struct span file, uint32_t version,
                               struct rt_program *program, struct error *err)
{
    uint32_t count = rt_program_method_count(program), first = models->item_count;
    const struct rt_method *by_default = rt_program_default_method(program);
    for (uint32_t i = 0; i < count; i++) {
        char text[2 * ROUTE_MODEL_MAX];
        struct rt_method *method = rt_program_method(program, i);
        if (method == by_default) {
            TRY(add_default(models, file, version, method, err));
        } else {
            TRY(add_method(models, file, name_method(file, method, text), version, method, err));
        }
    }
    const char *constants = print_constants(models, count);
    for (uint32_t i = first; i < models->item_count; i++) {
        models->items[i].constants = constants;
        models->items[i].placement =
            placement_print(&models->arena, models->device, models->items[i].method);
    }
    return ST_OK;
}
