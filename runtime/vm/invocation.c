/* SPDX-License-Identifier: MIT */
/*
 * Calls: see invocation.h. One allocation holds an invocation and all its arrays; it goes back to
 * its method's list of free ones, with its semaphore, whose value counts the calls it has carried.
 */
#include "config.h"

#include "runtime/cascade.h"
#include "runtime/pipeline_priv.h"
#include "runtime/vm/invocation_priv.h"
#include "runtime/vm/vm.h"
#include "runtime/vm/words.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/results.h"
#include "runtime/state_priv.h"

/* Free invocations that a method keeps; more are given back to the heap. */
#define FREE_MAX 256

/* ---- life ------------------------------------------------------------------------------------ */

/* Inputs and outputs of the block that the method is, with the states; or of the method. */
static void count_io(const struct rt_method *method, uint32_t *out_inputs, uint32_t *out_outputs)
{
    const struct rt_graph *entry = method->pipeline ? NULL : &method->code.blocks[0]->graph;
    *out_inputs = entry ? entry->input_count : rt_method_input_count(method);
    *out_outputs = entry && method->code.step_count == 0 ? entry->output_count
                                                         : rt_method_result_count(method);
}

static bool allocate_parts(struct rt_invocation *inv)
{
    const struct rt_method *method = inv->method;
    if (method->pipeline) {
        inv->cascade = rt_cascade_new(&method->pipeline->layout, false);
        return inv->cascade != NULL;
    }
    inv->vm = method->code.step_count > 0 ? vm_new(method) : NULL;
    return inv->vm || method->code.step_count == 0;
}

/* Of the entry in both of its forms. */
static uint32_t count_words(const struct rt_method *method)
{
    uint32_t words = method->pipeline ? 0 : method->code.blocks[0]->numbers.word_count;
    uint32_t batched = method->batched ? method->batched->numbers.word_count : 0;
    return batched > words ? batched : words;
}

static struct rt_invocation *allocate(struct rt_method *method)
{
    uint32_t inputs = rt_method_input_count(method), results = rt_method_result_count(method);
    uint32_t given, outputs;
    count_io(method, &given, &outputs);
    struct rt_invocation *inv;
    size_t end = sizeof(*inv);
    size_t inputs_at = rt_take_array(&end, inputs, sizeof(struct rt_bound_input));
    size_t given_at = rt_take_array(&end, given, sizeof(struct rt_block_input));
    uint32_t slots = rt_slot_result(given, outputs), conversion_slots = 2 * inputs;
    size_t slots_at = rt_take_array(&end, slots > conversion_slots ? slots : conversion_slots,
                                    sizeof(struct hal_binding));
    size_t bound_at = rt_take_array(&end, outputs, sizeof(struct hal_binding));
    size_t results_at = rt_take_array(&end, results, sizeof(struct rt_result));
    size_t numbers_at = rt_take_array(&end, results, sizeof(int64_t));
    size_t words_at = rt_take_array(&end, count_words(method), sizeof(int64_t));
    inv = calloc(1, end);
    if (!inv) {
        return NULL;
    }
    char *base = (char *)inv;
    inv->magic = INVOCATION_MAGIC;
    inv->method = method;
    inv->inputs = (void *)(base + inputs_at);
    inv->given = (void *)(base + given_at);
    inv->slots = (void *)(base + slots_at);
    inv->bound = (void *)(base + bound_at);
    inv->results = (void *)(base + results_at);
    inv->numbers = (void *)(base + numbers_at);
    inv->words = (void *)(base + words_at);
    list_init(&inv->link);
    for (uint32_t i = 0; i < inputs; i++) {
        inv->given[i].shape = &inv->inputs[i].shape;
    }
    inv->bound_count = outputs;
    if (!allocate_parts(inv)) {
        free(inv);
        return NULL;
    }
    return inv;
}

static void free_parts(struct rt_invocation *inv)
{
    rt_cascade_free(inv->cascade);
    free(inv->vm);
    free(inv);
}

void rt_invocation_destroy(struct list *link)
{
    struct rt_invocation *inv = LIST_ENTRY(link, struct rt_invocation, link);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_FREE);
    list_remove(&inv->link);
    hal_semaphore_unref(inv->semaphore);
    inv->magic = 0;
    free_parts(inv);
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
            free_parts(inv);
            return err->code;
        }
    }
    rt_program_ref(method->program);
    inv->pool = pool;
    inv->entry = method->pipeline ? NULL : method->code.blocks[0];
    inv->step = STEP_FILLING;
    inv->bytes = 0;
    inv->conversion_count = 0;
    inv->error.code = ST_OK;
    inv->is_awaited = false;
    inv->cancel = &inv->is_cancelled;
    atomic_store_explicit(inv->cancel, false, memory_order_relaxed);
    hal_fault_reset(&inv->fault);
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

static void release_waits(struct rt_invocation *inv)
{
    while (inv->wait_count > 0) {
        hal_semaphore_unref(inv->waits[--inv->wait_count].semaphore);
    }
}

static void release_results(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < inv->bound_count; i++) {
        hal_buffer_unref(inv->bound[i].buffer);
        inv->bound[i] = (struct hal_binding){0};
    }
    rt_plan_unref(inv->plan);
    inv->plan = NULL;
    if (inv->cascade) {
        rt_cascade_reset(inv->cascade);
    }
}

void rt_invocation_free(struct rt_invocation *inv)
{
    if (!inv) {
        return;
    }
    must(inv->magic == INVOCATION_MAGIC);
    must(inv->step != STEP_FREE && inv->step != STEP_RUNNING && !atomic_load(&inv->part));
    struct rt_method *method = inv->method;
    struct rt_program *program = method->program;
    release_inputs(inv);
    release_waits(inv);
    release_results(inv);
    hal_semaphore_unref(inv->finished);
    inv->finished = NULL;
    rt_state_unref(inv->state);
    inv->state = NULL;
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

void rt_invocation_give_scalar(struct rt_invocation *inv, uint32_t index, int64_t number)
{
    const struct rt_io *io = rt_method_result(inv->method, index);
    struct rt_result *result = &inv->results[index];
    int64_t *kept = &inv->numbers[index];
    *kept = number;
    result->shape = io->shape;
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
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        if (rt_method_result(inv->method, i)->kind != RT_IO_TENSOR) {
            rt_invocation_give_scalar(inv, i, rt_words_number(plan, i, inv->words));
            continue;
        }
        TRY(place_result(inv, i, err));
        const uint8_t *base = hal_buffer_map(inv->bound[i].buffer);
        inv->results[i].shape = plan->results[i].shape;
        inv->results[i].bytes =
            span_of(base ? base + inv->bound[i].offset : NULL, plan->results[i].bytes);
    }
    TRY(rt_invocation_place_states(inv, err));
    if (plan->arena_bytes == 0) {
        return ST_OK; /* a lock less for the smallest methods */
    }
    inv->bytes += plan->arena_bytes;
    return rt_plan_has_words(plan)
               ? hal_pool_reserve(inv->pool, plan->arena_bytes, &inv->arena, err)
               : hal_pool_reserve_transient(inv->pool, plan->arena_bytes, &inv->arena, err);
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

/* Of several steps: only whether the entry takes the inputs; sizes and memory come with them. */
static enum status prepare_steps(struct rt_invocation *inv, struct error *err)
{
    const struct rt_code *code = &inv->method->code;
    struct rt_plan *plan;
    uint32_t inputs = rt_method_input_count(inv->method);
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        inv->results[i] = (struct rt_result){.shape = rt_method_result(inv->method, i)->shape};
    }
    TRY(rt_invocation_place_states(inv, err));
    if (code->steps[0].kind != RT_STEP_BLOCK || code->steps[0].target != 0 ||
        code->blocks[0]->graph.input_count != inputs) {
        return ST_OK;
    }
    TRY(rt_block_plan(code->blocks[0], inv->given, inv->words, &plan, err));
    rt_plan_unref(plan);
    return ST_OK;
}

/* Of several steps none is planned before it runs. */
bool rt_invocation_is_planned(struct rt_invocation *inv)
{
    struct error err;
    must(inv->step == STEP_FILLING);
    if (inv->cascade) {
        return check_complete(inv, &err) != ST_OK ||
               rt_pipelined_prepare(inv, true, &err) != ST_OK ||
               rt_cascade_is_prepared(inv->cascade);
    }
    if (inv->vm || inv->plan || check_complete(inv, &err) != ST_OK ||
        rt_block_find_plan(inv->entry, inv->given, inv->words, &inv->plan, &err) != ST_OK) {
        return true; /* there is nothing to plan: prepare says what is wrong */
    }
    return inv->plan != NULL;
}

enum status rt_invocation_plan(struct rt_invocation *inv, struct error *err)
{
    must(inv->step == STEP_FILLING);
    TRY(check_complete(inv, err));
    if (inv->vm || inv->cascade || inv->plan) {
        return ST_OK;
    }
    return rt_block_plan(inv->entry, inv->given, inv->words, &inv->plan, err);
}

static enum status prepare(struct rt_invocation *inv, struct error *err)
{
    TRY(rt_invocation_plan(inv, err));
    if (inv->cascade) {
        return rt_pipelined_prepare(inv, false, err);
    }
    return inv->vm ? prepare_steps(inv, err) : place_results(inv, err);
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
    return inv->bytes + (inv->cascade ? rt_cascade_bytes(inv->cascade) : 0);
}

size_t rt_invocation_demand(const struct rt_invocation *inv)
{
    uint32_t inputs = rt_method_input_count(inv->method);
    uint32_t results = rt_method_result_count(inv->method);
    struct rt_result_info *infos = calloc((size_t)results + 1, sizeof(*infos));
    const struct shape **shapes = calloc((size_t)inputs + 1, sizeof(struct shape *));
    struct error err;
    size_t bytes;
    must(inv->step == STEP_FILLING);
    for (uint32_t i = 0; shapes && i < inputs; i++) {
        shapes[i] = inv->inputs[i].is_given ? &inv->inputs[i].shape : NULL;
    }
    bool is_known = infos && shapes &&
                    rt_method_measure(inv->method, shapes, infos, &bytes, &err) == ST_OK &&
                    add_size(bytes, inv->bytes, &bytes);
    free(shapes);
    free(infos);
    return is_known ? bytes : inv->bytes;
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
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        inv->slots[rt_slot_result(inv->plan->input_count, i)] = inv->bound[i];
    }
}

void rt_invocation_after(struct rt_invocation *inv, const struct hal_timepoint *timepoint)
{
    must(inv->step <= STEP_PREPARED && inv->wait_count < HAL_TIMEPOINTS_MAX - 1);
    hal_semaphore_ref(timepoint->semaphore);
    inv->waits[inv->wait_count++] = *timepoint;
}

/* One block signals its own semaphore at its end; what is more than that has one for the end. */
enum status rt_invocation_timepoint(struct rt_invocation *inv, struct hal_timepoint *out_timepoint,
                                    struct error *err)
{
    must(inv->step == STEP_PREPARED);
    inv->is_awaited = true;
    if (!inv->vm && !inv->cascade) {
        *out_timepoint = (struct hal_timepoint){inv->semaphore, inv->timepoint + 1};
        return ST_OK;
    }
    if (!inv->finished) {
        TRY(hal_semaphore_new(0, &inv->finished, err));
    }
    *out_timepoint = (struct hal_timepoint){inv->finished, 1};
    return ST_OK;
}

static void tell_finished(struct rt_invocation *inv, enum status status)
{
    if (inv->finished && status == ST_OK) {
        hal_semaphore_signal(inv->finished, 1);
    } else if (inv->finished) {
        hal_semaphore_fail(inv->finished, status);
    }
}

void rt_invocation_end(struct rt_invocation *inv, enum status status)
{
    if (status != ST_OK && hal_fault_error(&inv->fault, &inv->error) == ST_OK &&
        inv->error.code != status) {
        bool is_lost = status == ST_UNAVAILABLE && hal_device_is_lost(inv->method->device);
        error_set(&inv->error, status, "%s", is_lost ? "the device was lost" : status_text(status));
    }
    rt_invocation_leave_states(inv, status);
    release_inputs(inv);
    release_waits(inv);
    tell_finished(inv, status);
    inv->step = STEP_DONE;
    inv->done(inv, status, inv->arg); /* may free it */
}

/* A failed semaphore stays failed: the next call gets a fresh one, or none and fails at once. */
void rt_invocation_replace_semaphore(struct rt_invocation *inv)
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
        rt_invocation_replace_semaphore(inv);
    }
    rt_invocation_end(inv, status);
}

static enum status submit_method(struct rt_invocation *inv, struct hal_semaphore *semaphore,
                                 enum hal_caller caller)
{
    fill_slots(inv);
    rt_words_put(inv->plan, inv->words, inv->arena ? hal_buffer_map(inv->arena) : NULL);
    TRY(rt_invocation_fill_states(inv));
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
    };
    memcpy(submission.wait, inv->waits, inv->wait_count * sizeof(inv->waits[0]));
    return hal_queue_submit(inv->method->device, &submission, NULL);
}

static void fail_own(struct rt_invocation *inv, enum status status)
{
    if (inv->is_awaited && !inv->finished) {
        hal_semaphore_fail(inv->semaphore, status);
        rt_invocation_replace_semaphore(inv);
    }
}

/* The call ends without its submission: whoever waits for that learns it here. */
static void end_without(struct rt_invocation *inv, enum status status)
{
    fail_own(inv, status);
    rt_invocation_end(inv, status);
}

void rt_invocation_give_up(struct rt_invocation *inv, enum status status)
{
    must(inv->step == STEP_PREPARED && status != ST_OK);
    fail_own(inv, status);
    tell_finished(inv, status);
}

/* The method did not follow its conversions. */
static void on_converted_in_vain(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_RUNNING);
    end_without(inv, status == ST_OK ? ST_EXHAUSTED : status);
}

static void await(struct rt_invocation *inv, struct hal_semaphore *semaphore, uint64_t value,
                  void (*fn)(struct hal_semaphore_waiter *waiter, enum status status))
{
    inv->waiter.value = value;
    inv->waiter.fn = fn;
    hal_semaphore_on(semaphore, &inv->waiter);
}

static void walk_next(struct rt_invocation *inv, enum hal_caller caller);

static void on_wait(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    must(inv->magic == INVOCATION_MAGIC && inv->step == STEP_RUNNING);
    if (status == ST_OK) {
        walk_next(inv, HAL_CALLER_BUSY);
    } else {
        rt_invocation_end(inv, status);
    }
}

/* Steps are walked by a thread, which begins when there is nothing left to wait for. */
static void walk_next(struct rt_invocation *inv, enum hal_caller caller)
{
    if (inv->waits_over == inv->wait_count) {
        vm_run(inv, caller);
        return;
    }
    const struct hal_timepoint *next = &inv->waits[inv->waits_over++];
    await(inv, next->semaphore, next->value, on_wait);
}

void rt_invocation_submit(struct rt_invocation *inv, enum hal_caller caller,
                          rt_invocation_done_f *done, void *arg)
{
    must(inv->step == STEP_PREPARED);
    inv->done = done;
    inv->arg = arg;
    inv->step = STEP_RUNNING;
    if (inv->method->poison_arenas && inv->plan && inv->plan->arena_bytes > 0 &&
        hal_buffer_map(inv->arena)) {
        memset(hal_buffer_map(inv->arena), 0xff, inv->plan->arena_bytes);
    }
    if (inv->state) {
        rt_state_enter(inv->state);
    }
    /* References of our own: |done| may free the invocation, a failure takes its semaphore. */
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore), *converted;
    enum status status = rt_invocation_convert(inv, &converted);
    if (converted) { /* which waits for all that the call had to wait for */
        release_waits(inv);
        inv->waits[inv->wait_count++] = (struct hal_timepoint){hal_semaphore_ref(converted), 1};
    }
    inv->waits_over = 0;
    bool is_whole = !inv->vm && !inv->cascade;
    if (status == ST_OK && is_whole) {
        status = submit_method(inv, semaphore, caller);
    }
    if (status == ST_OK && inv->vm) {
        walk_next(inv, caller);
    } else if (status == ST_OK && inv->cascade) {
        rt_pipelined_submit(inv, caller);
    } else if (status == ST_OK) {
        await(inv, semaphore, inv->timepoint, on_reached);
    } else if (converted) {
        await(inv, converted, 1, on_converted_in_vain);
    } else {
        end_without(inv, status);
    }
    hal_semaphore_unref(converted);
    hal_semaphore_unref(semaphore);
}

const struct error *rt_invocation_error(const struct rt_invocation *inv)
{
    must(inv->step == STEP_DONE && inv->error.code != ST_OK);
    return &inv->error;
}

void rt_invocation_cancel(struct rt_invocation *inv)
{
    atomic_store_explicit(inv->cancel, true, memory_order_relaxed);
}
