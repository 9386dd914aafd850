/* SPDX-License-Identifier: MIT */
/* Preparing a call for submission: the plan for its dims, then memory for its results, its mutable
 * buffers and its workspace, either all of it or none. See invocation.h. */
#include "config.h"

#include "runtime/call/inside.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"

/* ---- results --------------------------------------------------------------------------------- */

void rt_invocation_give_scalar(struct rt_invocation *inv, uint32_t index, int64_t number)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_io *io = &inv->method->results[index];
    struct rt_result *result = &inv->results[index];
    int64_t *kept = &inv->numbers[index];
    *kept = number;
    result->shape = io->shape;
    result->order = NULL;
    switch (io->kind) {
    case RT_IO_INT:
    case RT_IO_FLOAT:
        if (io->is_fixed && io->kind == RT_IO_FLOAT) {
            memcpy(kept, &io->value.f, sizeof(io->value.f));
        }
        result->bytes = span_of(kept, sizeof(*kept));
        break;
    case RT_IO_BOOL:
        *(bool *)kept = io->is_fixed ? io->value.b : number != 0;
        result->bytes = span_of(kept, sizeof(bool));
        break;
    case RT_IO_STRING:
        result->bytes = io->value.s;
        break;
    default:
        result->bytes = span_of(NULL, 0);
        break;
    }
}

enum status rt_invocation_bind_result(struct rt_invocation *inv, uint32_t index,
                                      struct hal_buffer *buffer, size_t offset, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_io *io = rt_method_result(inv->method, index);
    const struct hal_device *device = inv->method->device;
    must(inv->phase == RT_PHASE_FILLING);
    rt_invocation_forget(inv);
    if (io->kind != RT_IO_TENSOR || inv->bound[index].buffer) {
        return error_set(err, ST_INVALID, "%s %s", io->label,
                         io->kind == RT_IO_TENSOR ? "has memory already" : "is not a tensor");
    }
    size_t element = dtype_bytes(io->dtype), align = hal_device_props(device)->offset_align;
    if (hal_buffer_device(buffer) != device || offset % element != 0 || offset % align != 0) {
        return error_set(err, ST_UNSUPPORTED, "%s: memory of another device, or at an odd offset",
                         io->label);
    }
    inv->bound[index] = (struct hal_binding){.buffer = hal_buffer_ref(buffer), .offset = offset};
    return ST_OK;
}

void rt_invocation_prefer_order(struct rt_invocation *inv, uint32_t index)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FILLING && !inv->plan);
    rt_invocation_forget(inv);
    inv->orders |= rt_method_result(inv->method, index)->order_bit;
}

void rt_invocation_drop_results(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    for (uint32_t i = 0; i < inv->bound_count; i++) {
        hal_buffer_unref(inv->bound[i].buffer);
        inv->bound[i] = (struct hal_binding){0};
    }
}

void rt_invocation_unbind_results(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FILLING);
    rt_invocation_forget(inv);
    rt_invocation_drop_results(inv);
}

enum status rt_invocation_place_workspace(struct rt_invocation *inv, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_plan *plan = inv->plan;
    if (!plan || plan->workspace_bytes == 0 || inv->workspace) {
        return ST_OK; /* saves a lock in the smallest methods */
    }
    TRY(rt_plan_has_words(plan)
            ? hal_pool_reserve(inv->run_pool, plan->workspace_bytes, &inv->workspace, err)
            : hal_pool_reserve_transient(inv->run_pool, plan->workspace_bytes, &inv->workspace,
                                         err));
    inv->bytes += plan->workspace_bytes;
    return ST_OK;
}

enum status rt_invocation_move_results(struct rt_invocation *inv, struct hal_pool *pool,
                                       struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase >= RT_PHASE_PREPARED);
    for (uint32_t i = 0; i < inv->method->result_count; i++) {
        if (inv->bound[i].buffer && inv->method->results[i].kind == RT_IO_TENSOR) {
            TRY(hal_pool_move(inv->bound[i].buffer, pool, err));
        }
    }
    const struct rt_callable *callable = inv->method->callable;
    return callable->move_results ? callable->move_results(inv, pool, err) : ST_OK;
}

const struct rt_result *rt_invocation_result(const struct rt_invocation *inv, uint32_t index)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase >= RT_PHASE_PREPARED && index < inv->method->result_count);
    return &inv->results[index];
}

/* Gives back what prepare took, the caller's memory for results included; the plan stays. */
static void release_memory(struct rt_invocation *inv)
{
    rt_invocation_drop_results(inv);
    hal_buffer_unref(inv->workspace);
    inv->workspace = NULL;
    if (inv->method->callable->release) {
        inv->method->callable->release(inv);
    }
}

void rt_invocation_release_results(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    release_memory(inv);
    rt_plan_unref(inv->plan);
    inv->plan = NULL;
}

/* ---- preparing ------------------------------------------------------------------------------- */

static enum status check_complete(const struct rt_invocation *inv, struct error *err)
{
    for (uint32_t i = 0; i < inv->method->input_count; i++) {
        const struct rt_io *io = &inv->method->inputs[i];
        if (io->kind == RT_IO_TENSOR && !inv->inputs[i].is_given) {
            return rt_io_missing(io, rt_invocation_label(inv, i), err);
        }
    }
    return ST_OK;
}

enum status rt_invocation_find_plan(struct rt_invocation *inv, struct rt_block *block,
                                    enum rt_prepare_mode mode, struct rt_plan **out_plan,
                                    struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    if (mode == RT_PREPARE_ALL) {
        return rt_block_plan(block, inv->given, inv->words, out_plan, err);
    }
    TRY(rt_block_find_plan(block, inv->given, inv->words, out_plan, err));
    return *out_plan ? ST_OK : error_set(err, ST_WOULD_PLAN, "%s", status_text(ST_WOULD_PLAN));
}

size_t rt_invocation_planned_bytes(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    uint32_t result = inv->method->result_count;
    size_t bytes = inv->plan->workspace_bytes;
    for (uint32_t i = 0; i < result; i++) {
        /* Steps that run as one write into the memory of their own calls and states. */
        bool is_ours = inv->method->results[i].kind == RT_IO_TENSOR && !inv->steps;
        bytes += is_ours && !inv->bound[i].buffer ? inv->plan->results[i].bytes : 0;
    }
    for (uint32_t i = 0; !inv->state && i < inv->method->state_count; i++) {
        bytes += inv->method->states[i].is_written ? inv->plan->results[result++].bytes : 0;
    }
    return bytes;
}

static enum status plan(struct rt_invocation *inv, enum rt_prepare_mode mode, struct error *err)
{
    TRY(check_complete(inv, err));
    return inv->method->callable->plan(inv, mode, err);
}

enum status rt_invocation_plan(struct rt_invocation *inv, enum rt_prepare_mode mode,
                               struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FILLING);
    TRY(plan(inv, mode, err));
    if (inv->method->callable->is_planned_in_place) {
        inv->phase = RT_PHASE_PREPARED;
    }
    return ST_OK;
}

bool rt_invocation_find_result(const struct rt_invocation *inv, uint32_t index,
                               struct rt_buffer_desc *out_desc)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    return inv->method->callable->find_result(inv, index, out_desc);
}

void rt_invocation_unprepare(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    release_memory(inv);
    inv->bytes = inv->input_bytes;
    inv->phase = RT_PHASE_FILLING;
}

enum status rt_invocation_prepare_results(struct rt_invocation *inv, enum rt_prepare_mode mode,
                                          struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    if (inv->phase == RT_PHASE_PREPARED) {
        return ST_OK;
    }
    must(inv->phase == RT_PHASE_FILLING);
    inv->input_bytes = inv->bytes;
    enum status status = plan(inv, mode, err);
    if (status == ST_WOULD_PLAN) {
        return status;
    }
    if (status != ST_OK || inv->method->callable->place(inv, err) != ST_OK) {
        rt_invocation_unprepare(inv);
        return err->code;
    }
    inv->phase = RT_PHASE_PREPARED;
    return ST_OK;
}

enum status rt_invocation_prepare(struct rt_invocation *inv, enum rt_prepare_mode mode,
                                  struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    TRY(rt_invocation_prepare_results(inv, mode, err));
    if (rt_invocation_place_workspace(inv, err) != ST_OK) {
        rt_invocation_unprepare(inv);
        return err->code;
    }
    return ST_OK;
}

size_t rt_invocation_bytes(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_callable *callable = inv->method->callable;
    return inv->bytes + (callable->bytes ? callable->bytes(inv) : 0);
}

size_t rt_invocation_demand(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    size_t bytes;
    if (inv->plan) {
        return add_size(inv->bytes, rt_invocation_planned_bytes(inv), &bytes) ? bytes : SIZE_MAX;
    }
    uint32_t inputs = inv->method->input_count;
    uint32_t results = inv->method->result_count;
    struct rt_result_info *infos = calloc((size_t)results + 1, sizeof(*infos));
    const struct shape **shapes = calloc((size_t)inputs + 1, sizeof(struct shape *));
    struct error err;
    must(inv->phase == RT_PHASE_FILLING);
    for (uint32_t i = 0; shapes && i < inputs; i++) {
        shapes[i] = inv->inputs[i].is_given ? &inv->inputs[i].shape : NULL;
    }
    bool is_known = infos && shapes &&
                    rt_method_measure(inv->method, shapes, infos, &bytes, &err) == ST_OK &&
                    add_size(bytes, inv->bytes, &bytes);
    free(shapes);
    free(infos);
    return is_known ? bytes : rt_invocation_input_demand(inv);
}

size_t rt_invocation_input_demand(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    size_t bytes;
    return add_size(rt_invocation_bytes(inv), inv->refused_bytes, &bytes) ? bytes : SIZE_MAX;
}
