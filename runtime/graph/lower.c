/* SPDX-License-Identifier: MIT */
/* Matrix products and convolutions in the form that has kernels: see passes.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "runtime/graph/passes.h"
#include "runtime/graph/rewrite.h"
#include "runtime/ops/op.h"

/* ---- matrix products ------------------------------------------------------------------------- */

struct product {
    uint32_t x, weights, bias, residual; /* bias and residual may be nones */
    struct rt_dim n;
    const char *pack; /* how the weights lie: "pack_kn" or "pack_nk" */
};

static enum status make_gemm(struct rt_graph *graph, const struct product *p, uint32_t *out,
                             struct error *err)
{
    uint32_t packed;
    TRY(rt_graph_apply(graph, p->pack, &p->weights, 1, DT_F32, &packed, err));
    uint32_t args[] = {
        p->x,
        packed,
        rt_graph_int(graph, p->n),
        p->bias,
        p->residual,
        rt_graph_float(graph, -INFINITY),
        rt_graph_float(graph, INFINITY),
    };
    return rt_graph_apply(graph, "gemm", args, 7, DT_F32, out, err);
}

static enum status scale(struct rt_graph *graph, uint32_t x, uint32_t factor, uint32_t *out,
                         struct error *err)
{
    uint32_t args[] = {x, factor};
    *out = x;
    if (rt_arg_number(&graph->values[factor]) == 1) {
        return ST_OK;
    }
    return rt_graph_apply(graph, "mul_scalar", args, 2, DT_F32, out, err);
}

static enum status lower_product(struct rt_graph *graph, const struct rt_node *node, uint32_t *out,
                                 struct error *err)
{
    const struct rt_value *b = rt_node_arg(graph, node, 1);
    struct product p = {node->args[0],        node->args[1],        rt_graph_none(graph),
                        rt_graph_none(graph), b->dims[b->rank - 1], "pack_kn"};
    return make_gemm(graph, &p, out, err);
}

static enum status lower_linear(struct rt_graph *graph, const struct rt_node *node, uint32_t *out,
                                struct error *err)
{
    struct product p = {node->args[0],
                        node->args[1],
                        node->args[2],
                        rt_graph_none(graph),
                        rt_node_arg(graph, node, 1)->dims[0],
                        "pack_nk"};
    return make_gemm(graph, &p, out, err);
}

/* beta * bias + alpha * (x @ w). The usual bias is a row for all; any other is added afterwards. */
static enum status lower_addmm(struct rt_graph *graph, const struct rt_node *node, uint32_t *out,
                               struct error *err)
{
    uint32_t args[5];
    memcpy(args, node->args, sizeof(args));
    struct rt_dim n = rt_node_arg(graph, node, 2)->dims[1];
    uint32_t none = rt_graph_none(graph), bias;
    const struct rt_value *row = &graph->values[args[0]];
    bool is_row = row->rank == 1 && rt_dim_same(row->dims[0], n) &&
                  rt_arg_number(&graph->values[args[4]]) == 1;
    if (rt_arg_number(&graph->values[args[3]]) == 0) {
        struct product p = {args[1], args[2], none, none, n, "pack_kn"};
        TRY(make_gemm(graph, &p, out, err));
        return scale(graph, *out, args[4], out, err); /* a NaN in the bias does not count */
    }
    TRY(scale(graph, args[0], args[3], &bias, err));
    struct product p = {args[1], args[2], is_row ? bias : none, none, n, "pack_kn"};
    TRY(make_gemm(graph, &p, out, err));
    if (is_row) {
        return ST_OK;
    }
    TRY(scale(graph, *out, args[4], out, err));
    uint32_t sum[] = {*out, bias, rt_graph_int(graph, rt_dim_of(1))};
    return rt_graph_apply(graph, "add", sum, 3, DT_F32, out, err);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

enum {
    CONV_X,
    CONV_W,
    CONV_BIAS,
    CONV_STRIDE,
    CONV_PADDING,
    CONV_DILATION,
    CONV_TRANSPOSED,
    CONV_OUTPUT_PADDING,
    CONV_GROUPS
};

/* Two entries for height and width, the list's own or |idle| for the height of a line. */
static uint32_t pair(struct rt_graph *graph, uint32_t list, uint8_t axes, int64_t idle)
{
    const struct rt_value *v = &graph->values[list];
    struct rt_dim items[2] = {rt_dim_of(idle), rt_dim_of(idle)};
    for (uint8_t i = 0; i < axes && v->count > 0; i++) {
        items[2 - axes + i] = v->ints[v->count == 1 ? 0 : i];
    }
    return rt_graph_ints(graph, items, 2);
}

static uint32_t kernel_pair(struct rt_graph *graph, const struct rt_value *w)
{
    struct rt_dim items[2] = {rt_dim_of(1), w->dims[w->rank - 1]};
    if (w->rank == 4) {
        items[0] = w->dims[2];
    }
    return rt_graph_ints(graph, items, 2);
}

/* One input and one output channel in each of several groups. */
static bool is_depthwise(const struct rt_graph *graph, const struct rt_node *node)
{
    const struct rt_value *w = rt_node_arg(graph, node, CONV_W);
    return !rt_node_arg(graph, node, CONV_TRANSPOSED)->b && rt_dim_is(w->dims[1], 1) &&
           rt_dim_same(w->dims[0], rt_node_arg(graph, node, CONV_GROUPS)->i) &&
           !rt_dim_is(w->dims[0], 1);
}

/* [C, 1, H, W] as [H, W, 1, C]: for each tap the weights of all channels. */
static enum status depthwise_weights(struct rt_graph *graph, uint32_t weights, uint32_t *out,
                                     struct error *err)
{
    const struct rt_value *w = &graph->values[weights];
    struct rt_dim dims[4] = {w->dims[0], rt_dim_of(1), rt_dim_of(1), w->dims[w->rank - 1]};
    static const int64_t axes[4] = {2, 3, 1, 0};
    struct rt_dim order[4];
    if (w->rank == 4) {
        dims[2] = w->dims[2];
    }
    for (int i = 0; i < 4; i++) {
        order[i] = rt_dim_of(axes[i]);
    }
    uint32_t view_args[] = {weights, rt_graph_ints(graph, dims, 4)}, view;
    TRY(rt_graph_apply(graph, "view", view_args, 2, DT_F32, &view, err));
    uint32_t args[] = {view, rt_graph_ints(graph, order, 4)};
    return rt_graph_apply(graph, "permute", args, 2, DT_F32, out, err);
}

static enum status lower_convolution(struct rt_graph *graph, const struct rt_node *node,
                                     uint32_t *out, struct error *err)
{
    uint32_t from[9], packed;
    bool depthwise = is_depthwise(graph, node);
    uint8_t axes = (uint8_t)(rt_node_arg(graph, node, CONV_X)->rank - 2);
    struct rt_dim outs = rt_node_out(graph, node, 0)->dims[1];
    memcpy(from, node->args, sizeof(from));
    if (depthwise) {
        TRY(depthwise_weights(graph, from[CONV_W], &packed, err));
    } else {
        uint32_t args[] = {from[CONV_W], from[CONV_GROUPS], from[CONV_TRANSPOSED]};
        TRY(rt_graph_apply(graph, "pack_conv", args, 3, DT_F32, &packed, err));
    }
    uint32_t args[] = {
        from[CONV_X],
        packed,
        from[CONV_BIAS],
        rt_graph_none(graph),
        kernel_pair(graph, &graph->values[from[CONV_W]]),
        pair(graph, from[CONV_STRIDE], axes, 1),
        pair(graph, from[CONV_PADDING], axes, 0),
        pair(graph, from[CONV_DILATION], axes, 1),
        pair(graph, from[CONV_OUTPUT_PADDING], axes, 0),
        from[CONV_GROUPS],
        rt_graph_int(graph, outs),
        from[CONV_TRANSPOSED],
        rt_graph_float(graph, -INFINITY),
        rt_graph_float(graph, INFINITY),
    };
    return rt_graph_apply(graph, depthwise ? "conv_dw" : "conv", args, 14, DT_F32, out, err);
}

/* ---- the pass -------------------------------------------------------------------------------- */

typedef enum status lower_f(struct rt_graph *graph, const struct rt_node *node, uint32_t *out,
                            struct error *err);

static const struct {
    const char *op;
    lower_f *lower;
} rules[] = {
    {"mm", lower_product},
    {"bmm", lower_product},
    {"addmm", lower_addmm},
    {"linear", lower_linear},
    {"convolution", lower_convolution},
};

enum status rt_pass_lower(struct rt_graph *graph, struct error *err)
{
    struct rt_rewrite rw;
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        struct rt_node node = *rt_rewrite_node(&rw, i); /* a copy: rules add nodes */
        for (size_t r = 0; r < sizeof(rules) / sizeof(rules[0]); r++) {
            uint32_t out;
            if (strcmp(node.op->name, rules[r].op) == 0) {
                TRY(rules[r].lower(graph, &node, &out, err));
                rt_rewrite_replace(&rw, node.outs[0], out);
                break;
            }
        }
    }
    return rt_rewrite_end(&rw, err);
}
