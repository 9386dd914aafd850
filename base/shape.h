/* SPDX-License-Identifier: MIT */
/*
 * Concrete shapes: at most SHAPE_RANK_MAX dims, each >= 0. A value type: copy it freely, except in
 * kernels. Products are checked even after a dim of 0, so a shape of 0 x huge is refused.
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

/* Returns the number of elements; 1 for rank 0. The caller has checked the dims with
 * shape_bytes(). */
int64_t shape_numel(const struct shape *shape);

/* Gives the bytes of a packed tensor. ST_INVALID: a dim is negative. ST_TOO_LARGE: the product
 * is more than half of the addresses, with dims of 0 as 1. */
MUST_CHECK enum status shape_bytes(const struct shape *shape, enum dtype dtype, size_t *out_bytes,
                                   struct error *err);

/*
 * Returns the order "channels last" of tensors of |rank|: the dims from outermost to innermost in
 * memory, dim 1 innermost. NULL: tensors of that rank have no channels; those of 3 to 5 dims have.
 * The same pointer for the same rank.
 */
const uint8_t *shape_channels_last(uint8_t rank);

/* Computes row-major strides in elements. */
void shape_strides(const struct shape *shape, int64_t strides[SHAPE_RANK_MAX]);

/* Computes the strides in elements of a packed tensor in |order|: the dims from outermost to
 * innermost in memory, NULL: row-major. */
void shape_order_strides(const struct shape *shape, const uint8_t *order,
                         int64_t strides[SHAPE_RANK_MAX]);

/*
 * Finds the range of offsets that the elements of a tensor reach, relative to the element whose
 * indices are all 0: from |*out_low| (<= 0) to |*out_high| (>= 0), in the unit of |strides|.
 * Strides may be negative. The tensor has at least one element. False: the range overflows 64 bits.
 */
bool shape_reach(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX], int64_t *out_low,
                 int64_t *out_high);

/* Are |strides| the strides of a packed, row-major tensor whose neighbouring elements are |unit|
 * apart? */
bool shape_is_packed(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX],
                     int64_t unit);

/* Does the same for a packed tensor in |order|. */
bool shape_is_packed_in(const struct shape *shape, const uint8_t *order,
                        const int64_t strides[SHAPE_RANK_MAX], int64_t unit);

/* Writes "[2,3]" into |text|, terminated, and cut if it does not fit. Returns |text|. */
#define SHAPE_TEXT_MAX 344
const char *shape_print(const struct shape *shape, char text[SHAPE_TEXT_MAX]);
#endif

#endif
