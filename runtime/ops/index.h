/* SPDX-License-Identifier: MIT */
/* What the kernels of index.c and along.c are told. */
#ifndef PTED_RUNTIME_OPS_INDEX_H
#define PTED_RUNTIME_OPS_INDEX_H

#include "base/dtype.h"
#include "base/shape.h"
#ifndef HAL_SHADER
#include "hal/kernel.h"
#include "runtime/ops/element.h"
#endif

enum rt_index_mode { RT_INDEX_TAKE, RT_INDEX_PUT, RT_INDEX_ADD };

struct rt_index_constants {
    enum rt_index_mode mode;
    enum dtype dtype;
    uint32_t first; /* the first index tensor's binding */
    uint8_t count;  /* index tensors; of a mask, its dims */
    uint8_t is_mask;
    int64_t values;     /* that a mask's places have, or NO_LIMIT: one for all */
    uint8_t rest, rank; /* rest dims, then index dims up to rank */
    uint8_t wraps;      /* negative places count from the end */
    uint32_t words;     /* of a put: the binding of its update's */
    uint32_t i32;       /* a bit for each index tensor that is of that type, not i64 */
    int64_t run;        /* bytes that both sides have in one piece */
    int64_t piece;      /* of a tile */
    int64_t rows, tile_rows;
    int64_t places, tile_places;
    int64_t dims[SHAPE_RANK_MAX];
    int64_t table[SHAPE_RANK_MAX]; /* strides in bytes: of the rest dims */
    int64_t list[SHAPE_RANK_MAX];
    int64_t sizes[SHAPE_RANK_MAX];  /* of the table's dims that are indexed, by index tensor */
    int64_t steps[SHAPE_RANK_MAX];  /* their strides in bytes */
    uint16_t masks[SHAPE_RANK_MAX]; /* the index dims that a tensor has; the others it repeats */
};

_Static_assert(sizeof(struct rt_index_constants) <= HAL_CONSTANTS_MAX,
               "constants of index kernels");

enum rt_along_mode {
    RT_ALONG_GATHER,
    RT_ALONG_SCATTER,
    RT_ALONG_FILL,
    RT_ALONG_ADD,
    RT_ALONG_SUM, /* these and the following in a wider type, rounded once */
    RT_ALONG_PROD,
    RT_ALONG_MEAN,
    RT_ALONG_AMAX,
    RT_ALONG_AMIN,
};

/* One dim of the walk: what is outside of the table is kept, but not scattered to. */
struct rt_along_dim {
    int64_t table_size, index_size;
    int64_t table, index, list; /* strides in elements */
};

struct rt_along_constants {
    enum rt_along_mode mode;
    enum dtype dtype;
    uint32_t is_i32;
    uint32_t has_self; /* SUM and behind: what the table has is one of the values */
    uint32_t rank;     /* outer dims */
    int64_t rows;      /* of all outer dims: the table's, or for gather the index's */
    int64_t tile_rows;
    int64_t tile_columns;      /* of |inner| */
    struct rt_along_dim along; /* the dim that is indexed */
    struct rt_along_dim inner; /* the last dim if that is another, else one element */
#ifdef HAL_SHADER
    uint64_t value;
#else
    union rt_element value; /* RT_ALONG_FILL */
#endif
    struct rt_along_dim dims[SHAPE_RANK_MAX];
};

_Static_assert(sizeof(struct rt_along_constants) <= HAL_CONSTANTS_MAX,
               "constants of along kernels");

#endif
