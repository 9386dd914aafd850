/* SPDX-License-Identifier: MIT */
/* The kernels of index_kernels.c, which index.c records. */
#ifndef PTED_RUNTIME_OPS_INDEX_PRIV_H
#define PTED_RUNTIME_OPS_INDEX_PRIV_H

#include <stdint.h>

#include "hal/command.h"
#include "runtime/ops/index.h"

#define RT_INDEX_PLACES 1024   /* of a tile at a time */
#define RT_INDEX_NO_LIMIT (-1) /* one value for all places of a mask */

/* The scratch memory of a tile: for each place its byte offset in the table, or -1, and the offset
 * of its element in the list. */
struct rt_index_places {
    int64_t table[RT_INDEX_PLACES], list[RT_INDEX_PLACES];
    int64_t trues; /* true elements of the mask before these places */
};

extern const struct hal_kernel rt_index_take_kernel, rt_index_put_kernel;

/* Shaders do not add doubles or complex numbers: such puts have a kernel for the host alone. */
const struct hal_kernel *rt_index_choose_put(const struct rt_index_constants *constants);

#endif
