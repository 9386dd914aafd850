/* SPDX-License-Identifier: MIT */
/* Resizing with plain loops, which compilers make vectors of. */
#ifndef PTED_HAL_CPU_UK_RESIZE_U8_PLAIN_H
#define PTED_HAL_CPU_UK_RESIZE_U8_PLAIN_H

#include "hal/cpu/uk/simd.h"
#include "hal/resize.h"

#define UK_RESIZE_HALF (1 << (HAL_RESIZE_BITS - 1))
#define UK_RESIZE_BLOCK 64 /* bytes of a row whose sums are kept at a time */

UK_INLINE uint8_t uk_resize_cut(int32_t sum)
{
    int32_t value = sum >> HAL_RESIZE_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

UK_INLINE void uk_resize_across_plain(const struct hal_resize_axis *axis, const uint8_t *row,
                                      uint8_t *out)
{
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint8_t *in = row + 4 * (size_t)axis->from[i];
        int32_t sums[4] = {UK_RESIZE_HALF, UK_RESIZE_HALF, UK_RESIZE_HALF, UK_RESIZE_HALF};
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            int32_t weight = hal_resize_weight(axis, (size_t)i * axis->stride + k);
            for (int c = 0; c < 4; c++) {
                sums[c] += in[4 * (size_t)k + (size_t)c] * weight;
            }
        }
        for (int c = 0; c < 4; c++) {
            out[4 * (size_t)i + (size_t)c] = uk_resize_cut(sums[c]);
        }
    }
}

UK_INLINE void uk_resize_down_plain(const struct hal_resize_axis *axis, uint32_t i,
                                    const uint8_t *const *rows, size_t len, uint8_t *out)
{
    for (size_t at = 0; at < len; at += UK_RESIZE_BLOCK) {
        int32_t sums[UK_RESIZE_BLOCK];
        for (int c = 0; c < UK_RESIZE_BLOCK; c++) {
            sums[c] = UK_RESIZE_HALF;
        }
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            int32_t weight = hal_resize_weight(axis, (size_t)i * axis->stride + k);
            for (int c = 0; c < UK_RESIZE_BLOCK; c++) {
                sums[c] += rows[k][at + (size_t)c] * weight;
            }
        }
        for (int c = 0; c < UK_RESIZE_BLOCK; c++) {
            out[at + (size_t)c] = uk_resize_cut(sums[c]);
        }
    }
}

UK_INLINE void uk_resize_pack_plain(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    int first = is_bgr ? 2 : 0;
    for (size_t i = 0; i < count; i++) {
        out[3 * i] = row[4 * i + (size_t)first];
        out[3 * i + 1] = row[4 * i + 1];
        out[3 * i + 2] = row[4 * i + (size_t)(2 - first)];
    }
}

#endif
