/* SPDX-License-Identifier: MIT */
/*
 * Images sampled at positions from a second tensor: grid_sampler_2d. A grid element is a position
 * in [-1, 1] x [-1, 1]. Each mode turns it into one, two or four neighbours on each axis and their
 * weights. A neighbour outside the image is 0 or is moved into the image, as the padding mode says.
 *
 * A tile is some pixels of one output image. Positions and weights are computed once for a block of
 * pixels and then serve all channels. A neighbour outside counts as 0 times its weight, so a
 * position that is NaN gives NaN, as in PyTorch.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <tgmath.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/sample.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define BLOCK 64 /* pixels whose neighbours are computed together */

/* ---- rounding ------------------------------------------------------------------------------- */

/* Halves are rounded after every operation, as PyTorch does: a position's error is multiplied by
 * the image's slope, so float arithmetic would give different results, not just more exact ones. */
static void round_all_half(const struct rt_sample_constants *c, float *x, int64_t n)
{
    uint16_t narrow[BLOCK];
    rt_convert_store(RT_CLASS_F32, c->dtype)((char *)narrow, sizeof(narrow[0]), x, n);
    rt_convert_load(c->dtype, RT_CLASS_F32)(x, (const char *)narrow, sizeof(narrow[0]), n);
}

static float round_half(const struct rt_sample_constants *c, float x)
{
    round_all_half(c, &x, 1);
    return x;
}

/* Floats and doubles stay as they are. */
#define ROUND_NOTHING(type, suffix)                                                                \
    static inline type round_##suffix(const struct rt_sample_constants *c, type x)                 \
    {                                                                                              \
        (void)c;                                                                                   \
        return x;                                                                                  \
    }                                                                                              \
                                                                                                   \
    static inline void round_all_##suffix(const struct rt_sample_constants *c, type *x, int64_t n) \
    {                                                                                              \
        (void)c;                                                                                   \
        (void)x;                                                                                   \
        (void)n;                                                                                   \
    }
ROUND_NOTHING(float, f32)
ROUND_NOTHING(double, f64)

/* ---- where a place is, for halves, floats and doubles ---------------------------------------- */

/* Position |at| on the axis, in pixels. The order of operations is PyTorch's, since one rounding
 * more or less can decide between two nearest neighbours. */
#define DEFINE_PLACES(type, suffix, R)                                                             \
    static type to_pixels_##suffix(const struct rt_sample_constants *c, int64_t size, type at)     \
    {                                                                                              \
        type half = R(c, (type)(c->align_corners ? size - 1 : size) / 2);                          \
        type pixels = R(c, R(c, at + 1) * half);                                                   \
        return c->align_corners ? pixels : R(c, pixels - (type)0.5);                               \
    }                                                                                              \
                                                                                                   \
    /* Reflects a position back and forth between the centres or the edges of the outermost        \
     * pixels. */                                                                                  \
    static type reflect_##suffix(const struct rt_sample_constants *c, int64_t size, type at)       \
    {                                                                                              \
        type low = c->align_corners ? 0 : (type)-0.5;                                              \
        type twice = R(c, (type)(2 * (c->align_corners ? size - 1 : size)));                       \
        if (twice == 0) {                                                                          \
            return 0;                                                                              \
        }                                                                                          \
        type distance = fabs(R(c, at - low));                                                      \
        type rest = R(c, distance - R(c, trunc(R(c, distance / twice)) * twice));                  \
        return R(c, fmin(rest, R(c, twice - rest)) + low);                                         \
    }                                                                                              \
                                                                                                   \
    /* Moves a position into the image according to the padding; NaN becomes 0. */                 \
    static type pad_##suffix(const struct rt_sample_constants *c, int64_t size, type at)           \
    {                                                                                              \
        if (c->padding == RT_SAMPLE_ZEROS) {                                                       \
            return at;                                                                             \
        }                                                                                          \
        if (c->padding == RT_SAMPLE_REFLECTION) {                                                  \
            at = reflect_##suffix(c, size, at);                                                    \
        }                                                                                          \
        return fmin(fmax(at, (type)0), (type)(size - 1));                                          \
    }                                                                                              \
                                                                                                   \
    /* Offset in elements of the pixel at an integer position; -1: outside. */                     \
    static int64_t offset_##suffix(const struct rt_sample_axis *axis, type at)                     \
    {                                                                                              \
        bool is_inside = (at >= 0) & (at < (type)axis->size); /* without a branch that may miss */ \
        return is_inside ? (int64_t)at * axis->stride : -1;                                        \
    }                                                                                              \
                                                                                                   \
    static type cubic_near_##suffix(const struct rt_sample_constants *c, type t)                   \
    {                                                                                              \
        type slope = R(c, R(c, (type)1.25 * t) - (type)2.25);                                      \
        return R(c, R(c, R(c, slope * t) * t) + 1);                                                \
    }                                                                                              \
                                                                                                   \
    static type cubic_far_##suffix(const struct rt_sample_constants *c, type t)                    \
    {                                                                                              \
        type slope = R(c, R(c, (type)-0.75 * t) + (type)3.75);                                     \
        return R(c, R(c, R(c, R(c, slope * t) - 6) * t) + 3);                                      \
    }                                                                                              \
                                                                                                   \
    /* Without a call of the library, which takes longer than all else. */                         \
    static type floor_##suffix(type at)                                                            \
    {                                                                                              \
        if (!(at > (type)INT32_MIN && at < (type)INT32_MAX)) {                                     \
            return (type)floor(at);                                                                \
        }                                                                                          \
        type whole = (type)(int32_t)at;                                                            \
        return whole == at ? at : whole > at ? whole - 1 : whole;                                  \
    }                                                                                              \
                                                                                                   \
    /* The neighbours of one position on the axis; returns their number. */                        \
    static int find_taps_##suffix(                                                                 \
        const struct rt_sample_constants *c, const struct rt_sample_axis *axis, type place,        \
        int64_t offsets[RT_SAMPLE_TAPS_MAX], type weights[RT_SAMPLE_TAPS_MAX])                     \
    {                                                                                              \
        type at = to_pixels_##suffix(c, axis->size, place);                                        \
        if (c->mode == RT_SAMPLE_BICUBIC) {                                                        \
            type low = floor_##suffix(at), t = R(c, at - low);                                     \
            for (int i = 0; i < 4; i++) {                                                          \
                type tap = pad_##suffix(c, axis->size, R(c, low + (type)(i - 1)));                 \
                offsets[i] = offset_##suffix(axis, tap);                                           \
            }                                                                                      \
            weights[0] = cubic_far_##suffix(c, R(c, t + 1));                                       \
            weights[1] = cubic_near_##suffix(c, t);                                                \
            weights[2] = cubic_near_##suffix(c, R(c, 1 - t));                                      \
            weights[3] = cubic_far_##suffix(c, R(c, 2 - t));                                       \
            return 4;                                                                              \
        }                                                                                          \
        at = pad_##suffix(c, axis->size, at);                                                      \
        if (c->mode == RT_SAMPLE_NEAREST) {                                                        \
            offsets[0] = offset_##suffix(axis, rint(at));                                          \
            weights[0] = 1;                                                                        \
            return 1;                                                                              \
        }                                                                                          \
        type low = floor_##suffix(at);                                                             \
        offsets[0] = offset_##suffix(axis, low);                                                   \
        offsets[1] = offset_##suffix(axis, R(c, low + 1));                                         \
        weights[1] = R(c, at - low);                                                               \
        weights[0] = R(c, 1 - weights[1]);                                                         \
        return 2;                                                                                  \
    }
DEFINE_PLACES(float, half, round_half)
DEFINE_PLACES(float, f32, round_f32)
DEFINE_PLACES(double, f64, round_f64)

/* ---- the kernel ----------------------------------------------------------------------------- */

/* The image's elements at |offsets|, 0 for those outside, as numbers of a class. */
static void gather(const char *image, const int64_t *offsets, int64_t n, enum dtype dtype,
                   enum rt_class class, void *out)
{
    uint64_t elements[BLOCK];

    switch (dtype_bytes(dtype)) {
    case 2:
        for (int64_t i = 0; i < n; i++) {
            ((uint16_t *)elements)[i] =
                offsets[i] < 0 ? 0 : ((const uint16_t *)(const void *)image)[offsets[i]];
        }
        break;
    case 4:
        for (int64_t i = 0; i < n; i++) {
            ((uint32_t *)elements)[i] =
                offsets[i] < 0 ? 0 : ((const uint32_t *)(const void *)image)[offsets[i]];
        }
        break;
    default:
        for (int64_t i = 0; i < n; i++) {
            elements[i] = offsets[i] < 0 ? 0 : ((const uint64_t *)(const void *)image)[offsets[i]];
        }
    }
    rt_convert_load(dtype, class)(out, (const char *)elements, (int64_t)dtype_bytes(dtype), n);
}

/* Pixels of one output image, with their grid. */
struct span_of_pixels {
    const char *image, *grid;
    char *out;
    int64_t first, n; /* at most BLOCK */
};

/* A pixel is a sum over the |rows| of its neighbours, each a sum over the |columns|. A bilinear
 * pixel has one such row of all four neighbours with the products of both axes' weights. */
#define DEFINE_SAMPLE(type, suffix, class)                                                         \
    struct taps_##suffix {                                                                         \
        int rows, columns;                                                                         \
        int64_t offsets[RT_SAMPLE_TAPS_MAX * RT_SAMPLE_TAPS_MAX][BLOCK];                           \
        type weights[RT_SAMPLE_TAPS_MAX][BLOCK]; /* arrays of one column */                        \
        type row_weights[RT_SAMPLE_TAPS_MAX][BLOCK];                                               \
    };                                                                                             \
                                                                                                   \
    static void weigh_##suffix(const struct rt_sample_constants *c, struct taps_##suffix *taps,    \
                               int64_t i, const type *wx, const type *wy)                          \
    {                                                                                              \
        for (int t = 0; t < taps->columns; t++) {                                                  \
            taps->weights[t][i] =                                                                  \
                taps->rows > 1 ? wx[t] : round_##suffix(c, wy[t / 2] * wx[t % 2]);                 \
        }                                                                                          \
        for (int t = 0; t < taps->rows; t++) {                                                     \
            taps->row_weights[t][i] = wy[t];                                                       \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Computes all neighbours of every pixel on both axes. */                                     \
    static void find_all_##suffix(const struct rt_sample_constants *c,                             \
                                  const struct span_of_pixels *s, struct taps_##suffix *taps)      \
    {                                                                                              \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        int64_t line = s->first / c->out_width, column = s->first % c->out_width;                  \
        rt_load_f *load = rt_convert_load(c->dtype, class);                                        \
        for (int64_t i = 0; i < s->n; i++) {                                                       \
            int64_t x[RT_SAMPLE_TAPS_MAX], y[RT_SAMPLE_TAPS_MAX];                                  \
            type wx[RT_SAMPLE_TAPS_MAX], wy[RT_SAMPLE_TAPS_MAX], place[2];                         \
            load(place, s->grid + width * (line * c->grid[1] + column * c->grid[2]),               \
                 width * c->grid[3], 2);                                                           \
            column = column + 1 < c->out_width ? column + 1 : 0;                                   \
            line += column == 0;                                                                   \
            int count = find_taps_##suffix(c, &c->x, place[0], x, wx);                             \
            find_taps_##suffix(c, &c->y, place[1], y, wy);                                         \
            for (int t = 0; t < count; t++) {                                                      \
                for (int u = 0; u < count; u++) {                                                  \
                    taps->offsets[t * count + u][i] = (y[t] | x[u]) < 0 ? -1 : y[t] + x[u];        \
                }                                                                                  \
            }                                                                                      \
            taps->rows = count == 4 ? 4 : 1;                                                       \
            taps->columns = count == 1 ? 1 : 4;                                                    \
            weigh_##suffix(c, taps, i, wx, wy);                                                    \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* sums += weights * values; the first call begins from 0. */                                  \
    static void accumulate_##suffix(const struct rt_sample_constants *c, type *sums,               \
                                    const type *weights, type *values, bool is_first, int64_t n)   \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            values[i] *= weights[i];                                                               \
        }                                                                                          \
        round_all_##suffix(c, values, n);                                                          \
        for (int64_t i = 0; i < n; i++) {                                                          \
            sums[i] = is_first ? values[i] : sums[i] + values[i];                                  \
        }                                                                                          \
        round_all_##suffix(c, sums, n);                                                            \
    }                                                                                              \
                                                                                                   \
    static void sample_##suffix(const struct rt_sample_constants *c,                               \
                                const struct span_of_pixels *s)                                    \
    {                                                                                              \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        struct taps_##suffix taps;                                                                 \
        type values[BLOCK], line[BLOCK], sums[BLOCK];                                              \
        find_all_##suffix(c, s, &taps);                                                            \
        for (int64_t channel = 0; channel < c->channels; channel++) {                              \
            const char *image = s->image + channel * c->channel * width;                           \
            for (int t = 0; t < taps.rows * taps.columns; t++) {                                   \
                int column = t % taps.columns, row = t / taps.columns;                             \
                gather(image, taps.offsets[t], s->n, c->dtype, class, values);                     \
                accumulate_##suffix(c, line, taps.weights[column], values, column == 0, s->n);     \
                if (taps.rows > 1 && column == taps.columns - 1) {                                 \
                    accumulate_##suffix(c, sums, taps.row_weights[row], line, row == 0, s->n);     \
                }                                                                                  \
            }                                                                                      \
            rt_convert_store(class, c->dtype)(s->out + (channel * c->pixels + s->first) * width,   \
                                              width, taps.rows > 1 ? sums : line, s->n);           \
        }                                                                                          \
    }
DEFINE_SAMPLE(float, half, RT_CLASS_F32)
DEFINE_SAMPLE(float, f32, RT_CLASS_F32)
DEFINE_SAMPLE(double, f64, RT_CLASS_F64)

/* Bindings: out, picture, grid. Tile y is the image. */
static void sample_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_sample_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype), n = tile.y;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->pixels);
    struct span_of_pixels s = {
        .image = (const char *)args->bindings[1] + n * c->image * width,
        .grid = (const char *)args->bindings[2] + n * c->grid[0] * width,
        .out = (char *)args->bindings[0] + n * c->channels * c->pixels * width,
    };

    for (s.first = first; s.first < behind; s.first += BLOCK) {
        s.n = rt_min(BLOCK, behind - s.first);
        if (c->dtype == DT_F64) {
            sample_f64(c, &s);
        } else if (c->dtype == DT_F32) {
            sample_f32(c, &s);
        } else {
            sample_half(c, &s);
        }
    }
}

static const struct hal_kernel kernel_sample = {
    .name = "grid_sampler", .cpu = sample_tile, .spirv = HAL_SPIRV(sample_spirv)};
static const struct hal_kernel kernel_f64 = {.name = "grid_sampler", .cpu = sample_tile};

/* ---- the operator --------------------------------------------------------------------------- */

static enum status need_code(struct rt_shape_call *call, uint32_t index, int64_t count)
{
    int64_t code;

    TRY(rt_shape_need_const(call, index, &code));
    return code >= 0 && code < count
               ? ST_OK
               : rt_shape_refuse(call, "argument %u is %" PRId64 ", expected 0 to %" PRId64, index,
                                 code, count - 1);
}

static enum status sample_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *grid = rt_shape_arg(call, 1);
    struct rt_dims *dims = &call->graph->dims;

    TRY(rt_shape_need_dtype(call, 1, 1u << self->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << self->dtype));
    TRY(need_code(call, 2, RT_SAMPLE_MODES));
    TRY(need_code(call, 3, RT_SAMPLE_PADDINGS));
    if (self->rank != 4 || grid->rank != 4) {
        return rt_shape_refuse(call, "an image of rank %u and a grid of rank %u, expected 4 and 4",
                               self->rank, grid->rank);
    }
    TRY(rt_dim_require_equal(dims, self->dims[0], grid->dims[0], "images (one for each grid)",
                             call->err));
    TRY(rt_dim_require_equal(dims, grid->dims[3], rt_dim_of(2), "coordinates of a position",
                             call->err));
    struct rt_dim out[4] = {self->dims[0], self->dims[1], grid->dims[1], grid->dims[2]};
    return rt_shape_set_out(call, 0, 4, out);
}

static enum status sample_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *grid = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct rt_sample_constants c = {
        .dtype = self->dtype,
        .mode = (enum rt_sample_mode)rt_emit_int(emit, 2),
        .padding = (enum rt_sample_padding)rt_emit_int(emit, 3),
        .align_corners = rt_emit_value(emit, 4)->b,
        .channels = self->dims[1],
        .pixels = out->dims[2] * out->dims[3],
        .out_width = out->dims[3],
        .x = {self->dims[3], self->strides[3]},
        .y = {self->dims[2], self->strides[2]},
        .image = self->strides[0],
        .channel = self->strides[1],
        .grid = {grid->strides[0], grid->strides[1], grid->strides[2], grid->strides[3]},
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    if (self->numel == 0) {
        return error_set(err, ST_INVALID,
                         "%s: the image of %" PRId64 " x %" PRId64 " pixels is empty",
                         rt_emit_op(emit)->name, self->dims[2], self->dims[3]);
    }
    const struct hal_kernel *kernel = self->dtype == DT_F64 ? &kernel_f64 : &kernel_sample;
    int64_t blocks = self->dims[0] * ((c.pixels - 1) / BLOCK + 1);
    c.tile = BLOCK * rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_EXP, blocks,
                                   BLOCK * c.channels, BLOCK * c.channels);
    int64_t tiles = (c.pixels - 1) / c.tile + 1;
    must(tiles <= UINT32_MAX && self->dims[0] <= UINT32_MAX);
    return rt_emit_dispatch(
        emit,
        &(struct hal_dispatch){
            .kernel = kernel,
            .grid = {(uint32_t)tiles, (uint32_t)self->dims[0], 1},
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, self->binding, grid->binding},
            .binding_count = 3,
            .cost = (uint64_t)out->numel * (c.mode == RT_SAMPLE_BICUBIC ? 16 : 4),
        },
        err);
}

const struct rt_op rt_ops_sample[] = {
    {.name = "grid_sampler_2d",
     .kernels = "aten::grid_sampler_2d.out",
     .args = "TTIIB>T",
     .shape = sample_shape,
     .emit = sample_emit,
     .batch = rt_batch_pair,
     .layout = RT_LAYOUT_ANY,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &kernel_sample},
    {.name = NULL},
};
