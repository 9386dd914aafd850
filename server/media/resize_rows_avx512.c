/* SPDX-License-Identifier: MIT */
/* The inner loops of resizing for AVX512 with VNNI, which multiplies bytes by bytes and sums up
 * four products at a time. Weights come in blocks of digits (resize_axis.h). */
#include "config.h"

#include "server/media/resize_rows.h"

#include <string.h>

#ifdef PTED_CPU_X86
#include <immintrin.h>

#define AVX512 __attribute__((target("avx2,avx512f,avx512bw,avx512vl,avx512vnni")))
#define DIGIT_BYTES (AXIS_BLOCK * AXIS_BLOCK)

/* GCC keeps structs in registers, but no arrays, so loops of a few turns are written out. */
struct sums {
    __m512i low, middle, high; /* by the digit of the weight */
};

struct digits {
    __m512i low, middle, high;
};

AVX512 static inline struct sums no_sums(void)
{
    __m512i zero = _mm512_setzero_si512();
    return (struct sums){zero, zero, zero};
}

AVX512 static inline struct sums add(struct sums sums, __m512i bytes, struct digits weights)
{
    return (struct sums){
        .low = _mm512_dpbusd_epi32(sums.low, bytes, weights.low),
        .middle = _mm512_dpbusd_epi32(sums.middle, bytes, weights.middle),
        .high = _mm512_dpbusd_epi32(sums.high, bytes, weights.high),
    };
}

/* The sums before they are cut to 0 ... 255. They may wrap on their way, as the result fits. */
AVX512 static inline __m512i finish(struct sums sums)
{
    const __m512i half = _mm512_set1_epi32(1 << (RESIZE_BITS - 1));
    __m512i low = _mm512_add_epi32(sums.low, half);
    __m512i middle = _mm512_slli_epi32(sums.middle, 8), high = _mm512_slli_epi32(sums.high, 16);
    __m512i sum = _mm512_add_epi32(_mm512_add_epi32(low, middle), high);
    return _mm512_srai_epi32(sum, RESIZE_BITS);
}

/* ---- across ---------------------------------------------------------------------------------- */

AVX512 static inline __m128i load_four(const uint8_t *row, const int8_t *from, size_t at)
{
    uint32_t pixel;
    memcpy(&pixel, from, sizeof(pixel));
    return _mm_loadu_si128((const __m128i *)(const void *)(row + 4 * (pixel + at)));
}

/* Four pixels of each of four outputs: channel c of neighbours beside each other. */
AVX512 static inline __m512i load_pixels(const uint8_t *row, const int8_t *from, size_t at)
{
    const __m512i channels =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
    __m512i all = _mm512_castsi128_si512(load_four(row, from, at));
    all = _mm512_inserti32x4(all, load_four(row, from + 4, at), 1);
    all = _mm512_inserti32x4(all, load_four(row, from + 8, at), 2);
    all = _mm512_inserti32x4(all, load_four(row, from + 12, at), 3);
    return _mm512_shuffle_epi8(all, channels);
}

/* Loads the digits of each output, for all its channels. */
AVX512 static inline struct digits load_digits(const int8_t *block)
{
    const __m512i low = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3);
    const __m512i middle = _mm512_setr_epi32(4, 4, 4, 4, 5, 5, 5, 5, 6, 6, 6, 6, 7, 7, 7, 7);
    const __m512i high = _mm512_setr_epi32(8, 8, 8, 8, 9, 9, 9, 9, 10, 10, 10, 10, 11, 11, 11, 11);
    __m512i all = _mm512_loadu_si512(block);
    return (struct digits){
        .low = _mm512_permutexvar_epi32(low, all),
        .middle = _mm512_permutexvar_epi32(middle, all),
        .high = _mm512_permutexvar_epi32(high, all),
    };
}

/* Four outputs, each in a quarter of the registers. */
AVX512 static inline __m128i across_block(const int8_t *block, size_t block_count,
                                          const uint8_t *row)
{
    const int8_t *from = block + AXIS_DIGITS * DIGIT_BYTES;
    struct sums sums = no_sums();
    for (size_t k = 0; k < block_count; k++) {
        __m512i pixels = load_pixels(row, from, k * AXIS_BLOCK);
        sums = add(sums, pixels, load_digits(block + k * AXIS_BLOCK_BYTES));
    }
    __m512i positive = _mm512_max_epi32(finish(sums), _mm512_setzero_si512());
    return _mm512_cvtusepi32_epi8(positive);
}

AVX512 static void across_avx512(const struct axis *axis, const uint8_t *row, uint8_t *out)
{
    uint32_t count = axis->block_count;
    if (!axis->is_packed) {
        resize_rows_avx2.across(axis, row, out);
        return;
    }
    for (size_t i = 0; i < axis->count; i += AXIS_BLOCK) {
        const int8_t *block = axis->blocks + i / AXIS_BLOCK * count * AXIS_BLOCK_BYTES;
        __m128i four = count == 1   ? across_block(block, 1, row)
                       : count == 2 ? across_block(block, 2, row)
                                    : across_block(block, count, row);
        _mm_storeu_si128((__m128i *)(void *)(out + 4 * i), four);
    }
}

/* ---- down ------------------------------------------------------------------------------------ */

/* The digit |d| of four weights, in each place. */
AVX512 static inline __m512i spread(const int8_t *block, int d)
{
    int32_t four;
    memcpy(&four, block + d * DIGIT_BYTES, sizeof(four));
    return _mm512_set1_epi32(four);
}

AVX512 static inline __m512i load_row(const uint8_t *const *rows, uint32_t k, uint32_t count,
                                      size_t at)
{
    return _mm512_loadu_si512(rows[k < count ? k : count - 1] + at);
}

/* 64 bytes of the output. Bytes of four rows lie beside each other: a has bytes 0 ... 3 of each
 * quarter, b the next. Weights of rows behind the last are 0. */
AVX512 static inline __m512i down_block(const int8_t *block, const uint8_t *const *rows,
                                        uint32_t taps, size_t at)
{
    struct sums a = no_sums(), b = a, c = a, d = a;
    for (uint32_t k = 0; k < taps; k += AXIS_BLOCK, block += AXIS_BLOCK_BYTES) {
        struct digits weights = {spread(block, 0), spread(block, 1), spread(block, 2)};
        __m512i row_0 = load_row(rows, k, taps, at), row_1 = load_row(rows, k + 1, taps, at);
        __m512i row_2 = load_row(rows, k + 2, taps, at), row_3 = load_row(rows, k + 3, taps, at);
        __m512i low_01 = _mm512_unpacklo_epi8(row_0, row_1);
        __m512i low_23 = _mm512_unpacklo_epi8(row_2, row_3);
        __m512i high_01 = _mm512_unpackhi_epi8(row_0, row_1);
        __m512i high_23 = _mm512_unpackhi_epi8(row_2, row_3);
        a = add(a, _mm512_unpacklo_epi16(low_01, low_23), weights);
        b = add(b, _mm512_unpackhi_epi16(low_01, low_23), weights);
        c = add(c, _mm512_unpacklo_epi16(high_01, high_23), weights);
        d = add(d, _mm512_unpackhi_epi16(high_01, high_23), weights);
    }
    return _mm512_packus_epi16(_mm512_packs_epi32(finish(a), finish(b)),
                               _mm512_packs_epi32(finish(c), finish(d)));
}

AVX512 static void down_avx512(const struct axis *axis, uint32_t i, const uint8_t *const *rows,
                               size_t len, uint8_t *out)
{
    size_t group = (size_t)(i / AXIS_BLOCK) * axis->block_count;
    const int8_t *block = axis->blocks + group * AXIS_BLOCK_BYTES + i % AXIS_BLOCK * AXIS_BLOCK;
    if (!axis->is_packed) {
        resize_rows_avx2.down(axis, i, rows, len, out);
        return;
    }
    for (size_t at = 0; at < len; at += 64) {
        _mm512_storeu_si512(out + at, down_block(block, rows, axis->taps[i], at));
    }
}

AVX512 static void pack_avx512(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    resize_rows_avx2.pack(row, count, is_bgr, out);
}

const struct resize_rows resize_rows_avx512 = {true, across_avx512, down_avx512, pack_avx512};
#endif
