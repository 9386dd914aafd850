/* SPDX-License-Identifier: MIT */
/* Shared by reduce.c, which has the operators, and reduce_kernels.c, which folds elements. */
#ifndef PTED_RUNTIME_OPS_REDUCE_H
#define PTED_RUNTIME_OPS_REDUCE_H

#include "base/shape.h"
#include "runtime/kernels/convert.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#include "runtime/ops/op.h"
#endif

enum rt_fold { RT_FOLD_SUM, RT_FOLD_PROD, RT_FOLD_MAX, RT_FOLD_MIN, RT_FOLD_ANY, RT_FOLD_COUNT };

/* Kind of an output: the folded value, its position, or a statistic. */
enum rt_fold_result { RT_RESULT_VALUE, RT_RESULT_INDEX, RT_RESULT_MEAN, RT_RESULT_VARIANCE };

/* Positions by the strides of one tensor, in bytes; outermost first. */
struct rt_nest {
    uint32_t rank; /* 1 or more */
    int64_t numel;
    int64_t dims[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX];
};

struct rt_reduce_output {
    enum rt_fold_result result;
    enum dtype dtype;
};

/* An output's element combines its kept position with all reduced positions. */
struct rt_reduce_constants {
    struct rt_nest kept, reduced;
    enum rt_fold fold;
    enum rt_class class;
    enum dtype dtype; /* element type of the input */
    uint32_t output_count;
    struct rt_reduce_output outputs[2];
    double correction; /* correction of a variance */
    int64_t tile;      /* outputs of a tile; with BY_COLUMNS columns, at most RT_REDUCE_COLUMNS;
                          of rt_reduce_blocks_kernel blocks of rows */
};
_Static_assert(sizeof(struct rt_reduce_constants) <= HAL_CONSTANTS_MAX, "constants are copied");

#define RT_REDUCE_CHUNK 512
/* The greatest number of columns that are folded together. */
#define RT_REDUCE_COLUMNS 256
/* Rows after which partial sums of floats are added in double. */
#define RT_REDUCE_BLOCK_ROWS 128
/* Scratch: a chunk of elements; or one row of columns, their values, their wide sums and the places
 * of extremes. */
#define RT_REDUCE_SCRATCH_BYTES ((size_t)RT_REDUCE_CHUNK * RT_CLASS_BYTES_MAX * 3)

/* Variants of the SPIR-V form. */
enum rt_reduce_variant { RT_REDUCE_ROWS, RT_REDUCE_BY_COLUMNS };

#ifndef HAL_SHADER
/* Returns the blocks of rows of one sum. */
static inline int64_t rt_reduce_blocks(const struct rt_reduce_constants *k)
{
    return (k->reduced.numel - 1) / RT_REDUCE_BLOCK_ROWS + 1;
}

/* Bindings of both: the outputs, then the input. The second kernel is for doubles. */
extern const struct hal_kernel rt_reduce_rows_kernel, rt_reduce_rows_f64_kernel;
/* For contiguous kept positions: tile (x, y) is a block of columns of the innermost kept dim, at
 * position y of the other dims. No variance; an index only on the CPU. */
extern const struct hal_kernel rt_reduce_columns_kernel, rt_reduce_columns_f64_kernel;
/*
 * The same sums in two steps, for one reduced dim of floats, so that a worker reads the rows that
 * it wrote before. The first kernel adds the rows of each block; bindings: the sums as floats
 * [positions][blocks][columns], the input. Tile (x, y) is a band of blocks at position y. The
 * second one adds the blocks; bindings: the outputs, these sums. Its tiles are those of columns.
 */
extern const struct hal_kernel rt_reduce_blocks_kernel, rt_reduce_joined_kernel;
#endif

#endif
