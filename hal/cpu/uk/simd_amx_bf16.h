/* SPDX-License-Identifier: MIT */
/* AMX-BF16: AMX-INT8, and products of tiles of bfloat16 numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AMX_BF16_H
#define PTED_HAL_CPU_UK_SIMD_AMX_BF16_H

#include "hal/cpu/uk/simd_amx.h"

#define UK_BYTES_LEVEL amx_int8
#define UK_BF16_LEVEL amx_bf16
#define UK_PAIRS_LEVEL avx512_bf16
#define UK_BF16_MR 32
#define UK_BF16_SPEED 8
#define UK_BF16_SKIPS false

#endif
