/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/kernels/gemm.h"

#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/shaders/generated/spirv.h"

/* Rough speed of one core: multiply-adds a nanosecond, and bytes of weights from memory a
 * nanosecond. */
#define MACS_PER_NS 50
#define BYTES_PER_NS 20

/* Rows of a line, and channels, from which on one product that skips taps of the first and the last
 * pixel is faster than products for each of them. */
#define SKIP_MIN 4
#define SKIP_CHANNELS_MIN 32

/* With AMX: columns that are multiplied while a pixel of a convolution's input is copied, about;
 * and bytes that are copied at a time, if there is a choice. A kernel that reaches so far that a
 * line of results needs more than PADDED_BYTES_MAX reads its input where it lies. */
#define COPY_COLUMNS 30
#define PADDED_BYTES (384 * 1024)
#define PADDED_BYTES_MAX (8 * 1024 * 1024)

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Output positions [begin, end) of an axis that all read taps [tap, tap_end). If |skips|, the first
 * and the last position lack some of these taps. */
struct run {
    int64_t begin, end, tap, tap_end;
    bool skips;
};

static void valid_taps(const struct rt_axis *a, int64_t position, int64_t *tap, int64_t *tap_end)
{
    int64_t base = position * a->step + a->first;
    *tap = *tap_end = 0;
    for (int64_t t = 0; t < a->taps; t++) {
        int64_t at = base + t * a->spread;
        if (at >= 0 && at < a->in) {
            *tap = *tap_end ? *tap : t;
            *tap_end = t + 1;
        }
    }
}

/* Do all positions in [begin, end) read all taps? */
static bool is_inside(const struct rt_axis *a, int64_t begin, int64_t end)
{
    int64_t reach = (a->taps - 1) * a->spread;
    int64_t lowest = begin * a->step + a->first + (reach < 0 ? reach : 0);
    int64_t highest = (end - 1) * a->step + a->first + (reach > 0 ? reach : 0);
    return lowest >= 0 && highest < a->in;
}

/* The run that begins at |position| and ends at or before |limit|. */
static struct run next_run(const struct rt_axis *a, int64_t position, int64_t limit)
{
    struct run run = {.begin = position, .end = position + 1};
    if (is_inside(a, position, limit)) {
        return (struct run){position, limit, 0, a->taps, false};
    }
    valid_taps(a, position, &run.tap, &run.tap_end);
    for (; run.end < limit; run.end++) {
        int64_t tap, tap_end;
        valid_taps(a, run.end, &tap, &tap_end);
        if (tap != run.tap || tap_end != run.tap_end) {
            break;
        }
    }
    return run;
}

static size_t taps_max(const struct rt_gemm *g)
{
    return (size_t)(g->y.taps * g->x.taps + 1);
}

/* Which of the positions [begin, end) do not read tap |t|, as an enum uk_skip; -1: both ends, or
 * others. */
static int skip_of(const struct rt_axis *a, int64_t t, int64_t begin, int64_t end)
{
    int64_t at = begin * a->step + a->first + t * a->spread;
    int64_t last = at + (end - 1 - begin) * a->step;
    bool lacks_first = at < 0 || at >= a->in, lacks_last = last < 0 || last >= a->in;
    at += lacks_first ? a->step : 0;
    last -= lacks_last ? a->step : 0;
    bool has_others = at >= 0 && at < a->in && last >= 0 && last < a->in;
    if (!has_others || (lacks_first && lacks_last)) {
        return -1;
    }
    return lacks_first ? UK_SKIP_FIRST : lacks_last ? UK_SKIP_LAST : 0;
}

/* Do the positions lack no taps but some of the first and of the last one? Then they are one run.
 */
static bool can_skip(const struct rt_axis *a, int64_t begin, int64_t end)
{
    bool can = end - begin >= SKIP_MIN;
    for (int64_t t = 0; can && t < a->taps; t++) {
        can = skip_of(a, t, begin, end) >= 0;
    }
    return can;
}

/* The runs of channels that every pixel of a block gathers, from its first tap on. Taps of a line
 * that are neighbours in memory and in the weights form one run. */
static void gather(const struct rt_gemm *g, const struct run *y, const struct run *x,
                   struct uk_segment *segments, struct uk_gemm_f32 *call)
{
    int64_t channels = g->channels / g->groups, taps = x->tap_end - x->tap;
    bool merge = g->groups == 1 && g->x.spread == 1 && g->x.k_spread == 1 && !x->skips;
    uint8_t *skips = (uint8_t *)(segments + taps_max(g));
    uint32_t count = 0;
    for (int64_t ty = y->tap; taps > 0 && ty < y->tap_end; ty++) {
        int64_t line = (ty - y->tap) * g->y.spread * g->line_in;
        int64_t k_line = (g->y.k_first + ty * g->y.k_spread) * g->kernel_w;
        for (int64_t tx = x->tap; tx < x->tap_end; tx += merge ? taps : 1) {
            int64_t k = k_line + g->x.k_first + tx * g->x.k_spread;
            skips[count] = x->skips ? (uint8_t)skip_of(&g->x, tx, x->begin, x->end) : 0;
            segments[count++] = (struct uk_segment){
                .a = line + (tx - x->tap) * g->x.spread * g->channels,
                .k = (size_t)(k * channels),
            };
        }
    }
    call->segments = segments;
    call->segment_count = count;
    call->skips = x->skips ? skips : NULL;
    call->run = count ? (uint32_t)(channels * (merge ? taps : 1)) : 0;
    if (call->scratch && call->run % 2) { /* only in matrix products; packed weights are even */
        call->run++;
        call->is_odd = true;
    }
}

static void swap_strides(ptrdiff_t *a, ptrdiff_t *b)
{
    ptrdiff_t c = *a;
    *a = *b;
    *b = c;
}

/* Exchanges lines and rows. */
static void turn(struct uk_gemm_f32 *call)
{
    uint32_t lines = call->lines;
    call->lines = call->m;
    call->m = lines;
    swap_strides(&call->a_line, &call->a_row);
    swap_strides(&call->residual_line, &call->residual_row);
    swap_strides(&call->c_line, &call->c_row);
}

static void move_a(struct uk_gemm_f32 *call, int64_t numbers)
{
    size_t width = call->a_is_bf16 ? sizeof(uint16_t) : sizeof(float);
    call->a = (const float *)(const void *)((const char *)call->a + numbers * (int64_t)width);
}

static void move_residual(struct uk_gemm_f32 *call, int64_t numbers)
{
    size_t width = call->residual_is_bf16 ? sizeof(uint16_t) : sizeof(float);
    if (call->residual) {
        const char *from = (const char *)call->residual;
        call->residual = (const float *)(const void *)(from + numbers * (int64_t)width);
    }
}

static void move_c(struct uk_gemm_f32 *call, int64_t numbers)
{
    size_t width = call->c_is_bf16 ? sizeof(uint16_t) : sizeof(float);
    call->c = (float *)(void *)((char *)call->c + numbers * (int64_t)width);
}

/*
 * The block of |call| in |images| images. A block of a single line takes the images as its lines. A
 * block that is one pixel wide is transposed: the borders of images gather separately from the
 * rest, and a pixel at a time would use only a small part of each register tile.
 */
static void multiply_images(const struct rt_gemm *g, struct uk_gemm_f32 call, int64_t images)
{
    if (call.m == 1) {
        turn(&call);
    }
    if (call.lines == 1) {
        call.lines = (uint32_t)images;
        call.a_line = g->image_in;
        call.c_line = call.residual_line = g->image_out;
        images = 1;
        if (call.m == 1) {
            turn(&call);
        }
    }
    for (int64_t i = 0; i < images; i++) {
        if (call.scratch) {
            hal_cpu_uk()->gemm_bf16(&call);
        } else {
            hal_cpu_uk()->gemm_f32(&call);
        }
        move_a(&call, g->image_in);
        move_c(&call, g->image_out);
        move_residual(&call, g->image_out);
    }
}

/* Multiplies one block of output pixels that gather alike; |call| holds what all blocks share. */
static void multiply(const struct rt_gemm *g, const struct run *y, const struct run *x,
                     struct uk_segment *segments, struct uk_gemm_f32 call, int64_t images)
{
    int64_t in_y = y->begin * g->y.step + g->y.first + y->tap * g->y.spread;
    int64_t in_x = x->begin * g->x.step + g->x.first + x->tap * g->x.spread;
    int64_t out = y->begin * g->line_out + x->begin * g->pixel_out;
    gather(g, y, x, segments, &call);
    if (call.segment_count > 0) {
        move_a(&call, in_y * g->line_in + in_x * g->channels);
    }
    move_c(&call, out);
    move_residual(&call, out);
    call.lines = (uint32_t)(y->end - y->begin);
    call.m = (uint32_t)(x->end - x->begin);
    multiply_images(g, call, images);
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Output positions of a tile. */
struct band {
    int64_t y, y_end, x, x_end;
};

static void multiply_band(const struct rt_gemm *g, const struct band *band,
                          struct uk_segment *segments, const struct uk_gemm_f32 *call,
                          int64_t images)
{
    const struct run line = {band->x, band->x_end, 0, g->x.taps, true};
    bool skips = call->scratch && hal_cpu_uk()->bf16_skips &&
                 g->channels / g->groups >= SKIP_CHANNELS_MIN &&
                 !is_inside(&g->x, line.begin, line.end) && can_skip(&g->x, line.begin, line.end);
    for (int64_t y = band->y; y < band->y_end;) {
        struct run lines = next_run(&g->y, y, band->y_end);
        for (int64_t x = band->x; x < band->x_end;) {
            struct run pixels = skips ? line : next_run(&g->x, x, band->x_end);
            multiply(g, &lines, &pixels, segments, *call, images);
            x = pixels.end;
        }
        y = lines.end;
    }
}

/* ---- padded copies --------------------------------------------------------------------------- */

/*
 * Tiles of AMX take rows at equal distances, and each tap of all of them at once. So the input of
 * some output lines is copied with its padding, as bfloat16 numbers. Neighbouring lines share the
 * padding between them. With a step, lines are sorted by their remainder, so that the lines of the
 * next output line always follow.
 */
struct padded {
    int64_t in_y, in_x;    /* of the first window */
    int64_t left, width;   /* columns of padding before the image, and columns of the image */
    int64_t pitch;         /* pixels from one line to the next; a multiple of the step */
    int64_t lines, sorted; /* of the input; with the same remainder */
    int64_t pixels;        /* in all */
};

static int64_t reach_of(const struct rt_axis *a, int64_t positions)
{
    return (positions - 1) * a->step + (a->taps - 1) * a->spread + 1;
}

/* Output positions [x, x + pixels) of |lines| lines from |y| on. */
static struct padded padded_of(const struct rt_gemm *g, int64_t y, int64_t lines, int64_t x,
                               int64_t pixels)
{
    struct padded p = {.in_y = y * g->y.step + g->y.first, .in_x = x * g->x.step + g->x.first};
    int64_t reach = reach_of(&g->x, pixels), end = p.in_x + reach;
    int64_t first = p.in_x < 0 ? min_i64(-p.in_x, reach) : 0;
    int64_t behind = end > g->x.in ? min_i64(end - g->x.in, reach - first) : 0;
    p.left = first;
    p.width = reach - first - behind;
    p.pitch = p.width + (first > behind ? first : behind);
    p.pitch = (p.pitch + g->x.step - 1) / g->x.step * g->x.step;
    p.lines = reach_of(&g->y, lines);
    p.sorted = (p.lines + g->y.step - 1) / g->y.step;
    p.pixels = g->y.step * p.sorted * p.pitch + reach;
    return p;
}

/* The first pixel of an input line, counted from the first pixel of the first window. */
static int64_t padded_line(const struct rt_gemm *g, const struct padded *p, int64_t line)
{
    return (line % g->y.step * p->sorted + line / g->y.step) * p->pitch;
}

static void copy_padded(const struct rt_gemm *g, const struct padded *p, const void *image,
                        bool is_bf16, uint16_t *to)
{
    size_t pixel = (size_t)g->channels * sizeof(*to), count = (size_t)(p->width * g->channels);
    for (int64_t i = 0; i < g->y.step * p->sorted; i++) {
        uint16_t *line = to + padded_line(g, p, i) * g->channels;
        int64_t in = p->in_y + i;
        if (i >= p->lines || in < 0 || in >= g->y.in) {
            memset(line, 0, (size_t)p->pitch * pixel);
            continue;
        }
        int64_t from = in * g->line_in + (p->in_x + p->left) * g->channels;
        uint16_t *there = line + p->left * g->channels;
        memset(line, 0, (size_t)p->left * pixel);
        memset(there + count, 0, (size_t)(p->pitch - p->left - p->width) * pixel);
        if (is_bf16) {
            memcpy(there, (const uint16_t *)image + from, count * sizeof(*to));
        } else {
            hal_cpu_uk()->f32_to_bf16(there, (const float *)image + from, count);
        }
    }
    int64_t end = g->y.step * p->sorted * p->pitch;
    memset(to + end * g->channels, 0, (size_t)(p->pixels - end) * pixel);
}

/* The runs in the copy: as gather() makes them, but no tap is left out. */
static void gather_padded(const struct rt_gemm *g, const struct padded *p,
                          struct uk_segment *segments, struct uk_gemm_f32 *call)
{
    bool merges = g->x.spread == 1;
    uint32_t count = 0;
    for (int64_t ty = 0; ty < g->y.taps; ty++) {
        int64_t line = padded_line(g, p, ty * g->y.spread);
        for (int64_t tx = 0; tx < g->x.taps; tx += merges ? g->x.taps : 1) {
            segments[count++] = (struct uk_segment){
                .a = (line + tx * g->x.spread) * g->channels,
                .k = (size_t)((ty * g->kernel_w + tx) * g->channels),
            };
        }
    }
    call->segments = segments;
    call->segment_count = count;
    call->run = (uint32_t)(g->channels * (merges ? g->x.taps : 1));
}

/* Copies behind the scratch memory of the product itself, and multiplies. */
static void multiply_padded(const struct rt_gemm *g, const struct band *band,
                            struct uk_segment *segments, struct uk_gemm_f32 call, int64_t images)
{
    uint16_t *copy =
        (uint16_t *)((uint8_t *)call.scratch + uk_gemm_bf16_scratch(hal_cpu_uk(), (size_t)g->k));
    for (int64_t image = 0; image < images; image++) {
        for (int64_t y = band->y; y < band->y_end; y += g->padded_lines) {
            int64_t lines = min_i64(g->padded_lines, band->y_end - y);
            struct padded p = padded_of(g, y, lines, band->x, band->x_end - band->x);
            int64_t out = y * g->line_out + band->x * g->pixel_out;
            struct uk_gemm_f32 part = call;
            copy_padded(g, &p, call.a, call.a_is_bf16, copy);
            gather_padded(g, &p, segments, &part);
            part.a = (const float *)(const void *)copy;
            part.a_is_bf16 = true;
            part.a_line = p.pitch * g->channels;
            part.a_row = g->x.step * g->channels;
            part.lines = (uint32_t)lines;
            part.m = (uint32_t)(band->x_end - band->x);
            move_c(&part, out);
            move_residual(&part, out);
            hal_cpu_uk()->gemm_bf16(&part);
        }
        move_a(&call, g->image_in);
        move_c(&call, g->image_out);
        move_residual(&call, g->image_out);
    }
}

/* Half-precision elements converted at a time: a few cache lines. */
#define ROUND_CHUNK 256

static void round_to_halves(float *c, int64_t count)
{
    uint16_t halves[ROUND_CHUNK];
    for (int64_t at = 0; at < count; at += ROUND_CHUNK) {
        size_t n = (size_t)min_i64(ROUND_CHUNK, count - at);
        hal_cpu_uk()->f32_to_f16(halves, c + at, n);
        hal_cpu_uk()->f16_to_f32(c + at, halves, n);
    }
}

/* Rounds the output of multiply_band(). Contiguous pixels form one run. */
static void round_band(const struct rt_gemm *g, const struct band *band,
                       const struct uk_gemm_f32 *call, int64_t images)
{
    int64_t pixels = g->pixel_out == (int64_t)call->n ? band->x_end - band->x : 1;
    for (int64_t i = 0; i < images; i++) {
        for (int64_t y = band->y; y < band->y_end; y++) {
            float *line = call->c + i * g->image_out + y * g->line_out;
            for (int64_t x = band->x; x < band->x_end; x += pixels) {
                round_to_halves(line + x * g->pixel_out, pixels * call->n);
            }
        }
    }
}

/* Bytes of scratch memory for the segments of a pixel and what skips them; a copied tile follows.
 */
static size_t segments_bytes(const struct rt_gemm *g)
{
    return align_up(taps_max(g) * (sizeof(struct uk_segment) + sizeof(uint8_t)), 64);
}

/* Which tensors are bfloat16. */
struct numbers {
    bool weights, in, residual, out;
};

/* A result that is rounded to bfloat16 needs no exact gelu. */
static uk_unary_f32_f *activation_of(const struct rt_gemm *g, struct numbers numbers)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    if (g->activation == 0) {
        return NULL;
    }
    bool is_short = numbers.out && g->activation - 1 == UK_GELU;
    return is_short ? uk->gelu_short_f32 : uk->unary_f32[g->activation - 1];
}

/*
 * Bindings: out, in, weights, bias, residual. Grid: bands, bands of images *
 * groups, blocks of panels.
 */
static void multiply_tile(const struct hal_args *args, struct hal_tile tile, struct numbers numbers)
{
    const struct rt_gemm *g = args->constants;
    int64_t image = tile.y / g->groups * g->band_images, group = tile.y % g->groups;
    int64_t images = min_i64(g->band_images, g->images - image);
    int64_t width = g->width, group_outs = g->outs / g->groups;
    int64_t column = (int64_t)tile.z * g->panels * width;
    struct band band = {.y = tile.x / g->bands_x * g->band_y, .x = tile.x % g->bands_x * g->band_x};
    band.y_end = min_i64(band.y + g->band_y, g->y.out);
    band.x_end = min_i64(band.x + g->band_x, g->x.out);
    int64_t out = image * g->image_out + group * group_outs + column + g->offset_out;
    /* With k = 0 no element is read, but addresses are computed: any valid one will do. */
    const uint8_t *weights = args->bindings[g->k > 0 ? 2 : 0];
    int64_t weight = image * g->image_b + group * g->group_b + column * g->k;
    const float *bias = args->bindings[3];
    struct uk_gemm_f32 call = {
        .a = args->bindings[g->k > 0 ? 1 : 0],
        .a_line = g->y.step * g->line_in,
        .a_row = g->x.step * g->channels,
        .b = weights + weight * (int64_t)(numbers.weights ? sizeof(uint16_t) : sizeof(float)),
        .k = (size_t)g->k,
        .bias = bias ? bias + group * group_outs + column : NULL,
        .residual = args->bindings[4],
        .residual_line = g->line_out,
        .residual_row = g->pixel_out,
        .c = args->bindings[0],
        .c_line = g->line_out,
        .c_row = g->pixel_out,
        .n = (uint32_t)min_i64(g->panels * width, group_outs - column),
        .min = g->min,
        .max = g->max,
        .activation = activation_of(g, numbers),
        .asks_ahead = hal_cpu_uk()->f32_asks_ahead,
        .scratch = numbers.weights ? (uint8_t *)args->scratch + segments_bytes(g) : NULL,
        .a_is_bf16 = numbers.in,
        .residual_is_bf16 = numbers.residual,
        .c_is_bf16 = numbers.out,
    };
    move_a(&call, image * g->image_in + group * (g->channels / g->groups));
    move_c(&call, out);
    move_residual(&call, out);
    if (g->padded_lines > 0) {
        multiply_padded(g, &band, args->scratch, call, images);
    } else {
        multiply_band(g, &band, args->scratch, &call, images);
    }
    if (g->is_rounded) {
        round_band(g, &band, &call, images);
    }
}

static void gemm_cpu(const struct hal_args *args, struct hal_tile tile)
{
    uint64_t mode = uk_subnormals_drop();
    multiply_tile(args, tile, (struct numbers){0});
    uk_subnormals_keep(mode);
}

/* clang-format off */
#define BF16_KERNEL(in, residual, out)                                                             \
    static void gemm_bf16_##in##residual##out##_cpu(const struct hal_args *args,                   \
                                                    struct hal_tile tile)                          \
    {                                                                                              \
        uint64_t mode = uk_subnormals_drop();                                                      \
        multiply_tile(args, tile, (struct numbers){true, in, residual, out});                      \
        uk_subnormals_keep(mode);                                                                  \
    }
#define EACH_BF16(XX) \
    XX(0, 0, 0) XX(0, 0, 1) XX(0, 1, 0) XX(0, 1, 1) XX(1, 0, 0) XX(1, 0, 1) XX(1, 1, 0) XX(1, 1, 1)
/* clang-format on */
EACH_BF16(BF16_KERNEL)

const struct hal_kernel rt_gemm_kernel = {
    .name = "gemm_f32",
    .cpu = gemm_cpu,
    .keeps_rows = true,
    .spirv = {HAL_SPIRV_FORM(gemm_gpu_spirv, HAL_GPU), HAL_SPIRV_FORM(gemm_spirv, 0)}};

/* By whether the input, the residual and the output are bfloat16, too. */
#define BF16_ROW(in, residual, out)                                                                \
    [in][residual][out] = {                                                                        \
        .name = "gemm_bf16", .cpu = gemm_bf16_##in##residual##out##_cpu, .keeps_rows = true},
static const struct hal_kernel bf16_kernels[2][2][2] = {EACH_BF16(BF16_ROW)};

static const struct hal_kernel big_kernel = {
    .name = "gemm_f32",
    .cpu = gemm_cpu,
    .keeps_rows = true,
    .spirv = {HAL_SPIRV_LANES(gemm_big_spirv, HAL_GPU, RT_GEMM_BIG_LANES),
              HAL_SPIRV_FORM(gemm_spirv, 0)}};

const struct hal_kernel rt_gemm_halves_kernel = {
    .name = "gemm_halves",
    .cpu = gemm_cpu,
    .keeps_rows = true,
    .spirv = {HAL_SPIRV_FORM(gemm_matrices_spirv, HAL_MATRICES_F16),
              HAL_SPIRV_FORM(gemm_f16_spirv, HAL_GPU | HAL_F16),
              HAL_SPIRV_FORM(gemm_gpu_spirv, HAL_GPU), HAL_SPIRV_FORM(gemm_spirv, 0)}};

static const struct hal_kernel big_halves_kernel = {
    .name = "gemm_halves",
    .cpu = gemm_cpu,
    .keeps_rows = true,
    .spirv = {HAL_SPIRV_FORM(gemm_matrices_spirv, HAL_MATRICES_F16),
              HAL_SPIRV_FORM(gemm_f16_spirv, HAL_GPU | HAL_F16),
              HAL_SPIRV_LANES(gemm_big_spirv, HAL_GPU, RT_GEMM_BIG_LANES),
              HAL_SPIRV_FORM(gemm_spirv, 0)}};

/* ---- recording ------------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Numbers of half the bytes are also multiplied faster. */
static int64_t cost_ns(double pixels, double n, double k, bool is_bf16)
{
    double halved = is_bf16 ? 2 : 1;
    double compute = pixels * n * k / MACS_PER_NS / (is_bf16 ? hal_cpu_uk()->bf16_speed : 1);
    double memory = n * k * sizeof(float) / BYTES_PER_NS / halved;
    double ns = compute > memory ? compute : memory;
    return ns > 1e15 ? (int64_t)1e15 : (int64_t)ns + 1;
}

/*
 * Panels that tiles do not divide. Rows whose distance is a multiple of a page evict each other
 * from the first-level cache; gemm_f32 copies them, but only for several panels. Caches keep eight
 * such rows.
 */
static int64_t panels_together(const struct rt_gemm *g, const struct rt_machine *machine,
                               bool is_bf16)
{
    bool evicts = uk_gemm_f32_is_paged((ptrdiff_t)(g->x.step * g->channels)) && g->x.out > 8;
    return evicts && machine->lanes == 1 && !is_bf16 ? UK_GEMM_F32_SKEW_PANELS : 1;
}

/* Bytes of the copy for a whole line of results, or a few more. A file decides how far kernels
 * reach, so an integer may be too small. */
static double line_bytes(const struct rt_gemm *g)
{
    double lines = (double)(reach_of(&g->y, 1) + g->y.step);
    double pixels = (double)(reach_of(&g->x, g->x.out) + g->x.step);
    return lines * pixels * (double)g->channels * sizeof(uint16_t);
}

/* Is the input copied with its padding? Products that leave out single rows need no copy. Whatever
 * the number of images, and the tiles: both ways add the products in other steps. */
static bool is_padded(const struct rt_gemm *g, bool is_bf16)
{
    return is_bf16 && !hal_cpu_uk()->bf16_skips && g->groups == 1 && g->image_b == 0 &&
           g->y.taps * g->x.taps > 1 && g->y.spread > 0 && g->x.spread > 0 && g->y.k_spread == 1 &&
           g->x.k_spread == 1 && g->y.k_first == 0 && g->x.k_first == 0 && g->channels % 2 == 0 &&
           line_bytes(g) <= PADDED_BYTES_MAX;
}

/* Bytes of scratch memory for a padded copy; chooses its lines. */
static size_t padded_bytes(struct rt_gemm *g, bool is_bf16)
{
    if (!is_padded(g, is_bf16)) {
        return 0;
    }
    for (int64_t lines = g->band_y;; lines = (lines + 1) / 2) {
        /* A tile elsewhere has at most as much padding. */
        int64_t reach = reach_of(&g->x, g->band_x) + g->x.step;
        int64_t sorted = ceil_div(reach_of(&g->y, lines), g->y.step);
        int64_t bytes = (g->y.step * sorted + 1) * reach * g->channels * (int64_t)sizeof(uint16_t);
        if (lines == 1 || bytes <= PADDED_BYTES) {
            g->padded_lines = (uint32_t)lines;
            return (size_t)bytes;
        }
    }
}

/* Chooses the tiles; returns the cost. */
static int64_t cut(struct rt_gemm *g, const struct hal_cpu_uk *uk, const struct rt_machine *machine,
                   bool is_bf16)
{
    int64_t group_outs = g->outs / g->groups, parts = g->images * g->groups;
    int64_t ns =
        cost_ns((double)g->y.out * (double)g->x.out, (double)group_outs, (double)g->k, is_bf16);
    int64_t together = panels_together(g, machine, is_bf16);
    int64_t per_read = uk->f32_per_read * (is_bf16 ? uk->bf16_speed / 2 : 1);
    double pixels = (double)g->y.step * (double)g->x.step; /* of the input for one row */
    double fresh = pixels * (double)(g->channels / g->groups);
    double copied = is_padded(g, is_bf16) ? COPY_COLUMNS * pixels : 0;
    struct rt_cut cut = {.images = g->images,
                         .groups = g->groups,
                         .lines = g->y.out,
                         .pixels = g->x.out,
                         .panels = ceil_div(uk_panels_f32(uk, (uint32_t)group_outs), together),
                         .width = uk->f32_nr * together,
                         .rows = is_bf16 ? uk->bf16_mr : uk->f32_mr,
                         .per_read = per_read,
                         .per_input = rt_cut_reads(per_read, fresh, (double)g->k) + copied,
                         .ns = ns > INT64_MAX / parts ? INT64_MAX : ns * parts,
                         .shares_panels = g->image_b == 0,
                         .has_big_form = true};
    rt_cut_product(machine, &cut);
    if (is_padded(g, is_bf16)) {
        cut.band_images = 1; /* each has its copy */
    }
    g->band_images = cut.band_images;
    g->band_y = cut.band_y;
    g->band_x = cut.band_x;
    g->panels = cut.block * together;
    g->bands_y = ceil_div(g->y.out, g->band_y);
    g->bands_x = ceil_div(g->x.out, g->band_x);
    return cut.ns;
}

/* Multiply-adds, including those with padding. */
static double macs_of(const struct rt_gemm *g)
{
    double pixels = (double)g->images * (double)g->y.out * (double)g->x.out;
    double taps = (double)g->y.taps * (double)g->x.taps;
    return pixels * (double)g->outs * taps * (double)g->channels / (double)g->groups;
}

static const struct hal_kernel *kernel_for(const struct rt_gemm *g,
                                           const struct rt_gemm_tensors *tensors)
{
    int64_t rows = g->band_images * g->band_y * g->band_x, columns = g->panels * g->width;
    bool is_big = rows >= RT_GEMM_BIG_ROWS && columns >= RT_GEMM_BIG_COLUMNS;
    if (tensors->is_bf16) {
        return &bf16_kernels[tensors->in_is_bf16][tensors->residual_is_bf16][tensors->out_is_bf16];
    }
    if (tensors->are_halves) {
        return is_big ? &big_halves_kernel : &rt_gemm_halves_kernel;
    }
    return is_big ? &big_kernel : &rt_gemm_kernel;
}

enum status rt_gemm_emit(struct rt_emit *emit, struct rt_gemm *g,
                         const struct rt_gemm_tensors *tensors, struct error *err)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    if (g->images == 0 || g->y.out == 0 || g->x.out == 0 || g->outs == 0) {
        return ST_OK;
    }
    if (g->outs > INT32_MAX || g->channels > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld columns and %lld channels are too large",
                         (long long)g->outs, (long long)g->channels);
    }
    int64_t panels = uk_panels_f32(uk, (uint32_t)(g->outs / g->groups));
    g->padded_lines = 0;
    const struct hal_kernel *usual = tensors->is_bf16      ? &bf16_kernels[0][0][0]
                                     : tensors->are_halves ? &rt_gemm_halves_kernel
                                                           : &rt_gemm_kernel;
    int64_t cost = cut(g, uk, rt_emit_machine(emit, usual), tensors->is_bf16);
    g->width = uk->f32_nr;
    must(g->width % 8 == 0); /* shaders read eight columns at a time */
    size_t copy = tensors->is_bf16 ? uk_gemm_bf16_scratch(uk, (size_t)g->k) : 0;
    copy += padded_bytes(g, tensors->is_bf16);
    struct hal_binding bindings[] = {
        tensors->out, tensors->in, tensors->weights, tensors->bias, tensors->residual,
    };
    int64_t image_bands = ceil_div(g->images, g->band_images);
    if (image_bands * g->groups > UINT32_MAX || g->bands_y * g->bands_x > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld images are too many", (long long)g->images);
    }
    struct hal_dispatch dispatch = {
        .kernel = kernel_for(g, tensors),
        .grid = {(uint32_t)(g->bands_y * g->bands_x), (uint32_t)(image_bands * g->groups),
                 (uint32_t)ceil_div(panels, g->panels)},
        .constants = g,
        .constants_bytes = sizeof(*g),
        .bindings = bindings,
        .binding_count = 5,
        .scratch_bytes = segments_bytes(g) + copy,
        .cost = (uint64_t)cost,
        .macs = macs_of(g),
        .macs_kind = tensors->is_bf16 ? HAL_MACS_BF16 : HAL_MACS_F32,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- packing --------------------------------------------------------------------------------- */

#define PACK_PANELS 4 /* panels of a worker's tile */

/* Bindings: packed, source. Grid: blocks of panels, matrices. A packed number has |number_bytes|.
 */
static void pack_tile(const struct hal_args *args, struct hal_tile tile, size_t number_bytes)
{
    const struct rt_pack *p = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    bool is_odd = number_bytes == sizeof(uint16_t) && p->inner_count % 2;
    struct uk_pack_f32 call = {
        .src = (const float *)args->bindings[1] + tile.y * p->source,
        .column = p->column,
        .outer_stride = p->outer_stride,
        .inner_stride = p->inner_stride,
        .n = (uint32_t)p->n,
        .outer_count = (uint32_t)p->outer_count,
        .inner_count = (uint32_t)(p->inner_count + (is_odd ? 1 : 0)),
        .is_odd = is_odd,
        .packed = (uint8_t *)args->bindings[0] + tile.y * p->packed * (int64_t)number_bytes,
    };
    uint32_t panels = uk_panels_f32(uk, call.n), begin = tile.x * p->panels;
    uint32_t end = panels - begin < p->panels ? panels : begin + p->panels;
    if (number_bytes == sizeof(float)) {
        uk->pack_f32(&call, begin, end);
    } else {
        uk->pack_bf16(&call, begin, end);
    }
}

static void pack_cpu(const struct hal_args *args, struct hal_tile tile)
{
    pack_tile(args, tile, sizeof(float));
}

static void pack_bf16_cpu(const struct hal_args *args, struct hal_tile tile)
{
    pack_tile(args, tile, sizeof(uint16_t));
}

const struct hal_kernel rt_pack_kernel = {
    .name = "pack_f32", .cpu = pack_cpu, .spirv = HAL_SPIRV(pack_spirv)};

static const struct hal_kernel pack_bf16_kernel = {.name = "pack_bf16", .cpu = pack_bf16_cpu};

enum status rt_gemm_emit_pack(struct rt_emit *emit, struct rt_pack *pack, int64_t matrices,
                              struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    if (out->numel > 0 && (pack->n > INT32_MAX || pack->outer_count > INT32_MAX ||
                           pack->inner_count > INT32_MAX || matrices > INT32_MAX)) {
        return error_set(err, ST_TOO_LARGE, "%lld matrices of %lld columns are too large",
                         (long long)matrices, (long long)pack->n);
    }
    uint32_t panels = uk_panels_f32(hal_cpu_uk(), (uint32_t)pack->n);
    int64_t elements = pack->outer_count * pack->inner_count * hal_cpu_uk()->f32_nr;
    pack->width = hal_cpu_uk()->f32_nr;
    pack->panels = (uint32_t)rt_cut_block(rt_emit_machine(emit, &rt_pack_kernel), panels * matrices,
                                          elements, PACK_PANELS);
    struct hal_binding bindings[] = {out->binding, in->binding};
    struct hal_dispatch dispatch = {
        .kernel = out->dtype == DT_BF16 ? &pack_bf16_kernel : &rt_pack_kernel,
        .grid = {out->numel ? (uint32_t)ceil_div(panels, pack->panels) : 0, (uint32_t)matrices, 1},
        .constants = pack,
        .constants_bytes = sizeof(*pack),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)out->bytes / 4,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

void rt_gemm_packed_dims(struct rt_dims *dims, struct rt_dim matrices, struct rt_dim k,
                         struct rt_dim n, struct rt_dim out[4])
{
    struct rt_dim width = rt_dim_of(hal_cpu_uk()->f32_nr);
    out[0] = matrices;
    out[1] = rt_dim_ceildiv(dims, n, width);
    out[2] = k;
    out[3] = width;
}
