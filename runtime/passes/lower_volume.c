/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of volumes as convolutions of planes. A plane of the result takes as many planes of
 * the input as the kernel is deep. These lie beside each other as channels of one image:
 *
 *     [N, C, D, H, W] -> [N, D, H, W, C] -> kernel's depth slices -> [N * D', H, W, depth * C]
 *
 * The copies are small beside the products, and in channels-last the permutes move nothing.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/passes/lower.h"

enum { RANK = 5, DEPTH = 2 /* dim D of a volume */ };

/* More slices would not fit into one list; such kernels are convolved directly. */
#define DEPTH_MAX 32

bool rt_lower_is_volume(const struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS])
{
    const struct rt_value *w = &graph->values[from[RT_CONV_W]];
    bool is_plain = !graph->values[from[RT_CONV_TRANSPOSED]].b &&
                    rt_dim_is(graph->values[from[RT_CONV_GROUPS]].i, 1);
    for (uint8_t d = 0; d < w->rank; d++) {
        is_plain = is_plain && rt_dim_is_const(w->dims[d]);
    }
    return w->rank == RANK && is_plain && w->dims[DEPTH].value <= DEPTH_MAX;
}

/* Entry |axis| of a list that has one entry for each of three axes, or one for all. */
static int64_t entry(const struct rt_graph *graph, uint32_t list, uint32_t axis)
{
    const struct rt_value *v = &graph->values[list];
    return v->ints[v->count == 1 ? 0 : axis].value;
}

/* Planes of zeros before and behind [N, D, H, W, C]. */
static enum status pad_depth(struct rt_graph *graph, int64_t planes, uint32_t *x, struct error *err)
{
    struct rt_dim pads[8] = {[6] = rt_dim_of(planes), [7] = rt_dim_of(planes)};
    for (uint32_t i = 0; i < 6; i++) {
        pads[i] = rt_dim_of(0);
    }
    uint32_t args[] = {*x, rt_graph_ints(graph, pads, 8), rt_graph_float(graph, 0)};
    return planes == 0 ? ST_OK : rt_op_apply(graph, RT_OP(constant_pad), args, 3, DT_F32, x, err);
}

/* [N, D, H, W, C] as [N, |depth|, H, W, taps * C]: the planes that a plane of the result takes. */
static enum status gather_planes(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS],
                                 struct rt_dim depth, uint32_t *x, struct error *err)
{
    int64_t stride = entry(graph, from[RT_CONV_STRIDE], 0);
    int64_t dilation = entry(graph, from[RT_CONV_DILATION], 0);
    int64_t taps = graph->values[from[RT_CONV_W]].dims[DEPTH].value;
    struct rt_dims *dims = &graph->dims;
    struct rt_dim others = rt_dim_sub(dims, depth, rt_dim_of(1));
    struct rt_dim reach = rt_dim_mul(dims, others, rt_dim_of(stride));
    uint32_t items[DEPTH_MAX];
    if (taps == 1 && stride == 1) {
        return ST_OK;
    }
    for (int64_t tap = 0; tap < taps; tap++) {
        struct rt_dim first = rt_dim_of(tap * dilation);
        struct rt_dim end = rt_dim_add(dims, reach, rt_dim_of(tap * dilation + 1));
        uint32_t args[] = {*x, rt_graph_int(graph, rt_dim_of(1)), rt_graph_int(graph, first),
                           rt_graph_int(graph, end), rt_graph_int(graph, rt_dim_of(stride))};
        TRY(rt_op_apply(graph, RT_OP(slice), args, 5, DT_F32, &items[tap], err));
    }
    uint32_t args[] = {rt_graph_tensors(graph, items, (uint32_t)taps),
                       rt_graph_int(graph, rt_dim_of(RANK - 1))};
    return rt_op_apply(graph, RT_OP(cat), args, 2, DT_F32, x, err);
}

static enum status make_image(struct rt_graph *graph, const uint32_t from[RT_CONV_ARGS],
                              struct rt_dim depth, uint32_t *x, struct error *err)
{
    TRY(rt_op_permute(graph, *x, (const uint8_t[]){0, 2, 3, 4, 1}, RANK, x, err));
    TRY(pad_depth(graph, entry(graph, from[RT_CONV_PADDING], 0), x, err));
    TRY(gather_planes(graph, from, depth, x, err));
    const struct rt_dim *of = graph->values[*x].dims;
    struct rt_dim planes = rt_dim_mul(&graph->dims, of[0], of[1]);
    TRY(rt_op_view(graph, *x, (const struct rt_dim[]){planes, of[2], of[3], of[4]}, 4, x, err));
    return rt_op_permute(graph, *x, (const uint8_t[]){0, 3, 1, 2}, 4, x, err);
}

/* [O, C, D, H, W] as [O, D * C, H, W]. */
static enum status flatten_weights(struct rt_graph *graph, uint32_t *w, struct error *err)
{
    TRY(rt_op_permute(graph, *w, (const uint8_t[]){0, 2, 1, 3, 4}, RANK, w, err));
    const struct rt_dim *of = graph->values[*w].dims;
    struct rt_dim channels = rt_dim_mul(&graph->dims, of[1], of[2]);
    return rt_op_view(graph, *w, (const struct rt_dim[]){of[0], channels, of[3], of[4]}, 4, w, err);
}

/* A list without its entry for the depth. */
static uint32_t of_plane(struct rt_graph *graph, uint32_t list)
{
    const struct rt_value *v = &graph->values[list];
    return v->count < 3 ? list : rt_graph_ints(graph, v->ints + 1, 2);
}

enum status rt_lower_volume(struct rt_graph *graph, uint32_t args[RT_CONV_ARGS],
                            struct rt_dim depth, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_dim least = rt_dim_max(&graph->dims, depth, rt_dim_of(1));
    TRY(rt_dim_require_equal(&graph->dims, depth, least,
                             "planes (the kernel is deeper than the padded volume)", err));
    TRY(make_image(graph, args, depth, &args[RT_CONV_X], err));
    TRY(flatten_weights(graph, &args[RT_CONV_W], err));
    static const uint8_t lists[] = {RT_CONV_STRIDE, RT_CONV_PADDING, RT_CONV_DILATION,
                                    RT_CONV_OUTPUT_PADDING};
    for (uint32_t i = 0; i < sizeof(lists); i++) {
        args[lists[i]] = of_plane(graph, args[lists[i]]);
    }
    return rt_graph_check(graph, err);
}

enum status rt_lower_planes_as(struct rt_graph *graph, uint32_t like, uint32_t *planes,
                               struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    const struct rt_dim *of = graph->values[like].dims;
    const struct rt_dim dims[] = {of[0], of[2], of[3], of[4], of[1]};
    TRY(rt_op_permute(graph, *planes, (const uint8_t[]){0, 2, 3, 1}, 4, planes, err));
    TRY(rt_op_view(graph, *planes, dims, RANK, planes, err));
    return rt_op_permute(graph, *planes, (const uint8_t[]){0, 4, 1, 2, 3}, RANK, planes, err);
}
