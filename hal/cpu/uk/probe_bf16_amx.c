/* SPDX-License-Identifier: MIT */
/* The most multiply-adds of bfloat16 numbers that a thread can execute: see probe_f32.c. */
#include "config.h"

#include "hal/cpu/uk/amx.h"
#include "hal/cpu/uk/level.h"

#define LOOPS 512
#define CHAINS 4

uint64_t UK_NAME(probe_bf16)(float *out)
{
    struct amx_config config = {.palette = 1};
    _Alignas(64) float sums[AMX_ROWS][AMX_ROW_BYTES / 4];
    for (int i = 0; i < AMX_TILES; i++) {
        config.rows[i] = AMX_ROWS;
        config.row_bytes[i] = AMX_ROW_BYTES;
    }
    amx_configure(&config);
    for (int n = 0; n < LOOPS; n++) {
        AMX_DOT_BF16(0, 4, 5);
        AMX_DOT_BF16(1, 4, 5);
        AMX_DOT_BF16(2, 4, 5);
        AMX_DOT_BF16(3, 4, 5);
    }
    AMX_STORE(0, sums, sizeof(sums[0]));
    amx_release();
    *out = sums[0][0];
    return (uint64_t)LOOPS * CHAINS * AMX_ROWS * AMX_ROWS * AMX_ROW_BYTES / sizeof(uint16_t);
}
