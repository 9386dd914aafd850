/* SPDX-License-Identifier: MIT */
/* What the levels of AMX have in common: AVX-512 VNNI, and tiles (simd.h). Their processors have
 * two ports for 512-bit multiply-adds. */
#ifndef PTED_HAL_CPU_UK_SIMD_AMX_H
#define PTED_HAL_CPU_UK_SIMD_AMX_H

#include "hal/cpu/uk/simd_avx512_vnni.h"

#define UK_U8_MR 32
#define UK_U8_SPEED 8
#define UK_F32_PER_READ 35
#define UK_F32_ASKS_AHEAD true

#endif
