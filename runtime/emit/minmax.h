/* SPDX-License-Identifier: MIT */
/* The smaller and the larger of two extents. */
#ifndef PTED_RUNTIME_EMIT_MINMAX_H
#define PTED_RUNTIME_EMIT_MINMAX_H

#include <stdint.h>

static inline int64_t rt_min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static inline int64_t rt_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

#endif
