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
 * A strip is a struct uk_sorted_head, for each word its place, and the words. The copy of a tile
 * has its rows in each of the three orders; a place is a word of a row, in the first to the last
 * order.
 */
#ifndef PTED_HAL_CPU_UK_GEMM_U8_SORTED_H
#define PTED_HAL_CPU_UK_GEMM_U8_SORTED_H

#include "hal/cpu/uk/gemm_u8.h"
#include "hal/cpu/uk/u8_sorted.h"

/* Column |column| of the strips of |t|. */
struct strip {
    const uint16_t *ends, *places;
    const uint8_t *words;
};

UK_INLINE struct strip strip_of(const struct tile *t, int j)
{
    const uint8_t *from = t->b + (size_t)j * uk_sorted_bytes_u8(UK_VL, t->words * 4);
    const struct uk_sorted_head *head = (const void *)from;
    return (struct strip){.ends = head->ends[t->greatest / UK_SORTED_STEP],
                          .places = (const uint16_t *)(const void *)(head + 1),
                          .words = from + uk_sorted_bytes_u8(0, t->words * 4)};
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

/* acc += the products of the words from |begin| on, of 16 bits: of the even bytes, then the odd. */
UK_INLINE void add_widened(vi acc[UK_MR], const struct tile *t, const struct strip *strip,
                           size_t begin, const int rows)
{
    for (size_t w = begin; w < t->words; w++) {
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

UK_INLINE void accumulate_sorted(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                                 const int vectors)
{
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        const struct strip strip = strip_of(t, j);
        const uint16_t *ends = strip.ends;
        vi sums[UK_MR] = {{0}};
        add_bytes(sums, t, &strip, 0, ends[UK_SORTED_FOUR], rows, 4);
        add_bytes(sums, t, &strip, ends[UK_SORTED_FOUR], ends[UK_SORTED_TWO], rows, 2);
        add_bytes(sums, t, &strip, ends[UK_SORTED_TWO], ends[UK_SORTED_ONE], rows, 1);
        if (ends[UK_SORTED_ONE] < t->words) {
            add_widened(sums, t, &strip, ends[UK_SORTED_ONE], rows);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            acc[i][j] = sums[i];
        }
    }
}

/* ---- what a tile works on -------------------------------------------------------------------- */

/* Copies a run of whole words in each order, to places |row| bytes apart, and raises |greatest| to
 * its numbers. */
UK_INLINE vb copy_orders(uint8_t *to, size_t row, const uint8_t *a, size_t run, vb greatest)
{
    for (size_t k = 0; k < run; k += UK_VECTOR_BYTES) {
        size_t left = run - k < UK_VECTOR_BYTES ? run - k : UK_VECTOR_BYTES;
        vb x = v_load_bytes(a + k, left);
        greatest = v_max_1(greatest, x);
        UK_UNROLL
        for (int i = 0; i < UK_SORTED_ORDERS; i++) {
            v_store_bytes(to + (size_t)i * row + k, v_in_order(x, i), left);
        }
    }
    return greatest;
}

/* Copies the rows of a tile and finds their greatest number. */
UK_INLINE void sorted_begin_rows(const struct uk_gemm_u8 *g, struct tile *t, size_t rows)
{
    const size_t row_bytes = UK_SORTED_ORDERS * g->k + SKEW;
    uint8_t *to = g->scratch;
    vb greatest = {0};
    for (size_t i = 0; i < rows; i++) {
        for (size_t s = 0; s < t->segment_count; s++) {
            greatest =
                copy_orders(to + i * row_bytes + s * t->run, g->k,
                            t->a + (ptrdiff_t)i * t->a_row + t->segments[s].a, t->run, greatest);
        }
    }
    t->words = g->k / 4;
    t->greatest = v_greatest_1(greatest);
    t->a = to;
    t->a_row = (ptrdiff_t)row_bytes;
    t->evens = NULL;
    t->rows = rows;
}

/* Makes rows of the even and of the odd bytes of all words, each as a number of 16 bits. */
UK_INLINE void widen_rows(const struct uk_gemm_u8 *g, struct tile *t)
{
    const size_t row_bytes = 2 * g->k + SKEW;
    const vh low = 0xff - (vh){0};
    uint8_t *to = (uint8_t *)g->scratch + UK_MR * (size_t)t->a_row;
    t->evens = to;
    t->evens_row = (ptrdiff_t)row_bytes;
    for (size_t i = 0; i < t->rows; i++, to += row_bytes) {
        const uint8_t *from = t->a + (ptrdiff_t)i * t->a_row;
        for (size_t k = 0; k < g->k; k += UK_VECTOR_BYTES) {
            size_t left = g->k - k < UK_VECTOR_BYTES ? g->k - k : UK_VECTOR_BYTES;
            vh x = (vh)v_load_bytes(from + k, left);
            v_store_bytes(to + k, (vb)(x & low), left);
            v_store_bytes(to + g->k + k, (vb)(x >> 8), left);
        }
    }
}

/* Makes what the panel needs at which |t| is. */
UK_INLINE void sorted_begin_panel(const struct uk_gemm_u8 *g, struct tile *t)
{
    for (int j = 0; j < UK_NV && !t->evens; j++) {
        const struct strip strip = strip_of(t, j);
        if (strip.ends[UK_SORTED_ONE] < t->words) {
            widen_rows(g, t);
        }
    }
}

#endif
