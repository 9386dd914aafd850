/* SPDX-License-Identifier: MIT */
/*
 * One run of a product with AMX: blocks of rows of A, one below the other, by one panel of B. Tiles
 * 0 and 1 have the sums of the first block, tiles 2 and 3 have the sums of the second. A file that
 * includes this header has defined AMX_DOT, the instruction.
 *
 * Sizes are in bytes here, because both kinds of numbers are multiplied in words of four bytes: a
 * row of A is words, and a panel of B has one word of each column, then the next of each. A run is
 * cut into steps of 64 bytes. Its end is shorter, which needs two tiles of another shape; if there
 * is no such end, or nothing before it, those two hold the second halves of A and B.
 */
#ifndef PTED_HAL_CPU_UK_AMX_RUN_H
#define PTED_HAL_CPU_UK_AMX_RUN_H

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/simd.h"

#define AMX_WORD 4
#define B_STRIDE (UK_NR * AMX_WORD) /* from one word of a column to the next */

struct amx_run {
    const uint8_t *a, *b;
    size_t bytes; /* of a row */
    ptrdiff_t a_row,
        second; /* from one row to the next; from the first block to the second, or 0 */
    /* Memory that later runs read. Each step asks for |ahead_bytes| of it. */
    const uint8_t *ahead;
    size_t ahead_bytes;
};

/* Blocks of |height| rows, and runs of |bytes|. */
static void amx_configure_run(size_t height, size_t bytes)
{
    struct amx_config config = {.palette = 1};
    size_t rest = bytes % AMX_ROW_BYTES, last = rest ? rest : AMX_ROW_BYTES;
    size_t first = bytes < AMX_ROW_BYTES ? last : AMX_ROW_BYTES;
    for (int i = 0; i < AMX_TILES; i++) {
        config.rows[i] = (uint8_t)height;
        config.row_bytes[i] = AMX_ROW_BYTES;
    }
    config.row_bytes[4] = (uint16_t)first;
    config.rows[5] = (uint8_t)(first / AMX_WORD);
    config.row_bytes[6] = (uint16_t)last;
    config.rows[7] = (uint8_t)(last / AMX_WORD);
    amx_configure(&config);
}

/* One step of whole tiles: A in 4 and 6, B in 5 and 7. */
UK_INLINE void step(const uint8_t *a, ptrdiff_t a_row, ptrdiff_t second, const uint8_t *b,
                    bool is_wide)
{
    AMX_LOAD(4, a, a_row);
    AMX_LOAD(5, b, B_STRIDE);
    AMX_DOT(0, 4, 5);
    if (is_wide) {
        AMX_LOAD(7, b + AMX_ROW_BYTES, B_STRIDE);
        AMX_DOT(1, 4, 7);
    }
    if (second) {
        AMX_LOAD(6, a + second, a_row);
        AMX_DOT(2, 6, 5);
        if (is_wide) {
            AMX_DOT(3, 6, 7);
        }
    }
}

/* The same with one register for A, |ta|, and one for B, |tb|. */
#define STEP_ALONE(ta, tb, a, a_row, second, b, is_wide)                                           \
    do {                                                                                           \
        AMX_LOAD(ta, a, a_row);                                                                    \
        AMX_LOAD(tb, b, B_STRIDE);                                                                 \
        AMX_DOT(0, ta, tb);                                                                        \
        if (second) {                                                                              \
            AMX_LOAD(ta, (a) + (second), a_row);                                                   \
            AMX_DOT(2, ta, tb);                                                                    \
        }                                                                                          \
        if (is_wide) {                                                                             \
            AMX_LOAD(tb, (b) + AMX_ROW_BYTES, B_STRIDE);                                           \
            if (second) {                                                                          \
                AMX_DOT(3, ta, tb);                                                                \
                AMX_LOAD(ta, a, a_row);                                                            \
            }                                                                                      \
            AMX_DOT(1, ta, tb);                                                                    \
        }                                                                                          \
    } while (0)

UK_INLINE void ask_ahead(struct amx_run *run)
{
    for (size_t i = 0; i < run->ahead_bytes; i += AMX_ROW_BYTES) {
        __builtin_prefetch(run->ahead + i);
    }
    run->ahead += run->ahead_bytes;
}

/* Adds the products of a run. */
UK_INLINE void amx_add_run(struct amx_run *run, bool is_wide)
{
    const uint8_t *a = run->a, *b = run->b, *end = a + run->bytes / AMX_ROW_BYTES * AMX_ROW_BYTES;
    ptrdiff_t second = run->second;
    if (run->bytes > 0 && run->bytes < AMX_ROW_BYTES) {
        step(a, run->a_row, second, b, is_wide);
        return;
    }
    if (run->bytes % AMX_ROW_BYTES == 0) {
        for (; a < end; a += AMX_ROW_BYTES, b += AMX_ROW_BYTES * UK_NR) {
            step(a, run->a_row, second, b, is_wide);
            ask_ahead(run);
        }
        return;
    }
    for (; a < end; a += AMX_ROW_BYTES, b += AMX_ROW_BYTES * UK_NR) {
        STEP_ALONE(4, 5, a, run->a_row, second, b, is_wide);
    }
    STEP_ALONE(6, 7, a, run->a_row, second, b, is_wide);
}

#endif
