/* SPDX-License-Identifier: MIT */
/* AVX-VNNI: AVX2, and dot products of 8-bit numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_AVX_VNNI_H
#define PTED_HAL_CPU_UK_SIMD_AVX_VNNI_H

#include "hal/cpu/uk/simd_avx2.h"

#define UK_LEVEL_AVX_VNNI
#define UK_BASE_LEVEL avx2

#endif
