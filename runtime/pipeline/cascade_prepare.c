/* SPDX-License-Identifier: MIT */
/*
 * From invocations to a cascade that can be submitted. Edges become bindings step by step. Each
 * step gets its memory before the next one is looked at, because its results feed later steps. A
 * step is late if it cannot be submitted before others are over: the size of an input is unknown,
 * there are more producers than a submission can wait for, or an earlier step uses the same state.
 * Except in the first case, a late step has its memory by then like any other.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/pipeline/cascade_priv.h"
#include "runtime/pipeline/cascade_sizes.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/oracle.h"

/* ---- what fits ------------------------------------------------------------------------------- */

enum status rt_cascade_verify(const struct rt_cascade_layout *layout, struct error *err)
{
    if (layout->step_count == 0 || layout->step_count > RT_CASCADE_STEPS_MAX ||
        layout->edge_count > RT_CASCADE_EDGES_MAX) {
        return error_set(
            err, ST_INVALID, "expected 1 to %d steps and at most %d edges, got %u and %u",
            RT_CASCADE_STEPS_MAX, RT_CASCADE_EDGES_MAX, layout->step_count, layout->edge_count);
    }
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        must(edge->to < layout->step_count);
        if (edge->from >= edge->to) {
            return error_set(err, ST_INVALID, "step %u: takes a result of step %u, which %s",
                             edge->to, edge->from,
                             edge->from == edge->to ? "is itself" : "comes later");
        }
    }
    return ST_OK;
}

static bool dim_fits(const struct rt_io *result, const struct rt_io *input, uint8_t d)
{
    bool may_vary = rt_io_is_dynamic(result, d), takes_any = rt_io_is_dynamic(input, d);
    int64_t given = result->shape.dims[d], wanted = input->shape.dims[d];
    return takes_any ? may_vary || given <= wanted : (may_vary ? wanted <= given : wanted == given);
}

enum status rt_cascade_verify_edge(const struct rt_io *result, const struct rt_io *input,
                                   struct error *err)
{
    bool fits = result->kind == input->kind && result->kind != RT_IO_NONE;
    if (fits && result->kind == RT_IO_TENSOR) {
        fits = result->dtype == input->dtype && result->shape.rank == input->shape.rank;
        for (uint8_t d = 0; fits && d < result->shape.rank; d++) {
            fits = dim_fits(result, input, d);
        }
    }
    if (fits) {
        return ST_OK;
    }
    struct buf text;
    buf_init(&text, 512);
    rt_io_print(result, &text);
    buf_add_char(&text, '\0');
    rt_io_refuse(input, buf_failed(&text) ? "" : (const char *)text.ptr, err);
    buf_fini(&text);
    return err->code;
}

/* ---- preparing ------------------------------------------------------------------------------- */

static uint32_t count_producers(const struct rt_cascade_layout *layout, uint32_t step)
{
    uint64_t seen = 0;
    _Static_assert(RT_CASCADE_STEPS_MAX <= 64, "a bit for each step");
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        seen |= layout->edges[i].to == step ? (uint64_t)1 << layout->edges[i].from : 0;
    }
    return (uint32_t)__builtin_popcountll(seen);
}

static bool has_consumer(const struct rt_cascade *cascade, uint32_t index)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        if (layout->edges[i].from == index) {
            return true;
        }
    }
    return false;
}

static enum status connect_scalar(struct rt_invocation *from, uint32_t output,
                                  struct rt_invocation *to, uint32_t input, struct error *err)
{
    const struct rt_result *result = rt_invocation_result(from, output);
    const void *bytes = result->bytes.ptr;
    switch (rt_method_result(from->method, output)->kind) {
    case RT_IO_INT:
        return rt_invocation_int(to, input, *(const int64_t *)bytes, err);
    case RT_IO_FLOAT:
        return rt_invocation_float(to, input, *(const double *)bytes, err);
    case RT_IO_BOOL:
        return rt_invocation_bool(to, input, *(const bool *)bytes, err);
    case RT_IO_STRING:
        return rt_invocation_string(to, input, result->bytes, err);
    default:
        return error_set(err, ST_INVALID, "a result that is nothing cannot be an input");
    }
}

static enum status name_edge(const struct rt_invocation *to, const struct rt_cascade_edge *edge,
                             struct error *err)
{
    return edge->place ? error_prefix(err, "%s: ", edge->place)
                       : error_prefix(err, "%s: ", rt_invocation_label(to, edge->input));
}

static enum status connect(struct rt_cascade *cascade, const struct rt_cascade_edge *edge,
                           struct error *err)
{
    struct rt_invocation *from = cascade->steps[edge->from].invocation;
    struct rt_invocation *to = cascade->steps[edge->to].invocation;
    const struct rt_io *result = rt_method_result(from->method, edge->output);
    struct rt_buffer_desc given = {0};
    bool is_known = rt_invocation_find_result(from, edge->output, &given);
    enum status status;
    void *nothing;
    must(is_known);
    if (edge->shape && result->kind == RT_IO_TENSOR && !shape_equal(edge->shape, &given.shape)) {
        char expected[SHAPE_TEXT_MAX], got[SHAPE_TEXT_MAX];
        error_set(err, ST_INVALID, "expected shape %.100s, got %.100s",
                  shape_print(edge->shape, expected), shape_print(&given.shape, got));
        return name_edge(to, edge, err);
    }
    if (result->kind != RT_IO_TENSOR) {
        status = connect_scalar(from, edge->output, to, edge->input, err);
    } else if (given.buffer) {
        status = rt_invocation_bind_input(to, edge->input, &given, err);
    } else {
        status = rt_invocation_input(to, edge->input, given.dtype, &given.shape, &nothing, err);
    }
    return status == ST_OK ? ST_OK : name_edge(to, edge, err);
}

static enum status connect_all(struct rt_cascade *cascade, uint32_t index, struct error *err)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        if (layout->edges[i].to == index) {
            TRY(connect(cascade, &layout->edges[i], err));
        }
    }
    cascade->steps[index].given_bytes = rt_invocation_bytes(cascade->steps[index].invocation);
    cascade->steps[index].is_connected = true;
    return ST_OK;
}

static uint32_t count_earlier_of_state(const struct rt_cascade *cascade, uint32_t index)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < index; i++) {
        count += rt_cascade_share_state(cascade, i, index);
    }
    return count;
}

/* Is the size of an input still unknown? Counts the steps that this one would have to follow. */
static bool check_late(struct rt_cascade *cascade, uint32_t index)
{
    const struct rt_cascade_layout *layout = cascade->layout;
    struct cascade_step *step = &cascade->steps[index];
    struct rt_buffer_desc desc;
    uint32_t count = count_earlier_of_state(cascade, index);
    step->is_late = false;
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        const struct cascade_step *from = &cascade->steps[edge->from];
        if (edge->to == index) {
            count++;
            step->is_late |= !from->is_prepared ||
                             !rt_invocation_find_result(from->invocation, edge->output, &desc);
        }
    }
    atomic_store_explicit(&step->pending, count, memory_order_relaxed);
    return step->is_late;
}

/* The status of a failed producer becomes this step's. ST_OK: none has failed. */
static enum status inherit(struct rt_cascade *cascade, uint32_t index)
{
    struct cascade_step *step = &cascade->steps[index];
    const struct cascade_step *from = &cascade->steps[rt_cascade_failed_producer(cascade, index)];
    if (from != step) {
        step->status = from->status;
        step->error = from->error;
    }
    return step->status;
}

static enum status prepare_memory(struct rt_cascade *cascade, uint32_t index,
                                  enum rt_prepare_mode mode, struct error *err)
{
    struct cascade_step *step = &cascade->steps[index];
    struct rt_invocation *inv = step->invocation;
    bool is_fed_on = has_consumer(cascade, index);
    TRY(rt_invocation_prepare(inv, mode, err));
    if (inv->method->callable->feed && is_fed_on) {
        TRY(inv->method->callable->feed(inv, err));
    }
    if (is_fed_on) {
        TRY(rt_invocation_timepoint(inv, &step->end, err));
        hal_semaphore_ref(step->end.semaphore);
    }
    step->is_prepared = true;
    return ST_OK;
}

static enum status prepare_step(struct rt_cascade *cascade, uint32_t index,
                                enum rt_prepare_mode mode, struct error *err)
{
    struct cascade_step *step = &cascade->steps[index];
    if (step->status != ST_OK || inherit(cascade, index) != ST_OK ||
        (!step->is_connected && check_late(cascade, index))) {
        return ST_OK;
    }
    if (!step->is_connected) {
        TRY(connect_all(cascade, index, err));
    }
    TRY(prepare_memory(cascade, index, mode, err));
    step->is_late = count_producers(cascade->layout, index) > RT_CASCADE_WAITS_MAX ||
                    count_earlier_of_state(cascade, index) > 0;
    return ST_OK;
}

enum status rt_cascade_prepare_late(struct rt_cascade *cascade, uint32_t index)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    struct cascade_step *step = &cascade->steps[index];
    if (inherit(cascade, index) != ST_OK) {
        return step->status;
    }
    if (atomic_load_explicit(cascade->cancel, memory_order_relaxed)) {
        return error_set(&step->error, ST_CANCELLED, "%s", status_text(ST_CANCELLED));
    }
    if (step->is_prepared) {
        return ST_OK;
    }
    TRY(connect_all(cascade, index, &step->error));
    return prepare_memory(cascade, index, RT_PREPARE_ALL, &step->error);
}

enum status rt_cascade_prepare(struct rt_cascade *cascade, enum rt_prepare_mode mode,
                               uint32_t *out_step, struct error *err)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    for (; cascade->prepared < cascade->layout->step_count; cascade->prepared++) {
        *out_step = cascade->prepared;
        enum status status = prepare_step(cascade, cascade->prepared, mode, err);
        if (status == ST_OK) {
            continue;
        }
        if (!cascade->is_partial || status == ST_EXHAUSTED || status == ST_WOULD_PLAN) {
            return status;
        }
        rt_cascade_fail_step(cascade, cascade->prepared, err);
    }
    return ST_OK;
}

bool rt_cascade_is_prepared(const struct rt_cascade *cascade, uint32_t step)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    return cascade->steps[step].is_prepared;
}

/* ---- what it takes --------------------------------------------------------------------------- */

static bool give_shapes(const void *arg, uint32_t index, const struct shape **shapes)
{
    const struct rt_cascade *cascade;
    OBJ_CAST(cascade, arg, RT_CASCADE_MAGIC);
    const struct rt_invocation *inv = cascade->steps[index].invocation;
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        bool is_tensor = rt_method_input(inv->method, i)->kind == RT_IO_TENSOR;
        shapes[i] = is_tensor && inv->inputs[i].is_given ? &inv->inputs[i].shape : NULL;
    }
    return true;
}

size_t rt_cascade_demand(const struct rt_cascade *cascade)
{
    OBJ_CHECK(cascade, RT_CASCADE_MAGIC);
    struct rt_method *methods[RT_CASCADE_STEPS_MAX];
    struct rt_cascade_sizes sizes = {
        .layout = cascade->layout,
        .methods = methods,
        .given = give_shapes,
        .arg = cascade,
        .with_bytes = true,
    };
    struct error err;
    size_t bytes = 0;
    for (uint32_t i = 0; i < cascade->layout->step_count; i++) {
        const struct cascade_step *step = &cascade->steps[i];
        bool takes_place = step->status == ST_OK && step->invocation;
        methods[i] = takes_place ? step->invocation->method : NULL;
        if (takes_place) {
            bytes += step->is_prepared ? step->given_bytes : rt_invocation_bytes(step->invocation);
        }
    }
    if (rt_cascade_measure(&sizes, &err) == ST_OK && !add_size(bytes, sizes.bytes, &bytes)) {
        bytes = SIZE_MAX;
    }
    rt_cascade_sizes_fini(&sizes);
    return bytes;
}
