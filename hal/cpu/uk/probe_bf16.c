/* SPDX-License-Identifier: MIT */
/* The most multiply-adds of bfloat16 numbers that a thread can execute: see probe_f32.c. */
#include "config.h"

#include "hal/cpu/uk/level.h"

#define LOOPS 4096
#define CHAINS 12
#if defined UK_LEVEL_NEON
#define PER_LANE 4 /* products of matrices */
#else
#define PER_LANE 2
#endif

uint64_t UK_NAME(probe_bf16)(float *out)
{
    const vi half = (vi)v_splat_bits(0x3f003f00); /* 0.5, twice */
    vf chain[CHAINS], sum = {0};
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        chain[i] = v_splat((float)i);
    }
    for (int n = 0; n < LOOPS; n++) {
        UK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
#if defined UK_LEVEL_NEON
            __asm__ volatile("bfmmla %0.4s, %1.8h, %1.8h" : "+w"(chain[i]) : "w"(half));
#else
            __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(chain[i]) : "v"(half));
#endif
        }
    }
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum += chain[i];
    }
    *out = sum[0];
    return (uint64_t)LOOPS * CHAINS * UK_VL * PER_LANE;
}
