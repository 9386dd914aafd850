/* SPDX-License-Identifier: MIT */
/* FEAT_BF16: I8MM, and products of matrices of 2 x 4 and 4 x 2 bfloat16 numbers (simd.h). */
#ifndef PTED_HAL_CPU_UK_SIMD_BF16_H
#define PTED_HAL_CPU_UK_SIMD_BF16_H

#include "hal/cpu/uk/simd_i8mm.h"

#define UK_BYTES_LEVEL i8mm
#define UK_BF16_LEVEL bf16
#define UK_BF16_SKIPS false /* two rows share a product */

#endif
