/* SPDX-License-Identifier: MIT */
/*
 * Maxima of bfloat16 numbers. Signed integers of 16 bits have the order of the numbers if the
 * magnitude of negative ones is inverted; so a vector of twice as many channels as of floats takes
 * one comparison. NaN becomes the largest integer.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"

#define CHANNELS (2 * UK_VL) /* of a vector */

#define INFINITE 0x7f80
#define MAGNITUDE 0x7fff

#if defined UK_LEVEL_NEON
/* Numbers except NaN as keys; and keys as numbers. */
UK_INLINE int16x8_t turn(int16x8_t x)
{
    uint16x8_t signs = vreinterpretq_u16_s16(vshrq_n_s16(x, 15));
    return veorq_s16(x, vreinterpretq_s16_u16(vshrq_n_u16(signs, 1)));
}

UK_INLINE int16x8_t key_of(int16x8_t x)
{
    const int16x8_t most = vdupq_n_s16(MAGNITUDE), infinite = vdupq_n_s16(INFINITE);
    return vbslq_s16(vcgtq_s16(vandq_s16(x, most), infinite), most, turn(x));
}

/* The first |count| channels of y from |column| on. */
UK_INLINE void max_columns(uint16_t *y, const struct uk_window_bf16 *w, size_t column, size_t count)
{
    int16x8_t best = turn(vdupq_n_s16((int16_t)(uint16_t)(0x8000 | INFINITE)));
    for (size_t line = 0; line < w->lines; line++) {
        const uint16_t *x = w->x + (ptrdiff_t)line * w->line + column;
        for (size_t i = 0; i < w->rows; i++, x += w->row) {
            int16_t in[CHANNELS] = {0};
            memcpy(in, x, count * sizeof(*x));
            best = vmaxq_s16(best, key_of(vld1q_s16(in)));
        }
    }
    int16_t out[CHANNELS];
    vst1q_s16(out, turn(best));
    memcpy(y + column, out, count * sizeof(*y));
}
#else
/* Numbers except NaN as keys; and keys as numbers. */
UK_INLINE __m512i turn(__m512i x)
{
    return _mm512_xor_si512(x, _mm512_srli_epi16(_mm512_srai_epi16(x, 15), 1));
}

UK_INLINE __m512i key_of(__m512i x)
{
    const __m512i most = _mm512_set1_epi16(MAGNITUDE), infinite = _mm512_set1_epi16(INFINITE);
    __mmask32 is_nan = _mm512_cmpgt_epi16_mask(_mm512_and_si512(x, most), infinite);
    return _mm512_mask_mov_epi16(turn(x), is_nan, most);
}

/* The first |count| channels of y from |column| on. */
UK_INLINE void max_columns(uint16_t *y, const struct uk_window_bf16 *w, size_t column, size_t count)
{
    __mmask32 mask = (__mmask32)((UINT64_C(1) << count) - 1);
    __m512i best = turn(_mm512_set1_epi16((int16_t)(uint16_t)(0x8000 | INFINITE)));
    for (size_t line = 0; line < w->lines; line++) {
        const uint16_t *x = w->x + (ptrdiff_t)line * w->line + column;
        for (size_t i = 0; i < w->rows; i++, x += w->row) {
            best = _mm512_max_epi16(best, key_of(_mm512_maskz_loadu_epi16(mask, x)));
        }
    }
    _mm512_mask_storeu_epi16(y + column, mask, turn(best));
}
#endif

void UK_NAME(window_max_bf16)(uint16_t *y, const struct uk_window_bf16 *w)
{
    size_t column = 0;
    for (; w->n - column >= CHANNELS; column += CHANNELS) {
        max_columns(y, w, column, CHANNELS);
    }
    if (column < w->n) {
        max_columns(y, w, column, w->n - column);
    }
}
