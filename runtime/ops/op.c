/* SPDX-License-Identifier: MIT */
/* The list of families. */
#include "config.h"

#include <string.h>

#include "runtime/ops/op.h"

static const struct rt_op *const families[] = {
    rt_ops_gather,    rt_ops_antialias,   rt_ops_attention,  rt_ops_chain,        rt_ops_complex,
    rt_ops_conv,      rt_ops_conv_direct, rt_ops_create,     rt_ops_extent,       rt_ops_distance,
    rt_ops_fft,       rt_ops_gate,        rt_ops_index,      rt_ops_interleave,   rt_ops_llm,
    rt_ops_masked,    rt_ops_matmul,      rt_ops_norm,       rt_ops_order,        rt_ops_pad,
    rt_ops_pointwise, rt_ops_pool,        rt_ops_pool_back,  rt_ops_pool_volume,  rt_ops_qpointwise,
    rt_ops_qproduct,  rt_ops_quant,       rt_ops_qweights,   rt_ops_quant_layers, rt_ops_random,
    rt_ops_reduce,    rt_ops_softmax,     rt_ops_cumsum,     rt_ops_sample,       rt_ops_scalar,
    rt_ops_slice,     rt_ops_stride,      rt_ops_upsample,   rt_ops_view,         rt_ops_winograd,
    rt_ops_expand_dw, rt_ops_cat_affine,  rt_ops_pixels,     rt_ops_join,         rt_ops_planes,
    rt_ops_bag,       rt_ops_moe,         rt_ops_moe_linear, rt_ops_cache_int8,   rt_ops_search,
};

#define FAMILY_COUNT (sizeof(families) / sizeof(families[0]))

void rt_op_each(void (*fn)(const struct rt_op *op, void *arg), void *arg)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        for (const struct rt_op *op = families[i]; op->name; op++) {
            fn(op, arg);
        }
    }
}

const struct rt_op *rt_op_find(const char *name)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        for (const struct rt_op *op = families[i]; op->name; op++) {
            if (strcmp(op->name, name) == 0) {
                return op;
            }
        }
    }
    return NULL;
}

/* Is |word| one of the space-separated words of |list|? */
static bool has_word(const char *list, struct span word)
{
    while (list && *list) {
        size_t len = strcspn(list, " ");
        if (span_equal(span_of(list, len), word)) {
            return true;
        }
        list += len + strspn(list + len, " ");
    }
    return false;
}

const struct rt_op *rt_op_find_kernel(struct span kernel)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        for (const struct rt_op *op = families[i]; op->name; op++) {
            if (has_word(op->kernels, kernel)) {
                return op;
            }
        }
    }
    return NULL;
}
