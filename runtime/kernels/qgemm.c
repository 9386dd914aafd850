/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/kernels/qgemm.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/shaders/generated/spirv.h"
#include "runtime/kernels/turn.h"

/* Rough speed of one core: multiply-adds a nanosecond, and bytes of weights from memory a
 * nanosecond. */
#define MACS_PER_NS 200
#define BYTES_PER_NS 20

/* The copy of a tile's input stays in the second-level cache beside the weights. */
#define COPY_BYTES (256 * 1024)

/* ---- copies ---------------------------------------------------------------------------------- */

static void copy_pixels(const struct rt_qcopy *c, uint8_t *to, const uint8_t *from, int64_t count)
{
    if (c->bytes == c->pixel && c->bytes == c->to_pixel) {
        memcpy(to, from, (size_t)(count * c->bytes));
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        memcpy(to + i * c->to_pixel, from + i * c->pixel, (size_t)c->bytes);
    }
}

static void copy_part(const struct rt_qcopy *c, uint8_t *to)
{
    int64_t before = rt_min(rt_max(-c->x, 0), c->columns);
    int64_t end = rt_max(before, rt_min(c->width - c->x, c->columns));
    int64_t line_bytes = c->columns * c->to_pixel;
    for (int64_t i = 0; i < c->lines; i++, to += line_bytes) {
        int64_t y = c->y + i;
        if (y < 0 || y >= c->height) {
            memset(to, c->zero, (size_t)line_bytes);
            continue;
        }
        memset(to, c->zero, (size_t)(before * c->to_pixel));
        copy_pixels(c, to + before * c->to_pixel,
                    c->image + y * c->line + (c->x + before) * c->pixel, end - before);
        memset(to + end * c->to_pixel, c->zero, (size_t)((c->columns - end) * c->to_pixel));
    }
}

/* Blocks of |block| channels of the pixels of a run: |count| whole ones, and |rest| channels of one
 * more. Where these are constants, a block of a pixel is a load and a store. */
struct split {
    int64_t plane; /* bytes from one block's image to the next block's */
    int64_t count;
    size_t block, rest;
};

#define ALWAYS_INLINE static inline __attribute__((always_inline))

ALWAYS_INLINE void split_pixels(struct split s, uint8_t *to, const uint8_t *from, int64_t pixel,
                                int64_t pixels)
{
    for (int64_t i = 0; i < pixels; i++, to += s.block, from += pixel) {
#pragma GCC unroll 4
        for (int64_t b = 0; b < s.count; b++) {
            memcpy(to + b * s.plane, from + b * (int64_t)s.block, s.block);
        }
        if (s.rest > 0) {
            memcpy(to + s.count * s.plane, from + s.count * (int64_t)s.block, s.rest);
        }
    }
}

/* The same for blocks of four channels. Four of them of four pixels are a matrix of words. */
static void split_words(struct split s, uint8_t *to, const uint8_t *from, int64_t pixel,
                        int64_t pixels)
{
    const int64_t whole = pixels & ~INT64_C(3), fours = s.count & ~INT64_C(3);
    for (int64_t i = 0; i < whole; i += 4) {
        for (int64_t b = 0; b < fours; b += 4) {
            rt_turn_4x4((char *)to + b * s.plane + i * 4, s.plane,
                        (const char *)from + i * pixel + b * 4, pixel);
        }
    }
    if (fours < s.count || s.rest > 0) {
        struct split others = {s.plane, s.count - fours, 4, s.rest};
        split_pixels(others, to + fours * s.plane, from + fours * 4, pixel, whole);
    }
    split_pixels(s, to + whole * 4, from + whole * pixel, pixel, pixels - whole);
}

ALWAYS_INLINE void fill_pixels(struct split s, uint8_t *to, uint8_t zero, int64_t pixels)
{
    const int64_t blocks = s.count + (s.rest > 0);
    if (pixels != 1) {
        for (int64_t b = 0; b < blocks; b++) {
            memset(to + b * s.plane, zero, (size_t)pixels * s.block);
        }
        return;
    }
#pragma GCC unroll 4
    for (int64_t b = 0; b < blocks; b++) {
        memset(to + b * s.plane, zero, s.block);
    }
}

ALWAYS_INLINE void split_lines(const struct rt_qcopy *c, uint8_t *to, const struct split s)
{
    const int64_t before = rt_min(rt_max(-c->x, 0), c->columns);
    const int64_t end = rt_max(before, rt_min(c->width - c->x, c->columns));
    for (int64_t i = 0; i < c->lines; i++, to += c->columns * c->to_pixel) {
        int64_t y = c->y + i;
        if (y < 0 || y >= c->height) {
            fill_pixels(s, to, c->zero, c->columns);
            continue;
        }
        fill_pixels(s, to, c->zero, before);
        const uint8_t *from = c->image + y * c->line + (c->x + before) * c->pixel;
        if (s.block == 4) {
            split_words(s, to + before * 4, from, c->pixel, end - before);
        } else {
            split_pixels(s, to + before * c->to_pixel, from, c->pixel, end - before);
        }
        fill_pixels(s, to + end * c->to_pixel, c->zero, c->columns - end);
    }
}

void rt_qgemm_copy_planes(const struct rt_qcopy *c, uint8_t *to, int64_t plane)
{
    const size_t block = (size_t)c->to_pixel, rest = (size_t)(c->bytes % c->to_pixel);
    const int64_t count = c->bytes / c->to_pixel;
    if (block == 16 && count == 4 && rest == 0) {
        split_lines(c, to, (struct split){plane, 4, 16, 0});
    } else if (block == 16 && rest == 0) {
        split_lines(c, to, (struct split){plane, count, 16, 0});
    } else if (block == 8 && rest == 0) {
        split_lines(c, to, (struct split){plane, count, 8, 0});
    } else if (block == 4) {
        split_lines(c, to, (struct split){plane, count, 4, rest});
    } else {
        split_lines(c, to, (struct split){plane, count, block, rest});
    }
}

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Output positions of a tile. */
struct band {
    int64_t y, y_end, x, x_end;
};

/* The runs of a pixel; neighbouring pixels are |pixel|, lines |line| bytes apart. */
static uint32_t gather(const struct rt_qgemm *g, struct uk_segment *segments, int64_t pixel,
                       int64_t line, uint32_t *out_run)
{
    int64_t channels = g->channels / g->groups, taps = g->merges ? 1 : g->x.kernel;
    int64_t run = rt_qgemm_run(g->merges ? channels * g->x.kernel : channels, g->is_4bit);
    uint32_t count = 0;
    for (int64_t y = 0; y < g->y.kernel; y++) {
        for (int64_t x = 0; x < taps; x++) {
            segments[count] = (struct uk_segment){
                .a = y * g->y.dilation * line + x * g->x.dilation * pixel,
                .k = (size_t)(count * run),
            };
            count++;
        }
    }
    *out_run = (uint32_t)run;
    return count;
}

static int64_t copy_bytes(const struct rt_qgemm *g, int64_t lines, int64_t pixels)
{
    return rt_qaxis_reach(&g->y, lines) * rt_qaxis_reach(&g->x, pixels) * (g->channels / g->groups);
}

/* Points |call| to the band's input: the image itself, or a copy of it at |copy|. */
static void place_input(const struct rt_qgemm *g, const struct band *b, const uint8_t *image,
                        uint8_t *copy, struct uk_segment *segments, struct uk_gemm_u8 *call)
{
    int64_t channels = g->channels / g->groups, pixel = g->channels, line = g->x.in * g->channels;
    int64_t y = b->y * g->y.stride - g->y.padding, x = b->x * g->x.stride - g->x.padding;
    if (g->is_direct) {
        call->a = image + y * line + x * pixel;
    } else {
        struct rt_qcopy part = {
            .image = image,
            .height = g->y.in,
            .width = g->x.in,
            .line = line,
            .pixel = pixel,
            .bytes = channels,
            .y = y,
            .x = x,
            .lines = rt_qaxis_reach(&g->y, b->y_end - b->y),
            .columns = rt_qaxis_reach(&g->x, b->x_end - b->x),
            .to_pixel = channels,
            .zero = (uint8_t)g->x_zero,
        };
        copy_part(&part, copy);
        pixel = channels;
        line = part.columns * channels;
        call->a = copy;
    }
    call->a_line = g->y.stride * line;
    call->a_row = g->x.stride * pixel;
    call->segments = segments;
    call->segment_count = gather(g, segments, pixel, line, &call->run);
}

static size_t segments_bytes(const struct rt_qgemm *g)
{
    return align_up(
        (size_t)(g->y.kernel * (g->merges ? 1 : g->x.kernel)) * sizeof(struct uk_segment), 64);
}

/* Grid: bands, images * groups, blocks of panels. Bindings: enum rt_qgemm_binding. */
static void qgemm_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_qgemm *g = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t image = tile.y / g->groups, group = tile.y % g->groups;
    int64_t group_outs = g->outs / g->groups, column = (int64_t)tile.z * g->panels * uk->u8_nr;
    int64_t panel = group * uk_panels_u8(uk, (uint32_t)group_outs) + (int64_t)tile.z * g->panels;
    struct band b = {.y = tile.x / g->bands_x * g->band_y, .x = tile.x % g->bands_x * g->band_x};
    b.y_end = rt_min(b.y + g->band_y, g->y.out);
    b.x_end = rt_min(b.x + g->band_x, g->x.out);
    int64_t row = (image * g->y.out + b.y) * g->x.out + b.x;
    int64_t out = row * g->outs + group * group_outs + column;
    const float *group_scales = args->bindings[RT_QGEMM_GROUPS];
    const union uk_number *columns = args->bindings[RT_QGEMM_COLUMNS];
    const float *scales = args->bindings[RT_QGEMM_ROW_SCALES];
    const int32_t *zeros = args->bindings[RT_QGEMM_ROW_ZEROS];
    uint8_t *scratch = args->scratch;
    struct uk_gemm_u8 call = {
        .b = (const uint8_t *)args->bindings[RT_QGEMM_WEIGHTS] + panel * g->panel_bytes,
        .k = (size_t)g->k,
        .is_4bit = g->is_4bit,
        .is_sorted = !g->is_4bit && !g->group && g->panel_bytes > g->k * uk->u8_nr,
        .group = g->group,
        .has_short_scales = g->has_short_scales,
        .group_scales =
            group_scales && g->group ? group_scales + panel * (g->k / g->group) * uk->u8_nr : NULL,
        .columns = columns ? columns + panel * UK_COLUMN_ARRAYS * uk->u8_nr : NULL,
        .row_scales = scales ? scales + row : NULL,
        .row_zeros = zeros ? zeros + row : NULL,
        .rows_line = g->x.out,
        .c_u8 = g->is_f32 ? NULL : (uint8_t *)args->bindings[RT_QGEMM_OUT] + out,
        .c_f32 = g->is_f32 ? (float *)args->bindings[RT_QGEMM_OUT] + out : NULL,
        .c_line = g->x.out * g->outs,
        .c_row = g->outs,
        .lines = (uint32_t)(b.y_end - b.y),
        .m = (uint32_t)(b.x_end - b.x),
        .n = (uint32_t)rt_min(g->panels * uk->u8_nr, group_outs - column),
        .min = g->min,
        .max = g->max,
        .zero = g->zero,
        .scratch = scratch + segments_bytes(g),
    };
    const uint8_t *in = (const uint8_t *)args->bindings[RT_QGEMM_IN] +
                        image * g->y.in * g->x.in * g->channels + group * (g->channels / g->groups);
    uint8_t *copy =
        scratch + segments_bytes(g) + align_up(uk_gemm_u8_scratch(uk, (size_t)g->k), 64);
    place_input(g, &b, in, copy, (struct uk_segment *)(void *)scratch, &call);
    uk->gemm_u8(&call);
}

#define SPIRV_FORMS                                                                                \
    {                                                                                              \
        HAL_SPIRV_FORM(qgemm_matrices_spirv, HAL_GPU | HAL_MATRICES_S8),                           \
            HAL_SPIRV_FORM(qgemm_dots_spirv, HAL_GPU | HAL_DOTS),                                  \
            HAL_SPIRV_FORM(qgemm_gpu_spirv, HAL_GPU), HAL_SPIRV_FORM(qgemm_spirv, 0)               \
    }
const struct hal_kernel rt_qgemm_kernel = {
    .name = "gemm_u8", .cpu = qgemm_cpu, .spirv = SPIRV_FORMS, .variant = RT_QGEMM_PLAIN};
static const struct hal_kernel grouped_kernel = {
    .name = "gemm_u8", .cpu = qgemm_cpu, .spirv = SPIRV_FORMS, .variant = RT_QGEMM_GROUPED};

/* ---- recording ------------------------------------------------------------------------------- */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

static int64_t cost_ns(double pixels, double n, double k)
{
    double compute = pixels * n * k / (MACS_PER_NS * hal_cpu_uk()->u8_speed);
    double memory = n * k / BYTES_PER_NS;
    double ns = compute > memory ? compute : memory;
    return ns > 1e15 ? (int64_t)1e15 : (int64_t)ns + 1;
}

/* Chooses the tiles; returns the cost. A tile that copies its part of the input must have room for
 * it. */
static int64_t cut(struct rt_qgemm *g, const struct hal_cpu_uk *uk,
                   const struct rt_machine *machine)
{
    int64_t group_outs = g->outs / g->groups, parts = g->images * g->groups;
    int64_t ns = cost_ns((double)g->y.out * (double)g->x.out, (double)group_outs, (double)g->k);
    int64_t per_read = (int64_t)uk->f32_per_read * uk->u8_speed;
    double fresh = (double)g->y.stride * (double)g->x.stride * (double)(g->channels / g->groups);
    struct rt_cut cut = {.images = g->images,
                         .groups = g->groups,
                         .lines = g->y.out,
                         .pixels = g->x.out,
                         .panels = uk_panels_u8(uk, (uint32_t)group_outs),
                         .width = uk->u8_nr,
                         .rows = uk->u8_mr,
                         .per_read = per_read,
                         .per_input = rt_cut_reads(per_read, fresh, (double)g->k),
                         .ns = ns > INT64_MAX / parts ? INT64_MAX : ns * parts};
    rt_cut_product(machine, &cut);
    g->band_y = cut.band_y;
    g->band_x = cut.band_x;
    g->panels = cut.block;
    while (!g->is_direct && g->band_y > 1 && copy_bytes(g, g->band_y, g->band_x) > COPY_BYTES) {
        g->band_y = ceil_div(g->band_y, 2);
    }
    while (!g->is_direct && g->band_x > 1 && copy_bytes(g, g->band_y, g->band_x) > COPY_BYTES) {
        g->band_x = ceil_div(g->band_x, 2);
    }
    g->bands_y = ceil_div(g->y.out, g->band_y);
    g->bands_x = ceil_div(g->x.out, g->band_x);
    return cut.ns;
}

/* Multiply-adds, including those with padding. */
static double macs_of(const struct rt_qgemm *g)
{
    double pixels = (double)g->images * (double)g->y.out * (double)g->x.out;
    double taps = (double)g->y.kernel * (double)g->x.kernel;
    return pixels * (double)g->outs * taps * (double)g->channels / (double)g->groups;
}

static bool can_read_in_place(const struct rt_qgemm *g)
{
    int64_t channels = g->channels / g->groups, run = g->merges ? channels * g->x.kernel : channels;
    bool is_one_run = g->groups == 1 || !g->merges || g->x.kernel == 1;
    return g->y.padding == 0 && g->x.padding == 0 && is_one_run &&
           run == rt_qgemm_run(run, g->is_4bit);
}

enum status rt_qgemm_emit(struct rt_emit *emit, struct rt_qgemm *g,
                          const struct rt_qgemm_tensors *t, struct error *err)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    if (g->images == 0 || g->y.out == 0 || g->x.out == 0 || g->outs == 0) {
        return ST_OK;
    }
    if (g->outs > INT32_MAX || g->images * g->groups > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld columns and %lld images are too large",
                         (long long)g->outs, (long long)g->images);
    }
    g->width = uk->u8_nr;
    g->word = uk->u8_word;
    g->is_direct = can_read_in_place(g);
    const struct hal_kernel *kernel = g->group ? &grouped_kernel : &rt_qgemm_kernel;
    int64_t cost = cut(g, uk, rt_emit_machine(emit, kernel));
    size_t copy = g->is_direct ? 0 : (size_t)copy_bytes(g, g->band_y, g->band_x) + 64;
    struct hal_binding bindings[RT_QGEMM_BINDINGS] = {
        [RT_QGEMM_OUT] = t->out,
        [RT_QGEMM_IN] = t->in,
        [RT_QGEMM_WEIGHTS] = t->weights,
        [RT_QGEMM_COLUMNS] = t->columns,
        [RT_QGEMM_GROUPS] = t->group_scales,
        [RT_QGEMM_ROW_SCALES] = t->row_scales,
        [RT_QGEMM_ROW_ZEROS] = t->row_zeros,
    };
    int64_t bands = g->bands_y * g->bands_x;
    if (bands > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld bands are too many", (long long)bands);
    }
    int64_t panels = uk_panels_u8(uk, (uint32_t)(g->outs / g->groups));
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {(uint32_t)bands, (uint32_t)(g->images * g->groups),
                 (uint32_t)ceil_div(panels, g->panels)},
        .constants = g,
        .constants_bytes = sizeof(*g),
        .bindings = bindings,
        .binding_count = RT_QGEMM_BINDINGS,
        .scratch_bytes =
            segments_bytes(g) + align_up(uk_gemm_u8_scratch(uk, (size_t)g->k), 64) + copy,
        .cost = (uint64_t)cost,
        .macs = macs_of(g),
        .macs_kind = HAL_MACS_U8,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}
