/* SPDX-License-Identifier: MIT */
/*
 * Calls: see invocation.h. One allocation holds an invocation and all its arrays; it goes back to
 * its method's list of free ones, with its semaphore, whose value counts the calls it has carried.
 */
#include "config.h"

#include "runtime/invocation.h"

#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/method.h"

#define INVOCATION_MAGIC 0x1c0ca110u

/* Free invocations that a method keeps; more are given back to the heap. */
#define FREE_MAX 256

enum step { STEP_FREE, STEP_FILLING, STEP_PREPARED, STEP_RUNNING, STEP_DONE };

struct input {
    struct shape shape;
    struct hal_binding binding; /* buffer: ref held, NULL for an empty tensor */
    bool is_given;
};

struct rt_invocation {
    uint32_t magic;
    enum step step;
    struct list link;         /* in the method's free list */
    struct rt_method *method; /* its program: ref held while not free */
    struct hal_pool *pool;    /* borrowed from the caller */
    struct rt_plan *plan;     /* ref held from prepare on */
    struct hal_buffer *arena; /* owned from prepare to done */
    struct hal_semaphore *semaphore; /* owned */
    uint64_t timepoint;
    struct hal_semaphore_waiter waiter;
    atomic_bool cancel;
    rt_invocation_done_f *done;
    void *arg;
    size_t bytes;
    struct input *inputs;          /* the arrays lie behind the struct */
    const struct shape **shapes;   /* of the inputs */
    struct hal_binding *slots;     /* of the submission */
    struct hal_buffer **buffers;   /* of tensor results: owned until free */
    struct rt_result *results;
    int64_t *numbers;              /* storage of int results */
};

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
    size_t inputs_at = take(&end, inputs, sizeof(struct input));
    size_t shapes_at = take(&end, inputs, sizeof(struct shape *));
    size_t slots_at =
        take(&end, rt_slot_result(inputs, results), sizeof(struct hal_binding));
    size_t buffers_at = take(&end, results, sizeof(struct hal_buffer *));
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
    inv->buffers = (void *)(base + buffers_at);
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
    atomic_store_explicit(&inv->cancel, false, memory_order_relaxed);
    *out_invocation = inv;
    return ST_OK;
}

static void release_inputs(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_input_count(inv->method); i++) {
        hal_buffer_unref(inv->inputs[i].binding.buffer);
        inv->inputs[i].binding = (struct hal_binding){0};
        inv->inputs[i].is_given = false;
    }
    hal_buffer_unref(inv->arena);
    inv->arena = NULL;
}

static void release_results(struct rt_invocation *inv)
{
    for (uint32_t i = 0; i < rt_method_result_count(inv->method); i++) {
        hal_buffer_unref(inv->buffers[i]);
        inv->buffers[i] = NULL;
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

/* ---- inputs ---------------------------------------------------------------------------------- */

/* "float32[?,8]" */
static void print_type(const struct rt_io *io, struct buf *out)
{
    buf_printf(out, "%s[", dtype_infos[io->dtype].long_text);
    for (uint8_t d = 0; d < io->shape.rank; d++) {
        buf_add_str(out, d ? "," : "");
        if (io->dynamic_dims >> d & 1) {
            buf_add_char(out, '?');
        } else {
            buf_printf(out, "%" PRId64, io->shape.dims[d]);
        }
    }
    buf_add_char(out, ']');
}

static const char *const kind_names[] = {
    [RT_IO_NONE] = "nothing", [RT_IO_INT] = "an int",       [RT_IO_FLOAT] = "a float",
    [RT_IO_BOOL] = "a bool",  [RT_IO_STRING] = "a string",
};

/* ST_INVALID: what |io| takes, and |given| instead. */
static enum status wrong_type(const struct rt_io *io, const char *given, struct error *err)
{
    struct buf type;
    buf_init(&type, 512);
    if (io->kind == RT_IO_TENSOR) {
        print_type(io, &type);
    } else {
        buf_add_str(&type, kind_names[io->kind]);
    }
    error_set(err, ST_INVALID, "expected %.*s, got %s", SPAN_FMT(buf_span(&type)), given);
    buf_fini(&type);
    return ST_INVALID;
}

static enum status wrong_tensor(const struct rt_io *io, enum dtype dtype,
                                const struct shape *shape, struct error *err)
{
    char dims[SHAPE_TEXT_MAX], given[160];
    snprintf(given, sizeof(given), "%s%s", dtype_infos[dtype].long_text,
             shape_print(shape, dims));
    return wrong_type(io, given, err);
}

static enum status check_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                               const struct shape *shape, size_t *out_bytes, struct error *err)
{
    const struct rt_io *io = rt_method_input(inv->method, index);
    must(inv->step == STEP_FILLING);
    if (io->kind != RT_IO_TENSOR || io->dtype != dtype || io->shape.rank != shape->rank) {
        return wrong_tensor(io, dtype, shape, err);
    }
    for (uint8_t d = 0; d < shape->rank; d++) {
        bool is_dynamic = io->dynamic_dims >> d & 1;
        if (is_dynamic && shape->dims[d] > io->shape.dims[d]) {
            return error_set(err, ST_INVALID, "dim %u is %" PRId64 ", the largest is %" PRId64, d,
                             shape->dims[d], io->shape.dims[d]);
        }
        if (!is_dynamic && shape->dims[d] != io->shape.dims[d]) {
            return wrong_tensor(io, dtype, shape, err);
        }
    }
    TRY(shape_bytes(shape, dtype, out_bytes, err));
    if (inv->inputs[index].is_given) {
        return error_set(err, ST_INVALID, "given twice");
    }
    return ST_OK;
}

static void give(struct rt_invocation *inv, uint32_t index, const struct shape *shape,
                 struct hal_binding binding)
{
    inv->inputs[index].shape = *shape;
    inv->inputs[index].binding = binding;
    inv->inputs[index].is_given = true;
}

enum status rt_invocation_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                                const struct shape *shape, void **out_ptr, struct error *err)
{
    struct hal_binding binding = {0};
    TRY(check_input(inv, index, dtype, shape, &binding.length, err));
    TRY(hal_pool_reserve(inv->pool, binding.length, &binding.buffer, err));
    inv->bytes += binding.length;
    give(inv, index, shape, binding);
    *out_ptr = hal_buffer_map(binding.buffer);
    return ST_OK;
}

enum status rt_invocation_bind_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                                     const struct shape *shape, struct hal_buffer *buffer,
                                     size_t offset, struct error *err)
{
    struct hal_binding binding = {.offset = offset};
    TRY(check_input(inv, index, dtype, shape, &binding.length, err));
    if (!in_range(offset, binding.length, hal_buffer_size(buffer))) {
        return error_set(err, ST_INVALID, "%zu bytes at %zu do not lie in a buffer of %zu",
                         binding.length, offset, hal_buffer_size(buffer));
    }
    size_t align = hal_device_props(inv->method->device)->buffer_align;
    if (hal_buffer_device(buffer) != inv->method->device || offset % align != 0) {
        void *ptr;
        TRY(rt_invocation_input(inv, index, dtype, shape, &ptr, err));
        if (binding.length > 0) {
            memcpy(ptr, (const char *)hal_buffer_map(buffer) + offset, binding.length);
        }
        return ST_OK;
    }
    binding.buffer = hal_buffer_ref(buffer);
    give(inv, index, shape, binding);
    return ST_OK;
}

/* A scalar input that the exporter fixed; |is_same| says whether the given value is that one. */
static enum status give_scalar(struct rt_invocation *inv, uint32_t index, enum rt_io_kind kind,
                               bool is_same, struct error *err)
{
    const struct rt_io *io = rt_method_input(inv->method, index);
    must(inv->step == STEP_FILLING);
    if (io->kind != kind) {
        return wrong_type(io, kind_names[kind], err);
    }
    if (inv->inputs[index].is_given) {
        return error_set(err, ST_INVALID, "given twice");
    }
    inv->inputs[index].is_given = true;
    if (is_same) {
        return ST_OK;
    }
    switch (io->kind) {
    case RT_IO_INT:
        return error_set(err, ST_INVALID, "the exporter fixed it to %" PRId64, io->value.i);
    case RT_IO_FLOAT:
        return error_set(err, ST_INVALID, "the exporter fixed it to %.17g", io->value.f);
    case RT_IO_BOOL:
        return error_set(err, ST_INVALID, "the exporter fixed it to %s",
                         io->value.b ? "true" : "false");
    default:
        return error_set(err, ST_INVALID, "the exporter fixed it to '%.100s'",
                         io->value.s.len ? (const char *)io->value.s.ptr : "");
    }
}

enum status rt_invocation_int(struct rt_invocation *inv, uint32_t index, int64_t value,
                              struct error *err)
{
    bool is_same = rt_method_input(inv->method, index)->value.i == value;
    return give_scalar(inv, index, RT_IO_INT, is_same, err);
}

/* What ExecuTorch takes for the same double: within 1e-4 + 1e-5 of its size. */
enum status rt_invocation_float(struct rt_invocation *inv, uint32_t index, double value,
                                struct error *err)
{
    double fixed = rt_method_input(inv->method, index)->value.f;
    bool is_same = value == fixed || fabs(value - fixed) <= 1e-4 + 1e-5 * fabs(fixed) ||
                   (isnan(value) && isnan(fixed));
    return give_scalar(inv, index, RT_IO_FLOAT, is_same, err);
}

enum status rt_invocation_bool(struct rt_invocation *inv, uint32_t index, bool value,
                               struct error *err)
{
    bool is_same = rt_method_input(inv->method, index)->value.b == value;
    return give_scalar(inv, index, RT_IO_BOOL, is_same, err);
}

enum status rt_invocation_string(struct rt_invocation *inv, uint32_t index, struct span value,
                                 struct error *err)
{
    const struct rt_io *io = rt_method_input(inv->method, index);
    bool is_same = io->kind == RT_IO_STRING && span_equal(io->value.s, value);
    return give_scalar(inv, index, RT_IO_STRING, is_same, err);
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

static enum status reserve_results(struct rt_invocation *inv, struct error *err)
{
    const struct rt_plan *plan = inv->plan;
    for (uint32_t i = 0; i < plan->result_count; i++) {
        if (rt_method_result(inv->method, i)->kind != RT_IO_TENSOR) {
            describe_scalar(inv, i);
            continue;
        }
        TRY(hal_pool_reserve(inv->pool, plan->results[i].bytes, &inv->buffers[i], err));
        inv->results[i].shape = plan->results[i].shape;
        inv->results[i].bytes =
            span_of(hal_buffer_map(inv->buffers[i]), plan->results[i].bytes);
        inv->bytes += plan->results[i].bytes;
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

enum status rt_invocation_prepare(struct rt_invocation *inv, struct error *err)
{
    must(inv->step == STEP_FILLING);
    TRY(check_complete(inv, err));
    TRY(rt_method_plan(inv->method, inv->shapes, &inv->plan, err));
    if (reserve_results(inv, err) != ST_OK) {
        release_results(inv);
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
        inv->slots[rt_slot_result(inputs, i)] = (struct hal_binding){
            .buffer = inv->buffers[i],
            .length = inv->buffers[i] ? inv->plan->results[i].bytes : 0,
        };
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

void rt_invocation_submit(struct rt_invocation *inv, bool may_run_inline,
                          rt_invocation_done_f *done, void *arg)
{
    must(inv->step == STEP_PREPARED);
    inv->done = done;
    inv->arg = arg;
    inv->step = STEP_RUNNING;
    fill_slots(inv);
    if (inv->method->poison_arenas && inv->plan->arena_bytes > 0) {
        memset(hal_buffer_map(inv->arena), 0xff, inv->plan->arena_bytes);
    }
    uint64_t timepoint = ++inv->timepoint;
    /* A reference of our own: a callback that finds a failure replaces the invocation's. */
    struct hal_semaphore *semaphore = hal_semaphore_ref(inv->semaphore);
    struct hal_submission submission = {
        .command = inv->plan->command,
        .slots = inv->slots,
        .slot_count = rt_slot_result(inv->plan->input_count, inv->plan->result_count),
        .signal = {{semaphore, timepoint}},
        .signal_count = 1,
        .may_run_inline = may_run_inline,
        .cancel = &inv->cancel,
    };
    enum status status = hal_queue_submit(inv->method->device, &submission, NULL);
    if (status == ST_OK) {
        inv->waiter.value = timepoint;
        inv->waiter.fn = on_reached;
        hal_semaphore_on(semaphore, &inv->waiter);
    } else {
        finish(inv, status);
    }
    hal_semaphore_unref(semaphore);
}

void rt_invocation_cancel(struct rt_invocation *inv)
{
    atomic_store_explicit(&inv->cancel, true, memory_order_relaxed);
}
