/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of 8-bit integers. A product's word holds one channel's numbers from
 * UK_WORD neighbouring kernel rows: rows of the image are interleaved once for each input column,
 * and all outputs that use this column share the result. Interleaving works within lanes of 16
 * bytes, so a block's channels are in the order of uk_dw_u8_place(); narrowing restores their
 * order.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

#define COLUMNS_MAX 4

/* One output row of one block of channels. */
struct row {
    const struct uk_dw_u8 *d;
    const uint8_t *x, *w;
    const union uk_number *columns;
    uint8_t *y;
    size_t channels; /* in this block */
};

/* Loads up to UK_WORD rows of a block as words; each vector has a quarter of the channels. Missing
 * rows repeat row 0: their weights are zero. */
UK_INLINE void load_words(vi words[4], const uint8_t *x, ptrdiff_t line, size_t rows)
{
#if UK_WORD == 4
    vb r0 = V_GET(vb, x), r1 = V_GET(vb, x + (rows > 1 ? line : 0));
    vb r2 = V_GET(vb, x + (rows > 2 ? 2 * line : 0)), r3 = V_GET(vb, x + (rows > 3 ? 3 * line : 0));
    vb low_01 = v_zip_low_1(r0, r1), high_01 = v_zip_high_1(r0, r1);
    vb low_23 = v_zip_low_1(r2, r3), high_23 = v_zip_high_1(r2, r3);
    words[0] = (vi)v_zip_low_2(low_01, low_23);
    words[1] = (vi)v_zip_high_2(low_01, low_23);
    words[2] = (vi)v_zip_low_2(high_01, high_23);
    words[3] = (vi)v_zip_high_2(high_01, high_23);
#else
    vb r0 = V_GET(vb, x), r1 = V_GET(vb, x + (rows > 1 ? line : 0)), zero = {0};
    vb low = v_zip_low_1(r0, r1), high = v_zip_high_1(r0, r1);
    words[0] = (vi)v_zip_low_1(low, zero);
    words[1] = (vi)v_zip_high_1(low, zero);
    words[2] = (vi)v_zip_low_1(high, zero);
    words[3] = (vi)v_zip_high_1(high, zero);
#endif
}

UK_INLINE void multiply(vi acc[4], const vi words[4], const uint8_t *w)
{
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        acc[q] = v_dot(acc[q], words[q], V_GET(vi, w + q * UK_VECTOR_BYTES));
    }
}

UK_INLINE vb requantize(const vi acc[4], const struct row *r)
{
    vf max = v_splat(r->d->max);
    vi y[4];
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        const union uk_number *at = r->columns + q * UK_VL;
        vi offset = V_GET(vi, &at[UK_COLUMN_OFFSET * UK_VECTOR_BYTES].i);
        vf scale = v_load(&at[UK_COLUMN_SCALE * UK_VECTOR_BYTES].f);
        vf bias = v_load(&at[UK_COLUMN_BIAS * UK_VECTOR_BYTES].f);
        vf v = __builtin_convertvector((vi)((vu)acc[q] + (vu)offset), vf) * scale + bias;
        y[q] = v_round_int(v_lesser(v, max));
    }
    return v_gather(y, (int16_t)r->d->zero, (uint8_t)((int32_t)r->d->min + r->d->zero));
}

/* Computes |columns| outputs of a row. kernel 0: a kernel of any width, with one output. */
UK_INLINE void block(const struct row *r, size_t column, const size_t kernel, const size_t stride,
                     const size_t columns)
{
    const struct uk_dw_u8 *d = r->d;
    const size_t kernel_w = kernel ? kernel : d->kernel_w;
    const ptrdiff_t line = (ptrdiff_t)d->dilation_h * d->x_line;
    const ptrdiff_t pixel = (ptrdiff_t)d->dilation_w * d->x_pixel;
    const uint8_t *w = r->w;
    vi acc[COLUMNS_MAX][4], words[4];
    UK_UNROLL
    for (size_t i = 0; i < columns; i++) {
        acc[i][0] = acc[i][1] = acc[i][2] = acc[i][3] = (vi){0};
    }
    for (size_t y = 0; y < d->kernel_h; y += UK_WORD) {
        const uint8_t *x =
            r->x + (ptrdiff_t)y * line + (ptrdiff_t)(column * d->stride_w) * d->x_pixel;
        if (kernel == 0) {
            for (size_t i = 0; i < kernel_w; i++) {
                load_words(words, x + (ptrdiff_t)i * pixel, line, d->kernel_h - y);
                multiply(acc[0], words, w + i * UK_VECTOR_BYTES * 4);
            }
        } else {
            UK_UNROLL
            for (size_t i = 0; i < (columns - 1) * stride + kernel; i++) {
                load_words(words, x + (ptrdiff_t)i * pixel, line, d->kernel_h - y);
                UK_UNROLL
                for (size_t o = 0; o < columns; o++) {
                    if (i >= o * stride && i - o * stride < kernel) {
                        multiply(acc[o], words, w + (i - o * stride) * UK_VECTOR_BYTES * 4);
                    }
                }
            }
        }
        w += kernel_w * UK_VECTOR_BYTES * 4;
    }
    UK_UNROLL
    for (size_t i = 0; i < columns; i++) {
        vb y = requantize(acc[i], r);
        v_store_bytes(r->y + (ptrdiff_t)(column + i) * d->y_pixel, y, r->channels);
    }
}

typedef void row_f(const struct row *r);

/* Computes a whole row in blocks of four outputs, and the remainder one by one. */
#define ROW(kernel, stride)                                                                        \
    static void row_##kernel##_##stride(const struct row *r)                                       \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; r->d->width - i >= 4; i += 4) {                                                     \
            block(r, i, kernel, stride, 4);                                                        \
        }                                                                                          \
        for (; i < r->d->width; i++) {                                                             \
            block(r, i, kernel, stride, 1);                                                        \
        }                                                                                          \
    }
ROW(3, 1)
ROW(3, 2)
ROW(5, 1)
ROW(5, 2)

static void row_any(const struct row *r)
{
    for (size_t i = 0; i < r->d->width; i++) {
        block(r, i, 0, 0, 1);
    }
}

static row_f *find_row(const struct uk_dw_u8 *d)
{
    static row_f *const rows[2][2] = {{row_3_1, row_3_2}, {row_5_1, row_5_2}};
    bool fits = (d->kernel_w == 3 || d->kernel_w == 5) && d->stride_w <= 2 && d->dilation_w == 1;
    return fits ? rows[d->kernel_w == 5][d->stride_w - 1] : row_any;
}

void UK_NAME(dw_u8)(const struct uk_dw_u8 *d)
{
    must(d->stride_h > 0 && d->stride_w > 0 && d->dilation_h > 0 && d->dilation_w > 0);
    row_f *do_row = find_row(d);
    size_t words = (d->kernel_h + UK_WORD - 1) / UK_WORD;
    for (size_t c = 0; c < d->channels; c += UK_VECTOR_BYTES) {
        size_t left = d->channels - c;
        struct row r = {.d = d,
                        .w = d->w + c * words * d->kernel_w * 4,
                        .columns = d->columns + c * UK_COLUMN_ARRAYS,
                        .channels = left < UK_VECTOR_BYTES ? left : UK_VECTOR_BYTES};
        for (size_t y = 0; y < d->rows; y++) {
            r.x = d->x + (ptrdiff_t)(y * d->stride_h) * d->x_line + c;
            r.y = d->y + (ptrdiff_t)y * d->y_line + c;
            do_row(&r);
        }
    }
}
