/* SPDX-License-Identifier: MIT */
/*
 * The indices of repeat_interleave: 0 repeated repeats[0] times, then 1 repeated repeats[1] times,
 * and so on. The file gives their number; for the second row the data gives it and the file bounds
 * it. Another sum, a larger one, or a negative repeat is a fault.
 */
#include "config.h"

#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/interleave.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

static int64_t read_repeats(const struct hal_args *args, int64_t at)
{
    const struct rt_interleave *k = args->constants;
    return k->dtype == DT_I32 ? ((const int32_t *)args->bindings[1])[at]
                              : ((const int64_t *)args->bindings[1])[at];
}

/* Bindings: output, repeats, and how many there are. */
static void interleave_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_interleave *k = args->constants;
    rt_store_f *store = rt_convert_store(RT_CLASS_I64, k->dtype);
    int64_t width = (int64_t)dtype_bytes(k->dtype), at = 0;
    char *out = args->bindings[0];

    (void)tile;
    for (int64_t i = 0; i < k->count; i++) {
        int64_t repeats = read_repeats(args, i);
        if (repeats < 0 || repeats > k->length - at) {
            const void *from = (const char *)args->bindings[1] + i * width;
            hal_fault(args, HAL_FAULT_REPEATS,
                      &(struct hal_fault_number){from, repeats, 0, k->length - at});
            return;
        }
        for (int64_t end = at + repeats; at < end; at++) {
            store(out + at * width, 0, &i, 1);
        }
    }
    if (k->has_extent) {
        memcpy(args->bindings[2], &at, sizeof(at));
    } else if (at != k->length) {
        hal_fault(args, HAL_FAULT_SUM, &(struct hal_fault_number){NULL, at, k->length, k->length});
    }
}

static const struct hal_kernel interleave_kernel = {
    .name = "repeat_interleave", .cpu = interleave_tile, .spirv = HAL_SPIRV(interleave_spirv)};

static enum status check_repeats(struct rt_shape_call *call)
{
    const struct rt_value *repeats = rt_shape_arg(call, 0);
    TRY(rt_view_same_dtype(call));
    return repeats->rank == 1
               ? ST_OK
               : rt_shape_refuse(call, "the repeats have rank %u, expected 1", repeats->rank);
}

static enum status interleave_shape(struct rt_shape_call *call)
{
    const struct rt_value *length = rt_shape_arg(call, 1);
    const struct rt_value *out = rt_node_out(call->graph, call->node, 0);
    struct rt_dim dim;

    TRY(check_repeats(call));
    if (length->kind == RT_INT) {
        dim = length->i;
    } else if (out->is_static && out->declared && out->rank == 1) {
        dim = out->declared[0];
    } else {
        return rt_shape_unsupported(call, "the length has no upper bound");
    }
    if (rt_dim_is_const(dim) && dim.value < 0) {
        return rt_shape_refuse(call, "length %lld, expected 0 or more", (long long)dim.value);
    }
    return rt_shape_set_out(call, 0, 1, &dim);
}

static enum status found_shape(struct rt_shape_call *call)
{
    const struct rt_value *out = rt_node_out(call->graph, call->node, 0);

    TRY(check_repeats(call));
    if (!out->declared || out->rank != 1) {
        return rt_shape_unsupported(call, "the length has no upper bound");
    }
    TRY(rt_shape_set_out(call, 0, 1, &out->declared[0]));
    return rt_shape_set_out(call, 1, 0, NULL);
}

static enum status interleave_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *repeats = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[3] = {out->binding, repeats->binding};
    bool has_extent = rt_emit_op(emit)->flags & RT_OP_EXTENT;
    struct rt_interleave k = {out->dtype, has_extent, repeats->numel, out->numel};

    if (!has_extent && repeats->numel + out->numel == 0) {
        return ST_OK;
    }
    if (has_extent) {
        bindings[2] = rt_emit_out(emit, 1)->binding;
    }
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &interleave_kernel,
                                .grid = {1, 1, 1},
                                .constants = &k,
                                .constants_bytes = sizeof(k),
                                .bindings = bindings,
                                .binding_count = has_extent ? 3 : 2,
                                .cost = (uint64_t)(repeats->numel + out->numel),
                            },
                            err);
}

const struct rt_op rt_ops_interleave[] = {
    {.name = "repeat_interleave",
     .kernels = "aten::repeat_interleave.Tensor_out",
     .args = "TI?>T",
     .shape = interleave_shape,
     .emit = interleave_emit,
     .dtypes = 1u << DT_I32 | 1u << DT_I64,
     .runs = &interleave_kernel},
    {.name = "repeat_interleave_found",
     .args = "TI?>TT",
     .shape = found_shape,
     .emit = interleave_emit,
     .flags = RT_OP_EXTENT,
     .dtypes = 1u << DT_I32 | 1u << DT_I64,
     .runs = &interleave_kernel},
    {.name = NULL},
};
