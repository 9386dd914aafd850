/* SPDX-License-Identifier: MIT */
/*
 * Concrete shapes: at most SHAPE_RANK_MAX dims, each >= 0. A value type; copying it is cheap enough
 * everywhere but in kernels. Products are checked, also behind a zero dim, so that 0 x huge is
 * refused rather than believed.
 */
#ifndef PTED_BASE_SHAPE_H
#define PTED_BASE_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#define SHAPE_RANK_MAX 16

#ifndef HAL_SHADER
#include "base/dtype.h"
#include "base/status.h"

struct shape {
    uint8_t rank;
    int64_t dims[SHAPE_RANK_MAX]; /* only the first |rank| mean anything */
};

bool shape_equal(const struct shape *a, const struct shape *b);

/* Number of elements; 1 for rank 0. The dims are known to be valid (shape_bytes() said so). */
int64_t shape_numel(const struct shape *shape);

/* Bytes of a packed tensor; ST_INVALID for a negative dim, ST_TOO_LARGE when a product wraps. */
MUST_CHECK enum status shape_bytes(const struct shape *shape, enum dtype dtype, size_t *out_bytes,
                                   struct error *err);

/* Row-major strides in elements. */
void shape_strides(const struct shape *shape, int64_t strides[SHAPE_RANK_MAX]);

/*
 * How far the elements of a tensor that has some lie from the first one, whose indices are all 0:
 * from |*out_low|, which is 0 or less, to |*out_high|, in the unit of |strides|, which may have any
 * sign. False: beyond what can be counted.
 */
bool shape_reach(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX], int64_t *out_low,
                 int64_t *out_high);

/* Are |strides| those of a packed, row-major tensor of elements that are |unit| of them apart? */
bool shape_is_packed(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX],
                     int64_t unit);

/* "[2,3]" into |text|, terminated, cut when it does not fit; returns |text|. */
#define SHAPE_TEXT_MAX 344
const char *shape_print(const struct shape *shape, char text[SHAPE_TEXT_MAX]);
#endif

#endif
