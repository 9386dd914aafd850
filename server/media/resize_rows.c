/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/media/resize_rows.h"

#include <string.h>

#ifdef PTED_CPU_X86
#include <immintrin.h>
#endif

#define HALF (1 << (RESIZE_BITS - 1))
#define BLOCK 64 /* bytes of a row whose sums are kept at a time */

static int32_t weight_of(const struct axis *axis, size_t at)
{
    return axis->high[at] * (1 << RESIZE_LOW_BITS) + axis->low[at];
}

static uint8_t cut(int32_t sum)
{
    int32_t value = sum >> RESIZE_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* ---- for any machine ------------------------------------------------------------------------- */

static void across_plain(const struct axis *axis, const uint8_t *row, uint8_t *out)
{
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint8_t *in = row + 4 * (size_t)axis->from[i];
        int32_t sums[4] = {HALF, HALF, HALF, HALF};
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            int32_t weight = weight_of(axis, (size_t)i * axis->stride + k);
            for (int c = 0; c < 4; c++) {
                sums[c] += in[4 * (size_t)k + (size_t)c] * weight;
            }
        }
        for (int c = 0; c < 4; c++) {
            out[4 * (size_t)i + (size_t)c] = cut(sums[c]);
        }
    }
}

static void across_gray(const struct axis *axis, const uint8_t *row, uint8_t *out)
{
    for (uint32_t i = 0; i < axis->count; i++) {
        const uint8_t *in = row + axis->from[i];
        int32_t sum = HALF;
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            sum += in[k] * weight_of(axis, (size_t)i * axis->stride + k);
        }
        out[i] = cut(sum);
    }
}

static void down_plain(const struct axis *axis, uint32_t i, const uint8_t *const *rows, size_t len,
                       uint8_t *out)
{
    for (size_t at = 0; at < len; at += BLOCK) {
        int32_t sums[BLOCK];
        for (int c = 0; c < BLOCK; c++) {
            sums[c] = HALF;
        }
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            int32_t weight = weight_of(axis, (size_t)i * axis->stride + k);
            for (int c = 0; c < BLOCK; c++) {
                sums[c] += rows[k][at + (size_t)c] * weight;
            }
        }
        for (int c = 0; c < BLOCK; c++) {
            out[at + (size_t)c] = cut(sums[c]);
        }
    }
}

static void pack_plain(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    int first = is_bgr ? 2 : 0;
    for (size_t i = 0; i < count; i++) {
        out[3 * i] = row[4 * i + (size_t)first];
        out[3 * i + 1] = row[4 * i + 1];
        out[3 * i + 2] = row[4 * i + (size_t)(2 - first)];
    }
}

const struct resize_rows resize_rows_plain = {false, across_plain, down_plain, pack_plain};

/* ---- AVX2 ------------------------------------------------------------------------------------ */

#ifdef PTED_CPU_X86
#define AVX2 __attribute__((target("avx2")))

/* Both sums of products as one, in the sense of RESIZE_LOW_BITS. It may wrap on its way, as the
 * result fits. */
AVX2 static inline __m256i join(__m256i high, __m256i low)
{
    return _mm256_add_epi32(_mm256_slli_epi32(high, RESIZE_LOW_BITS), low);
}

/* Four weights: the first two in the low half of the register, four times, then the others. */
AVX2 static inline __m256i spread(const int16_t *weights)
{
    const __m256i order = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    __m128i four = _mm_loadl_epi64((const __m128i *)(const void *)weights);
    return _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(four), order);
}

/* Four pixels at a time: channel c of two neighbours beside each other, as 16 bits. */
AVX2 static void across_avx2(const struct axis *axis, const uint8_t *row, uint8_t *out)
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
            high_sum = _mm256_add_epi32(high_sum, _mm256_madd_epi16(pixels, spread(high + k)));
            low_sum = _mm256_add_epi32(low_sum, _mm256_madd_epi16(pixels, spread(low + k)));
        }
        __m256i both = join(high_sum, low_sum);
        __m128i sum =
            _mm_add_epi32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
        sum = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(HALF)), RESIZE_BITS);
        sum = _mm_packs_epi32(sum, sum);
        int32_t pixel = _mm_cvtsi128_si32(_mm_packus_epi16(sum, sum));
        memcpy(out + 4 * (size_t)i, &pixel, sizeof(pixel));
    }
}

/* The two weights at |weights|, in each place. */
AVX2 static inline __m256i two(const int16_t *weights)
{
    int32_t both;
    memcpy(&both, weights, sizeof(both));
    return _mm256_set1_epi32(both);
}

AVX2 static inline __m256i finish(__m256i high, __m256i low)
{
    __m256i sum = _mm256_add_epi32(join(high, low), _mm256_set1_epi32(HALF));
    return _mm256_srai_epi32(sum, RESIZE_BITS);
}

/* 32 bytes of two rows at a time; bytes of both beside each other, as 16 bits. The stride is even,
 * so that there is a weight of 0 for the row that is missing in the last pair. */
AVX2 static inline void down_block(const int16_t *high, const int16_t *low, uint32_t taps,
                                   const uint8_t *const *rows, size_t at, uint8_t *out)
{
    const __m256i zero = _mm256_setzero_si256();
    __m256i h[4] = {zero, zero, zero, zero}, l[4] = {zero, zero, zero, zero};
    for (uint32_t k = 0; k < taps; k += 2) {
        const uint8_t *second = rows[k + 1 < taps ? k + 1 : k];
        __m256i a = _mm256_loadu_si256((const __m256i *)(const void *)(rows[k] + at));
        __m256i b = _mm256_loadu_si256((const __m256i *)(const void *)(second + at));
        __m256i ab[2] = {_mm256_unpacklo_epi8(a, b), _mm256_unpackhi_epi8(a, b)};
        __m256i high_two = two(high + k), low_two = two(low + k);
        for (int i = 0; i < 4; i++) {
            __m256i pair = i % 2 ? _mm256_unpackhi_epi8(ab[i / 2], zero)
                                 : _mm256_unpacklo_epi8(ab[i / 2], zero);
            h[i] = _mm256_add_epi32(h[i], _mm256_madd_epi16(pair, high_two));
            l[i] = _mm256_add_epi32(l[i], _mm256_madd_epi16(pair, low_two));
        }
    }
    __m256i left = _mm256_packs_epi32(finish(h[0], l[0]), finish(h[1], l[1]));
    __m256i right = _mm256_packs_epi32(finish(h[2], l[2]), finish(h[3], l[3]));
    _mm256_storeu_si256((__m256i *)(void *)(out + at), _mm256_packus_epi16(left, right));
}

AVX2 static void down_avx2(const struct axis *axis, uint32_t i, const uint8_t *const *rows,
                           size_t len, uint8_t *out)
{
    size_t first = (size_t)i * axis->stride;
    for (size_t at = 0; at < len; at += 32) {
        down_block(axis->high + first, axis->low + first, axis->taps[i], rows, at, out);
    }
}

/* Four pixels at a time; the last bytes are written one by one, as the next are others' bytes. */
AVX2 static void pack_avx2(const uint8_t *row, uint32_t count, bool is_bgr, uint8_t *out)
{
    const __m128i rgb = _mm_setr_epi8(0, 1, 2, 4, 5, 6, 8, 9, 10, 12, 13, 14, -1, -1, -1, -1);
    const __m128i bgr = _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1);
    __m128i order = is_bgr ? bgr : rgb;
    uint32_t i = 0;
    for (; i + 6 <= count; i += 4) {
        __m128i four = _mm_loadu_si128((const __m128i *)(const void *)(row + 4 * (size_t)i));
        _mm_storeu_si128((__m128i *)(void *)(out + 3 * (size_t)i), _mm_shuffle_epi8(four, order));
    }
    pack_plain(row + 4 * (size_t)i, count - i, is_bgr, out + 3 * (size_t)i);
}

const struct resize_rows resize_rows_avx2 = {false, across_avx2, down_avx2, pack_avx2};
#endif

bool resize_rows_is_run(const struct resize_rows *rows)
{
#ifdef PTED_CPU_X86
    if (rows == &resize_rows_avx512) {
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("avx512bw") &&
               __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512vnni");
    }
    if (rows == &resize_rows_avx2) {
        return __builtin_cpu_supports("avx2");
    }
#endif
    return rows == &resize_rows_plain;
}

const struct resize_rows *resize_rows_best(void)
{
#ifdef PTED_CPU_X86
    if (resize_rows_is_run(&resize_rows_avx512)) {
        return &resize_rows_avx512;
    }
    if (resize_rows_is_run(&resize_rows_avx2)) {
        return &resize_rows_avx2;
    }
#endif
    return &resize_rows_plain;
}

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_across(const struct axis *axis, uint32_t pixel_bytes, const uint8_t *row,
                        uint8_t *out)
{
    for (size_t i = 0; i < axis->count; i++) {
        size_t from = axis->from[i];
        if (pixel_bytes == 4) {
            memcpy(out + 4 * i, row + 4 * from, 4);
        } else {
            out[i] = row[from];
        }
    }
}

void resize_across(const struct resize_rows *rows, const struct axis *axis, uint32_t pixel_bytes,
                   const uint8_t *row, uint8_t *out)
{
    if (axis->is_copy) {
        copy_across(axis, pixel_bytes, row, out);
    } else if (pixel_bytes == 4) {
        rows->across(axis, row, out);
    } else {
        across_gray(axis, row, out);
    }
}
