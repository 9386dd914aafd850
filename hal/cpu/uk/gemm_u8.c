/* SPDX-License-Identifier: MIT */
/*
 * Matrix product and convolution of 8-bit integers, structured like gemm_f32.c, with these
 * differences: a step of k is a word of UK_WORD numbers; the sums stay in registers over all of k,
 * because an 8-bit result cannot hold them; a level with 16-bit words first copies each tile of A,
 * widened, once for all panels.
 *
 * Weights with scales for groups of k need a second sum, in floats, so their tiles are smaller.
 *
 * One row of them takes as long as memory needs for the panels. Zen 4 fetches a single stream ahead
 * at its full rate, but not a stream that alternates with others, not even with lines that are in
 * the second-level cache. So panels may have the scales and columns in them, and nothing is asked
 * for ahead there, which takes longer. Processors with AMX read faster if it is, and four panels
 * side by side faster than one, so levels with AMX set |asks_ahead|. docs/project/figures.md has
 * the rates.
 */
#include "config.h"

#include "base/bytes.h"
#include "hal/cpu/uk/gemm_u8.h"
#include "hal/cpu/uk/level.h"

/* Rows of a tile that keeps two sums for each element. Sums of floats stay in registers for all of
 * k, and those of integers for a group. Above GROUPED_WHOLE rows half of them have those of their
 * rows, then the other half, which unpacks the weights of the group again. */
#if UK_MR == 14 && UK_WORD == 4
#define GROUPED_MR 8
#define GROUPED_WHOLE 6
#elif UK_MR == 14
#define GROUPED_MR 6
#elif UK_MR == 12
#define GROUPED_MR 5
#elif defined UK_LEVEL_I8MM
#define GROUPED_MR 4 /* pairs of rows */
#elif UK_NV == 4
#define GROUPED_MR 3
#else
#define GROUPED_MR 2
#endif
#ifndef GROUPED_WHOLE
#define GROUPED_WHOLE GROUPED_MR
#endif

/* Bytes of a panel, see |asks_ahead|; and where so many rows ask for them on all processors, since
 * a group takes longer than memory needs for it: no stream is fetched ahead far enough then. */
#define AHEAD_BYTES 1024
#define ROWS_AHEAD_BYTES 2048
#define ASKING_ROWS (UK_MR == 14 ? 5 : UK_MR + 1)
#define LINE_BYTES 64

/* Panels that one row takes side by side on these levels. */
#define BESIDE 4

typedef void tile_f(const struct tile *t);

/* ---- sums ------------------------------------------------------------------------------------ */

#if defined UK_LEVEL_I8MM
#include "hal/cpu/uk/gemm_u8_i8mm.h"
#elif defined UK_LEVEL_NEON
#include "hal/cpu/uk/gemm_u8_neon.h"
#else
/* acc += |rows| words of a times |vectors| vectors of words of b. */
UK_INLINE void multiply(vi acc[UK_MR][UK_NV], const uint8_t *const base[(UK_MR + 2) / 3],
                        ptrdiff_t stride, const vi b[UK_NV], const int rows, const int vectors)
{
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        vi a = v_splat_int(V_GET(int32_t, base[i / 3] + i % 3 * stride));
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = v_dot(acc[i][j], a, b[j]);
        }
    }
}

UK_INLINE void step(const uint8_t *base[(UK_MR + 2) / 3], const int rows)
{
    UK_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        base[i] += 4;
    }
}

/* Three rows share a base pointer, for the reason given in gemm_f32.c. */
UK_INLINE void hold(const uint8_t *base[(UK_MR + 2) / 3], ptrdiff_t *stride, const int rows)
{
    UK_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        __asm__("" : "+r"(base[i]), "+r"(*stride));
    }
}

/* acc += the products of the |words| words of one run. */
UK_INLINE void accumulate(vi acc[UK_MR][UK_NV], const uint8_t *a, ptrdiff_t stride,
                          const uint8_t *b, size_t words, const int rows, const int vectors,
                          const bool is_4bit)
{
    const uint8_t *base[(UK_MR + 2) / 3];
    UK_UNROLL
    for (int i = 0; i < (rows + 2) / 3; i++) {
        base[i] = a + 3 * i * stride;
    }
    for (size_t k = 0; k < words; k += is_4bit ? 2 : 1) {
        v_words raw[UK_NV];
        vi row_of_b[UK_NV];
        hold(base, &stride, rows);
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            raw[j] = V_GET(v_words, b + (size_t)j * UK_WORDS_BYTES);
            row_of_b[j] = v_words_of(is_4bit ? v_low_halves(raw[j]) : raw[j]);
        }
        multiply(acc, base, stride, row_of_b, rows, vectors);
        step(base, rows);
        if (is_4bit) {
            UK_UNROLL
            for (int j = 0; j < vectors; j++) {
                row_of_b[j] = v_words_of(v_high_halves(raw[j]));
            }
            multiply(acc, base, stride, row_of_b, rows, vectors);
            step(base, rows);
        }
        b += UK_NR * UK_WORD;
    }
}
#endif

#if UK_SORTS
#include "hal/cpu/uk/gemm_u8_sorted.h"
#else
UK_INLINE void accumulate_sorted(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows,
                                 const int vectors)
{
    (void)acc;
    (void)t;
    (void)rows;
    (void)vectors;
}

UK_INLINE void sorted_begin_rows(const struct uk_gemm_u8 *g, struct tile *t, size_t line,
                                 size_t first, size_t rows)
{
    (void)g;
    (void)t;
    (void)line;
    (void)first;
    (void)rows;
}

UK_INLINE void sorted_begin_panel(const struct uk_gemm_u8 *g, struct tile *t)
{
    (void)g;
    (void)t;
}
#endif

/* ---- tiles ----------------------------------------------------------------------------------- */

#if !UK_ROW_PAIRS
/* Where sums lie in another order while products are added, brings them from there, and there. */
UK_INLINE void settle(vi acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    (void)acc;
    (void)rows;
    (void)vectors;
}

UK_INLINE void unsettle(vi acc[UK_MR][UK_NV], const int rows, const int vectors)
{
    (void)acc;
    (void)rows;
    (void)vectors;
}
#endif

/* Lets the sums begin: with an odd number of rows, also those of the one behind them. */
UK_INLINE void begin(vi acc[UK_MR][UK_NV], const struct tile *t, const int rows, const int vectors)
{
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        vi first = first_sum(t, j);
        UK_UNROLL
        for (int i = 0; i < (rows + 1) / 2 * 2; i++) {
            acc[i][j] = first;
            V_APART(acc[i][j]);
        }
    }
    unsettle(acc, rows, vectors);
}

UK_INLINE void clear(vi acc[UK_MR][UK_NV], const int rows)
{
    UK_UNROLL
    for (int i = 0; i < (rows + 1) / 2 * 2 * UK_NV; i++) {
        acc[i / UK_NV][i % UK_NV] = (vi){0};
    }
}

UK_INLINE void run_tile(const struct tile *t, const int rows, const int vectors, const bool is_4bit)
{
    const bool is_sorted = UK_SORTS && !is_4bit && t->is_sorted;
    vi acc[UK_MR][UK_NV];
    begin(acc, t, rows, vectors);
    if (is_sorted) {
        accumulate_sorted(acc, t, rows, vectors);
    }
    for (size_t s = 0; s < t->segment_count && !is_sorted; s++) {
        size_t k = t->segments[s].k * UK_NR / (is_4bit ? 2 : 1), words = t->run / UK_WORD;
        const uint8_t *a = t->a + (UK_COPIES || t->is_copied ? (ptrdiff_t)(s * words * A_STEP(rows))
                                                             : t->segments[s].a);
        accumulate(acc, a, t->a_row, t->b + k, words, rows, vectors, is_4bit);
    }
    settle(acc, rows, vectors);
    finish(acc, t, rows, vectors);
}

/* Asks for the bytes of a group that are |distance| behind |b|. */
UK_INLINE void ask_ahead(const struct tile *t, const uint8_t *b, size_t distance)
{
    for (size_t i = 0; i < t->group_bytes; i += LINE_BYTES) {
        __builtin_prefetch(b + distance + i);
    }
}

/* sums += the products of a group, times its scales. */
UK_INLINE void add_group(vf sums[][UK_NV], const struct tile *t, const uint8_t *a, const uint8_t *b,
                         const uint8_t *scales, const int rows, const int vectors,
                         const bool is_4bit)
{
    const size_t scale_bytes = t->has_short_scales ? sizeof(uint16_t) : sizeof(float);
    vi acc[UK_MR][UK_NV];
    clear(acc, rows);
    accumulate(acc, a, t->a_row, b, t->group_words, rows, vectors, is_4bit);
    settle(acc, rows, vectors);
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        const uint8_t *from = scales + (size_t)j * UK_VL * scale_bytes;
        vf scale = t->has_short_scales ? v_widen_upper(V_GET(v_shorts, from)) : V_GET(vf, from);
        UK_UNROLL
        for (int i = 0; i < rows; i++) {
            vf sum = __builtin_convertvector(acc[i][j], vf);
            sums[i][j] = v_multiply_add(sum, scale, sums[i][j]);
        }
    }
}

UK_INLINE void clear_sums(vf sums[UK_MR][UK_NV], const int rows)
{
    UK_UNROLL
    for (int i = 0; i < rows * UK_NV; i++) {
        sums[i / UK_NV][i % UK_NV] = (vf){0};
    }
}

/* Does it for all rows of a tile. One row would be slower with a question in each group. */
UK_INLINE void add_group_rows(vf sums[UK_MR][UK_NV], const struct tile *t, const uint8_t *a,
                              const uint8_t *b, const uint8_t *scales, const int rows,
                              const int vectors, const bool is_4bit)
{
    const int part = rows <= GROUPED_WHOLE ? rows : (rows + 1) / 2;
    if (rows >= ASKING_ROWS) {
        ask_ahead(t, b, ROWS_AHEAD_BYTES);
    } else if (rows > 1 && t->asks_ahead) {
        ask_ahead(t, b, AHEAD_BYTES);
    }
    add_group(sums, t, a, b, scales, part, vectors, is_4bit);
    if (part < rows) {
        add_group(sums + part, t, a + part * t->a_row, b, scales, rows - part, vectors, is_4bit);
    }
}

/* For a single run. */
UK_INLINE void run_grouped(const struct tile *t, const int rows, const int vectors,
                           const bool is_4bit)
{
    const uint8_t *a = t->a + (t->is_copied ? 0 : t->segments->a), *b = t->b;
    const uint8_t *scales = t->group_scales;
    vf sums[UK_MR][UK_NV];
    clear_sums(sums, rows);
    for (size_t words = t->run / UK_WORD, k = 0; k < words; k += t->group_words) {
        add_group_rows(sums, t, a, b, scales, rows, vectors, is_4bit);
        a += t->group_words * A_STEP(rows);
        b += t->group_bytes;
        scales += t->scales_step;
    }
    finish_grouped(sums, t, rows, vectors);
}

/* clang-format off */
#if UK_MR == 14
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6) XX(7) XX(8) XX(9) XX(10) XX(11) XX(12) \
    XX(13) XX(14)
#if UK_WORD == 4
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6) XX(7) XX(8)
#else
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6)
#endif
#elif UK_MR == 12
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6) XX(7) XX(8) XX(9) XX(10) XX(11) XX(12)
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5)
#else
#define EACH_ROWS(XX) XX(1) XX(2) XX(3) XX(4) XX(5) XX(6)
#if defined UK_LEVEL_I8MM
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2) XX(3) XX(4)
#elif UK_NV == 4
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2) XX(3)
#else
#define EACH_GROUPED_ROWS(XX) XX(1) XX(2)
#endif
#endif

#define TILE(form, rows, vectors, bits) \
    static void form##_##rows##_##vectors##_##bits(const struct tile *t) \
    { \
        form(t, rows, vectors, bits == 4); \
    }
/* By rows - 1; vectors - 1; 8 or 4 bits. */
#define BITS(form, rows, vectors) TILE(form, rows, vectors, 8) TILE(form, rows, vectors, 4)
#define EACH_BITS(form, rows, vectors) \
    {form##_##rows##_##vectors##_8, form##_##rows##_##vectors##_4}
#if UK_NV == 4
#define FORMS(form, rows) BITS(form, rows, 1) BITS(form, rows, 2) BITS(form, rows, 3) \
    BITS(form, rows, 4)
#define FORM_ROW(form, rows) {EACH_BITS(form, rows, 1), EACH_BITS(form, rows, 2), \
                              EACH_BITS(form, rows, 3), EACH_BITS(form, rows, 4)},
#else
#define FORMS(form, rows) BITS(form, rows, 1) BITS(form, rows, 2)
#define FORM_ROW(form, rows) {EACH_BITS(form, rows, 1), EACH_BITS(form, rows, 2)},
#endif
#define TILES(rows) FORMS(run_tile, rows)
#define GROUPED_TILES(rows) FORMS(run_grouped, rows)
#define TILE_ROW(rows) FORM_ROW(run_tile, rows)
#define GROUPED_ROW(rows) FORM_ROW(run_grouped, rows)
EACH_ROWS(TILES)
EACH_GROUPED_ROWS(GROUPED_TILES)
static tile_f *const tiles[UK_MR][UK_NV][2] = {EACH_ROWS(TILE_ROW)};
static tile_f *const grouped_tiles[GROUPED_MR][UK_NV][2] = {EACH_GROUPED_ROWS(GROUPED_ROW)};
/* clang-format on */

/* ---- panels side by side --------------------------------------------------------------------- */

/* One row times |count| whole panels from |p| on; |t| is at the first one. The results are the same
 * as with one panel after the other. */
UK_INLINE void run_beside(const struct uk_gemm_u8 *g, struct tile *t, size_t line, size_t first,
                          size_t p, const int count, const bool is_4bit)
{
    const uint8_t *a = t->a + (t->is_copied ? 0 : t->segments->a), *b = t->b;
    const uint8_t *scales = t->group_scales;
    const size_t next = t->panel_bytes;
    const size_t next_scales = g->columns ? g->k / g->group * t->scales_step : next;
    vf sums[BESIDE][UK_MR][UK_NV];
    UK_UNROLL
    for (int i = 0; i < count; i++) {
        clear_sums(sums[i], 1);
    }
    for (size_t words = t->run / UK_WORD, k = 0; k < words; k += t->group_words) {
        UK_UNROLL
        for (int i = 0; i < count; i++) {
            ask_ahead(t, b + (size_t)i * next, AHEAD_BYTES);
            add_group(sums[i], t, a, b + (size_t)i * next, scales + (size_t)i * next_scales, 1,
                      UK_NV, is_4bit);
        }
        a += t->group_words * A_STEP(1);
        b += t->group_bytes;
        scales += t->scales_step;
    }
    UK_UNROLL
    for (int i = 0; i < count; i++) {
        tile_begin_panel(g, t, line, first, p + (size_t)i);
        begin_groups(g, t, p + (size_t)i);
        finish_grouped(sums[i], t, 1, UK_NV);
    }
}

#define BESIDE_FORM(count, bits)                                                                   \
    static void beside_##count##_##bits(const struct uk_gemm_u8 *g, struct tile *t, size_t line,   \
                                        size_t first, size_t p)                                    \
    {                                                                                              \
        run_beside(g, t, line, first, p, count, bits == 4);                                        \
    }
BESIDE_FORM(2, 8)
BESIDE_FORM(2, 4)
BESIDE_FORM(4, 8)
BESIDE_FORM(4, 4)

/* How many panels of [p, end) a row takes side by side. */
static size_t count_beside(const struct uk_gemm_u8 *g, const struct tile *t, size_t rows, size_t p,
                           size_t end)
{
    const size_t whole = g->n / UK_NR < end ? g->n / UK_NR : end;
    if (rows != 1 || !t->asks_ahead || whole < p + 2) {
        return 1;
    }
    return whole - p < BESIDE ? 2 : BESIDE;
}

/* Computes panel |p| of a product with groups, or some panels from there on; how many. */
static size_t run_grouped_panels(const struct uk_gemm_u8 *g, struct tile *t, size_t line,
                                 size_t first, size_t rows, size_t p, size_t end)
{
    const size_t count = count_beside(g, t, rows, p, end);
    begin_groups(g, t, p);
    if (count == BESIDE) {
        (g->is_4bit ? beside_4_4 : beside_4_8)(g, t, line, first, p);
    } else if (count == 2) {
        (g->is_4bit ? beside_2_4 : beside_2_8)(g, t, line, first, p);
    } else {
        grouped_tiles[rows - 1][(t->width - 1) / UK_VL][g->is_4bit](t);
    }
    return count;
}

/* ---- around them ----------------------------------------------------------------------------- */

/* Computes panels [begin, end) of |rows| rows from (line, first) on. */
static void run_panels(const struct uk_gemm_u8 *g, struct tile *t, size_t line, size_t first,
                       size_t rows, size_t panel_begin, size_t panel_end)
{
    for (size_t p = panel_begin; p < panel_end;) {
        tile_begin_panel(g, t, line, first, p);
        if (t->is_sorted) {
            sorted_begin_panel(g, t);
        }
        if (g->group) {
            p += run_grouped_panels(g, t, line, first, rows, p, panel_end);
        } else {
            tiles[rows - 1][(t->width - 1) / UK_VL][g->is_4bit](t);
            p++;
        }
    }
}

/* Does the same for panels without groups and sorted words, whose tiles are alike except the last.
 */
static void run_alike(const struct uk_gemm_u8 *g, struct tile *t, size_t line, size_t first,
                      size_t rows, size_t panel_begin, size_t panel_end)
{
    tile_f *const whole = tiles[rows - 1][UK_NV - 1][g->is_4bit];
    tile_begin_panel(g, t, line, first, panel_begin);
    for (size_t left = panel_end - panel_begin; left > 1; left--) {
        whole(t);
        tile_next_panel(t);
    }
    set_width(g, t, panel_end - 1);
    tiles[rows - 1][(t->width - 1) / UK_VL][g->is_4bit](t);
}

/* A tile with sorted words copies each of its rows, which may be of several lines if the rows of
 * the result are as far apart everywhere. */
static bool joins_lines(const struct uk_gemm_u8 *g)
{
    return g->is_sorted && g->c_line == (ptrdiff_t)g->m * g->c_row &&
           (!g->row_scales || g->rows_line == (ptrdiff_t)g->m);
}

/* Computes the row tiles of |m| rows from the first one of |line| on. They share the rows evenly,
 * so that none has only a row or two. */
static void run_line(const struct uk_gemm_u8 *g, struct tile *t, size_t line, size_t m,
                     size_t panel_begin, size_t panel_end)
{
    const size_t mr = g->group ? GROUPED_MR : UK_MR, count = (m + mr - 1) / mr;
    size_t first = 0, share = m / count, more = m % count;
    for (size_t i = 0; i < count; i++) {
        size_t rows = share + (i < more);
        tile_begin_rows(g, t, line, first, rows);
        if (t->is_sorted) {
            sorted_begin_rows(g, t, line, first, rows);
        }
        if (g->group || t->is_sorted) {
            run_panels(g, t, line, first, rows, panel_begin, panel_end);
        } else {
            run_alike(g, t, line, first, rows, panel_begin, panel_end);
        }
        first += rows;
    }
}

static void check(const struct uk_gemm_u8 *g)
{
    const size_t unit = g->is_4bit ? 2 * UK_RUN_U8 : UK_RUN_U8;
    must(g->run % unit == 0 && g->k % unit == 0);
    must(g->segments || (g->run <= g->k && g->run <= UK_DEPTH_U8_MAX));
    for (uint32_t i = 0; g->segments && i < g->segment_count; i++) {
        must(g->segments[i].k % unit == 0 && in_range(g->segments[i].k, g->run, g->k));
    }
    must(!g->group || (g->group % 8 == 0 && g->run % g->group == 0 && g->k % g->group == 0));
    must(!g->group ? g->columns != NULL : !g->columns == !g->group_scales);
    must(!g->group || !g->segments || g->segment_count == 1);
    must(!g->c_u8 != !g->c_f32 && (!g->row_scales || g->row_zeros));
    must(g->scratch || reads_in_place(g));
    must(!g->is_sorted || (UK_SORTS && !g->is_4bit && !g->group && g->k <= UK_DEPTH_U8_MAX));
    for (uint32_t i = 0; g->is_sorted && g->segments && i < g->segment_count; i++) {
        must(g->segments[i].k == (size_t)i * g->run);
    }
    must(!g->is_sorted || g->k == (size_t)(g->segments ? g->segment_count : 1) * g->run);
}

void UK_NAME(gemm_u8)(const struct uk_gemm_u8 *g)
{
    check(g);
    const size_t mr = g->group ? GROUPED_MR : UK_MR;
    const size_t joined = joins_lines(g) ? g->lines : 1, m = g->m * joined;
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    size_t block = g->lines == 1 && g->m <= mr ? panels : panels_at_once(g);
    struct uk_segment from_start;
    struct tile t = tile_of(g, &from_start);
#if defined UK_LEVEL_NEON
    vi sums[UK_MR][UK_NV];
    t.sums = sums;
#endif
    if (g->group) {
        set_groups(g, &t);
    }
    for (size_t p = 0; p < panels && m > 0; p += block) {
        size_t panel_end = panels - p > block ? p + block : panels;
        for (size_t line = 0; line < g->lines; line += joined) {
            run_line(g, &t, line, m, p, panel_end);
        }
    }
}
