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

/* ---- from sums to results -------------------------------------------------------------------- */

/* The columns of a panel as two vectors: how many there are in each, and what all rows share. */
struct columns {
    size_t first, n[2];
    vf bias[2], min, max;
};

static struct columns columns_of(const struct uk_gemm_f32 *g, size_t panel)
{
    size_t first = panel * UK_NR, width = g->n - first < UK_NR ? g->n - first : UK_NR;
    struct columns c = {.first = first, .min = v_splat(g->min), .max = v_splat(g->max)};
    c.n[0] = width < UK_VL ? width : UK_VL;
    c.n[1] = width - c.n[0];
    for (size_t i = 0; g->bias && i < 2; i++) {
        c.bias[i] = v_load_part(g->bias + first + i * UK_VL, c.n[i]);
    }
    return c;
}

/* Bias, residual and clamp of a row. */
UK_INLINE void complete(const struct columns *c, const float *sums, const float *residual, vf y[2])
{
    UK_UNROLL
    for (size_t i = 0; i < 2; i++) {
        y[i] = v_load_aligned(sums + i * UK_VL) + c->bias[i];
        if (residual) {
            y[i] += v_load_part(residual + i * UK_VL, c->n[i]);
        }
        y[i] = v_clamp(y[i], c->min, c->max);
    }
}

UK_INLINE void store_row(void *row, const struct columns *c, const vf y[2], const bool is_bf16,
                         const bool is_whole)
{
    if (is_bf16 && is_whole) {
        __m512bh pair = _mm512_cvtne2ps_pbh((__m512)y[1], (__m512)y[0]);
        memcpy((uint16_t *)row + c->first, &pair, sizeof(pair));
    } else if (is_bf16) {
        store_bf16((uint16_t *)row + c->first, y[0], c->n[0]);
        store_bf16((uint16_t *)row + c->first + UK_VL, y[1], c->n[1]);
    } else if (is_whole) {
        v_store((float *)row + c->first, y[0]);
        v_store((float *)row + c->first + UK_VL, y[1]);
    } else {
        v_store_part((float *)row + c->first, y[0], c->n[0]);
        v_store_part((float *)row + c->first + UK_VL, y[1], c->n[1]);
    }
}

/* Rows of one line: from |sums| to |to|. */
struct rows {
    float (*sums)[UK_NR];
    size_t count;
    const float *residual; /* or NULL */
    uint8_t *to;
};

UK_INLINE void store_rows(const struct uk_gemm_f32 *g, const struct columns *columns,
                          const struct rows *r, const bool is_bf16, const bool is_whole)
{
    const struct columns c = *columns; /* registers: what is stored is not part of it */
    const ptrdiff_t c_bytes = g->c_row * (ptrdiff_t)(is_bf16 ? sizeof(uint16_t) : sizeof(float));
    const bool is_complete = g->activation != NULL;
    for (size_t i = 0; i < r->count; i++) {
        vf y[2] = {v_load_aligned(r->sums[i]), v_load_aligned(r->sums[i] + UK_VL)};
        if (!is_complete) {
            const float *residual =
                r->residual ? r->residual + (ptrdiff_t)i * g->residual_row : NULL;
            complete(&c, r->sums[i], residual, y);
        }
        store_row(r->to + (ptrdiff_t)i * c_bytes, &c, y, is_bf16, is_whole);
    }
}

/* The activation takes all rows at once, with the columns of a panel that are not there. */
static void activate_rows(const struct uk_gemm_f32 *g, const struct columns *c,
                          const struct rows *r)
{
    for (size_t i = 0; i < r->count; i++) {
        vf y[2];
        complete(c, r->sums[i],
                 r->residual ? r->residual + (ptrdiff_t)i * g->residual_row : NULL, y);
        v_store(r->sums[i], y[0]);
        v_store(r->sums[i] + UK_VL, y[1]);
    }
    g->activation(r->sums[0], r->sums[0], r->count * UK_NR);
}

static void finish_rows(const struct uk_gemm_f32 *g, const struct columns *c, const struct rows *r)
{
    bool is_whole = c->n[1] == UK_VL;
    if (g->activation) {
        activate_rows(g, c, r);
    }
    if (g->c_is_bf16 && is_whole) {
        store_rows(g, c, r, true, true);
    } else if (g->c_is_bf16) {
        store_rows(g, c, r, true, false);
    } else if (is_whole) {
        store_rows(g, c, r, false, true);
    } else {
        store_rows(g, c, r, false, false);
    }
}

/* Makes results of |rows| rows of sums from |place| on, a line at a time. */
static void finish_tile(const struct product *p, struct place place, size_t rows, size_t panel,
                        float (*sums)[UK_NR])
{
    const struct uk_gemm_f32 *g = p->g;
    const struct columns columns = columns_of(g, panel);
    while (rows > 0) {
        size_t count = g->m - place.at < rows ? g->m - place.at : rows;
        ptrdiff_t at = offset(&place, g->c_line, g->c_row);
        const float *residual = g->residual
                                    ? g->residual + columns.first +
                                          offset(&place, g->residual_line, g->residual_row)
                                    : NULL;
        uint8_t *to =
            (uint8_t *)g->c + at * (ptrdiff_t)(g->c_is_bf16 ? sizeof(uint16_t) : sizeof(float));
        finish_rows(g, &columns, &(struct rows){sums, count, residual, to});
        sums += count;
        rows -= count;
        place = (struct place){place.line + 1, 0};
    }
}

/* ---- the product ----------------------------------------------------------------------------- */

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
    const uint16_t *b = (const uint16_t *)g->b + panel * g->k * UK_NR;
    bool is_wide = g->n - panel * UK_NR > UK_VL, is_tall = rows > p->height;
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
    finish_tile(p, place, rows, panel, sums);
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
