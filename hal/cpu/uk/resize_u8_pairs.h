/* SPDX-License-Identifier: MIT */
/* Resizing with AVX2, which multiplies 16 bits and sums up two products at a time. */
#ifndef PTED_HAL_CPU_UK_RESIZE_U8_PAIRS_H
#define PTED_HAL_CPU_UK_RESIZE_U8_PAIRS_H

#include "hal/cpu/uk/resize_u8_plain.h"
#include "hal/cpu/uk/simd.h"
#include "hal/resize.h"

/* Both sums of products as one, in the sense of HAL_RESIZE_LOW_BITS. It may wrap on its way, as the
 * result fits. */
UK_INLINE __m256i uk_pairs_join(__m256i high, __m256i low)
{
    return _mm256_add_epi32(_mm256_slli_epi32(high, HAL_RESIZE_LOW_BITS), low);
}

/* Four weights: the first two in the low half of the register, four times, then the others. */
UK_INLINE __m256i uk_pairs_spread(const int16_t *weights)
{
    const __m256i order = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)weights);
    return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(four), order);
}

/* Four pixels at a time: channel c of two neighbours beside each other, as 16 bits. */
UK_INLINE void uk_resize_across_pairs(const struct hal_resize_axis *axis, const uint8_t *row,
                                      uint8_t *out)
{
    const __m256i pairs =
        _mm256_setr_epi8(0, -1, 4, -1, 1, -1, 5, -1, 2, -1, 6, -1, 3, -1, 7, -1, 8, -1, 12, -1, 9,
                         -1, 13, -1, 10, -1, 14, -1, 11, -1, 15, -1);
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint8_t *in = row + 4 * (size_t)axis->from[i];
        const int16_t *high = axis->high + (size_t)i * axis->stride;
        const int16_t *low = axis->low + (size_t)i * axis->stride;
        __m256i high_sum = _mm256_setzero_si256(), low_sum = high_sum;
        for (uint32_t k = 0; k < axis->taps[i]; k += 4) {
            __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(in + 4 * (size_t)k));
            __m256i pixels = _mm256_shuffle_epi8(_mm256_broadcastsi128_si256(four), pairs);
            high_sum =
                _mm256_add_epi32(high_sum, _mm256_madd_epi16(pixels, uk_pairs_spread(high + k)));
            low_sum =
                _mm256_add_epi32(low_sum, _mm256_madd_epi16(pixels, uk_pairs_spread(low + k)));
        }
        __m256i both = uk_pairs_join(high_sum, low_sum);
        __m128i sum =
            _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
        sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(UK_RESIZE_HALF)), HAL_RESIZE_BITS);
        sum = _mm_packs_epi32(sum, sum);
        int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
        memcpy(out + 4 * (size_t)i, &pixel, sizeof(pixel));
    }
}

/* Returns the two weights at |weights|, in each place. */
UK_INLINE __m256i uk_pairs_two(const int16_t *weights)
{
    int32_t both;
    memcpy(&both, weights, sizeof(both));
    return _mm256_set1_epi32(both);
}

UK_INLINE __m256i uk_pairs_finish(__m256i high, __m256i low)
{
    __m256i sum = _mm256_add_epi32(uk_pairs_join(high, low), _mm256_set1_epi32(UK_RESIZE_HALF));
    return _mm256_srai_epi32(sum, HAL_RESIZE_BITS);
}

/* 32 bytes of two rows at a time; bytes of both beside each other, as 16 bits. The stride is even,
 * so that there is a weight of 0 for the row that is missing in the last pair. */
UK_INLINE void uk_pairs_down_block(const int16_t *high, const int16_t *low, uint32_t taps,
                                   const uint8_t *const *rows, size_t at, uint8_t *out)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i h[4] = {zero, zero, zero, zero}, l[4] = {zero, zero, zero, zero};
    for (uint32_t k = 0; k < taps; k += 2) {
        const uint8_t *second = rows[k + 1 < taps ? k + 1 : k];
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(rows[k] + at));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(second + at));
        __m256i ab[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
        __m256i high_two = uk_pairs_two(high + k), low_two = uk_pairs_two(low + k);
        for (int i = 0; i < 4; i++) {
            __m256i pair = i % 2 ? _mm256_unpackhi_epi8(ab[i / 2], zero)
                                 : _mm256_unpacklo_epi8(ab[i / 2], zero);
            h[i] = _mm256_add_epi32(h[i], _mm256_madd_epi16(pair, high_two));
            l[i] = _mm256_add_epi32(l[i], _mm256_madd_epi16(pair, low_two));
        }
    }
    __m256i left = _mm256_packs_epi32(uk_pairs_finish(h[0], l[0]), uk_pairs_finish(h[1], l[1]));
    __m256i right = _mm256_packs_epi32(uk_pairs_finish(h[2], l[2]), uk_pairs_finish(h[3], l[3]));
    _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_packus_epi16(left, right));
}

UK_INLINE void uk_resize_down_pairs(const struct hal_resize_axis *axis, uint32_t i,
                                    const uint8_t *const *rows, size_t len, uint8_t *out)
{
    size_t first = (size_t)i * axis->stride;
    for (size_t at = 0; at < len; at += 32) {
        uk_pairs_down_block(axis->high + first, axis->low + first, axis->taps[i], rows, at, out);
    }
}

/* Four pixels at a time; the last bytes are written one by one, as the next are others' bytes. */
UK_INLINE void uk_resize_pack_pairs(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    const __m128i rgb = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m128i bgr = _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    __m128i order = is_bgr ? bgr : rgb;
    uint32_t i = 0;
    for (; i + 6 <= count; i += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(row + 4 * (size_t)i));
        _mm_storeu_si128((__m128i *)(void *)(out + 3 * (size_t)i), _mm_shuffle_epi8(four, order));
    }
    uk_resize_pack_plain(row + 4 * (size_t)i, count - i, is_bgr, out + 3 * (size_t)i);
}

#endif
