/* SPDX-License-Identifier: MIT */
/*
 * Matrix products with float results: the loops around a register tile, and how its sums begin and
 * end. A file that includes this header has defined the types of the numbers that are multiplied,
 * a_number and b_number, and defines
 *
 *     accumulate_run()  adds the products of one run to a tile
 *     tile_for()        only with HALF_TILES: the function for a tile of so many rows and columns
 *     run_rows()        computes some panels of a row tile
 *     ROW_PAIRS         if sums lie in pairs of rows while products are added
 *     HAS_BF16          if A, the residual or C may be bfloat16 numbers, which the pointers to them
 *                       then lead to
 *
 * The tile keeps its sums in registers. The loops around it, from the outside: blocks of panels
 * that stay in the second-level cache, blocks of k, row tiles, panels. While the row tiles multiply
 * one block of k of these panels, they ask for the block that comes next, each for its part of it.
 * Between blocks of k the sums are stored in C, which is exact. So an element is always bias, then
 * its products in order of k, then the residual, then the clamp, however the work is divided.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_F32_H
#define PTED_HAL_CPU_UK_GEMM_F32_H

#include <math.h>

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd.h"

/* One pass over one tile: |rows| x (|vectors| * UK_VL) of C, for a part of k. */
struct tile {
    const float *from; /* rows of the caller's A */
    const a_number *a; /* the same, or a copy */
    ptrdiff_t a_row;
    const struct uk_segment *segments;
    size_t segment_count, run;
    const b_number *b;
    const b_number *next; /* panels of the next round; NULL: there is none */
    size_t part, parts;   /* which part of them this tile asks for */
    const char *ahead;    /* that part, of one panel */
    size_t ahead_step;    /* bytes of it for each step of k */
    const float *bias;    /* NULL: none */
    const float *residual;
    ptrdiff_t residual_row;
    float *c;
    ptrdiff_t c_row;
    float min, max;
    bool first, last; /* begins with the bias instead of C; ends with residual and clamp */
    uk_unary_f32_f *activation; /* behind them; NULL: none */
    bool asks_ahead;            /* if it is a single row */
#ifdef HAS_BF16
    bool is_in_place; /* |a| is the caller's */
    size_t depth;     /* rows of the panel from |b| on */
    /* With ROW_PAIRS: the product, if runs have parts of what is multiplied at once; or NULL. */
    const struct uk_gemm_f32 *parts_of;
    bool residual_is_bf16, c_is_bf16;
    const uint8_t *skips;     /* of the segments; NULL: none */
    bool has_first, has_last; /* rows of the line */
#endif
};

typedef void tile_f(const struct tile *t);

/* The part of k for one round: |run| floats from |begin| on, in each segment of the range. */
struct k_block {
    size_t segment_begin, segment_end, begin, run;
    const b_number *next; /* the first panel of the next round; NULL: none */
    bool first, last;
};

/* acc += the products of run |number| of the tile. */
UK_INLINE void accumulate_run(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                              const int rows, const int vectors);

/* |n| numbers on from |p|. */
UK_INLINE const float *move_a(const struct uk_gemm_f32 *g, const float *p, ptrdiff_t n)
{
#ifdef HAS_BF16
    if (g->a_is_bf16) {
        return (const float *)(const void *)((const uint16_t *)(const void *)p + n);
    }
#endif
    (void)g;
    return p + n;
}

UK_INLINE const float *move_residual(const struct uk_gemm_f32 *g, const float *p, ptrdiff_t n)
{
#ifdef HAS_BF16
    if (g->residual_is_bf16) {
        return (const float *)(const void *)((const uint16_t *)(const void *)p + n);
    }
#endif
    (void)g;
    return p + n;
}

UK_INLINE float *move_c(const struct uk_gemm_f32 *g, float *p, ptrdiff_t n)
{
#ifdef HAS_BF16
    if (g->c_is_bf16) {
        return (float *)(void *)((uint16_t *)(void *)p + n);
    }
#endif
    (void)g;
    return p + n;
}

#ifdef HALF_TILES
UK_INLINE vf load(const float *p, const bool is_half)
{
    return is_half ? v_from_low(v_low_load(p)) : v_load(p);
}

UK_INLINE void store(float *p, vf v, const bool is_half)
{
    if (is_half) {
        v_low_store(p, v_low(v));
    } else {
        v_store(p, v);
    }
}
#else
/* Other levels have no narrow tiles. */
UK_INLINE vf load(const float *p, const bool is_half)
{
    (void)is_half;
    return v_load(p);
}

UK_INLINE void store(float *p, vf v, const bool is_half)
{
    (void)is_half;
    v_store(p, v);
}
#endif

/* acc = |rows| x |vectors| at p. With |is_half|, here and below, there is only the lower half of
 * the last vectors. */
UK_INLINE void load_tile(vf acc[UK_MR][UK_NV], const float *p, ptrdiff_t row, const int rows,
                         const int vectors, const bool is_half)
{
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = load(p + i * row + j * UK_VL, is_half && j == vectors - 1);
        }
    }
}

UK_INLINE void begin(vf acc[UK_MR][UK_NV], const struct tile *t, const int rows, const int vectors,
                     const bool is_half)
{
    if (!t->first) {
        load_tile(acc, t->c, t->c_row, rows, vectors, is_half);
    } else if (t->bias) {
        load_tile(acc, t->bias, 0, rows, vectors, is_half);
    } else {
        UK_UNROLL
        for (int i = 0; i < rows * UK_NV; i++) {
            acc[i / UK_NV][i % UK_NV] = (vf){0};
        }
    }
}

UK_INLINE void add_residual(vf acc[][UK_NV], const struct tile *t, const int rows,
                            const int vectors, const bool is_half)
{
#ifdef HAS_BF16
    if (t->residual_is_bf16) {
        const uint16_t *residual = (const uint16_t *)(const void *)t->residual;
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            UK_UNROLL
            for (int j = 0; j < vectors; j++) {
                acc[i][j] += load_bf16(residual + i * t->residual_row + j * UK_VL, UK_VL);
            }
        }
        return;
    }
#endif
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] +=
                load(t->residual + i * t->residual_row + j * UK_VL, is_half && j == vectors - 1);
        }
    }
}

/* Stores a sum as soon as it is clamped: the next tile begins meanwhile. */
UK_INLINE void finish(vf acc[UK_MR][UK_NV], const struct tile *t, const int rows, const int vectors,
                      const bool is_half)
{
    /* Sums between blocks of k are not clamped. */
    vf min = v_splat(t->last ? t->min : -INFINITY), max = v_splat(t->last ? t->max : INFINITY);
    if (t->last && t->residual) {
        add_residual(acc, t, rows, vectors, is_half);
    }
#ifdef HAS_BF16
    if (t->c_is_bf16) {
        uint16_t *c = (uint16_t *)(void *)t->c;
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            UK_UNROLL
            for (int j = 0; j < vectors; j++) {
                store_bf16(c + i * t->c_row + j * UK_VL, v_clamp(acc[i][j], min, max), UK_VL);
            }
        }
        return;
    }
#endif
    float *c = t->c;
    ptrdiff_t c_row = t->c_row;
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            store(c + i * c_row + j * UK_VL, v_clamp(acc[i][j], min, max),
                  is_half && j == vectors - 1);
        }
    }
}

#ifdef ROW_PAIRS
/* Brings the sums of two rows, and of as many columns, together, or back: acc[2 * p][j] has columns
 * 4 * j and 4 * j + 1 of rows 2 * p and 2 * p + 1, and acc[2 * p + 1][j] the next two columns. */
UK_INLINE void turn_pairs(vf acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    UK_UNROLL
    for (int p = 0; p < (rows + 1) / 2; p++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            float64x2_t one = (float64x2_t)acc[2 * p][j];
            float64x2_t two = 2 * p + 1 < rows ? (float64x2_t)acc[2 * p + 1][j] : one;
            acc[2 * p][j] = (vf)vzip1q_f64(one, two);
            acc[2 * p + 1][j] = (vf)vzip2q_f64(one, two);
        }
    }
}

/* Back, to rows of which the last one may be alone. */
UK_INLINE void turn_back(vf acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    turn_pairs(acc, (rows + 1) / 2 * 2, vectors);
}
#else
UK_INLINE void turn_pairs(vf acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    (void)acc;
    (void)rows;
    (void)vectors;
}

UK_INLINE void turn_back(vf acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    turn_pairs(acc, rows, vectors);
}
#endif

#ifdef ROW_PAIRS
/* Computes a tile that has parts. */
static void run_parts(const struct tile *t, int rows, int vectors);
#endif

UK_INLINE void run_tile(const struct tile *t, const int rows, const int vectors)
{
    vf acc[UK_MR][UK_NV];
#ifdef ROW_PAIRS
    if (t->parts_of) {
        run_parts(t, rows, vectors);
        return;
    }
#endif
    begin(acc, t, rows, vectors, false);
    turn_pairs(acc, rows, vectors);
    for (size_t s = 0; s < t->segment_count; s++) {
        accumulate_run(acc, t, s, rows, vectors);
    }
    turn_back(acc, rows, vectors);
    finish(acc, t, rows, vectors, false);
}

/* clang-format off */
#if UK_MR == 14
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6) XX(7) XX(8) XX(9) XX(10) XX(11) XX(12) \
    XX(13) XX(14)
#elif UK_MR == 12
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6) XX(7) XX(8) XX(9) XX(10) XX(11) XX(12)
#else
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6)
#endif
/* clang-format on */

#define TILE(rows, vectors)                                                                        \
    static void tile_##rows##_##vectors(const struct tile *t)                                      \
    {                                                                                              \
        run_tile(t, rows, vectors);                                                                \
    }
/* clang-format off */
#if UK_NV == 4
#define TILES(rows) TILE(rows, 1) TILE(rows, 2) TILE(rows, 3) TILE(rows, 4)
#define TILE_ROW(rows) {tile_##rows##_1, tile_##rows##_2, tile_##rows##_3, tile_##rows##_4},
#else
#define TILES(rows) TILE(rows, 1) TILE(rows, 2)
#define TILE_ROW(rows) {tile_##rows##_1, tile_##rows##_2},
#endif
/* clang-format on */
EACH_ROWS(TILES)

static tile_f *const tiles[UK_MR][UK_NV] = {EACH_ROWS(TILE_ROW)};

/* Copies |width| columns between C, or the residual, and rows |step| apart: whole vectors, or half
 * of the last one. */
UK_INLINE void load_ragged(float *whole, size_t step, const float *p, ptrdiff_t row, size_t rows,
                           size_t width)
{
    for (size_t i = 0; i < rows; i++, p += row, whole += step) {
        for (size_t j = 0; j < width; j += UK_VL) {
            size_t left = width - j;
            store(whole + j, left < UK_VL ? v_load_part(p + j, left) : v_load(p + j),
                  step - j < UK_VL);
        }
    }
}

UK_INLINE void store_ragged(float *p, const float *whole, size_t step, ptrdiff_t row, size_t rows,
                            size_t width)
{
    for (size_t i = 0; i < rows; i++, p += row, whole += step) {
        size_t j = 0;
        for (; width - j >= UK_VL; j += UK_VL) {
            v_store(p + j, v_load(whole + j));
        }
        if (j < width) {
            v_store_part(p + j, load(whole + j, step - j < UK_VL), width - j);
        }
    }
}

#ifdef HAS_BF16
UK_INLINE void load_ragged_bf16(float *whole, size_t step, const uint16_t *p, ptrdiff_t row,
                                size_t rows, size_t width)
{
    for (size_t i = 0; i < rows; i++, p += row, whole += step) {
        for (size_t j = 0; j < width; j += UK_VL) {
            size_t left = width - j;
            v_store(whole + j, load_bf16(p + j, left < UK_VL ? left : UK_VL));
        }
    }
}

UK_INLINE void store_ragged_bf16(uint16_t *p, const float *whole, size_t step, ptrdiff_t row,
                                 size_t rows, size_t width)
{
    for (size_t i = 0; i < rows; i++, p += row, whole += step) {
        for (size_t j = 0; j < width; j += UK_VL) {
            size_t left = width - j;
            store_bf16(p + j, v_load(whole + j), left < UK_VL ? left : UK_VL);
        }
    }
}
#endif

/* The function for a tile of |width| columns. It computes whole vectors, or half of the last one.
 */
#ifdef HALF_TILES
#define UK_PART (UK_VL / 2)
static tile_f *tile_for(size_t rows, size_t width);
#else
#define UK_PART UK_VL
static tile_f *tile_for(size_t rows, size_t width)
{
    return tiles[rows - 1][(width - 1) / UK_VL];
}
#endif

/* Stores C, which is computed in rows |whole|, |step| apart. */
static void store_whole(const struct tile *t, float *whole, size_t step, size_t rows, size_t width)
{
    bool is_active = t->last && t->activation;
#ifdef HAS_BF16
    if (t->c_is_bf16) {
        if (is_active) {
            t->activation(whole, whole, rows * step);
        }
        store_ragged_bf16((uint16_t *)(void *)t->c, whole, step, t->c_row, rows, width);
        return;
    }
#endif
    if (is_active && width == step && t->c_row == (ptrdiff_t)step) {
        t->activation(t->c, whole, rows * step);
        return;
    }
    if (is_active) {
        t->activation(whole, whole, rows * step);
    }
    store_ragged(t->c, whole, step, t->c_row, rows, width);
}

static void load_ragged_residual(float *whole, size_t step, const struct tile *t, size_t rows,
                                 size_t width)
{
#ifdef HAS_BF16
    if (t->residual_is_bf16) {
        load_ragged_bf16(whole, step, (const uint16_t *)(const void *)t->residual, t->residual_row,
                         rows, width);
        return;
    }
#endif
    load_ragged(whole, step, t->residual, t->residual_row, rows, width);
}

/* For a tile whose last columns are no whole vectors, or with an activation: computes it in
 * temporary rows of whole vectors, or half of the last one, without gaps. An activation is called
 * once for all of them, because a call has constants to load. */
static void run_ragged(const struct tile *t, size_t rows, size_t width)
{
    float c[UK_MR * UK_NR], residual[UK_MR * UK_NR], bias[UK_NR];
    struct tile whole = *t;
    const size_t step = (width + UK_PART - 1) / UK_PART * UK_PART;
    bool is_ragged = width % UK_PART != 0;
    if (!t->first) {
        load_ragged(c, step, t->c, t->c_row, rows, width);
    }
    if (t->residual && is_ragged) {
        load_ragged_residual(residual, step, t, rows, width);
        whole.residual = residual;
        whole.residual_row = (ptrdiff_t)step;
#ifdef HAS_BF16
        whole.residual_is_bf16 = false;
#endif
    }
    if (t->bias && is_ragged) {
        load_ragged(bias, step, t->bias, 0, 1, width);
        whole.bias = bias;
    }
    whole.c = c;
    whole.c_row = (ptrdiff_t)step;
#ifdef HAS_BF16
    whole.c_is_bf16 = false;
#endif
    tile_for(rows, width)(&whole);
    store_whole(t, c, step, rows, width);
}

/* Asks for its part of the panel that follows |panel| in the next round. */
static void look_ahead(const struct uk_gemm_f32 *g, struct tile *t, size_t panel)
{
    size_t depth = t->run * t->segment_count, bytes = UK_NR * sizeof(*t->b);
    t->ahead = (const char *)(t->next + panel * g->k * UK_NR) + depth * t->part / t->parts * bytes;
    t->ahead_step = (bytes - 1) / t->parts + 1;
}

/* Computes panels [begin, end) for a tile. Its b, bias, residual and c point to panel 0. */
static void run_panels(const struct uk_gemm_f32 *g, struct tile *t, size_t rows, size_t panel_begin,
                       size_t panel_end)
{
    const b_number *b = t->b;
    const float *bias = t->bias, *residual = t->residual;
    float *c = t->c;
    for (size_t p = panel_begin; p < panel_end; p++) {
        size_t column = p * UK_NR, left = g->n - column, width = left < UK_NR ? left : UK_NR;
        t->b = b + p * g->k * UK_NR;
        if (t->next) {
            look_ahead(g, t, p - panel_begin);
        }
        t->c = move_c(g, c, (ptrdiff_t)column);
        t->bias = bias ? bias + column : NULL;
        t->residual = residual ? move_residual(g, residual, (ptrdiff_t)column) : NULL;
        if (width % UK_PART == 0 && !(t->last && t->activation)) {
            tile_for(rows, width)(t);
        } else {
            run_ragged(t, rows, width);
        }
    }
    t->b = b;
    t->bias = bias;
}

/* Computes panels [begin, end) of one row tile, whose rows lie at t->from. */
static void run_rows(const struct uk_gemm_f32 *g, struct tile *t, size_t rows, size_t panel_begin,
                     size_t panel_end);

/* Computes all lines and rows for panels [begin, end) and one block of k. */
static void run_block(const struct uk_gemm_f32 *g, const struct uk_segment *segments,
                      const struct k_block *k, size_t panel_begin, size_t panel_end)
{
    size_t tile_count = (g->m + UK_MR - 1) / UK_MR;
    struct tile t = {
        .a_row = g->a_row,
        .segments = segments + k->segment_begin,
        .segment_count = k->segment_end - k->segment_begin,
        .run = k->run,
        .b = (const b_number *)g->b + k->begin * UK_NR,
        .next = g->lines * tile_count > 1 ? k->next : NULL,
        .parts = g->lines * tile_count,
        .bias = g->bias,
        .residual_row = g->residual_row,
        .c_row = g->c_row,
        .min = g->min,
        .max = g->max,
        .first = k->first,
        .last = k->last,
        .activation = g->activation,
        .asks_ahead = g->asks_ahead,
#ifdef HAS_BF16
        .depth = g->k - k->begin,
        .residual_is_bf16 = g->residual_is_bf16,
        .c_is_bf16 = g->c_is_bf16,
        .skips = g->skips ? g->skips + k->segment_begin : NULL,
#endif
    };
    for (size_t line = 0; line < g->lines; line++) {
        for (size_t i = 0; i < tile_count; i++) {
            /* Tiles share the rows evenly, so that no tile has only a row or two. */
            size_t row = g->m * i / tile_count, row_end = g->m * (i + 1) / tile_count;
            ptrdiff_t y = (ptrdiff_t)line, x = (ptrdiff_t)row;
            t.from = move_a(g, g->a, y * g->a_line + x * g->a_row + (ptrdiff_t)k->begin);
            t.c = move_c(g, g->c, y * g->c_line + x * g->c_row);
            ptrdiff_t residual = y * g->residual_line + x * g->residual_row;
            t.residual = g->residual ? move_residual(g, g->residual, residual) : NULL;
#ifdef HAS_BF16
            t.has_first = row == 0;
            t.has_last = row_end == g->m;
#endif
            run_rows(g, &t, row_end - row, panel_begin, panel_end);
            t.part++;
        }
    }
}

/* Returns the begin of part |part| of a run: a multiple of four, because some numbers are
 * multiplied in pairs, or in fours. */
UK_INLINE size_t split(size_t run, size_t part, size_t parts)
{
    size_t at = run * part / parts;
    return part < parts ? at & ~(size_t)3 : at;
}

/* B of the round that begins with |panel|, |segment| and number |begin| of its run. */
UK_INLINE const b_number *b_at(const struct uk_gemm_f32 *g, const struct uk_segment *segments,
                               size_t panel, size_t segment, size_t begin)
{
    return (const b_number *)g->b + (panel * g->k + segments[segment].k + begin) * UK_NR;
}

/*
 * Computes all of k in blocks of about |limit|: whole segments, or parts of a longer segment.
 */
static void run_blocks(const struct uk_gemm_f32 *g, const struct uk_segment *segments, size_t limit,
                       size_t panel_begin, size_t panel_end)
{
    size_t segment_count = g->segments ? g->segment_count : 1;
    size_t parts = g->run > limit ? (g->run + limit - 1) / limit : 1;
    size_t group = g->run && g->run <= limit ? limit / g->run : 1;
    for (size_t s = 0; s < segment_count || s == 0; s += group) {
        size_t segment_end = segment_count - s > group ? s + group : segment_count;
        for (size_t part = 0; part < parts; part++) {
            size_t from = split(g->run, part, parts), to = split(g->run, part + 1, parts);
            struct k_block k = {.segment_begin = s,
                                .segment_end = segment_end,
                                .begin = from,
                                .run = to - from,
                                .first = s == 0 && part == 0,
                                .last = segment_end == segment_count && part == parts - 1};
            if (part + 1 < parts) {
                k.next = b_at(g, segments, panel_begin, s, to);
            } else if (segment_end < segment_count) {
                k.next = b_at(g, segments, panel_begin, segment_end, 0);
            } else if (panel_end * UK_NR < g->n) {
                k.next = b_at(g, segments, panel_end, 0, 0);
            } else {
                k.next = g->next_b;
            }
            run_block(g, segments, &k, panel_begin, panel_end);
        }
    }
}

/* Computes everything, with blocks of panels of |block| and blocks of k of about |limit|. */
UK_INLINE void run_all(const struct uk_gemm_f32 *g, size_t limit, size_t block)
{
    const struct uk_segment from_start = {0, 0};
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    for (size_t p = 0; p < panels; p += block) {
        run_blocks(g, g->segments ? g->segments : &from_start, limit, p,
                   panels - p > block ? p + block : panels);
    }
}

#endif
