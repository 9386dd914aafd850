/* SPDX-License-Identifier: MIT */
/* Resizing with AVX512-VNNI, which multiplies bytes by bytes and sums up four products at a time.
 * Weights come in blocks of digits. */
#ifndef PTED_HAL_CPU_UK_RESIZE_U8_DOTS_H
#define PTED_HAL_CPU_UK_RESIZE_U8_DOTS_H

#include "hal/cpu/uk/simd.h"
#include "hal/resize.h"

#define UK_DIGIT_BYTES (HAL_RESIZE_BLOCK * HAL_RESIZE_BLOCK)

/* GCC keeps structs in registers, but no arrays, so loops of a few turns are written out. */
struct uk_dots_sums {
    __m512i low, middle, high; /* by the digit of the weight */
};

struct uk_dots_digits {
    __m512i low, middle, high;
};

UK_INLINE struct uk_dots_sums uk_dots_no_sums(void)
{
    __m512i zero = _mm512_setzero_si512();
    return (struct uk_dots_sums){zero, zero, zero};
}

UK_INLINE struct uk_dots_sums uk_dots_add(struct uk_dots_sums sums, __m512i bytes,
                                          struct uk_dots_digits weights)
{
    return (struct uk_dots_sums){
        .low = _mm512_dpbusd_epi32(sums.low, bytes, weights.low),
        .middle = _mm512_dpbusd_epi32(sums.middle, bytes, weights.middle),
        .high = _mm512_dpbusd_epi32(sums.high, bytes, weights.high),
    };
}

/* Returns the sums before they are cut to 0 ... 255. They may wrap on their way, as the result
 * fits. */
UK_INLINE __m512i uk_dots_finish(struct uk_dots_sums sums)
{
    const __m512i half = _mm512_set1_epi32(1 << (HAL_RESIZE_BITS - 1));
    __m512i low = _mm512_add_epi32(sums.low, half);
    __m512i middle = _mm512_slli_epi32(sums.middle, 8), high = _mm512_slli_epi32(sums.high, 16);
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(low, middle), high);
    return _mm512_srai_epi32(sum, HAL_RESIZE_BITS);
}

/* ---- across ---------------------------------------------------------------------------------- */

UK_INLINE __m128i uk_dots_load_four(const uint8_t *row, const int8_t *from, size_t at)
{
    uint32_t pixel;
    memcpy(&pixel, from, sizeof(pixel));
    return _mm_loadu_si128((const __m128i *)(const void *)(row + 4 * (pixel + at)));
}

/* Four pixels of each of four outputs: channel c of neighbours beside each other. */
UK_INLINE __m512i uk_dots_load_pixels(const uint8_t *row, const int8_t *from, size_t at)
{
    const __m512i channels =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i all = _mm512_castsi128_si512(uk_dots_load_four(row, from, at));
    all = _mm512_inserti32x4(all, uk_dots_load_four(row, from + 4, at), 1);
    all = _mm512_inserti32x4(all, uk_dots_load_four(row, from + 8, at), 2);
    all = _mm512_inserti32x4(all, uk_dots_load_four(row, from + 12, at), 3);
    return _mm512_shuffle_epi8(all, channels);
}

/* Loads the digits of each output, for all its channels. */
UK_INLINE struct uk_dots_digits uk_dots_load_digits(const int8_t *block)
{
    const __m512i low = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i middle = _mm512_setr_epi32(4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
    const __m512i high = _mm512_setr_epi32(8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 11, 11, 11, 11);
    __m512i all = _mm512_loadu_si512(block);
    return (struct uk_dots_digits){
        .low = _mm512_permutexvar_epi32(low, all),
        .middle = _mm512_permutexvar_epi32(middle, all),
        .high = _mm512_permutexvar_epi32(high, all),
    };
}

/* Four outputs, each in a quarter of the registers. */
UK_INLINE __m128i uk_dots_across_block(const int8_t *block, size_t block_count, const uint8_t *row)
{
    const int8_t *from = block + HAL_RESIZE_DIGITS * UK_DIGIT_BYTES;
    struct uk_dots_sums sums = uk_dots_no_sums();
    for (size_t k = 0; k < block_count; k++) {
        __m512i pixels = uk_dots_load_pixels(row, from, k * HAL_RESIZE_BLOCK);
        sums = uk_dots_add(sums, pixels, uk_dots_load_digits(block + k * HAL_RESIZE_BLOCK_BYTES));
    }
    __m512i positive = _mm512_max_epi32(uk_dots_finish(sums), _mm512_setzero_si512());
    return _mm512_cvtusepi32_epi8(positive);
}

UK_INLINE void uk_resize_across_dots(const struct hal_resize_axis *axis, const uint8_t *row,
                                     uint8_t *out)
{
    uint32_t count = axis->block_count;
    for (size_t i = 0; i < axis->count; i += HAL_RESIZE_BLOCK) {
        const int8_t *block = axis->blocks + i / HAL_RESIZE_BLOCK * count * HAL_RESIZE_BLOCK_BYTES;
        __m128i four = count == 1   ? uk_dots_across_block(block, 1, row)
                       : count == 2 ? uk_dots_across_block(block, 2, row)
                                    : uk_dots_across_block(block, count, row);
        _mm_storeu_si128((__m128i *)(void *)(out + 4 * i), four);
    }
}

/* ---- down ------------------------------------------------------------------------------------ */

/* Returns the digit |d| of four weights, in each place. */
UK_INLINE __m512i uk_dots_spread(const int8_t *block, int d)
{
    int32_t four;
    memcpy(&four, block + d * UK_DIGIT_BYTES, sizeof(four));
    return _mm512_set1_epi32(four);
}

UK_INLINE __m512i uk_dots_load_row(const uint8_t *const *rows, uint32_t k, uint32_t count,
                                   size_t at)
{
    return _mm512_loadu_si512(rows[k < count ? k : count - 1] + at);
}

/* 64 bytes of the output. Bytes of four rows lie beside each other: a has bytes 0 ... 3 of each
 * quarter, b the next. Weights of rows behind the last are 0. */
UK_INLINE __m512i uk_dots_down_block(const int8_t *block, const uint8_t *const *rows, uint32_t taps,
                                     size_t at)
{
    struct uk_dots_sums a = uk_dots_no_sums(), b = a, c = a, d = a;
    for (uint32_t k = 0; k < taps; k += HAL_RESIZE_BLOCK, block += HAL_RESIZE_BLOCK_BYTES) {
        struct uk_dots_digits weights = {uk_dots_spread(block, 0), uk_dots_spread(block, 1),
                                         uk_dots_spread(block, 2)};
        __m512i row_0 = uk_dots_load_row(rows, k, taps, at);
        __m512i row_1 = uk_dots_load_row(rows, k + 1, taps, at);
        __m512i row_2 = uk_dots_load_row(rows, k + 2, taps, at);
        __m512i row_3 = uk_dots_load_row(rows, k + 3, taps, at);
        __m512i low_01 = _mm512_unpacklo_epi8(row_0, row_1);
        __m512i low_23 = _mm512_unpacklo_epi8(row_2, row_3);
        __m512i high_01 = _mm512_unpackhi_epi8(row_0, row_1);
        __m512i high_23 = _mm512_unpackhi_epi8(row_2, row_3);
        a = uk_dots_add(a, _mm512_unpacklo_epi16(low_01, low_23), weights);
        b = uk_dots_add(b, _mm512_unpackhi_epi16(low_01, low_23), weights);
        c = uk_dots_add(c, _mm512_unpacklo_epi16(high_01, high_23), weights);
        d = uk_dots_add(d, _mm512_unpackhi_epi16(high_01, high_23), weights);
    }
    return _mm512_packus_epi16(_mm512_packs_epi32(uk_dots_finish(a), uk_dots_finish(b)),
                               _mm512_packs_epi32(uk_dots_finish(c), uk_dots_finish(d)));
}

UK_INLINE void uk_resize_down_dots(const struct hal_resize_axis *axis, uint32_t i,
                                   const uint8_t *const *rows, size_t len, uint8_t *out)
{
    size_t group = (size_t)(i / HAL_RESIZE_BLOCK) * axis->block_count;
    const int8_t *block =
        axis->blocks + group * HAL_RESIZE_BLOCK_BYTES + i % HAL_RESIZE_BLOCK * HAL_RESIZE_BLOCK;
    for (size_t at = 0; at < len; at += 64) {
        _mm512_storeu_si512(out + at, uk_dots_down_block(block, rows, axis->taps[i], at));
    }
}

#endif
