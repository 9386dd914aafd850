/* SPDX-License-Identifier: MIT */
/*
 * The product of gemm_bf16.c with AMX, from the same panels: their pairs of numbers are the words
 * of the instruction. A tile of C has up to 32 rows, of any lines, and one panel of 32 columns:
 * four tiles of sums, which stay in registers over all of k. Rows of A are read where they lie if
 * they are bfloat16 at equal distances. Else they are rounded behind |scratch| and multiplied by
 * all panels of a block: to copy 32 rows takes about as long as to multiply them by one panel.
 *
 * The instruction sums the even k of a step and the odd ones, then both, then adds that to C. So an
 * element depends on how k is cut into steps, which only its own runs decide: few rows take the
 * same way as many. An element is its products, then bias, then residual, then the clamp. Source:
 * Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, TDPBF16PS.
 */
#include "config.h"

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/round_bf16.h"

#define AMX_DOT AMX_DOT_BF16
#include "hal/cpu/uk/amx_run.h"

#define PAGE_BYTES 4096
#define B_BLOCK (320 * 1024) /* numbers of B kept in a second-level cache */

_Static_assert(UK_BF16_MR == 2 * AMX_ROWS, "two blocks of rows");

/* What all tiles of a call share. */
struct product {
    const struct uk_gemm_f32 *g;
    const struct uk_segment *segments;
    size_t segment_count, run;
    bool is_one_run;    /* the runs follow each other in k: only one of them has a shorter end */
    bool is_in_place;   /* A is not copied; it has one run */
    size_t pitch;       /* numbers from one row of the copy to the next */
    size_t rows, tiles; /* of all lines; tiles share them evenly */
    size_t height;      /* rows of a block */
};

/* The first row of a tile, and where it lies. */
struct place {
    size_t line, at;
};

static struct place place_of(const struct product *p, size_t row)
{
    return (struct place){row / p->g->m, row % p->g->m};
}

static void go_on(const struct product *p, struct place *place)
{
    if (++place->at == p->g->m) {
        place->at = 0;
        place->line++;
    }
}

static ptrdiff_t offset(const struct place *place, ptrdiff_t line, ptrdiff_t row)
{
    return (ptrdiff_t)place->line * line + (ptrdiff_t)place->at * row;
}

/* Rounds |rows| rows behind |scratch|, the runs of each one behind the other. */
static void copy_rows(const struct product *p, struct place place, size_t rows)
{
    uint16_t *to = p->g->scratch;
    size_t there = p->run - (p->g->is_odd ? 1 : 0);
    for (size_t i = 0; i < rows; i++, to += p->pitch, go_on(p, &place)) {
        ptrdiff_t row = offset(&place, p->g->a_line, p->g->a_row);
        for (size_t s = 0; s < p->segment_count; s++) {
            ptrdiff_t at = row + p->segments[s].a;
            if (p->g->a_is_bf16) {
                const uint16_t *from = (const uint16_t *)(const void *)p->g->a + at;
                memcpy(to + s * p->run, from, there * sizeof(*to));
            } else {
                round_run(to + s * p->run, p->g->a + at, there);
            }
            memset(to + s * p->run + there, 0, (p->run - there) * sizeof(*to));
        }
    }
}

/* Stores columns [column, column + width) of one row. */
static void finish_row(const struct uk_gemm_f32 *g, const struct place *place, const float *sums,
                       size_t column, size_t width)
{
    ptrdiff_t at = offset(place, g->c_line, g->c_row) + (ptrdiff_t)column;
    const float *bias = g->bias ? g->bias + column : NULL;
    const float *residual =
        g->residual ? g->residual + offset(place, g->residual_line, g->residual_row) + column
                    : NULL;
    float activated[UK_VL];
    for (size_t j = 0; j < width; j += UK_VL) {
        size_t n = width - j < UK_VL ? width - j : UK_VL;
        vf y = v_load_aligned(sums + j);
        if (bias) {
            y += v_load_part(bias + j, n);
        }
        if (residual) {
            y += v_load_part(residual + j, n);
        }
        y = v_clamp(y, v_splat(g->min), v_splat(g->max));
        if (g->activation) {
            v_store(activated, y);
            g->activation(activated, activated, n);
            y = v_load(activated);
        }
        if (g->c_is_bf16) {
            store_bf16((uint16_t *)(void *)g->c + at + j, y, n);
        } else {
            v_store_part(g->c + at + j, y, n);
        }
    }
}

static size_t run_bytes(const struct product *p)
{
    return p->run * (p->is_one_run ? p->segment_count : 1) * sizeof(uint16_t);
}

/* The bytes of the rows of a tile. */
static struct amx_run rows_of(const struct product *p, const struct place *place)
{
    const struct uk_gemm_f32 *g = p->g;
    if (!p->is_in_place) {
        return (struct amx_run){.a = g->scratch, .a_row = (ptrdiff_t)(p->pitch * sizeof(uint16_t))};
    }
    ptrdiff_t at = offset(place, g->a_line, g->a_row) + p->segments[0].a;
    return (struct amx_run){
        .a = (const uint8_t *)g->a + at * (ptrdiff_t)sizeof(uint16_t),
        .a_row = g->a_row * (ptrdiff_t)sizeof(uint16_t),
    };
}

/* One tile of C. The second block of rows ends with the last one, so it may share a row with the
 * first: both have the same sums of it. */
static void run_tile(const struct product *p, struct place place, size_t rows, size_t panel)
{
    _Alignas(64) float sums[UK_BF16_MR][UK_NR];
    const struct uk_gemm_f32 *g = p->g;
    size_t column = panel * UK_NR, width = g->n - column < UK_NR ? g->n - column : UK_NR;
    const uint16_t *b = (const uint16_t *)g->b + panel * g->k * UK_NR;
    bool is_wide = width > UK_VL, is_tall = rows > p->height;
    size_t run_count = p->is_one_run ? 1 : p->segment_count;
    struct amx_run run = rows_of(p, &place);
    const uint8_t *a = run.a;
    ptrdiff_t second = is_tall ? (ptrdiff_t)(rows - p->height) : 0;
    run.bytes = run_bytes(p);
    run.second = second * run.a_row;
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    for (size_t s = 0; s < run_count; s++) {
        run.a = a + s * run.bytes;
        run.b = (const uint8_t *)(b + p->segments[s].k * UK_NR);
        amx_add_run(&run, is_wide);
    }
    AMX_STORE(0, &sums[0][0], sizeof(sums[0]));
    AMX_STORE(1, &sums[0][UK_VL], sizeof(sums[0]));
    if (is_tall) {
        AMX_STORE(2, &sums[second][0], sizeof(sums[0]));
        AMX_STORE(3, &sums[second][UK_VL], sizeof(sums[0]));
    }
    for (size_t i = 0; i < rows; i++, go_on(p, &place)) {
        finish_row(g, &place, sums[i], column, width);
    }
}

static void choose_runs(struct product *p, struct uk_segment *from_start)
{
    const struct uk_gemm_f32 *g = p->g;
    *from_start = (struct uk_segment){0, 0};
    p->segments = g->segments ? g->segments : from_start;
    p->segment_count = g->segments ? g->segment_count : 1;
    p->run = g->run;
    p->is_one_run = p->segment_count > 0;
    for (size_t s = 1; s < p->segment_count; s++) {
        p->is_one_run &= p->segments[s].k == p->segments[s - 1].k + p->run;
    }
}

/* Rows whose distance is a multiple of a page would evict each other from the first-level cache.
 * With several runs the end of each one would be a step of its own, and so its sums others. */
static bool reads_in_place(const struct product *p)
{
    const struct uk_gemm_f32 *g = p->g;
    bool is_even = g->lines == 1 || g->a_line == (ptrdiff_t)g->m * g->a_row;
    return g->a_is_bf16 && !g->is_odd && p->segment_count == 1 && is_even &&
           g->a_row * (ptrdiff_t)sizeof(uint16_t) % PAGE_BYTES != 0;
}

static void choose_rows(struct product *p)
{
    p->rows = (size_t)p->g->lines * p->g->m;
    p->tiles = (p->rows + UK_BF16_MR - 1) / UK_BF16_MR;
    size_t most = p->tiles ? (p->rows + p->tiles - 1) / p->tiles : 1;
    p->height = most > AMX_ROWS ? (most + 1) / 2 : most;
}

static void run_block(const struct product *p, size_t panel_begin, size_t panel_end)
{
    for (size_t i = 0; i < p->tiles; i++) {
        size_t row = p->rows * i / p->tiles, rows = p->rows * (i + 1) / p->tiles - row;
        struct place place = place_of(p, row);
        if (!p->is_in_place) {
            copy_rows(p, place, rows);
        }
        for (size_t panel = panel_begin; panel < panel_end; panel++) {
            run_tile(p, place, rows, panel);
        }
    }
}

void UK_NAME(gemm_bf16)(const struct uk_gemm_f32 *g)
{
    struct uk_segment from_start;
    struct product p = {.g = g};
    uk_check_product(g);
    must(g->run % 2 == 0 && g->k % 2 == 0);
    choose_runs(&p, &from_start);
    choose_rows(&p);
    p.is_in_place = reads_in_place(&p);
    size_t depth = p.segment_count * p.run, panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    size_t panel = depth * UK_NR + 1, block = panel < B_BLOCK ? B_BLOCK / panel : 1;
    p.pitch = uk_gemm_bf16_row(depth);
    if (p.tiles <= 1) {
        block = panels;
    }
    amx_configure_run(p.height, run_bytes(&p));
    for (size_t i = 0; i < panels; i += block) {
        run_block(&p, i, panels - i > block ? i + block : panels);
    }
    amx_release();
}
