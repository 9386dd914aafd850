/* SPDX-License-Identifier: MIT */
/*
 * The integer matrix product with AMX. A tile of C has up to 32 rows and one panel of 32 columns:
 * four tiles of sums, which stay in registers over all of k. The panels are those of the level
 * below, whose words of four numbers are what the instruction wants. That level also takes what
 * this one does not make faster: few rows, short runs, weights of 4 bits without groups.
 *
 * All row tiles of a call have the same height, because the configuration has it. The last one
 * begins early enough and computes some rows twice.
 */
#include "config.h"

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/gemm_u4_amx.h"
#include "hal/cpu/uk/gemm_u8.h"

#define AMX_DOT AMX_DOT_U8
#include "hal/cpu/uk/amx_run.h"
#include "hal/cpu/uk/level.h"

#define ROWS_MIN 5 /* fewer are faster with dot products */
#define RUN_MIN 16
#define ROWS_MAX (2 * AMX_ROWS)
#define FINISH_ROWS 4 /* at a time */

/* How the rows of a call are cut. A tile of C has one block of rows, or two: of the same line,
 * where they may share a row, or of two short lines. */
struct cut {
    size_t rows;   /* of a tile that lies in one line */
    size_t height; /* of a block */
    bool has_second;
    bool pairs_lines;
    ptrdiff_t a_line, c_line, numbers_line; /* from one line to the next, if it pairs them */
};

/* ---- results --------------------------------------------------------------------------------- */

/* |rows| of FINISH_ROWS, from the sums of a panel. */
UK_INLINE void finish_some(const struct tile *t, const int32_t (*sums)[UK_NR], const int rows,
                           const int vectors)
{
    vi acc[UK_MR][2];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = V_GET(vi, &sums[i][j * UK_VL]);
        }
    }
    finish(acc, t, rows, vectors);
}

/* Moves |t| by |rows| rows of scales and zero points, and by |c| elements of C. */
UK_INLINE void move(struct tile *t, ptrdiff_t rows, ptrdiff_t c)
{
    t->c_u8 += t->c_u8 ? c : 0;
    t->c_f32 += t->c_f32 ? c : 0;
    t->row_scales += t->row_scales ? rows : 0;
    t->row_zeros += t->row_zeros ? rows : 0;
}

UK_INLINE void finish_rows(struct tile *t, const int32_t (*sums)[UK_NR], size_t rows,
                           const int vectors)
{
    ptrdiff_t moved = 0;
    for (size_t i = 0; i < rows; i += FINISH_ROWS) {
        switch (rows - i) {
        case 1:
            finish_some(t, sums + i, 1, vectors);
            break;
        case 2:
            finish_some(t, sums + i, 2, vectors);
            break;
        case 3:
            finish_some(t, sums + i, 3, vectors);
            break;
        default:
            finish_some(t, sums + i, FINISH_ROWS, vectors);
        }
        move(t, FINISH_ROWS, FINISH_ROWS * t->c_row);
        moved += FINISH_ROWS;
    }
    move(t, -moved, -moved * t->c_row);
}

/* ---- tiles ----------------------------------------------------------------------------------- */

/* The results of both blocks. */
UK_INLINE void finish_blocks(struct tile *t, const struct cut *cut,
                             const int32_t (*sums)[AMX_ROWS][UK_NR], const int vectors)
{
    ptrdiff_t down = (ptrdiff_t)(cut->rows - cut->height);
    ptrdiff_t rows = cut->pairs_lines ? cut->numbers_line : down;
    finish_rows(t, sums[0], cut->height, vectors);
    if (cut->has_second) {
        move(t, rows, cut->pairs_lines ? cut->c_line : down * t->c_row);
        finish_rows(t, sums[1], cut->height, vectors);
        move(t, -rows, 0);
    }
}

static void run_tile(struct tile *t, const struct cut *cut)
{
    _Alignas(64) int32_t sums[2][AMX_ROWS][UK_NR];
    bool is_wide = t->width > UK_VL;
    ptrdiff_t down = (ptrdiff_t)(cut->rows - cut->height) * t->a_row;
    ptrdiff_t second = !cut->has_second ? 0 : cut->pairs_lines ? cut->a_line : down;
    AMX_ZERO(0);
    AMX_ZERO(1);
    AMX_ZERO(2);
    AMX_ZERO(3);
    for (size_t s = 0; s < t->segment_count; s++) {
        ptrdiff_t at = t->is_copied ? (ptrdiff_t)(s * t->run) : t->segments[s].a;
        struct amx_run run = {.a = t->a + at,
                              .b = t->b + t->segments[s].k * UK_NR,
                              .bytes = t->run,
                              .a_row = t->a_row,
                              .second = second};
        amx_add_run(&run, is_wide);
    }
    AMX_STORE(0, &sums[0][0][0], sizeof(sums[0][0]));
    AMX_STORE(1, &sums[0][0][UK_VL], sizeof(sums[0][0]));
    AMX_STORE(2, &sums[1][0][0], sizeof(sums[0][0]));
    AMX_STORE(3, &sums[1][0][UK_VL], sizeof(sums[0][0]));
    if (is_wide) {
        finish_blocks(t, cut, sums, 2);
    } else {
        finish_blocks(t, cut, sums, 1);
    }
}

static void run_line(const struct uk_gemm_u8 *g, struct tile *t, const struct cut *cut, size_t line,
                     size_t panel_begin, size_t panel_end)
{
    for (size_t first = 0, next = 0; next < g->m; next = first + cut->rows) {
        first = g->m - next < cut->rows ? g->m - cut->rows : next;
        tile_begin_rows(g, t, line, first, cut->rows);
        for (size_t p = panel_begin; p < panel_end; p++) {
            tile_begin_panel(g, t, line, first, p);
            run_tile(t, cut);
        }
    }
}

static struct cut choose_cut(const struct uk_gemm_u8 *g, const struct tile *t)
{
    size_t count = ((size_t)g->m + ROWS_MAX - 1) / ROWS_MAX;
    struct cut cut = {.rows = (g->m + count - 1) / count};
    bool is_short = cut.rows <= AMX_ROWS;
    cut.height = is_short ? cut.rows : (cut.rows + 1) / 2;
    cut.pairs_lines = is_short && g->lines > 1 && !t->is_copied;
    cut.has_second = !is_short || cut.pairs_lines;
    cut.a_line = g->a_line;
    cut.c_line = g->c_line;
    cut.numbers_line = g->rows_line;
    return cut;
}

void UK_NAME(gemm_u8)(const struct uk_gemm_u8 *g)
{
    if (UK_NAME(gemm_groups_u8)(g)) {
        return;
    }
    if (g->is_4bit || g->group || g->m < ROWS_MIN || g->run < RUN_MIN) {
        UK_DOT(gemm_u8)(g);
        return;
    }
    struct uk_segment from_start;
    struct tile t = tile_of(g, &from_start);
    const struct cut cut = choose_cut(g, &t);
    size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR, block = panels_at_once(g);
    size_t lines = cut.pairs_lines ? 2 : 1; /* at a time */
    amx_configure_run(cut.height, t.run);
    for (size_t p = 0; p < panels; p += block) {
        size_t panel_end = panels - p > block ? p + block : panels;
        for (size_t line = 0, next = 0; next < g->lines; next = line + lines) {
            line = g->lines - next < lines ? g->lines - lines : next;
            run_line(g, &t, &cut, line, p, panel_end);
        }
    }
    amx_release();
}
