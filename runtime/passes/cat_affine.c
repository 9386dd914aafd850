/* SPDX-License-Identifier: MIT */
/*
 * Makes one node of a concatenation of images along their channels and the batch norm that alone
 * reads it: see runtime/ops/cat_affine.c. XNNPACK writes such a batch norm as a depthwise
 * convolution of 1x1, and clamps are already part of it. Runs behind layout, because the images
 * must be channels-last.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/cat_affine.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

enum { CAT_LIST, CAT_DIM };

/* Does the depthwise convolution read one pixel for each of its own? */
static bool is_affine(const struct rt_graph *graph, const struct rt_node *conv)
{
    return rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_KERNEL), 1) &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_STRIDE), 1) &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_PADDING), 0) &&
           !rt_node_out(graph, conv, 0)->is_half;
}

/* Does |cat| join images of floats that lie in memory as its own output does? */
static bool joins_images(const struct rt_graph *graph, const struct rt_node *cat)
{
    const struct rt_value *list = rt_node_arg(graph, cat, CAT_LIST);
    const struct rt_value *out = rt_node_out(graph, cat, 0);
    struct rt_dim dim = rt_node_arg(graph, cat, CAT_DIM)->i;
    bool is_alike = out->dtype == DT_F32 && out->rank >= 3 &&
                    (rt_dim_is(dim, 1) || rt_dim_is(dim, 1 - (int64_t)out->rank));
    for (uint32_t i = 0; is_alike && i < list->count; i++) {
        const struct rt_value *v = &graph->values[list->values[i]];
        is_alike = v->kind == RT_TENSOR && v->dtype == DT_F32 && v->rank == out->rank &&
                   v->order == out->order && !v->is_half;
    }
    return is_alike;
}

static enum status visit(struct rt_rewrite *rw, struct rt_node *conv, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t joined = conv->args[RT_PACKED_X];
    const struct rt_node *cat = rt_rewrite_producer(rw, joined, RT_KNOWN_cat);
    if (!cat || !rt_rewrite_is_single_use(rw, joined) || !is_affine(graph, conv) ||
        !joins_images(graph, cat)) {
        return ST_OK;
    }
    uint32_t *args = arena_array(&graph->arena, RT_CAT_AFFINE_ARGS, sizeof(*args));
    if (!args) {
        return arena_fail(&graph->arena, "the method", err);
    }
    args[RT_CAT_AFFINE_LIST] = cat->args[CAT_LIST];
    args[RT_CAT_AFFINE_DIM] = cat->args[CAT_DIM];
    args[RT_CAT_AFFINE_SCALE] = conv->args[RT_PACKED_W];
    args[RT_CAT_AFFINE_SHIFT] = conv->args[RT_PACKED_BIAS];
    args[RT_CAT_AFFINE_MIN] = conv->args[RT_PACKED_MIN];
    args[RT_CAT_AFFINE_MAX] = conv->args[RT_PACKED_MAX];
    conv->op = RT_OP(cat_affine);
    conv->args = args;
    conv->arg_count = RT_CAT_AFFINE_ARGS;
    return ST_OK;
}

enum status rt_pass_cat_affine(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_conv_dw)) {
            TRY(visit(&rw, node, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
