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
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/method.h"
#include "runtime/ops/copy.h"
#include "runtime/oracle.h"

#define INVOCATION_MAGIC 0x1c0ca110u

/* Free invocations that a method keeps; more are given back to the heap. */
#define FREE_MAX 256

/* Inputs of a call that are converted; each takes two slots of a submission. */
#define CONVERSIONS_MAX (HAL_SLOTS_MAX / 2)

enum step { STEP_FREE, STEP_FILLING, STEP_PREPARED, STEP_RUNNING, STEP_DONE };

struct input {
    struct shape shape;
    struct hal_binding binding; /* buffer: ref held */
    bool is_given;
    struct hal_buffer *source; /* ref held: what has to be converted into |binding|, or NULL */
    size_t source_offset;      /* of its lowest element, in bytes */
    struct rt_copy copy;       /* how */
};

struct rt_invocation {
    uint32_t magic;
    enum step step;
    struct list link;                /* in the method's free list */
    struct rt_method *method;        /* its program: ref held while not free */
    struct hal_pool *pool;           /* borrowed from the caller */
    struct rt_plan *plan;            /* ref held from prepare on */
    struct hal_buffer *arena;        /* owned from prepare to done */
    struct hal_semaphore *semaphore; /* owned */
    uint64_t timepoint;
    struct hal_semaphore_waiter waiter;
    atomic_bool cancel;
    rt_invocation_done_f *done;
    void *arg;
    size_t bytes;
    uint32_t conversion_count;   /* inputs that have a |source| */
    struct input *inputs;        /* the arrays lie behind the struct */
    const struct shape **shapes; /* of the inputs */
    struct hal_binding *slots;   /* of the submission that is being made */
    struct hal_binding *bound;   /* of tensor results; buffers: ref held until free */
    struct rt_result *results;
    int64_t *numbers; /* storage of int results */
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
        struct input *input = &inv->inputs[i];
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

/* ---- inputs ---------------------------------------------------------------------------------- */

static struct rt_buffer_desc packed_desc(enum dtype dtype, const struct shape *shape)
{
    return (struct rt_buffer_desc){.dtype = dtype, .shape = *shape};
}

/* Asks the oracle; its refusal, or that the input was given before, is the error. */
static enum status ask(struct rt_invocation *inv, uint32_t index,
                       const struct rt_buffer_desc *given, enum rt_oracle_answer *out_answer,
                       size_t *out_bytes, struct error *err)
{
    struct rt_buffer_desc wanted;
    must(inv->step == STEP_FILLING);
    *out_answer = rt_oracle(rt_method_input(inv->method, index), inv->method->device, given,
                            &wanted, out_bytes, err);
    if (*out_answer == RT_ORACLE_UNSUPPORTED) {
        return err->code;
    }
    if (inv->inputs[index].is_given) {
        return error_set(err, ST_INVALID, "given twice");
    }
    return ST_OK;
}

/* Memory of |bytes| from the pool for input |index|. */
static enum status reserve_input(struct rt_invocation *inv, uint32_t index,
                                 const struct shape *shape, size_t bytes, struct error *err)
{
    struct input *input = &inv->inputs[index];
    struct hal_binding binding = {.length = bytes};
    TRY(hal_pool_reserve(inv->pool, bytes, &binding.buffer, err));
    inv->bytes += bytes;
    input->shape = *shape;
    input->binding = binding;
    input->is_given = true;
    return ST_OK;
}

enum status rt_invocation_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                                const struct shape *shape, void **out_ptr, struct error *err)
{
    struct rt_buffer_desc given = packed_desc(dtype, shape);
    enum rt_oracle_answer answer;
    size_t bytes;
    TRY(ask(inv, index, &given, &answer, &bytes, err));
    must(answer == RT_ORACLE_ALLOCATE);
    TRY(reserve_input(inv, index, shape, bytes, err));
    *out_ptr = hal_buffer_map(inv->inputs[index].binding.buffer);
    return ST_OK;
}

/* The box of all elements of |given|, to be written packed; counted from its lowest element. */
static struct rt_copy packing_copy(const struct rt_buffer_desc *given)
{
    int64_t packed[SHAPE_RANK_MAX];
    struct rt_copy copy = {0};
    shape_strides(&given->shape, packed);
    for (uint8_t d = 0; d < given->shape.rank; d++) {
        int64_t dim = given->shape.dims[d];
        int64_t stride = given->has_strides ? given->strides[d] : packed[d];
        must(rt_copy_add_dim(&copy, dim, packed[d], stride));
        copy.src_offset -= stride < 0 ? (dim - 1) * stride : 0;
    }
    return copy;
}

static void unref_foreign(void *arg)
{
    hal_buffer_unref(arg);
}

/* Memory of another device as memory of ours, where the host and ours can see it. */
static enum status import_foreign(struct rt_invocation *inv, struct hal_buffer *foreign,
                                  struct hal_buffer **out_buffer, struct error *err)
{
    void *host = hal_buffer_map(foreign);
    if (!host) {
        return error_set(err, ST_UNSUPPORTED, "memory of another device that the host cannot see");
    }
    hal_buffer_ref(foreign);
    enum status status = hal_buffer_import(inv->method->device, host, hal_buffer_size(foreign),
                                           true, unref_foreign, foreign, out_buffer, err);
    if (status != ST_OK) {
        hal_buffer_unref(foreign);
    }
    return status;
}

static enum status convert_input(struct rt_invocation *inv, uint32_t index,
                                 const struct rt_buffer_desc *given, size_t bytes,
                                 struct error *err)
{
    struct input *input = &inv->inputs[index];
    struct hal_buffer *source;
    if (bytes == 0) {
        return reserve_input(inv, index, &given->shape, bytes, err);
    }
    if (inv->conversion_count == CONVERSIONS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "more than %d inputs to convert", CONVERSIONS_MAX);
    }
    if (hal_buffer_device(given->buffer) == inv->method->device) {
        source = hal_buffer_ref(given->buffer);
    } else {
        TRY(import_foreign(inv, given->buffer, &source, err));
    }
    if (reserve_input(inv, index, &given->shape, bytes, err) != ST_OK) {
        hal_buffer_unref(source);
        return err->code;
    }
    input->source = source;
    input->copy = packing_copy(given);
    input->source_offset =
        given->offset - (size_t)input->copy.src_offset * dtype_bytes(given->dtype);
    inv->conversion_count++;
    atomic_fetch_add_explicit(&inv->method->converted_inputs, 1, memory_order_relaxed);
    return ST_OK;
}

enum status rt_invocation_bind_input(struct rt_invocation *inv, uint32_t index,
                                     const struct rt_buffer_desc *given, struct error *err)
{
    struct input *input = &inv->inputs[index];
    enum rt_oracle_answer answer;
    size_t bytes;
    must(given->buffer);
    TRY(ask(inv, index, given, &answer, &bytes, err));
    if (answer == RT_ORACLE_CONVERT) {
        return convert_input(inv, index, given, bytes, err);
    }
    must(answer == RT_ORACLE_USE);
    input->shape = given->shape;
    input->binding = (struct hal_binding){
        .buffer = hal_buffer_ref(given->buffer), .offset = given->offset, .length = bytes};
    input->is_given = true;
    atomic_fetch_add_explicit(&inv->method->inputs_in_place, 1, memory_order_relaxed);
    return ST_OK;
}

/* A scalar input that the exporter fixed; |is_same| says whether the given value is that one. */
static enum status give_scalar(struct rt_invocation *inv, uint32_t index, enum rt_io_kind kind,
                               bool is_same, struct error *err)
{
    static const char *const kinds[] = {
        [RT_IO_INT] = "an int",
        [RT_IO_FLOAT] = "a float",
        [RT_IO_BOOL] = "a bool",
        [RT_IO_STRING] = "a string",
    };
    const struct rt_io *io = rt_method_input(inv->method, index);
    must(inv->step == STEP_FILLING);
    if (io->kind != kind) {
        return rt_io_refuse(io, kinds[kind], err);
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

/* Input |i|, converted: slot |at| is the target and the next one the source. */
static enum status record_conversion(struct rt_invocation *inv, uint32_t i, uint32_t at,
                                     struct hal_command *command, struct error *err)
{
    struct input *input = &inv->inputs[i];
    size_t size = hal_buffer_size(input->source);
    const struct hal_binding bindings[] = {
        {.slot = (uint16_t)at, .length = input->binding.length},
        {.slot = (uint16_t)(at + 1),
         .offset = input->source_offset,
         .length = size - input->source_offset},
    };
    inv->slots[at] = input->binding;
    inv->slots[at + 1] = (struct hal_binding){.buffer = input->source, .length = size};
    return rt_record_copy(command, &input->copy,
                          (uint32_t)dtype_bytes(rt_method_input(inv->method, i)->dtype), bindings,
                          err);
}

/* A command buffer of its own: recorded for this call alone, and rare. Fills the slots. */
static enum status record_conversions(struct rt_invocation *inv, struct hal_command **out_command,
                                      struct error *err)
{
    struct hal_command *command;
    uint32_t at = 0;
    TRY(hal_command_new(inv->method->device, 2 * inv->conversion_count, &command, err));
    enum status status = ST_OK;
    for (uint32_t i = 0; status == ST_OK && i < rt_method_input_count(inv->method); i++) {
        if (inv->inputs[i].source) {
            status = record_conversion(inv, i, at, command, err);
            at += 2;
        }
    }
    if (status == ST_OK) {
        status = hal_command_end(command, err);
    }
    if (status != ST_OK) {
        hal_command_unref(command);
        return status;
    }
    *out_command = command;
    return ST_OK;
}

/* |converted| reaches 1 when the inputs are as the method wants them. */
static enum status submit_conversions(struct rt_invocation *inv, struct hal_semaphore *converted)
{
    struct hal_command *command;
    TRY(record_conversions(inv, &command, NULL));
    const struct hal_submission submission = {
        .command = command,
        .slots = inv->slots,
        .slot_count = 2 * inv->conversion_count,
        .signal = {{converted, 1}},
        .signal_count = 1,
        .cancel = &inv->cancel,
    };
    enum status status = hal_queue_submit(inv->method->device, &submission, NULL);
    hal_command_unref(command);
    return status;
}

/*
 * NULL where there is nothing to convert. The semaphore is not the invocation's: that one tells of
 * nothing but the method's end, when nobody looks at the invocation and its memory any more.
 */
static enum status convert_inputs(struct rt_invocation *inv, struct hal_semaphore **out_converted)
{
    struct hal_semaphore *converted;
    *out_converted = NULL;
    if (inv->conversion_count == 0) {
        return ST_OK;
    }
    TRY(hal_semaphore_new(0, &converted, NULL));
    enum status status = submit_conversions(inv, converted);
    if (status != ST_OK) {
        hal_semaphore_unref(converted);
        return status;
    }
    *out_converted = converted;
    return ST_OK;
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
    enum status status = convert_inputs(inv, &converted);
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
