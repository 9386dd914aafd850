/* SPDX-License-Identifier: MIT */
/* Checks shared by the families of operators that move elements. */
#include "config.h"

#include "runtime/ops/view_priv.h"

#include "runtime/ops/op.h"

enum status rt_view_same_dtype(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_tensors outs = {.graph = call->graph, .values = call->node->outs, .count = 1};

    for (uint32_t value; rt_tensors_next(&outs, &value);) {
        enum dtype dtype = call->graph->values[value].dtype;
        if (dtype != self->dtype) {
            return rt_shape_refuse(call, "output is %s, expected %s (the input's type)",
                                   dtype_text(dtype), dtype_text(self->dtype));
        }
    }
    return ST_OK;
}

enum status rt_view_rank(struct rt_shape_call *call, uint32_t rank)
{
    if (rank > SHAPE_RANK_MAX) {
        return rt_shape_refuse(call, "rank %u, expected at most %d", rank, SHAPE_RANK_MAX);
    }
    return ST_OK;
}

enum status rt_view_dims(struct rt_shape_call *call, uint32_t index, uint8_t dims[SHAPE_RANK_MAX],
                         uint32_t *out_mask)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *list = rt_shape_arg(call, index);
    uint32_t mask = 0;

    TRY(rt_view_rank(call, list->count));
    for (uint32_t i = 0; i < list->count; i++) {
        if (!rt_dim_is_const(list->ints[i])) {
            return rt_shape_unsupported(call, "argument %u must not depend on the inputs' dims",
                                        index);
        }
        TRY(rt_shape_need_dim(call, list->ints[i].value, self->rank, &dims[i]));
        if (mask >> dims[i] & 1) {
            return rt_shape_refuse(call, "dim %u is listed twice", dims[i]);
        }
        mask |= 1u << dims[i];
    }
    *out_mask = mask;
    return ST_OK;
}

enum status rt_view_need_dim(struct rt_shape_call *call, uint32_t index, uint8_t *out_dim)
{
    int64_t number;

    TRY(rt_shape_need_const(call, index, &number));
    return rt_shape_need_dim(call, number, rt_shape_arg(call, 0)->rank, out_dim);
}

enum status rt_view_fits(struct rt_shape_call *call, struct rt_dim dim, struct rt_dim size,
                         const char *what)
{
    if (rt_dim_is(dim, 1)) {
        return ST_OK;
    }
    bool is_one = !rt_dim_is_const(dim) && dim.value == 1 && !rt_dim_same(dim, size);
    return rt_dim_require_equal(&call->graph->dims, dim, is_one ? rt_dim_of(1) : size, what,
                                call->err);
}

/* If the sign of an index is unknown, adds |size| times min(1, max(0, -index)). */
struct rt_dim rt_view_wrap(struct rt_dims *dims, struct rt_dim index, struct rt_dim size)
{
    struct rt_dim minus = rt_dim_sub(dims, rt_dim_of(0), index);
    struct rt_dim is_negative =
        rt_dim_min(dims, rt_dim_of(1), rt_dim_max(dims, rt_dim_of(0), minus));
    return rt_dim_add(dims, index, rt_dim_mul(dims, is_negative, size));
}
