/* SPDX-License-Identifier: MIT */
/*
 * Makes one node of a 1x1 convolution, the depthwise convolution that alone reads it, and the
 * activations behind both: see runtime/ops/expand_dw.c. Clamps are already part of the
 * convolutions, and other activations are chains of one step, so the pass runs behind fuse and
 * chain.
 *
 * A depthwise convolution with an activation behind it becomes such a node even if no product is in
 * front of it. Where products of bfloat16 numbers are fast, each depthwise convolution does: the
 * node can store its results as bfloat16.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/chain.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/expand_dw.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

/* Scratch memory, 16 MiB for a worker, holds the input lines of an output line. */
#define KERNEL_MAX 7
#define WIDTH_MAX 4096

/* A smaller expanded image stays in a second-level cache, so that storing it costs little. */
#define EXPANDED_BYTES (512 * 1024)

/* Products of bfloat16 numbers that are so many times as fast as those of floats take less time
 * than to store the expanded image, whatever its size. */
#define FAST_PRODUCTS 4

/* Does a convolution use only what both kinds of them have here? */
static bool is_plain(const struct rt_graph *graph, const struct rt_node *conv)
{
    return rt_node_arg(graph, conv, RT_PACKED_X)->rank == 4 &&
           rt_node_arg(graph, conv, RT_PACKED_RESIDUAL)->kind == RT_NONE &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_DILATION), 1) &&
           !rt_node_arg(graph, conv, RT_PACKED_TRANSPOSED)->b &&
           !rt_node_out(graph, conv, 0)->is_half;
}

static bool has_fast_products(const struct rt_graph *graph)
{
    return graph->precision == PRECISION_BF16 && graph->bf16_speed >= FAST_PRODUCTS;
}

static bool is_product(const struct rt_graph *graph, const struct rt_node *conv)
{
    bool is_f32 = rt_node_arg(graph, conv, RT_PACKED_W)->dtype == DT_F32;
    return is_plain(graph, conv) && (is_f32 || has_fast_products(graph)) &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_KERNEL), 1) &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_STRIDE), 1) &&
           rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_PADDING), 0) &&
           rt_dim_is(rt_node_arg(graph, conv, RT_PACKED_GROUPS)->i, 1) &&
           rt_node_arg(graph, conv, RT_PACKED_X)->dims[1].value > 0;
}

static bool is_depthwise(const struct rt_graph *graph, const struct rt_node *conv)
{
    const struct rt_value *x = rt_node_arg(graph, conv, RT_PACKED_X);
    const struct rt_value *kernel = rt_node_arg(graph, conv, RT_PACKED_KERNEL);
    const struct rt_value *padding = rt_node_arg(graph, conv, RT_PACKED_PADDING);
    bool fits =
        is_plain(graph, conv) && rt_dim_same(x->dims[1], rt_node_out(graph, conv, 0)->dims[1]);
    for (uint32_t i = 0; fits && i < 2; i++) {
        int64_t size = kernel->ints[i].value;
        fits = size <= KERNEL_MAX && padding->ints[i].value <= size / 2;
    }
    return fits && x->dims[3].value <= WIDTH_MAX;
}

/* Is one expanded image, at the upper bounds of its sizes, too large for a near cache? */
static bool is_large(const struct rt_value *image)
{
    double bytes = sizeof(float);
    for (uint8_t d = 1; d < image->rank; d++) {
        bytes *= (double)image->dims[d].value;
    }
    return bytes >= EXPANDED_BYTES;
}

/* The convolution turns into the node that also computes |product|, whose activation is |name|; or,
 * if there is no product, into a node that can have an activation and round its results. */
static enum status absorb(struct rt_graph *graph, struct rt_node *conv,
                          const struct rt_node *product, uint32_t name, struct error *err)
{
    uint32_t *args = arena_array(&graph->arena, RT_EXPAND_ARGS, sizeof(*args));
    if (!args) {
        return arena_fail(&graph->arena, "the method", err);
    }
    const uint32_t *from = product ? product->args : conv->args;
    args[RT_EXPAND_X] = from[RT_PACKED_X];
    args[RT_EXPAND_W] = product ? from[RT_PACKED_W] : name;
    args[RT_EXPAND_BIAS] = product ? from[RT_PACKED_BIAS] : name;
    args[RT_EXPAND_MIN] = from[RT_PACKED_MIN];
    args[RT_EXPAND_MAX] = from[RT_PACKED_MAX];
    args[RT_EXPAND_ACTIVATION] = name;
    args[RT_EXPAND_DW_W] = conv->args[RT_PACKED_W];
    args[RT_EXPAND_DW_BIAS] = conv->args[RT_PACKED_BIAS];
    args[RT_EXPAND_KERNEL] = conv->args[RT_PACKED_KERNEL];
    args[RT_EXPAND_STRIDE] = conv->args[RT_PACKED_STRIDE];
    args[RT_EXPAND_PADDING] = conv->args[RT_PACKED_PADDING];
    args[RT_EXPAND_DW_MIN] = conv->args[RT_PACKED_MIN];
    args[RT_EXPAND_DW_MAX] = conv->args[RT_PACKED_MAX];
    args[RT_EXPAND_DW_ACTIVATION] = conv->args[RT_PACKED_RESIDUAL]; /* none */
    conv->op = RT_OP(expand_dw);
    conv->args = args;
    conv->arg_count = RT_EXPAND_ARGS;
    return ST_OK;
}

static enum status visit_depthwise(struct rt_rewrite *rw, struct rt_node *conv, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t value = conv->args[RT_PACKED_X], none = conv->args[RT_PACKED_RESIDUAL], name = none;
    uint32_t input, found;
    bool is_fast = has_fast_products(graph);
    if (!is_depthwise(graph, conv) || !(is_fast || is_large(&graph->values[value]))) {
        return ST_OK;
    }
    const struct rt_node *chain = rt_rewrite_producer(rw, value, RT_KNOWN_chain);
    if (chain && rt_rewrite_is_single_use(rw, value) &&
        rt_chain_find_only_step(graph, chain, &input, &found)) {
        name = found;
        value = input;
    }
    const struct rt_node *product = rt_rewrite_producer(rw, value, RT_KNOWN_conv);
    if (product && rt_rewrite_is_single_use(rw, value) && is_product(graph, product)) {
        return absorb(graph, conv, product, name, err);
    }
    return is_fast ? absorb(graph, conv, NULL, none, err) : ST_OK;
}

static enum status visit_activation(struct rt_rewrite *rw, const struct rt_node *chain,
                                    struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t value, name;
    if (!rt_chain_find_only_step(graph, chain, &value, &name) ||
        !rt_rewrite_is_single_use(rw, value)) {
        return ST_OK;
    }
    struct rt_node *conv = rt_rewrite_producer(rw, value, RT_KNOWN_conv_dw);
    if (conv && is_depthwise(graph, conv)) {
        TRY(absorb(graph, conv, NULL, conv->args[RT_PACKED_RESIDUAL], err));
    }
    struct rt_node *node = rt_rewrite_producer(rw, value, RT_KNOWN_expand_dw);
    if (node && rt_node_arg(graph, node, RT_EXPAND_DW_ACTIVATION)->kind == RT_NONE) {
        node->args[RT_EXPAND_DW_ACTIVATION] = name;
        rt_rewrite_set_uses(rw, value, rt_rewrite_uses(rw, chain->outs[0]));
        rt_rewrite_replace(rw, chain->outs[0], value);
    }
    return ST_OK;
}

enum status rt_pass_expand_dw(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_conv_dw)) {
            TRY(visit_depthwise(&rw, node, err));
        } else if (rt_op_is(node->op, RT_KNOWN_chain)) {
            TRY(visit_activation(&rw, node, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
