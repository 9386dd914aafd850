/* SPDX-License-Identifier: MIT */
/*
 * Matrix product and convolution in float. The unit of work is a row tile of A times a packed panel
 * of B. A step of k loads two vectors of B and broadcasts one element of A for each row. A is read
 * in place.
 */
#include "config.h"

#include "base/bytes.h"
#include "hal/cpu/uk/simd.h"

typedef float a_number, b_number;
#ifdef UK_LEVEL_AVX512
#define HALF_TILES
#endif
#include "hal/cpu/uk/gemm_f32.h"

#define K_BLOCK 512
#define B_RESIDENT (200 * 1024) /* a B of this size stays there as a whole, and k is not split */
#define SKEW UK_VL              /* floats; maps the rows of a copied tile to different cache sets */

/* Floats of B that are multiplied by all rows before the next ones, which come from memory
 * meanwhile: both lie in a second-level cache of 1 MiB. Few rows are fast done with the first ones,
 * which nothing has asked for, so there are few of them. Many rows would be read too often. */
#define B_BLOCK (80 * 1024)
#define B_BLOCK_SHORT (16 * 1024)
#define SHORT_TILES 15

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

#ifdef UK_LEVEL_NEON
#include "hal/cpu/uk/gemm_f32_neon.h"

UK_INLINE void run_segment(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                           const int rows, const int vectors, const bool is_half)
{
    const struct uk_segment *segment = &t->segments[number];
    (void)is_half;
    accumulate(acc, t->a + segment->a, t->a_row, t->b + segment->k * UK_NR, t->run, rows, vectors);
}
#else
/* Memory that each step of k asks for ahead of its use. */
struct asked {
    const char *at;
    size_t step;
};

/* Row |i| of a tile: see below. */
UK_INLINE const float *row_of(const char *const base[3], ptrdiff_t stride, ptrdiff_t triple,
                              const int i)
{
    const char *from = base[i / 5];
    return (const float *)(const void *)(i % 5 == 3 ? from + triple : from + i % 5 * stride);
}

/*
 * acc += the products of one run. Five rows share a base pointer, because x86 can address base,
 * base + stride and base + 2 and 4 * stride, and has not enough registers for fourteen pointers.
 * The empty asm statements keep the compiler from undoing this. With |is_half| only the lower half
 * of the last vector is computed.
 */
UK_INLINE void accumulate(vf acc[UK_MR][UK_NV], const float *a, ptrdiff_t row, const float *b,
                          size_t run, struct asked ask, const int rows, const int vectors,
                          const bool is_half)
{
    const char *base[3];
    ptrdiff_t stride = row * (ptrdiff_t)sizeof(float), triple = 3 * stride;
    const float *end = b + run * UK_NR;
    const int last = vectors - 1;
    half low[UK_MR];
    UK_UNROLL
    for (int i = 0; i < (rows + 4) / 5; i++) {
        base[i] = (const char *)(a + 5 * i * row);
    }
    if (is_half) {
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            low[i] = v_low(acc[i][last]);
        }
    }
    __asm__("" : "+r"(stride), "+r"(triple));
    for (; b != end; b += UK_NR) {
        vf row_of_b[2];
        UK_UNROLL
        for (int i = 0; i < (rows + 4) / 5; i++) {
            __asm__("" : "+r"(base[i]));
        }
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            row_of_b[j] = v_load_aligned(b + j * UK_VL);
        }
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            const float *from = row_of(base, stride, triple, i);
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
        for (int i = 0; i < (rows + 4) / 5; i++) {
            base[i] += sizeof(float);
        }
        if (rows > 1) {
            __builtin_prefetch(b + B_AHEAD);
            __builtin_prefetch(b + B_AHEAD + UK_VL);
            __builtin_prefetch(ask.at, 0, 2); /* to the second-level cache */
        } else {
            __builtin_prefetch(ask.at);
            __builtin_prefetch(ask.at + UK_VECTOR_BYTES);
        }
        ask.at += ask.step;
    }
    if (is_half) {
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            acc[i][last] = v_from_low(low[i]);
        }
    }
}

/* Run |number| of a tile asks for its part of the next round's B, or, if there is none, for its
 * own. A single row asks for its own or, again and again, for what it has. */
UK_INLINE struct asked asked_by(const struct tile *t, size_t number, const int rows)
{
    if (rows == 1 && !t->asks_ahead) {
        return (struct asked){(const char *)(t->b + t->segments[number].k * UK_NR), 0};
    }
    if (rows > 1 && t->next) {
        return (struct asked){t->ahead + number * t->run * t->ahead_step, t->ahead_step};
    }
    const float *own = t->b + t->segments[number].k * UK_NR + B_AHEAD;
    return (struct asked){(const char *)own, UK_NR * sizeof(float)};
}

UK_INLINE void run_segment(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                           const int rows, const int vectors, const bool is_half)
{
    const struct uk_segment *segment = &t->segments[number];
    accumulate(acc, t->a + segment->a, t->a_row, t->b + segment->k * UK_NR, t->run,
               asked_by(t, number, rows), rows, vectors, is_half);
}
#endif

UK_INLINE void accumulate_run(vf acc[UK_MR][UK_NV], const struct tile *t, size_t number,
                              const int rows, const int vectors)
{
    run_segment(acc, t, number, rows, vectors, false);
}

#ifdef HALF_TILES
UK_INLINE void run_half(const struct tile *t, const int rows, const int vectors)
{
    vf acc[UK_MR][UK_NV];
    begin(acc, t, rows, vectors, true);
    for (size_t s = 0; s < t->segment_count; s++) {
        run_segment(acc, t, s, rows, vectors, true);
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

/* More rows than one tile has, but few? */
static bool has_few_rows(const struct uk_gemm_f32 *g)
{
    size_t rows = (size_t)g->lines * g->m;
    return rows > UK_MR && rows < (size_t)SHORT_TILES * UK_MR;
}

/* Panels, with |depth| rows each, of a block. Rows are copied once for each block. */
static size_t block_of(const struct uk_gemm_f32 *g, size_t depth)
{
    size_t floats = has_few_rows(g) ? B_BLOCK_SHORT : B_BLOCK, panel = depth * UK_NR;
    size_t least = needs_skew(g) ? UK_GEMM_F32_SKEW_PANELS : 1;
    return panel > 0 && panel * least < floats ? floats / panel : least;
}

void UK_NAME(gemm_f32)(const struct uk_gemm_f32 *g)
{
    uk_check_product(g);
    size_t depth = (size_t)g->run * (g->segments ? g->segment_count : 1);
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    bool one_pass = depth * panels * UK_NR <= B_RESIDENT || (g->lines == 1 && g->m <= UK_MR);
    bool is_short = has_few_rows(g);
    /* If the residual is C itself, C cannot hold sums between blocks of k. */
    bool whole_k = g->residual == g->c || (one_pass && !needs_skew(g));
    size_t limit = whole_k ? depth : K_BLOCK;
    run_all(g, limit, one_pass && !is_short ? panels : block_of(g, depth < limit ? depth : limit));
}
