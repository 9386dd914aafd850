/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution: every channel has a kernel of its own, so a vector is of channels and
 * there is nothing to share but the inputs of neighbouring outputs. Kernels 3 and 5 wide without
 * dilation keep a row of up to seven outputs in registers and read each input of a kernel row once;
 * everything else, and the columns whose kernel reaches into the padding, goes output by output.
 * Both add the same products in the same order.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"

/* One output row: the kernel rows that lie in the image. */
struct row {
    const struct uk_dw_f32 *d;
    ptrdiff_t x; /* from d->x to the input of the first of them, column -pad_left: outside it */
    const float *w;
    float *y;
    uint32_t kernel_rows;
};

/* acc[i] += what one kernel row gives output i. */
UK_INLINE void add_kernel_row(vf acc[7], const float *x, ptrdiff_t pixel, const float *w, size_t c,
                              const int kernel, const int stride, const int columns)
{
    vf tap[5];
    UK_UNROLL
    for (int k = 0; k < kernel; k++) {
        tap[k] = v_load(w + (size_t)k * c);
    }
    UK_UNROLL
    for (int i = 0; i < (columns - 1) * stride + kernel; i++) {
        vf in = v_load(x + i * pixel);
        UK_UNROLL
        for (int k = 0; k < kernel; k++) {
            if (i >= k && (i - k) % stride == 0 && (i - k) / stride < columns) {
                acc[(i - k) / stride] += in * tap[k];
            }
        }
    }
}

/* |columns| outputs from |column| on, channels [c, c + UK_VL). */
UK_INLINE void block_channels(const struct row *r, size_t column, size_t c, const int kernel,
                              const int stride, const int columns)
{
    const struct uk_dw_f32 *d = r->d;
    const float *x =
        d->x + (r->x + (ptrdiff_t)(column * (size_t)stride) * d->x_pixel + (ptrdiff_t)c);
    float *y = r->y + (ptrdiff_t)column * d->y_pixel + c;
    vf min = v_splat(d->min), max = v_splat(d->max);
    vf bias = d->bias ? v_load(d->bias + c) : (vf){0}, acc[7];
    UK_UNROLL
    for (int i = 0; i < columns; i++) {
        acc[i] = bias;
    }
    for (size_t k = 0; k < r->kernel_rows; k++) {
        add_kernel_row(acc, x + (ptrdiff_t)(k * d->dilation_h) * d->x_line, d->x_pixel,
                       r->w + k * (size_t)kernel * d->channels + c, d->channels, kernel, stride,
                       columns);
    }
    UK_UNROLL
    for (int i = 0; i < columns; i++) {
        v_store(y + i * d->y_pixel, v_clamp(acc[i], min, max));
    }
}

/* All channels; the last vector overlaps the one before it, so there are UK_VL of them or more. */
UK_INLINE void block(const struct row *r, size_t column, const int kernel, const int stride,
                     const int columns)
{
    size_t channels = r->d->channels, c = 0;
    for (; channels - c >= UK_VL; c += UK_VL) {
        block_channels(r, column, c, kernel, stride, columns);
    }
    if (c < channels) {
        block_channels(r, column, channels - UK_VL, kernel, stride, columns);
    }
}

typedef void block_f(const struct row *r, size_t column);

#define BLOCK(kernel, stride, columns)                                                             \
    static void block_##kernel##_##stride##_##columns(const struct row *r, size_t column)          \
    {                                                                                              \
        block(r, column, kernel, stride, columns);                                                 \
    }
#define BLOCKS(kernel, stride)                                                                     \
    BLOCK(kernel, stride, 1)                                                                       \
    BLOCK(kernel, stride, 2)                                                                       \
    BLOCK(kernel, stride, 4)                                                                       \
    BLOCK(kernel, stride, 7)
BLOCKS(3, 1)
BLOCKS(3, 2)
BLOCKS(5, 1)
BLOCKS(5, 2)

static const uint8_t block_columns[4] = {7, 4, 2, 1};
#define BLOCKS_ROW(kernel, stride)                                                                 \
    {                                                                                              \
        block_##kernel##_##stride##_7, block_##kernel##_##stride##_4,                              \
            block_##kernel##_##stride##_2, block_##kernel##_##stride##_1                           \
    }
static block_f *const blocks[2][2][4] = {{BLOCKS_ROW(3, 1), BLOCKS_ROW(3, 2)},
                                         {BLOCKS_ROW(5, 1), BLOCKS_ROW(5, 2)}};

/* One output of any kernel, |vectors| of channels from c on; |part| != 0: one, of so many. */
UK_INLINE void point_channels(const struct row *r, size_t column, size_t c, size_t tap_begin,
                              size_t tap_end, const int vectors, size_t part)
{
    const struct uk_dw_f32 *d = r->d;
    vf min = v_splat(d->min), max = v_splat(d->max), acc[4];
    float *y = r->y + (ptrdiff_t)column * d->y_pixel + c;
    UK_UNROLL
    for (int i = 0; i < vectors; i++) {
        const float *bias = d->bias + c + i * UK_VL;
        acc[i] = !d->bias ? (vf){0} : part ? v_load_part(bias, part) : v_load(bias);
    }
    for (size_t k = 0; k < r->kernel_rows; k++) {
        for (size_t tap = tap_begin; tap < tap_end; tap++) {
            size_t x_column = column * d->stride_w + tap * d->dilation_w;
            const float *x = d->x + (r->x + (ptrdiff_t)(k * d->dilation_h) * d->x_line +
                                     (ptrdiff_t)x_column * d->x_pixel + (ptrdiff_t)c);
            const float *w = r->w + (k * d->kernel_w + tap) * d->channels + c;
            UK_UNROLL
            for (int i = 0; i < vectors; i++) {
                vf in = part ? v_load_part(x, part) : v_load(x + i * UK_VL);
                acc[i] += in * (part ? v_load_part(w, part) : v_load(w + i * UK_VL));
            }
        }
    }
    UK_UNROLL
    for (int i = 0; i < vectors; i++) {
        vf v = v_clamp(acc[i], min, max);
        if (part) {
            v_store_part(y, v, part);
        } else {
            v_store(y + i * UK_VL, v);
        }
    }
}

/* Taps [*out_begin, *out_end) of a kernel that begins at |at| lie in [0, size). */
static void clip_taps(int64_t at, uint32_t size, uint32_t kernel, uint32_t dilation,
                      size_t *out_begin, size_t *out_end)
{
    int64_t step = dilation;
    int64_t begin = at < 0 ? (-at + step - 1) / step : 0;
    int64_t end = at < size ? (size - at + step - 1) / step : 0;
    end = end < kernel ? end : kernel;
    *out_begin = (size_t)(begin < end ? begin : end);
    *out_end = (size_t)end;
}

static void points(const struct row *r, size_t column_begin, size_t column_end)
{
    const struct uk_dw_f32 *d = r->d;
    for (size_t column = column_begin; column < column_end; column++) {
        size_t tap_begin, tap_end, c = 0;
        clip_taps((int64_t)(column * d->stride_w) - d->pad_left, d->width, d->kernel_w,
                  d->dilation_w, &tap_begin, &tap_end);
        for (; d->channels - c >= 4 * UK_VL; c += 4 * UK_VL) {
            point_channels(r, column, c, tap_begin, tap_end, 4, 0);
        }
        for (; d->channels - c >= UK_VL; c += UK_VL) {
            point_channels(r, column, c, tap_begin, tap_end, 1, 0);
        }
        if (c < d->channels) {
            point_channels(r, column, c, tap_begin, tap_end, 1, d->channels - c);
        }
    }
}

/* Columns [*out_begin, *out_end) have all their taps in the image. */
static void find_inside(const struct uk_dw_f32 *d, size_t *out_begin, size_t *out_end)
{
    int64_t span = (int64_t)(d->kernel_w - 1) * d->dilation_w + 1;
    int64_t begin = ((int64_t)d->pad_left + d->stride_w - 1) / d->stride_w;
    int64_t last = (int64_t)d->width + d->pad_left - span;
    int64_t end = last < 0 ? 0 : last / d->stride_w + 1;
    end = end < d->out_width ? end : d->out_width;
    *out_begin = (size_t)(begin < end ? begin : end);
    *out_end = (size_t)end;
}

/* The fast blocks for this kernel, or NULL. */
static block_f *const *find_blocks(const struct uk_dw_f32 *d)
{
    if ((d->kernel_w != 3 && d->kernel_w != 5) || d->stride_w < 1 || d->stride_w > 2 ||
        d->dilation_w != 1 || d->channels < UK_VL) {
        return NULL;
    }
    return blocks[d->kernel_w == 5][d->stride_w - 1];
}

void UK_NAME(dw_f32)(const struct uk_dw_f32 *d)
{
    block_f *const *fast = find_blocks(d);
    size_t inside_begin = 0, inside_end = 0;
    if (fast) {
        find_inside(d, &inside_begin, &inside_end);
    }
    for (size_t y = d->row_begin; y < d->row_end; y++) {
        int64_t at = (int64_t)(y * d->stride_h) - d->pad_top;
        size_t tap_begin, tap_end, column = inside_begin;
        clip_taps(at, d->height, d->kernel_h, d->dilation_h, &tap_begin, &tap_end);
        struct row r = {.d = d,
                        .w = d->w + tap_begin * d->kernel_w * d->channels,
                        .y = d->y + (ptrdiff_t)y * d->y_line,
                        .kernel_rows = (uint32_t)(tap_end - tap_begin)};
        r.x = (ptrdiff_t)(at + (int64_t)(tap_begin * d->dilation_h)) * d->x_line -
              (ptrdiff_t)d->pad_left * d->x_pixel;
        points(&r, 0, inside_begin);
        for (int i = 0; i < 4 && fast; i++) {
            for (; inside_end - column >= block_columns[i]; column += block_columns[i]) {
                fast[i](&r, column);
            }
        }
        points(&r, inside_end, d->out_width);
    }
}
