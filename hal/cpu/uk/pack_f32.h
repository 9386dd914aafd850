/* SPDX-License-Identifier: MIT */
/* Rows of a packed panel, gathered from a matrix wherever its elements lie. */
#ifndef PTED_HAL_CPU_UK_PACK_F32_H
#define PTED_HAL_CPU_UK_PACK_F32_H

#include "hal/cpu/uk/level.h"

/* Floats of a column read at a time: a cache line, if they are contiguous. Even. */
#define INNER_BLOCK 16

#if defined UK_LEVEL_AVX512
/* Stores column i of 16 rows of 16 floats as row i of a panel. */
UK_INLINE void transpose(float *panel, const float *from, ptrdiff_t from_row)
{
    __m512 x[16], y[16];
    UK_UNROLL
    for (int i = 0; i < 16; i += 2) {
        __m512 a = _mm512_loadu_ps(from + i * from_row);
        __m512 b = _mm512_loadu_ps(from + (i + 1) * from_row);
        x[i] = _mm512_unpacklo_ps(a, b);
        x[i + 1] = _mm512_unpackhi_ps(a, b);
    }
    /* y[i + c] has columns c, c + 4, c + 8 and c + 12 of rows [i, i + 4). */
    UK_UNROLL
    for (int i = 0; i < 16; i += 4) {
        __m512d a = _mm512_castps_pd(x[i]), b = _mm512_castps_pd(x[i + 1]);
        __m512d c = _mm512_castps_pd(x[i + 2]), d = _mm512_castps_pd(x[i + 3]);
        y[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(a, c));
        y[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(a, c));
        y[i + 2] = _mm512_castpd_ps(_mm512_unpacklo_pd(b, d));
        y[i + 3] = _mm512_castpd_ps(_mm512_unpackhi_pd(b, d));
    }
    UK_UNROLL
    for (int c = 0; c < 4; c++) {
        __m512 low = _mm512_shuffle_f32x4(y[c], y[c + 4], 0x44);
        __m512 high = _mm512_shuffle_f32x4(y[c], y[c + 4], 0xee);
        __m512 low_end = _mm512_shuffle_f32x4(y[c + 8], y[c + 12], 0x44);
        __m512 high_end = _mm512_shuffle_f32x4(y[c + 8], y[c + 12], 0xee);
        _mm512_storeu_ps(panel + c * UK_NR, _mm512_shuffle_f32x4(low, low_end, 0x88));
        _mm512_storeu_ps(panel + (c + 4) * UK_NR, _mm512_shuffle_f32x4(low, low_end, 0xdd));
        _mm512_storeu_ps(panel + (c + 8) * UK_NR, _mm512_shuffle_f32x4(high, high_end, 0x88));
        _mm512_storeu_ps(panel + (c + 12) * UK_NR, _mm512_shuffle_f32x4(high, high_end, 0xdd));
    }
}
#endif

/* Packs rows [0, count) of a panel; the elements of a column are |stride| apart. */
UK_INLINE void pack_columns(float *panel, const float *src, ptrdiff_t column, ptrdiff_t stride,
                            size_t width, size_t count)
{
    size_t j = 0;
#if defined UK_LEVEL_AVX512
    for (; stride == 1 && count == 16 && width - j >= 16; j += 16) {
        transpose(panel + j, src + (ptrdiff_t)j * column, column);
    }
#endif
    for (; j < width; j++) {
        const float *from = src + (ptrdiff_t)j * column;
        for (size_t i = 0; i < count; i++) {
            panel[i * UK_NR + j] = from[(ptrdiff_t)i * stride];
        }
    }
    for (size_t i = 0; i < count && width < UK_NR; i++) {
        memset(panel + i * UK_NR + width, 0, (UK_NR - width) * sizeof(float));
    }
}

/* Does the same for adjacent columns. */
UK_INLINE void pack_rows(float *panel, const float *src, ptrdiff_t stride, size_t width,
                         size_t count)
{
    for (size_t i = 0; i < count; i++) {
        memcpy(panel + i * UK_NR, src + (ptrdiff_t)i * stride, width * sizeof(float));
        memset(panel + i * UK_NR + width, 0, (UK_NR - width) * sizeof(float));
    }
}

/*
 * Packs rows [inner, inner + count) of block |outer| of the source, for the |width| columns of a
 * panel from |column| on.
 */
UK_INLINE void pack_block(float *panel, const struct uk_pack_f32 *p, size_t column, size_t outer,
                          size_t inner, size_t width, size_t count)
{
    const float *from = p->src + (ptrdiff_t)column * p->column +
                        (ptrdiff_t)outer * p->outer_stride + (ptrdiff_t)inner * p->inner_stride;
    if (p->column == 1) {
        pack_rows(panel, from, p->inner_stride, width, count);
    } else {
        pack_columns(panel, from, p->column, p->inner_stride, width, count);
    }
}

#endif
