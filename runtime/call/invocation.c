/* SPDX-License-Identifier: MIT */
/*
 * Calls: see invocation.h. One allocation holds an invocation and all its arrays. A freed
 * invocation goes back to its method's list with its semaphore, whose value counts the calls it has
 * carried.
 */
#include "config.h"

#include "runtime/call/inside.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/queue.h"
#include "runtime/call/steps.h"
#include "runtime/program/state_cells.h"

/* Free invocations that a method keeps; further ones are given back to the heap. */
#define FREE_MAX 256

/* ---- life ------------------------------------------------------------------------------------ */

/* Inputs and outputs of the method; if it is one block, of the block, with states. */
static void count_io(const struct rt_method *method, uint32_t *out_inputs, uint32_t *out_outputs)
{
    const struct rt_code *code = &method->code;
    const struct rt_graph *entry = code->block_count > 0 ? &code->blocks[0]->graph : NULL;
    *out_inputs = entry ? entry->input_count : method->input_count;
    *out_outputs = entry && code->stmt_count == 0 ? entry->output_count : method->result_count;
}

/* Words of the entry, in the larger of its two forms. */
static uint32_t count_words(const struct rt_method *method)
{
    const struct rt_code *code = &method->code;
    uint32_t words = code->block_count > 0 ? code->blocks[0]->numbers.word_count : 0;
    uint32_t batched = method->batched ? method->batched->numbers.word_count : 0;
    return batched > words ? batched : words;
}

static struct rt_invocation *allocate(struct rt_method *method)
{
    uint32_t inputs = method->input_count, results = method->result_count;
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
    inv->heap_bytes = end;
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
        inv->given[i].label = method->inputs[i].label;
    }
    inv->bound_count = outputs;
    if (method->callable->open && !method->callable->open(inv)) {
        free(inv);
        return NULL;
    }
    return inv;
}

static void release(struct rt_invocation *inv)
{
    if (inv->method->callable->close) {
        inv->method->callable->close(inv);
    }
    inv->magic = 0;
    free(inv);
}

enum status rt_invocation_heap_bytes(struct rt_method *method, size_t *out_bytes, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_invocation *inv = allocate(method);
    if (!inv) {
        return error_no_memory(err, "a call");
    }
    *out_bytes = inv->heap_bytes;
    release(inv);
    return ST_OK;
}

static void destroy(struct list *link)
{
    struct rt_invocation *inv = LIST_ENTRY(link, struct rt_invocation, link);
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FREE);
    list_remove(&inv->link);
    hal_semaphore_unref(inv->semaphore);
    rt_invocation_forget(inv);
    rt_invocation_drop_small(inv, false);
    release(inv);
}

void rt_invocation_free_kept(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_invocation *spare = spare_take(&method->invocation);
    if (spare) {
        destroy(&spare->link);
    }
    while (!list_is_empty(&method->invocations)) {
        destroy(method->invocations.next);
    }
    while (!list_is_empty(&method->batches)) {
        rt_batch_destroy(method->batches.next);
    }
    rt_steps_free(method);
}

const char *rt_invocation_label(const struct rt_invocation *inv, uint32_t index)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    return inv->given[index].label;
}

void rt_invocation_say(struct rt_invocation *inv, uint32_t index, const char *label)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    inv->given[index].label = label;
    inv->has_other_labels = true;
}

void rt_invocation_say_paths(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    for (uint32_t i = 0; i < inv->method->input_count; i++) {
        rt_invocation_say(inv, i, inv->method->inputs[i].path);
    }
}

static void say_names(struct rt_invocation *inv)
{
    for (uint32_t i = 0; inv->has_other_labels && i < inv->method->input_count; i++) {
        inv->given[i].label = inv->method->inputs[i].label;
    }
    inv->has_other_labels = false;
}

static struct rt_invocation *recycle(struct rt_method *method)
{
    struct rt_invocation *inv = spare_take(&method->invocation);
    if (inv) {
        return inv;
    }
    pthread_mutex_lock(&method->mutex);
    if (!list_is_empty(&method->invocations)) {
        inv = LIST_ENTRY(method->invocations.next, struct rt_invocation, link);
        list_remove(&inv->link);
        method->invocation_count--;
    }
    pthread_mutex_unlock(&method->mutex);
    return inv;
}

static enum status begin(struct rt_method *method, struct hal_pool *pool,
                         struct rt_invocation **out_invocation, struct error *err)
{
    must(method->failure.code == ST_OK);
    struct rt_invocation *inv = recycle(method);
    if (!inv) {
        inv = allocate(method);
        if (!inv) {
            return error_no_memory(err, "a call");
        }
        if (hal_semaphore_new(0, &inv->semaphore, err) != ST_OK) {
            release(inv);
            return err->code;
        }
    }
    rt_program_ref(method->program);
    inv->pool = inv->run_pool = inv->join_pool = pool;
    inv->entry = method->code.block_count > 0 ? method->code.blocks[0] : NULL;
    inv->orders = 0;
    inv->phase = RT_PHASE_FILLING;
    inv->bytes = 0;
    inv->conversion_count = 0;
    must(inv->kept_plan || (inv->small_used == 0 && !inv->uses_small));
    inv->profile = NULL;
    inv->steps = NULL;
    inv->parent = NULL;
    say_names(inv);
    inv->error.code = ST_OK;
    inv->culprit.is_known = false;
    inv->is_awaited = inv->is_trial = inv->was_joined = false;
    inv->cancel = &inv->is_cancelled;
    atomic_store_explicit(inv->cancel, false, memory_order_relaxed);
    hal_fault_reset(&inv->fault);
    *out_invocation = inv;
    return ST_OK;
}

enum status rt_invocation_new(struct rt_method *method, struct hal_pool *pool,
                              struct rt_invocation **out_invocation, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    TRY(begin(method, pool, out_invocation, err));
    rt_invocation_forget(*out_invocation);
    (*out_invocation)->uses_small = false;
    return ST_OK;
}

enum status rt_invocation_new_small(struct rt_method *method, struct hal_pool *pool,
                                    struct rt_invocation **out_invocation, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    TRY(begin(method, pool, out_invocation, err));
    (*out_invocation)->uses_small = hal_device_props(method->device)->is_host;
    return ST_OK;
}

/* Small inputs stay, because the next call may have the same. */
static void release_inputs(struct rt_invocation *inv)
{
    const uint32_t count = inv->method->input_count;
    for (uint32_t i = 0; i < count; i++) {
        if (inv->inputs[i].binding.buffer != inv->small || !inv->small) {
            rt_invocation_release_input(inv, i);
        }
    }
    hal_buffer_unref(inv->workspace);
    inv->workspace = NULL;
}

/* Releases all tensors of a call that is over, and its plan. */
static void release_tensors(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < inv->method->input_count; i++) {
        rt_invocation_release_input(inv, i);
        inv->inputs[i].shape = (struct shape){.rank = 0};
    }
    rt_invocation_release_results(inv);
    rt_invocation_drop_small(inv, true);
}

static void release_waits(struct rt_invocation *inv)
{
    while (inv->wait_count > 0) {
        hal_semaphore_unref(inv->waits[--inv->wait_count].semaphore);
    }
}

/* Keeps the free |inv| for its method's next call, and others behind it. */
static void store(struct rt_invocation *inv)
{
    struct rt_method *method = inv->method;
    inv = spare_put(&method->invocation, inv);
    if (!inv) {
        return;
    }
    pthread_mutex_lock(&method->mutex);
    bool keep = method->invocation_count < FREE_MAX;
    if (keep) {
        list_push_front(&method->invocations, &inv->link);
        method->invocation_count++;
    }
    pthread_mutex_unlock(&method->mutex);
    if (!keep) {
        destroy(&inv->link);
    }
}

void rt_invocation_free(struct rt_invocation *inv)
{
    if (!inv) {
        return;
    }
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase != RT_PHASE_FREE && inv->phase != RT_PHASE_RUNNING && !atomic_load(&inv->part));
    struct rt_program *program = inv->method->program;
    rt_invocation_forget(inv);
    release_waits(inv);
    if (!rt_invocation_keep(inv)) {
        release_tensors(inv);
    }
    hal_semaphore_unref(inv->finished);
    inv->finished = NULL;
    rt_state_unref(inv->state);
    inv->state = NULL;
    inv->phase = RT_PHASE_FREE;
    store(inv);
    rt_program_unref(program);
}

void rt_invocation_run_in(struct rt_invocation *inv, struct hal_pool *pool)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_FILLING);
    inv->run_pool = inv->method->callable->is_planned_in_place ? inv->pool : pool;
    inv->join_pool = pool;
}

struct rt_method *rt_invocation_method(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    return inv->method;
}

/* ---- running --------------------------------------------------------------------------------- */

void rt_invocation_after(struct rt_invocation *inv, const struct hal_timepoint *timepoint)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase <= RT_PHASE_PREPARED && inv->wait_count < HAL_TIMEPOINTS_MAX - 1);
    hal_semaphore_ref(timepoint->semaphore);
    inv->waits[inv->wait_count++] = *timepoint;
}

/*
 * A call of one submission signals its own semaphore; any other call has a second one for its end.
 */
enum status rt_invocation_timepoint(struct rt_invocation *inv, struct hal_timepoint *out_timepoint,
                                    struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_PREPARED);
    inv->is_awaited = true;
    if (inv->method->callable->is_one_submission) {
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

/* Results that were computed while the weights changed are invalid, and the change explains most
 * faults. */
static enum status check_files(struct rt_invocation *inv, enum status status)
{
    if (status == ST_CANCELLED) {
        return status;
    }
    enum status files = rt_program_verify_own_files(inv->method->program, &inv->error);
    for (uint32_t i = 0; files == ST_OK && inv->steps && i < inv->steps->count; i++) {
        const struct rt_program *program = inv->steps->parts[i]->method->program;
        if (program != inv->method->program) { /* a row of a sibling */
            files = rt_program_verify_own_files(program, &inv->error);
        }
    }
    return files == ST_OK ? status : files;
}

/* The indices of element |at| of |shape|, row-major. */
static struct shape locate(const struct shape *shape, size_t at)
{
    struct shape element = {.rank = shape->rank};
    for (unsigned d = shape->rank; d-- > 0;) {
        element.dims[d] = (int64_t)(at % (size_t)shape->dims[d]);
        at /= (size_t)shape->dims[d];
    }
    return element;
}

/* The input that contains the address in a fault's record, in the memory that the method reads. */
static struct rt_culprit find_culprit(const struct rt_invocation *inv)
{
    const struct hal_fault_record *fault = &inv->fault;
    bool has_place = hal_fault_code_of(fault) != HAL_FAULT_NONE && fault->number.at;
    for (uint32_t i = 0; has_place && i < inv->method->input_count; i++) {
        const struct hal_binding *given = &inv->inputs[i].binding;
        const uint8_t *base = given->buffer ? hal_buffer_map(given->buffer) : NULL;
        uintptr_t begin = (uintptr_t)base + given->offset, at = (uintptr_t)fault->number.at;
        if (base && at >= begin && at - begin < given->length) {
            size_t element = (at - begin) / dtype_bytes(inv->method->inputs[i].dtype);
            return (struct rt_culprit){true, i, locate(&inv->inputs[i].shape, element)};
        }
    }
    return (struct rt_culprit){.is_known = false};
}

enum status rt_invocation_judge(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    if (status != ST_OK && !inv->culprit.is_known) {
        inv->culprit = find_culprit(inv);
    }
    if (status != ST_OK && hal_fault_error(&inv->fault, &inv->error) == ST_OK &&
        inv->error.code != status) {
        bool is_lost = status == ST_UNAVAILABLE && hal_device_is_lost(inv->method->device);
        error_set(&inv->error, status, "%s",
                  is_lost                  ? "the device was lost"
                  : status == ST_EXHAUSTED ? "the device has no memory to run it"
                                           : status_text(status));
    }
    return check_files(inv, status);
}

void rt_invocation_finish(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    rt_invocation_leave_states(inv, status);
    release_inputs(inv);
    release_waits(inv);
    tell_finished(inv, status);
    inv->phase = RT_PHASE_DONE;
    inv->done(inv, status, inv->arg); /* may free it */
}

void rt_invocation_end(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    rt_invocation_finish(inv, rt_invocation_judge(inv, status));
}

/* A failed semaphore stays failed: the next call gets a fresh one, or none and fails at once. */
void rt_invocation_replace_semaphore(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct hal_semaphore *fresh;
    if (hal_semaphore_new(inv->timepoint, &fresh, NULL) == ST_OK) {
        hal_semaphore_unref(inv->semaphore);
        inv->semaphore = fresh;
    }
}

static void fail_own(struct rt_invocation *inv, enum status status)
{
    if (inv->is_awaited && !inv->finished) {
        hal_semaphore_fail(inv->semaphore, status);
        rt_invocation_replace_semaphore(inv);
    }
}

/* The call ends without its submission; whatever waits for that learns it here. */
static void end_without(struct rt_invocation *inv, enum status status)
{
    fail_own(inv, status);
    rt_invocation_end(inv, status);
}

void rt_invocation_refuse(struct rt_invocation *inv, enum status status, rt_invocation_done_f *done,
                          void *arg)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_PREPARED && status == inv->error.code);
    inv->done = done;
    inv->arg = arg;
    inv->phase = RT_PHASE_RUNNING;
    if (inv->state) {
        rt_state_enter(inv->state); /* its end leaves it */
    }
    end_without(inv, status);
}

void rt_invocation_give_up(struct rt_invocation *inv, enum status status)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_PREPARED && status != ST_OK);
    fail_own(inv, status);
    tell_finished(inv, status);
}

/* The conversions are done, but the method was not submitted after them. */
static void on_converted_in_vain(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct rt_invocation *inv = LIST_ENTRY(waiter, struct rt_invocation, waiter);
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_RUNNING);
    end_without(inv, status == ST_OK ? ST_EXHAUSTED : status);
}

void rt_invocation_await(struct rt_invocation *inv, struct hal_semaphore *semaphore, uint64_t value,
                         void (*fn)(struct hal_semaphore_waiter *waiter, enum status status))
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    inv->waiter.value = value;
    inv->waiter.fn = fn;
    hal_semaphore_on(semaphore, &inv->waiter);
}

static void poison_workspace(struct rt_invocation *inv)
{
    void *bytes =
        inv->plan && inv->plan->workspace_bytes > 0 ? hal_buffer_map(inv->workspace) : NULL;
    if (bytes) {
        memset(bytes, 0xff, inv->plan->workspace_bytes);
    }
}

void rt_invocation_submit(struct rt_invocation *inv, enum hal_caller caller,
                          rt_invocation_done_f *done, void *arg)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_PREPARED);
    inv->done = done;
    inv->arg = arg;
    inv->phase = RT_PHASE_RUNNING;
    if (inv->method->poison_workspaces) {
        poison_workspace(inv);
    }
    if (inv->state) {
        rt_state_enter(inv->state);
    }
    /* References of our own: |done| may free the invocation, a failure takes its semaphore. */
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore), *converted;
    enum status status = rt_invocation_convert(inv, &converted);
    if (converted) { /* the conversion waits for everything that the call had to wait for */
        release_waits(inv);
        inv->waits[inv->wait_count++] = (struct hal_timepoint){hal_semaphore_ref(converted), 1};
    }
    inv->waits_over = 0;
    if (status == ST_OK) {
        status = inv->method->callable->start(inv, semaphore, caller);
        if (status == ST_OK) {
            hal_semaphore_unref(converted);
            hal_semaphore_unref(semaphore);
            return; /* the call may have ended, and be gone */
        }
    }
    if (converted) {
        rt_invocation_await(inv, converted, 1, on_converted_in_vain);
    } else {
        end_without(inv, status);
    }
    hal_semaphore_unref(converted);
    hal_semaphore_unref(semaphore);
}

const struct error *rt_invocation_error(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_DONE && inv->error.code != ST_OK);
    return &inv->error;
}

const struct rt_culprit *rt_invocation_culprit(const struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    must(inv->phase == RT_PHASE_DONE && inv->error.code != ST_OK);
    return &inv->culprit;
}

const char *rt_culprit_print(const struct rt_culprit *culprit, char text[RT_CULPRIT_TEXT_MAX])
{
    must(culprit->element.rank <= SHAPE_RANK_MAX);
    size_t len = 0;
    text[0] = '\0';
    for (uint8_t d = 0; d < culprit->element.rank && len < RT_CULPRIT_TEXT_MAX; d++) {
        len += (size_t)snprintf(text + len, RT_CULPRIT_TEXT_MAX - len, "[%" PRId64 "]",
                                culprit->element.dims[d]);
    }
    return text;
}

void rt_invocation_cancel(struct rt_invocation *inv)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    atomic_store_explicit(inv->cancel, true, memory_order_relaxed);
}
