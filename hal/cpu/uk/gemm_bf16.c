/* SPDX-License-Identifier: MIT */
/*
 * Matrix product and convolution of floats that are rounded to bfloat16: A tile by tile, B when it
 * is packed. The instruction adds the products of two neighbouring k to a float, so B is packed in
 * pairs of rows and a run has an even length. A row tile is copied once for all panels that it is
 * multiplied by. Numbers below the smallest normal float count as zero, whatever the thread's mode.
 * On aarch64 an instruction takes four neighbouring k, and panels and copies are other ones: see
 * gemm_bf16_neon.h.
 */
#include "config.h"

#include "base/bytes.h"

typedef uint16_t a_number, b_number;
#define HAS_BF16
#ifdef __aarch64__
#define ROW_PAIRS
#endif
#include "hal/cpu/uk/round_bf16.h"

#include "hal/cpu/uk/gemm_f32.h"

#define K_BLOCK 1024
#define PAGE_NUMBERS (4096 / (ptrdiff_t)sizeof(uint16_t))
#define B_BLOCK (320 * 1024) /* numbers of B kept in a second-level cache of 1 MiB */

#if defined UK_LEVEL_NEON
#include "hal/cpu/uk/gemm_bf16_neon.h"
#else
/* acc[i] += the two products of each lane of |b| with the pair |a|. */
UK_INLINE vf add_products(vf acc, vi a, vi b)
{
    /* gcc 12 spills the sums around its own function for this. */
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(acc) : "v"(b), "v"(a));
    return acc;
}

/* The pair of numbers at |p| in each lane. */
UK_INLINE vi broadcast_pair(const uint16_t *p)
{
    int32_t pair;
    memcpy(&pair, p, sizeof(pair));
    return (vi)_mm512_set1_epi32(pair);
}

/* See accumulate() of gemm_f32.c for the base pointers. */
UK_INLINE void accumulate(vf acc[][UK_NV], const uint16_t *a, ptrdiff_t stride, const uint16_t *b,
                          size_t run, const int rows, const int vectors)
{
    const uint16_t *base[(UK_MR + 2) / 3];
    UK_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        base[i] = a + 3 * i * stride;
    }
    for (size_t k = 0; k < run; k += 2) {
        vi pairs_of_b[2];
        UK_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++) {
            __asm__("" : "+r"(base[i]), "+r"(stride));
        }
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            pairs_of_b[j] = *(const vi *)(const void *)(b + j * 2 * UK_VL);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            vi x = broadcast_pair(base[i / 3] + i % 3 * stride);
            UK_UNROLL
            for (int j = 0; j < vectors; j++) {
                acc[i][j] = add_products(acc[i][j], x, pairs_of_b[j]);
            }
        }
        UK_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++) {
            base[i] += 2;
        }
        b += 2 * UK_NR;
    }
}
/* The rows of the tile that have no run |number|, of which there is one at most. */
static unsigned skip_of(const struct tile *t, size_t number)
{
    unsigned there = (t->has_first ? UK_SKIP_FIRST : 0) | (t->has_last ? UK_SKIP_LAST : 0);
    return t->skips ? t->skips[number] & there : 0;
}

/* In a copy the runs follow each other, also those whose neighbours were left out. */
UK_INLINE void accumulate_run(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                              const int rows, const int vectors)
{
    ptrdiff_t at = t->is_in_place ? t->segments[number].a : (ptrdiff_t)(number * t->run);
    const uint16_t *a = t->a + at, *b = t->b + t->segments[number].k * UK_NR;
    switch (skip_of(t, number)) {
    case 0:
        accumulate(acc, a, t->a_row, b, t->run, rows, vectors);
        break;
    case UK_SKIP_FIRST:
        accumulate(acc + 1, a + t->a_row, t->a_row, b, t->run, rows - 1, vectors);
        break;
    default:
        accumulate(acc, a, t->a_row, b, t->run, rows - 1, vectors);
        break;
    }
}

/* Rows at distances of pages would evict each other from the first-level cache. */
static bool reads_in_place(const struct uk_gemm_f32 *g)
{
    return g->a_is_bf16 && !g->is_odd && g->a_row % PAGE_NUMBERS != 0;
}

/* Copies a row tile behind g->scratch, with rows that lie in different sets of the cache. */
static void run_rows(const struct uk_gemm_f32 *g, struct tile *t, size_t rows, size_t panel_begin,
                     size_t panel_end)
{
    if (reads_in_place(g)) {
        t->a = (const uint16_t *)(const void *)t->from;
        t->is_in_place = true;
        run_panels(g, t, rows, panel_begin, panel_end);
        return;
    }
    size_t lacking = g->is_odd && t->last ? 1 : 0;
    struct tile copied = *t;
    uint16_t *copy = g->scratch;
    copied.a = copy;
    copied.a_row = (ptrdiff_t)uk_gemm_bf16_row(t->segment_count * t->run);
    for (size_t i = 0; i < rows; i++) {
        for (size_t s = 0; s < t->segment_count; s++) {
            unsigned skip = skip_of(t, s);
            if ((i == 0 && skip == UK_SKIP_FIRST) || (i == rows - 1 && skip == UK_SKIP_LAST)) {
                continue;
            }
            uint16_t *to = copy + (ptrdiff_t)i * copied.a_row + s * t->run;
            const float *from = move_a(g, t->from, (ptrdiff_t)i * t->a_row + t->segments[s].a);
            if (g->a_is_bf16) {
                memcpy(to, from, (t->run - lacking) * sizeof(*to));
            } else {
                round_run(to, from, t->run - lacking);
            }
            memset(to + t->run - lacking, 0, lacking * sizeof(*to));
        }
    }
    run_panels(g, &copied, rows, panel_begin, panel_end);
}
#endif

void UK_NAME(gemm_bf16)(const struct uk_gemm_f32 *g)
{
    uk_check_product(g);
    must(g->run % 2 == 0 && g->k % 2 == 0);
    size_t depth = (size_t)g->run * (g->segments ? g->segment_count : 1);
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    /* If the residual is C itself, C cannot hold sums between blocks of k; nor can bfloat16. */
    bool is_whole = g->residual == g->c || g->c_is_bf16 || depth < K_BLOCK;
    size_t limit = is_whole ? depth : K_BLOCK;
    size_t panel = limit * UK_NR, block = panels;
    if (depth * panels * UK_NR > B_BLOCK && (g->lines > 1 || g->m > UK_MR)) {
        block = panel < B_BLOCK ? B_BLOCK / panel : 1;
    }
    run_all(g, limit, block);
}
