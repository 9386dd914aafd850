/* SPDX-License-Identifier: MIT */
/* Constants for the kernel of distance.c. */
#ifndef PTED_RUNTIME_OPS_DISTANCE_H
#define PTED_RUNTIME_OPS_DISTANCE_H

#include "base/dtype.h"
#include "base/shape.h"

enum rt_distance_norm {
    RT_DISTANCE_NONZERO,
    RT_DISTANCE_1,
    RT_DISTANCE_2,
    RT_DISTANCE_MAX,
    RT_DISTANCE_P
};

struct rt_distance_constants {
    enum dtype dtype;
    enum rt_distance_norm norm;
    double p;
    int64_t coordinates;
    int64_t rows, columns, tile; /* vectors of each matrix, and rows of a tile */
    uint32_t is_pairs;           /* pdist: both matrices are the same, the output is a triangle */
    uint32_t batch_rank;
    int64_t batch[SHAPE_RANK_MAX];
    int64_t strides[2][SHAPE_RANK_MAX]; /* of the batch dims, in vectors; 0: broadcast */
};

#endif
