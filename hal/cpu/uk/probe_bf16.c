/* SPDX-License-Identifier: MIT */
/* The most multiply-adds of bfloat16 numbers that a thread can execute: see probe_f32.c. */
#include "config.h"

#include "hal/cpu/uk/level.h"

#define LOOPS 4096
#define CHAINS 12

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
            __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(chain[i]) : "v"(half));
        }
    }
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum += chain[i];
    }
    *out = sum[0];
    return (uint64_t)LOOPS * CHAINS * UK_VL * 2;
}
