/* SPDX-License-Identifier: MIT */
/* Loads of several vectors at a time on aarch64. */
#ifndef PTED_HAL_CPU_UK_LOAD_NEON_H
#define PTED_HAL_CPU_UK_LOAD_NEON_H

#include "hal/cpu/uk/simd.h"

/* Loads |count| vectors, at most four, and moves |*from| behind them. gcc 12 would move it by an
 * instruction of its own. */
UK_INLINE void load_next(int8x16_t v[], const uint8_t **from, const int count)
{
#if defined __OPTIMIZE__ && !defined __clang__ && !defined UK_SANITIZED
#define LOAD_NEXT(n, last)                                                                         \
    if (count == n) {                                                                              \
        int8x16x##n##_t x;                                                                         \
        __asm__("ld1 {%S0.16b - %" last "0.16b}, [%1], %3"                                         \
                : "=w"(x), "+r"(*from)                                                             \
                : "m"(*(const struct v_far *)(const void *)*from), "i"(n * 16));                   \
        memcpy(v, &x, sizeof(x));                                                                  \
        return;                                                                                    \
    }
    LOAD_NEXT(2, "T")
    LOAD_NEXT(3, "U")
    LOAD_NEXT(4, "V")
#undef LOAD_NEXT
#endif
    UK_UNROLL
    for (int i = 0; i < count; i++, *from += 16) {
        v[i] = vld1q_s8((const int8_t *)*from);
    }
}

#endif
