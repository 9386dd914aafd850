/* SPDX-License-Identifier: MIT */
/* The most multiply-adds that a thread can execute: no loads, and no chain waits for its sums. */
#include "config.h"

#include "hal/cpu/uk/level.h"

#define LOOPS 4096
#define CHAINS 12 /* more than the latency of a multiply-add times the ports for it */

uint64_t UK_BASE(probe_f32)(float *out)
{
    const vf x = v_splat(0.5f), y = v_splat(0.25f);
    vf chain[CHAINS], sum = {0};
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        chain[i] = v_splat((float)i);
    }
    for (int n = 0; n < LOOPS; n++) {
        UK_UNROLL
        for (int i = 0; i < CHAINS; i++) {
            chain[i] = chain[i] * x + y;
        }
    }
    UK_UNROLL
    for (int i = 0; i < CHAINS; i++) {
        sum += chain[i];
    }
    *out = sum[0];
    return (uint64_t)LOOPS * CHAINS * UK_VL;
}
