/* SPDX-License-Identifier: MIT */
/* AVX-512 VNNI: AVX-512, and dot products of 8-bit numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AVX512_VNNI_H
#define PTED_HAL_CPU_UK_SIMD_AVX512_VNNI_H

#include "hal/cpu/uk/simd_avx512.h"

#define UK_LEVEL_AVX512_VNNI
#define UK_BASE_LEVEL avx512
#define UK_DOT_LEVEL avx512_vnni

#endif
