/* SPDX-License-Identifier: MIT */
/*
 * Chooses Winograd's algorithm for convolutions of 3 x 3: see passes.def and hal/cpu/uk_winograd.h.
 *
 * The choice compares estimates at the upper bounds of all sizes, for one image. They count
 * multiply-adds of the matrix product; other work is expressed in these. tests/bench/bench_kernels
 * measures both forms.
 *
 *     products     E * tiles * C * N, with E = 36 or 16 elements (plain: the taps in the image)
 *     weights      from memory: no product is faster than that. The plain form reads a tap again
 *                  for each part of the image, borders and inside, in half the time unless a near
 *                  cache keeps them. Beside one of bfloat16 numbers, whose weights are an eighth, a
 *                  part of the time is lost
 *     transforms   of each tile, for each input and output channel
 *     calls        of the product, one for each element of a block of tiles and columns (plain:
 *                  one for each part of the image that reads the same taps)
 *
 * So tiles of side 4 win with many tiles, tiles of side 2 win in small images with many channels,
 * where the weights of side 4, four times the plain ones, take longer to read than to multiply. For
 * few channels the transforms are too dear; for few tiles the calls are, too.
 */
#include "config.h"

#include <math.h>

#include "base/check.h"
#include "runtime/ops/apply.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/known.h"
#include "runtime/ops/op.h"
#include "runtime/ops/winograd.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rewrite.h"

#define PADDING_MAX 2

/* Multiply-adds that take as long as one float of weights from memory, if the device does not say;
 * the part of that time when nothing is multiplied; and multiply-adds of transforming one channel
 * of a patch, or of a tile of outputs. */
#define MACS_PER_WEIGHT 12.0
#define KEPT_FLOATS (200 * 1024.0) /* of weights, in a second-level cache */
#define WEIGHTS_LOST 0.25
#define MACS_PER_PATCH_2 115.0
#define MACS_PER_PATCH_4 350.0

/* Multiply-adds in the time that a call of the product takes beside its work; the tiles and columns
 * of a call; and the calls of the plain form, whose borders are apart on four sides. */
#define MACS_PER_CALL 4700.0
#define TILES_PER_CALL 24.0
#define COLUMNS_PER_CALL 64.0
#define PLAIN_CALLS 9.0
#define PLAIN_CALLS_BF16 3.0 /* left and right borders are not apart, but with AMX they are */

/* Winograd's algorithm must be estimated this much faster, because it takes memory and precision.
 */
#define ADVANTAGE 0.9

/* Folding has limits for the memory of what it computes from constants: eight times their size, for
 * one node and for all; only a packing node may grow more. Packed weights stay below: for one
 * convolution because there are enough outputs to half fill the widest panel, for all because they
 * are counted. Only weights that many convolutions derive from one constant come near the second
 * limit. */
#define PANEL_MAX 32
#define GROWTH_MAX 5
#define FLOATS_MIN (64 * 1024.0) /* may always be made */

struct choice {
    struct rt_rewrite rw;
    bool *is_known;      /* by value: does it follow from constants? */
    uint32_t *packed[2]; /* by value, for sides 2 and 4: the same weights packed; 0: not yet */
    double floats, most; /* of packed weights, made and allowed */
};

/* A convolution as the estimates see it. */
struct sizes {
    double channels, outs, height, width; /* of the outputs */
    double taps;     /* of all outputs of a channel, without taps in the padding */
    double reads;    /* of taps, by all parts of the image: floats of weights for each channel */
    double per_read; /* multiply-adds in the time of reading one of them */
    double speed;    /* of the plain form's products: above 1 if they are of bfloat16 numbers */
};

/* ---- estimates ------------------------------------------------------------------------------- */

static double multiplied(const struct sizes *s, double elements, double products)
{
    double weights = s->channels * s->outs;
    return fmax(products, elements * s->per_read) * weights;
}

static double plain_cost(const struct sizes *s)
{
    bool is_bf16 = s->speed > 1;
    double once = fmin(s->reads, 9), again = s->reads - once;
    bool is_kept = 9 * s->channels * s->outs <= KEPT_FLOATS;
    double elements = is_bf16 ? 9.0 / 2 : once + (is_kept ? 0 : again / 2);
    double calls = is_bf16 ? PLAIN_CALLS_BF16 : PLAIN_CALLS;
    return multiplied(s, elements, s->taps / s->speed) + calls * MACS_PER_CALL;
}

static double elements_of(int64_t side)
{
    return (double)((side + 2) * (side + 2));
}

static double winograd_cost(const struct sizes *s, int64_t side)
{
    double tiles = ceil(s->height / (double)side) * ceil(s->width / (double)side);
    double transform = side == 2 ? MACS_PER_PATCH_2 : MACS_PER_PATCH_4;
    double calls =
        elements_of(side) * ceil(tiles / TILES_PER_CALL) * ceil(s->outs / COLUMNS_PER_CALL);
    double lost = s->speed > 1 ? WEIGHTS_LOST * s->per_read * s->channels * s->outs : 0;
    return multiplied(s, elements_of(side), elements_of(side) * tiles) + elements_of(side) * lost +
           transform * tiles * (s->channels + s->outs) + MACS_PER_CALL * calls;
}

/* The side of the tiles, or 0: the plain form is faster. */
static int64_t choose_side(const struct sizes *s)
{
    double of_2 = winograd_cost(s, 2), of_4 = winograd_cost(s, 4);
    if (fmin(of_2, of_4) >= ADVANTAGE * plain_cost(s)) {
        return 0;
    }
    return of_4 < of_2 ? 4 : 2;
}

/* ---- candidates ------------------------------------------------------------------------------ */

/* Values that the pass makes are no constants. */
static bool is_known(const struct choice *c, uint32_t value)
{
    return rt_rewrite_has(&c->rw, value) && c->is_known[value];
}

/* Taps that outputs along an axis read from the image, with |padding| of at most 2 on both sides.
 */
static double taps_of(int64_t extent, int64_t padding)
{
    return fmax(1, 3 * (double)extent - (double)(padding * (padding + 1)));
}

/* The weights of a convolution of 3 x 3 that Winograd's algorithm can compute, before they were
 * packed; 0: it cannot. */
static uint32_t weights_of(const struct choice *c, const struct rt_node *conv)
{
    const struct rt_graph *graph = c->rw.graph;
    const struct rt_node *pack =
        rt_rewrite_producer(&c->rw, conv->args[RT_PACKED_W], RT_KNOWN_pack_conv);
    const struct rt_value *padding = rt_node_arg(graph, conv, RT_PACKED_PADDING);
    if (!pack || rt_node_arg(graph, conv, RT_PACKED_X)->rank != 4 ||
        rt_node_arg(graph, conv, RT_PACKED_TRANSPOSED)->b ||
        !rt_dim_is(rt_node_arg(graph, conv, RT_PACKED_GROUPS)->i, 1) ||
        !rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_KERNEL), 3) ||
        !rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_STRIDE), 1) ||
        !rt_ints_are(rt_node_arg(graph, conv, RT_PACKED_DILATION), 1) ||
        padding->ints[0].value > PADDING_MAX || padding->ints[1].value > PADDING_MAX) {
        return 0;
    }
    const struct rt_value *w = &graph->values[pack->args[0]];
    bool fits = w->dims[0].value >= PANEL_MAX / 2 && w->dims[1].value >= 1 &&
                w->dims[1].value <= RT_WINOGRAD_CHANNELS_MAX;
    return fits && is_known(c, pack->args[0]) ? pack->args[0] : 0;
}

/* Taps that the parts of an axis read: at each border pixel, and once for all pixels inside. */
static double reads_of(int64_t extent, int64_t padding)
{
    return taps_of(extent < 2 * padding + 1 ? extent : 2 * padding + 1, padding);
}

static struct sizes sizes_of(const struct rt_graph *graph, const struct rt_node *conv,
                             const struct rt_value *w)
{
    const struct rt_value *out = rt_node_out(graph, conv, 0);
    const struct rt_value *padding = rt_node_arg(graph, conv, RT_PACKED_PADDING);
    bool is_bf16 = rt_node_arg(graph, conv, RT_PACKED_W)->dtype == DT_BF16;
    return (struct sizes){
        .channels = (double)w->dims[1].value,
        .outs = (double)w->dims[0].value,
        .height = (double)out->dims[2].value,
        .width = (double)out->dims[3].value,
        .taps = taps_of(out->dims[2].value, padding->ints[0].value) *
                taps_of(out->dims[3].value, padding->ints[1].value),
        .reads = reads_of(out->dims[2].value, padding->ints[0].value) *
                 reads_of(out->dims[3].value, padding->ints[1].value),
        .per_read = graph->f32_per_read ? (double)graph->f32_per_read : MACS_PER_WEIGHT,
        .speed = is_bf16 ? fmax(2, (double)graph->bf16_speed) : 1,
    };
}

/* ---- the pass -------------------------------------------------------------------------------- */

/* |weights| packed for tiles of |side|. Convolutions that share weights share the packed ones. */
static enum status pack(struct choice *c, uint32_t weights, int64_t side, uint32_t *out,
                        struct error *err)
{
    struct rt_graph *graph = c->rw.graph;
    uint32_t *packed = &c->packed[side == 4][weights];
    if (*packed == 0) {
        uint32_t args[] = {weights, rt_graph_int(graph, rt_dim_of(side))};
        TRY(rt_op_apply(graph, RT_OP(pack_winograd), args, 2, DT_F32, packed, err));
    }
    *out = *packed;
    return ST_OK;
}

static enum status replace(struct choice *c, uint32_t index, uint32_t weights, int64_t side,
                           struct error *err)
{
    struct rt_graph *graph = c->rw.graph;
    uint32_t old = graph->nodes[index].outs[0], packed, out;
    TRY(pack(c, weights, side, &packed, err));
    uint32_t side_value = rt_graph_int(graph, rt_dim_of(side));
    const uint32_t *conv = graph->nodes[index].args;
    uint32_t args[RT_WINOGRAD_ARGS] = {
        [RT_WINOGRAD_X] = conv[RT_PACKED_X],
        [RT_WINOGRAD_W] = packed,
        [RT_WINOGRAD_BIAS] = conv[RT_PACKED_BIAS],
        [RT_WINOGRAD_RESIDUAL] = conv[RT_PACKED_RESIDUAL],
        [RT_WINOGRAD_PADDING] = conv[RT_PACKED_PADDING],
        [RT_WINOGRAD_OUTS] = conv[RT_PACKED_OUTS],
        [RT_WINOGRAD_SIDE] = side_value,
        [RT_WINOGRAD_MIN] = conv[RT_PACKED_MIN],
        [RT_WINOGRAD_MAX] = conv[RT_PACKED_MAX],
        [RT_WINOGRAD_ACTIVATION] = conv[RT_PACKED_ACTIVATION],
    };
    TRY(rt_op_apply(graph, RT_OP(conv_winograd), args, RT_WINOGRAD_ARGS, DT_F32, &out, err));
    rt_rewrite_replace(&c->rw, old, out);
    return ST_OK;
}

static enum status visit_conv(struct choice *c, uint32_t index, struct error *err)
{
    struct rt_graph *graph = c->rw.graph;
    const struct rt_node *conv = &graph->nodes[index];
    uint32_t weights = weights_of(c, conv);
    if (weights == 0) {
        return ST_OK;
    }
    struct sizes sizes = sizes_of(graph, conv, &graph->values[weights]);
    int64_t side = choose_side(&sizes);
    bool is_made = side != 0 && c->packed[side == 4][weights] != 0;
    double width = ceil(sizes.outs / PANEL_MAX) * PANEL_MAX;
    double floats = is_made ? 0 : elements_of(side) * sizes.channels * width;
    if (side == 0 || c->floats + floats > c->most) {
        return ST_OK;
    }
    c->floats += floats;
    return replace(c, index, weights, side, err);
}

/* Does |node| compute its outputs from constants alone, or a range from numbers? */
static bool computes_constants(const struct choice *c, const struct rt_node *node)
{
    struct rt_tensors tensors = rt_node_arg_tensors(c->rw.graph, node);
    bool any = false, are_fixed = rt_op_is(node->op, RT_KNOWN_arange_start);
    for (uint32_t value; rt_tensors_next(&tensors, &value); any = true) {
        if (!is_known(c, value)) {
            return false;
        }
    }
    for (uint32_t i = 0; are_fixed && i < node->arg_count; i++) {
        are_fixed = rt_value_is_fixed(rt_node_arg(c->rw.graph, node, i));
    }
    return (any || are_fixed) && !(node->op->flags & RT_OP_RANDOM);
}

static enum status begin(struct choice *c, struct rt_graph *graph, struct error *err)
{
    TRY(rt_rewrite_begin(&c->rw, graph, err));
    c->is_known = arena_array(&graph->arena, graph->value_count, sizeof(*c->is_known));
    for (int i = 0; i < 2; i++) {
        c->packed[i] = arena_array(&graph->arena, graph->value_count, sizeof(*c->packed[i]));
        graph->failed |= !c->packed[i];
    }
    graph->failed |= !c->is_known;
    TRY(rt_graph_check(graph, err));
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct rt_value *v = &graph->values[i];
        c->is_known[i] = v->is_constant;
        c->packed[0][i] = c->packed[1][i] = 0;
        c->most += v->is_constant ? GROWTH_MAX * (double)(v->bytes.len / sizeof(float)) : 0;
    }
    return ST_OK;
}

enum status rt_pass_winograd(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct choice c = {.most = FLOATS_MIN};
    if (graph->precision == PRECISION_EXACT) {
        return ST_OK;
    }
    TRY(begin(&c, graph, err));
    for (uint32_t i = 0; i < c.rw.node_count; i++) {
        const struct rt_node *node = rt_rewrite_node(&c.rw, i);
        bool known = computes_constants(&c, node);
        for (uint32_t o = 0; o < node->out_count; o++) {
            c.is_known[node->outs[o]] = known;
        }
        if (rt_op_is(node->op, RT_KNOWN_conv)) {
            TRY(visit_conv(&c, i, err));
        }
    }
    return rt_rewrite_end(&c.rw, err);
}
