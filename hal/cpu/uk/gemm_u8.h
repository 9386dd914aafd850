/* SPDX-License-Identifier: MIT */
/* Shared by the integer matrix products of all levels: a tile of the result, and how its sums
 * become results. */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_H
#define PTED_HAL_CPU_UK_GEMM_U8_H

#include "hal/cpu/uk.h"
#include "hal/cpu/uk/simd_u8.h"

#define B_BLOCK (640 * 1024) /* bytes of B kept in a second-level cache of 1 MiB or more */
/* Are rows of A copied in pairs? */
#if defined UK_LEVEL_I8MM
#define UK_ROW_PAIRS 1
#else
#define UK_ROW_PAIRS 0
#endif
/* Are all tiles copied? */
#if UK_WORD == 2 || defined UK_LEVEL_NEON
#define UK_COPIES 1
#else
#define UK_COPIES 0
#endif
#define SKEW 64 /* numbers; maps the rows of a copied tile to different cache sets */

/* One pass over one tile: |rows| x (|vectors| * UK_VL) of C, all of k. */
struct tile {
    const uint8_t *a; /* words in the form that v_dot expects */
    ptrdiff_t a_row;  /* bytes */
    bool is_copied;   /* the runs of |a| are contiguous */
    const struct uk_segment *segments;
    size_t segment_count, run;
    const uint8_t *b;
    size_t panel_bytes;
    size_t group_words;              /* 0: no groups */
    size_t group_bytes, scales_step; /* from the weights and scales of a group to the next ones */
    bool asks_ahead;                 /* do groups ask for later ones? */
    /* With sorted words: how many; of the tile, rows, the greatest number, and rows of the even
     * bytes, widened, in front of the odd ones; NULL: not made yet. */
    bool is_sorted;
    size_t words, rows;
    uint8_t greatest;
    const uint8_t *evens;
    ptrdiff_t evens_row;
    bool has_short_scales;
    const uint8_t *group_scales;
    const union uk_number *columns;
    const float *row_scales;
    const int32_t *row_zeros;
    uint8_t *c_u8;
    float *c_f32;
    ptrdiff_t c_row;
    size_t width; /* columns that exist */
    float min, max;
    struct v_bounds bounds; /* of bytes */
    bool is_positive;       /* v_bounds_are_zero() */
#if defined UK_LEVEL_NEON
    vi (*sums)[UK_NV]; /* of a tile, for the function that makes results of them */
#endif
};

/* ---- results --------------------------------------------------------------------------------- */

UK_INLINE const float *column_floats(const struct tile *t, enum uk_column array, int j)
{
    return &t->columns[array * UK_NR + j * UK_VL].f;
}

UK_INLINE vi column_ints(const struct tile *t, enum uk_column array, int j)
{
    return V_GET(vi, &t->columns[array * UK_NR + j * UK_VL].i);
}

/* Stores a row of floats, without those beyond |width|. */
UK_INLINE void store_floats(const struct tile *t, int i, const vf y[UK_NV], const int vectors)
{
    vf min = v_splat(t->min), max = v_splat(t->max);
    float *c = t->c_f32 + i * t->c_row;
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        size_t left = t->width - (size_t)j * UK_VL;
        vf v = v_clamp(y[j], min, max);
        if (left < UK_VL) {
            v_store_part(c + j * UK_VL, v, left);
        } else {
            v_store(c + j * UK_VL, v);
        }
    }
}

/* Stores four vectors of results as bytes: |count| rows, |first| being the first. They go through
 * memory, from where any part can be loaded. */
UK_INLINE void store_bytes(const struct tile *t, int first, int count, const vf y[4],
                           const int vectors)
{
    uint8_t bytes[2 * UK_VECTOR_BYTES];
    vb ordered = v_round_bytes(y, &t->bounds);
    V_PUT(bytes, ordered);
    UK_UNROLL
    for (int i = 0; i < 4 / vectors; i++) {
        uint8_t *c = t->c_u8 + (first + i) * t->c_row;
        const uint8_t *from = bytes + i * vectors * UK_VL;
        if (i >= count) {
            break;
        } else if (t->width == (size_t)vectors * UK_VL) {
            memcpy(c, from, (size_t)vectors * UK_VL);
        } else {
            v_store_bytes(c, V_GET(vb, from), t->width);
        }
    }
}

/* Stores |rows| rows of a tile from |first| on, after scales and biases. */
UK_INLINE void store_rows(const struct tile *t, vf y[UK_MR][UK_NV], int first, const int rows,
                          const int vectors)
{
    if (t->c_f32) {
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            store_floats(t, first + i, y[i], vectors);
        }
        return;
    }
    UK_UNROLL
    for (int i = 0; i < rows; i += 4 / vectors) {
        vf four[4];
        UK_UNROLL
        for (int q = 0; q < 4; q++) {
            int row = i + q / vectors;
            four[q] = y[row < rows ? row : i][q % vectors];
        }
        store_bytes(t, first + i, rows - i, four, vectors);
    }
}

/* Returns what the sums of vector |j| of the columns begin with. Unsigned arithmetic, here and
 * below: in a malformed model the sums may overflow, which gives a wrong number. */
UK_INLINE vi first_sum(const struct tile *t, int j)
{
    vi offset = column_ints(t, UK_COLUMN_OFFSET, j);
#if UK_A_SHIFT
    offset = (vi)vmlaq_s32((int32x4_t)offset, (int32x4_t)column_ints(t, UK_COLUMN_SUM, j),
                           vdupq_n_s32(UK_A_SHIFT));
#endif
    return offset;
}

/* Turns the sums of |rows| rows from |first| on, which began with first_sum(), into floats with
 * scale and bias, and stores them. */
UK_INLINE void finish_rows(vi acc[][UK_NV], const struct tile *t, int first, const int rows,
                           const int vectors)
{
    vf scale[UK_NV], bias[UK_NV], y[UK_MR][UK_NV];
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        scale[j] = v_load(column_floats(t, UK_COLUMN_SCALE, j));
        bias[j] = v_load(column_floats(t, UK_COLUMN_BIAS, j));
    }
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            vu sum = (vu)acc[i][j];
            vf factor = scale[j];
            if (t->row_scales) {
                sum -= v_splat_bits((uint32_t)t->row_zeros[first + i]) *
                       (vu)column_ints(t, UK_COLUMN_SUM, j);
                factor *= v_splat(t->row_scales[first + i]);
            }
            y[i][j] = v_multiply_add(__builtin_convertvector((vi)sum, vf), factor, bias[j]);
        }
    }
    store_rows(t, y, first, rows, vectors);
}

#if defined UK_LEVEL_NEON
/* Stores whole rows of bytes, like finish_rows(): one after the other, so that the sums stay in
 * registers. A bias is loaded where its result will be. */
UK_INLINE void finish_bytes(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                            const int vectors, const bool is_positive)
{
    const struct v_bounds bounds = t->bounds;
    const float *biases = column_floats(t, UK_COLUMN_BIAS, 0);
    uint8_t *c = t->c_u8;
    const ptrdiff_t c_row = t->c_row;
    vf scale[UK_NV];
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        scale[j] = v_load(column_floats(t, UK_COLUMN_SCALE, j));
    }
    UK_UNROLL
    for (int i = 0; i < rows; i += 4 / vectors) {
        vf y[4] = {{0}};
        UK_UNROLL
        for (int q = 0; q < 4 / vectors * vectors; q += vectors == 1 ? 1 : 2) {
            v_load_pair(y + q, biases, q % vectors * 16, vectors > 1 && q % vectors + 1 < vectors);
        }
        UK_UNROLL
        for (int q = 0; q < 4 / vectors * vectors; q++) {
            const int row = i + q / vectors < rows ? i + q / vectors : i;
            V_APART(acc[row][q % vectors]);
            vf sum = __builtin_convertvector(acc[row][q % vectors], vf);
            y[q] = v_multiply_add(sum, scale[q % vectors], y[q]);
        }
        vb bytes = is_positive ? v_round_positive(y, bounds.least) : v_round_bytes(y, &bounds);
        UK_UNROLL
        for (int k = 0; k < 4 / vectors; k++, c += c_row) {
            if (i + k < rows) {
                memcpy(c, (const uint8_t *)&bytes + k * vectors * UK_VL, (size_t)vectors * UK_VL);
            }
        }
    }
}

/* The other forms, in which gcc would not find registers for all sums of the products. */
#define FINISH_OTHERS(vectors)                                                                     \
    static __attribute__((noinline)) void finish_others_##vectors(const struct tile *t, int rows)  \
    {                                                                                              \
        for (int i = 0; i < rows; i++) {                                                           \
            finish_rows(t->sums + i, t, i, 1, vectors);                                            \
        }                                                                                          \
    }
FINISH_OTHERS(1)
FINISH_OTHERS(2)
FINISH_OTHERS(3)
FINISH_OTHERS(4)

UK_INLINE void finish_apart(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                            const int vectors)
{
    vi(*sums)[UK_NV] = t->sums;
    UK_UNROLL
    for (int i = 0; i < rows * vectors; i++) {
        sums[i / vectors][i % vectors] = acc[i / vectors][i % vectors];
    }
    switch (vectors) {
    case 1:
        finish_others_1(t, rows);
        break;
    case 2:
        finish_others_2(t, rows);
        break;
    case 3:
        finish_others_3(t, rows);
        break;
    default:
        finish_others_4(t, rows);
        break;
    }
}

UK_INLINE void finish(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows, const int vectors)
{
    if (!t->c_u8 || t->row_scales || t->width != (size_t)vectors * UK_VL) {
        finish_apart(acc, t, rows, vectors);
    } else if (t->is_positive) {
        finish_bytes(acc, t, rows, vectors, true);
    } else {
        finish_bytes(acc, t, rows, vectors, false);
    }
}
#else
/* Stores whole rows of bytes, like finish_rows(): as many as fill a vector, then the next ones. So
 * results leave the registers early, and none goes through memory. */
UK_INLINE void finish_bytes(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                            const int vectors)
{
    const struct v_bounds bounds = t->bounds;
    uint8_t *c = t->c_u8;
    const ptrdiff_t c_row = t->c_row;
    vf scale[UK_NV], bias[UK_NV];
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        scale[j] = v_load(column_floats(t, UK_COLUMN_SCALE, j));
        bias[j] = v_load(column_floats(t, UK_COLUMN_BIAS, j));
    }
    UK_UNROLL
    for (int i = 0; i < rows; i += 4 / vectors) {
        vf y[4];
        UK_UNROLL
        for (int q = 0; q < 4; q++) {
            const int row = i + q / vectors < rows ? i + q / vectors : i, j = q % vectors;
            y[q] = v_multiply_add(__builtin_convertvector(acc[row][j], vf), scale[j], bias[j]);
        }
        vb bytes = v_round_bytes(y, &bounds);
        UK_UNROLL
        for (int k = 0; k < 4 / vectors; k++, c += c_row) {
            if (i + k < rows && vectors == 2) {
                v_store_half(c, bytes, k);
            } else if (i + k < rows) {
                v_store_quarter(c, bytes, k);
            }
        }
    }
}

UK_INLINE void finish(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows, const int vectors)
{
    if (t->c_u8 && !t->row_scales && t->width == (size_t)vectors * UK_VL) {
        finish_bytes(acc, t, rows, vectors);
    } else {
        finish_rows(acc, t, 0, rows, vectors);
    }
}
#endif

/* Does the same for sums of products that are multiplied by the scales of their groups. */
UK_INLINE void finish_grouped(vf sums[UK_MR][UK_NV], const struct tile *t, const int rows,
                              const int vectors)
{
    vf y[UK_MR][UK_NV];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        float row_scale = t->row_scales ? t->row_scales[i] : 1.0f;
        float zero = (t->row_scales ? (float)t->row_zeros[i] : 0.0f) - (float)UK_A_SHIFT;
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            vf factor = v_load(column_floats(t, UK_COLUMN_SCALE, j)) * v_splat(row_scale);
            vf sum = sums[i][j] + v_load(column_floats(t, UK_COLUMN_OFFSET, j));
            sum = v_multiply_add(v_splat(-zero), v_load(column_floats(t, UK_COLUMN_SUM, j)), sum);
            y[i][j] = v_multiply_add(sum, factor, v_load(column_floats(t, UK_COLUMN_BIAS, j)));
        }
    }
    store_rows(t, y, 0, rows, vectors);
}

/* ---- what a tile works on -------------------------------------------------------------------- */

#if UK_ROW_PAIRS
/* Bytes from a word of a copied tile of |rows| to the next one. */
#define A_STEP(rows) (((rows) + 1) / 2 * 8)

/* Copies a run of two rows, pair |pair| of the tile at |to|: eight numbers of the first row, then
 * those of the other. |step| bytes are between them and the next ones: those of other pairs. If
 * four numbers remain, they take half the place. */
UK_INLINE void copy_pair(uint8_t *to, size_t step, size_t pair, const uint8_t *a, const uint8_t *b,
                         size_t run)
{
    uint8_t *at = to + pair * 16;
    size_t k = 0;
    for (; run - k >= 16; k += 16, at += 2 * step) {
        int64x2_t one = V_GET(int64x2_t, a + k), two = V_GET(int64x2_t, b + k);
        vst1q_s64((int64_t *)(void *)at, vzip1q_s64(one, two));
        vst1q_s64((int64_t *)(void *)(at + step), vzip2q_s64(one, two));
    }
    for (; run - k >= 8; k += 8, at += step) {
        vst1q_u8(at, vcombine_u8(vld1_u8(a + k), vld1_u8(b + k)));
    }
    if (k < run) {
        at -= pair * 8;
        memcpy(at, a + k, 4);
        memcpy(at + 4, b + k, 4);
    }
}

UK_INLINE void copy_tile(const struct uk_gemm_u8 *g, struct tile *t, size_t rows)
{
    uint8_t *to = g->scratch;
    for (size_t s = 0; s < t->segment_count; s++, to += t->run / 4 * A_STEP(rows)) {
        for (size_t i = 0; i < rows; i += 2) {
            const uint8_t *a = t->a + (ptrdiff_t)i * t->a_row + t->segments[s].a;
            copy_pair(to, 2 * A_STEP(rows), i / 2, a, i + 1 < rows ? a + t->a_row : a, t->run);
        }
    }
    t->a = g->scratch;
}
#elif defined UK_LEVEL_NEON
#define A_STEP(rows) ((rows)*4) /* likewise */
#define A_BLOCK (4 * UK_WORD)   /* numbers that are sixteen bytes of a copy */

/* Returns numbers of A in the form that products take: widened, or signed. */
UK_INLINE vb block_of(const uint8_t *a)
{
#if UK_WORD == 4
    return v_shift_bytes(V_GET(vb, a));
#else
    return (vb)v_widen_bytes(V_GET(v_half, a));
#endif
}

UK_INLINE uint32_t word_of(const uint8_t *a)
{
#if UK_WORD == 4
    return V_GET(uint32_t, a) ^ 0x01010101u * UK_A_SHIFT;
#else
    return a[0] | (uint32_t)a[1] << 16;
#endif
}

/* Copies |run| numbers of each row: sixteen bytes of the first row, of the next row, ..., then the
 * next ones. Of what is left at the end, words lie side by side. */
UK_INLINE void copy_run(uint8_t *to, const uint8_t *a, ptrdiff_t stride, size_t run, const int rows)
{
    const uint8_t *from[UK_MR];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        from[i] = i == 0 ? a : from[i - 1] + stride;
    }
    for (; run >= A_BLOCK; run -= A_BLOCK, to += rows * 16) {
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            vb x = block_of(from[i]);
            V_PUT(to + i * 16, x);
            from[i] += A_BLOCK;
        }
    }
    for (; run > 0; run -= UK_WORD) {
        UK_UNROLL
        for (int i = 0; i < rows; i++, to += 4, from[i - 1] += UK_WORD) {
            uint32_t word = word_of(from[i]);
            V_PUT(to, word);
        }
    }
}

/* Copies each run, or each group of the only one. */
UK_INLINE void copy_rows(const struct tile *t, uint8_t *to, const int rows)
{
    const size_t segments = t->segment_count, run = t->run;
    const size_t part = t->group_words > 0 ? t->group_words * UK_WORD : run;
    const struct uk_segment *segment = t->segments;
    const uint8_t *a = t->a;
    const ptrdiff_t stride = t->a_row;
    for (size_t s = 0; s < segments; s++, segment++) {
        for (size_t k = 0; k < run; k += part, to += part / UK_WORD * A_STEP(rows)) {
            copy_run(to, a + segment->a + k, stride, part, rows);
        }
    }
}

UK_INLINE void copy_tile(const struct uk_gemm_u8 *g, struct tile *t, size_t rows)
{
    switch (rows) {
    case 1:
        copy_rows(t, g->scratch, 1);
        break;
    case 2:
        copy_rows(t, g->scratch, 2);
        break;
    case 3:
        copy_rows(t, g->scratch, 3);
        break;
    case 4:
        copy_rows(t, g->scratch, 4);
        break;
    case 5:
        copy_rows(t, g->scratch, 5);
        break;
    default:
        copy_rows(t, g->scratch, 6);
        break;
    }
    t->a = g->scratch;
}
#else
#define A_STEP(rows) 4

/* Copies rows of a tile to where v_dot can read them: widened, or as they are. */
UK_INLINE void copy_row(uint8_t *to, const uint8_t *a, size_t run)
{
#if UK_WORD == 4
    memcpy(to, a, run);
#else
    uint16_t *wide = (uint16_t *)(void *)to;
    size_t k = 0;
    for (; run - k >= UK_VECTOR_BYTES / 2; k += UK_VECTOR_BYTES / 2) {
        vh x = v_widen_bytes(V_GET(v_half, a + k));
        V_PUT(wide + k, x);
    }
    for (; k < run; k++) {
        wide[k] = a[k];
    }
#endif
}

UK_INLINE void copy_tile(const struct uk_gemm_u8 *g, struct tile *t, size_t rows)
{
    size_t depth = t->segment_count * t->run, row_bytes = (depth + SKEW) * (4 / UK_WORD);
    uint8_t *to = g->scratch;
    for (size_t i = 0; i < rows; i++) {
        for (size_t s = 0; s < t->segment_count; s++) {
            copy_row(to + i * row_bytes + s * t->run * (4 / UK_WORD),
                     t->a + (ptrdiff_t)i * t->a_row + t->segments[s].a, t->run);
        }
    }
    t->a = to;
    t->a_row = (ptrdiff_t)row_bytes;
}
#endif

/* Can a tile read its rows in place? Rows at distances of pages would share few cache sets. */
UK_INLINE bool reads_in_place(const struct uk_gemm_u8 *g)
{
    return !UK_COPIES && (g->a_row % 4096 != 0 || g->m == 1 || g->n <= UK_NR);
}

/* Do all results that become bytes fit an int? Sums of groups, or of rows with scales, are floats.
 */
UK_INLINE bool columns_fit(const struct uk_gemm_u8 *g)
{
    vi fit = v_splat_int(-1);
    if (!UK_FITS || !g->c_u8 || !g->columns || g->group || g->row_scales) {
        return false;
    }
    for (size_t j = 0; j < g->n; j += UK_VL) {
        const union uk_number *columns =
            g->columns + j / UK_NR * UK_NR * UK_COLUMN_ARRAYS + j % UK_NR;
        fit &= v_fit_int(v_load(&columns[UK_COLUMN_SCALE * UK_NR].f),
                         v_load(&columns[UK_COLUMN_BIAS * UK_NR].f));
    }
    return v_all_fit(fit);
}

/* Changes the tile in place, here and below, because copying a struct that has just been written
 * would stall. |from_start| is storage for the only segment. */
UK_INLINE struct tile tile_of(const struct uk_gemm_u8 *g, struct uk_segment *from_start)
{
    struct v_bounds bounds = v_bounds_of(g->min, g->max, g->zero);
    bounds.fit = columns_fit(g);
    *from_start = (struct uk_segment){0, 0};
    return (struct tile){.is_copied = !reads_in_place(g) && !g->is_sorted,
                         .is_sorted = g->is_sorted,
                         .segments = g->segments ? g->segments : from_start,
                         .segment_count = g->segments ? g->segment_count : 1,
                         .run = g->run,
                         .panel_bytes = g->is_sorted ? UK_NV * uk_sorted_bytes_u8(UK_VL, g->k)
                                                     : g->k * UK_NR / (g->is_4bit ? 2 : 1),
                         .group_words = g->group / UK_WORD,
                         .has_short_scales = g->has_short_scales,
                         .c_row = g->c_row,
                         .min = g->min,
                         .max = g->max,
                         .bounds = bounds,
                         .is_positive = v_bounds_are_zero(&bounds)};
}

/* |rows| rows from (line, first) on, for all panels. */
UK_INLINE void tile_begin_rows(const struct uk_gemm_u8 *g, struct tile *t, size_t line,
                               size_t first, size_t rows)
{
    ptrdiff_t numbers = (ptrdiff_t)line * g->rows_line + (ptrdiff_t)first;
    t->a = g->a + (ptrdiff_t)line * g->a_line + (ptrdiff_t)first * g->a_row;
    t->a_row = g->a_row;
    t->row_scales = g->row_scales ? g->row_scales + numbers : NULL;
    t->row_zeros = g->row_scales ? g->row_zeros + numbers : NULL;
    if (t->is_copied) {
        copy_tile(g, t, rows);
    }
}

UK_INLINE void set_width(const struct uk_gemm_u8 *g, struct tile *t, size_t p)
{
    const size_t left = g->n - p * UK_NR;
    t->width = left < UK_NR ? left : UK_NR;
}

/* Panel |p| of these rows. */
UK_INLINE void tile_begin_panel(const struct uk_gemm_u8 *g, struct tile *t, size_t line,
                                size_t first, size_t p)
{
    ptrdiff_t c = (ptrdiff_t)line * g->c_line + (ptrdiff_t)first * g->c_row;
    size_t column = p * UK_NR;
    set_width(g, t, p);
    t->b = g->b + p * t->panel_bytes;
    t->columns = g->columns ? g->columns + p * UK_NR * UK_COLUMN_ARRAYS : NULL;
    t->c_u8 = g->c_u8 ? g->c_u8 + c + (ptrdiff_t)column : NULL;
    t->c_f32 = g->c_f32 ? g->c_f32 + c + (ptrdiff_t)column : NULL;
}

/* Moves to the next panel, if both are whole. */
UK_INLINE void tile_next_panel(struct tile *t)
{
    t->b += t->panel_bytes;
    t->columns += UK_NR * UK_COLUMN_ARRAYS;
    if (t->c_u8) {
        t->c_u8 += UK_NR;
    } else {
        t->c_f32 += UK_NR;
    }
}

/* ---- groups ---------------------------------------------------------------------------------- */

UK_INLINE size_t bytes_of_scale(const struct uk_gemm_u8 *g)
{
    return g->has_short_scales ? sizeof(uint16_t) : sizeof(float);
}

/* Sets the distances between the groups of a panel. */
UK_INLINE void set_groups(const struct uk_gemm_u8 *g, struct tile *t)
{
    const bool are_inside = !g->columns;
    const size_t scale_bytes = are_inside ? bytes_of_scale(g) : 0;
    t->group_bytes = uk_group_bytes_u8(UK_NR, g->group, g->is_4bit, scale_bytes);
    t->scales_step = are_inside ? t->group_bytes : UK_NR * bytes_of_scale(g);
    t->asks_ahead = g->asks_ahead;
    if (are_inside) {
        t->panel_bytes = uk_panel_bytes_u8(UK_NR, g->k, g->group, g->is_4bit, scale_bytes);
    }
}

/* Points |t|, which is at panel |p|, to its scales and columns. */
UK_INLINE void begin_groups(const struct uk_gemm_u8 *g, struct tile *t, size_t p)
{
    const size_t groups = g->k / g->group;
    if (g->columns) {
        t->group_scales = (const uint8_t *)g->group_scales + p * groups * t->scales_step;
        return;
    }
    t->group_scales = t->b + uk_group_bytes_u8(UK_NR, g->group, g->is_4bit, 0);
    t->columns = (const union uk_number *)(const void *)(t->b + groups * t->group_bytes);
}

/* Panels that stay in the second-level cache together. */
UK_INLINE size_t panels_at_once(const struct uk_gemm_u8 *g)
{
    size_t panel_bytes = g->k * UK_NR + 1;
    return panel_bytes < B_BLOCK ? B_BLOCK / panel_bytes : 1;
}

#endif
