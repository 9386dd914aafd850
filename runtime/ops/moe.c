/* SPDX-License-Identifier: MIT */
/*
 * Mixtures of experts: a feed-forward layer that exists once for each expert, of which every row
 * (token) takes a few. "moe_ffn" is the file's form: the lower pass replaces it by a product with
 * the gate's weights, "moe_route", and two of "moe_linear" (moe_linear.c) with "quantize_dynamic"
 * before each. "moe_unpack" is folded when the model is loaded.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/batch_call.h"
#include "runtime/ops/moe.h"
#include "runtime/ops/op.h"
#include "runtime/ops/torchao.h"

/* ---- the file's form ----------------------------------------------------------------------- */

static enum status need_int(struct rt_shape_call *call, uint32_t index, const char *what,
                            int64_t min, int64_t max, int64_t *out_value)
{
    TRY(rt_shape_need_const(call, index, out_value));
    return *out_value >= min && *out_value <= max
               ? ST_OK
               : rt_shape_refuse(call, "%s is %lld, expected %lld to %lld", what,
                                 (long long)*out_value, (long long)min, (long long)max);
}

static enum status need_sizes(struct rt_shape_call *call, struct rt_moe *out)
{
    int64_t chosen, bits;
    TRY(need_int(call, RT_MOE_EXPERTS, "the number of experts", 1, RT_MOE_MAX, &out->experts));
    TRY(need_int(call, RT_MOE_CHOSEN, "the number of experts of a row", 1, out->experts, &chosen));
    TRY(need_int(call, RT_MOE_HIDDEN, "the hidden size", 1, RT_MOE_MAX, &out->hidden));
    TRY(need_int(call, RT_MOE_DIM, "the size of a row", 1, RT_MOE_MAX, &out->dim));
    TRY(need_int(call, RT_MOE_GROUP, "the size of a group", 1, RT_MOE_MAX, &out->group));
    TRY(need_int(call, RT_MOE_BITS, "the number of bits", 1, 8, &bits));
    if (bits != 4 && bits != 8) {
        return rt_shape_refuse(call, "weights have %lld bits, expected 4 or 8", (long long)bits);
    }
    if (out->group % RT_TORCHAO_COLUMNS != 0 || out->dim % out->group != 0 ||
        out->hidden % out->group != 0) {
        return rt_shape_refuse(call,
                               "rows of %lld and %lld cannot have groups of %lld: expected a "
                               "multiple of %d that divides both",
                               (long long)out->dim, (long long)out->hidden, (long long)out->group,
                               RT_TORCHAO_COLUMNS);
    }
    out->is_4bit = bits == 4;
    return ST_OK;
}

static enum status need_score(struct rt_shape_call *call, bool has_bias)
{
    struct span score = rt_shape_arg(call, RT_MOE_SCORE)->bytes;
    if (!rt_value_is_fixed(rt_shape_arg(call, RT_MOE_SCALE))) {
        return rt_shape_unsupported(call, "the scale must not depend on the inputs' dims");
    }
    if (span_is(score, "sigmoid")) {
        return ST_OK;
    }
    return !span_is(score, "softmax")
               ? rt_shape_refuse(call, "the score is '%.*s', expected 'sigmoid' or 'softmax'",
                                 (int)rt_min((int64_t)score.len, 32), (const char *)score.ptr)
           : has_bias ? rt_shape_refuse(call, "softmax takes no bias of experts")
                      : ST_OK;
}

/* Weights of all experts, [experts, bytes]. */
static enum status need_packed(struct rt_shape_call *call, uint32_t index, int64_t experts,
                               const struct rt_torchao *m)
{
    const struct rt_value *v = rt_shape_arg(call, index);
    TRY(rt_shape_need_dtype(call, index, 1u << DT_U8));
    if (!v->is_constant) {
        return rt_shape_unsupported(call, "weights of experts must be constants");
    }
    if (v->rank != 2 || !rt_dim_is(v->dims[0], experts) || v->dims[1].value < rt_torchao_bytes(m)) {
        return rt_shape_refuse(call,
                               "argument %u has %zu bytes in rank %u, expected %lld experts of at "
                               "least %lld bytes",
                               index, v->bytes.len, v->rank, (long long)experts,
                               (long long)rt_torchao_bytes(m));
    }
    size_t bytes = (size_t)v->dims[1].value;
    for (int64_t e = 0; e < experts; e++) {
        struct error why;
        struct span packed = span_of(v->bytes.ptr + (size_t)e * bytes, bytes);
        if (rt_torchao_check(packed, m, &why) != ST_OK) {
            return error_set(call->err, why.code, "argument %u, expert %lld: %s", index,
                             (long long)e, why.text);
        }
    }
    return ST_OK;
}

static enum status moe_ffn_shape(struct rt_shape_call *call)
{
    struct rt_moe moe;
    const struct rt_value *bias = rt_shape_arg(call, RT_MOE_BIAS);
    bool has_bias = !rt_dim_is(rt_value_numel(call->graph, bias), 0);

    TRY(need_sizes(call, &moe));
    TRY(need_score(call, has_bias));
    const struct rt_dim dim = rt_dim_of(moe.dim), experts = rt_dim_of(moe.experts);
    const struct rt_value *x = rt_shape_arg(call, RT_MOE_X);
    TRY(rt_shape_need_dims(call, RT_MOE_X, 2, (struct rt_dim[]){x->rank ? x->dims[0] : dim, dim}));
    TRY(rt_shape_need_dims(call, RT_MOE_GATE, 2, (struct rt_dim[]){experts, dim}));
    if (has_bias) {
        TRY(rt_shape_need_dims(call, RT_MOE_BIAS, 1, &experts));
    }
    const struct rt_torchao up = rt_moe_up(&moe), down = rt_moe_down(&moe);
    TRY(need_packed(call, RT_MOE_UP, moe.experts, &up));
    TRY(need_packed(call, RT_MOE_DOWN, moe.experts, &down));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_F32));
    return rt_shape_set_out_like(call, 0, RT_MOE_X);
}

/* Argument 0 carries rows, and no other one does. */
static enum status batch_rows(struct rt_batch_call *call)
{
    for (uint32_t i = 1; i < call->node->arg_count; i++) {
        if (rt_batch_carries(call, i)) {
            return rt_batch_refuse(call, "its weights vary by row");
        }
    }
    return rt_batch_each(call);
}

/* ---- weights ------------------------------------------------------------------------------- */

/* packed [experts, bytes], rows, columns, group, 4 bits?, are the lower half of the rows factors of
 * the upper half? -> [experts * panels * width, columns] i8, [.., groups] f32. The rows that are
 * multiplied later take turns then: a panel of the upper half, its factors. */
enum { UNPACK_W, UNPACK_ROWS, UNPACK_COLUMNS, UNPACK_GROUP, UNPACK_IS_4BIT, UNPACK_IS_GATED };

struct unpack {
    struct rt_torchao matrix;
    int64_t source;      /* bytes of an expert */
    int64_t width, rows; /* of a panel; of an expert, padded to whole panels */
    bool is_gated;
};

static enum status unpack_shape(struct rt_shape_call *call)
{
    int64_t rows = rt_shape_arg(call, UNPACK_ROWS)->i.value;
    int64_t columns = rt_shape_arg(call, UNPACK_COLUMNS)->i.value;
    int64_t groups = columns / rt_shape_arg(call, UNPACK_GROUP)->i.value;
    int64_t panels = rt_moe_panels(rows, rt_shape_arg(call, UNPACK_IS_GATED)->b);
    struct rt_dim all =
        rt_dim_of(rt_shape_arg(call, UNPACK_W)->dims[0].value * panels * hal_cpu_uk()->u8_nr);
    TRY(rt_shape_set_out(call, 0, 2, (struct rt_dim[]){all, rt_dim_of(columns)}));
    return rt_shape_set_out(call, 1, 2, (struct rt_dim[]){all, rt_dim_of(groups)});
}

/* Where row |row| of an expert's matrix goes; -1: it is none. */
static int64_t place_of(const struct unpack *u, int64_t row)
{
    int64_t half = u->matrix.rows / 2;
    if (row >= u->matrix.rows) {
        return -1;
    }
    if (!u->is_gated) {
        return row;
    }
    bool is_factor = row >= half;
    int64_t r = is_factor ? row - half : row;
    return (2 * (r / u->width) + is_factor) * u->width + r % u->width;
}

/* Bindings: numbers, scales, packed. Grid: experts. */
static void unpack_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct unpack *u = args->constants;
    int64_t columns = u->matrix.columns, groups = columns / u->matrix.group;
    int8_t *numbers = (int8_t *)args->bindings[0] + tile.x * u->rows * columns;
    float *scales = (float *)args->bindings[1] + tile.x * u->rows * groups;
    const uint8_t *packed = (const uint8_t *)args->bindings[2] + tile.x * u->source;

    memset(numbers, 0, (size_t)(u->rows * columns));
    memset(scales, 0, (size_t)(u->rows * groups) * sizeof(*scales));
    for (int64_t row = 0; row < u->matrix.rows; row += RT_TORCHAO_ROWS) {
        int64_t places[RT_TORCHAO_ROWS];
        for (int64_t i = 0; i < RT_TORCHAO_ROWS; i++) {
            places[i] = place_of(u, row + i);
        }
        rt_torchao_unpack(&u->matrix, packed + RT_TORCHAO_HEADER_BYTES, row / RT_TORCHAO_ROWS,
                          places, numbers, scales);
    }
}

static const struct hal_kernel unpack_kernel = {.name = "moe_unpack", .cpu = unpack_tile};

static enum status unpack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, UNPACK_W), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *scales = rt_emit_out(emit, 1);
    struct unpack u = {
        .matrix = {.rows = rt_emit_int(emit, UNPACK_ROWS),
                   .columns = rt_emit_int(emit, UNPACK_COLUMNS),
                   .group = rt_emit_int(emit, UNPACK_GROUP),
                   .is_4bit = rt_emit_value(emit, UNPACK_IS_4BIT)->b},
        .source = w->dims[1],
        .width = hal_cpu_uk()->u8_nr,
        .rows = out->dims[0] / w->dims[0],
        .is_gated = rt_emit_value(emit, UNPACK_IS_GATED)->b,
    };
    must(scales);
    struct hal_binding bindings[] = {out->binding, scales->binding, w->binding};
    struct hal_dispatch dispatch = {
        .kernel = &unpack_kernel,
        .grid = {(uint32_t)w->dims[0], 1, 1},
        .constants = &u,
        .constants_bytes = sizeof(u),
        .bindings = bindings,
        .binding_count = 3,
        .cost = (uint64_t)out->numel,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- routes -------------------------------------------------------------------------------- */

/* scores [rows, experts], bias [experts]?, experts of a row, sigmoid?, scale -> the experts of each
 * row, best first, i32; and their factors. |bias| only decides which experts are best. */
enum { ROUTE_SCORES, ROUTE_BIAS, ROUTE_CHOSEN, ROUTE_IS_SIGMOID, ROUTE_SCALE };

struct route {
    int64_t rows, experts, chosen, tile; /* rows of a tile */
    float scale;
    bool is_sigmoid;
};

static enum status route_shape(struct rt_shape_call *call)
{
    struct rt_dim dims[2] = {rt_shape_arg(call, ROUTE_SCORES)->dims[0],
                             rt_shape_arg(call, ROUTE_CHOSEN)->i};
    TRY(rt_shape_set_out(call, 0, 2, dims));
    return rt_shape_set_out(call, 1, 2, dims);
}

/* The best of the experts that are not taken: of equal ones, and of those that are no numbers, the
 * first. */
static int32_t best_of(const float *scores, const bool *is_taken, int64_t experts)
{
    int64_t best = -1, first = -1;
    for (int64_t e = experts; e-- > 0;) {
        if (is_taken[e]) {
            continue;
        }
        first = e;
        if (scores[e] >= (best < 0 ? -INFINITY : scores[best])) {
            best = e;
        }
    }
    return (int32_t)(best < 0 ? first : best);
}

/* Turns the scores of a row's experts into their factors. */
static void share(const struct route *r, float *factors)
{
    float sum = 0, most = factors[0];
    for (int64_t k = 0; k < r->chosen; k++) {
        most = factors[k] > most ? factors[k] : most;
    }
    for (int64_t k = 0; k < r->chosen; k++) {
        factors[k] = r->is_sigmoid ? factors[k] : expf(factors[k] - most);
        sum += factors[k];
    }
    float scale = (r->is_sigmoid ? r->scale : 1) / (sum < FLT_MIN ? FLT_MIN : sum);
    for (int64_t k = 0; k < r->chosen; k++) {
        factors[k] *= scale;
    }
}

/* Bindings: chosen, factors, scores, bias. Scratch: scores, the same with the bias, which are
 * taken. */
static void route_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct route *r = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t first = tile.x * r->tile, end = rt_min(r->rows, first + r->tile);
    size_t experts = (size_t)r->experts;
    float *scores = args->scratch, *biased = scores + experts;
    bool *is_taken = (bool *)(biased + experts);

    for (int64_t row = first; row < end; row++) {
        const float *from = (const float *)args->bindings[2] + row * r->experts;
        int32_t *chosen = (int32_t *)args->bindings[0] + row * r->chosen;
        float *factors = (float *)args->bindings[1] + row * r->chosen;
        memcpy(scores, from, experts * sizeof(*scores));
        if (r->is_sigmoid) {
            uk->unary_f32[UK_SIGMOID](scores, from, experts);
        }
        memcpy(biased, scores, experts * sizeof(*scores));
        if (args->bindings[3]) {
            uk->binary_f32[UK_ADD](biased, scores, args->bindings[3], experts);
        }
        memset(is_taken, 0, experts * sizeof(*is_taken));
        for (int64_t k = 0; k < r->chosen; k++) {
            chosen[k] = best_of(biased, is_taken, r->experts);
            is_taken[chosen[k]] = true;
            factors[k] = scores[chosen[k]];
        }
        share(r, factors);
    }
}

static const struct hal_kernel route_kernel = {.name = "moe_route", .cpu = route_tile};

static enum status route_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *scores = rt_emit_arg(emit, ROUTE_SCORES),
                           *chosen = rt_emit_out(emit, 0);
    const struct rt_tensor *factors = rt_emit_out(emit, 1), *bias = rt_emit_arg(emit, ROUTE_BIAS);
    struct route r = {
        .rows = scores->dims[0],
        .experts = scores->dims[1],
        .chosen = chosen->dims[1],
        .scale = (float)rt_emit_number(emit, ROUTE_SCALE),
        .is_sigmoid = rt_emit_value(emit, ROUTE_IS_SIGMOID)->b,
    };
    must(factors);
    struct hal_binding bindings[4] = {chosen->binding, factors->binding, scores->binding};
    bindings[3] = bias ? bias->binding : bindings[3];
    r.tile = rt_cut_things(rt_emit_machine(emit, &route_kernel), RT_WORK_ELEMENTS, r.rows,
                           r.experts * (r.chosen + 1), 1);
    struct hal_dispatch dispatch = {
        .kernel = &route_kernel,
        .constants = &r,
        .constants_bytes = sizeof(r),
        .bindings = bindings,
        .binding_count = 4,
        .scratch_bytes = (size_t)r.experts * (2 * sizeof(float) + sizeof(bool)),
        .cost = (uint64_t)(r.rows * r.experts * (r.chosen + 1)),
    };
    return rt_emit_tiles(emit, r.rows, r.tile, &dispatch, err);
}

/* ---- rows ---------------------------------------------------------------------------------- */

const struct rt_op rt_ops_moe[] = {
    {"moe_ffn", "llama::quantized_moe_ffn.out", "TTTTTIIIIIIZF>T", moe_ffn_shape, NULL, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, batch_rows, .dtypes = 1u << DT_F32, .becomes = "moe_linear"},
    {"moe_unpack", NULL, "TIIIBB>TT", unpack_shape, unpack_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = 1u << DT_U8, .runs = &unpack_kernel},
    {"moe_route", NULL, "TT?IBF>TT", route_shape, route_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL,
     batch_rows, .dtypes = 1u << DT_F32, .runs = &route_kernel},
    {0},
};
