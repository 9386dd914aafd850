/* SPDX-License-Identifier: MIT */
/* The product with weights that have scales of groups, with AMX. */
#ifndef PTED_HAL_CPU_UK_GEMM_U4_AMX_H
#define PTED_HAL_CPU_UK_GEMM_U4_AMX_H

#include <stdbool.h>

#include "hal/cpu/uk/simd.h"

struct uk_gemm_u8;

/* Returns false, having done nothing, if the product has no such groups or is not faster so. */
bool UK_NAME(gemm_groups_u8)(const struct uk_gemm_u8 *g);

#endif
