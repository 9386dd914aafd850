/* SPDX-License-Identifier: MIT */
/* The most 8-bit multiply-adds that a thread can execute: see probe_f32.c. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

#define LOOPS 4096
#define CHAINS 12

uint64_t UK_NAME(probe_u8)(int32_t *out)
{
    /* Only the lowest number of a word counts, so that no sum overflows. */
    const vi one = v_splat_int(1);
    vi chain[CHAINS], sum = {0};
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        chain[i] = v_splat_int(i);
    }
    for (int n = 0; n < LOOPS; n++) {
        UK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            chain[i] = v_dot(chain[i], chain[i], one); /* of itself: cannot leave the loop */
        }
    }
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum ^= chain[i];
    }
    *out = sum[0];
    return (uint64_t)LOOPS * CHAINS * UK_VL * UK_WORD;
}
