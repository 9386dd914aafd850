/* SPDX-License-Identifier: MIT */
/*
 * Loop nests over strided tensors, for kernels that touch every position once.
 *
 * An operator builds a nest when it records a dispatch: the dims, then a row of strides for each
 * operand, the output first. rt_loop_close() drops dims of 1, orders the others as operand 0 lies
 * in memory and merges neighbours that all operands walk as one, so that a single dim is left
 * nearly always. The nest is part of the kernel's constants; operand i is binding i.
 *
 * A tile is a range of positions. A cursor cuts it into runs along the innermost dim: the kernel's
 * loop sees one pointer and one stride for each operand.
 */
#ifndef PTED_RUNTIME_KERNELS_LOOP_H
#define PTED_RUNTIME_KERNELS_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/shape.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#include "runtime/emit/emit.h"
#endif

#define RT_LOOP_OPERANDS_MAX 4

struct rt_loop {
    uint32_t rank; /* at least 1 after rt_loop_close() */
    uint32_t operands;
    int64_t numel;                         /* positions */
    int64_t tile;                          /* positions of a tile */
    int64_t offsets[RT_LOOP_OPERANDS_MAX]; /* bytes from the binding to the first position */
    int64_t dims[SHAPE_RANK_MAX];          /* outermost first */
    int64_t strides[RT_LOOP_OPERANDS_MAX][SHAPE_RANK_MAX]; /* in bytes; 0: broadcast */
};

#ifndef HAL_SHADER
/* ---- recording ----------------------------------------------------------------------------- */

void rt_loop_init(struct rt_loop *loop, uint8_t rank, const int64_t *dims);

/*
 * Adds an operand: a tensor whose dims are aligned at the right; dims that are 1 or missing repeat.
 */
void rt_loop_add(struct rt_loop *loop, const struct rt_tensor *tensor);

/* Adds an operand by its strides and offset, in bytes; a stride may be negative. */
void rt_loop_add_strides(struct rt_loop *loop, const int64_t *strides, int64_t offset);

/* |tile|: positions of a tile, at least 1. No operand can be added afterwards. */
void rt_loop_close(struct rt_loop *loop, int64_t tile);

/* Does the same with tiles chosen for |machine|; each position costs |work|. */
void rt_loop_cut(struct rt_loop *loop, const struct rt_machine *machine, enum rt_work work);

/* Exchanges two dims. After rt_loop_close() that changes only the order of positions. */
void rt_loop_swap(struct rt_loop *loop, uint32_t a, uint32_t b);

/* Returns the grid's x; 0 if a dim is 0. */
uint32_t rt_loop_tiles(const struct rt_loop *loop);

/* ---- in kernels ---------------------------------------------------------------------------- */

struct rt_cursor {
    const struct rt_loop *loop;
    int64_t left;                     /* positions of the tile after this run */
    int64_t count;                    /* positions of this run */
    char *ptrs[RT_LOOP_OPERANDS_MAX]; /* number of the run's first position */
    int64_t index[SHAPE_RANK_MAX];    /* and its coordinates */
};

/* Moves to the front of tile |tile|, before its first run. */
void rt_loop_cursor_init(struct rt_cursor *cursor, const struct rt_loop *loop,
                         void *const *bindings, uint32_t tile);

/* Moves to the next run; false after the last. */
bool rt_loop_cursor_next(struct rt_cursor *cursor);

/*
 * For a kernel that takes several lines at a time: how many whole lines along the last dim but one
 * follow this run, if it is a whole line. They count as done, and the pointers are at the last one
 * of them.
 */
int64_t rt_loop_cursor_lines(struct rt_cursor *cursor);

/* For one operand, the bytes from one position of a run to the next. */
static inline int64_t rt_loop_cursor_stride(const struct rt_cursor *cursor, uint32_t operand)
{
    return cursor->loop->strides[operand][cursor->loop->rank - 1];
}
#endif

#endif
