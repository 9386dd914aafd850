/* SPDX-License-Identifier: MIT */
/* The functions of one level, for its table. Only files of this folder include this header. */
#ifndef PTED_HAL_CPU_UK_LEVEL_H
#define PTED_HAL_CPU_UK_LEVEL_H

#include "base/bytes.h"
#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk/simd.h"

/* Is |p| aligned to a vector? v_load_aligned() needs that, and packed panels keep it. */
static inline bool uk_is_aligned(const void *p)
{
    return (uintptr_t)p % UK_VECTOR_BYTES == 0;
}

/* Are these |n| floats the same, or do they not overlap at all? */
static inline bool uk_is_apart(const float *y, const float *x, size_t n)
{
    size_t distance =
        (uintptr_t)y < (uintptr_t)x ? (uintptr_t)x - (uintptr_t)y : (uintptr_t)y - (uintptr_t)x;
    return distance == 0 || distance >= n * sizeof(float);
}

/* Checks what the caller of a product guarantees. */
static inline void uk_check_product(const struct uk_gemm_f32 *g)
{
    must(g->k == 0 || uk_is_aligned(g->b));
    must(g->segments || g->run <= g->k);
    must(!g->is_odd || (g->run > 0 && (!g->segments || g->segment_count == 1)));
    for (uint32_t i = 0; g->segments && i < g->segment_count; i++) {
        must(in_range(g->segments[i].k, g->run, g->k));
    }
    /* A residual in place is read where the result is written. */
    must(g->residual != g->c || g->m == 0 ||
         (g->residual_line == g->c_line && g->residual_row == g->c_row &&
          g->residual_is_bf16 == g->c_is_bf16));
}

void UK_BASE(gemm_f32)(const struct uk_gemm_f32 *g);
void UK_BASE(pack_f32)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end);
void UK_BASE(dw_f32)(const struct uk_dw_f32 *d);
#ifdef UK_PICKS
void UK_BASE(group_f32)(const struct uk_dw_f32 *d);
#endif
void UK_BASE(winograd_f32)(const struct uk_winograd_f32 *w);
void UK_BASE(winograd_pack_f32)(const struct uk_winograd_pack *p, uint32_t panel_begin,
                                uint32_t panel_end);

/* clang-format off */
#define XX(upper, lower) uk_unary_f32_f UK_BASE(lower##_f32);
UK_UNARY_F32(XX)
#undef XX
#define XX(upper, lower) \
    uk_binary_f32_f UK_BASE(lower##_vector_f32); \
    uk_scalar_f32_f UK_BASE(lower##_scalar_f32), UK_BASE(lower##_reversed_f32);
UK_BINARY_F32(XX)
#undef XX
/* clang-format on */
uk_unary_f32_f UK_BASE(gelu_short_f32);
void UK_BASE(clamp_f32)(float *y, const float *x, float min, float max, size_t n);
uk_scalar_f32_f UK_BASE(leaky_relu_f32);
void UK_BASE(add_scaled_f32)(float *y, const float *a, const float *b, float alpha, size_t n);
void UK_BASE(affine_f32)(const struct uk_affine_f32 *a);

uk_reduce_f32_f UK_BASE(sum_f32), UK_BASE(sum_squares_f32), UK_BASE(max_f32);
float UK_BASE(dot_f32)(const float *a, const float *b, size_t n);
void UK_BASE(attend_scores_f32)(const struct uk_attend_f32 *a);
void UK_BASE(attend_sums_f32)(const struct uk_attend_f32 *a);
void UK_BASE(attend_scores_i8)(const struct uk_attend_f32 *a);
void UK_BASE(attend_sums_i8)(const struct uk_attend_f32 *a);
void UK_BASE(softmax_f32)(float *y, const float *x, size_t n);
void UK_BASE(log_softmax_f32)(float *y, const float *x, size_t n);
void UK_BASE(layer_norm_f32)(const struct uk_norm_f32 *l);
void UK_BASE(rows_add_f32)(float *acc, const float *x, size_t rows, ptrdiff_t row, size_t n);
void UK_BASE(window_sum_f32)(float *y, const struct uk_window_f32 *w);
void UK_BASE(window_max_f32)(float *y, const struct uk_window_f32 *w);

void UK_BASE(f16_to_f32)(float *y, const uint16_t *x, size_t n);
void UK_BASE(f32_to_f16)(uint16_t *y, const float *x, size_t n);
void UK_BASE(bf16_to_f32)(float *y, const uint16_t *x, size_t n);
void UK_BASE(f32_to_bf16)(uint16_t *y, const float *x, size_t n);
uint64_t UK_BASE(probe_f32)(float *out);

void UK_BYTES(gemm_u8)(const struct uk_gemm_u8 *g);
uint64_t UK_BYTES(probe_u8)(int32_t *out);

#ifdef UK_BF16_LEVEL
void UK_BF16(gemm_bf16)(const struct uk_gemm_f32 *g);
void UK_PAIRS(f32_to_bf16)(uint16_t *y, const float *x, size_t n);
void UK_PAIRS(rows_to_bf16)(uint16_t *y, ptrdiff_t y_row, const float *x, size_t rows, size_t n);
void UK_PAIRS(planes_to_bf16)(uint16_t *y, const float *x, ptrdiff_t plane, uint32_t planes,
                              size_t n);
void UK_PAIRS(window_max_bf16)(uint16_t *y, const struct uk_window_bf16 *w);
void UK_PAIRS(pack_bf16)(const struct uk_pack_f32 *p, uint32_t panel_begin, uint32_t panel_end);
uint64_t UK_BF16(probe_bf16)(float *out);
#endif

/* These follow from how the level multiplies words. */
void UK_DOT(gemm_u8)(const struct uk_gemm_u8 *g);
void UK_DOT(pack_u8)(const struct uk_pack_u8 *p, uint32_t panel_begin, uint32_t panel_end);
void UK_DOT(dw_u8)(const struct uk_dw_u8 *d);
void UK_DOT(pack_dw_u8)(uint8_t *packed, const int8_t *w, uint32_t kernel_h, uint32_t kernel_w,
                        uint32_t channels);

void UK_BASE(add_u8)(const struct uk_add_u8 *a);
void UK_BASE(mul_u8)(const struct uk_mul_u8 *m);
void UK_BASE(window_max_u8)(uint8_t *y, const struct uk_window_u8 *w);
void UK_BASE(lookup_u8)(uint8_t *y, const uint8_t *x, const uint8_t table[256], size_t n);
void UK_BASE(rows_add_u8)(int32_t *acc, const uint8_t *x, size_t rows, ptrdiff_t row, size_t n);

uk_quantize_f UK_BASE(quantize_i8), UK_BASE(quantize_u8), UK_BASE(quantize_i16),
    UK_BASE(quantize_u16), UK_BASE(quantize_i32);
uk_dequantize_f UK_BASE(dequantize_i8), UK_BASE(dequantize_u8), UK_BASE(dequantize_i16),
    UK_BASE(dequantize_u16), UK_BASE(dequantize_i32);
void UK_BASE(range_f32)(const float *x, size_t n, float *out_min, float *out_max);

extern const struct hal_cpu_uk UK_NAME(hal_cpu_uk);

#endif
