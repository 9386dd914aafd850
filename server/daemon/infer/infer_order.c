/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/infer/infer_order.h"

#include <string.h>

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/infer.h"

/* ---- which ----------------------------------------------------------------------------------- */

static bool has_channels(const struct infer_output *output)
{
    const struct model_io *io = output->io;
    return io->kind == RT_IO_TENSOR && shape_channels_last(io->meta.shape.rank);
}

enum status infer_order_ask(struct infer_output *output, bool is_channels_last, struct error *err)
{
    output->has_order = true;
    output->is_channels_last = is_channels_last;
    return !is_channels_last || has_channels(output)
               ? ST_OK
               : error_set(err, ST_INVALID, "expected an output of 3 to 5 dims");
}

/* Is the order of the request for |output|, too? Classes, answers and shared memory have none. */
static bool takes_order(const struct infer_output *output)
{
    bool is_tensor = !output->class_count && !output->is_answer && !output->is_part;
    return is_tensor && !output->has_order && !output->region && has_channels(output);
}

static enum status spread(struct infer_call *call, struct error *err)
{
    bool is_used = false;
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        output->is_channels_last |= takes_order(output);
        is_used |= output->has_order || output->is_channels_last;
    }
    return is_used ? ST_OK
                   : error_set(err, ST_INVALID,
                               "parameters.order: no result is given as a tensor of 3 to 5 dims");
}

/* Is some output read row-major: as it is, for its classes, or for an answer, which may be made of
 * several outputs? */
static bool needs_row_major(const struct infer_call *call, const struct model_io *io)
{
    for (size_t i = 0; i < call->output_count; i++) {
        const struct infer_output *output = &call->outputs[i];
        if (output->is_answer || (output->io == io && !output->is_channels_last)) {
            return true;
        }
    }
    return false;
}

enum status infer_order_choose(struct infer_call *call, struct error *err)
{
    TRY(call->parameters->is_channels_last ? spread(call, err) : ST_OK);
    for (size_t i = 0; i < call->output_count; i++) {
        const struct infer_output *output = &call->outputs[i];
        if (!output->is_channels_last) {
            continue;
        }
        if (output->class_count) {
            return error_set(err, ST_INVALID,
                             "output '%s' has \"order\" beside top_k, expected one", output->name);
        }
        if (!needs_row_major(call, output->io)) {
            rt_invocation_prefer_order(call->invocation, output->io->index);
        }
    }
    return ST_OK;
}

/* ---- turning --------------------------------------------------------------------------------- */

struct span infer_order_bytes(const struct infer_call *call, const struct infer_output *output)
{
    const struct rt_result *result = rt_invocation_result(call->invocation, output->io->index);
    must(!result->order || output->is_channels_last);
    return output->turned.ptr ? output->turned : result->bytes;
}

/* Copies elements of |size| bytes, |outer| times: the element at [c, s] of [channels, places] goes
 * to [s, c]. */
static void turn(uint8_t *to, const uint8_t *from, int64_t outer, int64_t channels, int64_t places,
                 size_t size)
{
    size_t pixel = (size_t)channels * size;
    for (int64_t n = 0; n < outer; n++) {
        for (int64_t c = 0; c < channels; c++) {
            uint8_t *at = to + (size_t)c * size;
            for (int64_t s = 0; s < places; s++, at += pixel, from += size) {
                memcpy(at, from, size);
            }
        }
        to += pixel * (size_t)places;
    }
}

enum status infer_order_turn(struct infer *infer, const struct infer_call *call,
                             struct infer_output *output, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct rt_result *result = rt_invocation_result(call->invocation, output->io->index);
    const struct shape *shape = &result->shape;
    if (!output->is_channels_last || result->order || result->bytes.len == 0) {
        return ST_OK;
    }
    uint8_t *turned = arena_alloc(&infer->turned, result->bytes.len);
    if (!turned) {
        return arena_fail(&infer->turned, "the answer", err);
    }
    int64_t pixels = shape->dims[0] * shape->dims[1];
    turn(turned, result->bytes.ptr, shape->dims[0], shape->dims[1], shape_numel(shape) / pixels,
         dtype_bytes(output->io->meta.type.dtype));
    output->turned = span_of(turned, result->bytes.len);
    return ST_OK;
}
