/* SPDX-License-Identifier: MIT */
/* Chooses the order of each word of a strip, sorts the words by their bounds, and notes the place
 * of each: see gemm_u8_sorted.h. */
#ifndef PTED_HAL_CPU_UK_PACK_U8_SORTED_H
#define PTED_HAL_CPU_UK_PACK_U8_SORTED_H

#include "hal/cpu/uk/u8_sorted.h"

#define BOUND_MAX 256 /* two weights of -128 */

/* Where a word of a part goes, which then becomes the place that it came from. */
#define TARGET(word, order) ((uint16_t)((word) | (order) << 8))
#define WORD_OF(target) ((size_t)(target) % 256)
#define ORDER_OF(target) ((size_t)(target) / 256)

/* Returns the largest sum of the positive, or of the negative weights, of a pair. */
static uint32_t bound_of(vb word)
{
    const vi ones = (vi)(1 - (vb){0});
    vs both = (vs)word, zero = {0};
    vs even = (vs)((vh)both << 8) >> 8, odd = both >> 8;
    vs above = (even & (even > zero)) + (odd & (odd > zero));
    vs below = above - v_multiply_bytes(ones, (vi)both);
    vs is_above = above > below;
    return v_greatest_2((above & is_above) | (below & ~is_above));
}

/* Puts the weights of a word in the order with the least bound; returns the order. Words that may
 * be widened keep the first one. */
static uint32_t choose_order(uint8_t *word, uint32_t *out_bound)
{
    vb natural = V_GET(vb, word), best = natural;
    uint32_t order = 0;
    *out_bound = bound_of(natural);
    UK_UNROLL
    for (int i = 1; i < UK_SORTED_ORDERS; i++) {
        vb other = v_in_order(natural, i);
        uint32_t bound = bound_of(other);
        if (bound < *out_bound && bound <= INT16_MAX / UINT8_MAX) {
            *out_bound = bound;
            best = other;
            order = (uint32_t)i;
        }
    }
    V_PUT(word, best);
    return order;
}

/* Words that are added in 16 bits together. */
static const uint32_t shares[UK_SORTED_ENDS] = {4, 2, 1};

static uint32_t bound_max(uint32_t row, uint32_t end)
{
    return INT16_MAX / (UK_SORTED_STEP * (row + 1) - 1) / shares[end];
}

/* |counts| are the words of each bound. */
static void set_ends(struct uk_sorted_head *head, const uint32_t counts[BOUND_MAX + 1])
{
    for (uint32_t row = 0; row < UK_SORTED_ROWS; row++) {
        uint32_t begin = 0;
        for (uint32_t e = 0; e < UK_SORTED_ENDS; e++) {
            uint32_t end = 0;
            for (uint32_t i = 0; i <= BOUND_MAX && i <= bound_max(row, e); i++) {
                end += counts[i];
            }
            /* Whole steps; the words that are left belong to the next kind. */
            begin += (end - begin) / shares[e] * shares[e];
            head->ends[row][e] = (uint16_t)begin;
        }
    }
}

/* For each bound, the first of those that no end is between: their words stay in the order of k, in
 * which the tile reads its rows. */
static void find_firsts(uint16_t firsts[BOUND_MAX + 1])
{
    bool is_end[BOUND_MAX + 1] = {false};
    for (uint32_t i = 0; i < UK_SORTED_ROWS * UK_SORTED_ENDS; i++) {
        uint32_t most = bound_max(i / UK_SORTED_ENDS, i % UK_SORTED_ENDS);
        is_end[most < BOUND_MAX ? most : BOUND_MAX] = true;
    }
    firsts[0] = 0;
    for (uint32_t i = 1; i <= BOUND_MAX; i++) {
        firsts[i] = is_end[i - 1] ? (uint16_t)i : firsts[i - 1];
    }
}

/* Moves each of |count| words of a part to its target in |places|, which become the words of a row
 * that they came from: the part's are from |first| on, of |row| words. */
static void move_words(uint8_t *words, uint16_t *places, size_t count, size_t first, size_t row)
{
    bool has_arrived[UK_SORTED_PART] = {false};
    for (size_t i = 0; i < count; i++) {
        vb held = V_GET(vb, words + i * UK_VECTOR_BYTES);
        size_t from = i;
        uint16_t target = places[i];
        while (!has_arrived[from]) {
            size_t to = WORD_OF(target);
            uint16_t next = places[to];
            vb displaced = V_GET(vb, words + to * UK_VECTOR_BYTES);
            V_PUT(words + to * UK_VECTOR_BYTES, held);
            places[to] = (uint16_t)(ORDER_OF(target) * row + first + from);
            has_arrived[from] = true;
            from = to;
            target = next;
            held = displaced;
        }
    }
}

/* Sorts |count| words, of a row from |first| on. */
static void sort_part(struct uk_sorted_head *head, uint8_t *words, uint16_t *places, size_t count,
                      size_t first, size_t row)
{
    uint32_t counts[BOUND_MAX + 1] = {0}, at[BOUND_MAX + 1] = {0}, bound;
    uint16_t firsts[BOUND_MAX + 1];
    for (size_t i = 0; i < count; i++) {
        uint32_t order = choose_order(words + i * UK_VECTOR_BYTES, &bound);
        places[i] = TARGET(0, order);
        counts[bound]++;
    }
    set_ends(head, counts);
    find_firsts(firsts);
    for (size_t i = 0; i < BOUND_MAX; i++) {
        at[i + 1] = at[i] + counts[i];
    }
    for (size_t i = 0; i < count; i++) {
        bound = bound_of(V_GET(vb, words + i * UK_VECTOR_BYTES));
        places[i] = TARGET(places[i] + at[firsts[bound]]++, 0);
    }
    move_words(words, places, count, first, row);
}

/* |strip| has |row| words, in their order in k, behind its front. */
static void sort_strip(uint8_t *strip, size_t row)
{
    struct uk_sorted_head *heads = (void *)strip;
    uint16_t *places = (uint16_t *)(void *)(heads + uk_sorted_parts_u8(row));
    uint8_t *words = strip + uk_sorted_bytes_u8(0, row * 4);
    for (size_t first = 0; first < row; first += UK_SORTED_PART) {
        size_t left = row - first, count = left < UK_SORTED_PART ? left : UK_SORTED_PART;
        sort_part(heads++, words + first * UK_VECTOR_BYTES, places + first, count, first, row);
    }
}

#endif
