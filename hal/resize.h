/* SPDX-License-Identifier: MIT */
/*
 * Resizing rows of pixels of 8 bits on the CPU, for callers that have no device: the inner loops of
 * the level in use (hal/cpu/isa.h), which are micro-kernels (hal/cpu/uk.h). Pixels are 4 bytes:
 * three colours and one that does not count. Output c of a pixel is
 *
 *     (sum of input c * weight + 2^(HAL_RESIZE_BITS - 1)) >> HAL_RESIZE_BITS, cut to 0 ... 255
 *
 * so all levels have the same results. Nothing is checked: who fills in an axis answers for it.
 */
#ifndef PTED_HAL_RESIZE_H
#define PTED_HAL_RESIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HAL_RESIZE_BITS 22

/* A weight is high * 2^HAL_RESIZE_LOW_BITS + low: both parts fit in 16 bits, for vector
 * instructions that multiply these. */
#define HAL_RESIZE_LOW_BITS 11

/*
 * The same weights for instructions that multiply bytes and sum up four products. A block has four
 * taps of four outputs: HAL_RESIZE_DIGITS arrays [output, tap] of one byte, which are the digits of
 * the weights to the base 256, -128 ... 127, the lowest first; and then, of each output, the input
 * that its first tap of all blocks reads.
 */
#define HAL_RESIZE_BLOCK 4
#define HAL_RESIZE_DIGITS 3
#define HAL_RESIZE_BLOCK_BYTES 64

/* Bytes after the end of a row that are readable, and writable if the row is. */
#define HAL_RESIZE_PAD 64

/* Which inputs of a side an output is made of, and with which weights. */
struct hal_resize_axis {
    uint32_t count;
    uint32_t tap_count_max;
    uint32_t stride; /* weights of an output, a multiple of 4; weights beyond its taps are 0 */
    bool is_copy;    /* each output is one input */
    uint32_t *from;  /* [count] the first input of an output */
    uint32_t *taps;  /* [count] the number of its inputs, at least 1 */
    int16_t *high;   /* [count, stride] */
    int16_t *low;
    bool is_packed;       /* |blocks| has been filled */
    uint32_t block_count; /* of an output */
    int8_t *blocks;       /* [(count + 3) / 4, block_count, HAL_RESIZE_BLOCK_BYTES] */
};

struct hal_resize {
    bool is_packed; /* it reads the blocks of an axis, if they are filled */
    /* Outputs of |axis|, which is no copy, from one row of pixels. Writes up to HAL_RESIZE_PAD
     * bytes more. */
    void (*across)(const struct hal_resize_axis *axis, const uint8_t *row, uint8_t *out);
    /* The same from |len| bytes of several rows: output |i| of |axis|, no copy. Row k of its inputs
     * is rows[k]. Writes up to HAL_RESIZE_PAD bytes more than |len|. */
    void (*down)(const struct hal_resize_axis *axis, uint32_t i, const uint8_t *const *rows,
                 size_t len, uint8_t *out);
    /* Pixels of 4 bytes as 3; |is_bgr|: the first and the third change places. */
    void (*pack)(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out);
};

/* Returns the loops of the level in use. Any thread. */
const struct hal_resize *hal_resize(void);

/* Returns the weight at |at| of |axis|, in units of 2^-HAL_RESIZE_BITS. */
static inline int32_t hal_resize_weight(const struct hal_resize_axis *axis, size_t at)
{
    return axis->high[at] * (1 << HAL_RESIZE_LOW_BITS) + axis->low[at];
}

#endif
