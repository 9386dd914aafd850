/* SPDX-License-Identifier: MIT */
/*
 * Resampling of images: nearest and bilinear. The position of an output pixel in the input is
 * computed with PyTorch's arithmetic. With channels innermost a pixel is a run of floats. Planes of
 * floats are resampled line by line: the lines of the input first, then between them. Other element
 * types and orders go element by element in the class of their type.
 *
 * A tile is some rows of the output, of all channels or of one.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/op.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/resample.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/upsample.h"
#include "runtime/ops/view_priv.h"

#define OUT_MAX INT32_MAX

/* Constants for the kernels. Images of f64 are scaled in double; a shader, which has no doubles,
 * reads |c|. */
struct constants_f64 {
    struct rt_upsample_constants c;
    double h_scale, w_scale;
};

/* ---- nearest --------------------------------------------------------------------------------- */

static int64_t nearest(const struct rt_upsample_dim *dim, int64_t at)
{
    return rt_min((int64_t)floorf((float)at * dim->scale), dim->in - 1);
}

/* A pixel is moved as bytes, so this path serves every element type. */
static void upsample_nearest(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_upsample_constants *c = args->constants;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->images * c->h.out);
    int64_t width = (int64_t)dtype_bytes(c->dtype);

    for (int64_t r = first; r < behind; r++) {
        int64_t n = r / c->h.out, row = r % c->h.out;
        char *y = (char *)args->bindings[0] + (n * c->y.n + row * c->y.h) * width;
        const char *x =
            (const char *)args->bindings[1] + (n * c->x.n + nearest(&c->h, row) * c->x.h) * width;
        for (int64_t column = 0; column < c->w.out; column++) {
            rt_copy_run(y + column * c->y.w * width, c->y.c * width,
                        x + nearest(&c->w, column) * c->x.w * width, c->x.c * width, c->channels,
                        (uint32_t)width);
        }
    }
}

static const struct hal_kernel kernel_nearest = {.name = "upsample_nearest",
                                                 .cpu = upsample_nearest,
                                                 .spirv = HAL_SPIRV(upsample_spirv),
                                                 .variant = RT_UPSAMPLE_NEAREST};

/* ---- bilinear -------------------------------------------------------------------------------- */

/* Two neighbours and the weight of the second. */
struct blend {
    int64_t a, b;
    double weight;
};

static double source_f32(const struct rt_upsample_constants *c, const struct rt_upsample_dim *dim,
                         int64_t at)
{
    return c->align_corners ? (float)at * dim->scale
                            : fmaxf(0, ((float)at + 0.5f) * dim->scale - 0.5f);
}

static double source_f64(const struct rt_upsample_constants *c, const struct rt_upsample_dim *dim,
                         int64_t at)
{
    const struct constants_f64 *wide = (const struct constants_f64 *)c;
    double scale = dim == &c->h ? wide->h_scale : wide->w_scale;
    return c->align_corners ? (double)at * scale : fmax(0, ((double)at + 0.5) * scale - 0.5);
}

static struct blend blend_of(const struct rt_upsample_constants *c,
                             const struct rt_upsample_dim *dim, int64_t at)
{
    double source = c->dtype == DT_F64 ? source_f64(c, dim, at) : source_f32(c, dim, at);
    int64_t a = rt_min((int64_t)source, dim->in - 1);
    double weight = source - (double)a;
    return (struct blend){a, rt_min(a + 1, dim->in - 1), weight < 1 ? weight : 1};
}

typedef float f32x4 __attribute__((vector_size(16)));

static inline f32x4 load_f32x4(const float *x)
{
    f32x4 v;
    memcpy(&v, x, sizeof(v));
    return v;
}

/* y = (1 - h) * ((1 - w) * x00 + w * x01) + h * (..) for the four corners of one pixel. The
 * operations and their order are the same for four channels together and for one. */
static void blend_pixel_f32(float *y, const float *const x[4], float h, float w, int64_t channels)
{
    float w00 = (1 - h) * (1 - w), w01 = (1 - h) * w, w10 = h * (1 - w), w11 = h * w;
    const float *x00 = x[0], *x01 = x[1], *x10 = x[2], *x11 = x[3];
    int64_t i = 0;

    for (; i + 4 <= channels; i += 4) {
        f32x4 sum = w00 * load_f32x4(x00 + i) + w01 * load_f32x4(x01 + i) +
                    w10 * load_f32x4(x10 + i) + w11 * load_f32x4(x11 + i);
        memcpy(y + i, &sum, sizeof(sum));
    }
    for (; i < channels; i++) {
        y[i] = w00 * x00[i] + w01 * x01[i] + w10 * x10[i] + w11 * x11[i];
    }
}

static void blend_row_f32(const struct rt_upsample_constants *c, float *y, const float *upper,
                          const float *lower, float weight)
{
    for (int64_t column = 0; column < c->w.out; column++) {
        struct blend w = blend_of(c, &c->w, column);
        const float *corners[4] = {upper + w.a * c->x.w, upper + w.b * c->x.w, lower + w.a * c->x.w,
                                   lower + w.b * c->x.w};
        blend_pixel_f32(y + column * c->y.w, corners, weight, (float)w.weight, c->channels);
    }
}

static void bilinear_f32(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_upsample_constants *c = args->constants;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->images * c->h.out);

    for (int64_t r = first; r < behind; r++) {
        int64_t n = r / c->h.out, row = r % c->h.out;
        struct blend h = blend_of(c, &c->h, row);
        const float *x = (const float *)args->bindings[1] + n * c->x.n;
        float *y = (float *)args->bindings[0] + n * c->y.n + row * c->y.h;
        blend_row_f32(c, y, x + h.a * c->x.h, x + h.b * c->x.h, (float)h.weight);
    }
}

static const struct hal_kernel kernel_bilinear = {.name = "upsample_bilinear",
                                                  .cpu = bilinear_f32,
                                                  .spirv = HAL_SPIRV(upsample_spirv),
                                                  .variant = RT_UPSAMPLE_BILINEAR};

/* The columns of planes, and lines of the input that are as wide as the output. */
struct lines {
    const struct rt_upsample_constants *c;
    int32_t *a, *b;
    float *weights;
    float *upper, *lower;
    int64_t upper_at, lower_at; /* which lines they are, counted through all planes; -1: none */
};

#define PLANES_COLUMN_BYTES (2 * sizeof(int32_t) + 3 * sizeof(float))
#define PLANES_COLUMNS_MAX 100000 /* as many fit into scratch memory easily */

static struct lines begin_lines(const struct rt_upsample_constants *c, void *scratch)
{
    int64_t width = c->w.out;
    float *weights = scratch;
    int32_t *columns = (int32_t *)(void *)(weights + 3 * width);
    for (int64_t i = 0; i < width; i++) {
        struct blend w = blend_of(c, &c->w, i);
        columns[i] = (int32_t)w.a;
        columns[width + i] = (int32_t)w.b;
        weights[i] = (float)w.weight;
    }
    return (struct lines){
        c, columns, columns + width, weights, weights + width, weights + 2 * width, -1, -1};
}

static void resample_line(const struct lines *l, const float *x, float *to)
{
    for (int64_t i = 0; i < l->c->w.out; i++) {
        to[i] = (1 - l->weights[i]) * x[l->a[i]] + l->weights[i] * x[l->b[i]];
    }
}

/* Provides the lines |h| of |plane|. From one row to the next mostly one or none of them is new. */
static void move_lines(struct lines *l, const float *x, int64_t plane, const struct blend *h)
{
    int64_t a = plane * l->c->h.in + h->a, b = plane * l->c->h.in + h->b;
    if (l->upper_at != a && l->lower_at == a) {
        float *line = l->upper;
        l->upper = l->lower;
        l->lower = line;
        l->lower_at = l->upper_at;
        l->upper_at = a;
    }
    if (l->upper_at != a) {
        resample_line(l, x + h->a * l->c->x.h, l->upper);
        l->upper_at = a;
    }
    if (b != a && l->lower_at != b) {
        resample_line(l, x + h->b * l->c->x.h, l->lower);
        l->lower_at = b;
    }
}

static void bilinear_planes(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_upsample_constants *c = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t rows = c->images * c->channels * c->h.out;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, rows);
    struct lines l = begin_lines(c, args->scratch);

    for (int64_t r = first; r < behind; r++) {
        int64_t plane = r / c->h.out, row = r % c->h.out;
        int64_t n = plane / c->channels, channel = plane % c->channels;
        struct blend h = blend_of(c, &c->h, row);
        const float *x = (const float *)args->bindings[1] + n * c->x.n + channel * c->x.c;
        float *y = (float *)args->bindings[0] + n * c->y.n + channel * c->y.c + row * c->y.h;
        move_lines(&l, x, plane, &h);
        uk->scalar_f32[UK_MUL](y, l.upper, 1 - (float)h.weight, (size_t)c->w.out);
        uk->add_scaled_f32(y, y, h.a == h.b ? l.upper : l.lower, (float)h.weight, (size_t)c->w.out);
    }
}

static const struct hal_kernel kernel_planes = {.name = "upsample_bilinear_planes",
                                                .cpu = bilinear_planes};

/* One element at (h, w) of an image of any float type, in double. */
static double blend_element(const struct rt_upsample_constants *c, const char *x,
                            const struct blend *h, const struct blend *w)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype);
    int64_t at[4] = {h->a * c->x.h + w->a * c->x.w, h->a * c->x.h + w->b * c->x.w,
                     h->b * c->x.h + w->a * c->x.w, h->b * c->x.h + w->b * c->x.w};
    double corner[4];

    for (uint32_t i = 0; i < 4; i++) {
        rt_convert_load(c->dtype, RT_CLASS_F64)(&corner[i], x + at[i] * width, width, 1);
    }
    double upper = (1 - w->weight) * corner[0] + w->weight * corner[1];
    double lower = (1 - w->weight) * corner[2] + w->weight * corner[3];
    return (1 - h->weight) * upper + h->weight * lower;
}

static void bilinear_any(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_upsample_constants *c = args->constants;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->images * c->h.out);
    int64_t width = (int64_t)dtype_bytes(c->dtype);

    for (int64_t r = first; r < behind; r++) {
        int64_t n = r / c->h.out, row = r % c->h.out;
        struct blend h = blend_of(c, &c->h, row);
        char *y = (char *)args->bindings[0] + (n * c->y.n + row * c->y.h) * width;
        const char *x = (const char *)args->bindings[1] + n * c->x.n * width;
        for (int64_t i = 0; i < c->w.out * c->channels; i++) {
            int64_t column = i / c->channels, channel = i % c->channels;
            struct blend w = blend_of(c, &c->w, column);
            double value = blend_element(c, x + channel * c->x.c * width, &h, &w);
            rt_convert_store(RT_CLASS_F64, c->dtype)(
                y + (column * c->y.w + channel * c->y.c) * width, 0, &value, 1);
        }
    }
}

static const struct hal_kernel kernel_bilinear_f64 = {.name = "upsample_bilinear_elements",
                                                      .cpu = bilinear_any};
static const struct hal_kernel kernel_bilinear_any = {.name = "upsample_bilinear_elements",
                                                      .cpu = bilinear_any,
                                                      .spirv = HAL_SPIRV(upsample_spirv),
                                                      .variant = RT_UPSAMPLE_BILINEAR};

/* ---- shapes ---------------------------------------------------------------------------------- */

#define FRACTION_MAX 1024         /* largest divisor tried */
#define FRACTION_IN_MAX (1 << 16) /* pixels of a dim whose size varies */

/*
 * |factor| as a fraction multiplier / divisor that gives the same size for all inputs of at most
 * |most| pixels: for all n the integer |multiplier| * n / |divisor| equals the truncated product of
 * doubles.
 */
static bool find_fraction(double factor, int64_t most, int64_t *out_multiplier,
                          int64_t *out_divisor)
{
    for (int64_t divisor = 1; divisor <= FRACTION_MAX && most <= FRACTION_IN_MAX; divisor++) {
        int64_t multiplier = (int64_t)round(factor * (double)divisor), n = 1;
        while (n <= most && n * multiplier / divisor == (int64_t)((double)n * factor)) {
            n++;
        }
        if (n > most) {
            *out_multiplier = multiplier;
            *out_divisor = divisor;
            return true;
        }
    }
    return false;
}

/*
 * One of the two lists gives the size: either the sizes, or factors by which the input's sizes are
 * multiplied and then truncated to whole pixels. The factor of a dim that is still unknown must be
 * a fraction.
 */
static enum status out_size(struct rt_shape_call *call, uint32_t sizes, uint32_t factors,
                            uint32_t i, struct rt_dim *out_dim)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim in = self->dims[self->rank - 2 + i];

    if (!rt_shape_arg_is_none(call, sizes)) {
        *out_dim = rt_shape_arg(call, sizes)->ints[i];
        if (out_dim->value < 1 || out_dim->value > OUT_MAX) {
            return rt_shape_refuse(call, "an output size of %" PRId64 " is out of range",
                                   out_dim->value);
        }
        return ST_OK;
    }
    double factor = rt_shape_arg(call, factors)->floats[i];
    if (!(factor > 0) || factor > OUT_MAX || (double)in.value * factor > OUT_MAX) {
        return rt_shape_refuse(call, "a scale of %g for %" PRId64 " pixels is out of range", factor,
                               in.value);
    }
    if (rt_dim_is_const(in)) {
        *out_dim = rt_dim_of((int64_t)((double)in.value * factor));
        return ST_OK;
    }
    struct rt_dims *dims = &call->graph->dims;
    int64_t multiplier, divisor;
    if (!find_fraction(factor, in.value, &multiplier, &divisor)) {
        return rt_shape_unsupported(
            call, "a scale of %g for up to %" PRId64 " pixels is not a simple fraction", factor,
            in.value);
    }
    *out_dim = rt_dim_mul(dims, in, rt_dim_of(multiplier));
    *out_dim = rt_dim_floordiv(dims, *out_dim, rt_dim_of(divisor));
    return ST_OK;
}

static enum status upsample_shape(struct rt_shape_call *call, uint32_t sizes, uint32_t factors)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    bool has_sizes = !rt_shape_arg_is_none(call, sizes),
         has_factors = !rt_shape_arg_is_none(call, factors);
    struct rt_dim out[4];

    TRY(rt_view_same_dtype(call));
    if (self->rank != 4) {
        return rt_shape_refuse(call, "rank %u, expected 4", self->rank);
    }
    if (has_sizes == has_factors) {
        return rt_shape_refuse(call, "expected either sizes or scales, got %s",
                               has_sizes ? "both" : "neither");
    }
    if (rt_shape_arg(call, has_sizes ? sizes : factors)->count != 2) {
        return rt_shape_refuse(call, "%u sizes or scales, expected 2",
                               rt_shape_arg(call, has_sizes ? sizes : factors)->count);
    }
    out[0] = self->dims[0];
    out[1] = self->dims[1];
    TRY(out_size(call, sizes, factors, 0, &out[2]));
    TRY(out_size(call, sizes, factors, 1, &out[3]));
    return rt_shape_set_out(call, 0, 4, out);
}

static enum status nearest_shape(struct rt_shape_call *call)
{
    return upsample_shape(call, 1, 2);
}

static enum status bilinear_shape(struct rt_shape_call *call)
{
    return upsample_shape(call, 1, 3);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* A dim that keeps its size is left alone, and nearest pixels are doubled exactly, whatever the
 * factor. */
static double scale_of(const struct rt_emit *emit, uint32_t factors, uint32_t i,
                       const struct rt_upsample_dim *dim, bool is_nearest, bool align_corners)
{
    const struct rt_value *list = rt_emit_value(emit, factors);
    double scale;

    if (dim->in == dim->out || (is_nearest && dim->out == 2 * dim->in)) {
        scale = (double)dim->in / (double)dim->out;
    } else if (align_corners) {
        scale = dim->out > 1 ? (double)(dim->in - 1) / (double)(dim->out - 1) : 0;
    } else if (list->kind == RT_NONE) {
        scale = (double)dim->in / (double)dim->out;
    } else {
        scale = 1.0 / list->floats[i];
    }
    return scale;
}

/* Bilinear resampling of bytes. */
static enum status emit_bytes(struct rt_emit *emit, const struct constants_f64 *wide,
                              struct error *err)
{
    const struct rt_upsample_constants *c = &wide->c;
    struct rt_resample resample = {
        .align_corners = c->align_corners,
        .h = {.in = c->h.in, .out = c->h.out, .scale = wide->h_scale},
        .w = {.in = c->w.in, .out = c->w.out, .scale = wide->w_scale},
    };
    return rt_resample_emit_u8(emit, rt_emit_arg(emit, 0), rt_emit_out(emit, 0), &resample, err);
}

static enum status emit_upsample(struct rt_emit *emit, const struct hal_kernel *kernel,
                                 uint32_t factors, bool align_corners, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);

    if (out->numel == 0) {
        return ST_OK;
    }
    if (self->numel == 0) {
        return error_set(err, ST_INVALID, "the image has no pixels");
    }
    struct constants_f64 wide = {.c = {.dtype = self->dtype, .align_corners = align_corners}};
    struct rt_upsample_constants *c = &wide.c;
    c->images = self->dims[0];
    c->channels = self->dims[1];
    c->h = (struct rt_upsample_dim){.in = self->dims[2], .out = out->dims[2]};
    c->w = (struct rt_upsample_dim){.in = self->dims[3], .out = out->dims[3]};
    bool is_nearest = kernel == &kernel_nearest;
    wide.h_scale = scale_of(emit, factors, 0, &c->h, is_nearest, align_corners);
    wide.w_scale = scale_of(emit, factors, 1, &c->w, is_nearest, align_corners);
    c->h.scale = (float)wide.h_scale;
    c->w.scale = (float)wide.w_scale;
    c->x = rt_image_of(self);
    c->y = rt_image_of(out);
    if (!kernel) {
        return emit_bytes(emit, &wide, err);
    }
    bool is_of_planes = kernel == &kernel_planes;
    int64_t row = c->w.out * (is_of_planes ? 1 : c->channels);
    int64_t rows = c->images * c->h.out * (is_of_planes ? c->channels : 1);
    c->tile = rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_ELEMENTS, rows, row, row);
    return rt_emit_tiles(emit, rows, c->tile,
                         &(struct hal_dispatch){
                             .kernel = kernel,
                             .constants = &wide,
                             .constants_bytes = sizeof(wide),
                             .bindings = (struct hal_binding[]){out->binding, self->binding},
                             .binding_count = 2,
                             .scratch_bytes = is_of_planes ? (size_t)row * PLANES_COLUMN_BYTES : 0,
                             .cost = (uint64_t)out->numel,
                         },
                         err);
}

static enum status nearest_emit(struct rt_emit *emit, struct error *err)
{
    return emit_upsample(emit, &kernel_nearest, 2, false, err);
}

/* Are these floats, with the lines of each channel side by side? */
static bool has_planes(struct rt_emit *emit)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    return rt_emit_is_host(emit) && self->dtype == DT_F32 && self->strides[3] == 1 &&
           out->strides[3] == 1 && self->dims[3] <= INT32_MAX && out->dims[3] <= PLANES_COLUMNS_MAX;
}

static enum status bilinear_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    bool align_corners = rt_emit_value(emit, 2)->b;
    bool is_fast = self->dtype == DT_F32 && self->strides[1] == 1 && out->strides[1] == 1;
    const struct hal_kernel *kernel = is_fast                 ? &kernel_bilinear
                                      : has_planes(emit)      ? &kernel_planes
                                      : self->dtype == DT_F64 ? &kernel_bilinear_f64
                                      : self->dtype == DT_U8  ? NULL /* has a factor of its own */
                                                              : &kernel_bilinear_any;

    return emit_upsample(emit, kernel, 3, align_corners, err);
}

/* clang-format off */
const struct rt_op rt_ops_upsample[] = {
    {.name = "upsample_nearest2d", .kernels = "aten::upsample_nearest2d.vec_out",
     .args = "TL?D?>T", .shape = nearest_shape, .emit = nearest_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_ALL, .runs = &kernel_nearest},
    {.name = "upsample_bilinear2d", .kernels = "aten::upsample_bilinear2d.vec_out",
     .args = "TL?BD?>T", .shape = bilinear_shape, .emit = bilinear_emit,
     .layout = RT_LAYOUT_CHANNELS_INSIDE, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_FLOAT | 1u << DT_U8, .runs = &kernel_bilinear},
    {0},
};
/* clang-format on */
