/* SPDX-License-Identifier: MIT */
/* The table of a level. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

/* clang-format off */
#define UNARY(upper, lower) [UK_##upper] = UK_BASE(lower##_f32),
#define VECTOR(upper, lower) [UK_##upper] = UK_BASE(lower##_vector_f32),
#define SCALAR(upper, lower) [UK_##upper] = UK_BASE(lower##_scalar_f32),
#define REVERSED(upper, lower) [UK_##upper] = UK_BASE(lower##_reversed_f32),
/* clang-format on */

const struct hal_cpu_uk UK_NAME(hal_cpu_uk) = {
    .name = UK_STRING(UK_LEVEL),
    .f32_nr = UK_NR,
    .f32_mr = UK_MR,
    .f32_per_read = UK_F32_PER_READ,
    .f32_asks_ahead = UK_F32_ASKS_AHEAD,
    .gemm_f32 = UK_BASE(gemm_f32),
    .pack_f32 = UK_BASE(pack_f32),
    .dw_f32 = UK_BASE(dw_f32),
#ifdef UK_PICKS
    .group_f32 = UK_BASE(group_f32),
    .group_max = UK_VL,
#endif
    .winograd_f32 = UK_BASE(winograd_f32),
    .winograd_pack_f32 = UK_BASE(winograd_pack_f32),
    .unary_f32 = {UK_UNARY_F32(UNARY)},
    .gelu_short_f32 = UK_BASE(gelu_short_f32),
    .binary_f32 = {UK_BINARY_F32(VECTOR)},
    .scalar_f32 = {UK_BINARY_F32(SCALAR)},
    .reversed_f32 = {UK_BINARY_F32(REVERSED)},
    .quantize = {UK_BASE(quantize_i8), UK_BASE(quantize_u8), UK_BASE(quantize_i16),
                 UK_BASE(quantize_u16), UK_BASE(quantize_i32)},
    .dequantize = {UK_BASE(dequantize_i8), UK_BASE(dequantize_u8), UK_BASE(dequantize_i16),
                   UK_BASE(dequantize_u16), UK_BASE(dequantize_i32)},
    .range_f32 = UK_BASE(range_f32),
    .clamp_f32 = UK_BASE(clamp_f32),
    .leaky_relu_f32 = UK_BASE(leaky_relu_f32),
    .add_scaled_f32 = UK_BASE(add_scaled_f32),
    .affine_f32 = UK_BASE(affine_f32),
    .sum_f32 = UK_BASE(sum_f32),
    .sum_squares_f32 = UK_BASE(sum_squares_f32),
    .max_f32 = UK_BASE(max_f32),
    .dot_f32 = UK_BASE(dot_f32),
    .attend_scores_f32 = UK_BASE(attend_scores_f32),
    .attend_sums_f32 = UK_BASE(attend_sums_f32),
    .attend_scores_i8 = UK_BASE(attend_scores_i8),
    .attend_sums_i8 = UK_BASE(attend_sums_i8),
    .softmax_f32 = UK_BASE(softmax_f32),
    .log_softmax_f32 = UK_BASE(log_softmax_f32),
    .layer_norm_f32 = UK_BASE(layer_norm_f32),
    .rows_add_f32 = UK_BASE(rows_add_f32),
    .window_sum_f32 = UK_BASE(window_sum_f32),
    .window_max_f32 = UK_BASE(window_max_f32),
    .f16_to_f32 = UK_BASE(f16_to_f32),
    .f32_to_f16 = UK_BASE(f32_to_f16),
    .bf16_to_f32 = UK_BASE(bf16_to_f32),
#ifdef UK_BF16_LEVEL
    .f32_to_bf16 = UK_PAIRS(f32_to_bf16),
#else
    .f32_to_bf16 = UK_BASE(f32_to_bf16),
#endif
    .probe_f32 = UK_BASE(probe_f32),
    .u8_nr = UK_NR,
    .u8_mr = UK_U8_MR,
    .u8_speed = UK_U8_SPEED,
    .u8_block = UK_VL,
    .u8_word = UK_WORD,
    .u8_sorts = UK_SORTS,
    .u8_widened = 4 / UK_WORD,
    .gemm_u8 = UK_BYTES(gemm_u8),
    .pack_u8 = UK_DOT(pack_u8),
    .dw_u8 = UK_DOT(dw_u8),
    .pack_dw_u8 = UK_DOT(pack_dw_u8),
    .probe_u8 = UK_BYTES(probe_u8),
#ifdef UK_BF16_LEVEL
    .bf16_mr = UK_BF16_MR,
    .bf16_speed = UK_BF16_SPEED,
    .bf16_skips = UK_BF16_SKIPS,
    .gemm_bf16 = UK_BF16(gemm_bf16),
    .pack_bf16 = UK_PAIRS(pack_bf16),
    .rows_to_bf16 = UK_PAIRS(rows_to_bf16),
    .planes_to_bf16 = UK_PAIRS(planes_to_bf16),
    .window_max_bf16 = UK_PAIRS(window_max_bf16),
    .probe_bf16 = UK_BF16(probe_bf16),
#endif
    .add_u8 = UK_BASE(add_u8),
    .mul_u8 = UK_BASE(mul_u8),
    .window_max_u8 = UK_BASE(window_max_u8),
    .lookup_u8 = UK_BASE(lookup_u8),
    .rows_add_u8 = UK_BASE(rows_add_u8),
};
