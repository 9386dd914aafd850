/* SPDX-License-Identifier: MIT */
/*
 * Nodes on images: convolutions, pools, resampling. XNNPACK's images are [N, H, W, C] and the
 * graph's are [N, C, H, W], so a permute goes before and after the operator. The permute moves
 * stored values, so that quantize and dequantize stay next to the operator.
 *
 * Padding may differ between the sides here. Then a separate node pads; else the operator does.
 */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/import/xnnpack.h"
#include "runtime/ops/op.h"

static const uint8_t to_planes[] = {0, 3, 1, 2}, to_pixels[] = {0, 2, 3, 1};

/* Sizes along the two axes of an image. */
struct pair {
    int64_t y, x;
};

/* The same for padding, which may depend on the image's size. */
struct pads {
    struct rt_dim y, x;
};

struct window {
    struct pair kernel, stride, dilation;
    struct pads before, after; /* padding */
};

/* A product of two of these fits easily into int64. */
#define EXTENT_MAX (1u << 24)

/* ---- operands -------------------------------------------------------------------------------- */

static enum status need_image(struct rt_xnnpack_import *x, uint32_t stored)
{
    uint8_t rank = x->graph->values[stored].rank;
    if (rank != 4) {
        return error_set(x->err, ST_UNSUPPORTED, "an image has rank %u, expected 4", rank);
    }
    return ST_OK;
}

static uint32_t pair_arg(struct rt_xnnpack_import *x, struct pair p)
{
    return rt_xnnpack_ints(x, (const int64_t[]){p.y, p.x}, 2);
}

static uint32_t pads_arg(struct rt_xnnpack_import *x, struct pads p)
{
    return rt_graph_ints(x->graph, (const struct rt_dim[]){p.y, p.x}, 2);
}

static struct pads fixed_pads(int64_t y, int64_t x)
{
    return (struct pads){rt_dim_of(y), rt_dim_of(x)};
}

/* Can an operator of the graph do the padding? It has to be known, and the same on both sides. */
static bool is_even(const struct window *w)
{
    return rt_dim_is_const(w->before.y) && rt_dim_same(w->before.y, w->after.y) &&
           rt_dim_is_const(w->before.x) && rt_dim_same(w->before.x, w->after.x);
}

/* TensorFlow's SAME padding: ceil(size / stride) outputs, an odd pixel of padding goes after. */
static void pad_same(struct rt_dims *dims, struct rt_dim in, int64_t reach, int64_t stride,
                     struct rt_dim *before, struct rt_dim *after)
{
    struct rt_dim steps =
        rt_dim_sub(dims, rt_dim_ceildiv(dims, in, rt_dim_of(stride)), rt_dim_of(1));
    struct rt_dim span =
        rt_dim_add(dims, rt_dim_mul(dims, steps, rt_dim_of(stride)), rt_dim_of(reach));
    struct rt_dim total = rt_dim_max(dims, rt_dim_of(0), rt_dim_sub(dims, span, in));
    *before = rt_dim_floordiv(dims, total, rt_dim_of(2));
    *after = rt_dim_sub(dims, total, *before);
}

static enum status find_same_padding(struct rt_xnnpack_import *x, uint32_t stored, struct window *w)
{
    struct rt_dims *dims = &x->graph->dims;
    const struct rt_value *v = &x->graph->values[stored];
    if (w->before.y.value + w->before.x.value + w->after.y.value + w->after.x.value != 0) {
        return error_set(x->err, ST_UNSUPPORTED,
                         "explicit padding together with the flag for SAME padding");
    }
    pad_same(dims, v->dims[1], w->dilation.y * (w->kernel.y - 1) + 1, w->stride.y, &w->before.y,
             &w->after.y);
    pad_same(dims, v->dims[2], w->dilation.x * (w->kernel.x - 1) + 1, w->stride.x, &w->before.x,
             &w->after.x);
    return rt_graph_check(x->graph, x->err);
}

/* Names of the parameters of nodes on images; all their tables have this order. */
static const char *const extent_names[XNN_PARAMS_MAX] = {
    "the padding at the top",  "the padding at the right",      "the padding at the bottom",
    "the padding at the left", "the height of the window",      "the width of the window",
    "the vertical stride",     "the horizontal stride",         "the vertical dilation",
    "the horizontal dilation", "the input channels of a group", "the output channels of a group",
    "the number of groups",    "the adjustment of the height",  "the adjustment of the width",
};

static enum status check_extent(struct rt_xnnpack_import *x, uint32_t i, uint32_t value,
                                uint32_t min)
{
    if (value < min || value > EXTENT_MAX) {
        return error_set(x->err, ST_UNSUPPORTED, "%s is %u, expected %u to %u", extent_names[i],
                         value, min, EXTENT_MAX);
    }
    return ST_OK;
}

/* Checks the first |count| parameters. From |positive| on they must not be 0. */
static enum status check_extents(struct rt_xnnpack_import *x, const uint32_t *params,
                                 uint32_t positive, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        TRY(check_extent(x, i, params[i], i >= positive));
    }
    return ST_OK;
}

/* Parameters 0 to 9 of convolutions and pools; the window moves over |stored|. Average pools have a
 * dilation only in the file: XNNPACK's operator has none, and files store 0. */
static enum status read_window(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                               uint32_t stored, bool has_dilation, struct window *w)
{
    const uint32_t *p = node->params;
    TRY(check_extents(x, p, 4, has_dilation ? 10 : 8));
    *w = (struct window){
        .before = fixed_pads(p[0], p[3]),
        .after = fixed_pads(p[2], p[1]),
        .kernel = {p[4], p[5]},
        .stride = {p[6], p[7]},
        .dilation = {has_dilation ? p[8] : 1, has_dilation ? p[9] : 1},
    };
    return node->flags & XNN_SAME_PADDING ? find_same_padding(x, stored, w) : ST_OK;
}

/* Pads |stored|, an image of value |index|, with |number| if the padding of |w| is uneven, and
 * removes it from |w|. */
static enum status pad_uneven(struct rt_xnnpack_import *x, uint32_t index, double number,
                              struct window *w, uint32_t *stored)
{
    const struct rt_xnnpack_value *value = &x->payload.values[index];
    if (is_even(w)) {
        return ST_OK;
    }
    const struct rt_dim none = rt_dim_of(0);
    struct rt_dim pads[] = {none, none, w->before.x, w->after.x, w->before.y, w->after.y};
    double q = rt_xnnpack_quantize(value, number);
    uint32_t args[] = {*stored, rt_graph_ints(x->graph, pads, 6), rt_graph_float(x->graph, q)};
    if (rt_xnnpack_types[value->type].quant == XNN_PER_TENSOR) {
        args[2] = rt_xnnpack_int(x, (int64_t)q);
    }
    w->before = w->after = fixed_pads(0, 0);
    return rt_xnnpack_apply(x, RT_OP(constant_pad), args, 3, x->graph->values[*stored].dtype,
                            stored);
}

/* Operand 0 as f32 numbers in [N, C, H, W]. If the padding of |w| is uneven, pads with |number| and
 * removes it from |w|. */
static enum status planes(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                          double number, struct window *w, uint32_t *out_value)
{
    uint32_t index = node->inputs[0], stored;
    const struct rt_xnnpack_value *value = &x->payload.values[index];
    TRY(rt_xnnpack_stored(x, index, &stored));
    bool has_rows = rt_xnnpack_types[value->type].quant == XNN_PER_ROW || value->quantizes_rows;
    if (has_rows && (!is_even(w) || value->row_dims < 3)) {
        /* A quantized 0 differs from row to row, and permuting would split rows smaller than an
         * image. */
        TRY(rt_xnnpack_real(x, index, &stored));
        TRY(pad_uneven(x, index, number, w, &stored));
        return rt_xnnpack_permute(x, stored, to_planes, out_value);
    }
    TRY(pad_uneven(x, index, number, w, &stored));
    TRY(rt_xnnpack_permute(x, stored, to_planes, &stored));
    return rt_xnnpack_decode(x, index, stored, 1, out_value);
}

/* Numbers in [N, C, H, W], stored as output |index| requires. */
static enum status encode_planes(struct rt_xnnpack_import *x, uint32_t index, uint32_t numbers,
                                 uint32_t *out_stored)
{
    TRY(rt_xnnpack_encode(x, index, numbers, out_stored));
    return rt_xnnpack_permute(x, *out_stored, to_pixels, out_stored);
}

static enum status finish_planes(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                                 uint32_t numbers)
{
    uint32_t stored;
    TRY(rt_xnnpack_clamp(x, node, numbers, &numbers));
    TRY(encode_planes(x, node->outputs[0], numbers, &stored));
    return rt_xnnpack_define(x, node->outputs[0], stored);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

enum { GROUP_INPUTS = 10, GROUP_OUTPUTS, GROUPS, EXTRA_Y, EXTRA_X };

struct convolution {
    struct window window;
    struct pair
        extra; /* transposed: rows and columns to add at the end; below 0: to cut off there */
    int64_t groups, outs;
    uint32_t input, weights, bias; /* f32; the weights in the order of the graph's convolutions */
    bool is_transposed;
};

static enum status read_convolution(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                                    struct convolution *c)
{
    const uint32_t *p = node->params;
    uint32_t stored;
    TRY(rt_xnnpack_stored(x, node->inputs[0], &stored));
    TRY(need_image(x, stored));
    TRY(read_window(x, node, stored, true, &c->window));
    for (uint32_t i = GROUP_INPUTS; i <= EXTRA_X; i++) {
        TRY(check_extent(x, i, p[i], i <= GROUPS));
    }
    c->groups = p[GROUPS];
    c->outs = (int64_t)p[GROUPS] * p[GROUP_OUTPUTS];
    c->extra = (struct pair){p[EXTRA_Y], p[EXTRA_X]};
    c->bias = rt_graph_none(x->graph);
    if (node->inputs[2] != XNN_NO_VALUE) {
        TRY(rt_xnnpack_real(x, node->inputs[2], &c->bias));
        TRY(rt_xnnpack_convert(x, c->bias, DT_F32, &c->bias));
    }
    return ST_OK;
}

/* The stored weights; their dims must be |dims|. */
static enum status need_weights(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                                const int64_t dims[4], uint32_t *out_stored)
{
    TRY(rt_xnnpack_stored(x, node->inputs[1], out_stored));
    const struct rt_value *v = &x->graph->values[*out_stored];
    bool fits = v->rank == 4;
    for (uint8_t d = 0; fits && d < 4; d++) {
        fits = rt_dim_is(v->dims[d], dims[d]);
    }
    if (!fits) {
        const struct shape wanted = {.rank = 4, .dims = {dims[0], dims[1], dims[2], dims[3]}};
        struct shape got = {.rank = v->rank};
        char text[SHAPE_TEXT_MAX], wanted_text[SHAPE_TEXT_MAX];
        for (uint8_t d = 0; d < v->rank; d++) {
            got.dims[d] = v->dims[d].value;
        }
        return error_set(x->err, ST_UNSUPPORTED, "the filter is %s, expected %s",
                         shape_print(&got, text), shape_print(&wanted, wanted_text));
    }
    return ST_OK;
}

/* Weights with dims in |order|. Scales along stored dim |channels| are along |axis| afterwards. */
static enum status order_weights(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                                 uint32_t stored, const uint8_t order[4], uint8_t channels,
                                 uint8_t axis, uint32_t *out_value)
{
    const struct rt_xnnpack_value *value = &x->payload.values[node->inputs[1]];
    if (rt_xnnpack_types[value->type].quant == XNN_PER_CHANNEL && value->channel_dim != channels) {
        return error_set(x->err, ST_UNSUPPORTED, "scales along dim %u of the filter, expected %u",
                         value->channel_dim, channels);
    }
    TRY(rt_xnnpack_permute(x, stored, order, &stored));
    return rt_xnnpack_decode(x, node->inputs[1], stored, axis, out_value);
}

static enum status convolve(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node,
                            struct convolution *c)
{
    struct pair extra = {c->extra.y > 0 ? c->extra.y : 0, c->extra.x > 0 ? c->extra.x : 0};
    uint32_t out;
    TRY(planes(x, node, 0, &c->window, &c->input));
    uint32_t args[] = {
        c->input,
        c->weights,
        c->bias,
        pair_arg(x, c->window.stride),
        pads_arg(x, c->window.before),
        pair_arg(x, c->window.dilation),
        rt_graph_bool(x->graph, c->is_transposed),
        pair_arg(x, extra),
        rt_xnnpack_int(x, c->groups),
    };
    TRY(rt_xnnpack_apply(x, RT_OP(convolution), args, 9, DT_F32, &out));
    if (c->extra.y < 0 || c->extra.x < 0) {
        int64_t pads[] = {0, c->extra.x - extra.x, 0, c->extra.y - extra.y};
        uint32_t cut[] = {out, rt_xnnpack_ints(x, pads, 4), rt_graph_float(x->graph, 0)};
        TRY(rt_xnnpack_apply(x, RT_OP(constant_pad), cut, 3, DT_F32, &out));
    }
    return finish_planes(x, node, out);
}

bool rt_xnnpack_conv_is_product(const struct rt_xnnpack_node *node)
{
    const uint32_t *p = node->params;
    return node->row->import == rt_xnnpack_import_conv && (p[0] | p[1] | p[2] | p[3]) == 0 &&
           p[4] == 1 && p[5] == 1 && p[6] == 1 && p[7] == 1 && p[GROUPS] == 1;
}

enum status rt_xnnpack_import_conv(struct rt_xnnpack_import *x, const struct rt_xnnpack_node *node)
{
    struct convolution c = {0};
    uint32_t stored;
    TRY(read_convolution(x, node, &c));
    int64_t dims[] = {c.outs, c.window.kernel.y, c.window.kernel.x, node->params[GROUP_INPUTS]};
    TRY(need_weights(x, node, dims, &stored));
    TRY(order_weights(x, node, stored, to_planes, 0, 0, &c.weights));
    return convolve(x, node, &c);
}

/* The filter is [1, kh, kw, outs]: each input channel's outputs are neighbours. */
enum status rt_xnnpack_import_depthwise(struct rt_xnnpack_import *x,
                                        const struct rt_xnnpack_node *node)
{
    static const uint8_t order[] = {3, 0, 1, 2};
    struct convolution c = {0};
    uint32_t stored;
    TRY(read_convolution(x, node, &c));
    int64_t dims[] = {1, c.window.kernel.y, c.window.kernel.x, c.outs};
    if (node->params[GROUP_INPUTS] != 1) {
        return error_set(x->err, ST_UNSUPPORTED, "%s is %u, expected 1", extent_names[GROUP_INPUTS],
                         node->params[GROUP_INPUTS]);
    }
    TRY(need_weights(x, node, dims, &stored));
    TRY(order_weights(x, node, stored, order, 3, 0, &c.weights));
    return convolve(x, node, &c);
}

/* [g * O, kh, kw, I] as [g * I, O, kh, kw]; quantized weights of a single group stay quantized. */
static enum status transposed_weights(struct rt_xnnpack_import *x,
                                      const struct rt_xnnpack_node *node,
                                      const struct convolution *c, uint32_t stored,
                                      uint32_t *out_value)
{
    static const uint8_t order[] = {3, 0, 1, 2}, grouped[] = {0, 4, 1, 2, 3};
    int64_t outs = node->params[GROUP_OUTPUTS], ins = node->params[GROUP_INPUTS];
    if (c->groups == 1) {
        return order_weights(x, node, stored, order, 0, 1, out_value);
    }
    struct rt_dim apart[] = {rt_dim_of(c->groups), rt_dim_of(outs), rt_dim_of(c->window.kernel.y),
                             rt_dim_of(c->window.kernel.x), rt_dim_of(ins)};
    struct rt_dim together[] = {rt_dim_of(c->groups * ins), rt_dim_of(outs),
                                rt_dim_of(c->window.kernel.y), rt_dim_of(c->window.kernel.x)};
    TRY(rt_xnnpack_decode(x, node->inputs[1], stored, 0, out_value));
    TRY(rt_xnnpack_view(x, *out_value, apart, 5, out_value));
    TRY(rt_xnnpack_permute(x, *out_value, grouped, out_value));
    return rt_xnnpack_view(x, *out_value, together, 4, out_value);
}

/* Padding of a transposed convolution may differ between the sides. The graph's operator cuts the
 * same from both, so the difference is added or cut at the end. */
enum status rt_xnnpack_import_deconv(struct rt_xnnpack_import *x,
                                     const struct rt_xnnpack_node *node)
{
    struct convolution c = {.is_transposed = true};
    uint32_t stored;
    TRY(read_convolution(x, node, &c));
    int64_t dims[] = {c.outs, c.window.kernel.y, c.window.kernel.x, node->params[GROUP_INPUTS]};
    TRY(need_weights(x, node, dims, &stored));
    TRY(transposed_weights(x, node, &c, stored, &c.weights));
    c.extra.y += c.window.before.y.value - c.window.after.y.value;
    c.extra.x += c.window.before.x.value - c.window.after.x.value;
    c.window.after = c.window.before;
    return convolve(x, node, &c);
}

/* ---- pools ----------------------------------------------------------------------------------- */

/* max_pool2d with its two results, the values and their places in the plane. */
static enum status max_pool(struct rt_xnnpack_import *x, uint32_t input, const struct window *w,
                            uint32_t out_values[2])
{
    struct rt_graph *graph = x->graph;
    const struct rt_op *op = rt_op_known(RT_KNOWN_max_pool2d);
    must(op);
    uint32_t args[] = {
        input,
        pair_arg(x, w->kernel),
        pair_arg(x, w->stride),
        pads_arg(x, w->before),
        pair_arg(x, w->dilation),
        rt_graph_bool(graph, false),
    };
    out_values[0] = rt_graph_tensor(graph, graph->values[input].dtype, 0, NULL);
    out_values[1] = rt_graph_tensor(graph, DT_I64, 0, NULL);
    uint32_t node = rt_graph_node(graph, op, args, 6, out_values, 2);
    TRY(rt_graph_check(graph, x->err));
    return rt_graph_infer(graph, node, x->err);
}

/* Compares stored values if the output stores numbers alike: quantized images stay quantized. */
enum status rt_xnnpack_import_max_pool(struct rt_xnnpack_import *x,
                                       const struct rt_xnnpack_node *node)
{
    uint32_t in = node->inputs[0], out = node->outputs[0], stored, pooled[2];
    bool is_alike = rt_xnnpack_same_form(&x->payload.values[in], &x->payload.values[out]);
    struct window w;
    TRY(rt_xnnpack_stored(x, in, &stored));
    TRY(need_image(x, stored));
    TRY(read_window(x, node, stored, true, &w));
    if (!is_alike || isfinite(node->min) || isfinite(node->max)) {
        TRY(planes(x, node, -INFINITY, &w, &stored));
        TRY(max_pool(x, stored, &w, pooled));
        return finish_planes(x, node, pooled[0]);
    }
    TRY(pad_uneven(x, in, -INFINITY, &w, &stored));
    TRY(rt_xnnpack_permute(x, stored, to_planes, &stored));
    TRY(max_pool(x, stored, &w, pooled));
    TRY(rt_xnnpack_permute(x, pooled[0], to_pixels, &stored));
    return rt_xnnpack_define(x, out, stored);
}

/* Means over the windows of |planes|; padding does not count. */
static enum status average(struct rt_xnnpack_import *x, uint32_t planes, const struct window *w,
                           uint32_t *out_value)
{
    uint32_t args[] = {
        planes,
        pair_arg(x, w->kernel),
        pair_arg(x, w->stride),
        pads_arg(x, w->before),
        rt_graph_bool(x->graph, false),
        rt_graph_bool(x->graph, false),
        rt_graph_none(x->graph),
    };
    return rt_xnnpack_apply(x, RT_OP(avg_pool2d), args, 7, DT_F32, out_value);
}

/* The fraction of each window that is not padding, for an image as large as |stored|. */
static enum status average_ones(struct rt_xnnpack_import *x, uint32_t stored, struct window w,
                                uint32_t *out_value)
{
    struct rt_graph *graph = x->graph;
    const struct rt_value *v = &graph->values[stored];
    const struct rt_dim one = rt_dim_of(1), none = rt_dim_of(0);
    struct rt_dim sizes[] = {one, one, v->dims[1], v->dims[2]};
    struct rt_dim pads[] = {w.before.x, w.after.x, w.before.y, w.after.y};
    uint32_t args[] = {rt_graph_ints(graph, sizes, 4), rt_graph_float(graph, 1)}, ones;
    TRY(rt_xnnpack_apply(x, RT_OP(full), args, 2, DT_F32, &ones));
    uint32_t pad[] = {ones, rt_graph_ints(graph, pads, 4), rt_graph_float(graph, 0)};
    TRY(rt_xnnpack_apply(x, RT_OP(constant_pad), pad, 3, DT_F32, &ones));
    w.before = w.after = (struct pads){none, none};
    return average(x, ones, &w, out_value);
}

enum status rt_xnnpack_import_avg_pool(struct rt_xnnpack_import *x,
                                       const struct rt_xnnpack_node *node)
{
    struct window w;
    uint32_t image, stored, out;
    TRY(rt_xnnpack_stored(x, node->inputs[0], &image));
    TRY(need_image(x, image));
    TRY(read_window(x, node, image, false, &w));
    bool divides = !is_even(&w);
    struct window uneven = w;
    TRY(planes(x, node, 0, &w, &stored));
    TRY(average(x, stored, &w, &out));
    if (divides) {
        uint32_t quotient[] = {out, 0};
        TRY(average_ones(x, image, uneven, &quotient[1]));
        TRY(rt_xnnpack_apply(x, RT_OP(div), quotient, 2, DT_F32, &out));
    }
    return finish_planes(x, node, out);
}

enum status rt_xnnpack_import_global_pool(struct rt_xnnpack_import *x,
                                          const struct rt_xnnpack_node *node)
{
    struct window none = {.before = fixed_pads(0, 0), .after = fixed_pads(0, 0)};
    uint32_t stored, out;
    bool keeps = node->flags & XNN_KEEP_DIMS;
    TRY(rt_xnnpack_stored(x, node->inputs[0], &stored));
    TRY(need_image(x, stored));
    TRY(planes(x, node, 0, &none, &stored));
    uint32_t args[] = {
        stored,
        rt_xnnpack_ints(x, (const int64_t[]){2, 3}, 2),
        rt_graph_bool(x->graph, keeps),
        rt_graph_none(x->graph),
    };
    TRY(rt_xnnpack_apply(x, RT_OP(mean), args, 4, DT_F32, &out));
    return keeps ? finish_planes(x, node, out) : rt_xnnpack_finish(x, node, out);
}

/* Converts a place in the plane to a place in its window: windows touch, but do not overlap. */
static enum status place_in_window(struct rt_xnnpack_import *x, uint32_t place, struct rt_dim width,
                                   struct pair window, uint32_t *out_value)
{
    uint32_t wide = rt_graph_int(x->graph, width), row, column, start;
    uint32_t by_row[] = {place, wide};
    TRY(rt_xnnpack_apply(x, RT_OP(remainder_scalar), by_row, 2, DT_I64, &column));
    uint32_t without[] = {place, column, rt_xnnpack_int(x, 1)};
    TRY(rt_xnnpack_apply(x, RT_OP(sub), without, 3, DT_I64, &start));
    uint32_t whole[] = {start, wide, rt_graph_string(x->graph, span_str("floor"))};
    TRY(rt_xnnpack_apply(x, RT_OP(div_scalar_mode), whole, 3, DT_I64, &row));
    uint32_t row_args[] = {row, rt_xnnpack_int(x, window.y)};
    TRY(rt_xnnpack_apply(x, RT_OP(remainder_scalar), row_args, 2, DT_I64, &row));
    uint32_t column_args[] = {column, rt_xnnpack_int(x, window.x)};
    TRY(rt_xnnpack_apply(x, RT_OP(remainder_scalar), column_args, 2, DT_I64, &column));
    uint32_t row_start[] = {row, rt_xnnpack_int(x, window.x)};
    TRY(rt_xnnpack_apply(x, RT_OP(mul_scalar), row_start, 2, DT_I64, &row));
    uint32_t sum[] = {row, column, rt_xnnpack_int(x, 1)};
    return rt_xnnpack_apply(x, RT_OP(add), sum, 3, DT_I64, out_value);
}

/* Maxima of adjacent windows, and the place of each in its window. */
enum status rt_xnnpack_import_argmax_pool(struct rt_xnnpack_import *x,
                                          const struct rt_xnnpack_node *node)
{
    const uint32_t *p = node->params;
    const struct pads none = fixed_pads(0, 0);
    struct window w = {{p[4], p[5]}, {p[4], p[5]}, {1, 1}, none, none};
    int64_t pads[] = {p[3], p[1], p[0], p[2]};
    uint32_t stored, pooled[2];
    TRY(check_extents(x, p, 4, 6));
    TRY(rt_xnnpack_stored(x, node->inputs[0], &stored));
    TRY(need_image(x, stored));
    TRY(planes(x, node, 0, &w, &stored));
    if (p[0] + p[1] + p[2] + p[3] > 0) {
        /* XNNPACK reads the nearest pixel for a place outside, but returns the place, not the
         * pixel's. */
        uint32_t args[] = {stored, rt_xnnpack_ints(x, pads, 4)};
        TRY(rt_xnnpack_apply(x, RT_OP(replication_pad2d), args, 2, DT_F32, &stored));
    }
    TRY(max_pool(x, stored, &w, pooled));
    struct rt_dim height = x->graph->values[stored].dims[2];
    struct rt_dim width = x->graph->values[stored].dims[3];
    if (!rt_dim_is(height, w.kernel.y) || !rt_dim_is(width, w.kernel.x)) {
        TRY(place_in_window(x, pooled[1], width, w.kernel, &pooled[1]));
    }
    TRY(encode_planes(x, node->outputs[0], pooled[0], &pooled[0]));
    TRY(encode_planes(x, node->outputs[1], pooled[1], &pooled[1]));
    TRY(rt_xnnpack_define(x, node->outputs[0], pooled[0]));
    return rt_xnnpack_define(x, node->outputs[1], pooled[1]);
}

/* ---- resampling ------------------------------------------------------------------------------ */

enum status rt_xnnpack_import_resize(struct rt_xnnpack_import *x,
                                     const struct rt_xnnpack_node *node)
{
    struct window none = {.before = fixed_pads(0, 0), .after = fixed_pads(0, 0)};
    uint32_t stored, out;
    TRY(rt_xnnpack_stored(x, node->inputs[0], &stored));
    TRY(need_image(x, stored));
    TRY(planes(x, node, 0, &none, &stored));
    uint32_t args[] = {
        stored,
        rt_xnnpack_ints(x, (const int64_t[]){node->params[0], node->params[1]}, 2),
        rt_graph_bool(x->graph, node->flags & XNN_ALIGN_CORNERS),
        rt_graph_none(x->graph),
    };
    TRY(rt_xnnpack_apply(x, RT_OP(upsample_bilinear2d), args, 4, DT_F32, &out));
    return finish_planes(x, node, out);
}
