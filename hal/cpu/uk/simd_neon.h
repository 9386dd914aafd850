/* SPDX-License-Identifier: MIT */
/* Advanced SIMD of aarch64, which every such processor has: vectors of 16 bytes, 32 of them. So a
 * panel is four vectors wide (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_NEON_H
#define PTED_HAL_CPU_UK_SIMD_NEON_H

#include <arm_neon.h>
#include <stdbool.h>

#define UK_LEVEL_NEON
#define UK_VECTOR_BYTES 16
#define UK_NV 4
#define UK_MR 6
/* The processors read ahead by themselves, and an order is an instruction like any other. */
#define UK_F32_PER_READ 12
#define UK_F32_ASKS_AHEAD false

#include "hal/cpu/uk/simd_types.h"

UK_INLINE vf v_widen_upper(v_shorts x)
{
    return (vf)vshll_n_u16((uint16x4_t)x, 16);
}

UK_INLINE vf v_load_part(const float *p, size_t n)
{
    vf v = {0};
    if (n & 2) {
        v = (vf)vcombine_f32(vld1_f32(p), vdup_n_f32(0));
        if (n & 1) {
            v[2] = p[2];
        }
    } else if (n & 1) {
        v[0] = p[0];
    }
    return v;
}

UK_INLINE void v_store_part(float *p, vf v, size_t n)
{
    if (n & 2) {
        vst1_f32(p, vget_low_f32((float32x4_t)v));
        if (n & 1) {
            p[2] = v[2];
        }
    } else if (n & 1) {
        p[0] = v[0];
    }
}

UK_INLINE vf v_multiply_add(vf a, vf b, vf c)
{
    return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b);
}

UK_INLINE vf v_lesser(vf a, vf b)
{
    return v_select(a < b, a, b);
}

UK_INLINE vf v_greater(vf a, vf b)
{
    return v_select(a > b, a, b);
}

/* Lets gcc forget that |v| is a copy, so that it gets a register of its own. */
#define V_APART(v) __asm__("" : "+w"(v))

/* What a load may reach, for the compiler. */
struct v_far {
    char bytes[1024];
};

/* Loads the vector at |from| + |offset| bytes, a constant below 1008, and, if |is_pair|, the next
 * one. gcc 12 would take two instructions for two. */
UK_INLINE void v_load_pair(vf v[2], const void *from, const int offset, const bool is_pair)
{
    const vf_unaligned *at = (const vf_unaligned *)(const void *)((const char *)from + offset);
#if defined __OPTIMIZE__ && !defined __clang__ && !defined UK_SANITIZED
    if (is_pair) {
        __asm__("ldp %q0, %q1, [%2, %3]"
                : "=w"(v[0]), "=w"(v[1])
                : "r"(from), "i"(offset), "m"(*(const struct v_far *)from));
        return;
    }
#endif
    v[0] = at[0];
    if (is_pair) {
        v[1] = at[1];
    }
}

/* Loads a vector and moves |*from| behind it. gcc 12 would take two instructions. */
UK_INLINE vf v_load_next(const void **from)
{
    vf v;
#if defined __OPTIMIZE__ && !defined __clang__ && !defined UK_SANITIZED
    __asm__("ldr %q0, [%1], #16" : "=w"(v), "+r"(*from) : "m"(*(const struct v_far *)*from));
#else
    v = *(const vf_unaligned *)*from;
    *from = (const char *)*from + sizeof(v);
#endif
    return v;
}

/* One instruction each, which pass a NaN on. */
#define UK_BOUNDS
UK_INLINE vf v_max(vf a, vf b)
{
    return (vf)vmaxq_f32((float32x4_t)a, (float32x4_t)b);
}

UK_INLINE vf v_min(vf a, vf b)
{
    return (vf)vminq_f32((float32x4_t)a, (float32x4_t)b);
}

UK_INLINE vf v_clamp(vf x, vf min, vf max)
{
    return v_min(v_max(x, min), max);
}

#endif
