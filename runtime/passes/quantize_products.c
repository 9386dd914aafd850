/* SPDX-License-Identifier: MIT */
/* Integer products and convolutions: see quantize.h. */
#include "config.h"

#include <math.h>
#include <string.h>

#include "runtime/kernels/qgemm.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/known.h"
#include "runtime/passes/quantize.h"

/* The operands of a product, whatever its operator. Values; the bias may be none. */
struct operands {
    uint32_t x, w, bias;
    bool is_linear;
    bool is_kn; /* linear: the weights are [k, n] */
};

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

static bool read_operands(const struct rt_graph *graph, const struct rt_node *node,
                          struct operands *o)
{
    *o = (struct operands){.is_linear = true};
    if (q_is(node, RT_KNOWN_linear)) {
        o->x = node->args[0];
        o->w = node->args[1];
        o->bias = node->args[2];
    } else if (q_is(node, RT_KNOWN_mm)) {
        o->x = node->args[0];
        o->w = node->args[1];
        o->is_kn = true;
    } else if (q_is(node, RT_KNOWN_addmm)) {
        const struct rt_value *bias = rt_node_arg(graph, node, 0);
        o->bias = node->args[0];
        o->x = node->args[1];
        o->w = node->args[2];
        o->is_kn = true;
        return bias->rank == 1 &&
               rt_dim_same(bias->dims[0], rt_node_out(graph, node, 0)->dims[1]) &&
               rt_value_is_fixed(rt_node_arg(graph, node, 3)) &&
               rt_value_number(rt_node_arg(graph, node, 3)) == 1 &&
               rt_value_is_fixed(rt_node_arg(graph, node, 4)) &&
               rt_value_number(rt_node_arg(graph, node, 4)) == 1;
    } else if (q_is(node, RT_KNOWN_convolution)) {
        *o = (struct operands){node->args[CONV_X], node->args[CONV_W], node->args[CONV_BIAS], false,
                               false};
        return !rt_node_arg(graph, node, CONV_TRANSPOSED)->b;
    } else {
        return false;
    }
    return true;
}

/* Is the bias a constant f32 row, or none? */
static bool is_usual_bias(const struct q_pass *q, uint32_t bias)
{
    const struct rt_value *v = &q->graph->values[bias];
    return bias == 0 || v->kind == RT_NONE ||
           (v->dtype == DT_F32 && v->rank == 1 && q->is_known[bias]);
}

/* Entry |i| of a list that has one entry for all axes or one for each. */
static int64_t entry(const struct rt_value *list, uint8_t i)
{
    return list->ints[list->count == 1 ? 0 : i].value;
}

/* Is the window small enough to copy, and has it few enough weights to sum? */
static bool is_usual_window(const struct rt_graph *graph, const struct rt_node *node)
{
    const struct rt_value *w = rt_node_arg(graph, node, CONV_W);
    const struct rt_value *dilation = rt_node_arg(graph, node, CONV_DILATION);
    int64_t channels = w->dims[1].value, depth = channels;
    int64_t reach = channels > 64 ? channels : 64;
    if (w->rank != 3 && w->rank != 4) {
        return false;
    }
    for (uint8_t i = 2; i < w->rank; i++) {
        int64_t kernel = w->dims[i].value, step = entry(dilation, (uint8_t)(i - 2));
        if (kernel > UK_DEPTH_U8_MAX || step > RT_QGEMM_REACH_MAX) {
            return false;
        }
        int64_t extent = (kernel - 1) * step + 1;
        depth *= kernel;
        if (extent > RT_QGEMM_REACH_MAX || depth > UK_DEPTH_U8_MAX) {
            return false;
        }
        reach *= extent;
        if (reach > RT_QGEMM_REACH_MAX) {
            return false;
        }
    }
    return depth > 0;
}

static bool has_const_dims(const struct rt_value *v)
{
    bool is_const = true;
    for (uint8_t i = 0; i < v->rank; i++) {
        is_const = is_const && rt_dim_is_const(v->dims[i]) && v->dims[i].value > 0 &&
                   v->dims[i].value <= INT32_MAX;
    }
    return is_const;
}

/* The dim of the stored weights that is the output's columns. */
static uint8_t column_axis(const struct operands *o, const struct q_info *w)
{
    return o->is_linear && o->is_kn != w->is_turned ? 1 : 0;
}

static bool fits_linear(const struct q_pass *q, const struct operands *o, const struct q_info *w)
{
    const struct rt_value *v = &q->graph->values[w->bytes];
    uint8_t axis = column_axis(o, w);
    bool has_groups = w->group != 0;
    return v->rank == 2 && v->dims[1 - axis].value <= UK_DEPTH_U8_MAX &&
           (w->scales == 0 || has_groups || w->axis == axis) &&
           (!has_groups || (axis == 0 && w->group % 8 == 0 && v->dims[1].value % w->group == 0));
}

void q_note_product(struct q_pass *q, uint32_t index)
{
    const struct rt_node *node = &q->graph->nodes[index];
    struct operands o;
    if (!read_operands(q->graph, node, &o) || rt_node_out(q->graph, node, 0)->dtype != DT_F32) {
        return;
    }
    const struct q_info *x = q_info_of(q, o.x), *w = q_info_of(q, o.w);
    if (w->kind != Q_WEIGHTS || !is_usual_bias(q, o.bias) ||
        !has_const_dims(&q->graph->values[w->bytes]) ||
        (x->kind != Q_TENSOR && (x->kind != Q_ROWS || !o.is_linear))) {
        return;
    }
    bool fits = o.is_linear ? fits_linear(q, &o, w)
                            : !w->is_turned && w->group == 0 && (w->scales == 0 || w->axis == 0) &&
                                  is_usual_window(q->graph, node);
    if (fits) {
        q->info[node->outs[0]].kind = Q_PRODUCT;
        q->info[node->outs[0]].node = index;
    }
}

/* ---- building -------------------------------------------------------------------------------- */

/* Do all of the constant weights fit into 4 bits? */
static bool fits_4bit(const struct q_pass *q, uint32_t value)
{
    const struct rt_value *v = &q->graph->values[value];
    const struct rt_node *node = q_producer(q, value);
    bool fits = v->is_constant;
    if (node && q_is(node, RT_KNOWN_unpack_int4)) {
        return true;
    }
    for (size_t i = 0; fits && i < v->bytes.len; i++) {
        int8_t w = (int8_t)v->bytes.ptr[i];
        fits = w >= -8 && w <= 7;
    }
    return fits;
}

/* Are these constant scales all exact as bfloat16? Files of XNNPACK store them so. */
static bool are_short(const struct q_pass *q, uint32_t value)
{
    const struct rt_value *v = &q->graph->values[value];
    const struct rt_node *node = q_producer(q, value);
    bool are = v->is_constant && v->dtype == DT_F32 && v->bytes.ptr;
    if (node && q_is(node, RT_KNOWN_to_dtype)) {
        return rt_node_arg(q->graph, node, 0)->dtype == DT_BF16;
    }
    for (size_t i = 0; are && i < v->bytes.len; i += sizeof(uint32_t)) {
        uint32_t bits;
        memcpy(&bits, v->bytes.ptr + i, sizeof(bits));
        are = (bits & 0xffff) == 0;
    }
    return are;
}

/* The parts of a product, in the form that nodes expect. */
struct parts {
    struct q_info x, w;
    uint32_t bias, scales; /* a value, or none */
    uint8_t axis;
    int64_t groups; /* of a convolution; 0: depthwise */
    bool is_4bit;
    struct q_params params; /* of the result; floats: a scale of 1, zero point 0 */
    bool is_f32;
};

static enum status make_columns(struct q_pass *q, const struct parts *p, uint32_t *out_value)
{
    bool has_rows = p->x.kind == Q_ROWS;
    uint32_t args[] = {
        p->w.bytes,
        q_int(q, p->axis),
        q_int(q, p->groups),
        p->bias,
        p->scales,
        rt_graph_float(q->graph, p->w.scale),
        rt_graph_float(q->graph, has_rows ? 1 : p->x.scale),
        q_int(q, has_rows ? 128 : p->x.zero), /* rows have zero points of i8 */
        rt_graph_float(q->graph, p->params.scale),
        rt_graph_bool(q->graph, p->is_4bit),
    };
    return rt_op_apply(q->graph, RT_OP(q_columns), args, 10, DT_I32, out_value, q->err);
}

/* A bound of the result before the zero point is added. */
static uint32_t bound(struct q_pass *q, const struct parts *p, int64_t stored, double unbounded)
{
    return rt_graph_float(q->graph, p->is_f32 ? unbounded : (double)(stored - p->params.zero));
}

/* Weights, columns and scales, as q_linear() expects them. Packed weights with groups have the
 * others in them on the CPU: see struct uk_gemm_u8. */
static enum status pack_linear(struct q_pass *q, const struct parts *p, bool are_inside,
                               bool are_scales_short, uint32_t *out_value)
{
    struct rt_graph *graph = q->graph;
    uint32_t columns, none = rt_graph_none(graph);
    TRY(make_columns(q, p, &columns));
    out_value[1] = are_inside ? none : columns;
    out_value[2] = none;
    if (p->w.group && !are_inside) {
        TRY(rt_op_apply(graph, RT_OP(q_group_scales), &p->scales, 1, DT_F32, &out_value[2],
                        q->err));
    }
    uint32_t args[] = {
        p->w.bytes,
        rt_graph_bool(graph, p->axis == 1),
        rt_graph_bool(graph, p->is_4bit),
        are_inside ? p->scales : none,
        are_inside ? columns : none,
        q_int(q, are_inside ? p->w.group : 0),
        rt_graph_bool(graph, are_scales_short),
        rt_graph_bool(graph, graph->is_host && !p->w.group),
    };
    return rt_op_apply(graph, RT_OP(q_pack_linear), args, 8, DT_U8, out_value, q->err);
}

static enum status make_linear(struct q_pass *q, struct parts *p, uint32_t *out_value)
{
    struct rt_graph *graph = q->graph;
    uint32_t weights[3], none = rt_graph_none(graph);
    bool has_rows = p->x.kind == Q_ROWS, are_inside = p->w.group != 0 && graph->is_host;
    bool are_scales_short = are_inside && are_short(q, p->scales);
    struct rt_dim n = graph->values[p->w.bytes].dims[p->axis];
    p->is_4bit = fits_4bit(q, p->w.bytes);
    TRY(pack_linear(q, p, are_inside, are_scales_short, weights));
    uint32_t args[] = {
        p->x.bytes,
        weights[0],
        weights[1],
        weights[2],
        has_rows ? p->x.scales : none,
        has_rows ? p->x.zeros : none,
        rt_graph_int(graph, n),
        rt_graph_bool(graph, p->is_4bit),
        q_int(q, p->w.group),
        rt_graph_bool(graph, are_scales_short),
        q_int(q, p->params.zero),
        bound(q, p, p->params.min, -INFINITY),
        bound(q, p, p->params.max, INFINITY),
    };
    enum dtype dtype = p->is_f32 ? DT_F32 : DT_U8;
    return rt_op_apply(graph, RT_OP(q_linear), args, 13, dtype, out_value, q->err);
}

/* The two entries for height and width; with only one axis, the height's is |idle|. Those of a
 * column change places. */
static uint32_t pair(struct q_pass *q, const struct rt_node *node, uint32_t arg, int64_t idle,
                     bool is_column)
{
    const struct rt_value *list = rt_node_arg(q->graph, node, arg);
    uint8_t axes = (uint8_t)(rt_node_arg(q->graph, node, CONV_X)->rank - 2);
    struct rt_dim items[2] = {rt_dim_of(idle), rt_dim_of(entry(list, 0))};
    if (axes == 2) {
        items[0] = rt_dim_of(entry(list, is_column ? 1 : 0));
        items[1] = rt_dim_of(entry(list, is_column ? 0 : 1));
    }
    return rt_graph_ints(q->graph, items, 2);
}

/* Is this a convolution of images of one column? XNNPACK's exporter makes these of lines. */
static bool is_column(const struct rt_graph *graph, const struct rt_node *node,
                      const struct rt_value *w)
{
    const struct rt_value *padding = rt_node_arg(graph, node, CONV_PADDING);
    return w->rank == 4 && rt_dim_is(w->dims[3], 1) && !rt_dim_is(w->dims[2], 1) &&
           rt_dim_is(rt_node_arg(graph, node, CONV_X)->dims[3], 1) && entry(padding, 1) == 0 &&
           rt_dim_is(rt_node_out(graph, node, 0)->dims[3], 1);
}

/* A column as a row, or the other way round. Rows of pixels are multiplied together. */
static enum status turn(struct q_pass *q, uint32_t *value)
{
    const struct rt_value *v = &q->graph->values[*value];
    struct rt_dim dims[4] = {v->dims[0], v->dims[1], v->dims[3], v->dims[2]};
    return rt_op_view(q->graph, *value, dims, 4, value, q->err);
}

/* [C, 1, H, W] as [H, W, 1, C]. */
static enum status depthwise_weights(struct q_pass *q, uint32_t weights, uint32_t *out_value)
{
    const struct rt_value *w = &q->graph->values[weights];
    struct rt_dim dims[4] = {w->dims[0], rt_dim_of(1), rt_dim_of(1), w->dims[w->rank - 1]};
    struct rt_dim order[4] = {rt_dim_of(2), rt_dim_of(3), rt_dim_of(1), rt_dim_of(0)};
    dims[2] = w->rank == 4 ? w->dims[2] : dims[2];
    uint32_t view_args[] = {weights, rt_graph_ints(q->graph, dims, 4)}, view;
    TRY(rt_op_apply(q->graph, RT_OP(view), view_args, 2, DT_I8, &view, q->err));
    uint32_t args[] = {view, rt_graph_ints(q->graph, order, 4)};
    return rt_op_apply(q->graph, RT_OP(permute), args, 2, DT_I8, out_value, q->err);
}

static enum status pack_conv(struct q_pass *q, const struct parts *p, int64_t dilation,
                             uint32_t *out_value)
{
    if (p->groups == 0) {
        uint32_t w;
        TRY(depthwise_weights(q, p->w.bytes, &w));
        return rt_op_apply(q->graph, RT_OP(q_pack_dw), &w, 1, DT_U8, out_value, q->err);
    }
    uint32_t args[] = {
        p->w.bytes,
        q_int(q, p->groups),
        rt_graph_bool(q->graph, rt_qgemm_merges(dilation)),
        rt_graph_bool(q->graph, q->graph->is_host),
    };
    return rt_op_apply(q->graph, RT_OP(q_pack_conv), args, 4, DT_U8, out_value, q->err);
}

static enum status make_conv(struct q_pass *q, struct parts *p, uint32_t index, uint32_t *out_value)
{
    struct rt_graph *graph = q->graph;
    bool turns = is_column(graph, &graph->nodes[index], &graph->values[p->w.bytes]);
    TRY(turns ? turn(q, &p->w.bytes) : ST_OK);
    TRY(turns ? turn(q, &p->x.bytes) : ST_OK);
    const struct rt_node *node = &graph->nodes[index];
    const struct rt_value *w = &graph->values[p->w.bytes];
    int64_t groups = rt_node_arg(graph, node, CONV_GROUPS)->i.value, outs = w->dims[0].value;
    struct rt_dim kernel[2] = {rt_dim_of(1), w->dims[w->rank - 1]};
    const struct rt_value *dilations = rt_node_arg(graph, node, CONV_DILATION);
    int64_t dilation = entry(dilations, turns ? 0 : (uint8_t)(dilations->count - 1));
    uint32_t packed, columns;
    bool is_depthwise = rt_dim_is(w->dims[1], 1) && outs == groups && groups > 1 && !p->is_f32;
    kernel[0] = w->rank == 4 ? w->dims[2] : kernel[0];
    p->groups = is_depthwise ? 0 : groups;
    TRY(pack_conv(q, p, dilation, &packed));
    TRY(make_columns(q, p, &columns));
    node = &graph->nodes[index];
    uint32_t args[] = {
        p->x.bytes,
        packed,
        columns,
        rt_graph_ints(graph, kernel, 2),
        pair(q, node, CONV_STRIDE, 1, turns),
        pair(q, node, CONV_PADDING, 0, turns),
        pair(q, node, CONV_DILATION, 1, turns),
        q_int(q, groups),
        q_int(q, outs),
        q_int(q, p->x.zero),
        q_int(q, p->params.zero),
        bound(q, p, p->params.min, -INFINITY),
        bound(q, p, p->params.max, INFINITY),
    };
    TRY(rt_op_apply(graph, is_depthwise ? RT_OP(q_conv_dw) : RT_OP(q_conv), args, 13,
                    p->is_f32 ? DT_F32 : DT_U8, out_value, q->err));
    return turns ? turn(q, out_value) : ST_OK;
}

enum status q_make_product(struct q_pass *q, uint32_t index, const struct q_params *params,
                           uint32_t *out_value)
{
    struct operands o;
    read_operands(q->graph, &q->graph->nodes[index], &o);
    struct parts p = {
        .x = *q_info_of(q, o.x),
        .w = *q_info_of(q, o.w),
        .bias = o.bias ? o.bias : rt_graph_none(q->graph),
        .params = params ? *params : (struct q_params){.scale = 1},
        .is_f32 = params == NULL,
    };
    p.axis = column_axis(&o, &p.w);
    p.scales = rt_graph_none(q->graph);
    p.groups = 1;
    if (p.w.scales) {
        TRY(rt_op_convert(q->graph, p.w.scales, DT_F32, &p.scales, q->err));
    }
    return o.is_linear ? make_linear(q, &p, out_value) : make_conv(q, &p, index, out_value);
}
