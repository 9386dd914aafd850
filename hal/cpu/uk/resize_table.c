/* SPDX-License-Identifier: MIT */
/* The table of a level for resizing: hal/resize.h. */
#include "config.h"

#include "hal/cpu/uk/resize_u8.h"

const struct hal_resize UK_NAME(hal_resize) = {
    .across = UK_DOT(resize_across_u8),
    .down = UK_DOT(resize_down_u8),
    .pack = UK_DOT(resize_pack_u8),
#ifdef UK_LEVEL_AVX512_VNNI
    .is_packed = true,
#endif
};
