/* SPDX-License-Identifier: MIT */
/*
 * Depthwise convolution of 8-bit integers. A window is UK_DW_U8_TAPS neighbouring pixels of a block
 * of channels; transposed, each of its words holds the taps of one channel in one kernel row. A
 * tile of outputs transposes each window once, for all the outputs that it has below each other,
 * and for two neighbours if the stride is 1: their weights differ by a shift. NEON multiplies the
 * pixels one by one, which takes less than a transposed window without dot products.
 */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

/* Outputs of a tile; results are narrowed in fours. */
#define OUTS_MAX 8

/* Weights of a 3x3 kernel, which stay in registers where there are enough. */
#define WEIGHTS_HELD (3 * UK_DW_U8_SHIFTS * (4 / UK_WORD))

/* A tile of a block of channels: where it begins, and how many columns from there exist. */
struct part {
    const struct uk_dw_u8 *d;
    const uint8_t *x, *w;
    const union uk_number *columns;
    uint8_t *y;
    size_t left, channels;
};

/* Numbers that are constants in a compiled form. Neighbouring groups of |shifts| outputs share no
 * window. */
struct form {
    size_t rows, groups, shifts, height, windows, stride_h, stride_w;
};

/* Numbers that all tiles of a block read. They are copied first: as far as the compiler knows,
 * stores of bytes could change the originals. */
struct numbers {
    vi offset, weights[WEIGHTS_HELD];
    vf scale, bias;
    struct v_bounds bounds;
    bool is_positive; /* v_bounds_are_zero() */
    ptrdiff_t x_line, y_line, y_pixel;
};

UK_INLINE void load_numbers(struct numbers *n, const struct part *p)
{
    n->offset = V_GET(vi, &p->columns[UK_COLUMN_OFFSET * UK_VL].i);
    if (UK_A_SHIFT) {
        vu sum = V_GET(vu, &p->columns[UK_COLUMN_SUM * UK_VL].i);
        n->offset = v_add(n->offset, (vi)(sum * (uint32_t)UK_A_SHIFT));
    }
    n->scale = v_load(&p->columns[UK_COLUMN_SCALE * UK_VL].f);
    n->bias = v_load(&p->columns[UK_COLUMN_BIAS * UK_VL].f);
    n->bounds = v_bounds_of(p->d->min, p->d->max, p->d->zero);
    n->bounds.fit = v_all_fit(v_fit_int(n->scale, n->bias));
    n->is_positive = v_bounds_are_zero(&n->bounds);
    n->x_line = p->d->x_line;
    n->y_line = p->d->y_line;
    n->y_pixel = p->d->y_pixel;
}

#if defined UK_LEVEL_NEON && UK_WORD == 2
UK_INLINE vi arrange(vb window)
{
    return (vi)window;
}

/* acc + the products of the pixels [begin, end) of a window and their weights. */
UK_INLINE vi multiply(vi acc, vi window, const vi w[4 / UK_WORD], const size_t begin,
                      const size_t end)
{
    const int16x8_t pixels[2] = {(int16x8_t)vmovl_u8(vget_low_u8((uint8x16_t)window)),
                                 (int16x8_t)vmovl_high_u8((uint8x16_t)window)};
    int32x4_t sum = (int32x4_t)acc;
    UK_UNROLL
    for (size_t i = begin; i < end; i++) {
        const int16x8_t x = pixels[i / 2], y = (int16x8_t)w[i / 2];
        sum = i % 2 ? vmlal_high_s16(sum, x, y) : vmlal_s16(sum, vget_low_s16(x), vget_low_s16(y));
    }
    return (vi)sum;
}
#else
/* A window as multiply() takes it. */
UK_INLINE vi arrange(vb window)
{
    return v_transpose(window);
}

/* acc + the products of a transposed window and its weights, one vector or two. Those outside of
 * [begin, end) are zeros. */
UK_INLINE vi multiply(vi acc, vi window, const vi w[4 / UK_WORD], const size_t begin,
                      const size_t end)
{
    (void)begin;
    (void)end;
#if UK_WORD == 4
    return v_dot(acc, (vi)v_shift_bytes((vb)window), w[0]);
#else
    const vu low = v_splat_bits(0x00ff00ff);
    acc = v_dot(acc, (vi)((vu)window & low), w[0]);
    return v_dot(acc, (vi)(((vu)window >> 8) & low), w[1]);
#endif
}
#endif

UK_INLINE void load_weights(vi w[4 / UK_WORD], const uint8_t *from)
{
    UK_UNROLL
    for (size_t i = 0; i < 4 / UK_WORD; i++) {
        w[i] = V_GET(vi, from + i * UK_VECTOR_BYTES);
    }
}

UK_INLINE vb requantize(const vi acc[4], const struct numbers *n)
{
    vf y[4];
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        y[q] = __builtin_convertvector(acc[q], vf) * n->scale + n->bias;
    }
#if defined UK_LEVEL_NEON
    if (n->is_positive) {
        return v_round_positive(y, n->bounds.least);
    }
#endif
    return v_round_bytes(y, &n->bounds);
}

/* Stores those of |outs| outputs that exist, and only the channels that exist. */
static __attribute__((noinline)) void store_some(const struct part *p, const uint8_t *bytes,
                                                 size_t outs, size_t columns)
{
    for (size_t i = 0; i < outs; i++) {
        ptrdiff_t row = (ptrdiff_t)(i / columns), column = (ptrdiff_t)(i % columns);
        if ((size_t)column < p->left) {
            uint8_t *y = p->y + row * p->d->y_line + column * p->d->y_pixel;
            memcpy(y, bytes + i * UK_VL, p->channels);
        }
    }
}

/* Stores all channels of |outs| outputs, of which |left| columns exist. */
UK_INLINE void store_outs(const struct part *p, const struct numbers *n, const vb *bytes,
                          const size_t outs, const size_t columns, size_t left)
{
    const ptrdiff_t line = n->y_line, pixel = n->y_pixel;
    UK_UNROLL
    for (size_t i = 0; i < outs; i++) {
        uint8_t *y = p->y + (ptrdiff_t)(i / columns) * line + (ptrdiff_t)(i % columns) * pixel;
        if (i % columns < left) {
            v_store_quarter(y, bytes[i / 4], i % 4);
        }
    }
}

/* Requantises and stores outputs in the order of a form, whose row has |columns| of them. */
UK_INLINE void finish(const struct part *p, const struct numbers *n, const vi acc[OUTS_MAX],
                      const size_t outs, const size_t columns)
{
    vb bytes[OUTS_MAX / 4];
    UK_UNROLL
    for (size_t i = 0; i < outs / 4; i++) {
        bytes[i] = requantize(acc + i * 4, n);
    }
    if (p->channels < UK_VL) {
        const struct part part = *p; /* whose address leaves, so that *p stays in registers */
        uint8_t copy[sizeof(bytes)];
        memcpy(copy, bytes, sizeof(bytes[0]) * (outs / 4));
        store_some(&part, copy, outs, columns);
    } else if (p->left < columns) {
        store_outs(p, n, bytes, outs, columns, p->left);
    } else {
        store_outs(p, n, bytes, outs, columns, columns);
    }
}

/* Adds the products of one window, which is in line |line| of the tile and of its group |group|. */
UK_INLINE void add_window(vi acc[OUTS_MAX], vi window, const struct part *p,
                          const struct numbers *n, const size_t line, const size_t group,
                          const size_t at, const struct form f)
{
    UK_UNROLL
    for (size_t row = 0; row < f.rows; row++) {
        if (line < row * f.stride_h || line - row * f.stride_h >= f.height) {
            continue;
        }
        size_t first = ((line - row * f.stride_h) * f.windows + at) * UK_DW_U8_SHIFTS;
        UK_UNROLL
        for (size_t shift = 0; shift < f.shifts; shift++) {
            size_t i = (row * f.groups + group) * f.shifts + shift;
            size_t from = at * UK_DW_U8_TAPS, end = shift + f.height - from;
            size_t begin = shift > from ? shift - from : 0;
            end = end < UK_DW_U8_TAPS ? end : UK_DW_U8_TAPS;
            if (f.height == 3) {
                const vi *w = n->weights + (first + shift) * (4 / UK_WORD);
                acc[i] = multiply(acc[i], window, w, begin, end);
            } else {
                vi w[4 / UK_WORD];
                load_weights(w, p->w + (first + shift) * UK_DW_WINDOW_BYTES);
                acc[i] = multiply(acc[i], window, w, begin, end);
            }
        }
    }
}

UK_INLINE void tile(const struct part *p, const struct numbers *n, const struct form f)
{
    const size_t lines = (f.rows - 1) * f.stride_h + f.height;
    const size_t outs = f.rows * f.groups * f.shifts;
    vi acc[OUTS_MAX];
    UK_UNROLL
    for (size_t i = 0; i < outs; i++) {
        acc[i] = n->offset;
        V_APART(acc[i]);
    }
    UK_UNROLL
    for (size_t line = 0; line < lines; line++) {
        const uint8_t *x = p->x + (ptrdiff_t)line * n->x_line;
        UK_UNROLL
        for (size_t group = 0; group < f.groups; group++) {
            UK_UNROLL
            for (size_t at = 0; at < f.windows; at++) {
                size_t pixel = group * f.shifts * f.stride_w + at * UK_DW_U8_TAPS;
                vi window = arrange(V_GET(vb, x + pixel * UK_VL));
                add_window(acc, window, p, n, line, group, at, f);
            }
        }
    }
    finish(p, n, acc, outs, f.groups * f.shifts);
}

/* Computes the rows of a form for all columns. Tiles at the end read past the line, at most as far
 * as UK_DW_U8_SLACK allows. */
UK_INLINE void run(struct part p, const struct form f)
{
    const size_t columns = f.groups * f.shifts;
    struct numbers n;
    load_numbers(&n, &p);
    if (f.height == 3) {
        UK_UNROLL
        for (size_t i = 0; i < (size_t)3 * UK_DW_U8_SHIFTS; i++) {
            load_weights(n.weights + i * (4 / UK_WORD), p.w + i * UK_DW_WINDOW_BYTES);
        }
    }
    for (p.left = p.d->width;; p.left -= columns) {
        tile(&p, &n, f);
        if (p.left <= columns) {
            break;
        }
        p.x += columns * f.stride_w * UK_VL;
        p.y += (ptrdiff_t)columns * n.y_pixel;
    }
}

typedef void run_f(const struct part *p);

/* clang-format off */
#define FORM(kernel, stride, windows, rows, groups, shifts) \
    static void run_##kernel##_##stride##_##rows(const struct part *p) \
    { \
        run(*p, (struct form){rows, groups, shifts, kernel, windows, stride, stride}); \
    }
FORM(3, 1, 1, 4, 1, 2)
FORM(3, 1, 1, 2, 1, 2)
FORM(3, 1, 1, 1, 2, 2)
FORM(3, 2, 1, 4, 1, 1)
FORM(3, 2, 1, 1, 4, 1)
FORM(5, 1, 2, 4, 1, 2)
FORM(5, 1, 2, 2, 1, 2)
FORM(5, 1, 2, 1, 2, 2)
FORM(5, 2, 2, 4, 1, 1)
FORM(5, 2, 2, 1, 4, 1)
/* clang-format on */

/* ---- any kernel ------------------------------------------------------------------------------ */

/* The window of a kernel row that begins at |tap|. With a dilation its pixels are apart, and a tap
 * that the window lacks takes its last pixel. Without, such pixels are read past the line: see
 * UK_DW_U8_SLACK. */
UK_INLINE vi window_of(const struct uk_dw_u8 *d, const uint8_t *x, size_t tap, const bool is_dense)
{
    if (is_dense) {
        return arrange(V_GET(vb, x + tap * UK_VL));
    }
    const uint8_t *pixels[UK_DW_U8_TAPS];
    UK_UNROLL
    for (size_t i = 0; i < UK_DW_U8_TAPS; i++) {
        size_t last = d->kernel_w - 1, at = tap + i < last ? tap + i : last;
        pixels[i] = x + at * d->dilation_w * UK_VL;
    }
    return arrange(v_load_quarters(pixels));
}

/* Computes four outputs of a row; an output that does not exist repeats the last one. */
UK_INLINE void tile_any(const struct part *p, const struct numbers *n, const bool is_dense)
{
    const struct uk_dw_u8 *d = p->d;
    const ptrdiff_t line = (ptrdiff_t)d->dilation_h * d->x_line;
    const size_t window = (size_t)UK_DW_U8_SHIFTS * UK_DW_WINDOW_BYTES;
    const uint8_t *x[4], *w = p->w;
    vi acc[OUTS_MAX], weights[4 / UK_WORD];
    UK_UNROLL
    for (size_t i = 0; i < 4; i++) {
        x[i] = p->x + (i < p->left ? i : p->left - 1) * d->stride_w * UK_VL;
        acc[i] = n->offset;
    }
    for (size_t y = 0; y < d->kernel_h; y++, w += UK_DW_U8_WINDOWS(d->kernel_w) * window) {
        const uint8_t *from = w;
        for (size_t tap = 0; tap < d->kernel_w; tap += UK_DW_U8_TAPS, from += window) {
            load_weights(weights, from);
            UK_UNROLL
            for (size_t i = 0; i < 4; i++) {
                const uint8_t *at = x[i] + (ptrdiff_t)y * line;
                vi pixels = window_of(d, at, tap, is_dense);
                acc[i] = multiply(acc[i], pixels, weights, 0, UK_DW_U8_TAPS);
            }
        }
    }
    finish(p, n, acc, 4, 4);
}

UK_INLINE void run_all(struct part p, const bool is_dense)
{
    struct numbers n;
    load_numbers(&n, &p);
    for (p.left = p.d->width;; p.left -= 4) {
        tile_any(&p, &n, is_dense);
        if (p.left <= 4) {
            break;
        }
        p.x += (size_t)4 * p.d->stride_w * UK_VL;
        p.y += (ptrdiff_t)4 * p.d->y_pixel;
    }
}

static void run_any(const struct part *p)
{
    if (p->d->dilation_w == 1) {
        run_all(*p, true);
    } else {
        run_all(*p, false);
    }
}

/* ---- around them ----------------------------------------------------------------------------- */

/* The forms of a kernel for four rows, two and one. */
static run_f *const *find_forms(const struct uk_dw_u8 *d)
{
    static run_f *const forms[2][2][3] = {
        {{run_3_1_4, run_3_1_2, run_3_1_1}, {run_3_2_4, NULL, run_3_2_1}},
        {{run_5_1_4, run_5_1_2, run_5_1_1}, {run_5_2_4, NULL, run_5_2_1}},
    };
    static run_f *const any[3] = {NULL, NULL, run_any};
    bool fits = (d->kernel_w == 3 || d->kernel_w == 5) && d->kernel_h == d->kernel_w &&
                d->stride_w <= 2 && d->stride_h == d->stride_w && d->dilation_w == 1 &&
                d->dilation_h == 1;
    return fits ? forms[d->kernel_w == 5][d->stride_w - 1] : any;
}

/* One block of channels. */
static void run_block(struct part p, run_f *const forms[3])
{
    for (size_t left = p.d->rows; left > 0;) {
        size_t i = left >= 4 && forms[0] ? 0 : left >= 2 && forms[1] ? 1 : 2;
        size_t rows = (size_t)4 >> i;
        forms[i](&p);
        p.x += (ptrdiff_t)(rows * p.d->stride_h) * p.d->x_line;
        p.y += (ptrdiff_t)rows * p.d->y_line;
        left -= rows;
    }
}

void UK_NAME(dw_u8)(const struct uk_dw_u8 *d)
{
    must(d->stride_h > 0 && d->stride_w > 0 && d->dilation_h > 0 && d->dilation_w > 0);
    must(d->kernel_h > 0 && d->kernel_w > 0 && d->width > 0);
    run_f *const *forms = find_forms(d);
    size_t window_bytes = (size_t)UK_DW_U8_SHIFTS * UK_DW_WINDOW_BYTES;
    size_t block_bytes = d->kernel_h * UK_DW_U8_WINDOWS(d->kernel_w) * window_bytes;
    for (size_t c = 0; c < d->channels; c += UK_VL) {
        size_t left = d->channels - c;
        struct part p = {.d = d,
                         .x = d->x + (ptrdiff_t)(c / UK_VL) * d->x_block,
                         .w = d->w + c / UK_VL * block_bytes,
                         .columns = d->columns + c * UK_COLUMN_ARRAYS,
                         .y = d->y + c,
                         .channels = left < UK_VL ? left : UK_VL};
        run_block(p, forms);
    }
}
