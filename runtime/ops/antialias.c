/* SPDX-License-Identifier: MIT */
/*
 * Resampling of images with antialiasing: _upsample_bilinear2d_aa. The triangle filter is as wide
 * as the input pixels that one output pixel covers. Weights are normalised, so that a window that
 * the border cuts still averages. Arithmetic is in float, for doubles in double; resample.c
 * resamples bytes.
 *
 * A tile is some columns of one channel's image: the weights of a column serve all its rows.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <tgmath.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/antialias.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define SIZE_MAX_OUT INT32_MAX
#define SCRATCH_MAX ((int64_t)8 << 20) /* bytes for the taps of a row and a column */

/* The pixel that contains a place, from 0 to one past the last. */
static int64_t pixel_at(const struct rt_resample_dim *dim, double place)
{
    return rt_min((int64_t)fmin(fmax(place, 0), (double)dim->in), dim->in);
}

/* The window and the weights of output pixel |at|, and the largest weight. With |weights| NULL only
 * the window. */
#define DEFINE_TRIANGLE(type, suffix)                                                              \
    static type triangle_##suffix(const struct rt_resample_dim *dim, int64_t at, int64_t in)       \
    {                                                                                              \
        type scale = (type)dim->scale, center = scale * ((type)at + (type)0.5);                    \
        type inverse = scale >= 1 ? 1 / scale : 1;                                                 \
        type distance = fabs(((type)in - center + (type)0.5) * inverse);                           \
        return distance < 1 ? 1 - distance : 0;                                                    \
    }                                                                                              \
                                                                                                   \
    static struct rt_resample_window weigh_##suffix(const struct rt_resample_dim *dim, int64_t at, \
                                                    type *weights, type *out_largest)              \
    {                                                                                              \
        type support = (type)dim->support, center = (type)dim->scale * ((type)at + (type)0.5);     \
        type sum = 0, largest = 0;                                                                 \
        /* The caller may give a scale in front of the image's own. */                             \
        int64_t begin = rt_min(pixel_at(dim, center - support + (type)0.5), dim->in - 1);          \
        int64_t end = pixel_at(dim, center + support + (type)0.5);                                 \
        int64_t count = rt_max(1, rt_min(end - begin, dim->taps));                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            type weight = triangle_##suffix(dim, at, begin + i);                                   \
            sum += weight;                                                                         \
            largest = fmax(largest, weight);                                                       \
        }                                                                                          \
        sum = sum == 0 ? 1 : sum;                                                                  \
        for (int64_t i = 0; weights && i < count; i++) {                                           \
            weights[i] = triangle_##suffix(dim, at, begin + i) / sum;                              \
        }                                                                                          \
        *out_largest = largest / sum;                                                              \
        return (struct rt_resample_window){begin, count};                                          \
    }
DEFINE_TRIANGLE(float, f32)
DEFINE_TRIANGLE(double, f64)

struct rt_resample_window rt_antialias_triangle_f64(const struct rt_resample_dim *dim, int64_t at,
                                                    double *weights, double *out_largest)
{
    return weigh_f64(dim, at, weights, out_largest);
}

/* The kernel's scratch has three rows: weights of a column, weights of a row, one row of the
 * window. */
#define DEFINE_AA(type, suffix, class)                                                             \
    /* The filtered value of one output pixel; |x| is the channel's image. */                      \
    static type filter_##suffix(const struct rt_aa_constants *c, const char *x,                    \
                                struct rt_resample_window h, const type *rows,                     \
                                struct rt_resample_window w, const type *columns, type *values)    \
    {                                                                                              \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        type sum = 0;                                                                              \
        for (int64_t i = 0; i < h.count; i++) {                                                    \
            const char *row = x + ((h.begin + i) * c->x.h + w.begin * c->x.w) * width;             \
            type line = 0;                                                                         \
            rt_convert_load(c->dtype, class)(values, row, c->x.w * width, w.count);                \
            for (int64_t j = 0; j < w.count; j++) {                                                \
                line += columns[j] * values[j];                                                    \
            }                                                                                      \
            sum += rows[i] * line;                                                                 \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void aa_##suffix(const struct hal_args *args, struct hal_tile tile)                     \
    {                                                                                              \
        const struct rt_aa_constants *c = args->constants;                                         \
        int64_t width = (int64_t)dtype_bytes(c->dtype), n = tile.y / c->channels;                  \
        int64_t channel = tile.y % c->channels;                                                    \
        int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->w.out);              \
        const char *x = (const char *)args->bindings[1] + (n * c->x.n + channel * c->x.c) * width; \
        char *y = (char *)args->bindings[0] + (n * c->y.n + channel * c->y.c) * width;             \
        type *columns = args->scratch, *values = columns + c->w.taps;                              \
        type *rows = values + c->w.taps, largest;                                                  \
        for (int64_t at = first; at < behind; at++) {                                              \
            struct rt_resample_window w = weigh_##suffix(&c->w, at, columns, &largest);            \
            for (int64_t row = 0; row < c->h.out; row++) {                                         \
                struct rt_resample_window h = weigh_##suffix(&c->h, row, rows, &largest);          \
                type value = filter_##suffix(c, x, h, rows, w, columns, values);                   \
                rt_convert_store(class, c->dtype)(y + (row * c->y.h + at * c->y.w) * width, 0,     \
                                                  &value, 1);                                      \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_AA(float, f32, RT_CLASS_F32)
DEFINE_AA(double, f64, RT_CLASS_F64)

static const struct hal_kernel kernel_f32 = {
    .name = "upsample_aa_f32", .cpu = aa_f32, .spirv = HAL_SPIRV(antialias_spirv)};
static const struct hal_kernel kernel_f64 = {.name = "upsample_aa_f64", .cpu = aa_f64};

/* ---- the operator ---------------------------------------------------------------------------- */

static enum status aa_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *size = rt_shape_arg(call, 1);

    TRY(rt_shape_need_out_dtype(call, 0, 1u << self->dtype));
    if (self->rank != 4 || size->count != 2) {
        return rt_shape_refuse(call, "rank %u and %u output sizes, expected 4 and 2", self->rank,
                               size->count);
    }
    struct rt_dim out[4] = {self->dims[0], self->dims[1], size->ints[0], size->ints[1]};
    for (uint32_t i = 0; i < 2; i++) {
        if (out[2 + i].value < 1 || out[2 + i].value > SIZE_MAX_OUT) {
            return rt_shape_refuse(call, "output size %" PRId64 " is out of range",
                                   out[2 + i].value);
        }
    }
    return rt_shape_set_out(call, 0, 4, out);
}

static struct rt_resample_dim make_dim(struct rt_emit *emit, uint32_t factor, int64_t in,
                                       int64_t out)
{
    struct rt_resample_dim dim = {.in = in, .out = out, .scale = (double)in / (double)out};
    bool has_factor = rt_emit_value(emit, factor)->kind != RT_NONE;

    if (rt_emit_value(emit, 2)->b) {
        dim.scale = out > 1 ? (double)(in - 1) / (double)(out - 1) : 0;
    } else if (has_factor && rt_emit_number(emit, factor) > 0) {
        dim.scale = 1 / rt_emit_number(emit, factor);
    }
    dim.support = dim.scale >= 1 ? dim.scale : 1;
    dim.taps = dim.support < (double)in ? rt_min(in, 2 * (int64_t)ceil(dim.support) + 1) : in;
    return dim;
}

static enum status aa_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    bool is_double = self->dtype == DT_F64;

    if (out->numel == 0) {
        return ST_OK;
    }
    if (self->numel == 0) {
        return error_set(err, ST_INVALID,
                         "%s: the image of %" PRId64 " x %" PRId64 " pixels is empty",
                         rt_emit_op(emit)->name, self->dims[2], self->dims[3]);
    }
    struct rt_aa_constants c = {
        .dtype = self->dtype,
        .channels = self->dims[1],
        .h = make_dim(emit, 3, self->dims[2], out->dims[2]),
        .w = make_dim(emit, 4, self->dims[3], out->dims[3]),
        .x = rt_image_of(self),
        .y = rt_image_of(out),
    };
    if (self->dtype == DT_U8) {
        struct rt_resample resample = {.antialiases = true, .h = c.h, .w = c.w};
        return rt_resample_emit_u8(emit, self, out, &resample, err);
    }
    int64_t scratch = (2 * c.w.taps + c.h.taps) * (int64_t)(is_double ? 8 : 4);
    int64_t macs = c.h.out * c.h.taps * c.w.taps, images = self->dims[0] * c.channels;
    if (scratch > SCRATCH_MAX) {
        return error_set(err, ST_UNSUPPORTED,
                         "%s: windows of %" PRId64 " x %" PRId64 " pixels are too large",
                         rt_emit_op(emit)->name, c.h.taps, c.w.taps);
    }
    const struct hal_kernel *kernel = is_double ? &kernel_f64 : &kernel_f32;
    c.tile =
        rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_MACS, images * c.w.out, macs, c.h.out);
    must(images <= UINT32_MAX);
    return rt_emit_dispatch(
        emit,
        &(struct hal_dispatch){
            .kernel = kernel,
            .grid = {(uint32_t)((c.w.out - 1) / c.tile + 1), (uint32_t)images, 1},
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, self->binding},
            .binding_count = 2,
            .scratch_bytes = (size_t)scratch,
            .cost = (uint64_t)(images * c.w.out * macs),
        },
        err);
}

const struct rt_op rt_ops_antialias[] = {
    {.name = "upsample_bilinear2d_aa",
     .kernels = "aten::_upsample_bilinear2d_aa.out",
     .args = "TLBF?F?>T",
     .shape = aa_shape,
     .emit = aa_emit,
     .layout = RT_LAYOUT_ANY,
     .dtypes = RT_DTYPES_FLOAT | 1u << DT_U8,
     .runs = &kernel_f32},
    {.name = NULL},
};
