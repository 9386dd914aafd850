/* SPDX-License-Identifier: MIT */
/*
 * Calls: see invocation.h. One allocation holds an invocation and all its arrays; it goes back to
 * its method's list of free ones, with its semaphore, whose value counts the calls it has carried.
 */
#include "config.h"

#include "runtime/vm/invocation_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"

/* Free invocations that a method keeps; more are given back to the heap. */
#define FREE_MAX 256

/* ---- life ------------------------------------------------------------------------------------ */

static size_t take(size_t *at, size_t count, size_t size)
{
    size_t offset = align_up(*at, 16);
    *at = offset + count * size;
    return offset;
}

static struct rt_invocation *allocate(struct rt_method *method)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    struct rt_invocation *inv;
    size_t end = sizeof(*inv);
    size_t inputs_at = take(&end, inputs, sizeof(struct rt_bound_input));
    size_t shapes_at = take(&end, inputs, sizeof(struct shape *));
    uint32_t slots = rt_slot_result(inputs, results), conversion_slots = 2 * inputs;
    size_t slots_at =
        take(&end, slots > conversion_slots ? slots : conversion_slots, sizeof(struct hal_binding));
    size_t bound_at = take(&end, results, sizeof(struct hal_binding));
    size_t results_at = take(&end, results, sizeof(struct rt_result));
    size_t numbers_at = take(&end, results, sizeof(int64_t));
    inv = calloc(1, end);
    if (!inv) {
        return NULL;
    }
    char *base = (char *)inv;
    inv->magic = INVOCATION_MAGIC;
    inv->method = method;
    inv->inputs = (void *)(base + inputs_at);
    inv->shapes = (void *)(base + shapes_at);
    inv->slots = (void *)(base + slots_at);
    inv->bound = (void *)(base + bound_at);
    inv->results = (void *)(base + results_at);
    inv->numbers = (void *)(base + numbers_at);
    list_init(&inv->link);
    for (uint32_t i = 0; i < inputs; i++) {
        inv->shapes[i] = &inv->inputs[i].shape;
    }
    return inv;
}

void rt_invocation_destroy(struct list *link)
{
    struct rt_invocation *inv = LIST_ENTRY(link, struct rt_invocation, link);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_FREE);
    list_remove(&inv->link);
    hal_semaphore_unref(inv->semaphore);
    inv->magic = 0;
    free(inv);
}

static struct rt_invocation *recycle(struct rt_method *method)
{
    struct rt_invocation *inv = NULL;
    pthread_mutex_lock(&method->mutex);
    if (!list_is_empty(&method->invocations)) {
        inv = LIST_ENTRY(method->invocations.next, struct rt_invocation, link);
        list_remove(&inv->link);
        method->invocation_count--;
    }
    pthread_mutex_unlock(&method->mutex);
    return inv;
}

enum status rt_invocation_new(struct rt_method *method, struct hal_pool *pool,
                              struct rt_invocation **out_invocation, struct error *err)
{
    must(method->failure.code == ST_OK);
    struct rt_invocation *inv = recycle(method);
    if (!inv) {
        inv = allocate(method);
        if (!inv) {
            return error_set(err, ST_EXHAUSTED, "no memory for a call");
        }
        if (hal_semaphore_new(0, &inv->semaphore, err) != ST_OK) {
            free(inv);
            return err->code;
        }
    }
    rt_program_ref(method->program);
    inv->pool = pool;
    inv->step = STEP_FILLING;
    inv->bytes = 0;
    inv->conversion_count = 0;
    atomic_store_explicit(&inv->cancel, false, memory_order_relaxed);
    *out_invocation = inv;
    return ST_OK;
}

static void release_inputs(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        struct rt_bound_input *input = &inv->inputs[i];
        hal_buffer_unref(input->binding.buffer);
        hal_buffer_unref(input->source);
        input->binding = (struct hal_binding){0};
        input->source = NULL;
        input->is_given = false;
    }
    hal_buffer_unref(inv->arena);
    inv->arena = NULL;
}

static void release_results(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        hal_buffer_unref(inv->bound[i].buffer);
        inv->bound[i] = (struct hal_binding){0};
    }
    rt_plan_unref(inv->plan);
    inv->plan = NULL;
}

void rt_invocation_free(struct rt_invocation *inv)
{
    if (!inv) {
        return;
    }
    must(inv->magic == INVOCATION_MAGIC);
    must(inv->step != STEP_FREE && inv->step != STEP_RUNNING);
    struct rt_method *method = inv->method;
    struct rt_program *program = method->program;
    release_inputs(inv);
    release_results(inv);
    inv->step = STEP_FREE;
    pthread_mutex_lock(&method->mutex);
    bool keep = method->invocation_count < FREE_MAX;
    if (keep) {
        list_push_front(&method->invocations, &inv->link);
        method->invocation_count++;
    }
    pthread_mutex_unlock(&method->mutex);
    if (!keep) {
        rt_invocation_destroy(&inv->link);
    }
    rt_program_unref(program);
}

struct rt_method *rt_invocation_method(const struct rt_invocation *inv)
{
    return inv->method;
}

/* ---- results --------------------------------------------------------------------------------- */

static void describe_scalar(struct rt_invocation *inv, uint32_t index)
{
    const struct rt_io *io = rt_method_result(inv->method, index);
    struct rt_result *result = &inv->results[index];
    result->shape = io->shape;
    switch (io->kind) {
    case RT_IO_INT:
        inv->numbers[index] = inv->plan->results[index].number;
        result->bytes = span_of(&inv->numbers[index], sizeof(inv->numbers[index]));
        break;
    case RT_IO_FLOAT:
        result->bytes = span_of(&io->value.f, sizeof(io->value.f));
        break;
    case RT_IO_BOOL:
        result->bytes = span_of(&io->value.b, sizeof(io->value.b));
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
    const struct rt_io *io = rt_method_result(inv->method, index);
    const struct hal_device *device = inv->method->device;
    must(inv->step == STEP_FILLING);
    if (io->kind != RT_IO_TENSOR || inv->bound[index].buffer) {
        return error_set(err, ST_INVALID, "result '%s' %s", io->name,
                         io->kind == RT_IO_TENSOR ? "has memory already" : "is not a tensor");
    }
    size_t element = dtype_bytes(io->dtype), align = hal_device_props(device)->offset_align;
    if (hal_buffer_device(buffer) != device || offset % element != 0 || offset % align != 0) {
        return error_set(err, ST_UNSUPPORTED,
                         "result '%s': memory of another device, or at an odd offset", io->name);
    }
    inv->bound[index] = (struct hal_binding){.buffer = hal_buffer_ref(buffer), .offset = offset};
    return ST_OK;
}

/* The caller's memory if there is enough of it, else some of the pool. */
static enum status place_result(struct rt_invocation *inv, uint32_t index, struct error *err)
{
    struct hal_binding *bound = &inv->bound[index];
    bound->length = inv->plan->results[index].bytes;
    if (!bound->buffer) {
        inv->bytes += bound->length;
        return hal_pool_reserve(inv->pool, bound->length, &bound->buffer, err);
    }
    if (!in_range(bound->offset, bound->length, hal_buffer_size(bound->buffer))) {
        return error_set(err, ST_INVALID, "result '%s' needs %zu bytes at %zu, its memory has %zu",
                         rt_method_result(inv->method, index)->name, bound->length, bound->offset,
                         hal_buffer_size(bound->buffer));
    }
    return ST_OK;
}

static enum status place_results(struct rt_invocation *inv, struct error *err)
{
    const struct rt_plan *plan = inv->plan;
    for (uint32_t i = 0; i < plan->result_count; i++) {
        if (rt_method_result(inv->method, i)->kind != RT_IO_TENSOR) {
            describe_scalar(inv, i);
            continue;
        }
        TRY(place_result(inv, i, err));
        const uint8_t *base = hal_buffer_map(inv->bound[i].buffer);
        inv->results[i].shape = plan->results[i].shape;
        inv->results[i].bytes =
            span_of(base ? base + inv->bound[i].offset : NULL, plan->results[i].bytes);
    }
    if (plan->arena_bytes == 0) {
        return ST_OK; /* a lock less for the smallest methods */
    }
    inv->bytes += plan->arena_bytes;
    return hal_pool_reserve(inv->pool, plan->arena_bytes, &inv->arena, err);
}

static enum status check_complete(const struct rt_invocation *inv, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        const struct rt_io *io = rt_method_input(inv->method, i);
        if (io->kind == RT_IO_TENSOR && !inv->inputs[i].is_given) {
            return error_set(err, ST_INVALID, "input '%s' is missing", io->name);
        }
    }
    return ST_OK;
}

static enum status prepare(struct rt_invocation *inv, struct error *err)
{
    TRY(check_complete(inv, err));
    TRY(rt_method_plan(inv->method, inv->shapes, &inv->plan, err));
    return place_results(inv, err);
}

enum status rt_invocation_prepare(struct rt_invocation *inv, struct error *err)
{
    size_t input_bytes = inv->bytes;
    must(inv->step == STEP_FILLING);
    if (prepare(inv, err) != ST_OK) {
        release_results(inv);
        inv->bytes = input_bytes;
        return err->code;
    }
    inv->step = STEP_PREPARED;
    return ST_OK;
}

size_t rt_invocation_bytes(const struct rt_invocation *inv)
{
    return inv->bytes;
}

const struct rt_result *rt_invocation_result(const struct rt_invocation *inv, uint32_t index)
{
    must(inv->step >= STEP_PREPARED && index < rt_method_result_count(inv->method));
    return &inv->results[index];
}

/* ---- running --------------------------------------------------------------------------------- */

static void fill_slots(struct rt_invocation *inv)
{
    uint32_t inputs = rt_method_input_count(inv->method);
    inv->slots[RT_SLOT_ARENA] =
        (struct hal_binding){.buffer = inv->arena, .length = inv->plan->arena_bytes};
    for (uint32_t i = 0; i < inputs; i++) {
        inv->slots[RT_SLOT_INPUT + i] = inv->inputs[i].binding;
    }
    for (uint32_t i = 0; i < inv->plan->result_count; i++) {
        inv->slots[rt_slot_result(inputs, i)] = inv->bound[i];
    }
}

static void finish(struct rt_invocation *inv, enum status status)
{
    release_inputs(inv);
    inv->step = STEP_DONE;
    inv->done(inv, status, inv->arg); /* may free it */
}

/* A failed semaphore stays failed: the next call gets a fresh one, or none and fails at once. */
static void replace_semaphore(struct rt_invocation *inv)
{
    struct hal_semaphore *fresh;
    if (hal_semaphore_new(inv->timepoint, &fresh, NULL) == ST_OK) {
        hal_semaphore_unref(inv->semaphore);
        inv->semaphore = fresh;
    }
}

/* Worker, or the submitting thread. */
static void on_reached(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_RUNNING);
    if (status != ST_OK) {
        replace_semaphore(inv);
    }
    finish(inv, status);
}

/* After |converted|, where it is not NULL. */
static enum status submit_method(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                                 struct hal_semaphore *converted, bool may_run_inline)
{
    fill_slots(inv);
    const struct hal_submission submission = {
        .command = inv->plan->command,
        .slots = inv->slots,
        .slot_count = rt_slot_result(inv->plan->input_count, inv->plan->result_count),
        .wait = {{converted, 1}},
        .wait_count = converted ? 1 : 0,
        .signal = {{semaphore, ++inv->timepoint}},
        .signal_count = 1,
        .may_run_inline = may_run_inline,
        .cancel = &inv->cancel,
    };
    return hal_queue_submit(inv->method->device, &submission, NULL);
}

/* The method did not follow its conversions. */
static void on_converted_in_vain(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_RUNNING);
    finish(inv, status == ST_OK ? ST_EXHAUSTED : status);
}

static void await(struct rt_invocation *inv, struct hal_semaphore *semaphore, uint64_t value,
                  void (*fn)(struct hal_semaphore_waiter *waiter, enum status status))
{
    inv->waiter.value = value;
    inv->waiter.fn = fn;
    hal_semaphore_on(semaphore, &inv->waiter);
}

void rt_invocation_submit(struct rt_invocation *inv, bool may_run_inline,
                          rt_invocation_done_f *done, void *arg)
{
    must(inv->step == STEP_PREPARED);
    inv->done = done;
    inv->arg = arg;
    inv->step = STEP_RUNNING;
    if (inv->method->poison_arenas && inv->plan->arena_bytes > 0) {
        memset(hal_buffer_map(inv->arena), 0xff, inv->plan->arena_bytes);
    }
    /* References of our own: |done| may free the invocation, a failure takes its semaphore. */
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore), *converted;
    enum status status = rt_invocation_convert(inv, &converted);
    if (status == ST_OK) {
        status = submit_method(inv, semaphore, converted, may_run_inline);
    }
    if (status == ST_OK) {
        await(inv, semaphore, inv->timepoint, on_reached);
    } else if (converted) {
        await(inv, converted, 1, on_converted_in_vain);
    } else {
        finish(inv, status);
    }
    hal_semaphore_unref(converted);
    hal_semaphore_unref(semaphore);
}

void rt_invocation_cancel(struct rt_invocation *inv)
{
    atomic_store_explicit(&inv->cancel, true, memory_order_relaxed);
}
