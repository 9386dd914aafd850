/* SPDX-License-Identifier: MIT */
/* AVX-512 BF16: AVX-512 VNNI, and dot products of bfloat16 numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AVX512_BF16_H
#define PTED_HAL_CPU_UK_SIMD_AVX512_BF16_H

#include "hal/cpu/uk/simd_avx512_vnni.h"

#define UK_BYTES_LEVEL avx512_vnni
#define UK_BF16_LEVEL avx512_bf16

#endif
