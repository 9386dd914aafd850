/* SPDX-License-Identifier: MIT */
/* FEAT_DotProd: NEON, and dot products of signed 8-bit numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_DOTPROD_H
#define PTED_HAL_CPU_UK_SIMD_DOTPROD_H

#include "hal/cpu/uk/simd_neon.h"

#define UK_LEVEL_DOTPROD
#define UK_BASE_LEVEL neon
#define UK_DOT_LEVEL dotprod

#endif
