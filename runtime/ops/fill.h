/* SPDX-License-Identifier: MIT */
/* What the kernel of tensors of one value is told. */
#ifndef PTED_RUNTIME_OPS_FILL_H
#define PTED_RUNTIME_OPS_FILL_H

#include <stdint.h>

#define RT_FILL_TILE_BYTES 262144

struct rt_fill {
    uint8_t pattern[16]; /* the element, repeated */
};

#endif
