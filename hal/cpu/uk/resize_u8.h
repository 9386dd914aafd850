/* SPDX-License-Identifier: MIT */
/* The functions of a level that resizes, for its table. */
#ifndef PTED_HAL_CPU_UK_RESIZE_U8_H
#define PTED_HAL_CPU_UK_RESIZE_U8_H

#include "hal/cpu/uk/simd.h"
#include "hal/resize.h"

void UK_DOT(resize_across_u8)(const struct hal_resize_axis *axis, const uint8_t *row, uint8_t *out);
void UK_DOT(resize_down_u8)(const struct hal_resize_axis *axis, uint32_t i,
                            const uint8_t *const *rows, size_t len, uint8_t *out);
void UK_DOT(resize_pack_u8)(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out);

extern const struct hal_resize UK_NAME(hal_resize);

#endif
