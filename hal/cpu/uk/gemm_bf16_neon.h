/* SPDX-License-Identifier: MIT */
/*
 * The sums of a tile of bfloat16 products on aarch64, by products of matrices: four numbers of two
 * rows of A times four of two columns of B are added to four sums. So a panel has four neighbours
 * in k of a column side by side, a quad (pack_bf16.c), and a copied tile those of a pair of rows. A
 * row without a partner is multiplied twice, so that its bits are the same in every tile. Sums lie
 * in pairs of rows meanwhile: see turn_pairs() of gemm_f32.h.
 *
 * Quads are counted from the panel's begin. A run of other numbers begins or ends in the middle of
 * one: the copy has zeros for the half that is not the run's, and so has what is loaded of B. If
 * the panel's last quad is a half, it lies in pairs, as on other levels.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_BF16_NEON_H
#define PTED_HAL_CPU_UK_GEMM_BF16_NEON_H

#include "hal/cpu/uk/gemm_f32.h"
#include "hal/cpu/uk/load_neon.h"

#define PAIRS_OF(rows) (((rows) + 1) / 2)
#define QUAD 4

/* What is left of the quads of B. */
enum part { LOW_HALF, HIGH_HALF, WHOLE };

/* Counts the quads of a run that begins with one. */
UK_INLINE size_t quads_of(size_t run)
{
    return (run + QUAD - 1) / QUAD;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* Returns the first |n| <= 4 numbers of a row of A, then zeros. */
UK_INLINE uint16x4_t load_quad(const float *row, size_t n, const bool is_bf16)
{
    if (is_bf16) {
        uint16x4_t x = vdup_n_u16(0);
        memcpy(&x, row, n < QUAD ? n * sizeof(uint16_t) : sizeof(x));
        return x;
    }
    return round_vector_bf16(n < QUAD ? v_load_part(row, n) : v_load(row));
}

UK_INLINE void put_pair(uint16_t *to, uint16x4_t one, uint16x4_t two)
{
    vst1q_u16(to, vcombine_u16(one, two));
}

/* Moves the first two numbers behind two zeros. */
UK_INLINE uint16x4_t move_up(uint16x4_t x)
{
    return vreinterpret_u16_u64(vshl_n_u64(vreinterpret_u64_u16(x), 32));
}

/* Copies a run of two rows, of which |there| numbers exist; |step| numbers are between the quads of
 * a pair. |lead|: the run begins in the middle of a quad. */
UK_INLINE void copy_pair(const struct uk_gemm_f32 *g, uint16_t *to, size_t step, const float *one,
                         const float *two, size_t there, const bool lead, const bool is_bf16)
{
    size_t k = 0;
    if (lead) {
        k = there < 2 ? there : 2;
        put_pair(to, move_up(load_quad(one, k, is_bf16)), move_up(load_quad(two, k, is_bf16)));
        to += step;
    }
    for (; there - k >= QUAD; k += QUAD, to += step) {
        put_pair(to, load_quad(move_a(g, one, (ptrdiff_t)k), QUAD, is_bf16),
                 load_quad(move_a(g, two, (ptrdiff_t)k), QUAD, is_bf16));
    }
    if (k < there) {
        put_pair(to, load_quad(move_a(g, one, (ptrdiff_t)k), there - k, is_bf16),
                 load_quad(move_a(g, two, (ptrdiff_t)k), there - k, is_bf16));
    }
}

/* Copies run |number| of the |rows| rows of a tile. */
UK_INLINE void copy_run(const struct uk_gemm_f32 *g, uint16_t *to, const struct tile *t,
                        size_t number, size_t rows, const bool is_bf16)
{
    const struct uk_segment *segment = &t->segments[number];
    const size_t there = t->run - (g->is_odd && t->last ? 1 : 0);
    const size_t step = PAIRS_OF(rows) * 2 * QUAD;
    for (size_t i = 0; i < rows; i += 2) {
        const float *one = move_a(g, t->from, (ptrdiff_t)i * t->a_row + segment->a);
        const float *two = i + 1 < rows ? move_a(g, one, t->a_row) : one;
        copy_pair(g, to + i * QUAD, step, one, two, there, segment->k % QUAD != 0, is_bf16);
    }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* acc += a quad of each pair of rows times those of two columns: of vector |j| the first two, or
 * with |half| the others. */
UK_INLINE void multiply_columns(vf acc[][UK_NV], const int8x16_t x[], int8x16_t w, const int j,
                                const int half, const int rows)
{
    UK_UNROLL
    for (int p = 0; p < PAIRS_OF(rows); p++) {
        __asm__("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(acc[2 * p + half][j]) : "w"(x[p]), "w"(w));
    }
}

/* Returns two quads of B of which |part| is left, and the other half is zeros. Shifts take no
 * register for zeros, of which there is none. */
UK_INLINE int8x16_t part_of(int8x16_t w, const enum part part)
{
    if (part == WHOLE) {
        return w;
    }
    uint64x2_t quads = (uint64x2_t)w;
    quads = part == LOW_HALF    ? vshrq_n_u64(vshlq_n_u64(quads, 32), 32)
            : part == HIGH_HALF ? vshlq_n_u64(vshrq_n_u64(quads, 32), 32)
                                : quads;
    return (int8x16_t)quads;
}

/* acc += a quad of each row times |part| of that of each column. */
UK_INLINE void multiply_quad(vf acc[][UK_NV], const uint8_t **a, const uint8_t **b,
                             const enum part part, const int rows, const int vectors)
{
    int8x16_t x[PAIRS_OF(UK_MR)], w[4] = {{0}};
    load_next(x, a, PAIRS_OF(rows));
    UK_UNROLL
    for (int j = 0; j < vectors; j += 2) {
        const int count = vectors - j < 2 ? 2 : 4;
        load_next(w, b, count);
        UK_UNROLL
        for (int i = 0; i < count; i++) {
            multiply_columns(acc, x, part_of(w[i], part), j + i / 2, i % 2, rows);
        }
    }
    *b += (UK_NV - vectors) * 32;
}

/* acc += the last two numbers of a panel, which lie in pairs. */
UK_INLINE void multiply_pair(vf acc[][UK_NV], const uint8_t *a, const uint8_t *b, const int rows,
                             const int vectors)
{
    int8x16_t x[PAIRS_OF(UK_MR)];
    load_next(x, &a, PAIRS_OF(rows));
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        uint32x4_t w = vld1q_u32((const uint32_t *)(const void *)(b + j * 16));
        multiply_columns(acc, x, (int8x16_t)vmovl_u32(vget_low_u32(w)), j, 0, rows);
        multiply_columns(acc, x, (int8x16_t)vmovl_high_u32(w), j, 1, rows);
    }
}

/* acc += the products of a run that begins with a quad, the first one at |a| and |b|. A last half
 * is that of the panel. */
UK_INLINE void accumulate_quads(vf acc[][UK_NV], const uint8_t *a, const uint8_t *b, size_t run,
                                const int rows, const int vectors)
{
    for (size_t k = run / (2 * QUAD); k > 0; k--) {
        multiply_quad(acc, &a, &b, WHOLE, rows, vectors);
        multiply_quad(acc, &a, &b, WHOLE, rows, vectors);
    }
    if (run & QUAD) {
        multiply_quad(acc, &a, &b, WHOLE, rows, vectors);
    }
    if (run & 2) {
        multiply_pair(acc, a, b, rows, vectors);
    }
}

/* Does run |number| of the tile begin with a quad, and end with one, or with the panel? */
UK_INLINE bool is_whole(const struct tile *t, size_t number)
{
    const size_t at = t->segments[number].k;
    return at % QUAD == 0 && (t->run % QUAD == 0 || at + t->run == t->depth);
}

/* acc += the products of any run. */
UK_INLINE void accumulate_part(vf acc[][UK_NV], const uint8_t *a, const uint8_t *b,
                               const struct tile *t, size_t number, int rows, int vectors)
{
    size_t run = t->run;
    if (t->segments[number].k % QUAD != 0) {
        multiply_quad(acc, &a, &b, HIGH_HALF, rows, vectors);
        run -= 2;
    }
    const bool is_end = t->segments[number].k + t->run == t->depth;
    const size_t whole = is_end ? run : run / QUAD * QUAD;
    accumulate_quads(acc, a, b, whole, rows, vectors);
    if (whole < run) {
        a += whole / QUAD * (size_t)PAIRS_OF(rows) * 16;
        b += whole * UK_NR * sizeof(uint16_t);
        multiply_quad(acc, &a, &b, LOW_HALF, rows, vectors);
    }
}

UK_INLINE const uint8_t *b_of(const struct tile *t, size_t number)
{
    return (const uint8_t *)(t->b + t->segments[number].k / QUAD * QUAD * UK_NR);
}

UK_INLINE void accumulate_run(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                              const int rows, const int vectors)
{
    const uint16_t *a = t->a + number * quads_of(t->run) * PAIRS_OF(rows) * 2 * QUAD;
    accumulate_quads(acc, (const uint8_t *)a, b_of(t, number), t->run, rows, vectors);
}

/* Apart from run_tile(), in which gcc would not find registers for all sums. Runs are copied one by
 * one, because their quads together may be twice as many. */
static __attribute__((noinline)) void run_parts(const struct tile *t, int rows, int vectors)
{
    const struct uk_gemm_f32 *g = t->parts_of;
    vf acc[UK_MR][UK_NV];
    begin(acc, t, rows, vectors, false);
    turn_pairs(acc, rows, vectors);
    for (size_t s = 0; s < t->segment_count; s++) {
        copy_run(g, g->scratch, t, s, (size_t)rows, g->a_is_bf16);
        accumulate_part(acc, g->scratch, b_of(t, s), t, s, rows, vectors);
    }
    turn_back(acc, rows, vectors);
    finish(acc, t, rows, vectors, false);
}

/* Copies the runs of a tile for all panels, if these begin and end with quads. */
static void run_rows(const struct uk_gemm_f32 *g, struct tile *t, size_t rows, size_t panel_begin,
                     size_t panel_end)
{
    struct tile copied = *t;
    uint16_t *to = g->scratch;
    for (size_t s = 0; s < t->segment_count; s++) {
        copied.parts_of = is_whole(t, s) ? copied.parts_of : g;
    }
    for (size_t s = 0; s < t->segment_count && !copied.parts_of; s++) {
        if (g->a_is_bf16) {
            copy_run(g, to, t, s, rows, true);
        } else {
            copy_run(g, to, t, s, rows, false);
        }
        to += quads_of(t->run) * PAIRS_OF(rows) * 2 * QUAD;
    }
    copied.a = g->scratch;
    run_panels(g, &copied, rows, panel_begin, panel_end);
}

#endif
