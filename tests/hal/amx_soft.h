/* SPDX-License-Identifier: MIT */
/*
 * The instructions of hal/cpu/uk/amx.h as functions, for processors without AMX. The kernels of AMX
 * are compiled once more with this header in front of all others (local.mk), which also renames
 * what they define: the table amx_soft has them. A wrong use that the processor would refuse ends
 * the process.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: LDTILECFG,
 * TILELOADD, TILESTORED, TDPBUSD, TDPBF16PS.
 */
#ifndef PTED_TESTS_HAL_AMX_SOFT_H
#define PTED_TESTS_HAL_AMX_SOFT_H

#include <stddef.h>

#define AMX_SOFT

#define hal_cpu_uk_amx_bf16 amx_soft
#define gemm_groups_u8_amx_bf16 gemm_groups_u8_amx_soft
#define gemm_u8_amx_int8 gemm_u8_amx_soft
#define gemm_u8_amx_bf16 gemm_u8_amx_soft
#define probe_u8_amx_int8 probe_u8_amx_soft
#define probe_u8_amx_bf16 probe_u8_amx_soft
#define gemm_bf16_amx_bf16 gemm_bf16_amx_soft
#define probe_bf16_amx_bf16 probe_bf16_amx_soft

struct amx_config;
struct hal_cpu_uk;

void amx_configure(const struct amx_config *config);
void amx_release(void);
void amx_soft_zero(int tile);
void amx_soft_load(int tile, const void *from, ptrdiff_t stride);
void amx_soft_store(int tile, void *to, ptrdiff_t stride);
void amx_soft_dot_u8(int c, int a, int b);
void amx_soft_dot_bf16(int c, int a, int b);

#define AMX_ZERO(tile) amx_soft_zero(tile)
#define AMX_LOAD(tile, from, stride) amx_soft_load(tile, from, stride)
#define AMX_STORE(tile, to, stride) amx_soft_store(tile, to, stride)
#define AMX_DOT_U8(c, a, b) amx_soft_dot_u8(c, a, b)
#define AMX_DOT_BF16(c, a, b) amx_soft_dot_bf16(c, a, b)

extern const struct hal_cpu_uk amx_soft;

#endif
