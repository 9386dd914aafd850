/* SPDX-License-Identifier: MIT */
/* Constants for the kernels of index.c and gather.c. */
#ifndef PTED_RUNTIME_OPS_INDEX_H
#define PTED_RUNTIME_OPS_INDEX_H

#include "base/dtype.h"
#include "base/shape.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#include "runtime/kernels/element.h"
#endif

enum rt_index_mode { RT_INDEX_TAKE, RT_INDEX_PUT, RT_INDEX_ADD };

struct rt_index_constants {
    enum rt_index_mode mode;
    enum dtype dtype;
    uint32_t first; /* binding of the first index tensor */
    uint8_t count;  /* number of index tensors; for a mask, its dims */
    uint8_t is_mask;
    int64_t values;     /* limit on the number of a mask's places; NO_LIMIT: one value for all */
    uint8_t rest, rank; /* rest dims, then index dims up to rank */
    uint8_t wraps;      /* negative places count from the end */
    uint32_t words;     /* for a put, the binding of its update's words */
    uint32_t i32;       /* a bit for each index tensor of that type; others are i64 */
    int64_t run;        /* bytes that are contiguous on both sides */
    int64_t piece;      /* rows of a tile */
    int64_t rows, tile_rows;
    int64_t places, tile_places;
    int64_t dims[SHAPE_RANK_MAX];
    int64_t table[SHAPE_RANK_MAX]; /* strides of the rest dims, in bytes */
    int64_t list[SHAPE_RANK_MAX];
    int64_t sizes[SHAPE_RANK_MAX];  /* sizes of the table's indexed dims, by index tensor */
    int64_t steps[SHAPE_RANK_MAX];  /* and their strides, in bytes */
    uint16_t masks[SHAPE_RANK_MAX]; /* the index dims that a tensor has; it is broadcast along the
                                       others */
};

_Static_assert(sizeof(struct rt_index_constants) <= HAL_CONSTANTS_MAX,
               "constants of index kernels");

enum rt_along_mode {
    RT_ALONG_GATHER,
    RT_ALONG_SCATTER,
    RT_ALONG_FILL,
    RT_ALONG_ADD,
    RT_ALONG_SUM, /* this and the following reductions run in a wider type and round once */
    RT_ALONG_PROD,
    RT_ALONG_MEAN,
    RT_ALONG_AMAX,
    RT_ALONG_AMIN,
};

/* One dim of the walk. Positions outside the table are kept but not scattered to. */
struct rt_along_dim {
    int64_t table_size, index_size;
    int64_t table, index, list; /* strides in elements */
};

struct rt_along_constants {
    enum rt_along_mode mode;
    enum dtype dtype;
    uint32_t is_i32;
    uint32_t has_self; /* from SUM on: the table's own element is one of the values */
    uint32_t rank;     /* outer dims */
    int64_t rows;      /* rows of all outer dims: the table's, for a gather the index's */
    int64_t tile_rows;
    int64_t tile_columns;      /* columns of |inner| in a tile */
    struct rt_along_dim along; /* the dim that is indexed */
    struct rt_along_dim inner; /* the last dim, unless that is the indexed one; then one element */
#ifdef HAL_SHADER
    uint64_t value;
#else
    union rt_element value; /* for RT_ALONG_FILL */
#endif
    struct rt_along_dim dims[SHAPE_RANK_MAX];
};

_Static_assert(sizeof(struct rt_along_constants) <= HAL_CONSTANTS_MAX,
               "constants of along kernels");

#endif
