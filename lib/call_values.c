/* SPDX-License-Identifier: MIT */
/* Inputs and outputs of calls. Each check of what a caller gives is here or in the runtime, whose
 * refusals get the name of the input in front. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/shape.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "lib/inside.h"
#include "runtime/call/invocation.h"
#include "runtime/program/oracle.h"
#include "runtime/program/program.h"

#define IMPORT_ALIGN 16 /* of memory that a device of the host uses in place */
#define PLACE_ALIGN 64

/* ---- tensors of callers ---------------------------------------------------------------------- */

static bool may_fill(const struct pted_call *call, size_t index, struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    if (call->phase != LIB_PHASE_FILLING) {
        lib_refuse(err, ST_INVALID, "the call has been run: reset it");
        return false;
    }
    size_t count = pted_method_input_count(call->method);
    if (index >= count) {
        lib_refuse(err, ST_INVALID, "input %zu: method '%.60s' has %zu inputs", index,
                   rt_method_name(call->method->rt), count);
        return false;
    }
    return true;
}

/* The refusal of input |index|: "input 'x': expected float32[2], got float32[3]". */
static enum pted_status give_input(const struct pted_call *call, size_t index, enum status status,
                                   struct error *own, struct pted_error *err)
{
    if (status != ST_OK && status != ST_EXHAUSTED) {
        (void)error_prefix(own, "%s: ", rt_method_input(call->method->rt, (uint32_t)index)->label);
    }
    return lib_give(status, own, err);
}

/* |tensor| in words of the runtime, without a buffer. */
static enum status describe(const struct pted_tensor *tensor, struct rt_buffer_desc *out,
                            struct error *err)
{
    *out = (struct rt_buffer_desc){.has_strides = tensor->strides != NULL};
    if (!dtype_from_executorch((int)tensor->dtype, &out->dtype)) {
        return error_set(err, ST_INVALID, "no element type has the number %d", (int)tensor->dtype);
    }
    if (tensor->rank > SHAPE_RANK_MAX) {
        return error_set(err, ST_INVALID, "%u dims, at most %d are possible", tensor->rank,
                         SHAPE_RANK_MAX);
    }
    out->shape.rank = (uint8_t)tensor->rank;
    for (uint32_t d = 0; d < tensor->rank; d++) {
        out->shape.dims[d] = tensor->dims[d];
        out->strides[d] = tensor->strides ? tensor->strides[d] : 0;
        if (out->strides[d] < 0) {
            return error_set(err, ST_INVALID, "a stride is negative");
        }
    }
    return ST_OK;
}

/* Bytes of memory from the tensor's first element to its last one: no more than there are. */
static enum status measure(const struct pted_tensor *tensor, const struct rt_buffer_desc *desc,
                           size_t *out_bytes, struct error *err)
{
    int64_t low = 0, high = 0;
    TRY(shape_bytes(&desc->shape, desc->dtype, out_bytes, err));
    if (*out_bytes > 0 && desc->has_strides) {
        size_t element = dtype_bytes(desc->dtype);
        if (!shape_reach(&desc->shape, desc->strides, &low, &high) ||
            (uint64_t)high >= SIZE_MAX / 2 / element) {
            return error_set(err, ST_INVALID, "its strides reach too far");
        }
        *out_bytes = ((size_t)high + 1) * element;
    }
    return *out_bytes <= tensor->bytes
               ? ST_OK
               : error_set(err, ST_INVALID, "has %zu bytes, expected at least %zu", tensor->bytes,
                           *out_bytes);
}

/* ---- tensors of calls ------------------------------------------------------------------------ */

static enum status copy_input(struct pted_call *call, uint32_t index,
                              const struct pted_tensor *tensor, struct error *err)
{
    struct rt_buffer_desc desc;
    size_t bytes;
    void *to = NULL;
    TRY(describe(tensor, &desc, err));
    TRY(measure(tensor, &desc, &bytes, err));
    if (desc.has_strides && bytes > 0) {
        TRY(rt_invocation_stage_input(call->invocation, index, &desc, bytes, &to, err));
    } else {
        TRY(rt_invocation_input(call->invocation, index, desc.dtype, &desc.shape, &to, err));
    }
    if (bytes > 0) {
        memcpy(to, tensor->data, bytes);
    }
    return ST_OK;
}

enum pted_status pted_call_copy_input(struct pted_call *call, size_t index,
                                      const struct pted_tensor *tensor, struct pted_error *err)
{
    struct error own;
    return may_fill(call, index, err)
               ? give_input(call, index, copy_input(call, (uint32_t)index, tensor, &own), &own, err)
               : PTED_INVALID;
}

/* A device of the host uses memory in place if its buffer begins at a multiple of IMPORT_ALIGN: it
 * begins before the tensor then. ST_UNSUPPORTED: the device has memory of its own. */
static enum status import(struct pted_call *call, void *data, size_t bytes, bool is_read_only,
                          struct rt_buffer_desc *desc, struct error *err)
{
    struct hal_device *device = call->method->program->device->hal;
    size_t before = (uintptr_t)data % IMPORT_ALIGN;
    desc->offset = before;
    return hal_buffer_import(device, (char *)data - before, before + bytes, is_read_only, NULL,
                             NULL, &desc->buffer, err);
}

static enum status borrow_input(struct pted_call *call, uint32_t index,
                                const struct pted_tensor *tensor, struct error *err)
{
    struct rt_buffer_desc desc;
    size_t bytes;
    TRY(describe(tensor, &desc, err));
    TRY(measure(tensor, &desc, &bytes, err));
    if (bytes == 0) {
        return copy_input(call, index, tensor, err);
    }
    enum status status = import(call, tensor->data, bytes, true, &desc, err);
    if (status == ST_UNSUPPORTED) {
        return copy_input(call, index, tensor, err);
    }
    TRY(status);
    status = rt_invocation_bind_input(call->invocation, index, &desc, err);
    hal_buffer_unref(desc.buffer);
    return status;
}

enum pted_status pted_call_borrow_input(struct pted_call *call, size_t index,
                                        const struct pted_tensor *tensor, struct pted_error *err)
{
    struct error own;
    return may_fill(call, index, err)
               ? give_input(call, index, borrow_input(call, (uint32_t)index, tensor, &own), &own,
                            err)
               : PTED_INVALID;
}

static enum status allocate_input(struct pted_call *call, uint32_t index,
                                  struct pted_tensor *tensor, struct error *err)
{
    struct rt_buffer_desc desc;
    TRY(describe(tensor, &desc, err));
    if (desc.has_strides) {
        return error_set(err, ST_INVALID, "has strides, expected NULL");
    }
    TRY(rt_invocation_input(call->invocation, index, desc.dtype, &desc.shape, &tensor->data, err));
    return shape_bytes(&desc.shape, desc.dtype, &tensor->bytes, err);
}

enum pted_status pted_call_allocate_input(struct pted_call *call, size_t index,
                                          struct pted_tensor *tensor, struct pted_error *err)
{
    struct error own;
    return may_fill(call, index, err)
               ? give_input(call, index, allocate_input(call, (uint32_t)index, tensor, &own), &own,
                            err)
               : PTED_INVALID;
}

enum pted_status pted_call_place_output(struct pted_call *call, size_t index, void *data,
                                        size_t bytes, struct pted_error *err)
{
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    const struct pted_info *info = pted_method_output(call->method, index);
    struct rt_buffer_desc desc;
    struct error own;
    if (call->phase != LIB_PHASE_FILLING) {
        return lib_refuse(err, ST_INVALID, "the call has been run: reset it");
    }
    if (!info || pted_info_kind(info) != PTED_KIND_TENSOR) {
        return lib_refuse(err, ST_INVALID, "output %zu: is no tensor of method '%.60s'", index,
                          rt_method_name(call->method->rt));
    }
    if ((uintptr_t)data % PLACE_ALIGN != 0) {
        return lib_refuse(err, ST_INVALID, "output '%.60s': is at %p, expected a multiple of %d",
                          pted_info_name(info), data, PLACE_ALIGN);
    }
    if (!call->placed) {
        call->placed = calloc(pted_method_output_count(call->method), sizeof(struct hal_buffer *));
    }
    if (!call->placed) {
        return lib_give(error_no_memory(&own, "a call"), &own, err);
    }
    enum status status = import(call, data, bytes, false, &desc, &own);
    if (status == ST_OK) {
        hal_buffer_unref(call->placed[index]);
        call->placed[index] = desc.buffer;
    }
    return lib_give(status, &own, err);
}

/* ---- scalars --------------------------------------------------------------------------------- */

enum pted_status pted_call_set_int(struct pted_call *call, size_t index, int64_t value,
                                   struct pted_error *err)
{
    struct error own;
    if (!may_fill(call, index, err)) {
        return PTED_INVALID;
    }
    enum status status = rt_invocation_int(call->invocation, (uint32_t)index, value, &own);
    return give_input(call, index, status, &own, err);
}

enum pted_status pted_call_set_float(struct pted_call *call, size_t index, double value,
                                     struct pted_error *err)
{
    struct error own;
    if (!may_fill(call, index, err)) {
        return PTED_INVALID;
    }
    enum status status = rt_invocation_float(call->invocation, (uint32_t)index, value, &own);
    return give_input(call, index, status, &own, err);
}

enum pted_status pted_call_set_bool(struct pted_call *call, size_t index, bool value,
                                    struct pted_error *err)
{
    struct error own;
    if (!may_fill(call, index, err)) {
        return PTED_INVALID;
    }
    enum status status = rt_invocation_bool(call->invocation, (uint32_t)index, value, &own);
    return give_input(call, index, status, &own, err);
}

enum pted_status pted_call_set_string(struct pted_call *call, size_t index, const char *text,
                                      size_t len, struct pted_error *err)
{
    struct error own;
    if (!may_fill(call, index, err)) {
        return PTED_INVALID;
    }
    enum status status =
        rt_invocation_string(call->invocation, (uint32_t)index, span_of(text, len), &own);
    return give_input(call, index, status, &own, err);
}

/* ---- outputs --------------------------------------------------------------------------------- */

/* Output |index|, which is of |kind|; NULL: |err| says why there is none. */
static const struct rt_result *find_output(const struct pted_call *call, size_t index,
                                           enum pted_kind kind, struct pted_error *err)
{
    static const char *const words[] = {"nothing", "a tensor", "an int",
                                        "a float", "a bool",   "a string"};
    OBJ_CHECK(call, LIB_CALL_MAGIC);
    const struct pted_info *info = pted_method_output(call->method, index);
    if (call->phase != LIB_PHASE_ENDED || call->error.code != ST_OK) {
        lib_refuse(err, ST_INVALID, "the call has no outputs: it %s",
                   call->phase == LIB_PHASE_ENDED ? "has failed" : "has not ended");
        return NULL;
    }
    if (!info) {
        lib_refuse(err, ST_INVALID, "output %zu: method '%.60s' has %zu outputs", index,
                   rt_method_name(call->method->rt), pted_method_output_count(call->method));
        return NULL;
    }
    if (pted_info_kind(info) != kind) {
        lib_refuse(err, ST_INVALID, "output '%.60s': is %s, expected %s", pted_info_name(info),
                   words[pted_info_kind(info)], words[kind]);
        return NULL;
    }
    return rt_invocation_result(call->invocation, (uint32_t)index);
}

/* The bytes of a result are those of memory that may be written. */
static void *writable(const uint8_t *bytes)
{
    union {
        const uint8_t *from;
        void *to;
    } cast = {.from = bytes};
    return cast.to;
}

enum pted_status pted_call_output(const struct pted_call *call, size_t index,
                                  struct pted_tensor *out_tensor, struct pted_error *err)
{
    const struct rt_result *result = find_output(call, index, PTED_KIND_TENSOR, err);
    if (!result) {
        return PTED_INVALID;
    }
    *out_tensor = (struct pted_tensor){
        .data = writable(result->bytes.ptr),
        .bytes = result->bytes.len,
        .dtype = pted_info_dtype(pted_method_output(call->method, index)),
        .rank = result->shape.rank,
        .dims = result->shape.dims,
    };
    return PTED_OK;
}

static enum pted_status read_scalar(const struct pted_call *call, size_t index, enum pted_kind kind,
                                    void *out, size_t bytes, struct pted_error *err)
{
    const struct rt_result *result = find_output(call, index, kind, err);
    if (!result) {
        return PTED_INVALID;
    }
    memcpy(out, result->bytes.ptr, bytes);
    return PTED_OK;
}

enum pted_status pted_call_output_int(const struct pted_call *call, size_t index,
                                      int64_t *out_value, struct pted_error *err)
{
    return read_scalar(call, index, PTED_KIND_INT, out_value, sizeof(*out_value), err);
}

enum pted_status pted_call_output_float(const struct pted_call *call, size_t index,
                                        double *out_value, struct pted_error *err)
{
    return read_scalar(call, index, PTED_KIND_FLOAT, out_value, sizeof(*out_value), err);
}

enum pted_status pted_call_output_bool(const struct pted_call *call, size_t index, bool *out_value,
                                       struct pted_error *err)
{
    return read_scalar(call, index, PTED_KIND_BOOL, out_value, sizeof(*out_value), err);
}

enum pted_status pted_call_output_string(const struct pted_call *call, size_t index,
                                         const char **out_text, size_t *out_len,
                                         struct pted_error *err)
{
    const struct rt_result *result = find_output(call, index, PTED_KIND_STRING, err);
    if (!result) {
        return PTED_INVALID;
    }
    *out_text = (const char *)result->bytes.ptr;
    *out_len = result->bytes.len;
    return PTED_OK;
}
