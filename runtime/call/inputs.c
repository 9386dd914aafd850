/* SPDX-License-Identifier: MIT */
/* The inputs of a call: tensors, for which the oracle decides what happens to their bytes, and
 * scalars. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/table.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/call/inside.h"
#include "runtime/program/oracle.h"

/* The most inputs of a call that are converted; each takes two slots of a submission. */
#define CONVERSIONS_MAX (HAL_SLOTS_MAX / 2)

/* ---- tensors ------------------------------------------------------------------------------- */

/* An input that was given before is an error. */
static enum status check_absent(const struct rt_invocation *inv, uint32_t index, struct error *err)
{
    return inv->inputs[index].is_given ? error_set(err, ST_INVALID, "given twice, expected once")
                                       : ST_OK;
}

/* Asks the oracle. Its refusal is the error. */
static enum status ask(struct rt_invocation *inv, uint32_t index,
                       const struct rt_buffer_desc *given, enum rt_oracle_answer *out_answer,
                       struct rt_buffer_desc *out_wanted, size_t *out_bytes, struct error *err)
{
    must(inv->phase == RT_PHASE_FILLING);
    *out_answer = rt_oracle(rt_method_input(inv->method, index), inv->method->device, given,
                            out_wanted, out_bytes, err);
    return *out_answer == RT_ORACLE_UNSUPPORTED ? err->code : check_absent(inv, index, err);
}

static enum status reserve(struct rt_invocation *inv, size_t bytes, struct hal_binding *out,
                           struct error *err)
{
    enum status status = rt_invocation_take(inv, inv->pool, bytes, out, err);
    inv->refused_bytes = status == ST_OK ? 0 : bytes;
    return status;
}

enum status rt_invocation_reserve_input(struct rt_invocation *inv, uint32_t index,
                                        const struct shape *shape, size_t bytes, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct rt_bound_input *input = &inv->inputs[index];
    TRY(reserve(inv, bytes, &input->binding, err));
    input->shape = *shape;
    input->is_given = true;
    return ST_OK;
}

static void *memory_of(const struct hal_binding *binding)
{
    uint8_t *base = hal_buffer_map(binding->buffer);
    return base ? base + binding->offset : NULL;
}

void rt_invocation_release_input(struct rt_invocation *inv, uint32_t index)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct rt_bound_input *input = &inv->inputs[index];
    hal_buffer_unref(input->binding.buffer);
    hal_buffer_unref(input->source);
    input->binding = (struct hal_binding){0};
    input->source = NULL;
    input->is_given = false;
}

enum status rt_invocation_input(struct rt_invocation *inv, uint32_t index, enum dtype dtype,
                                const struct shape *shape, void **out_ptr, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    size_t bytes;
    must(inv->phase == RT_PHASE_FILLING);
    if (!rt_invocation_recall_input(inv, index, dtype, shape)) {
        TRY(rt_oracle_measure(rt_method_input(inv->method, index), dtype, shape, &bytes, err));
        TRY(check_absent(inv, index, err));
        TRY(rt_invocation_reserve_input(inv, index, shape, bytes, err));
    }
    *out_ptr = memory_of(&inv->inputs[index].binding);
    return ST_OK;
}

const struct shape *rt_invocation_input_shape(const struct rt_invocation *inv, uint32_t index)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_bound_input *input = &inv->inputs[index];
    bool is_tensor = rt_method_input(inv->method, index)->kind == RT_IO_TENSOR;
    bool is_known = input->is_given || inv->phase > RT_PHASE_FILLING; /* else it is kept */
    return is_tensor && is_known && input->shape.rank > 0 ? &input->shape : NULL;
}

/* A box of all elements of |given|, to be written packed in |order|; counted from its lowest
 * element. */
static struct rt_copy packing_copy(const struct rt_buffer_desc *given, const uint8_t *order)
{
    int64_t packed[SHAPE_RANK_MAX], row_major[SHAPE_RANK_MAX];
    struct rt_copy copy = {0};
    shape_order_strides(&given->shape, order, packed);
    shape_strides(&given->shape, row_major);
    for (uint8_t i = 0; i < given->shape.rank; i++) {
        uint8_t d = order ? order[i] : i; /* outermost first in the target */
        int64_t dim = given->shape.dims[d];
        int64_t stride = given->has_strides ? given->strides[d] : row_major[d];
        must(rt_copy_add_dim(&copy, dim, packed[d], stride));
        copy.src_offset -= stride < 0 ? (dim - 1) * stride : 0;
    }
    return copy;
}

static void unref_foreign(void *arg)
{
    hal_buffer_unref(arg);
}

/* Makes another device's memory accessible as ours, if the host and our device can see it. */
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

/* The tensor lies as the method prefers. */
static void note_order(struct rt_invocation *inv, uint32_t index)
{
    inv->orders |= rt_method_input(inv->method, index)->order_bit;
}

static enum status convert_input(struct rt_invocation *inv, uint32_t index,
                                 const struct rt_buffer_desc *given, size_t bytes,
                                 struct error *err)
{
    const uint8_t *order = rt_method_input(inv->method, index)->order;
    struct rt_bound_input *input = &inv->inputs[index];
    struct hal_buffer *source;
    if (bytes == 0) {
        return rt_invocation_reserve_input(inv, index, &given->shape, bytes, err);
    }
    if (inv->conversion_count == CONVERSIONS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "more than %d inputs to convert", CONVERSIONS_MAX);
    }
    if (hal_buffer_device(given->buffer) == inv->method->device) {
        source = hal_buffer_ref(given->buffer);
    } else {
        TRY(import_foreign(inv, given->buffer, &source, err));
    }
    if (rt_invocation_reserve_input(inv, index, &given->shape, bytes, err) != ST_OK) {
        hal_buffer_unref(source);
        return err->code;
    }
    input->source = source;
    input->copy = packing_copy(given, order);
    input->source_offset =
        given->offset - (size_t)input->copy.src_offset * dtype_bytes(given->dtype);
    inv->conversion_count++;
    note_order(inv, index);
    atomic_fetch_add_explicit(&inv->method->converted_inputs, 1, memory_order_relaxed);
    return ST_OK;
}

enum status rt_invocation_bind_input(struct rt_invocation *inv, uint32_t index,
                                     const struct rt_buffer_desc *given, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct rt_bound_input *input = &inv->inputs[index];
    struct rt_buffer_desc wanted;
    enum rt_oracle_answer answer;
    size_t bytes;
    must(given->buffer);
    rt_invocation_forget(inv);
    TRY(ask(inv, index, given, &answer, &wanted, &bytes, err));
    if (answer == RT_ORACLE_CONVERT) {
        return convert_input(inv, index, given, bytes, err);
    }
    must(answer == RT_ORACLE_USE);
    input->shape = given->shape;
    input->binding = (struct hal_binding){
        .buffer = hal_buffer_ref(given->buffer), .offset = given->offset, .length = bytes};
    input->is_given = true;
    if (wanted.has_strides) {
        note_order(inv, index);
    }
    atomic_fetch_add_explicit(&inv->method->inputs_in_place, 1, memory_order_relaxed);
    return ST_OK;
}

enum status rt_invocation_stage_input(struct rt_invocation *inv, uint32_t index,
                                      const struct rt_buffer_desc *given, size_t bytes,
                                      void **out_ptr, struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    struct rt_buffer_desc staged = *given;
    struct hal_binding memory;
    must(!given->buffer);
    rt_invocation_forget(inv);
    TRY(reserve(inv, bytes, &memory, err));
    staged.buffer = memory.buffer;
    staged.offset += memory.offset;
    enum status status = rt_invocation_bind_input(inv, index, &staged, err);
    *out_ptr = memory_of(&memory);
    hal_buffer_unref(staged.buffer);
    return status;
}

/* ---- scalars ------------------------------------------------------------------------------- */

/* Input |index| must be a scalar of |kind| that was not given before. */
static enum status check_scalar(struct rt_invocation *inv, uint32_t index, enum rt_io_kind kind,
                                struct error *err)
{
    static const char *const kinds[] = {
        [RT_IO_INT] = "an int",
        [RT_IO_FLOAT] = "a float",
        [RT_IO_BOOL] = "a bool",
        [RT_IO_STRING] = "a string",
    };
    TABLE_ENDS_WITH(kinds, RT_IO_STRING);
    const struct rt_io *io = rt_method_input(inv->method, index);
    must(inv->phase == RT_PHASE_FILLING);
    if (io->kind != kind) {
        return rt_io_refuse(io, kinds[kind], err);
    }
    return check_absent(inv, index, err);
}

/* The exporter fixed the value: only that one counts as given. */
static bool take_scalar(struct rt_invocation *inv, uint32_t index, bool is_same)
{
    inv->inputs[index].is_given = is_same;
    return is_same;
}

enum status rt_invocation_int(struct rt_invocation *inv, uint32_t index, int64_t value,
                              struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    TRY(check_scalar(inv, index, RT_IO_INT, err));
    int64_t fixed = rt_method_input(inv->method, index)->value.i;
    return take_scalar(inv, index, value == fixed)
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected %" PRId64 ", which the exporter fixed, got %" PRId64, fixed,
                           value);
}

/* ExecuTorch accepts a double as the same if it is within 1e-4 + 1e-5 of its size. */
enum status rt_invocation_float(struct rt_invocation *inv, uint32_t index, double value,
                                struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    TRY(check_scalar(inv, index, RT_IO_FLOAT, err));
    double fixed = rt_method_input(inv->method, index)->value.f;
    bool is_same = value == fixed || fabs(value - fixed) <= 1e-4 + 1e-5 * fabs(fixed) ||
                   (isnan(value) && isnan(fixed));
    return take_scalar(inv, index, is_same)
               ? ST_OK
               : error_set(err, ST_INVALID, "expected %.17g, which the exporter fixed, got %.17g",
                           fixed, value);
}

enum status rt_invocation_bool(struct rt_invocation *inv, uint32_t index, bool value,
                               struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    TRY(check_scalar(inv, index, RT_IO_BOOL, err));
    return take_scalar(inv, index, value == rt_method_input(inv->method, index)->value.b)
               ? ST_OK
               : error_set(err, ST_INVALID, "expected %s, which the exporter fixed, got %s",
                           value ? "false" : "true", value ? "true" : "false");
}

enum status rt_invocation_string(struct rt_invocation *inv, uint32_t index, struct span value,
                                 struct error *err)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    TRY(check_scalar(inv, index, RT_IO_STRING, err));
    struct span fixed = rt_method_input(inv->method, index)->value.s;
    return take_scalar(inv, index, span_equal(fixed, value))
               ? ST_OK
               : error_set(err, ST_INVALID, "expected '%.*s', which the exporter fixed, got '%.*s'",
                           (int)(fixed.len < 60 ? fixed.len : 60), (const char *)fixed.ptr,
                           (int)(value.len < 60 ? value.len : 60), (const char *)value.ptr);
}

/* ---- conversion ------------------------------------------------------------------------------ */

/* Input |i|, converted: slot |at| is the target, the next slot the source. */
static enum status record_conversion(struct rt_invocation *inv, uint32_t i, uint32_t at,
                                     struct hal_command *command, struct error *err)
{
    struct rt_bound_input *input = &inv->inputs[i];
    size_t size = hal_buffer_size(input->source);
    const struct hal_binding bindings[] = {
        {.slot = (uint16_t)at, .length = input->binding.length},
        {.slot = (uint16_t)(at + 1),
         .offset = input->source_offset,
         .length = size - input->source_offset},
    };
    inv->slots[at] = input->binding;
    inv->slots[at + 1] = (struct hal_binding){.buffer = input->source, .length = size};
    return rt_copy_record(
        command, &input->copy, (uint32_t)dtype_bytes(rt_method_input(inv->method, i)->dtype),
        rt_cut_machine(hal_device_props(inv->method->device), &rt_copy_kernel), bindings, err);
}

/* A command buffer of its own, recorded for this call alone, which is rare. Fills the slots. */
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

/* |converted| reaches 1 when the inputs have the form that the method needs. */
static enum status submit_conversions(struct rt_invocation *inv, struct hal_semaphore *converted)
{
    struct hal_command *command;
    TRY(record_conversions(inv, &command, NULL));
    struct hal_submission submission = {
        .command = command,
        .slots = inv->slots,
        .slot_count = 2 * inv->conversion_count,
        .wait_count = inv->wait_count,
        .signal = {{converted, 1}},
        .signal_count = 1,
        .share = inv->method->share,
        .weight = inv->method->weight,
        .cancel = inv->cancel,
    };
    memcpy(submission.wait, inv->waits, inv->wait_count * sizeof(inv->waits[0]));
    enum status status = hal_queue_submit(inv->method->device, &submission, NULL);
    hal_command_unref(command);
    return status;
}

/* NULL if there is nothing to convert. The semaphore is not the invocation's own: that one only
 * reports the end of the method, after which neither the invocation nor its memory is looked at. */
enum status rt_invocation_convert(struct rt_invocation *inv, struct hal_semaphore **out_converted)
{
    OBJ_CHECK(inv, INVOCATION_MAGIC);
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
