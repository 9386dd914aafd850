/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/shape.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/wide.h"

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->rank == b->rank && memcmp(a->dims, b->dims, a->rank * sizeof(a->dims[0])) == 0;
}

int64_t shape_numel(const struct shape *shape)
{
    int64_t numel = 1;
    for (uint8_t i = 0; i < shape->rank; i++) {
        numel *= shape->dims[i];
    }
    return numel;
}

enum status shape_bytes(const struct shape *shape, enum dtype dtype, size_t *out_bytes,
                        struct error *err)
{
    must(shape->rank <= SHAPE_RANK_MAX);
    int64_t nonzero = (int64_t)dtype_bytes(dtype);
    bool is_empty = false;
    size_t bytes = (size_t)nonzero;
    for (uint8_t i = 0; i < shape->rank; i++) {
        int64_t dim = shape->dims[i];
        if (dim < 0) {
            return error_set(err, ST_INVALID, "dim %d is %" PRId64 ", expected 0 or more", i, dim);
        }
        if (dim == 0) {
            is_empty = true;
        } else if (!mul_i64(nonzero, dim, &nonzero) || !wide_to_size((uint64_t)nonzero, &bytes) ||
                   bytes > SIZE_MAX / 2) {
            char text[SHAPE_TEXT_MAX];
            return error_set(err, ST_TOO_LARGE, "a %s tensor of shape %.200s has too many bytes",
                             dtype_text(dtype), shape_print(shape, text));
        }
    }
    *out_bytes = is_empty ? 0 : bytes;
    return ST_OK;
}

const uint8_t *shape_channels_last(uint8_t rank)
{
    static const uint8_t line[] = {0, 2, 1}, image[] = {0, 2, 3, 1}, volume[] = {0, 2, 3, 4, 1};
    return rank == 3 ? line : rank == 4 ? image : rank == 5 ? volume : NULL;
}

void shape_order_strides(const struct shape *shape, const uint8_t *order,
                         int64_t strides[SHAPE_RANK_MAX])
{
    int64_t stride = 1;
    for (int i = shape->rank - 1; i >= 0; i--) {
        int d = order ? order[i] : i;
        strides[d] = stride;
        stride *= shape->dims[d] > 0 ? shape->dims[d] : 1;
    }
}

void shape_strides(const struct shape *shape, int64_t strides[SHAPE_RANK_MAX])
{
    shape_order_strides(shape, NULL, strides);
}

bool shape_reach(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX], int64_t *out_low,
                 int64_t *out_high)
{
    *out_low = *out_high = 0;
    for (uint8_t d = 0; d < shape->rank; d++) {
        int64_t step;
        int64_t *end = strides[d] < 0 ? out_low : out_high;
        if (!mul_i64(shape->dims[d] - 1, strides[d], &step) || !add_i64(*end, step, end)) {
            return false;
        }
    }
    return true;
}

/* The stride of a dim of size 1 is never used. */
bool shape_is_packed_in(const struct shape *shape, const uint8_t *order,
                        const int64_t strides[SHAPE_RANK_MAX], int64_t unit)
{
    int64_t packed[SHAPE_RANK_MAX];
    shape_order_strides(shape, order, packed);
    for (uint8_t d = 0; d < shape->rank; d++) {
        int64_t bytes;
        bool is_same = mul_i64(packed[d], unit, &bytes) && bytes == strides[d];
        if (shape->dims[d] > 1 && !is_same) {
            return false;
        }
    }
    return true;
}

bool shape_is_packed(const struct shape *shape, const int64_t strides[SHAPE_RANK_MAX], int64_t unit)
{
    return shape_is_packed_in(shape, NULL, strides, unit);
}

const char *shape_print(const struct shape *shape, char text[SHAPE_TEXT_MAX])
{
    size_t len = 0;
    text[len++] = '[';
    for (uint8_t i = 0; i < shape->rank; i++) {
        len += (size_t)snprintf(text + len, SHAPE_TEXT_MAX - len, "%s%" PRId64, i ? "," : "",
                                shape->dims[i]);
    }
    must(len + 2 <= SHAPE_TEXT_MAX);
    text[len++] = ']';
    text[len] = '\0';
    return text;
}
