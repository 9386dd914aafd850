/* SPDX-License-Identifier: MIT */
/*
 * The dot product of AVX-VNNI as a function, for processors with AVX2 alone. The kernels of that
 * level are compiled once more with this header in front of all others (local.mk), which also
 * renames what they define: the table vnni_soft has them.
 *
 * Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2: VPDPBUSD.
 */
#ifndef PTED_TESTS_HAL_VNNI_SOFT_H
#define PTED_TESTS_HAL_VNNI_SOFT_H

#define hal_cpu_uk_avx_vnni vnni_soft
#define gemm_u8_avx_vnni gemm_u8_vnni_soft
#define pack_u8_avx_vnni pack_u8_vnni_soft
#define dw_u8_avx_vnni dw_u8_vnni_soft
#define pack_dw_u8_avx_vnni pack_dw_u8_vnni_soft
#define probe_u8_avx_vnni probe_u8_vnni_soft

struct hal_cpu_uk;

#ifdef UK_LEVEL
#include <immintrin.h>

/* acc += the four products of the bytes of each int; a is unsigned, b signed. */
#define UK_DOT_BYTES(acc, a, b)                                                                    \
    (acc = (vi)vnni_soft_dot((__m256i)(acc), (__m256i)(a), (__m256i)(b)))

static inline __m256i vnni_soft_dot(__m256i acc, __m256i a, __m256i b)
{
    const __m256i low = _mm256_set1_epi16(0x00ff);
    __m256i even = _mm256_madd_epi16(_mm256_and_si256(a, low),
                                     _mm256_srai_epi16(_mm256_slli_epi16(b, 8), 8));
    __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(a, 8), _mm256_srai_epi16(b, 8));
    return _mm256_add_epi32(acc, _mm256_add_epi32(even, odd));
}
#endif

extern const struct hal_cpu_uk vnni_soft;

#endif
