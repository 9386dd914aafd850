/* SPDX-License-Identifier: MIT */
/* Transposes blocks of elements in registers. */
#ifndef PTED_RUNTIME_KERNELS_TURN_H
#define PTED_RUNTIME_KERNELS_TURN_H

#include <stdint.h>
#include <string.h>

typedef uint32_t rt_vec4 __attribute__((vector_size(16)));

static inline rt_vec4 rt_load_vec4(const char *src)
{
    rt_vec4 v;
    memcpy(&v, src, sizeof(v));
    return v;
}

/* Transposes 4 x 4 elements of 4 bytes. Rows of |src| are |src_i| bytes apart, those of |dst|
 * |dst_j|. */
static inline void rt_turn_4x4(char *dst, int64_t dst_j, const char *src, int64_t src_i)
{
    rt_vec4 a = rt_load_vec4(src), b = rt_load_vec4(src + src_i);
    rt_vec4 c = rt_load_vec4(src + 2 * src_i), d = rt_load_vec4(src + 3 * src_i);
    rt_vec4 ac_low = __builtin_shufflevector(a, c, 0, 4, 1, 5);
    rt_vec4 ac_high = __builtin_shufflevector(a, c, 2, 6, 3, 7);
    rt_vec4 bd_low = __builtin_shufflevector(b, d, 0, 4, 1, 5);
    rt_vec4 bd_high = __builtin_shufflevector(b, d, 2, 6, 3, 7);
    rt_vec4 rows[4] = {__builtin_shufflevector(ac_low, bd_low, 0, 4, 1, 5),
                       __builtin_shufflevector(ac_low, bd_low, 2, 6, 3, 7),
                       __builtin_shufflevector(ac_high, bd_high, 0, 4, 1, 5),
                       __builtin_shufflevector(ac_high, bd_high, 2, 6, 3, 7)};
    memcpy(dst, &rows[0], sizeof(rt_vec4));
    memcpy(dst + dst_j, &rows[1], sizeof(rt_vec4));
    memcpy(dst + 2 * dst_j, &rows[2], sizeof(rt_vec4));
    memcpy(dst + 3 * dst_j, &rows[3], sizeof(rt_vec4));
}

#endif
