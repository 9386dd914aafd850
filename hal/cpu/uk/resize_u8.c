/* SPDX-License-Identifier: MIT */
/* Resizing rows of pixels (hal/resize.h), as well as the level multiplies small integers. */
#include "config.h"

#include "hal/cpu/uk/resize_u8.h"
#include "hal/cpu/uk/resize_u8_plain.h"
#ifdef UK_LEVEL_AVX512_VNNI
#include "hal/cpu/uk/resize_u8_dots.h"
#endif
#ifdef __AVX2__
#include "hal/cpu/uk/resize_u8_pairs.h"
#define LOOP(name) uk_resize_##name##_pairs
#else
#define LOOP(name) uk_resize_##name##_plain
#endif

void UK_NAME(resize_across_u8)(const struct hal_resize_axis *axis, const uint8_t *row, uint8_t *out)
{
#ifdef UK_LEVEL_AVX512_VNNI
    if (axis->is_packed) {
        uk_resize_across_dots(axis, row, out);
        return;
    }
#endif
    LOOP(across)(axis, row, out);
}

void UK_NAME(resize_down_u8)(const struct hal_resize_axis *axis, uint32_t i,
                             const uint8_t *const *rows, size_t len, uint8_t *out)
{
#ifdef UK_LEVEL_AVX512_VNNI
    if (axis->is_packed) {
        uk_resize_down_dots(axis, i, rows, len, out);
        return;
    }
#endif
    LOOP(down)(axis, i, rows, len, out);
}

void UK_NAME(resize_pack_u8)(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    LOOP(pack)(row, count, is_bgr, out);
}
