/* SPDX-License-Identifier: MIT */
/*
 * Arithmetic on sizes. These operators have no kernel: their shape functions compute expressions,
 * and once those are known the nodes are dropped. Sizes are integers; operators that make floats of
 * them are elsewhere.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/op.h"

typedef struct rt_dim dim_op_f(struct rt_dims *dims, struct rt_dim a, struct rt_dim b);

static void set_int(struct rt_shape_call *call, struct rt_dim value)
{
    rt_node_out(call->graph, call->node, 0)->i = value;
}

static enum status sym_size(struct rt_shape_call *call)
{
    const struct rt_value *tensor = rt_shape_arg(call, 0);
    int64_t number;
    uint8_t dim;
    TRY(rt_shape_need_const(call, 1, &number));
    TRY(rt_shape_need_dim(call, number, tensor->rank, &dim));
    if (tensor->rank == 0) {
        return rt_shape_refuse(call, "a tensor of rank 0 has no dim %d", dim);
    }
    set_int(call, tensor->dims[dim]);
    return ST_OK;
}

static enum status sym_numel(struct rt_shape_call *call)
{
    set_int(call, rt_value_numel(call->graph, rt_shape_arg(call, 0)));
    return ST_OK;
}

static enum status arithmetic(struct rt_shape_call *call)
{
    dim_op_f *const *op = call->node->op->detail;
    set_int(call, (*op)(&call->graph->dims, rt_shape_arg(call, 0)->i, rt_shape_arg(call, 1)->i));
    return ST_OK;
}

/* For two sizes Python's and C's division agree, because the dividend is not negative. */
static enum status division(struct rt_shape_call *call)
{
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim a = rt_shape_arg(call, 0)->i, b = rt_shape_arg(call, 1)->i;
    if (rt_dim_lo(dims, b) < 0 || rt_dim_is(b, 0) || rt_dim_lo(dims, a) < 0) {
        return rt_shape_unsupported(call, "a quotient of sizes may be negative or have divisor 0");
    }
    return arithmetic(call);
}

static enum status negate(struct rt_shape_call *call)
{
    set_int(call, rt_dim_sub(&call->graph->dims, rt_dim_of(0), rt_shape_arg(call, 0)->i));
    return ST_OK;
}

static dim_op_f *const add = rt_dim_add, *const sub = rt_dim_sub, *const mul = rt_dim_mul,
                       *const floordiv = rt_dim_floordiv, *const mod = rt_dim_mod,
                       *const max = rt_dim_max, *const min = rt_dim_min;

/* clang-format off */
const struct rt_op rt_ops_scalar[] = {
    {"sym_size", "aten::sym_size.int", "TI>I", sym_size, .flags = RT_OP_SCALAR,
     .dtypes = RT_DTYPES_ANY},
    {"sym_numel", "aten::sym_numel", "T>I", sym_numel, .flags = RT_OP_SCALAR,
     .dtypes = RT_DTYPES_ANY},
    {"sym_add", "executorch_prim::add.Scalar", "II>I", arithmetic,
     .flags = RT_OP_SCALAR, .detail = &add},
    {"sym_sub", "executorch_prim::sub.Scalar", "II>I", arithmetic,
     .flags = RT_OP_SCALAR, .detail = &sub},
    {"sym_mul", "executorch_prim::mul.Scalar", "II>I", arithmetic,
     .flags = RT_OP_SCALAR, .detail = &mul},
    {"sym_floordiv", "executorch_prim::floordiv.Scalar executorch_prim::floordiv.int",
     "II>I", division, .flags = RT_OP_SCALAR, .detail = &floordiv},
    {"sym_mod", "executorch_prim::mod.Scalar executorch_prim::mod.int", "II>I", division,
     .flags = RT_OP_SCALAR, .detail = &mod},
    {"sym_max", "executorch_prim::sym_max.Scalar", "II>I", arithmetic,
     .flags = RT_OP_SCALAR, .detail = &max},
    {"sym_min", "executorch_prim::sym_min.Scalar", "II>I", arithmetic,
     .flags = RT_OP_SCALAR, .detail = &min},
    {"sym_neg", "executorch_prim::neg.Scalar", "I>I", negate, .flags = RT_OP_SCALAR},
    {0},
};
/* clang-format on */
