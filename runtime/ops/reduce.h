/* SPDX-License-Identifier: MIT */
/*
 * Between the parts of the reduction family: reduce.c knows the operators, reduce_kernels.c folds
 * elements, softmax.c holds what keeps its input's shape (softmax, running sums).
 */
#ifndef PTED_RUNTIME_OPS_REDUCE_H
#define PTED_RUNTIME_OPS_REDUCE_H

#include "base/shape.h"
#include "runtime/ops/convert.h"
#ifndef HAL_SHADER
#include "runtime/ops/op.h"
#endif

enum rt_fold { RT_FOLD_SUM, RT_FOLD_PROD, RT_FOLD_MAX, RT_FOLD_MIN, RT_FOLD_ANY, RT_FOLD_COUNT };

/* What an output is made of: the folded value, where it was found, or a statistic. */
enum rt_fold_result { RT_RESULT_VALUE, RT_RESULT_INDEX, RT_RESULT_MEAN, RT_RESULT_VARIANCE };

/* Positions by one tensor's strides, in bytes; outermost first. */
struct rt_nest {
    uint32_t rank; /* 1 or more */
    int64_t numel;
    int64_t dims[SHAPE_RANK_MAX], strides[SHAPE_RANK_MAX];
};

struct rt_reduce_output {
    enum rt_fold_result result;
    enum dtype dtype;
};

/* Output o's element is made of kept position o and all reduced positions. */
struct rt_reduce_constants {
    struct rt_nest kept, reduced;
    enum rt_fold fold;
    enum rt_class class;
    enum dtype dtype; /* of the input */
    uint32_t output_count;
    struct rt_reduce_output outputs[2];
    double correction; /* of a variance */
    int64_t tile;      /* outputs of a tile; BY_COLUMNS: columns, at most RT_REDUCE_COLUMNS */
};
_Static_assert(sizeof(struct rt_reduce_constants) <= HAL_CONSTANTS_MAX, "constants are copied");

/* Of what reduces along a dim and keeps it, [outer][length][inner]. */
struct rt_along {
    int64_t outer, length, inner;
    int64_t tile; /* rows or columns of a tile */
    enum dtype in, out;
    uint32_t is_log;
};

#define RT_REDUCE_CHUNK 512
/* The most columns that are folded together. */
#define RT_REDUCE_COLUMNS 256
/* A chunk of elements; or of one row of columns, the columns' values and their wide sums. */
#define RT_REDUCE_SCRATCH_BYTES ((size_t)RT_REDUCE_CHUNK * RT_CLASS_BYTES_MAX * 3)

/* Variants of the SPIR-V form. */
enum rt_reduce_variant { RT_REDUCE_ROWS, RT_REDUCE_BY_COLUMNS };

#ifndef HAL_SHADER
/* Bindings of both: the outputs, then the input. The second one is for doubles. */
extern const struct hal_kernel rt_reduce_rows_kernel, rt_reduce_rows_f64_kernel;
/* For kept positions that are contiguous: tile (x, y) is a block of columns of the innermost kept
 * dim, at position y of the others. Value and mean only. */
extern const struct hal_kernel rt_reduce_columns_kernel, rt_reduce_columns_f64_kernel;

/* What softmax.c does its rows by, and cumulative sums. */
extern const struct hal_kernel rt_softmax_kernel, rt_cumsum_kernel;

enum status rt_softmax_shape(struct rt_shape_call *call);
enum status rt_softmax_emit(struct rt_emit *emit, struct error *err);
enum status rt_log_softmax_emit(struct rt_emit *emit, struct error *err);
enum status rt_cumsum_shape(struct rt_shape_call *call);
enum status rt_cumsum_emit(struct rt_emit *emit, struct error *err);
#endif

#endif
