/* SPDX-License-Identifier: MIT */
/*
 * glu: the first half of a dim times the sigmoid of the second half, as a pointwise loop over both.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pointwise.h"
#include "runtime/ops/view_priv.h"

static enum status glu_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim out[SHAPE_RANK_MAX], two = rt_dim_of(2);
    uint8_t dim;

    TRY(rt_shape_need_out_dtype(call, 0, RT_DTYPES_FLOAT));
    TRY(rt_view_need_dim(call, 1, &dim));
    if (in->rank == 0) {
        return rt_shape_refuse(call, "the tensor has rank 0, expected 1 or more");
    }
    TRY(rt_dim_require_equal(dims, rt_dim_mod(dims, in->dims[dim], two), rt_dim_of(0),
                             "size of the dim modulo 2", call->err));
    for (uint8_t d = 0; d < in->rank; d++) {
        out[d] = d == dim ? rt_dim_floordiv(dims, in->dims[d], two) : in->dims[d];
    }
    return rt_shape_set_out(call, 0, in->rank, out);
}

static enum status glu_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 1), in->rank);
    int64_t width = (int64_t)dtype_bytes(in->dtype), strides[SHAPE_RANK_MAX];
    struct hal_binding bindings[3] = {out->binding, in->binding, in->binding};
    struct rt_pointwise_constants k = {
        .op = RT_PW_glu,
        .class = rt_convert_class(in->dtype),
        .out = out->dtype,
        .inputs = {{.loop = 1, .dtype = in->dtype}, {.loop = 2, .dtype = in->dtype}},
    };

    for (uint8_t d = 0; d < in->rank; d++) {
        strides[d] = in->strides[d] * width;
    }
    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    rt_loop_add_strides(&k.loop, strides, 0);
    rt_loop_add_strides(&k.loop, strides, out->dims[dim] * strides[dim]);
    return rt_pointwise_record(emit, &k, bindings, err);
}

const struct rt_op rt_ops_gate[] = {
    {.name = "glu",
     .kernels = "aten::glu.out",
     .args = "TI>T",
     .shape = glu_shape,
     .emit = glu_emit,
     .layout = RT_LAYOUT_ANY,
     .batch = rt_batch_along,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rt_pointwise_kernels[RT_CLASS_F32][RT_PW_glu]},
    {.name = NULL},
};
