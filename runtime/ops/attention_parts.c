/* SPDX-License-Identifier: MIT */
/*
 * Attention of one query over a long cache. A tile takes a part of the cache, PART rows, with
 * the heads of all of it: rows of a cache have all heads side by side, so the tile reads memory in
 * order, and each row once for all heads that share it. It leaves the greatest score of each head,
 * the sum of exponentials relative to it and the weighted sum of values; a second dispatch joins
 * the parts in their order. The parts depend on the sizes of the tensors alone, so results are the
 * same for any number of workers. Parts behind the last row that a query sees are neither read nor
 * written.
 */
#include "config.h"

#include <math.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/attention_parts.h"

#define PART 128             /* rows of a part */
#define ROWS_MIN 1024        /* of a cache that is worth cutting */
#define CHUNK_BYTES 16384    /* of rows read side by side: half a first-level cache */
#define CHUNK_UNIT 4         /* rows that kernels take together */
#define ALL_ROWS_MAX 2048    /* heads of the query in a tile: bounds its scratch memory */
#define ALL_FLOATS_MAX 65536 /* numbers of these heads: likewise */
#define LINE 64              /* bytes that the memory gives at once */
#define JOIN_ROWS 8          /* of a tile that joins */

struct parts {
    struct rt_attention a;
    int64_t batch;
    int64_t count, stride; /* parts, and floats of a head in a part */
};

enum { PART_MAX, PART_TOTAL, PART_SUMS };

/* State of a tile; the arrays are scratch, with the query heads of one key head after the other. */
struct work {
    const struct parts *p;
    enum dtype kv;             /* of keys and values; DT_I8: with scales */
    const char *keys, *values; /* of the part */
    const float *mask;         /* from the part's first key on; NULL: none */
    int64_t start, first, n;   /* of the query, and of the part's keys */
    int64_t left;              /* keys from there on */
    float *q, *sums, *scores, *rows;
};

static int64_t aligned(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

/* Rows of q and of the output: the heads of the query. */
static int64_t rows_of(const struct parts *p)
{
    return p->a.kv_heads * p->a.group;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* Rows of a chunk. Neighbouring rows of one head that follow each other in memory need none. */
static int64_t chunk_of(const struct parts *p, enum dtype kv)
{
    if (p->a.kv_seq <= p->a.depth) {
        return PART;
    }
    int64_t rows = CHUNK_BYTES / (p->a.kv_seq * (int64_t)dtype_bytes(kv));
    return rt_min(PART, rt_max(rows / CHUNK_UNIT, 1) * CHUNK_UNIT);
}

/* Do several heads fill the rows, so that all lines of rows are wanted? */
static bool is_dense(const struct rt_attention *a)
{
    return a->kv_heads > 1 && a->kv_head >= a->depth && a->kv_heads * a->kv_head == a->kv_seq;
}

/* Bytes of |n| rows up to the numbers of the last head: what lies behind may be no memory. */
static int64_t bytes_of(const struct work *w, int64_t n)
{
    const struct rt_attention *a = &w->p->a;
    return (n * a->kv_seq - (a->kv_head - a->depth)) * (int64_t)dtype_bytes(w->kv);
}

/* Reads a word of each line of a chunk of |n| rows in the order of memory. The processor reads
 * ahead of that; it does not where each head takes its own lines of each row. */
static void touch(const struct work *w, const char *base, int64_t first, int64_t n)
{
    const struct rt_attention *a = &w->p->a;
    int64_t bytes = is_dense(a) ? bytes_of(w, n) : 0;
    const volatile char *from = base + first * a->kv_seq * (int64_t)dtype_bytes(w->kv);
    for (int64_t at = 0; at < bytes; at += LINE) {
        (void)from[at];
    }
}

/* Asks for this head's share of the next chunk, which may be the next part's: what comes while the
 * heads compute need not be waited for. gcc leaves out calls of functions that do nothing else, so
 * it must be inlined. */
static inline __attribute__((always_inline)) void ask(const struct work *w, const char *base,
                                                      int64_t head, int64_t first)
{
    const struct rt_attention *a = &w->p->a;
    int64_t chunk = chunk_of(w->p, w->kv), next = first + chunk;
    int64_t n = rt_min(w->left - next, chunk);
    if (n <= 0 || !is_dense(a)) {
        return;
    }
    int64_t bytes = bytes_of(w, n);
    const char *from = base + next * a->kv_seq * (int64_t)dtype_bytes(w->kv);
    int64_t end = bytes * (head + 1) / a->kv_heads;
    for (int64_t at = bytes * head / a->kv_heads; at < end; at += LINE) {
        __builtin_prefetch(from + at, 0, 2);
    }
}

/* Rows [first, first + n) of a head as the kernels for one query take them, |out_bytes| from one
 * to the next. */
static const void *read_rows(const struct work *w, const char *base, int64_t head, int64_t first,
                             int64_t n, int64_t *out_bytes)
{
    const struct rt_attention *a = &w->p->a;
    int64_t width = (int64_t)dtype_bytes(w->kv);
    const char *from = base + (first * a->kv_seq + head * a->kv_head) * width;
    if (w->kv == DT_F32 || w->kv == DT_I8) {
        *out_bytes = a->kv_seq * width;
        return from;
    }
    for (int64_t j = 0; j < n; j++) {
        rt_convert_load(w->kv, RT_CLASS_F32)(w->rows + j * a->depth, from + j * a->kv_seq * width,
                                             width, a->depth);
    }
    *out_bytes = a->depth * (int64_t)sizeof(float);
    return w->rows;
}

/* Scores of all keys of the part, or sums of all its values. */
static void attend(const struct work *w, const char *base,
                   void (*kernel)(const struct uk_attend_f32 *call))
{
    const struct parts *p = w->p;
    int64_t chunk = chunk_of(p, w->kv), stride;
    for (int64_t first = 0; first < w->n; first += chunk) {
        int64_t n = rt_min(chunk, w->n - first);
        touch(w, base, first, n);
        for (int64_t h = 0; h < p->a.kv_heads; h++) {
            ask(w, base, h, first);
            const void *rows = read_rows(w, base, h, first, n, &stride);
            kernel(&(struct uk_attend_f32){
                .q = w->q + h * p->a.group * p->a.depth,
                .scores = w->scores + h * p->a.group * PART + first,
                .sums = w->sums + h * p->a.group * p->a.depth,
                .kv = rows,
                .scores_row = PART,
                .kv_row = stride,
                .rows = (size_t)p->a.group,
                .n = (size_t)n,
                .depth = (size_t)p->a.depth,
            });
        }
    }
}

/* Turns the scores of a head into exponentials relative to the greatest of them. */
static void soften(const struct work *w, float *row, float *out)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const struct rt_attention *a = &w->p->a;
    int64_t seen = a->is_causal ? w->start + 1 - w->first : w->n;
    for (int64_t j = rt_max(seen, 0); j < w->n; j++) {
        row[j] = -INFINITY;
    }
    if (w->mask) {
        uk->binary_f32[UK_ADD](row, row, w->mask, (size_t)w->n);
    }
    out[PART_MAX] = uk->max_f32(row, (size_t)w->n);
    out[PART_TOTAL] = 0;
    if (out[PART_MAX] == -INFINITY) {
        memset(row, 0, (size_t)w->n * sizeof(float)); /* sees no key of the part */
        return;
    }
    uk->scalar_f32[UK_SUB](row, row, out[PART_MAX], (size_t)w->n);
    uk->unary_f32[UK_EXP](row, row, (size_t)w->n);
    out[PART_TOTAL] = uk->sum_f32(row, (size_t)w->n);
}

static void read_query(const struct work *w, const char *q)
{
    const struct rt_attention *a = &w->p->a;
    int64_t width = (int64_t)dtype_bytes(a->in), rows = rows_of(w->p);
    for (int64_t r = 0; r < rows; r++) {
        rt_convert_load(a->in, RT_CLASS_F32)(w->q + r * a->depth, q + r * a->q_head * width, width,
                                             a->depth);
    }
    hal_cpu_uk()->scalar_f32[UK_MUL](w->q, w->q, a->scale, (size_t)(rows * a->depth));
    memset(w->sums, 0, (size_t)(rows * a->depth) * sizeof(float));
}

static void lay_scratch(struct work *w, float *scratch)
{
    int64_t rows = rows_of(w->p), depth = w->p->a.depth;
    w->q = scratch;
    w->sums = w->q + aligned(rows * depth);
    w->scores = w->sums + aligned(rows * depth);
    w->rows = w->scores + rows * PART;
}

static size_t scratch_bytes(const struct parts *p, enum dtype kv)
{
    bool is_direct = kv == DT_F32 || kv == DT_I8;
    int64_t rows = rows_of(p), converted = is_direct ? 0 : chunk_of(p, kv) * p->a.depth;
    return (size_t)(2 * aligned(rows * p->a.depth) + rows * PART + converted) * sizeof(float);
}

/* Rows of keys that the query sees. */
static int64_t end_of(const struct parts *p, int64_t start)
{
    int64_t end = p->a.has_mask ? p->a.rows : start + 1;
    return rt_min(end, p->a.rows);
}

/* Bindings: parts, q, k, v, mask, start. Grid: parts, batch. */
static void attend_part(const struct hal_args *args, struct hal_tile tile, enum dtype kv_dtype)
{
    const struct parts *p = args->constants;
    const struct rt_attention *a = &p->a;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t width = (int64_t)dtype_bytes(a->in), first = tile.x * PART;
    int64_t kv =
        ((int64_t)tile.y * a->kv_batch + first * a->kv_seq) * (int64_t)dtype_bytes(kv_dtype);
    const int64_t *place = args->bindings[5];
    bool is_int8 = kv_dtype == DT_I8;
    struct work w = {.p = p, .kv = kv_dtype, .start = place ? *place : a->start, .first = first};
    float *out =
        (float *)args->bindings[0] + ((int64_t)tile.y * p->count + tile.x) * rows_of(p) * p->stride;
    w.left = end_of(p, w.start) - first;
    w.n = rt_min(PART, w.left);
    if (w.n <= 0) {
        return;
    }
    w.keys = (const char *)args->bindings[2] + kv;
    w.values = (const char *)args->bindings[3] + kv;
    w.mask = a->has_mask ? (const float *)args->bindings[4] + first : NULL;
    w.n = rt_attention_seen(w.mask, a->mask_row, 1, w.n);
    lay_scratch(&w, args->scratch);
    read_query(&w, (const char *)args->bindings[1] + (int64_t)tile.y * a->q_batch * width);
    attend(&w, w.keys, is_int8 ? uk->attend_scores_i8 : uk->attend_scores_f32);
    for (int64_t r = 0; r < rows_of(p); r++) {
        soften(&w, w.scores + r * PART, out + r * p->stride);
    }
    attend(&w, w.values, is_int8 ? uk->attend_sums_i8 : uk->attend_sums_f32);
    for (int64_t r = 0; r < rows_of(p); r++) {
        memcpy(out + r * p->stride + PART_SUMS, w.sums + r * a->depth,
               (size_t)a->depth * sizeof(float));
    }
}

static void part_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct parts *p = args->constants;
    attend_part(args, tile, p->a.in);
}

static void part_int8_tile(const struct hal_args *args, struct hal_tile tile)
{
    attend_part(args, tile, DT_I8);
}

static const struct hal_kernel part_kernel = {.name = "attention", .cpu = part_tile};
static const struct hal_kernel part_int8_kernel = {.name = "attention_int8", .cpu = part_int8_tile};

/* ---- joining --------------------------------------------------------------------------------- */

/* Row |row| of the part that |part| begins, for |count| parts; the result is in |sum|. */
static void join_row(const struct parts *p, const float *part, int64_t count, float *sum)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t step = rows_of(p) * p->stride;
    size_t depth = (size_t)p->a.depth;
    float max = -INFINITY, total = 0;
    for (int64_t i = 0; i < count; i++) {
        float m = part[i * step + PART_MAX];
        max = m > max || m != m ? m : max;
    }
    memset(sum, 0, depth * sizeof(float));
    for (int64_t i = 0; i < count && max != -INFINITY; i++) {
        const float *from = part + i * step;
        float weight = expf(from[PART_MAX] - max);
        total += weight * from[PART_TOTAL];
        uk->add_scaled_f32(sum, sum, from + PART_SUMS, weight, depth);
    }
    uk->scalar_f32[UK_DIV](sum, sum, total == 0 ? 1 : total, depth);
}

/* Bindings: output, parts, start. Grid: blocks of rows, batch. */
static void join_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct parts *p = args->constants;
    int64_t width = (int64_t)dtype_bytes(p->a.out), rows = rows_of(p);
    const int64_t *place = args->bindings[2];
    int64_t end = end_of(p, place ? *place : p->a.start),
            count = (rt_max(end, 0) + PART - 1) / PART;
    const float *parts =
        (const float *)args->bindings[1] + (int64_t)tile.y * p->count * rows * p->stride;
    char *out = (char *)args->bindings[0] + (int64_t)tile.y * p->a.q_batch * width;
    float *sum = args->scratch;
    for (int64_t r = tile.x * JOIN_ROWS; r < rt_min(rows, (tile.x + 1) * JOIN_ROWS); r++) {
        join_row(p, parts + r * p->stride, count, sum);
        rt_convert_store(RT_CLASS_F32, p->a.out)(out + r * p->a.q_head * width, width, sum,
                                                 p->a.depth);
    }
}

static const struct hal_kernel join_kernel = {.name = "attention", .cpu = join_tile};

/* ---- the dispatches -------------------------------------------------------------------------- */

bool rt_attention_has_parts(const struct rt_emit *emit, const struct rt_attention *a)
{
    return rt_emit_is_host(emit) && a->rows >= ROWS_MIN && a->queries == 1 &&
           a->kv_heads <= ALL_ROWS_MAX && a->kv_heads * a->group <= ALL_ROWS_MAX &&
           a->kv_heads * a->group * a->depth <= ALL_FLOATS_MAX;
}

static enum status emit_join(struct rt_emit *emit, const struct parts *p, struct hal_binding parts,
                             const struct rt_attention_tensors *t, struct error *err)
{
    struct hal_binding bindings[] = {t->out, parts, t->start};
    struct hal_dispatch dispatch = {
        .kernel = &join_kernel,
        .grid = {(uint32_t)((rows_of(p) + JOIN_ROWS - 1) / JOIN_ROWS), (uint32_t)p->batch, 1},
        .constants = p,
        .constants_bytes = sizeof(*p),
        .bindings = bindings,
        .binding_count = 3,
        .scratch_bytes = (size_t)p->a.depth * sizeof(float),
        .cost = (uint64_t)(p->batch * p->count * rows_of(p) * (p->a.depth / 16 + 8)),
    };
    TRY(rt_emit_barrier(emit, err));
    return rt_emit_dispatch(emit, &dispatch, err);
}

enum status rt_attention_emit_parts(struct rt_emit *emit, const struct rt_attention *a,
                                    int64_t batch, int64_t used,
                                    const struct rt_attention_tensors *t, struct error *err)
{
    struct parts p = {
        .a = *a,
        .batch = batch,
        .count = (a->rows + PART - 1) / PART,
        .stride = PART_SUMS + a->depth,
    };
    struct hal_binding parts;
    size_t bytes;
    if (!mul_size((size_t)(p.count * p.stride), (size_t)rows_of(&p) * sizeof(float), &bytes) ||
        !mul_size(bytes, (size_t)batch, &bytes) || p.count > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "attention: %lld rows of keys are too many",
                         (long long)a->rows);
    }
    TRY(rt_emit_workspace(emit, bytes, &parts, err));
    struct hal_binding bindings[] = {parts, t->q, t->k, t->v, t->mask, t->start};
    double work = (double)batch * (double)rows_of(&p) * (double)used * (double)a->depth;
    struct hal_dispatch dispatch = {
        .kernel = t->kv == DT_I8 ? &part_int8_kernel : &part_kernel,
        .grid = {(uint32_t)p.count, (uint32_t)batch, 1},
        .constants = &p,
        .constants_bytes = sizeof(p),
        .bindings = bindings,
        .binding_count = 6,
        .writes = 1,
        .scratch_bytes = scratch_bytes(&p, t->kv),
        .cost = (uint64_t)(work / 16) + 1,
        .macs = 2 * work,
    };
    TRY(rt_emit_dispatch(emit, &dispatch, err));
    return emit_join(emit, &p, parts, t, err);
}
