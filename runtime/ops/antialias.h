/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of antialias.c. */
#ifndef PTED_RUNTIME_OPS_ANTIALIAS_H
#define PTED_RUNTIME_OPS_ANTIALIAS_H

#include "runtime/ops/resample.h"

struct rt_aa_constants {
    enum dtype dtype;
    int64_t channels, tile; /* columns of a tile */
    struct rt_resample_dim h, w;
    struct rt_image x, y;
};

#endif
