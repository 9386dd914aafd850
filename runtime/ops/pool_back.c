/* SPDX-License-Identifier: MIT */
/*
 * The gradient of maximum pooling. Each element of the output's gradient is added at the position
 * of its maximum, which the forward pass has stored as h * W + w. A position outside the image is a
 * fault. A tile is one channel's image; tensors are row-major, of any type.
 */
#include "config.h"

#include <string.h>

#include "hal/fault.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/element.h"
#include "runtime/ops/op.h"

struct back_constants {
    enum dtype dtype;
    int64_t in_plane, out_plane; /* elements of the image and of the pooled image */
};

/* Bindings: gradient of the input, gradient of the output, indices. */
static void back_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct back_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype);
    char *image = (char *)args->bindings[0] + tile.x * c->in_plane * width;
    const char *grad = (const char *)args->bindings[1] + tile.x * c->out_plane * width;
    const int64_t *places = (const int64_t *)args->bindings[2] + tile.x * c->out_plane;

    memset(image, 0, (size_t)(c->in_plane * width));
    for (int64_t i = 0; i < c->out_plane; i++) {
        if (places[i] < 0 || places[i] >= c->in_plane) {
            hal_fault(args, HAL_FAULT_INDEX,
                      &(struct hal_fault_number){&places[i], places[i], 0, c->in_plane - 1});
            continue;
        }
        rt_element_add(image + places[i] * width, grad + i * width, 1, c->dtype);
    }
}

static const struct hal_kernel kernel_back = {.name = "max_pool_backward", .cpu = back_tile};

/* The windows play no part: the indices are sufficient. */
static enum status back_shape(struct rt_shape_call *call)
{
    const struct rt_value *grad = rt_shape_arg(call, 0), *self = rt_shape_arg(call, 1);
    const struct rt_value *indices = rt_shape_arg(call, 7);

    TRY(rt_shape_need_dtype(call, 1, RT_DTYPES_FLOAT));
    TRY(rt_shape_need_dtype(call, 0, 1u << self->dtype));
    TRY(rt_shape_need_dtype(call, 7, 1u << DT_I64));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << self->dtype));
    if ((self->rank != 3 && self->rank != 4) || grad->rank != self->rank ||
        indices->rank != self->rank) {
        return rt_shape_refuse(call, "ranks %u, %u and %u, expected all 3 or all 4", grad->rank,
                               self->rank, indices->rank);
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        struct rt_dim other = d + 2 < self->rank ? self->dims[d] : indices->dims[d];
        TRY(rt_dim_require_equal(&call->graph->dims, grad->dims[d], other,
                                 "size of the gradient (must equal the input's)", call->err));
        TRY(rt_dim_require_equal(&call->graph->dims, grad->dims[d], indices->dims[d],
                                 "size of the gradient (must equal the indices')", call->err));
    }
    return rt_shape_set_out_like(call, 0, 1);
}

static enum status back_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *grad = rt_emit_arg(emit, 0), *indices = rt_emit_arg(emit, 7);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    uint8_t h = out->rank - 2, w = out->rank - 1;
    struct back_constants c = {
        .dtype = out->dtype,
        .in_plane = out->dims[h] * out->dims[w],
        .out_plane = grad->dims[h] * grad->dims[w],
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    return rt_emit_dispatch(
        emit,
        &(struct hal_dispatch){
            .kernel = &kernel_back,
            .grid = {(uint32_t)(out->numel / c.in_plane), 1, 1},
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, grad->binding, indices->binding},
            .binding_count = 3,
            .cost = (uint64_t)grad->numel * 10 + (uint64_t)out->numel,
        },
        err);
}

const struct rt_op rt_ops_pool_back[] = {
    {.name = "max_pool2d_backward",
     .kernels = "aten::max_pool2d_with_indices_backward.grad_input",
     .args = "TTLLLLBT>T",
     .shape = back_shape,
     .emit = back_emit,
     .layout = RT_LAYOUT_ROW_MAJOR,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &kernel_back},
    {.name = NULL},
};
