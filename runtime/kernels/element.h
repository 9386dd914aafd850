/* SPDX-License-Identifier: MIT */
/* Single elements of any type: for arguments that are a number, and for accumulating. */
#ifndef PTED_RUNTIME_KERNELS_ELEMENT_H
#define PTED_RUNTIME_KERNELS_ELEMENT_H

#include "runtime/emit/emit.h"

union rt_element {
    uint8_t bytes[8];
    uint64_t bits;
};

/* Returns argument |index|, a number of any kind, as an element of |dtype|; converted as convert.h
 * says. */
union rt_element rt_element_of(const struct rt_emit *emit, uint32_t index, enum dtype dtype);

/* In kernels: dst[i] += src[i], contiguous. Sums of halves are rounded each time; bools are
 * combined by "or". */
void rt_element_add(char *dst, const char *src, int64_t n, enum dtype dtype);

#endif
