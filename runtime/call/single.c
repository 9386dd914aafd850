/* SPDX-License-Identifier: MIT */
/* A call of a method that is one block: one plan, one submission. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/call/inside.h"
#include "runtime/call/messages.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"

/* ---- preparing ------------------------------------------------------------------------------- */

/* Finds the form of the block for the orders of memory in which the call's tensors are. */
static enum status choose_form(struct rt_invocation *inv, enum rt_prepare_mode mode,
                               struct error *err)
{
    inv->form = inv->entry;
    if (inv->orders == 0) {
        return ST_OK;
    }
    TRY(rt_orders_form(inv->method, inv->entry, inv->orders, mode == RT_PREPARE_ALL, &inv->form,
                       err));
    return inv->form ? ST_OK : error_set(err, ST_WOULD_PLAN, "%s", status_text(ST_WOULD_PLAN));
}

/* A form that clients chose takes the place of others. */
static enum status find_plan(struct rt_invocation *inv, enum rt_prepare_mode mode,
                             struct error *err)
{
    TRY(rt_invocation_find_plan(inv, inv->form, mode, &inv->plan, err));
    if (inv->orders != 0 && mode == RT_PREPARE_ALL) {
        rt_orders_trim(inv->method, inv->form, RT_BLOCK_PLANS_BYTES_MAX);
    }
    return ST_OK;
}

/* The plan of the call. The call's memory must fit the pool. */
static enum status plan_block(struct rt_invocation *inv, enum rt_prepare_mode mode,
                              struct error *err)
{
    size_t bytes, size = hal_pool_size(inv->run_pool);
    if (inv->plan || rt_invocation_recall_plan(inv)) {
        return ST_OK;
    }
    TRY(choose_form(inv, mode, err));
    TRY(find_plan(inv, mode, err));
    if (!add_size(inv->bytes, rt_invocation_planned_bytes(inv), &bytes) || bytes > size) {
        return error_set(err, ST_TOO_LARGE,
                         "the call takes %zu bytes, the memory for requests has %zu", bytes, size);
    }
    return ST_OK;
}

/* Uses the caller's memory if there is enough of it, or that of a kept result, otherwise memory of
 * the pool. */
static enum status place_result(struct rt_invocation *inv, uint32_t index, struct error *err)
{
    struct hal_binding *bound = &inv->bound[index];
    if (!bound->buffer) {
        return rt_invocation_take(inv, inv->run_pool, inv->plan->results[index].bytes, bound, err);
    }
    bound->length = inv->plan->results[index].bytes;
    if (!in_range(bound->offset, bound->length, hal_buffer_size(bound->buffer))) {
        return error_set(err, ST_INVALID, "%s needs %zu bytes at %zu, its memory has %zu",
                         inv->method->results[index].label, bound->length, bound->offset,
                         hal_buffer_size(bound->buffer));
    }
    return ST_OK;
}

/* The order of memory of result |index|; NULL: row-major. */
static const uint8_t *order_of(const struct rt_invocation *inv, uint32_t index)
{
    const struct rt_io *io = &inv->method->results[index];
    return inv->orders & io->order_bit ? io->order : NULL;
}

static enum status place_results(struct rt_invocation *inv, struct error *err)
{
    const struct rt_plan *plan = inv->plan;
    for (uint32_t i = 0; i < inv->method->result_count; i++) {
        if (inv->method->results[i].kind != RT_IO_TENSOR) {
            rt_invocation_give_scalar(inv, i, rt_messages_number(plan, i, inv->words));
            continue;
        }
        TRY(place_result(inv, i, err));
        const uint8_t *base = hal_buffer_map(inv->bound[i].buffer);
        inv->results[i].shape = plan->results[i].shape;
        inv->results[i].order = order_of(inv, i);
        inv->results[i].bytes =
            span_of(base ? base + inv->bound[i].offset : NULL, plan->results[i].bytes);
    }
    return rt_invocation_place_states(inv, err);
}

/* ---- running --------------------------------------------------------------------------------- */

static void fill_slots(struct rt_invocation *inv)
{
    uint32_t inputs = inv->method->input_count;
    inv->slots[RT_SLOT_WORKSPACE] =
        (struct hal_binding){.buffer = inv->workspace, .length = inv->plan->workspace_bytes};
    for (uint32_t i = 0; i < inputs; i++) {
        inv->slots[RT_SLOT_INPUT + i] = inv->inputs[i].binding;
    }
    for (uint32_t i = 0; i < inv->method->result_count; i++) {
        inv->slots[rt_slot_result(inv->plan->input_count, i)] = inv->bound[i];
    }
}

/* On a worker, or on the submitting thread. */
static void on_reached(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_RUNNING);
    if (status != ST_OK) {
        rt_invocation_replace_semaphore(inv);
    }
    rt_invocation_end(inv, status);
}

static enum status submit_commands(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                                   enum hal_caller caller)
{
    fill_slots(inv);
    rt_messages_put(inv->plan, inv->words, inv->workspace ? hal_buffer_map(inv->workspace) : NULL);
    TRY(rt_invocation_fill_states(inv));
    struct hal_profile *spans;
    TRY(rt_profile_note(inv->profile, inv->form, inv->plan, &spans, &inv->error));
    struct hal_submission submission = {
        .command = inv->plan->command,
        .slots = inv->slots,
        .slot_count = rt_slot_result(inv->plan->input_count, inv->plan->result_count),
        .wait_count = inv->wait_count,
        .signal = {{semaphore, ++inv->timepoint}},
        .signal_count = 1,
        .caller = caller,
        .share = inv->method->share,
        .weight = inv->method->weight,
        .cancel = inv->cancel,
        .fault = &inv->fault,
        .keeps_slots = inv->method->poison_workspaces,
        .profile = spans,
    };
    memcpy(submission.wait, inv->waits, inv->wait_count * sizeof(inv->waits[0]));
    return hal_queue_submit(inv->method->device, &submission, &inv->error);
}

static enum status start_single(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                                enum hal_caller caller)
{
    TRY(submit_commands(inv, semaphore, caller));
    rt_invocation_await(inv, semaphore, inv->timepoint, on_reached);
    return ST_OK;
}

static bool find_result(const struct rt_invocation *inv, uint32_t index,
                        struct rt_buffer_desc *out_desc)
{
    const struct rt_io *io = rt_method_result(inv->method, index);
    const struct hal_binding *bound = &inv->bound[index];
    if (io->kind != RT_IO_TENSOR) {
        return true;
    }
    *out_desc = (struct rt_buffer_desc){
        .dtype = io->dtype,
        .shape = inv->results[index].shape,
        .buffer = bound->buffer,
        .offset = bound->offset,
        .has_strides = order_of(inv, index) != NULL,
    };
    shape_order_strides(&out_desc->shape, order_of(inv, index), out_desc->strides);
    return bound->buffer != NULL || inv->phase == RT_PHASE_DONE;
}

const struct rt_callable rt_single_callable = {
    .platform = RT_PLATFORM_FILE,
    .has_own_work = true,
    .is_one_submission = true,
    .fini = rt_invocation_free_kept,
    .measure = rt_results_measure,
    .plan = plan_block,
    .place = place_results,
    .start = start_single,
    .find_result = find_result,
};
