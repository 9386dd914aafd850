/* SPDX-License-Identifier: MIT */
/*
 * Sums of products of bytes on levels without dot products, whose instruction (vpmaddubsw) adds two
 * products of bytes in 16 bits and saturates. It is exact where the sum is sure to fit, and takes
 * less time than products of 16 bits.
 *
 * What is sure depends on the weights and on the greatest number of A in a tile. A word of a strip,
 * UK_VL columns wide, has the weights of four neighbours in k, in two pairs. Its bound is the
 * largest sum of the positive, or of the negative weights, of a pair: no sum of its products
 * exceeds the greatest number times the bound. pack_u8 chooses for each word the pairs with the
 * least bound, of three ways, if no number of A exceeds 16 bits with them, and sorts the words by
 * their bounds. So for any greatest number the words are in this order: those of which four are
 * added in 16 bits, two, one, and at last those that are widened, whose neighbours stay in order.
 * Integer sums are the same in any order.
 *
 * A strip is a struct uk_sorted_head for each part, for each word its place, and the words. The
 * copy of a tile has its rows in each of the three orders; a place is a word of a row, in the first
 * to the last order.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_SORTED_H
#define PTED_HAL_CPU_UK_GEMM_U8_SORTED_H

#include "hal/cpu/uk/gemm_u8.h"
#include "hal/cpu/uk/u8_sorted.h"

/* Column |column| of the strips of |t|. */
struct strip {
    const struct uk_sorted_head *heads; /* by parts */
    const uint16_t *places;
    const uint8_t *words;
};

UK_INLINE struct strip strip_of(const struct tile *t, int j)
{
    const uint8_t *from = t->b + (size_t)j * uk_sorted_bytes_u8(UK_VL, t->words * 4);
    const struct uk_sorted_head *heads = (const void *)from;
    size_t parts = uk_sorted_parts_u8(t->words);
    return (struct strip){.heads = heads,
                          .places = (const uint16_t *)(const void *)(heads + parts),
                          .words = from + uk_sorted_bytes_u8(0, t->words * 4)};
}

/* The words of a part. */
struct part {
    size_t begin, end;
    const uint16_t *ends; /* from |begin| on */
};

UK_INLINE struct part part_of(const struct tile *t, const struct strip *strip, size_t number)
{
    size_t begin = number * UK_SORTED_PART, left = t->words - begin;
    return (struct part){.begin = begin,
                         .end = begin + (left < UK_SORTED_PART ? left : UK_SORTED_PART),
                         .ends = strip->heads[number].ends[t->greatest / UK_SORTED_STEP]};
}

/* Sums of 16 bits, of |count| words. */
UK_INLINE vs v_byte_sums(const uint8_t *const a[], ptrdiff_t at, const vi b[], const int count)
{
    vs sum = {0};
    UK_UNROLL
    for (int q = 0; q < count; q++) {
        vs products = v_multiply_bytes(v_splat_int(V_GET(int32_t, a[q] + at)), b[q]);
        sum = q == 0 ? products : sum + products;
    }
    return sum;
}

/* acc += the products of the words [begin, end), |count| of which fit 16 bits together. */
UK_INLINE void add_bytes(vi acc[UK_MR], const struct tile *t, const struct strip *strip,
                         size_t begin, size_t end, const int rows, const int count)
{
    vs one = 1 - (vs){0};
    __asm__("" : "+x"(one));
    for (size_t w = begin; w < end; w += (size_t)count) {
        const uint8_t *a[4];
        vi b[4];
        UK_UNROLL
        for (int q = 0; q < count; q++) {
            b[q] = V_GET(vi, strip->words + (w + (size_t)q) * UK_VECTOR_BYTES);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            UK_UNROLL
            for (int q = 0; q < count; q++) { /* three rows share a pointer, as in gemm_f32.c */
                a[q] = t->a + 4 * (size_t)strip->places[w + (size_t)q] + i / 3 * 3 * t->a_row;
            }
            acc[i] = v_dot(acc[i], (vi)v_byte_sums(a, i % 3 * t->a_row, b, count), (vi)one);
        }
    }
}

/* acc += the products of the words [begin, end), of 16 bits: of the even bytes, then the odd. */
UK_INLINE void add_widened(vi acc[UK_MR], const struct tile *t, const struct strip *strip,
                           size_t begin, size_t end, const int rows)
{
    for (size_t w = begin; w < end; w++) {
        const uint8_t *a = t->evens + 4 * (size_t)strip->places[w];
        vs both = V_GET(vs, strip->words + w * UK_VECTOR_BYTES);
        vs even = (vs)((vh)both << 8) >> 8, odd = both >> 8;
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            const uint8_t *row = a + i * t->evens_row;
            acc[i] = v_dot(acc[i], v_splat_int(V_GET(int32_t, row)), (vi)even);
            row += t->words * 4;
            acc[i] = v_dot(acc[i], v_splat_int(V_GET(int32_t, row)), (vi)odd);
        }
    }
}

UK_INLINE void add_part(vi acc[UK_MR], const struct tile *t, const struct strip *strip,
                        size_t number, const int rows)
{
    const struct part part = part_of(t, strip, number);
    const size_t four = part.begin + part.ends[UK_SORTED_FOUR];
    const size_t two = part.begin + part.ends[UK_SORTED_TWO];
    const size_t one = part.begin + part.ends[UK_SORTED_ONE];
    add_bytes(acc, t, strip, part.begin, four, rows, 4);
    add_bytes(acc, t, strip, four, two, rows, 2);
    add_bytes(acc, t, strip, two, one, rows, 1);
    if (one < part.end) {
        add_widened(acc, t, strip, one, part.end, rows);
    }
}

UK_INLINE void accumulate_sorted(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                                 const int vectors)
{
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        const struct strip strip = strip_of(t, j);
        vi sums[UK_MR];
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            sums[i] = acc[i][j];
        }
        for (size_t i = 0; i < uk_sorted_parts_u8(t->words); i++) {
            add_part(sums, t, &strip, i, rows);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            acc[i][j] = sums[i];
        }
    }
}

/* ---- what a tile works on -------------------------------------------------------------------- */

/* Copies the runs of a row behind each other in each order, and raises |greatest| to their numbers.
 * What is written behind a run is in the next one, or in the SKEW behind the last. */
UK_INLINE vb copy_runs(uint8_t *to, const struct tile *t, const uint8_t *a, vb greatest)
{
    UK_UNROLL
    for (int i = 0; i < UK_SORTED_ORDERS; i++) {
        for (size_t s = 0; s < t->segment_count; s++, to += t->run) {
            const uint8_t *from = a + t->segments[s].a;
            for (size_t k = 0; k < t->run; k += UK_VECTOR_BYTES) {
                vb x = v_in_order(v_load_words(from + k, t->run - k), i);
                greatest = i == 0 ? v_max_1(greatest, x) : greatest;
                V_PUT(to + k, x);
            }
        }
    }
    return greatest;
}

/* Copies the rows of a tile and finds their greatest number. Rows may be of several lines. */
static void sorted_begin_rows(const struct uk_gemm_u8 *g, struct tile *t, size_t line, size_t first,
                              size_t rows)
{
    const size_t row_bytes = UK_SORTED_ORDERS * g->k + SKEW;
    uint8_t *to = g->scratch;
    vb greatest = {0};
    line += first / g->m;
    for (size_t i = 0, row = first % g->m; i < rows; i++, row++) {
        if (row == g->m) {
            row = 0;
            line++;
        }
        const uint8_t *a = g->a + (ptrdiff_t)line * g->a_line + (ptrdiff_t)row * g->a_row;
        greatest = copy_runs(to + i * row_bytes, t, a, greatest);
    }
    t->words = g->k / 4;
    t->greatest = v_greatest_1(greatest);
    t->a = to;
    t->a_row = (ptrdiff_t)row_bytes;
    t->evens = NULL;
    t->rows = rows;
}

/* Makes rows of the even and of the odd bytes of all words, each as a number of 16 bits. */
static void widen_rows(const struct uk_gemm_u8 *g, struct tile *t)
{
    const size_t row_bytes = 2 * g->k + SKEW;
    const vh low = 0xff - (vh){0};
    uint8_t *to = (uint8_t *)g->scratch + UK_MR * (size_t)t->a_row;
    t->evens = to;
    t->evens_row = (ptrdiff_t)row_bytes;
    for (size_t i = 0; i < t->rows; i++, to += row_bytes) {
        const uint8_t *from = t->a + (ptrdiff_t)i * t->a_row;
        for (size_t k = 0; k < g->k; k += UK_VECTOR_BYTES) {
            vh x = (vh)V_GET(vb, from + k) & low;
            V_PUT(to + k, x);
        }
        for (size_t k = 0; k < g->k; k += UK_VECTOR_BYTES) {
            vh x = (vh)V_GET(vb, from + k) >> 8;
            V_PUT(to + g->k + k, x);
        }
    }
}

/* Makes what the panel needs at which |t| is. */
static void sorted_begin_panel(const struct uk_gemm_u8 *g, struct tile *t)
{
    const size_t parts = uk_sorted_parts_u8(t->words);
    for (size_t i = 0; i < UK_NV * parts && !t->evens; i++) {
        const struct strip strip = strip_of(t, (int)(i / parts));
        const struct part part = part_of(t, &strip, i % parts);
        if (part.begin + part.ends[UK_SORTED_ONE] < part.end) {
            widen_rows(g, t);
        }
    }
}

#endif
