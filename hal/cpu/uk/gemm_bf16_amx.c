/* SPDX-License-Identifier: MIT */
/*
 * The product of gemm_bf16.c with AMX, from the same panels: their pairs of numbers are the words
 * of the instruction. A tile of C has up to 32 rows and one panel of 32 columns: four tiles of
 * sums, which stay in registers over all of k.
 *
 * Rows of A are read where they lie if they are bfloat16 at equal distances. The rows of several
 * lines are, too, if the distance of lines is a multiple of that of rows: what lies between two
 * lines is then multiplied like rows, and not stored. All other rows are rounded behind |scratch|.
 * The rows of a block stay in the second-level cache, and each panel of B is read once for all of
 * them.
 *
 * The processor multiplies a tile while the sums of the one before it are finished: its products
 * come first in the code, because it looks ahead only so far.
 *
 * The instruction sums the even k of a step and the odd ones, then both, then adds that to C. So an
 * element depends on how k is cut into steps. A step never goes beyond its run, whether that is
 * copied or not, and few rows take the same way as many. An element is its products, then bias,
 * then residual, then the clamp. Source: Intel 64 and IA-32 Architectures Software Developer's
 * Manual, volume 2, TDPBF16PS.
 */
#include "config.h"

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/round_bf16.h"

#define AMX_DOT AMX_DOT_BF16
#include "hal/cpu/uk/amx_run.h"

#define A_BLOCK (512 * 1024) /* bytes of A kept in a second-level cache */
#define DEPTH_BLOCK 512      /* bytes of a row that are multiplied at a time: see run_panel() */
#define DEPTH_WHOLE 768      /* up to so many bytes are one such part */
#define TILES_MAX 16         /* of a block of rows */
#define PAGE_BYTES 4096

_Static_assert(UK_BF16_MR == 2 * AMX_ROWS, "two blocks of rows");

/* Shared by all tiles of a call. */
struct product {
    const struct uk_gemm_f32 *g;
    const struct uk_segment *segments;
    size_t segment_count;
    bool is_in_place;   /* A is not copied */
    size_t line_rows;   /* rows from one line to the next */
    size_t pitch;       /* numbers from one row of the copy to the next */
    size_t rows, tiles; /* of all lines; tiles share them evenly */
    size_t height;      /* rows of a block of AMX_ROWS at most */
};

/* A row, and where it lies. */
struct place {
    size_t line, at;
};

/* A tile of C whose sums are stored but not finished. */
struct sums {
    struct place place;
    size_t rows, panel; /* rows: 0 if there is no such tile */
    _Alignas(64) float of[UK_BF16_MR][UK_NR];
};

static struct place place_of(const struct product *p, size_t row)
{
    return (struct place){row / p->line_rows, row % p->line_rows};
}

static void go_on(const struct product *p, struct place *place)
{
    if (++place->at == p->line_rows) {
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
    size_t run = p->g->run, there = run - (p->g->is_odd ? 1 : 0);
    for (size_t i = 0; i < rows; i++, to += p->pitch, go_on(p, &place)) {
        ptrdiff_t row = offset(&place, p->g->a_line, p->g->a_row);
        for (size_t s = 0; s < p->segment_count; s++) {
            ptrdiff_t at = row + p->segments[s].a;
            if (p->g->a_is_bf16) {
                const uint16_t *from = (const uint16_t *)(const void *)p->g->a + at;
                memcpy(to + s * run, from, there * sizeof(*to));
            } else {
                round_run(to + s * run, p->g->a + at, there);
            }
            memset(to + s * run + there, 0, (run - there) * sizeof(*to));
        }
    }
}

/* ---- from sums to results -------------------------------------------------------------------- */

/* The columns of a panel as two vectors: the number of columns in each, and the numbers that all
 * rows share. */
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
UK_INLINE void complete(const struct columns *c, const float *sums, const void *residual,
                        const bool residual_is_bf16, vf y[2])
{
    UK_UNROLL
    for (size_t i = 0; i < 2; i++) {
        y[i] = v_load_aligned(sums + i * UK_VL) + c->bias[i];
        if (residual && residual_is_bf16) {
            y[i] += load_bf16((const uint16_t *)residual + i * UK_VL, c->n[i]);
        } else if (residual) {
            y[i] += v_load_part((const float *)residual + i * UK_VL, c->n[i]);
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
    const uint8_t *residual; /* or NULL */
    uint8_t *to;
};

static ptrdiff_t bytes_of(ptrdiff_t numbers, bool are_bf16)
{
    return numbers * (ptrdiff_t)(are_bf16 ? sizeof(uint16_t) : sizeof(float));
}

/* The residual of row |i|. */
UK_INLINE const uint8_t *residual_of(const struct uk_gemm_f32 *g, const struct rows *r, size_t i)
{
    return r->residual ? r->residual + bytes_of((ptrdiff_t)i * g->residual_row, g->residual_is_bf16)
                       : NULL;
}

UK_INLINE void store_rows(const struct uk_gemm_f32 *g, const struct columns *columns,
                          const struct rows *r, const bool is_bf16, const bool is_whole)
{
    const struct columns c = *columns; /* a copy that no store below can change */
    const ptrdiff_t c_bytes = bytes_of(g->c_row, is_bf16);
    const bool is_complete = g->activation != NULL;
    for (size_t i = 0; i < r->count; i++) {
        vf y[2] = {v_load_aligned(r->sums[i]), v_load_aligned(r->sums[i] + UK_VL)};
        if (!is_complete) {
            complete(&c, r->sums[i], residual_of(g, r, i), g->residual_is_bf16, y);
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
        complete(c, r->sums[i], residual_of(g, r, i), g->residual_is_bf16, y);
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

/* Where the rows from |place| on lie, and the columns of their residual from |first| on. */
static struct rows rows_at(const struct uk_gemm_f32 *g, const struct place *place, size_t first)
{
    ptrdiff_t at = offset(place, g->c_line, g->c_row);
    ptrdiff_t residual = offset(place, g->residual_line, g->residual_row) + (ptrdiff_t)first;
    struct rows rows = {.to = (uint8_t *)g->c + bytes_of(at, g->c_is_bf16)};
    if (g->residual) {
        rows.residual = (const uint8_t *)g->residual + bytes_of(residual, g->residual_is_bf16);
    }
    return rows;
}

/* Makes results of a tile, a line at a time. Afterwards there is none. */
static void finish(const struct product *p, struct sums *sums)
{
    const struct uk_gemm_f32 *g = p->g;
    struct place place = sums->place;
    if (sums->rows == 0) {
        return;
    }
    const struct columns columns = columns_of(g, sums->panel);
    for (size_t row = 0; row < sums->rows;) {
        size_t end = place.at < g->m ? g->m : p->line_rows, rest = sums->rows - row;
        size_t count = end - place.at < rest ? end - place.at : rest;
        if (place.at < g->m) {
            struct rows rows = rows_at(g, &place, columns.first);
            rows.sums = sums->of + row;
            rows.count = count;
            finish_rows(g, &columns, &rows);
        }
        row += count;
        place.at += count;
        if (place.at == p->line_rows) {
            place = (struct place){place.line + 1, 0};
        }
    }
    sums->rows = 0;
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* A place in the sum of an element: a segment, and bytes of its run. */
struct depth {
    size_t segment, at;
};

/* Some rows by a panel. */
struct block {
    size_t tile, tile_end, panel;
    size_t copied; /* the first row of the copy */
};

/* Adds the products from |from| on to the sums in tiles 0 to 3, of about |left| bytes of each row;
 * returns where the next ones begin. */
static struct depth add_products(const struct product *p, struct amx_run *run, struct depth from,
                                 size_t left, bool is_wide)
{
    size_t whole = p->g->run * sizeof(uint16_t);
    const uint8_t *a = run->a, *b = run->b;
    while (left > 0 && from.segment < p->segment_count) {
        const struct uk_segment *segment = &p->segments[from.segment];
        size_t rest = whole - from.at;
        run->bytes = whole % AMX_ROW_BYTES || rest < left ? rest : left;
        ptrdiff_t at = p->is_in_place ? segment->a * (ptrdiff_t)sizeof(uint16_t)
                                      : (ptrdiff_t)(from.segment * whole);
        run->a = a + at + from.at;
        run->b = b + segment->k * UK_NR * sizeof(uint16_t) + from.at * UK_NR;
        amx_add_run(run, is_wide);
        left -= run->bytes < left ? run->bytes : left;
        from.at += run->bytes;
        if (from.at == whole) {
            from = (struct depth){from.segment + 1, 0};
        }
    }
    return from;
}

static size_t tile_row(const struct product *p, size_t tile)
{
    return p->rows * tile / p->tiles;
}

/* The rows of a tile of C: the second block of them ends with the last one, so it may share a row
 * with the first; both have the same sums of it. */
struct rows_of_tile {
    struct place place;
    size_t count, second; /* second: from the first row of the first block; 0: there is none */
};

static struct rows_of_tile rows_of(const struct product *p, size_t tile)
{
    size_t row = tile_row(p, tile), count = tile_row(p, tile + 1) - row;
    return (struct rows_of_tile){place_of(p, row), count,
                                 count > p->height ? count - p->height : 0};
}

static struct amx_run run_of(const struct product *p, const struct block *block, size_t tile,
                             const struct rows_of_tile *rows)
{
    const struct uk_gemm_f32 *g = p->g;
    const ptrdiff_t width = sizeof(uint16_t);
    struct amx_run run = {.b = (const uint8_t *)g->b +
                               block->panel * g->k * UK_NR * sizeof(uint16_t)};
    if (p->is_in_place) {
        run.a = (const uint8_t *)g->a + offset(&rows->place, g->a_line, g->a_row) * width;
        run.a_row = g->a_row * width;
    } else {
        run.a = (const uint8_t *)g->scratch +
                (tile_row(p, tile) - block->copied) * p->pitch * sizeof(uint16_t);
        run.a_row = (ptrdiff_t)p->pitch * width;
    }
    run.second = (ptrdiff_t)rows->second * run.a_row;
    return run;
}

static void zero_sums(void)
{
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
}

static void load_sums(const struct sums *sums, size_t second)
{
    AMX_LOAD(0, &sums->of[0][0], sizeof(sums->of[0]));
    AMX_LOAD(1, &sums->of[0][UK_VL], sizeof(sums->of[0]));
    AMX_LOAD(2, &sums->of[second][0], sizeof(sums->of[0]));
    AMX_LOAD(3, &sums->of[second][UK_VL], sizeof(sums->of[0]));
}

static void store_sums(struct sums *sums, size_t second)
{
    AMX_STORE(0, &sums->of[0][0], sizeof(sums->of[0]));
    AMX_STORE(1, &sums->of[0][UK_VL], sizeof(sums->of[0]));
    if (second > 0) {
        AMX_STORE(2, &sums->of[second][0], sizeof(sums->of[0]));
        AMX_STORE(3, &sums->of[second][UK_VL], sizeof(sums->of[0]));
    }
}

/* Lets tile |number| of |count| ask for its share of the memory at |next|: all of them multiply it
 * after |part| bytes of each row. It is the next part of the panel, or of the next panel. Behind
 * the last one it asks for memory that nobody needs; such a request does not fault. */
static void ask_for_next(struct amx_run *run, const uint8_t *next, size_t part, size_t number,
                         size_t count)
{
    size_t lines = UK_NR / count; /* for each step of a row */
    run->ahead = next + number * lines * part;
    run->ahead_bytes = lines * AMX_ROW_BYTES;
}

/* A block of rows by a panel. If rows are long, a part of each one is multiplied after the other,
 * so that this part of the panel stays in the first-level cache for all tiles; each of them has
 * sums of its own then. Sums of the panel before are finished when the next products have begun. */
static void run_panel(const struct product *p, struct sums *sums, const struct block *block)
{
    size_t depth = p->segment_count * p->g->run * sizeof(uint16_t);
    bool is_wide = p->g->n - block->panel * UK_NR > UK_VL;
    size_t count = block->tile_end - block->tile;
    bool is_split = depth > DEPTH_WHOLE && count > 1;
    size_t part = is_split ? DEPTH_BLOCK : depth, done = 0;
    struct depth from = {0, 0}, next = {0, 0};
    do {
        bool is_first = from.segment == 0 && from.at == 0;
        for (size_t tile = block->tile; tile < block->tile_end; tile++) {
            struct sums *own = &sums[is_split ? tile - block->tile : 0];
            struct rows_of_tile rows = rows_of(p, tile);
            struct amx_run run = run_of(p, block, tile, &rows);
            if (is_first) {
                zero_sums();
            } else {
                load_sums(own, rows.second);
            }
            ask_for_next(&run, run.b + (done + part) * UK_NR, part, tile - block->tile, count);
            next = add_products(p, &run, from, part, is_wide);
            if (is_first) {
                finish(p, own);
            }
            store_sums(own, rows.second);
            if (next.segment == p->segment_count) {
                own->place = rows.place;
                own->rows = rows.count;
                own->panel = block->panel;
            }
        }
        from = next;
        done += part;
    } while (from.segment < p->segment_count);
}

/* Is A read where it lies? Rows whose distance is a multiple of a page would evict each other from
 * the first-level cache. At most a third of the rows that are multiplied may lie between lines. */
static bool reads_in_place(const struct uk_gemm_f32 *g)
{
    ptrdiff_t m = (ptrdiff_t)g->m;
    bool is_paged = g->a_row * (ptrdiff_t)sizeof(uint16_t) % PAGE_BYTES == 0;
    if (!g->a_is_bf16 || g->is_odd || (g->m > 1 && is_paged)) {
        return false;
    }
    if (g->lines == 1) {
        return true;
    }
    return g->a_row > 0 && g->a_line % g->a_row == 0 && g->a_line / g->a_row >= m &&
           g->a_line / g->a_row <= m + m / 2;
}

static void choose_rows(struct product *p)
{
    const struct uk_gemm_f32 *g = p->g;
    bool has_gaps = p->is_in_place && g->lines > 1;
    p->line_rows = has_gaps ? (size_t)(g->a_line / g->a_row) : g->m;
    p->rows = g->lines && g->m ? (g->lines - 1) * p->line_rows + g->m : 0;
    p->tiles = (p->rows + UK_BF16_MR - 1) / UK_BF16_MR;
    size_t most = p->tiles ? (p->rows + p->tiles - 1) / p->tiles : 1;
    p->height = most > AMX_ROWS ? (most + 1) / 2 : most;
}

/* Tiles of a block of rows. */
static size_t tiles_at_once(const struct product *p)
{
    size_t row = p->is_in_place ? (size_t)p->g->a_row : p->pitch;
    size_t bytes = UK_BF16_MR * row * sizeof(uint16_t);
    size_t most = p->is_in_place ? A_BLOCK : UK_BF16_COPY_BYTES;
    size_t tiles = bytes < most && bytes > 0 ? most / bytes : 1;
    return tiles < TILES_MAX ? tiles : TILES_MAX;
}

static void run_block(const struct product *p, struct sums *sums, struct block *block)
{
    size_t panels = ((size_t)p->g->n + UK_NR - 1) / UK_NR;
    block->copied = tile_row(p, block->tile);
    if (!p->is_in_place) {
        copy_rows(p, place_of(p, block->copied), tile_row(p, block->tile_end) - block->copied);
    }
    for (block->panel = 0; block->panel < panels; block->panel++) {
        run_panel(p, sums, block);
    }
    for (size_t i = 0; i < TILES_MAX; i++) {
        finish(p, &sums[i]);
    }
}

void UK_NAME(gemm_bf16)(const struct uk_gemm_f32 *g)
{
    static const struct uk_segment from_start;
    struct product p = {.g = g,
                        .segments = g->segments ? g->segments : &from_start,
                        .segment_count = g->segments ? g->segment_count : 1,
                        .is_in_place = reads_in_place(g)};
    struct sums sums[TILES_MAX];
    uk_check_product(g);
    must(g->run % 2 == 0 && g->k % 2 == 0);
    choose_rows(&p);
    p.pitch = uk_gemm_bf16_row(p.segment_count * g->run);
    size_t most = tiles_at_once(&p);
    for (size_t i = 0; i < TILES_MAX; i++) {
        sums[i].rows = 0;
    }
    amx_configure_run(p.height, g->run * sizeof(uint16_t));
    for (size_t i = 0; i < p.tiles; i += most) {
        struct block block = {.tile = i, .tile_end = p.tiles - i > most ? i + most : p.tiles};
        run_block(&p, sums, &block);
    }
    amx_release();
}
