/* SPDX-License-Identifier: MIT */
/*
 * masked_scatter: where the mask is true, the output takes the elements of a source in order. One
 * tile walks the whole tensor, because the source of an element depends on all elements before it.
 * Masks keep one value for long stretches, and each stretch is copied whole. It is a fault if the
 * source has fewer elements than the mask has trues.
 */
#include "config.h"

#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/masked.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

/* Bindings: output, tensor, mask, source. */
static void masked_scatter_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_masked *k = args->constants;
    const char *source = args->bindings[3];
    int64_t left = k->source, width = k->width;
    struct rt_cursor cursor;

    rt_loop_cursor_init(&cursor, &k->loop, args->bindings, tile.x);
    int64_t in_stride = rt_loop_cursor_stride(&cursor, 1),
            mask_stride = rt_loop_cursor_stride(&cursor, 2);
    while (rt_loop_cursor_next(&cursor)) {
        const uint8_t *mask = (const uint8_t *)cursor.ptrs[2];
        char *out = cursor.ptrs[0];
        for (int64_t i = 0, end; i < cursor.count; i = end) {
            bool is_put = mask[i * mask_stride] != 0;
            for (end = i + 1; end < cursor.count; end++) {
                if ((mask[end * mask_stride] != 0) != is_put) {
                    break;
                }
            }
            if (is_put && end - i > left) {
                hal_fault(args, HAL_FAULT_VALUES, NULL);
            }
            int64_t put = !is_put ? 0 : end - i < left ? end - i : left;
            if (put > 0) { /* an empty source has no address */
                memcpy(out + i * width, source, (size_t)(put * width));
                source += put * width;
                left -= put;
            }
            rt_copy_run(out + (i + put) * width, width, cursor.ptrs[1] + (i + put) * in_stride,
                        in_stride, end - i - put, k->width);
        }
    }
}

static const struct hal_kernel masked_scatter_kernel = {
    .name = "masked_scatter", .cpu = masked_scatter_tile, .spirv = HAL_SPIRV(masked_scatter_spirv)};

static enum status masked_scatter_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *mask = rt_shape_arg(call, 1);
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint8_t rank;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 1, 1u << DT_BOOL | 1u << DT_U8));
    TRY(rt_shape_need_dtype(call, 2, 1u << self->dtype));
    TRY(rt_shape_broadcast(call, self->rank, self->dims, mask->rank, mask->dims, dims, &rank));
    return rt_shape_set_out(call, 0, rank, dims);
}

static enum status masked_scatter_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0), *self = rt_emit_arg(emit, 0);
    const struct rt_tensor *mask = rt_emit_arg(emit, 1), *source = rt_emit_arg(emit, 2);
    struct hal_binding bindings[4] = {out->binding, self->binding, mask->binding, source->binding};
    struct rt_masked k = {.width = (uint32_t)dtype_bytes(out->dtype), .source = source->numel};

    if (out->numel == 0) {
        return ST_OK;
    }
    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    rt_loop_add(&k.loop, self);
    rt_loop_add(&k.loop, mask);
    rt_loop_close(&k.loop, out->numel);
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &masked_scatter_kernel,
                                .grid = {1, 1, 1},
                                .constants = &k,
                                .constants_bytes = sizeof(k),
                                .bindings = bindings,
                                .binding_count = 4,
                                .cost = (uint64_t)out->numel,
                            },
                            err);
}

const struct rt_op rt_ops_masked[] = {
    {.name = "masked_scatter",
     .kernels = "aten::masked_scatter.out",
     .args = "TTT>T",
     .shape = masked_scatter_shape,
     .emit = masked_scatter_emit,
     .dtypes = RT_DTYPES_ALL,
     .runs = &masked_scatter_kernel},
    {.name = NULL},
};
