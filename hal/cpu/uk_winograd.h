/* SPDX-License-Identifier: MIT */
/*
 * Winograd's convolution for kernels of 3 x 3 at step 1, F(2 x 2, 3 x 3) and F(4 x 4, 3 x 3); part
 * of hal/cpu/uk.h.
 *
 * A tile of |side| x |side| outputs depends on a patch of (side + 2)^2 inputs. Patches and kernels
 * are transformed; then each of the (side + 2)^2 elements is a matrix product over the channels,
 * and one more transformation makes outputs of the sums:
 *
 *     Y = A^T (sum over channels of (G g G^T) * (B^T d B)) A
 *
 * A tile takes 16 products for a channel instead of 36 with side 2, and 36 instead of 144 with side
 * 4. The price is rounding: tests/hal/test_uk_winograd.c has bounds. Also, where an input is
 * infinite or a NaN, all outputs of its tiles can be NaN.
 */
#ifndef PTED_HAL_CPU_UK_WINOGRAD_H
#define PTED_HAL_CPU_UK_WINOGRAD_H

#include <stddef.h>
#include <stdint.h>

/* Returns the elements of a transformed patch. */
static inline uint32_t uk_winograd_elements(uint32_t side)
{
    return (side + 2) * (side + 2);
}

/* Transformed kernels: for each element panels as pack_f32 makes them, of |channels| rows. */
struct uk_winograd_pack {
    uint32_t side;
    const float *w; /* [n][channels][3][3] */
    uint32_t n, channels;
    float *packed;
    size_t element; /* floats from the panels of one element to those of the next */
};

/*
 * y = activation(clamp(convolution of x + bias + residual, min, max)) for tiles [begin, end). Tiles
 * are counted along the rows of an image, then down its columns, then image by image. Strides are
 * in floats. A tile's outputs depend on its image and its place alone.
 */
struct uk_winograd_f32 {
    uint32_t side;
    const float *x;
    ptrdiff_t x_image, x_line, x_pixel;
    uint32_t height, width, channels; /* of x */
    uint32_t pad_top, pad_left;
    const float *u; /* transformed kernels of the first of the |n| columns, 64-byte aligned */
    size_t u_element;
    const float *bias;     /* n; NULL: none */
    const float *residual; /* NULL: none; with y's strides. May be y */
    float *y;
    ptrdiff_t y_image, y_line, y_pixel;
    uint32_t out_height, out_width, n; /* of y */
    uint64_t begin, end;
    void *scratch; /* uk_winograd_scratch() bytes, 64-byte aligned; contents do not matter */
    float min, max;
    void (*activation)(float *y, const float *x, size_t n); /* a uk_unary_f32_f; NULL: none */
};

/* Columns that are multiplied before their outputs are made. */
#define UK_WINOGRAD_COLUMNS 64

/* Returns the floats from one row of a transformed patch to the next: whole vectors of every level,
 * and for powers of two of channels no multiple of a page. */
static inline size_t uk_winograd_row(size_t channels)
{
    return (channels + 15) / 16 * 16 + 16;
}

/* Returns the floats from one element to the next for |tiles| rows of |row| floats. Elements that
 * are a multiple of 4 KiB apart would evict each other from the first-level cache. */
static inline size_t uk_winograd_element(size_t tiles, size_t row)
{
    return tiles * row + 16;
}

/* Returns the bytes of scratch for |tiles| tiles at a time, at most 2^16, of at most 2^16
 * channels. */
static inline size_t uk_winograd_scratch(uint32_t side, size_t channels, size_t tiles)
{
    size_t row = uk_winograd_row(channels);
    size_t in = uk_winograd_element(tiles, row);
    size_t out = uk_winograd_element(tiles, UK_WINOGRAD_COLUMNS);
    return uk_winograd_elements(side) * (in + out + row) * sizeof(float);
}

#endif
