/* SPDX-License-Identifier: MIT */
/* Words of the shaders in runtime/kernels/shaders/, by contrib/shaders.sh. */
#ifndef PTED_RUNTIME_KERNELS_SHADERS_GENERATED_SPIRV_H
#define PTED_RUNTIME_KERNELS_SHADERS_GENERATED_SPIRV_H

#include <stdint.h>

/* clang-format off */
extern const uint32_t gemm_big_spirv[9230];
extern const uint32_t gemm_gpu_spirv[9226];
extern const uint32_t gemm_spirv[7244];
extern const uint32_t gemm_f16_spirv[11120]; /* of source 3393432930 */
extern const uint32_t gemm_matrices_spirv[9721]; /* of source 577252665 */
extern const uint32_t keep_spirv[2046];
extern const uint32_t pack_spirv[1677];
extern const uint32_t qgemm_dots_spirv[9694]; /* of source 1385844949 */
extern const uint32_t qgemm_gpu_spirv[9858];
extern const uint32_t qgemm_spirv[9026];
extern const uint32_t qgemm_matrices_spirv[10076]; /* of source 84640505 */
extern const uint32_t strided_copy_spirv[4518];
/* clang-format on */

#endif
