/* SPDX-License-Identifier: MIT */
/* Inputs in the body or in the memory of the device, and the list of outputs. */
#include "config.h"

#include "server/daemon/infer/codec.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/pool.h"
#include "runtime/program/oracle.h"
#include "server/daemon/infer/infer.h"

/* Strides are bytes on the wire and elements in the runtime. */
static struct rt_buffer_desc describe(const struct codec_tensor *tensor)
{
    const struct oip_layout *layout = tensor->layout;
    struct rt_buffer_desc desc = {
        .dtype = tensor->dtype,
        .shape = *tensor->shape,
        .has_strides = layout->is_given,
        .offset = layout->is_given ? (size_t)layout->offset : 0,
    };
    for (uint8_t d = 0; layout->is_given && d < tensor->shape->rank; d++) {
        desc.strides[d] = layout->strides[d] / (int64_t)dtype_bytes(tensor->dtype);
    }
    return desc;
}

enum status codec_outputs_new(struct arena *arena, struct infer_call *call, size_t count,
                              struct error *err)
{
    must(count <= INFER_OUTPUTS_MAX);
    call->output_count = 0;
    if (!call->outputs) {
        call->outputs = arena_array(arena, count, sizeof(call->outputs[0]));
    }
    return call->outputs ? ST_OK : arena_fail(arena, "the request", err);
}

enum status codec_bind(struct infer *infer, struct infer_call *call,
                       const struct codec_tensor *tensor, struct span bytes, struct error *err)
{
    must(call->invocation != NULL && tensor->index < call->model->call.input_count);
    const struct body *body = infer->body;
    const uint8_t *base = hal_buffer_map(body->buffer);
    struct rt_buffer_desc given = describe(tensor);
    given.buffer = body->buffer;
    given.offset += (size_t)(bytes.ptr - base);
    infer->bound_bytes += bytes.len;
    size_t before = hal_pool_taken(infer->pool);
    enum status status = rt_invocation_bind_input(call->invocation, tensor->index, &given, err);
    infer->work.reserved += hal_pool_taken(infer->pool) - before; /* for the device */
    return status;
}

enum status codec_stage(struct infer *infer, struct infer_call *call,
                        const struct codec_tensor *tensor, size_t stored, void **out_ptr,
                        struct error *err)
{
    must(call->invocation != NULL && tensor->index < call->model->call.input_count);
    TRY(work_add(&infer->work, stored, err));
    if (!tensor->layout->is_given) {
        return rt_invocation_input(call->invocation, tensor->index, tensor->dtype, tensor->shape,
                                   out_ptr, err);
    }
    const struct rt_buffer_desc given = describe(tensor);
    return rt_invocation_stage_input(call->invocation, tensor->index, &given, stored, out_ptr, err);
}

enum status codec_put_string(struct infer *infer, struct infer_call *call, uint32_t index,
                             struct span string, struct error *err)
{
    must(call->invocation != NULL && index < call->model->call.input_count);
    TRY(work_add(&infer->work, string.len, err));
    return rt_invocation_string(call->invocation, index, string, err);
}

enum status codec_put_scalar(struct infer_call *call, enum rt_io_kind kind, uint32_t index,
                             const union codec_scalar *value, struct error *err)
{
    must(call->invocation != NULL && index < call->model->call.input_count);
    struct rt_invocation *invocation = call->invocation;
    if (kind == RT_IO_INT) {
        return rt_invocation_int(invocation, index, value->i, err);
    }
    if (kind == RT_IO_FLOAT) {
        return rt_invocation_float(invocation, index, value->f, err);
    }
    must(kind == RT_IO_BOOL);
    return rt_invocation_bool(invocation, index, value->b, err);
}

void codec_take_query(const struct infer *infer, struct oip_parameters *parameters)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    if (query_has(&infer->query, QUERY_TOP_K)) {
        parameters->has_top_k = true;
        parameters->top_k = infer->query.top_k;
    }
    if (query_has(&infer->query, QUERY_ORDER)) {
        parameters->is_channels_last = infer->query.is_channels_last;
    }
}

enum status codec_name_none(const struct infer_call *call, uint32_t index, const char *behind,
                            struct error *err)
{
    (void)call;
    (void)index;
    (void)behind;
    return err->code;
}
