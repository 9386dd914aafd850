/* SPDX-License-Identifier: MIT */
/* Constants for the kernel that fills a tensor with one value. */
#ifndef PTED_RUNTIME_OPS_FILL_H
#define PTED_RUNTIME_OPS_FILL_H

#include <stdint.h>

struct rt_fill {
    uint8_t
        pattern[16]; /* the element, repeated; each tile has whole patterns, all tiles as many */
};

#ifndef HAL_SHADER
#include <stddef.h>

/* Returns the bytes of a tile of this many patterns. */
static inline size_t rt_fill_share(size_t bytes, size_t tiles)
{
    const size_t whole = sizeof(((struct rt_fill *)NULL)->pattern);
    return ((bytes - 1) / tiles / whole + 1) * whole;
}
#endif

#endif
