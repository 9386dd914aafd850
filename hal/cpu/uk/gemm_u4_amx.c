/* SPDX-License-Identifier: MIT */
/*
 * The integer matrix product with AMX for weights whose groups of k have scales, of 4 bits above
 * all. Each group has sums of its own, which a tile of 16 columns takes through the first-level
 * cache to registers: there they become floats, are multiplied by the group's scale and added.
 *
 * This takes longer than the multiplication. While tiles are at work, one of the two ports
 * multiplies no vectors and converts none, but it adds. So one of three rows is converted by two
 * additions: an integer below 2^22 that is added to the bits of 1.5 * 2^23 becomes that float plus
 * the integer.
 *
 * Weights become bytes in scratch memory, a chunk of a panel at a time for all rows. All blocks of
 * rows have the same height, because the configuration has it; the last one begins early enough and
 * computes some rows twice.
 *
 * The level below adds the same numbers in the same order, so the results are the same bits.
 */
#include "config.h"

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/gemm_u4_amx.h"
#include "hal/cpu/uk/gemm_u8.h"
#include "hal/cpu/uk/level.h"

#define HEIGHT_MIN 11
#define GROUP_MAX 128 /* sums of so many products are below 2^22 */
#define HALF_STEP 32  /* bytes of a row of A: half a tile */
#define FINISH_ROWS 4
#define CHUNK 768     /* elements of k whose weights stay in the first-level cache for all rows */
#define BLOCKS_MAX 8  /* of rows, that are computed in turns */
#define STORE_AFTER 3 /* products of groups; the sums are in four tiles */
#define SCALE_AFTER 5
#define RING 8 /* sums in memory */

/* A block of rows by half a panel, and some groups. */
struct block {
    const uint8_t *a;
    ptrdiff_t a_row;
    const uint8_t *b; /* words of half a panel */
    size_t groups;
    size_t step, steps;  /* elements of k that are multiplied at once, and how often in a group */
    const float *scales; /* of a panel, for each group */
    bool is_first;
    float (*sums)[UK_VL];
};

typedef int32_t tile_sums[AMX_ROWS][UK_VL];
typedef void block_f(const struct block *b);

/* ---- blocks ---------------------------------------------------------------------------------- */

/* The rest that a block has yet to read. */
struct source {
    const uint8_t *a, *b;
    ptrdiff_t a_row, row_bytes;
    size_t step, steps;
    const float *scales;
};

/* The sums of the next group in tile |c|. */
#define DOT_GROUP(c, ta, tb, s)                                                                    \
    do {                                                                                           \
        size_t left_ = (s)->steps;                                                                 \
        AMX_ZERO(c);                                                                               \
        do {                                                                                       \
            AMX_LOAD(ta, (s)->a, (s)->a_row);                                                      \
            AMX_LOAD(tb, (s)->b, (s)->row_bytes);                                                  \
            AMX_DOT_U8(c, ta, tb);                                                                 \
            (s)->a += (s)->step;                                                                   \
            (s)->b += (s)->step * UK_VL;                                                           \
        } while (--left_ > 0);                                                                     \
    } while (0)

/* acc += the sums as floats * the scales of the next group. */
UK_INLINE void scale_group(vf acc[AMX_ROWS], struct source *s, tile_sums sums, const int rows)
{
    vf scale = v_load(s->scales), big = v_splat(0x1.8p23f);
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        vi sum = V_GET(vi, sums[i]);
        vf x = i % 3 == 0 ? (vf)v_add(sum, (vi)big) - big : __builtin_convertvector(sum, vf);
        acc[i] = v_multiply_add(x, scale, acc[i]);
    }
    s->scales += UK_NR;
}

/*
 * Group |g| is multiplied in tile |c| while the three before it are in other tiles and two more are
 * in memory: the way from the product to the scale takes as long as several products.
 */
#define STEP(c, ta, tb, stored, g, count)                                                          \
    do {                                                                                           \
        if ((g) < (count)) {                                                                       \
            DOT_GROUP(c, ta, tb, &s);                                                              \
        }                                                                                          \
        if ((g) >= STORE_AFTER && (g) < (count) + STORE_AFTER) {                                   \
            AMX_STORE(stored, sums[((g)-STORE_AFTER) % RING], s.row_bytes);                        \
        }                                                                                          \
        if ((g) >= SCALE_AFTER && (g) < (count) + SCALE_AFTER) {                                   \
            scale_group(acc, &s, sums[((g)-SCALE_AFTER) % RING], rows);                            \
        }                                                                                          \
    } while (0)
#define FOUR_STEPS(g, count)                                                                       \
    do {                                                                                           \
        STEP(0, 4, 6, 1, g, count);                                                                \
        STEP(1, 5, 7, 2, (g) + 1, count);                                                          \
        STEP(2, 4, 6, 3, (g) + 2, count);                                                          \
        STEP(3, 5, 7, 0, (g) + 3, count);                                                          \
    } while (0)

UK_INLINE void run_block(const struct block *b, const int rows)
{
    _Alignas(64) tile_sums sums[RING];
    struct source s = {b->a, b->b, b->a_row, AMX_ROW_BYTES, b->step, b->steps, b->scales};
    const size_t count = b->groups;
    size_t g = 0;
    vf acc[AMX_ROWS];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        acc[i] = b->is_first ? (vf){0} : v_load(b->sums[i]);
    }
    if (count >= RING) {
        FOUR_STEPS((size_t)0, (size_t)8);
        FOUR_STEPS((size_t)4, (size_t)8);
        for (g = RING; g + RING <= count; g += RING) {
            FOUR_STEPS((size_t)8, (size_t)16);
            FOUR_STEPS((size_t)12, (size_t)16);
        }
    }
    for (; g < count + SCALE_AFTER; g += 4) {
        FOUR_STEPS(g, count);
    }
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        v_store(b->sums[i], acc[i]);
    }
}

/* clang-format off */
#define EACH_ROWS(XX) XX(11) XX(12) XX(13) XX(14) XX(15) XX(16)
#define BLOCK(rows) \
    static void run_block_##rows(const struct block *b) \
    { \
        run_block(b, rows); \
    }
EACH_ROWS(BLOCK)
#define BLOCK_ENTRY(rows) run_block_##rows,
static block_f *const run_blocks[] = {EACH_ROWS(BLOCK_ENTRY)}; /* by rows - HEIGHT_MIN */
/* clang-format on */

/* Sums in 0 to 3, A in 4 and 5, B in 6 and 7. */
static void configure(size_t rows, size_t step)
{
    struct amx_config config = {.palette = 1};
    for (int i = 0; i < AMX_TILES; i++) {
        config.rows[i] = (uint8_t)(i < 6 ? rows : step / UK_WORD);
        config.row_bytes[i] = (uint16_t)(i == 4 || i == 5 ? step : AMX_ROW_BYTES);
    }
    amx_configure(&config);
}

/* ---- panels ---------------------------------------------------------------------------------- */

/* Unpacks the weights of |groups| groups from |from| on to bytes; first half of the columns. */
UK_INLINE void unpack(uint8_t *to, const struct tile *t, const uint8_t *from, size_t groups,
                      const bool is_4bit)
{
    const size_t lines = t->group_words / (is_4bit ? 2 : 1);
    const size_t half = groups * t->group_words * AMX_ROW_BYTES;
    for (size_t g = 0; g < groups; g++, from += t->group_bytes) {
        for (size_t k = 0; k < lines; k++) {
            UK_UNROLL
            for (int j = 0; j < 2; j++) {
                v_words raw = V_GET(v_words, from + (k * 2 + (size_t)j) * UK_WORDS_BYTES);
                v_words low = is_4bit ? v_low_halves(raw) : raw;
                V_PUT(to + (size_t)j * half, low);
                if (is_4bit) {
                    v_words high = v_high_halves(raw);
                    V_PUT(to + (size_t)j * half + AMX_ROW_BYTES, high);
                }
            }
            to += is_4bit ? 2 * AMX_ROW_BYTES : AMX_ROW_BYTES;
        }
    }
}

/* Results of a block of |rows| rows, at which |t| is. */
UK_INLINE void finish_some(struct tile *t, const float (*sums)[AMX_ROWS][UK_VL], size_t from,
                           const int rows, const int vectors)
{
    vf acc[UK_MR][2];
    UK_UNROLL
    for (int i = 0; i < rows; i++) {
        UK_UNROLL
        for (int j = 0; j < vectors; j++) {
            acc[i][j] = v_load(sums[j][from + i]);
        }
    }
    finish_grouped(acc, t, rows, vectors);
    t->c_u8 += t->c_u8 ? rows * t->c_row : 0;
    t->c_f32 += t->c_f32 ? rows * t->c_row : 0;
    t->row_scales += t->row_scales ? rows : 0;
    t->row_zeros += t->row_zeros ? rows : 0;
}

UK_INLINE void finish_block(struct tile *t, const float (*sums)[AMX_ROWS][UK_VL], size_t rows,
                            const int vectors)
{
    size_t i = 0;
    for (; rows - i >= FINISH_ROWS; i += FINISH_ROWS) {
        finish_some(t, sums, i, FINISH_ROWS, vectors);
    }
    for (; i < rows; i++) {
        finish_some(t, sums, i, 1, vectors);
    }
}

/* The scales of groups as floats. */
static void unpack_scales(float (*to)[UK_NR], const struct tile *t, const uint8_t *from,
                          size_t groups)
{
    for (size_t g = 0; g < groups; g++, from += t->scales_step) {
        if (t->has_short_scales) {
            v_store(to[g], v_widen_upper(V_GET(v_shorts, from)));
            v_store(to[g] + UK_VL, v_widen_upper(V_GET(v_shorts, from + UK_VL * sizeof(uint16_t))));
        } else {
            memcpy(to[g], from, sizeof(to[g]));
        }
    }
}

/* A panel, and blocks of rows that are computed in turns. */
struct turn {
    const struct uk_gemm_u8 *g;
    struct tile *t; /* at the panel */
    size_t panel, line, height, step;
    size_t first[BLOCKS_MAX]; /* row */
    size_t blocks;
};

typedef float block_sums[2][AMX_ROWS][UK_VL]; /* of both halves of a panel */

/* Asks for a part of the weights that come next; |*next| is the first. Beyond the last panel they
 * belong to another tile, or there is nothing to read. */
static void ask(const uint8_t **next, size_t bytes)
{
    for (const uint8_t *end = *next + bytes; *next < end; *next += AMX_ROW_BYTES) {
        __builtin_prefetch(*next, 0, 2);
    }
}

/* Adds the |groups| groups from |at| on. */
static void add_chunk(const struct turn *turn, size_t at, size_t groups, block_sums *sums)
{
    _Alignas(64) float scales[CHUNK / HALF_STEP][UK_NR];
    const struct uk_gemm_u8 *g = turn->g;
    const struct tile *t = turn->t;
    const uint8_t *packed = t->b + at * t->group_bytes, *bytes = g->scratch;
    const uint8_t *next = packed + groups * t->group_bytes;
    const uint8_t *a = g->a + (ptrdiff_t)turn->line * g->a_line + t->segments->a + at * g->group;
    struct block b = {.a_row = g->a_row,
                      .groups = groups,
                      .step = turn->step,
                      .steps = g->group / turn->step,
                      .is_first = at == 0};
    if (g->is_4bit) {
        unpack(g->scratch, t, packed, groups, true);
    } else {
        unpack(g->scratch, t, packed, groups, false);
    }
    unpack_scales(scales, t, t->group_scales + at * t->scales_step, groups);
    for (int j = 0; j < (t->width > UK_VL ? 2 : 1); j++) {
        b.b = bytes + (size_t)j * groups * g->group * UK_VL;
        b.scales = scales[0] + j * UK_VL;
        for (size_t i = 0; i < turn->blocks; i++) {
            b.a = a + (ptrdiff_t)turn->first[i] * g->a_row;
            b.sums = sums[i][j];
            ask(&next, groups * t->group_bytes / 2 / turn->blocks);
            run_blocks[turn->height - HEIGHT_MIN](&b);
        }
    }
}

static void take_turn(const struct turn *turn)
{
    _Alignas(64) block_sums sums[BLOCKS_MAX];
    const struct uk_gemm_u8 *g = turn->g;
    struct tile *t = turn->t;
    const size_t groups = g->run / g->group, chunk = CHUNK / g->group;
    tile_begin_panel(g, t, turn->line, 0, turn->panel);
    begin_groups(g, t, turn->panel);
    for (size_t at = 0; at < groups; at += chunk) {
        add_chunk(turn, at, groups - at < chunk ? groups - at : chunk, sums);
    }
    for (size_t i = 0; i < turn->blocks; i++) {
        const float(*from)[AMX_ROWS][UK_VL] = (const float(*)[AMX_ROWS][UK_VL])sums[i];
        tile_begin_rows(g, t, turn->line, turn->first[i], turn->height);
        tile_begin_panel(g, t, turn->line, turn->first[i], turn->panel);
        begin_groups(g, t, turn->panel);
        if (t->width > UK_VL) {
            finish_block(t, from, turn->height, 2);
        } else {
            finish_block(t, from, turn->height, 1);
        }
    }
}

/* All rows of a line. */
static void run_line(struct turn *turn)
{
    const size_t m = turn->g->m;
    for (size_t next = 0; next < m;) {
        for (turn->blocks = 0; turn->blocks < BLOCKS_MAX && next < m; turn->blocks++) {
            size_t first = m - next < turn->height ? m - turn->height : next;
            turn->first[turn->blocks] = first;
            next = first + turn->height;
        }
        take_turn(turn);
    }
}

/* A block of any height takes as long as dot products do for 8 rows, and a panel as long as they do
 * for 6. */
static bool is_faster(size_t rows, size_t blocks)
{
    return rows > 8 * blocks + 6;
}

bool UK_NAME(gemm_groups_u8)(const struct uk_gemm_u8 *g)
{
    const size_t blocks = ((size_t)g->m + AMX_ROWS - 1) / AMX_ROWS;
    if (!g->group || g->group % HALF_STEP || g->group > GROUP_MAX || !is_faster(g->m, blocks)) {
        return false;
    }
    struct uk_segment from_start;
    struct tile t = tile_of(g, &from_start);
    const size_t panels = ((size_t)g->n + UK_NR - 1) / UK_NR;
    struct turn turn = {.g = g,
                        .t = &t,
                        .height = (g->m + blocks - 1) / blocks,
                        .step = g->group % AMX_ROW_BYTES ? HALF_STEP : AMX_ROW_BYTES};
    t.is_copied = false;
    set_groups(g, &t);
    configure(turn.height, turn.step);
    for (turn.panel = 0; turn.panel < panels; turn.panel++) {
        for (turn.line = 0; turn.line < g->lines; turn.line++) {
            run_line(&turn);
        }
    }
    amx_release();
    return true;
}
