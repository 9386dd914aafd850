/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution: each channel has its own kernel, so a vector holds channels, and
 * neighbouring outputs share only their inputs. For kernels 3, 5 and 7 wide without dilation, a
 * block of up to seven outputs of a row stays in registers and each input of a kernel row is read
 * once. All others, and rows with more padding than half a kernel, are computed output by output.
 * Both ways add the same products in the same order.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"

/* Loads |part| channels, or a whole vector if it is 0. */
UK_INLINE vf load(const float *p, size_t part)
{
    return part ? v_load_part(p, part) : v_load(p);
}

UK_INLINE void store(float *p, vf v, size_t part)
{
    if (part) {
        v_store_part(p, v, part);
    } else {
        v_store(p, v);
    }
}

/*
 * A row of at least COLUMNS_MIN outputs divides evenly into blocks of COLUMNS_MIN to COLUMNS_MAX.
 */
#define COLUMNS_MIN 4
#define COLUMNS_MAX 7

#define KERNEL_MAX 7 /* columns of a kernel that has blocks */

/* Floats in the kernel's input rows for one band of channels: from one output row to the next they
 * stay in the first-level cache. */
#define BAND 8192

/* One output row of a band of channels, with the kernel rows that lie in the image. */
struct row {
    const struct uk_dw_f32 *d;
    ptrdiff_t x; /* from d->x to column -pad_left of the first kernel row: outside of x */
    const float *w;
    float *y;
    uint32_t kernel_rows;
    size_t channel_begin, channel_end;
};

/* acc[i] += the product of one kernel row with the inputs of output i. Only the inputs [begin, end)
 * are in the image. At most the first and the last |margin| inputs are outside. */
UK_INLINE void add_kernel_row(vf acc[COLUMNS_MAX], const float *x, ptrdiff_t pixel, int begin,
                              int end, const vf *tap, const int kernel, const int stride,
                              const int columns, const int margin, size_t part)
{
    const int inputs = (columns - 1) * stride + kernel;
    UK_UNROLL
    for (int i = 0; i < inputs; i++) {
        if ((i < margin && i < begin) || (i >= inputs - margin && i >= end)) {
            continue;
        }
        vf in = v_hold(load(x + i * pixel, part));
        UK_UNROLL
        for (int k = 0; k < kernel; k++) {
            if (i >= k && (i - k) % stride == 0 && (i - k) / stride < columns) {
                acc[(i - k) / stride] += in * tap[k];
            }
        }
    }
}

/* Computes channels [c, c + UK_VL) of a block, or |part| of them. */
UK_INLINE void block_channels(const struct row *r, size_t column, size_t c, const int kernel,
                              const int stride, const int columns, const int margin, size_t part)
{
    const struct uk_dw_f32 *d = r->d;
    const int inputs = (columns - 1) * stride + kernel;
    const ptrdiff_t y_pixel = d->y_pixel;
    int64_t at = (int64_t)column * stride - d->pad_left;
    int begin = at < 0 ? (int)(-at < inputs ? -at : inputs) : 0;
    int end = at + inputs > d->width ? (int)(d->width - at) : inputs;
    float *y = r->y + (ptrdiff_t)column * d->y_pixel + c;
    vf min = v_splat(d->min), max = v_splat(d->max), acc[COLUMNS_MAX];
    UK_UNROLL
    for (int i = 0; i < columns; i++) {
        acc[i] = d->bias ? load(d->bias + c, part) : (vf){0};
    }
    for (size_t k = 0; k < r->kernel_rows; k++) {
        ptrdiff_t x = r->x + (ptrdiff_t)(k * d->dilation_h) * d->x_line + (ptrdiff_t)c;
        const float *w = r->w + k * (size_t)kernel * d->channels + c;
        vf tap[KERNEL_MAX];
        UK_UNROLL
        for (int i = 0; i < kernel; i++) {
            tap[i] = load(w + (size_t)i * d->channels, part);
        }
        add_kernel_row(acc, d->x + (x + (ptrdiff_t)(column * (size_t)stride) * d->x_pixel),
                       d->x_pixel, begin, end, tap, kernel, stride, columns, margin, part);
    }
    UK_UNROLL
    for (int i = 0; i < columns; i++) {
        store(y + i * y_pixel, v_clamp(acc[i], min, max), part);
    }
}

/* The last vector overlaps the one before it, so a band must have at least UK_VL channels. */
UK_INLINE void block(const struct row *r, size_t column, const int kernel, const int stride,
                     const int columns, const int margin)
{
    size_t c = r->channel_begin;
    for (; r->channel_end - c >= UK_VL; c += UK_VL) {
        block_channels(r, column, c, kernel, stride, columns, margin, 0);
    }
    if (c < r->channel_end) {
        block_channels(r, column, r->channel_end - UK_VL, kernel, stride, columns, margin, 0);
    }
}

typedef void block_f(const struct row *r, size_t column);

#define BLOCK(kernel, stride, columns)                                                             \
    static void inner_##kernel##_##stride##_##columns(const struct row *r, size_t column)          \
    {                                                                                              \
        block(r, column, kernel, stride, columns, 0);                                              \
    }                                                                                              \
    static void edge_##kernel##_##stride##_##columns(const struct row *r, size_t column)           \
    {                                                                                              \
        block(r, column, kernel, stride, columns, kernel / 2);                                     \
    }                                                                                              \
    static void part_##kernel##_##stride##_##columns(const struct row *r, size_t column)           \
    {                                                                                              \
        block_channels(r, column, 0, kernel, stride, columns, kernel / 2, r->channel_end);         \
    }
#define BLOCKS(kernel, stride)                                                                     \
    BLOCK(kernel, stride, 4)                                                                       \
    BLOCK(kernel, stride, 5)                                                                       \
    BLOCK(kernel, stride, 6)                                                                       \
    BLOCK(kernel, stride, 7)
BLOCKS(3, 1)
BLOCKS(3, 2)
BLOCKS(5, 1)
BLOCKS(5, 2)
BLOCKS(7, 1)
BLOCKS(7, 2)

struct blocks {
    block_f *inner[COLUMNS_MAX - COLUMNS_MIN + 1], *edge[COLUMNS_MAX - COLUMNS_MIN + 1];
    block_f *part[COLUMNS_MAX - COLUMNS_MIN + 1]; /* less than UK_VL channels, at an edge or not */
};

/* clang-format off */
#define BLOCKS_OF(form, kernel, stride) \
    {form##_##kernel##_##stride##_4, form##_##kernel##_##stride##_5, \
     form##_##kernel##_##stride##_6, form##_##kernel##_##stride##_7}
#define BLOCKS_ROW(kernel, stride) \
    {.inner = BLOCKS_OF(inner, kernel, stride), .edge = BLOCKS_OF(edge, kernel, stride), \
     .part = BLOCKS_OF(part, kernel, stride)}
/* clang-format on */
static const struct blocks all_blocks[3][2] = {{BLOCKS_ROW(3, 1), BLOCKS_ROW(3, 2)},
                                               {BLOCKS_ROW(5, 1), BLOCKS_ROW(5, 2)},
                                               {BLOCKS_ROW(7, 1), BLOCKS_ROW(7, 2)}};

/* One output for a kernel of any size: |vectors| of channels from c on, or only |part| channels if
 * that is not 0. */
UK_INLINE void point_channels(const struct row *r, size_t column, size_t c, size_t tap_begin,
                              size_t tap_end, const int vectors, size_t part)
{
    const struct uk_dw_f32 *d = r->d;
    vf min = v_splat(d->min), max = v_splat(d->max), acc[4];
    float *y = r->y + (ptrdiff_t)column * d->y_pixel + c;
    UK_UNROLL
    for (int i = 0; i < vectors; i++) {
        acc[i] = d->bias ? load(d->bias + c + i * UK_VL, part) : (vf){0};
    }
    for (size_t k = 0; k < r->kernel_rows; k++) {
        for (size_t tap = tap_begin; tap < tap_end; tap++) {
            size_t x_column = column * d->stride_w + tap * d->dilation_w;
            const float *x = d->x + (r->x + (ptrdiff_t)(k * d->dilation_h) * d->x_line +
                                     (ptrdiff_t)x_column * d->x_pixel + (ptrdiff_t)c);
            const float *w = r->w + (k * d->kernel_w + tap) * d->channels + c;
            UK_UNROLL
            for (int i = 0; i < vectors; i++) {
                acc[i] += load(x + i * UK_VL, part) * load(w + i * UK_VL, part);
            }
        }
    }
    UK_UNROLL
    for (int i = 0; i < vectors; i++) {
        store(y + i * UK_VL, v_clamp(acc[i], min, max), part);
    }
}

/* Finds the taps [*out_begin, *out_end) within [0, size) of a kernel that begins at |at|. */
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

static void do_points(const struct row *r)
{
    const struct uk_dw_f32 *d = r->d;
    for (size_t column = 0; column < d->out_width; column++) {
        size_t tap_begin, tap_end, c = r->channel_begin;
        clip_taps((int64_t)(column * d->stride_w) - d->pad_left, d->width, d->kernel_w,
                  d->dilation_w, &tap_begin, &tap_end);
        for (; r->channel_end - c >= 4 * UK_VL; c += 4 * UK_VL) {
            point_channels(r, column, c, tap_begin, tap_end, 4, 0);
        }
        for (; r->channel_end - c >= UK_VL; c += UK_VL) {
            point_channels(r, column, c, tap_begin, tap_end, 1, 0);
        }
        if (c < r->channel_end) {
            point_channels(r, column, c, tap_begin, tap_end, 1, r->channel_end - c);
        }
    }
}

/* The fast blocks for this kernel, or NULL. They take padding of half a kernel on each side. */
static const struct blocks *find_blocks(const struct uk_dw_f32 *d)
{
    int64_t margin = d->kernel_w / 2, begin = -(int64_t)d->pad_left;
    int64_t end = begin + (int64_t)(d->out_width - 1) * d->stride_w + d->kernel_w;
    if (begin < -margin || end > d->width + margin) {
        return NULL;
    }
    if (d->kernel_w < 3 || d->kernel_w > KERNEL_MAX || d->kernel_w % 2 == 0 || d->stride_w < 1 ||
        d->stride_w > 2 || d->dilation_w != 1 || d->out_width < COLUMNS_MIN) {
        return NULL;
    }
    return &all_blocks[(d->kernel_w - 3) / 2][d->stride_w - 1];
}

static void do_blocks(const struct row *r, const struct blocks *blocks)
{
    const struct uk_dw_f32 *d = r->d;
    size_t width = d->out_width, count = (width + COLUMNS_MAX - 1) / COLUMNS_MAX;
    for (size_t i = 0; i < count; i++) {
        size_t begin = width * i / count, end = width * (i + 1) / count;
        int64_t first = (int64_t)(begin * d->stride_w) - d->pad_left;
        int64_t last = (int64_t)((end - 1) * d->stride_w + d->kernel_w - 1) - d->pad_left;
        bool inside = first >= 0 && last < d->width;
        block_f *const *form = d->channels < UK_VL ? blocks->part
                               : inside            ? blocks->inner
                                                   : blocks->edge;
        form[end - begin - COLUMNS_MIN](r, begin);
    }
}

static void do_row(const struct uk_dw_f32 *d, size_t y, size_t channel_begin, size_t channel_end)
{
    const struct blocks *blocks = find_blocks(d);
    int64_t at = (int64_t)(y * d->stride_h) - d->pad_top;
    size_t tap_begin, tap_end;
    clip_taps(at, d->height, d->kernel_h, d->dilation_h, &tap_begin, &tap_end);
    struct row r = {.d = d,
                    .w = d->w + tap_begin * d->kernel_w * d->channels,
                    .y = d->y + (ptrdiff_t)y * d->y_line,
                    .kernel_rows = (uint32_t)(tap_end - tap_begin),
                    .channel_begin = channel_begin,
                    .channel_end = channel_end};
    r.x = (ptrdiff_t)(at + (int64_t)(tap_begin * d->dilation_h)) * d->x_line -
          (ptrdiff_t)d->pad_left * d->x_pixel;
    if (blocks) {
        do_blocks(&r, blocks);
    } else {
        do_points(&r);
    }
}

void UK_NAME(dw_f32)(const struct uk_dw_f32 *d)
{
    size_t row_floats = (size_t)d->kernel_h * d->width; /* 0: all taps are in the padding */
    size_t band = row_floats ? BAND / row_floats / UK_VL * UK_VL : BAND;
    must(d->stride_h > 0 && d->stride_w > 0 && d->dilation_h > 0 && d->dilation_w > 0);
    must(d->row_begin <= d->row_end);
    band = band < UK_VL ? UK_VL : band;
    for (size_t c = 0; c < d->channels;) {
        /* The last band takes the remainder, so no band is smaller than a vector. */
        size_t end = d->channels - c < 2 * band ? d->channels : c + band;
        for (size_t y = d->row_begin; y < d->row_end; y++) {
            do_row(d, y, c, end);
        }
        c = end;
    }
}
