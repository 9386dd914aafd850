/* SPDX-License-Identifier: MIT */
/* The table of a level. */
#include "config.h"

#include "hal/cpu/uk/level.h"

/* clang-format off */
#define UNARY(upper, lower) [UK_##upper] = UK_NAME(lower##_f32),
#define VECTOR(upper, lower) [UK_##upper] = UK_NAME(lower##_vector_f32),
#define SCALAR(upper, lower) [UK_##upper] = UK_NAME(lower##_scalar_f32),
#define REVERSED(upper, lower) [UK_##upper] = UK_NAME(lower##_reversed_f32),
/* clang-format on */

const struct hal_cpu_uk UK_NAME(hal_cpu_uk) = {
    .name = UK_STRING(UK_LEVEL),
    .f32_nr = UK_NR,
    .f32_mr = UK_MR,
    .gemm_f32 = UK_NAME(gemm_f32),
    .pack_f32 = UK_NAME(pack_f32),
    .dw_f32 = UK_NAME(dw_f32),
    .unary_f32 = {UK_UNARY_F32(UNARY)},
    .binary_f32 = {UK_BINARY_F32(VECTOR)},
    .scalar_f32 = {UK_BINARY_F32(SCALAR)},
    .reversed_f32 = {UK_BINARY_F32(REVERSED)},
    .clamp_f32 = UK_NAME(clamp_f32),
    .leaky_relu_f32 = UK_NAME(leaky_relu_f32),
    .add_scaled_f32 = UK_NAME(add_scaled_f32),
    .sum_f32 = UK_NAME(sum_f32),
    .sum_squares_f32 = UK_NAME(sum_squares_f32),
    .max_f32 = UK_NAME(max_f32),
    .dot_f32 = UK_NAME(dot_f32),
    .softmax_f32 = UK_NAME(softmax_f32),
    .log_softmax_f32 = UK_NAME(log_softmax_f32),
    .layer_norm_f32 = UK_NAME(layer_norm_f32),
    .rows_add_f32 = UK_NAME(rows_add_f32),
    .window_sum_f32 = UK_NAME(window_sum_f32),
    .window_max_f32 = UK_NAME(window_max_f32),
    .f16_to_f32 = UK_NAME(f16_to_f32),
    .f32_to_f16 = UK_NAME(f32_to_f16),
    .bf16_to_f32 = UK_NAME(bf16_to_f32),
    .f32_to_bf16 = UK_NAME(f32_to_bf16),
};
