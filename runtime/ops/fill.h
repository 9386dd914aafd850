/* SPDX-License-Identifier: MIT */
/* What the kernel of tensors of one value is told. */
#ifndef PTED_RUNTIME_OPS_FILL_H
#define PTED_RUNTIME_OPS_FILL_H

#include <stdint.h>

struct rt_fill {
    uint8_t pattern[16]; /* the element, repeated; tiles have whole patterns, as many each */
};

#ifndef HAL_SHADER
#include <stddef.h>

/* Bytes of a tile of so many. */
static inline size_t rt_fill_share(size_t bytes, size_t tiles)
{
    const size_t whole = sizeof(((struct rt_fill *)NULL)->pattern);
    return ((bytes - 1) / tiles / whole + 1) * whole;
}
#endif

#endif
