/* SPDX-License-Identifier: MIT */
/* FEAT_I8MM: dot products, and products of matrices of 2 x 8 and 8 x 2 8-bit numbers, of which a
 * pair of rows takes each weight once (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_I8MM_H
#define PTED_HAL_CPU_UK_SIMD_I8MM_H

#include "hal/cpu/uk/simd_dotprod.h"

#define UK_LEVEL_I8MM
#undef UK_DOT_LEVEL
#define UK_DOT_LEVEL i8mm
#define UK_U8_SPEED 2

#endif
