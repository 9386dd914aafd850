/* SPDX-License-Identifier: MIT */
/* Shared by cutting products into tiles and the shader that multiplies them. */
#ifndef PTED_RUNTIME_EMIT_BLOCK_H
#define PTED_RUNTIME_EMIT_BLOCK_H

/* Sizes of the block that a GPU's workgroup multiplies at a time, if tiles are not smaller. A
 * workgroup then needs less than the 16 KiB of shared memory that every device has. */
#define RT_GEMM_BIG_ROWS 64
#define RT_GEMM_BIG_COLUMNS 128
#define RT_GEMM_BIG_LANES 128 /* 8 x 8 outputs for each lane */

#endif
