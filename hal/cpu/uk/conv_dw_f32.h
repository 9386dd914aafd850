/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of small groups. A vector holds channels of one output, and neighbouring outputs
 * share only their inputs. For kernels 3, 5 and 7 wide, a block of up to seven outputs of a row
 * stays in registers and each input of a kernel row is read once. All others, and rows with more
 * padding than half a kernel, are computed output by output. Both ways add the same products in the
 * same order.
 *
 * In a depthwise convolution each channel is a group. A file that defines GROUPS before it includes
 * this header gets wider groups: as many inputs as outputs, a power of two up to UK_VL, with blocks
 * only for kernels 3 wide. A vector of whole groups reads the same channels as it computes. For
 * input i of all its groups, each lane takes input i of its own group from them.
 */
#ifndef PTED_HAL_CPU_UK_CONV_DW_F32_H
#define PTED_HAL_CPU_UK_CONV_DW_F32_H

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

#ifdef GROUPS
/* Returns the lanes in which each lane finds the first input of its group. */
UK_INLINE vi first_lanes(size_t group)
{
    vi lane;
    for (int i = 0; i < UK_VL; i++) {
        lane[i] = i & -(int)group;
    }
    return lane;
}

UK_INLINE vf spread(vf x, vi lanes)
{
    return v_pick(x, lanes);
}

UK_INLINE size_t inputs_of(size_t group)
{
    return group;
}
#else
UK_INLINE vi first_lanes(size_t group)
{
    (void)group;
    return (vi){0};
}

UK_INLINE vf spread(vf x, vi lanes)
{
    (void)lanes;
    return x;
}

UK_INLINE size_t inputs_of(size_t group)
{
    (void)group;
    return 1;
}
#endif

/* A row of at least COLUMNS_MIN outputs divides into blocks of COLUMNS_MIN to COLUMNS_MAX. */
#define COLUMNS_MIN 4
#define COLUMNS_MAX 7

/* Columns of a kernel that has blocks. */
#ifdef GROUPS
#define KERNEL_MAX 3
#else
#define KERNEL_MAX 7
#endif
#define INPUTS_MAX ((COLUMNS_MAX - 1) * 2 + KERNEL_MAX)

/* Floats in the kernel's input rows for one band of channels: from one output row to the next they
 * stay in the first-level cache. An image of more floats than IMAGE has no bands: it does not lie
 * in the second-level cache, and from behind it parts of pixels come slower than whole ones. */
#define BAND 8192
#define IMAGE (256 * 1024)

/* Vectors of channels that a block computes at a time: they share what addresses cost. */
#if defined UK_LEVEL_AVX512 || defined __aarch64__
#define VECTORS 2
#else
#define VECTORS 1 /* of 16 registers */
#endif

/* One output row of a band of channels, with the kernel rows that lie in the image. */
struct row {
    const struct uk_dw_f32 *d;
    ptrdiff_t x; /* from d->x to column -pad_left of the first kernel row: outside of x */
    const float *w;
    float *y;
    uint32_t kernel_rows;
    size_t channel_begin, channel_end;
};

/* Blocks of outputs side by side, the first of them at its first channel. If they are at an edge,
 * there is one, and only the inputs [begin, end) of it are in the image. Distances are in bytes. */
struct place {
    const char *x, *w, *bias;
    char *y;
    ptrdiff_t line, pixel, y_pixel, tap;
    size_t kernel_rows, blocks, channels, group;
    int begin, end;
    float min, max;
};

/* Five things at equal distances share a base pointer, because x86 can address base, base + step
 * and base + 2 and 4 * step, and has not enough registers for a pointer to each. */
#define BASES ((INPUTS_MAX + 4) / 5)
struct bases {
    const char *at[BASES];
    ptrdiff_t step, triple;
};

UK_INLINE struct bases bases_of(const char *from, ptrdiff_t step, const int count)
{
    struct bases b = {.step = step, .triple = 3 * step};
    UK_UNROLL
    for (int i = 0; i < (count + 4) / 5; i++) {
        b.at[i] = from + 5 * i * step;
    }
    __asm__("" : "+r"(b.step), "+r"(b.triple));
    return b;
}

/* Moves to the next row of things. The empty asm statement keeps the compiler from undoing it. */
UK_INLINE void advance(struct bases *b, ptrdiff_t line, const int count)
{
    UK_UNROLL
    for (int i = 0; i < (count + 4) / 5; i++) {
        b->at[i] += line;
        __asm__("" : "+r"(b->at[i]));
    }
}

UK_INLINE const float *thing(const struct bases *b, const int i)
{
    const char *at = b->at[i / 5];
    return (const float *)(const void *)(i % 5 == 3 ? at + b->triple : at + i % 5 * b->step);
}

/* acc[i] += the product of one kernel row with the inputs of output i, from |lanes|. Only the
 * inputs [begin, end) are in the image. At most the first and the last |margin| are outside. */
UK_INLINE void add_kernel_row(vf acc[COLUMNS_MAX][VECTORS], const struct bases *x, int begin,
                              int end, vi lanes, const struct bases *w, const int kernel,
                              const int stride, const int columns, const int margin,
                              const int vectors, size_t part)
{
    const int inputs = (columns - 1) * stride + kernel;
    vf tap[KERNEL_MAX][VECTORS], in[VECTORS];
    UK_UNROLL
    for (int i = 0; i < kernel * vectors; i++) {
        tap[i / vectors][i % vectors] = load(thing(w, i / vectors) + i % vectors * UK_VL, part);
    }
    UK_UNROLL
    for (int i = 0; i < inputs; i++) {
        if ((i < margin && i < begin) || (i >= inputs - margin && i >= end)) {
            continue;
        }
        UK_UNROLL
        for (int v = 0; v < vectors; v++) {
            in[v] = v_hold(spread(load(thing(x, i) + v * UK_VL, part), lanes));
        }
        UK_UNROLL
        for (int k = 0; k < kernel; k++) {
            UK_UNROLL
            for (int v = 0; v < vectors; v++) {
                if (i >= k && (i - k) % stride == 0 && (i - k) / stride < columns) {
                    acc[(i - k) / stride][v] += in[v] * tap[k][v];
                }
            }
        }
    }
}

/* Computes |vectors| of channels of a block, or |part| channels if |part| is not 0. The block's
 * inputs and outputs are at |from| and |to|, |at| bytes behind those of its first channel. */
UK_INLINE void block(const struct place *p, const char *from, char *to, size_t at, const int kernel,
                     const int stride, const int columns, const int margin, const int vectors,
                     size_t part)
{
    const int inputs = (columns - 1) * stride + kernel;
    vf min = v_splat(p->min), max = v_splat(p->max), acc[COLUMNS_MAX][VECTORS];
    UK_UNROLL
    for (int v = 0; v < vectors; v++) {
        const float *bias = (const float *)(const void *)(p->bias + at);
        vf begin = p->bias ? load(bias + v * UK_VL, part) : (vf){0};
        UK_UNROLL
        for (int i = 0; i < columns; i++) {
            acc[i][v] = begin;
        }
    }
    struct bases x = bases_of(from, p->pixel, inputs);
    struct bases w = bases_of(p->w + at, p->tap, kernel);
    for (size_t k = p->kernel_rows; k > 0; k--) {
        vi lanes = first_lanes(p->group);
        for (size_t i = inputs_of(p->group); i > 0; i--, lanes += 1) {
            add_kernel_row(acc, &x, p->begin, p->end, lanes, &w, kernel, stride, columns, margin,
                           vectors, part);
            advance(&w, kernel * p->tap, kernel);
        }
        advance(&x, p->line, inputs);
    }
    UK_UNROLL
    for (int i = 0; i < columns * vectors; i++) {
        const int column = i / vectors, v = i % vectors;
        float *y = (float *)(void *)(to + column * p->y_pixel);
        store(y + v * UK_VL, v_clamp(acc[column][v], min, max), part);
    }
}

/* Computes the first |vectors| of channels of all blocks, or |part| channels. */
UK_INLINE void do_vectors(const struct place *p, const int kernel, const int stride,
                          const int columns, const int margin, const int vectors, size_t part)
{
    const char *from = p->x;
    char *to = p->y;
    for (size_t i = p->blocks; i > 0; i--) {
        block(p, from, to, 0, kernel, stride, columns, margin, vectors, part);
        from += columns * stride * p->pixel;
        to += columns * p->y_pixel;
    }
}

/* Computes all blocks. The last vector overlaps the one before it, so a band must have at least
 * UK_VL channels. */
UK_INLINE void do_each(const struct place *p, const int kernel, const int stride, const int columns,
                       const int margin)
{
    const size_t vector = UK_VL * sizeof(float), end = p->channels * sizeof(float);
    const char *from = p->x;
    char *to = p->y;
    if (end == VECTORS * vector) { /* as usual in a tile of expand_dw */
        do_vectors(p, kernel, stride, columns, margin, VECTORS, 0);
        return;
    }
    for (size_t i = p->blocks; i > 0; i--) {
        size_t at = 0;
        for (; end - at >= VECTORS * vector; at += VECTORS * vector) {
            block(p, from + at, to + at, at, kernel, stride, columns, margin, VECTORS, 0);
        }
        for (; at < end; at += vector) {
            at = end - at < vector ? end - vector : at;
            block(p, from + at, to + at, at, kernel, stride, columns, margin, 1, 0);
        }
        from += columns * stride * p->pixel;
        to += columns * p->y_pixel;
    }
}

typedef void block_f(const struct place *p);

#ifdef UK_SANITIZED
/* One copy for each kernel and stride, with the numbers of columns as arguments: with the checks of
 * a sanitizer a copy for each number would take half a minute to compile. */
#define COPIES(kernel, stride)                                                                     \
    __attribute__((noinline)) static void each_##kernel##_##stride(const struct place *p,          \
                                                                   int columns, int margin)        \
    {                                                                                              \
        do_each(p, kernel, stride, columns, margin);                                               \
    }                                                                                              \
    __attribute__((noinline)) static void vectors_##kernel##_##stride(const struct place *p,       \
                                                                      int columns)                 \
    {                                                                                              \
        do_vectors(p, kernel, stride, columns, kernel / 2, 1, p->channels);                        \
    }
#define EACH(p, kernel, stride, columns, margin) each_##kernel##_##stride(p, columns, margin)
#define VECTORS_OF(p, kernel, stride, columns) vectors_##kernel##_##stride(p, columns)
#else
#define COPIES(kernel, stride)
#define EACH(p, kernel, stride, columns, margin) do_each(p, kernel, stride, columns, margin)
#define VECTORS_OF(p, kernel, stride, columns)                                                     \
    do_vectors(p, kernel, stride, columns, kernel / 2, 1, (p)->channels)
#endif
#define BLOCK(kernel, stride, columns)                                                             \
    static void inner_##kernel##_##stride##_##columns(const struct place *p)                       \
    {                                                                                              \
        EACH(p, kernel, stride, columns, 0);                                                       \
    }                                                                                              \
    static void edge_##kernel##_##stride##_##columns(const struct place *p)                        \
    {                                                                                              \
        EACH(p, kernel, stride, columns, kernel / 2);                                              \
    }                                                                                              \
    static void part_##kernel##_##stride##_##columns(const struct place *p)                        \
    {                                                                                              \
        VECTORS_OF(p, kernel, stride, columns);                                                    \
    }
#define BLOCKS(kernel, stride)                                                                     \
    COPIES(kernel, stride)                                                                         \
    BLOCK(kernel, stride, 4)                                                                       \
    BLOCK(kernel, stride, 5)                                                                       \
    BLOCK(kernel, stride, 6)                                                                       \
    BLOCK(kernel, stride, 7)
BLOCKS(3, 1)
BLOCKS(3, 2)
#ifndef GROUPS
BLOCKS(5, 1)
BLOCKS(5, 2)
BLOCKS(7, 1)
BLOCKS(7, 2)
#endif

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
#ifdef GROUPS
static const struct blocks all_blocks[1][2] = {{BLOCKS_ROW(3, 1), BLOCKS_ROW(3, 2)}};
#else
static const struct blocks all_blocks[3][2] = {{BLOCKS_ROW(3, 1), BLOCKS_ROW(3, 2)},
                                               {BLOCKS_ROW(5, 1), BLOCKS_ROW(5, 2)},
                                               {BLOCKS_ROW(7, 1), BLOCKS_ROW(7, 2)}};
#endif

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
    for (size_t row = 0; row < r->kernel_rows * inputs_of(d->group); row++) {
        size_t line = row / inputs_of(d->group) * d->dilation_h;
        vi lanes = first_lanes(d->group) + (int)(row % inputs_of(d->group));
        for (size_t tap = tap_begin; tap < tap_end; tap++) {
            size_t x_column = column * d->stride_w + tap * d->dilation_w;
            const float *x = d->x + (r->x + (ptrdiff_t)line * d->x_line +
                                     (ptrdiff_t)x_column * d->x_pixel + (ptrdiff_t)c);
            const float *w = r->w + (row * d->kernel_w + tap) * d->channels + c;
            UK_UNROLL
            for (int i = 0; i < vectors; i++) {
                acc[i] += spread(load(x + i * UK_VL, part), lanes) * load(w + i * UK_VL, part);
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
#ifdef GROUPS /* whole groups: the vector overlaps the one before it */
            point_channels(r, column, r->channel_end - UK_VL, tap_begin, tap_end, 1, 0);
#else
            point_channels(r, column, c, tap_begin, tap_end, 1, r->channel_end - c);
#endif
        }
    }
}

/* Returns the fast blocks for this kernel, or NULL. They take padding of half a kernel on each
 * side. */
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

static struct place place_of(const struct row *r)
{
    const struct uk_dw_f32 *d = r->d;
    const ptrdiff_t number = sizeof(float);
    size_t c = r->channel_begin;
    return (struct place){
        .x = (const char *)(d->x + (r->x + (ptrdiff_t)c)),
        .w = (const char *)(r->w + c),
        .bias = d->bias ? (const char *)(d->bias + c) : NULL,
        .y = (char *)(r->y + c),
        .line = (ptrdiff_t)d->dilation_h * d->x_line * number,
        .pixel = d->x_pixel * number,
        .y_pixel = d->y_pixel * number,
        .tap = (ptrdiff_t)d->channels * number,
        .kernel_rows = r->kernel_rows,
        .channels = r->channel_end - c,
        .group = d->group,
        .min = d->min,
        .max = d->max,
    };
}

/* Computes blocks of |size| outputs from |column| on, at most |count| and only one at an edge;
 * returns their number. */
static size_t do_some(struct place *p, const struct uk_dw_f32 *d, const struct blocks *blocks,
                      size_t column, size_t size, size_t count)
{
    int64_t at = (int64_t)(column * d->stride_w) - d->pad_left;
    int64_t step = (int64_t)(size * d->stride_w), inputs = step - d->stride_w + d->kernel_w;
    bool is_inside = at >= 0 && at + inputs <= d->width;
    size_t fit = is_inside ? (size_t)((d->width - inputs - at) / step) + 1 : 1;
    p->blocks = fit < count ? fit : count;
    p->begin = at < 0 ? (int)(-at < inputs ? -at : inputs) : 0;
    p->end = at + inputs > d->width ? (int)(d->width - at) : (int)inputs;
    block_f *const *form = d->channels < UK_VL ? blocks->part
                           : is_inside         ? blocks->inner
                                               : blocks->edge;
    form[size - COLUMNS_MIN](p);
    p->x += (ptrdiff_t)p->blocks * step * p->pixel;
    p->y += (ptrdiff_t)(p->blocks * size) * p->y_pixel;
    return p->blocks;
}

static void do_blocks(const struct row *r, const struct blocks *blocks)
{
    struct place p = place_of(r);
    size_t width = r->d->out_width, count = (width + COLUMNS_MAX - 1) / COLUMNS_MAX;
    size_t size = width / count, wider = width % count; /* so many have another column */
    for (size_t i = 0, column = 0; i < count;) {
        size_t own = i < wider ? size + 1 : size, done;
        done = do_some(&p, r->d, blocks, column, own, (i < wider ? wider : count) - i);
        i += done;
        column += done * own;
    }
}

static void do_row(const struct uk_dw_f32 *d, size_t y, size_t channel_begin, size_t channel_end)
{
    const struct blocks *blocks = find_blocks(d);
    int64_t at = (int64_t)(y * d->stride_h) - d->pad_top;
    size_t tap_begin, tap_end;
    clip_taps(at, d->height, d->kernel_h, d->dilation_h, &tap_begin, &tap_end);
    struct row r = {.d = d,
                    .w = d->w + tap_begin * inputs_of(d->group) * d->kernel_w * d->channels,
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

static void do_bands(const struct uk_dw_f32 *d)
{
    size_t pixels = (size_t)d->kernel_h * d->width; /* 0: all taps are in the padding */
    size_t band = pixels ? BAND / pixels / UK_VL * UK_VL : BAND;
    band = band < VECTORS * UK_VL ? VECTORS * UK_VL : band;
    band = (size_t)d->height * d->width * d->channels > IMAGE ? d->channels : band;
    for (size_t c = 0; c < d->channels;) {
        /* The last band takes the remainder, so no band is smaller than a vector. */
        size_t end = d->channels - c < 2 * band ? d->channels : c + band;
        for (size_t y = d->row_begin; y < d->row_end; y++) {
            do_row(d, y, c, end);
        }
        c = end;
    }
}

/* Treats every |dilation_w|th output, from |first| on, which reads every |dilation_w|th input: a
 * convolution without dilation. */
static struct uk_dw_f32 undilated(const struct uk_dw_f32 *d, uint32_t first)
{
    ptrdiff_t step = d->dilation_w, at = (ptrdiff_t)first - d->pad_left;
    ptrdiff_t begin = (at % step + step) % step;
    struct uk_dw_f32 every = *d;
    every.x += begin * d->x_pixel;
    every.y += (ptrdiff_t)first * d->y_pixel;
    every.x_pixel *= step;
    every.y_pixel *= step;
    every.width = (ptrdiff_t)d->width > begin ? (uint32_t)((d->width - begin - 1) / step + 1) : 0;
    every.out_width = (d->out_width - first - 1) / d->dilation_w + 1;
    every.pad_left = (begin - at) / step;
    every.dilation_w = 1;
    return every;
}

static void run(const struct uk_dw_f32 *d)
{
    must(d->stride_h > 0 && d->stride_w > 0 && d->dilation_h > 0 && d->dilation_w > 0);
    must(d->row_begin <= d->row_end);
    if (d->stride_w > 1 || d->dilation_w == 1) {
        do_bands(d);
        return;
    }
    for (uint32_t i = 0; i < d->dilation_w && i < d->out_width; i++) {
        struct uk_dw_f32 every = undilated(d, i);
        do_bands(&every);
    }
}

#endif
