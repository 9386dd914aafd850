/* SPDX-License-Identifier: MIT */
/*
 * The integer matrix product with AMX. A tile of C has two blocks of up to 16 rows and one panel of
 * 32 columns: four tiles of sums, which stay in registers over all of k. The panels are the same as
 * at the level below, because the instruction wants the same words of four numbers. The level below
 * also computes what this one does not make faster: few rows, short runs, weights of 4 bits without
 * groups.
 *
 * A block takes as long with few rows as with 16, because an instruction waits for the one before
 * that added to the same sums. So lines of a convolution are joined where the first row of a line
 * is as far from the last one of the line before as rows are from each other, or a few rows more:
 * what a block computes between them is dropped. All blocks have the same height, because the
 * configuration has it; the last one of a line begins early enough and computes some rows twice.
 *
 * The sums of a tile are scaled, rounded and narrowed between the products of the next one; with
 * short products, behind the products of a few tiles. Near a tile instruction one of the two units
 * for vectors stands still, so to alternate costs more than the products. The next panel of B is
 * fetched meanwhile.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/gemm_u4_amx.h"
#include "hal/cpu/uk/simd_u8.h"

#define AMX_DOT AMX_DOT_U8
#include "hal/cpu/uk/amx_run.h"
#include "hal/cpu/uk/level.h"

#define ROWS_MIN 5 /* fewer are faster with dot products */
#define RUN_MIN 16
#define TILE_ROWS (2 * AMX_ROWS)
#define LISTED (TILE_ROWS + AMX_ROWS) /* see add_rows() */
#define FINISH_ROWS 8                 /* after a step */
#define CHUNK 8                       /* tiles at most */
#define BATCH 4                       /* tiles whose results are finished at once */
#define STEPS_MIN 3                   /* with fewer, results are finished apart from products */
#define LINE_BYTES 64
#define SMALL_B (16 * 1024) /* bytes of B that stay in a first-level cache */
#define CHUNK_BYTES                                                                                \
    (128 * 1024) /* of A and C, kept in a second-level cache beside a panel of B                   \
                  */

/* Shared by all tiles of a call. The rows of A form |lines| lines of |rows| rows; of each |pitch|
 * of them, the first g->m are rows of C. */
struct product {
    const struct uk_gemm_u8 *g;
    const struct uk_segment *segments;
    size_t segment_count, steps; /* of 64 bytes or less, over all segments */
    bool finishes_between;       /* the results of a tile between the products of the next one */
    size_t lines, rows, pitch;
    size_t height, line_blocks, blocks; /* of all lines */
};

/* The rows of a tile: where its first block begins in A, how far from there the second does (0:
 * there is none), and where the |count| sums that are rows of C belong. */
struct rows {
    ptrdiff_t a, second;
    size_t count;
    uint8_t from[LISTED];
    ptrdiff_t to[LISTED], numbers[LISTED]; /* offsets in C, and in scales of rows */
};

/* The sums of a tile, of which those of rows |next| and following are not finished. */
struct results {
    int32_t (*sums)[UK_NR];
    const struct rows *rows;
    size_t count, next;
    const union uk_number *columns;
    size_t column, width;
};

/* Memory to be fetched, |lines| cache lines after a step. */
struct ahead {
    const uint8_t *at, *end;
    size_t lines;
};

/* ---- rows ------------------------------------------------------------------------------------ */

/* Adds |count| rows of C that follow each other. More are written, a fixed number of them. */
static void add_rows(const struct uk_gemm_u8 *g, struct rows *r, size_t count, size_t sums,
                     size_t line, size_t x)
{
    ptrdiff_t to = (ptrdiff_t)line * g->c_line + (ptrdiff_t)x * g->c_row;
    ptrdiff_t number = (ptrdiff_t)line * g->rows_line + (ptrdiff_t)x;
    uint8_t *from = r->from + r->count;
    ptrdiff_t *tos = r->to + r->count, *numbers = r->numbers + r->count;
    UK_UNROLL
    for (size_t k = 0; k < AMX_ROWS; k++) {
        from[k] = (uint8_t)(sums + k);
        tos[k] = to + (ptrdiff_t)k * g->c_row;
        numbers[k] = number + (ptrdiff_t)k;
    }
    r->count += count;
}

/* Lists the rows of block |i|, whose sums begin in row |sums|; returns where it begins in A. */
static ptrdiff_t add_block(const struct product *p, struct rows *r, size_t i, size_t sums)
{
    const struct uk_gemm_u8 *g = p->g;
    size_t from = i % p->line_blocks * p->height, last = p->rows - p->height;
    size_t first = from < last ? from : last, x = from % p->pitch;
    size_t begin = i / p->line_blocks, line = begin + from / p->pitch;
    for (size_t k = from - first; k < p->height; x = 0, line++) {
        size_t there = x < g->m ? g->m - x : 0, left = p->height - k;
        add_rows(g, r, there < left ? there : left, sums + k, line, x);
        k += p->pitch - x;
    }
    return (ptrdiff_t)begin * g->a_line + (ptrdiff_t)first * g->a_row;
}

/* Lists the rows of a tile. The last one is repeated, so that rows can be finished in fours. */
static void list_rows(const struct product *p, struct rows *r, size_t tile)
{
    r->count = 0;
    r->a = add_block(p, r, 2 * tile, 0);
    r->second = 2 * tile + 1 < p->blocks ? add_block(p, r, 2 * tile + 1, AMX_ROWS) - r->a : 0;
    for (size_t i = r->count; i % 4 != 0; i++) {
        r->from[i] = r->from[r->count - 1];
        r->to[i] = r->to[r->count - 1];
        r->numbers[i] = r->numbers[r->count - 1];
    }
}

/* ---- results --------------------------------------------------------------------------------- */

/* Shared by all rows of a panel. */
struct numbers {
    vf scale[2], bias[2];
    vu sum[2];
};

UK_INLINE struct numbers numbers_of(const struct results *r)
{
    struct numbers n;
    UK_UNROLL
    for (int j = 0; j < 2; j++) {
        n.scale[j] = v_load(&r->columns[UK_COLUMN_SCALE * UK_NR + j * UK_VL].f);
        n.bias[j] = v_load(&r->columns[UK_COLUMN_BIAS * UK_NR + j * UK_VL].f);
        n.sum[j] = V_GET(vu, &r->columns[UK_COLUMN_SUM * UK_NR + j * UK_VL].i);
    }
    return n;
}

/* The result of row |i| of a list, column j * UK_VL and following. */
UK_INLINE vf result(const struct product *p, const struct results *r, const struct numbers *n,
                    size_t i, const int j, const bool has_row_scales)
{
    vu sum = V_GET(vu, &r->sums[r->rows->from[i]][j * UK_VL]);
    vf factor = n->scale[j];
    if (has_row_scales) {
        sum -= v_splat_bits((uint32_t)p->g->row_zeros[r->rows->numbers[i]]) * n->sum[j];
        factor *= v_splat(p->g->row_scales[r->rows->numbers[i]]);
    }
    return v_multiply_add(__builtin_convertvector((vi)sum, vf), factor, n->bias[j]);
}

UK_INLINE void finish_floats(const struct product *p, const struct results *r, size_t i, size_t end)
{
    const vf min = v_splat(p->g->min), max = v_splat(p->g->max);
    const struct numbers n = numbers_of(r);
    for (; i < end; i++) {
        float *c = p->g->c_f32 + r->rows->to[i] + r->column;
        UK_UNROLL
        for (int j = 0; j < 2; j++) {
            size_t at = (size_t)j * UK_VL, left = r->width > at ? r->width - at : 0;
            vf y = result(p, r, &n, i, j, p->g->row_scales != NULL);
            v_store_part(c + at, v_clamp(y, min, max), left < UK_VL ? left : UK_VL);
        }
    }
}

/* A quarter of |v| moved to its beginning, or the half that begins there. */
UK_INLINE __m512i quarter(vb v, const int i, const bool is_half)
{
    __m512i x = (__m512i)v;
    return i == 0    ? x
           : is_half ? _mm512_castsi256_si512(_mm512_extracti64x4_epi64(x, 1))
           : i == 1  ? _mm512_castsi128_si512(_mm512_extracti32x4_epi32(x, 1))
           : i == 2  ? _mm512_castsi128_si512(_mm512_extracti32x4_epi32(x, 2))
                     : _mm512_castsi128_si512(_mm512_extracti32x4_epi32(x, 3));
}

/* Rows [i, end); four vectors at a time. All that rows share is loaded before. */
UK_INLINE void finish_bytes(const struct product *p, const struct results *r, size_t i, size_t end,
                            const int vectors, const bool is_whole, const bool has_row_scales)
{
    const struct uk_gemm_u8 *g = p->g;
    const __mmask32 there = (__mmask32)(((uint64_t)1 << r->width) - 1);
    const vf max = v_splat(g->max);
    const int16_t zero = (int16_t)g->zero;
    const uint8_t least = (uint8_t)((int32_t)g->min + g->zero);
    uint8_t *const c = g->c_u8 + r->column;
    const struct numbers n = numbers_of(r);
    for (; i < end; i += (size_t)(4 / vectors)) {
        vi whole[4];
        UK_UNROLL
        for (int q = 0; q < 4; q++) {
            vf y = result(p, r, &n, i + (size_t)(q / vectors), q % vectors, has_row_scales);
            whole[q] = v_round_int(v_lesser(y, max));
        }
        vb bytes = v_gather_in_order(whole, zero, least);
        UK_UNROLL
        for (int k = 0; k < 4 / vectors; k++) {
            __m512i row = quarter(bytes, k, vectors == 2);
            uint8_t *to = c + r->rows->to[i + (size_t)k];
            if (is_whole && vectors == 2) {
                _mm256_storeu_si256((__m256i_u *)(void *)to, _mm512_castsi512_si256(row));
            } else if (is_whole) {
                _mm_storeu_si128((__m128i_u *)(void *)to, _mm512_castsi512_si128(row));
            } else {
                _mm256_mask_storeu_epi8(to, there, _mm512_castsi512_si256(row));
            }
        }
    }
}

/* Finishes the next |rows| rows, or those that are left; |rows| is a multiple of 4. */
static void finish(const struct product *p, struct results *r, size_t rows)
{
    size_t begin = r->next, left = r->count - begin, end = begin + (left < rows ? left : rows);
    r->next = end;
    if (begin == end) {
        return;
    } else if (p->g->c_f32) {
        finish_floats(p, r, begin, end);
    } else if (p->g->row_scales) {
        finish_bytes(p, r, begin, end, 2, false, true);
    } else if (r->width == UK_NR) {
        finish_bytes(p, r, begin, end, 2, true, false);
    } else if (r->width > UK_VL) {
        finish_bytes(p, r, begin, end, 2, false, false);
    } else if (r->width == UK_VL) {
        finish_bytes(p, r, begin, end, 1, true, false);
    } else {
        finish_bytes(p, r, begin, end, 1, false, false);
    }
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* Work that runs while the products of a step are computed. */
UK_INLINE void meanwhile(const struct product *p, struct results *before, struct ahead *ahead)
{
    finish(p, before, FINISH_ROWS);
    for (size_t i = 0; i < ahead->lines && ahead->at < ahead->end; i++) {
        __builtin_prefetch(ahead->at, 0, 2);
        ahead->at += LINE_BYTES;
    }
}

static void multiply(const struct product *p, const struct rows *rows, const uint8_t *panel,
                     bool is_wide, struct results *before, struct ahead *ahead)
{
    const size_t whole = p->g->run / AMX_ROW_BYTES, rest = p->g->run % AMX_ROW_BYTES;
    const ptrdiff_t a_row = p->g->a_row, second = rows->second;
    const uint8_t *first = p->g->a + rows->a;
    for (size_t s = 0; s < p->segment_count; s++) {
        const uint8_t *a = first + p->segments[s].a, *b = panel + p->segments[s].k * UK_NR;
        for (size_t i = 0; i < whole; i++, a += AMX_ROW_BYTES, b += AMX_ROW_BYTES * UK_NR) {
            if (rest == 0) {
                step(a, a_row, second, b, is_wide);
            } else {
                STEP_ALONE(4, 5, a, a_row, second, b, is_wide);
            }
            meanwhile(p, before, ahead);
        }
        if (whole == 0) {
            step(a, a_row, second, b, is_wide);
            meanwhile(p, before, ahead);
        } else if (rest > 0) {
            STEP_ALONE(6, 7, a, a_row, second, b, is_wide);
            meanwhile(p, before, ahead);
        }
    }
}

/* Computes the sums of a tile, from the offsets of the columns on, and finishes |before|. */
static void run_tile(const struct product *p, const struct rows *rows, size_t panel,
                     struct results *r, struct results *before, struct ahead *ahead)
{
    const size_t row = sizeof(r->sums[0]);
    r->rows = rows;
    r->count = rows->count;
    r->next = 0;
    r->column = panel * UK_NR;
    r->width = p->g->n - r->column < UK_NR ? p->g->n - r->column : UK_NR;
    r->columns = p->g->columns + r->column * UK_COLUMN_ARRAYS;
    const int32_t *offsets = &r->columns[UK_COLUMN_OFFSET * UK_NR].i;
    bool is_wide = r->width > UK_VL;
    AMX_LOAD(0, offsets, 0);
    AMX_LOAD(1, offsets + UK_VL, 0);
    AMX_LOAD(2, offsets, 0);
    AMX_LOAD(3, offsets + UK_VL, 0);
    multiply(p, rows, p->g->b + panel * p->g->k * UK_NR, is_wide, before, ahead);
    finish(p, before, TILE_ROWS);
    AMX_STORE(0, &r->sums[0][0], row);
    AMX_STORE(2, &r->sums[AMX_ROWS][0], row);
    if (is_wide) {
        AMX_STORE(1, &r->sums[0][UK_VL], row);
        AMX_STORE(3, &r->sums[AMX_ROWS][UK_VL], row);
    }
}

/* ---- around them ----------------------------------------------------------------------------- */

/* Joined lines must save a fifth of the blocks, because the rows between them are computed, too. */
static struct product product_of(const struct uk_gemm_u8 *g, struct uk_segment *from_start)
{
    *from_start = (struct uk_segment){0, 0};
    struct product p = {.g = g,
                        .segments = g->segments ? g->segments : from_start,
                        .segment_count = g->segments ? g->segment_count : 1,
                        .lines = g->lines,
                        .rows = g->m,
                        .pitch = g->m};
    p.line_blocks = (p.rows + AMX_ROWS - 1) / AMX_ROWS;
    if (g->lines > 1 && g->a_row > 0 && g->a_line % g->a_row == 0 && g->a_line / g->a_row >= g->m) {
        size_t pitch = (size_t)(g->a_line / g->a_row), rows = (g->lines - 1) * pitch + g->m;
        size_t blocks = (rows + AMX_ROWS - 1) / AMX_ROWS;
        if (5 * blocks <= 4 * p.line_blocks * g->lines) {
            p.lines = 1;
            p.rows = rows;
            p.pitch = pitch;
            p.line_blocks = blocks;
        }
    }
    p.height = (p.rows + p.line_blocks - 1) / p.line_blocks;
    p.blocks = p.line_blocks * p.lines;
    p.steps = p.segment_count * ((g->run + AMX_ROW_BYTES - 1) / AMX_ROW_BYTES);
    p.finishes_between = p.steps >= STEPS_MIN && g->run >= AMX_ROW_BYTES;
    return p;
}

/* Tiles below each other that are multiplied by a panel before the next panel's turn. */
static size_t choose_chunk(const struct product *p, size_t panels)
{
    const struct uk_gemm_u8 *g = p->g;
    size_t c_bytes = (size_t)g->n * (g->c_f32 ? sizeof(float) : 1);
    size_t row_bytes = (size_t)(g->a_row < 0 ? -g->a_row : g->a_row) + c_bytes;
    size_t chunk = CHUNK_BYTES / (TILE_ROWS * row_bytes);
    if (panels * g->k * UK_NR <= SMALL_B || chunk == 0) {
        return 1;
    }
    return chunk < CHUNK ? chunk : CHUNK;
}

/* The panel after |panel|, where a chunk of |tiles| tiles gives time to fetch it. */
static struct ahead look_ahead(const struct product *p, size_t panel, size_t panels, size_t tiles)
{
    size_t bytes = p->g->k * UK_NR;
    if (panel + 1 == panels || tiles < 2) {
        return (struct ahead){0};
    }
    const uint8_t *at = p->g->b + (panel + 1) * bytes;
    return (struct ahead){at, at + bytes, bytes / LINE_BYTES / (tiles * p->steps) + 1};
}

/* Results of the last tiles. With few steps a batch of them is finished at once. */
struct batch {
    _Alignas(64) int32_t sums[BATCH][TILE_ROWS][UK_NR];
    struct results results[BATCH], none;
    size_t last;
};

static void finish_batch(const struct product *p, struct batch *batch)
{
    for (size_t i = 0; i < BATCH; i++) {
        finish(p, &batch->results[i], TILE_ROWS);
    }
}

/* Multiplies a chunk of |tiles| tiles by a panel. */
static void run_chunk(const struct product *p, const struct rows *rows, size_t tiles, size_t panel,
                      struct batch *batch, struct ahead *ahead)
{
    for (size_t i = 0; i < tiles; i++) {
        struct results *before = &batch->results[batch->last];
        batch->last = (batch->last + 1) % BATCH;
        run_tile(p, &rows[i], panel, &batch->results[batch->last],
                 p->finishes_between ? before : &batch->none, ahead);
        if (!p->finishes_between && batch->last == BATCH - 1) {
            finish_batch(p, batch);
        }
    }
}

static void run_all(const struct product *p)
{
    struct rows all_rows[2 * CHUNK], *rows = all_rows; /* in turns: results refer to them */
    struct batch batch;
    const size_t panels = ((size_t)p->g->n + UK_NR - 1) / UK_NR, tiles = (p->blocks + 1) / 2;
    const size_t chunk = choose_chunk(p, panels);
    batch.last = BATCH - 1;
    batch.none.count = batch.none.next = 0;
    for (size_t i = 0; i < BATCH; i++) {
        /* sums that are finished between products leave their place before the next ones come */
        batch.results[i].sums = batch.sums[p->finishes_between ? 0 : i];
        batch.results[i].count = batch.results[i].next = 0;
    }
    for (size_t begin = 0; begin < tiles; begin += chunk) {
        size_t count = tiles - begin < chunk ? tiles - begin : chunk;
        rows = rows + chunk + count > all_rows + 2 * CHUNK ? all_rows : rows + chunk;
        for (size_t i = 0; i < count; i++) {
            list_rows(p, &rows[i], begin + i);
        }
        for (size_t panel = 0; panel < panels; panel++) {
            struct ahead ahead = {0};
            if (begin == 0) {
                ahead = look_ahead(p, panel, panels, count);
            }
            run_chunk(p, rows, count, panel, &batch, &ahead);
        }
    }
    finish_batch(p, &batch);
}

void UK_NAME(gemm_u8)(const struct uk_gemm_u8 *g)
{
    if (UK_NAME(gemm_groups_u8)(g)) {
        return;
    }
    if (g->is_4bit || g->group || g->m < ROWS_MIN || g->run < RUN_MIN) {
        struct uk_gemm_u8 dots = *g;
        dots.asks_ahead = true;
        UK_DOT(gemm_u8)(&dots);
        return;
    }
    struct uk_segment from_start;
    const struct product p = product_of(g, &from_start);
    amx_configure_run(p.height, g->run);
    run_all(&p);
    amx_release();
}
