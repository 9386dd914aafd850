/* SPDX-License-Identifier: MIT */
/* The functions of one level, for its table. Only the files of this folder include it. */
#ifndef PTED_HAL_CPU_UK_LEVEL_H
#define PTED_HAL_CPU_UK_LEVEL_H

#include "hal/cpu/uk.h"
#include "hal/cpu/uk/simd.h"

void UK_NAME(gemm_f32)(const struct uk_gemm_f32 *g);
void UK_NAME(pack_f32)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end);
void UK_NAME(dw_f32)(const struct uk_dw_f32 *d);

/* clang-format off */
#define XX(upper, lower) uk_unary_f32_f UK_NAME(lower##_f32);
UK_UNARY_F32(XX)
#undef XX
#define XX(upper, lower) \
    uk_binary_f32_f UK_NAME(lower##_vector_f32); \
    uk_scalar_f32_f UK_NAME(lower##_scalar_f32), UK_NAME(lower##_reversed_f32);
UK_BINARY_F32(XX)
#undef XX
/* clang-format on */
void UK_NAME(clamp_f32)(float *y, const float *x, float min, float max, size_t n);
uk_scalar_f32_f UK_NAME(leaky_relu_f32);
void UK_NAME(add_scaled_f32)(float *y, const float *a, const float *b, float alpha, size_t n);

uk_reduce_f32_f UK_NAME(sum_f32), UK_NAME(sum_squares_f32), UK_NAME(max_f32);
float UK_NAME(dot_f32)(const float *a, const float *b, size_t n);
void UK_NAME(softmax_f32)(float *y, const float *x, size_t n);
void UK_NAME(log_softmax_f32)(float *y, const float *x, size_t n);
void UK_NAME(layer_norm_f32)(const struct uk_norm_f32 *l);
void UK_NAME(rows_add_f32)(float *acc, const float *x, size_t rows, ptrdiff_t row, size_t n);
void UK_NAME(window_sum_f32)(float *y, const struct uk_window_f32 *w);
void UK_NAME(window_max_f32)(float *y, const struct uk_window_f32 *w);

void UK_NAME(f16_to_f32)(float *y, const uint16_t *x, size_t n);
void UK_NAME(f32_to_f16)(uint16_t *y, const float *x, size_t n);
void UK_NAME(bf16_to_f32)(float *y, const uint16_t *x, size_t n);
void UK_NAME(f32_to_bf16)(uint16_t *y, const float *x, size_t n);

extern const struct hal_cpu_uk UK_NAME(hal_cpu_uk);

#endif
