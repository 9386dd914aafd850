/* SPDX-License-Identifier: MIT */
/*
 * Attention: softmax(scale * q k^T + mask) v for every head, without a matrix of queries by keys in
 * memory. A tile is a block of query rows that share their keys. It walks the keys in chunks and
 * keeps for each row the greatest score so far, the sum of exponentials relative to that score, and
 * the weighted sum of values. A greater score scales both sums down. Half-precision inputs are
 * converted to float on the way.
 *
 * q is [batch, queries, heads, depth]; k and v are [batch, rows, key heads, depth]. Each key head
 * serves heads / key heads neighbouring heads. Without a mask the first start + queries rows are
 * used, and with is_causal row i of the queries sees the rows up to start + i. With a mask all rows
 * are used, and the mask is added to the scores. A query that sees no row gives zeros.
 *
 * In "attention_int8" keys and values are rows of "quantize_cache" (runtime/ops/cache_int8.c). A
 * chunk of them becomes floats only where a matrix product packs it.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/attention.h"
#include "runtime/ops/attention_parts.h"
#include "runtime/ops/cache_int8.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

enum { ATT_Q, ATT_K, ATT_V, ATT_START, ATT_MASK, ATT_DROPOUT, ATT_CAUSAL, ATT_SCALE };

#define ROWS_MIN 48      /* of a tile, if there are so many */
#define ROWS_MAX 512     /* of a tile of a worker, */
#define FLOATS_MAX 65536 /* and numbers of them: these bound its scratch memory */
#define BAND 128         /* rows of a tile whose scores are computed at a time */
#define TILES 16         /* from here on tiles grow: their rows share the packing of keys, */
#define TILES_LONG 32    /* and from here on above BAND rows */
#define KEYS_MAX 128     /* of a chunk; a multiple of */
#define KEYS_SUMMED 64   /* numbers in one step of a sum, at any level */
#define ALIGN_FLOATS 16  /* 64 bytes */

#define FLOAT_TYPES (1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16)

/* State of one tile; the arrays are scratch. */
struct work {
    const struct rt_attention *k;
    enum dtype kv;             /* of keys and values; DT_I8: with scales */
    const char *keys, *values; /* of the head */
    const float *mask;
    int64_t first, count; /* rows of the tile; row r is query r / group of head r % group */
    float *q, *sums;      /* [count][depth] */
    float *scores;        /* [BAND][KEYS_MAX] */
    float *packed_keys, *packed_values, *rows; /* a chunk: packed, as floats */
    int64_t start, end;                        /* queries, and keys in use */
    float max[ROWS_MAX], total[ROWS_MAX];
};

static int64_t query_of(const struct work *w, int64_t row)
{
    return (w->first + row) / w->k->group;
}

/* Offset of row |row| in q and in the output, in elements from the group's first head. */
static int64_t place_of(const struct work *w, int64_t row)
{
    return query_of(w, row) * w->k->q_seq + (w->first + row) % w->k->group * w->k->q_head;
}

/* The row sees the keys before this one. */
static int64_t limit_of(const struct work *w, int64_t row)
{
    int64_t limit = w->start + query_of(w, row) + 1;
    return w->k->is_causal && limit < w->end ? limit : w->end;
}

/* ---- chunks of keys and values ------------------------------------------------------------- */

static const char *row_of(const struct work *w, const char *base, int64_t row)
{
    return base + row * w->k->kv_seq * (int64_t)dtype_bytes(w->kv);
}

/* Rows [first, first + n) of keys or values as floats, |out_stride| from one to the next. */
static const float *read_rows(const struct work *w, const char *base, int64_t first, int64_t n,
                              int64_t *out_stride)
{
    const struct rt_attention *k = w->k;
    int64_t width = (int64_t)dtype_bytes(w->kv);

    if (w->kv == DT_F32) {
        *out_stride = k->kv_seq;
        return (const float *)(const void *)row_of(w, base, first);
    }
    for (int64_t j = 0; j < n; j++) {
        float *to = w->rows + j * k->depth;
        const char *from = row_of(w, base, first + j);
        if (w->kv == DT_I8) {
            rt_cache_int8_read(to, from, k->depth);
        } else {
            rt_convert_load(w->kv, RT_CLASS_F32)(to, from, width, k->depth);
        }
    }
    *out_stride = k->depth;
    return w->rows;
}

/* Are keys not packed for matrix products? Which of the two it is decides the order of sums, so it
 * is a matter of one query or several, and not of how many: the parts of a prompt may be of any
 * length, from two queries on, and the work may be cut anywhere. */
static bool is_few(const struct work *w)
{
    return w->k->queries == 1 && w->k->group <= RT_ATTENTION_FEW;
}

/* The call for the heads of one query, for the rows from |first| on. */
static struct uk_attend_f32 few(const struct work *w, const char *base, int64_t first, int64_t n)
{
    int64_t stride = w->k->kv_seq;
    bool is_int8 = w->kv == DT_I8;
    const void *kv =
        is_int8 ? (const void *)row_of(w, base, first) : read_rows(w, base, first, n, &stride);
    return (struct uk_attend_f32){
        .q = w->q,
        .scores = w->scores,
        .sums = w->sums,
        .kv = kv,
        .scores_row = KEYS_MAX,
        .kv_row = is_int8 ? stride : stride * (int64_t)sizeof(float),
        .rows = (size_t)w->count,
        .n = (size_t)n,
        .depth = (size_t)w->k->depth,
    };
}

/* Packs a chunk of keys for the products with queries, and of values for those with weights. */
static void pack(const struct work *w, int64_t first, int64_t n)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t stride;
    struct uk_pack_f32 keys = {
        .src = read_rows(w, w->keys, first, n, &stride),
        .column = stride,
        .inner_stride = 1,
        .n = (uint32_t)n,
        .outer_count = 1,
        .inner_count = (uint32_t)w->k->depth,
        .packed = w->packed_keys,
    };
    uk->pack_f32(&keys, 0, uk_panels_f32(uk, keys.n));
    struct uk_pack_f32 values = {
        .src = read_rows(w, w->values, first, n, &stride),
        .column = 1,
        .inner_stride = stride,
        .n = (uint32_t)w->k->depth,
        .outer_count = 1,
        .inner_count = (uint32_t)n,
        .packed = w->packed_values,
    };
    uk->pack_f32(&values, 0, uk_panels_f32(uk, values.n));
}

/* Rows [begin, begin + count) of a tile, and the keys [first, first + n) that some of them see. The
 * chunk that is packed has |packed| of them. */
struct band {
    int64_t begin, count, first, n, packed;
};

/* scores[r][j] = q[r] . keys[first + j] */
static void score(const struct work *w, const struct band *band)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t depth = w->k->depth;

    if (is_few(w)) {
        struct uk_attend_f32 call = few(w, w->keys, band->first, band->n);
        (w->kv == DT_I8 ? uk->attend_scores_i8 : uk->attend_scores_f32)(&call);
        return;
    }
    uk->gemm_f32(&(struct uk_gemm_f32){
        .a = w->q + band->begin * depth,
        .a_row = depth,
        .segment_count = 1,
        .run = (uint32_t)depth,
        .b = w->packed_keys,
        .k = (size_t)depth,
        .c = w->scores,
        .c_row = KEYS_MAX,
        .lines = 1,
        .m = (uint32_t)band->count,
        .n = (uint32_t)band->n,
        .min = -INFINITY,
        .max = INFINITY,
    });
}

/* sums[r] += scores[r][j] * values[first + j] */
static void gather(const struct work *w, const struct band *band)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t depth = w->k->depth;
    float *sums = w->sums + band->begin * depth;

    if (is_few(w)) {
        struct uk_attend_f32 call = few(w, w->values, band->first, band->n);
        (w->kv == DT_I8 ? uk->attend_sums_i8 : uk->attend_sums_f32)(&call);
        return;
    }
    uk->gemm_f32(&(struct uk_gemm_f32){
        .a = w->scores,
        .a_row = KEYS_MAX,
        .segment_count = 1,
        .run = (uint32_t)band->n,
        .b = w->packed_values,
        .k = (size_t)band->packed,
        .residual = sums,
        .residual_row = depth,
        .c = sums,
        .c_row = depth,
        .lines = 1,
        .m = (uint32_t)band->count,
        .n = (uint32_t)depth,
        .min = -INFINITY,
        .max = INFINITY,
    });
}

/* ---- softmax as the chunks come ------------------------------------------------------------ */

/* Turns the scores of row |r|, which are in |row|, into exponentials relative to the greatest score
 * so far. Behind the |n| scores are others that count as keys that are not seen, up to a multiple
 * of KEYS_SUMMED: so sums have the same order whatever other rows see. */
static void soften(struct work *w, int64_t r, float *row, int64_t first, int64_t n)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    float before = w->max[r];
    int64_t seen = limit_of(w, r) - first, all = (n + KEYS_SUMMED - 1) / KEYS_SUMMED * KEYS_SUMMED;

    if (w->k->has_mask) {
        uk->binary_f32[UK_ADD](row, row, w->mask + query_of(w, r) * w->k->mask_row + first,
                               (size_t)n);
    }
    for (int64_t j = seen < 0 ? 0 : rt_min(seen, n); j < all; j++) {
        row[j] = -INFINITY;
    }
    float greatest = uk->max_f32(row, (size_t)all);
    w->max[r] = greatest > before || greatest != greatest ? greatest : before;
    if (w->max[r] == -INFINITY) {
        memset(row, 0, (size_t)all * sizeof(float)); /* no key seen yet */
        return;
    }
    if (w->max[r] != before) {
        float fade = expf(before - w->max[r]);
        w->total[r] *= fade;
        uk->scalar_f32[UK_MUL](w->sums + r * w->k->depth, w->sums + r * w->k->depth, fade,
                               (size_t)w->k->depth);
    }
    uk->scalar_f32[UK_SUB](row, row, w->max[r], (size_t)all);
    uk->unary_f32[UK_EXP](row, row, (size_t)all);
    w->total[r] += uk->sum_f32(row, (size_t)all);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static int64_t aligned(int64_t floats)
{
    return (floats + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

/* Bytes of the larger of keys and values, packed. */
static int64_t packed_floats(int64_t depth)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    size_t keys = uk_packed_f32_floats(uk, (size_t)depth, KEYS_MAX);
    size_t values = uk_packed_f32_floats(uk, KEYS_MAX, (uint32_t)depth);
    return aligned((int64_t)(keys > values ? keys : values));
}

static size_t scratch_bytes(int64_t block, int64_t depth)
{
    int64_t floats = 2 * packed_floats(depth) + aligned(KEYS_MAX * depth) +
                     2 * aligned(block * depth) + rt_min(block, BAND) * KEYS_MAX;
    return (size_t)floats * sizeof(float);
}

static void lay_scratch(struct work *w, float *scratch)
{
    int64_t depth = w->k->depth, block = w->k->block;

    w->packed_keys = scratch;
    w->packed_values = w->packed_keys + packed_floats(depth);
    w->rows = w->packed_values + packed_floats(depth);
    w->q = w->rows + aligned(KEYS_MAX * depth);
    w->sums = w->q + aligned(block * depth);
    w->scores = w->sums + aligned(block * depth);
}

static void read_queries(struct work *w, const char *q)
{
    int64_t depth = w->k->depth, width = (int64_t)dtype_bytes(w->k->in);

    for (int64_t r = 0; r < w->count; r++) {
        rt_convert_load(w->k->in, RT_CLASS_F32)(w->q + r * depth, q + place_of(w, r) * width, width,
                                                depth);
        w->max[r] = -INFINITY;
        w->total[r] = 0;
    }
    size_t n = (size_t)(w->count * depth);
    hal_cpu_uk()->scalar_f32[UK_MUL](w->q, w->q, w->k->scale, n);
    memset(w->sums, 0, n * sizeof(float));
}

static void write_rows(const struct work *w, char *out)
{
    int64_t depth = w->k->depth, width = (int64_t)dtype_bytes(w->k->out);

    for (int64_t r = 0; r < w->count; r++) {
        float *sum = w->sums + r * depth, total = w->total[r];
        hal_cpu_uk()->scalar_f32[UK_DIV](sum, sum, total == 0 ? 1 : total, (size_t)depth);
        rt_convert_store(RT_CLASS_F32, w->k->out)(out + place_of(w, r) * width, width, sum, depth);
    }
}

/* Keys [first, first + n) for all rows of the tile. A band whose last row sees none of them has
 * nothing to do, and none computes more of them than that row sees. */
static void attend_chunk(struct work *w, int64_t first, int64_t n)
{
    if (!is_few(w)) {
        pack(w, first, n);
    }
    for (int64_t begin = 0; begin < w->count; begin += BAND) {
        int64_t count = rt_min(BAND, w->count - begin);
        int64_t seen = rt_min(n, limit_of(w, begin + count - 1) - first);
        struct band band = {begin, count, first, seen, n};
        if (seen <= 0) {
            continue;
        }
        score(w, &band);
        for (int64_t r = 0; r < count; r++) {
            soften(w, begin + r, w->scores + r * KEYS_MAX, first, seen);
        }
        gather(w, &band);
    }
}

/* Bindings: output, q, k, v, mask, start. Grid: blocks of rows, key heads of all the batch. */
static void attend(const struct hal_args *args, struct hal_tile tile, enum dtype kv_dtype)
{
    const struct rt_attention *k = args->constants;
    int64_t batch = tile.y / k->kv_heads, head = tile.y % k->kv_heads;
    int64_t in = (int64_t)dtype_bytes(k->in), all = k->queries * k->group;
    int64_t q = batch * k->q_batch + head * k->group * k->q_head;
    int64_t kv = (batch * k->kv_batch + head * k->kv_head) * (int64_t)dtype_bytes(kv_dtype);
    const int64_t *place = args->bindings[5];
    int64_t start = place ? *place : k->start, end = k->has_mask ? k->rows : start + k->queries;
    struct work w = {
        .k = k,
        .kv = kv_dtype,
        .keys = end > 0 ? (const char *)args->bindings[2] + kv : NULL,
        .values = end > 0 ? (const char *)args->bindings[3] + kv : NULL,
        .start = start,
        .end = end,
        .mask = args->bindings[4],
        .first = tile.x * k->block,
    };
    w.count = all - w.first < k->block ? all - w.first : k->block;
    lay_scratch(&w, args->scratch);
    read_queries(&w, (const char *)args->bindings[1] + q * in);
    int64_t limit = limit_of(&w, w.count - 1), query = query_of(&w, 0);
    limit = rt_attention_seen(w.mask ? w.mask + query * k->mask_row : NULL, k->mask_row,
                              query_of(&w, w.count - 1) - query + 1, limit);
    for (int64_t first = 0; first < limit; first += KEYS_MAX) {
        int64_t n = limit - first < KEYS_MAX ? limit - first : KEYS_MAX;
        attend_chunk(&w, first, n);
    }
    write_rows(&w, (char *)args->bindings[0] + q * (int64_t)dtype_bytes(k->out));
}

static void attention_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_attention *k = args->constants;
    attend(args, tile, k->in);
}

static void attention_int8_tile(const struct hal_args *args, struct hal_tile tile)
{
    attend(args, tile, DT_I8);
}

static const struct hal_kernel attention_kernel = {
    .name = "attention", .cpu = attention_tile, .spirv = HAL_SPIRV_SUBGROUPS(attention, 128)};
static const struct hal_kernel deep_kernel = {.name = "attention", .cpu = attention_tile};
static const struct hal_kernel int8_kernel = {.name = "attention_int8", .cpu = attention_int8_tile};

/* ---- the operator -------------------------------------------------------------------------- */

/* The order of the dims; in the other order heads come before rows. */
struct axes {
    uint8_t seq, head;
    bool is_int8;
};

static enum status need_alike(struct rt_shape_call *call, uint8_t dim, uint32_t a, uint32_t b)
{
    return rt_dim_require_equal(&call->graph->dims, rt_shape_arg(call, a)->dims[dim],
                                rt_shape_arg(call, b)->dims[dim],
                                "size of queries, keys and values (must be equal)", call->err);
}

static enum status need_mask(struct rt_shape_call *call, const struct axes *axes)
{
    const struct rt_value *mask = rt_shape_arg(call, ATT_MASK);
    struct rt_dims *dims = &call->graph->dims;

    if (mask->kind == RT_NONE) {
        return ST_OK;
    }
    TRY(rt_shape_need_dtype(call, ATT_MASK, 1u << DT_F32));
    if (mask->rank != 2 || rt_shape_arg(call, ATT_CAUSAL)->b) {
        return rt_shape_refuse(call, "the mask has rank %u%s", mask->rank,
                               rt_shape_arg(call, ATT_CAUSAL)->b ? " and is_causal is set"
                                                                 : ", expected 2");
    }
    if (!rt_dim_is(mask->dims[0], 1)) {
        TRY(rt_dim_require_equal(dims, mask->dims[0], rt_shape_arg(call, ATT_Q)->dims[axes->seq],
                                 "rows of the mask (one for each query)", call->err));
    }
    return rt_dim_require_equal(dims, mask->dims[1], rt_shape_arg(call, ATT_K)->dims[axes->seq],
                                "columns of the mask (one for each key)", call->err);
}

static enum status need_options(struct rt_shape_call *call)
{
    const struct rt_value *dropout = rt_shape_arg(call, ATT_DROPOUT),
                          *scale = rt_shape_arg(call, ATT_SCALE);

    if (!rt_value_is_fixed(dropout) || rt_value_number(dropout) != 0) {
        return rt_shape_unsupported(call, "dropout");
    }
    if (scale->kind != RT_NONE && !rt_value_is_fixed(scale)) {
        return rt_shape_unsupported(call, "the scale must not depend on the inputs' dims");
    }
    return ST_OK;
}

static enum status need_rank(struct rt_shape_call *call, uint32_t arg)
{
    uint8_t rank = rt_shape_arg(call, arg)->rank;
    return rank == 4 ? ST_OK
                     : rt_shape_refuse(call, "argument %u has rank %u, expected 4", arg, rank);
}

/* Keys or values for the queries. */
static enum status need_keys(struct rt_shape_call *call, uint32_t arg, bool is_int8)
{
    const struct rt_value *q = rt_shape_arg(call, ATT_Q);
    struct rt_dims *dims = &call->graph->dims;

    TRY(rt_shape_need_dtype(call, arg, 1u << (is_int8 ? DT_I8 : q->dtype)));
    TRY(need_rank(call, arg));
    TRY(need_alike(call, 0, ATT_Q, arg));
    if (!is_int8) {
        return need_alike(call, 3, ATT_Q, arg);
    }
    struct rt_dim bytes = rt_dim_add(dims, q->dims[3], rt_dim_of(RT_CACHE_INT8_SCALE));
    return rt_dim_require_equal(dims, rt_shape_arg(call, arg)->dims[3], bytes,
                                "bytes of keys and values (one for each number, and a scale)",
                                call->err);
}

static enum status attention_shape(struct rt_shape_call *call)
{
    const struct axes *axes = call->node->op->detail;
    const struct rt_value *q = rt_shape_arg(call, ATT_Q), *k = rt_shape_arg(call, ATT_K);
    struct rt_dims *dims = &call->graph->dims;

    TRY(rt_shape_need_out_dtype(call, 0, FLOAT_TYPES));
    TRY(need_rank(call, ATT_Q));
    TRY(need_keys(call, ATT_K, axes->is_int8));
    TRY(need_keys(call, ATT_V, axes->is_int8));
    TRY(need_alike(call, 1, ATT_K, ATT_V));
    TRY(need_alike(call, 2, ATT_K, ATT_V));
    if (rt_dim_is(k->dims[axes->head], 0)) {
        return rt_shape_refuse(call, "there are no heads");
    }
    TRY(rt_dim_require_equal(dims, rt_dim_mod(dims, q->dims[axes->head], k->dims[axes->head]),
                             rt_dim_of(0), "query heads modulo key heads", call->err));
    TRY(need_mask(call, axes));
    TRY(need_options(call));
    return rt_shape_set_out_like(call, 0, ATT_Q);
}

static enum status attention_place(struct rt_shape_call *call, uint32_t arg,
                                   struct rt_dim *out_place)
{
    const struct axes *axes = call->node->op->detail;
    struct rt_dim queries = rt_shape_arg(call, ATT_Q)->dims[axes->seq];

    *out_place = rt_dim_of(0); /* the mask decides alone which keys are seen */
    if (!rt_shape_arg_is_none(call, ATT_MASK)) {
        return ST_OK;
    }
    *out_place = rt_shape_arg(call, arg)->i;
    TRY(rt_shape_need_at_least(call, *out_place, rt_dim_of(0), "place of the first query"));
    return rt_shape_need_at_least(call, rt_shape_arg(call, ATT_K)->dims[axes->seq],
                                  rt_dim_add(&call->graph->dims, *out_place, queries),
                                  "keys for all queries");
}

/* Where the queries begin, if their last row still fits. */
static enum status check_start(const struct rt_attention *k, struct rt_place start,
                               struct error *err)
{
    if (k->has_mask || start.is_read) {
        return ST_OK;
    }
    if (start.known < 0 || start.known > k->rows || k->queries > k->rows - start.known) {
        return error_set(
            err, ST_INVALID,
            "attention: %lld queries from position %lld on, but there are only %lld keys",
            (long long)k->queries, (long long)start.known, (long long)k->rows);
    }
    return ST_OK;
}

static struct rt_attention describe(struct rt_emit *emit)
{
    const struct axes *axes = rt_emit_op(emit)->detail;
    const struct rt_tensor *q = rt_emit_arg(emit, ATT_Q), *kv = rt_emit_arg(emit, ATT_K);
    const struct rt_tensor *mask = rt_emit_arg(emit, ATT_MASK);
    bool has_scale = rt_emit_value(emit, ATT_SCALE)->kind != RT_NONE;

    return (struct rt_attention){
        .queries = q->dims[axes->seq],
        .rows = kv->dims[axes->seq],
        .kv_heads = kv->dims[axes->head],
        .group = kv->dims[axes->head] ? q->dims[axes->head] / kv->dims[axes->head] : 0,
        .depth = q->dims[3],
        .q_seq = q->strides[axes->seq],
        .q_head = q->strides[axes->head],
        .q_batch = q->strides[0],
        .kv_seq = kv->strides[axes->seq],
        .kv_head = kv->strides[axes->head],
        .kv_batch = kv->strides[0],
        .mask_row = mask && mask->dims[0] > 1 ? mask->dims[1] : 0,
        .scale = has_scale ? (float)rt_emit_number(emit, ATT_SCALE)
                           : (float)(1 / sqrt((double)q->dims[3])),
        .is_causal = rt_emit_value(emit, ATT_CAUSAL)->b,
        .has_mask = mask != NULL,
        .in = q->dtype,
        .out = rt_emit_out(emit, 0)->dtype,
    };
}

/* Rows of a tile. */
static int64_t choose_block(const struct rt_machine *machine, const struct rt_attention *k,
                            int64_t heads, int64_t used)
{
    int64_t all = k->queries * k->group, most = ROWS_MIN;
    if (machine->lanes == 1) {
        int64_t most_long = rt_min(ROWS_MAX, FLOATS_MAX / rt_max(k->depth, 1));
        most = rt_min(BAND, rt_max(ROWS_MIN, heads * all / TILES));
        most = rt_max(most, rt_min(most_long, heads * all / TILES_LONG));
        most = (all - 1) / ((all - 1) / most + 1) + 1;
    }
    return rt_min(all, rt_cut_block(machine, heads * all, used * k->depth, most));
}

static enum status attention_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *q = rt_emit_arg(emit, ATT_Q), *kv = rt_emit_arg(emit, ATT_K);
    const struct rt_tensor *mask = rt_emit_arg(emit, ATT_MASK);
    struct rt_place start = rt_emit_place(emit, ATT_START);
    struct rt_attention k = describe(emit);
    int64_t all = k.queries * k.group, heads = q->dims[0] * k.kv_heads;

    TRY(check_start(&k, start, err));
    k.start = start.known;
    if (q->numel == 0) {
        return ST_OK;
    }
    if (heads > UINT32_MAX || k.depth > RT_ATTENTION_DEPTH_MAX) {
        return error_set(err, ST_TOO_LARGE, "attention: %lld heads of %lld elements are too large",
                         (long long)heads, (long long)k.depth);
    }
    /* When only the run knows the number of rows, assume half of them. */
    int64_t used = k.has_mask ? k.rows : start.is_read ? k.rows / 2 + 1 : k.start + k.queries;
    bool is_int8 = kv->dtype == DT_I8;
    if (rt_attention_has_parts(emit, &k)) {
        struct rt_attention_tensors tensors = {
            .out = rt_emit_out(emit, 0)->binding,
            .q = q->binding,
            .k = kv->binding,
            .v = rt_emit_arg(emit, ATT_V)->binding,
            .mask = mask ? mask->binding : (struct hal_binding){0},
            .start = rt_emit_word(emit, start),
            .kv = kv->dtype,
        };
        return rt_attention_emit_parts(emit, &k, q->dims[0], used, &tensors, err);
    }
    bool is_deep = k.depth > RT_ATTENTION_SHADER_DEPTH_MAX;
    const struct hal_kernel *kernel = is_int8   ? &int8_kernel
                                      : is_deep ? &deep_kernel
                                                : &attention_kernel;
    k.block = choose_block(rt_emit_machine(emit, kernel), &k, heads, used);
    struct hal_binding bindings[] = {
        rt_emit_out(emit, 0)->binding,
        q->binding,
        kv->binding,
        rt_emit_arg(emit, ATT_V)->binding,
        mask ? mask->binding : (struct hal_binding){0},
        rt_emit_word(emit, start),
    };
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {(uint32_t)((all + k.block - 1) / k.block), (uint32_t)heads, 1},
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 6,
        .scratch_bytes = scratch_bytes(k.block, k.depth),
        .cost = (uint64_t)(heads * all) * (uint64_t)(used * k.depth / 16 + 1),
        .macs = 2 * (double)heads * (double)all * (double)used * (double)k.depth,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

static const struct axes by_position = {1, 2, false}, by_head = {2, 1, false};
static const struct axes int8_by_position = {1, 2, true};

#define ARGS "TTTIT?FBF?"

const struct rt_op rt_ops_attention[] = {
    {"attention", "llama::custom_sdpa.out", ARGS ">T", attention_shape, attention_emit, 0,
     RT_LAYOUT_ROW_MAJOR, &by_position, rt_batch_attention, .dtypes = FLOAT_TYPES,
     .runs = &attention_kernel, .read = 1 << ATT_START, .place = attention_place},
    {"attention_heads", NULL, ARGS ">T", attention_shape, attention_emit, 0, RT_LAYOUT_ROW_MAJOR,
     &by_head, rt_batch_attention, .dtypes = FLOAT_TYPES, .runs = &attention_kernel,
     .read = 1 << ATT_START, .place = attention_place},
    {"attention_int8", NULL, ARGS ">T", attention_shape, attention_emit, 0, RT_LAYOUT_ROW_MAJOR,
     &int8_by_position, rt_batch_attention, .dtypes = FLOAT_TYPES, .runs = &int8_kernel,
     .read = 1 << ATT_START, .place = attention_place},
    {0},
};
