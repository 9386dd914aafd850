/* SPDX-License-Identifier: MIT */
/*
 * Matrix product and convolution in float. The unit of work is a row tile of A times a packed panel
 * of B. A step of k loads two vectors of B and broadcasts one element of A for each row. A is read
 * in place.
 */
#include "config.h"

#include "base/bytes.h"

typedef float a_number, b_number;
#ifdef UK_LEVEL_AVX512
#define HALF_TILES
#endif
#include "hal/cpu/uk/gemm_f32.h"

#define K_BLOCK 512
#define B_BLOCK (160 * 1024)    /* floats of B kept in a second-level cache of 1 MiB */
#define B_RESIDENT (200 * 1024) /* a B of this size stays there as a whole, and k is not split */
#define SKEW UK_VL              /* floats; maps the rows of a copied tile to different cache sets */

/* Floats of B that the products ask for ahead of their use: they stream B faster than the processor
 * notices that they do, and its own prefetches end at each page. */
#define B_AHEAD (32 * UK_NR)

#ifdef HALF_TILES
typedef vf_half half;
#else
/* Other levels have no narrow tiles. */
typedef vf half;
#define v_low(x) (x)
#define v_from_low(x) (x)
#define v_low_splat(x) v_splat(x)
#endif

/*
 * acc += the products of one run. Three rows share a base pointer, because x86 can address base,
 * base + stride and base + 2 * stride, and has not enough registers for fourteen pointers. The
 * empty asm statement keeps the compiler from undoing this. With |is_half| only the lower half of
 * the last vector is computed.
 */
UK_INLINE void accumulate(vf acc[UK_MR][2], const float *a, ptrdiff_t stride, const float *b,
                          size_t run, const int rows, const int vectors, const bool is_half)
{
    const float *base[(UK_MR + 2) / 3];
    const int last = vectors - 1;
    half low[UK_MR];
    UK_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        base[i] = a + 3 * i * stride;
    }
    UK_UNROLL
    for (int i = 0; is_half && i < rows; i++) {
        low[i] = v_low(acc[i][last]);
    }
    for (size_t k = 0; k < run; k++) {
        vf row_of_b[2];
        UK_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++) {
            __asm__("" : "+r"(base[i]), "+r"(stride));
        }
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            row_of_b[j] = v_load_aligned(b + j * UK_VL);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *from = base[i / 3] + i % 3 * stride;
            if (is_half && last == 0) { /* loads of whole vectors would take as long as all else */
                low[i] += v_low_splat(*from) * v_low(row_of_b[0]);
                continue;
            }
            vf x = v_splat(*from);
            UK_UNROLL
            for (int j = 0; j < vectors - is_half; j++) {
                acc[i][j] += x * row_of_b[j];
            }
            if (is_half) {
                low[i] += v_low(x) * v_low(row_of_b[last]);
            }
        }
        UK_UNROLL
        for (int i = 0; i < (rows + 2) / 3; i++) {
            base[i]++;
        }
        if (rows > 1) {
            __builtin_prefetch(b + B_AHEAD);
            __builtin_prefetch(b + B_AHEAD + UK_VL);
        }
        b += UK_NR;
    }
    UK_UNROLL
    for (int i = 0; is_half && i < rows; i++) {
        acc[i][last] = v_from_low(low[i]);
    }
}

UK_INLINE void accumulate_run(vf acc[UK_MR][2], const struct tile *t, size_t number, const int rows,
                              const int vectors)
{
    const struct uk_segment *segment = &t->segments[number];
    accumulate(acc, t->a + segment->a, t->a_row, t->b + segment->k * UK_NR, t->run, rows, vectors,
               false);
}

#ifdef HALF_TILES
UK_INLINE void run_half(const struct tile *t, const int rows, const int vectors)
{
    vf acc[UK_MR][2];
    begin(acc, t, rows, vectors, true);
    for (size_t s = 0; s < t->segment_count; s++) {
        const struct uk_segment *segment = &t->segments[s];
        accumulate(acc, t->a + segment->a, t->a_row, t->b + segment->k * UK_NR, t->run, rows,
                   vectors, true);
    }
    finish(acc, t, rows, vectors, true);
}

#define HALF(rows)                                                                                 \
    static void half_##rows##_narrow(const struct tile *t)                                         \
    {                                                                                              \
        run_half(t, rows, 1);                                                                      \
    }                                                                                              \
    static void half_##rows##_wide(const struct tile *t)                                           \
    {                                                                                              \
        run_half(t, rows, 2);                                                                      \
    }
EACH_ROWS(HALF)

#define HALF_ROW(rows) {half_##rows##_narrow, half_##rows##_wide},
static tile_f *const halves[UK_MR][2] = {EACH_ROWS(HALF_ROW)};

/* Half a vector takes half the time on processors that split whole ones. */
static tile_f *tile_for(size_t rows, size_t width)
{
    bool is_half = (width - 1) % UK_VL < UK_VL / 2;
    bool is_wide = width > UK_VL;
    return is_half ? halves[rows - 1][is_wide] : tiles[rows - 1][is_wide];
}
#endif

/*
 * If the distance of rows is a multiple of a page, they map to the same few sets of the first-level
 * cache and evict each other. Then the tile is copied to rows with another distance. Only for runs
 * of one segment: rows of a convolution rarely have such a distance.
 */
static bool needs_skew(const struct uk_gemm_f32 *g)
{
    return uk_gemm_f32_is_paged(g->a_row) && g->m > 1 && g->segment_count <= 1 &&
           g->n >= UK_GEMM_F32_SKEW_PANELS * UK_NR;
}

static __attribute__((noinline)) void run_skewed(const struct uk_gemm_f32 *g, const struct tile *t,
                                                 size_t rows, size_t panel_begin, size_t panel_end)
{
    float copy[UK_MR * (K_BLOCK + SKEW)];
    struct uk_segment segment = {0, t->segments->k};
    struct tile skewed = *t;
    for (size_t i = 0; i < rows; i++) {
        memcpy(copy + i * (K_BLOCK + SKEW), t->from + t->segments->a + (ptrdiff_t)i * t->a_row,
               t->run * sizeof(float));
    }
    skewed.a = copy;
    skewed.a_row = K_BLOCK + SKEW;
    skewed.segments = &segment;
    run_panels(g, &skewed, rows, panel_begin, panel_end);
}

static void run_rows(const struct uk_gemm_f32 *g, struct tile *t, size_t rows, size_t panel_begin,
                     size_t panel_end)
{
    if (needs_skew(g) && t->run <= K_BLOCK) {
        run_skewed(g, t, rows, panel_begin, panel_end);
    } else {
        t->a = t->from;
        run_panels(g, t, rows, panel_begin, panel_end);
    }
}

void UK_NAME(gemm_f32)(const struct uk_gemm_f32 *g)
{
    uk_check_product(g);
    size_t depth = (size_t)g->run * (g->segments ? g->segment_count : 1);
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    bool one_pass = depth * panels * UK_NR <= B_RESIDENT || (g->lines == 1 && g->m <= UK_MR);
    /* If the residual is C itself, C cannot hold sums between blocks of k. */
    bool whole_k = g->residual == g->c || (one_pass && !needs_skew(g));
    size_t limit = whole_k ? depth : K_BLOCK;
    size_t block = panels;
    if (!one_pass) {
        size_t panel_floats = (depth < limit ? depth : limit) * UK_NR;
        block = panel_floats < B_BLOCK ? B_BLOCK / panel_floats : 1;
    }
    run_all(g, limit, block);
}
