/* SPDX-License-Identifier: MIT */
/*
 * Sums of convolutions of one image: see passes.def. A convolution is linear in its weights, so the
 * sum of two with the same step and groups is one convolution, with the sum of their weights:
 *
 *     conv(x, V, b) + conv(x, W, c) = conv(x, V + W, b + c)
 *
 * A smaller kernel is the larger one with zeros around it, if it reaches no further. A batch norm
 * of the image is a convolution of one tap: the scale of each channel, and zeros for all others.
 * Networks that are trained with parallel branches (RepVGG, MobileOne) consist of such sums. The
 * pass writes the new weights as nodes; folding computes them once.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

enum { AFFINE_X, AFFINE_SCALE, AFFINE_SHIFT };

/* A term of a sum, as a convolution. */
struct term {
    uint32_t node, x, weights, bias; /* weights, bias: of a convolution */
    bool is_affine;
    int64_t kernel[RT_CONV_AXES_MAX], padding[RT_CONV_AXES_MAX], stride[RT_CONV_AXES_MAX];
};

static int64_t entry(const struct rt_value *list, uint32_t axis)
{
    return list->ints[list->count == 1 ? 0 : axis].value;
}

static uint32_t axes_of(const struct rt_graph *graph, uint32_t value)
{
    return graph->values[value].rank - 2U;
}

/* Steps from constants to weights: batch norms of convolutions are part of them by now. A file may
 * have a value lead to one constant in many ways, so the values that are looked at are counted. */
#define DEPTH_MAX 6
#define LOOKS_MAX 128

/* Follows |value| from constants alone, in |depth| steps, so that folding computes it? What the
 * pass adds does. |looks|: values that may still be looked at. */
static bool is_known(const struct rt_rewrite *rw, uint32_t value, int depth, int *looks)
{
    const struct rt_graph *graph = rw->graph;
    const struct rt_value *v = &graph->values[value];
    if (--*looks < 0) {
        return false;
    }
    if (v->kind != RT_TENSOR || v->is_constant || !rt_rewrite_has(rw, value)) {
        return v->kind != RT_TENSORS;
    }
    if (v->node == RT_NO_NODE || depth == 0) {
        return false;
    }
    const struct rt_node *node = &graph->nodes[v->node];
    bool is = true;
    for (uint32_t i = 0; is && i < node->arg_count; i++) {
        is = is_known(rw, node->args[i], depth - 1, looks);
    }
    return is;
}

static bool are_known(const struct rt_rewrite *rw, uint32_t weights, uint32_t bias)
{
    const struct rt_value *w = &rw->graph->values[weights];
    bool is = w->kind == RT_TENSOR && w->dtype == DT_F32;
    for (uint8_t d = 0; is && d < w->rank; d++) {
        is = rt_dim_is_const(w->dims[d]);
    }
    int looks = LOOKS_MAX;
    return is && is_known(rw, weights, DEPTH_MAX, &looks) && is_known(rw, bias, DEPTH_MAX, &looks);
}

static bool read_convolution(const struct rt_rewrite *rw, const struct rt_node *conv,
                             struct term *term)
{
    const struct rt_graph *graph = rw->graph;
    const struct rt_value *w = rt_node_arg(graph, conv, RT_CONV_W);
    const struct rt_value *stride = rt_node_arg(graph, conv, RT_CONV_STRIDE);
    const struct rt_value *padding = rt_node_arg(graph, conv, RT_CONV_PADDING);
    uint32_t axes = axes_of(graph, conv->args[RT_CONV_X]);
    if (rt_node_arg(graph, conv, RT_CONV_TRANSPOSED)->b ||
        !rt_ints_are(rt_node_arg(graph, conv, RT_CONV_DILATION), 1) ||
        !are_known(rw, conv->args[RT_CONV_W], conv->args[RT_CONV_BIAS])) {
        return false;
    }
    term->x = conv->args[RT_CONV_X];
    term->weights = conv->args[RT_CONV_W];
    term->bias = conv->args[RT_CONV_BIAS];
    for (uint32_t i = 0; i < axes; i++) {
        term->kernel[i] = w->dims[2 + i].value;
        term->padding[i] = entry(padding, i);
        term->stride[i] = entry(stride, i);
    }
    return true;
}

static bool read_affine(const struct rt_rewrite *rw, const struct rt_node *affine,
                        struct term *term)
{
    uint32_t axes = axes_of(rw->graph, affine->args[AFFINE_X]);
    term->is_affine = true;
    term->x = affine->args[AFFINE_X];
    term->weights = affine->args[AFFINE_SCALE];
    term->bias = affine->args[AFFINE_SHIFT];
    for (uint32_t i = 0; i < axes; i++) {
        term->kernel[i] = term->stride[i] = 1;
    }
    return are_known(rw, term->weights, term->bias);
}

/* Reads |value| if it is a convolution or an affine that nobody else reads. */
static bool read_term(const struct rt_rewrite *rw, uint32_t value, struct term *term)
{
    const struct rt_value *v = &rw->graph->values[value];
    *term = (struct term){.node = v->node};
    if (v->dtype != DT_F32 || v->rank < 3 || v->rank > 2 + RT_CONV_AXES_MAX ||
        !rt_rewrite_is_single_use(rw, value)) {
        return false;
    }
    const struct rt_node *conv = rt_rewrite_producer(rw, value, RT_KNOWN_convolution);
    const struct rt_node *affine = rt_rewrite_producer(rw, value, RT_KNOWN_affine);
    return conv ? read_convolution(rw, conv, term) : affine && read_affine(rw, affine, term);
}

/* Channels whose numbers are folded whatever they are made of: see runtime/code/fold.c. */
#define CHANNELS_MAX 4096

static bool has_one_tap(const struct rt_graph *graph, const struct term *t)
{
    bool has = true;
    for (uint32_t i = 0; i < axes_of(graph, t->x); i++) {
        has = has && t->kernel[i] == 1;
    }
    return has;
}

/* Has convolution |a| the kernel of |b|, or a tap where |b| has its only one? Both results have the
 * same dims. */
static bool covers(const struct rt_graph *graph, const struct term *a, const struct term *b)
{
    bool fits = !a->is_affine && a->x == b->x, is_one = has_one_tap(graph, b);
    for (uint32_t i = 0; fits && i < axes_of(graph, a->x); i++) {
        int64_t tap = a->padding[i] - b->padding[i];
        fits = a->stride[i] == b->stride[i] &&
               (is_one ? tap >= 0 && tap < a->kernel[i] : tap == 0 && a->kernel[i] == b->kernel[i]);
    }
    if (!fits || b->is_affine) {
        return fits && graph->values[a->weights].dims[0].value <= CHANNELS_MAX;
    }
    const struct rt_node *of_a = &graph->nodes[a->node], *of_b = &graph->nodes[b->node];
    return rt_dim_same(rt_node_arg(graph, of_a, RT_CONV_GROUPS)->i,
                       rt_node_arg(graph, of_b, RT_CONV_GROUPS)->i);
}

static enum status add(struct rt_graph *graph, uint32_t a, uint32_t b, uint32_t *out,
                       struct error *err)
{
    if (graph->values[a].kind == RT_NONE || graph->values[b].kind == RT_NONE) {
        *out = graph->values[a].kind == RT_NONE ? b : a;
        return ST_OK;
    }
    uint32_t args[] = {a, b, rt_graph_int(graph, rt_dim_of(1))};
    return rt_op_apply(graph, RT_OP(add), args, 3, DT_F32, out, err);
}

/* The tap of |a| that is the only one of |b|, in the order of memory, and the number of taps. */
static int64_t tap_of(const struct rt_graph *graph, const struct term *a, const struct term *b,
                      int64_t *out_taps)
{
    int64_t tap = 0;
    *out_taps = 1;
    for (uint32_t i = 0; i < axes_of(graph, a->x); i++) {
        tap = tap * a->kernel[i] + a->padding[i] - b->padding[i];
        *out_taps *= a->kernel[i];
    }
    return tap;
}

static enum status view_as(struct rt_graph *graph, uint32_t value, int64_t rows, int64_t columns,
                           uint32_t *out, struct error *err)
{
    const struct rt_dim dims[] = {rt_dim_of(rows), rt_dim_of(columns)};
    return rt_op_view(graph, value, dims, 2, out, err);
}

/* Adds a weight to one tap of each input channel of each output channel: |weights| as a matrix with
 * a row for each pair of channels. */
static enum status add_tap(struct rt_graph *graph, uint32_t weights, uint32_t one, int64_t pairs,
                           int64_t tap, uint32_t *out, struct error *err)
{
    const struct rt_dim row[] = {rt_dim_of(pairs)};
    uint32_t select[] = {weights, rt_graph_int(graph, rt_dim_of(1)),
                         rt_graph_int(graph, rt_dim_of(tap))};
    uint32_t put[] = {weights, 0, select[1], select[2]};
    TRY(rt_op_view(graph, one, row, 1, &one, err));
    TRY(rt_op_apply(graph, RT_OP(select), select, 3, DT_F32, &put[1], err));
    TRY(add(graph, put[1], one, &put[1], err));
    return rt_op_apply(graph, RT_OP(select_scatter), put, 4, DT_F32, out, err);
}

/* The places of the tap that reads output channel c itself: c % |group| * |taps| + |tap|. */
static enum status own_taps(struct rt_graph *graph, int64_t channels, int64_t group, int64_t taps,
                            int64_t tap, uint32_t *out, struct error *err)
{
    uint32_t range[] = {rt_graph_int(graph, rt_dim_of(0)), rt_graph_int(graph, rt_dim_of(channels)),
                        rt_graph_int(graph, rt_dim_of(1))};
    TRY(rt_op_apply(graph, RT_OP(arange_start), range, 3, DT_I64, out, err));
    uint32_t rest[] = {*out, rt_graph_int(graph, rt_dim_of(group))};
    TRY(rt_op_apply(graph, RT_OP(remainder_scalar), rest, 2, DT_I64, out, err));
    uint32_t factor[] = {*out, rt_graph_int(graph, rt_dim_of(taps))};
    TRY(rt_op_apply(graph, RT_OP(mul_scalar), factor, 2, DT_I64, out, err));
    uint32_t shift[] = {*out, rt_graph_int(graph, rt_dim_of(tap)), range[2]};
    TRY(rt_op_apply(graph, RT_OP(add_scalar), shift, 3, DT_I64, out, err));
    return view_as(graph, *out, channels, 1, out, err);
}

/* The weights of |a| and |b| together. */
static enum status join_weights(struct rt_graph *graph, const struct term *a, const struct term *b,
                                uint32_t *out, struct error *err)
{
    const struct rt_value *w = &graph->values[a->weights];
    int64_t channels = w->dims[0].value, group = w->dims[1].value, taps;
    int64_t tap = tap_of(graph, a, b, &taps);
    const struct rt_dim *dims = w->dims;
    uint8_t rank = w->rank;
    uint32_t value;
    if (!has_one_tap(graph, b) || (taps == 1 && !b->is_affine)) {
        return add(graph, a->weights, b->weights, out, err);
    }
    if (b->is_affine && group > 1) {
        uint32_t args[4] = {0, rt_graph_int(graph, rt_dim_of(1))};
        TRY(view_as(graph, a->weights, channels, group * taps, &args[0], err));
        TRY(own_taps(graph, channels, group, taps, tap, &args[2], err));
        TRY(view_as(graph, b->weights, channels, 1, &args[3], err));
        TRY(rt_op_apply(graph, RT_OP(scatter_add), args, 4, DT_F32, &value, err));
    } else {
        TRY(view_as(graph, a->weights, channels * group, taps, &value, err));
        TRY(add_tap(graph, value, b->weights, channels * group, tap, &value, err));
    }
    return rt_op_view(graph, value, dims, rank, out, err);
}

/* Convolution |a| computes |sum|, which is it and |b|. */
static enum status absorb(struct rt_rewrite *rw, const struct term *a, const struct term *b,
                          uint32_t sum, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t weights, bias;
    TRY(join_weights(graph, a, b, &weights, err));
    TRY(add(graph, a->bias, b->bias, &bias, err));
    struct rt_node *conv = &graph->nodes[a->node];
    uint32_t out = conv->outs[0];
    conv->args[RT_CONV_W] = weights;
    conv->args[RT_CONV_BIAS] = bias;
    rt_rewrite_drop_uses(rw, &graph->nodes[b->node]);
    rt_rewrite_set_uses(rw, out, rt_rewrite_uses(rw, sum));
    rt_rewrite_replace(rw, sum, out);
    return ST_OK;
}

/* Is |value| the number 0? Sums begin with it. */
static bool is_zero(const struct rt_graph *graph, uint32_t value)
{
    const struct rt_value *v = &graph->values[value];
    static const float zero;
    return v->is_constant && v->dtype == DT_F32 && v->rank == 0 &&
           span_equal(v->bytes, span_of(&zero, sizeof(zero)));
}

static enum status visit_add(struct rt_rewrite *rw, const struct rt_node *node, struct error *err)
{
    struct rt_graph *graph = rw->graph;
    uint32_t left = node->args[0], right = node->args[1], sum = node->outs[0];
    const struct rt_value *alpha = rt_node_arg(graph, node, 2);
    struct term a, b;
    if (!rt_value_is_fixed(alpha) || rt_value_number(alpha) != 1) {
        return ST_OK;
    }
    if (read_term(rw, left, &a) && is_zero(graph, right)) {
        rt_rewrite_set_uses(rw, left, rt_rewrite_uses(rw, sum));
        rt_rewrite_replace(rw, sum, left);
        return ST_OK;
    }
    if (left == right || !read_term(rw, left, &a) || !read_term(rw, right, &b) ||
        !rt_value_same_dims(&graph->values[left], &graph->values[right])) {
        return ST_OK;
    }
    if (covers(graph, &a, &b)) {
        return absorb(rw, &a, &b, sum, err);
    }
    return covers(graph, &b, &a) ? absorb(rw, &b, &a, sum, err) : ST_OK;
}

enum status rt_pass_parallel(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_rewrite rw;
    if (graph->precision == PRECISION_EXACT) {
        return ST_OK;
    }
    TRY(rt_rewrite_begin(&rw, graph, err));
    for (uint32_t i = 0; i < rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&rw, i);
        if (rt_op_is(node->op, RT_KNOWN_add)) {
            TRY(visit_add(&rw, node, err));
        }
    }
    return rt_rewrite_end(&rw, err);
}
