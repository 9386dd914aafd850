/* SPDX-License-Identifier: MIT */
/* AMX-INT8: products of tiles of 8-bit numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AMX_INT8_H
#define PTED_HAL_CPU_UK_SIMD_AMX_INT8_H

#include "hal/cpu/uk/simd_amx.h"

#define UK_BF16_LEVEL avx512_bf16

#endif
