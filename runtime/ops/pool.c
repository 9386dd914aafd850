/* SPDX-License-Identifier: MIT */
/*
 * Pooling over windows of images: maximum, average, and adaptive pooling, whose windows follow from
 * the size of the output. A window is clipped to the image, so padding is never read; averages
 * count padding if the operator says so. A dilated window without any element gives -inf, or 0 for
 * integers.
 *
 * Images are walked by strides. With channels innermost, which the layout pass prefers, a pixel is
 * a run of floats (for maxima also of bytes or bfloat16 numbers) for the micro-kernels. Other
 * element types, and maxima with indices, go element by element in the class of their type. A tile
 * is some rows of the output.
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
#include "runtime/ops/op.h"
#include "runtime/ops/pool.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

#define TAPS_MAX (16 * 1024) /* larger windows count as this much work */

struct rt_pool_window rt_pool_window(enum rt_pool_mode mode, const struct rt_pool_dim *dim,
                                     int64_t at)
{
    if (rt_pool_is_adaptive(mode)) {
        int64_t begin = at * dim->in / dim->out;
        int64_t count = ((at + 1) * dim->in + dim->out - 1) / dim->out - begin;
        return (struct rt_pool_window){begin, count, count};
    }
    int64_t start = at * dim->stride - dim->pad;
    int64_t skipped = start < 0 ? (-start + dim->dilation - 1) / dim->dilation : 0;
    int64_t begin = start + skipped * dim->dilation;
    int64_t fitting = begin < dim->in ? (dim->in - 1 - begin) / dim->dilation + 1 : 0;
    int64_t count = rt_max(0, rt_min(dim->kernel - skipped, fitting));
    int64_t padded = rt_min(dim->kernel, dim->in + dim->pad - start);
    return (struct rt_pool_window){begin, count, padded};
}

/* Divisor for the sum of a window. */
static int64_t divisor_of(const struct rt_pool_constants *c, const struct rt_pool_window *h,
                          const struct rt_pool_window *w)
{
    if (c->divisor) {
        return c->divisor;
    }
    return c->counts_padding ? h->padded * w->padded : h->count * w->count;
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* One pixel, with channels innermost on both sides. */
static void pool_pixel_f32(const struct rt_pool_constants *c, const struct hal_cpu_uk *uk, float *y,
                           const float *x, const struct rt_pool_window *h,
                           const struct rt_pool_window *w)
{
    const struct uk_window_f32 window = {
        .x = x + h->begin * c->x.h + w->begin * c->x.w,
        .line = c->x.h * c->h.dilation,
        .row = c->x.w * c->w.dilation,
        .lines = (size_t)h->count,
        .rows = (size_t)w->count,
        .n = (size_t)c->channels,
    };
    if (rt_pool_is_max(c->mode)) {
        uk->window_max_f32(y, &window);
    } else {
        uk->window_sum_f32(y, &window);
        uk->scalar_f32[UK_DIV](y, y, (float)divisor_of(c, h, w), window.n);
    }
}

static void pool_pixel_u8(const struct rt_pool_constants *c, const struct hal_cpu_uk *uk,
                          uint8_t *y, const uint8_t *x, const struct rt_pool_window *h,
                          const struct rt_pool_window *w)
{
    const struct uk_window_u8 window = {
        .x = x + h->begin * c->x.h + w->begin * c->x.w,
        .line = c->x.h * c->h.dilation,
        .row = c->x.w * c->w.dilation,
        .lines = (size_t)h->count,
        .rows = (size_t)w->count,
        .n = (size_t)c->channels,
    };
    uk->window_max_u8(y, &window);
}

static void pool_pixel_bf16(const struct rt_pool_constants *c, const struct hal_cpu_uk *uk,
                            uint16_t *y, const uint16_t *x, const struct rt_pool_window *h,
                            const struct rt_pool_window *w)
{
    const struct uk_window_bf16 window = {
        .x = x + h->begin * c->x.h + w->begin * c->x.w,
        .line = c->x.h * c->h.dilation,
        .row = c->x.w * c->w.dilation,
        .lines = (size_t)h->count,
        .rows = (size_t)w->count,
        .n = (size_t)c->channels,
    };
    uk->window_max_bf16(y, &window);
}

static void pool_pixels(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_pool_constants *c = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t rows = c->images * c->h.out;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, rows);

    for (int64_t r = first; r < behind; r++) {
        int64_t n = r / c->h.out, row = r % c->h.out;
        struct rt_pool_window h = rt_pool_window(c->mode, &c->h, row);
        int64_t x = n * c->x.n, y = n * c->y.n + row * c->y.h;
        for (int64_t column = 0; column < c->w.out; column++, y += c->y.w) {
            struct rt_pool_window w = rt_pool_window(c->mode, &c->w, column);
            if (c->dtype == DT_U8) {
                pool_pixel_u8(c, uk, (uint8_t *)args->bindings[0] + y,
                              (const uint8_t *)args->bindings[1] + x, &h, &w);
            } else if (c->dtype == DT_BF16) {
                pool_pixel_bf16(c, uk, (uint16_t *)args->bindings[0] + y,
                                (const uint16_t *)args->bindings[1] + x, &h, &w);
            } else {
                pool_pixel_f32(c, uk, (float *)args->bindings[0] + y,
                               (const float *)args->bindings[1] + x, &h, &w);
            }
        }
    }
}

static const struct hal_kernel kernel_pixels = {
    .name = "pool", .cpu = pool_pixels, .spirv = HAL_SPIRV(pool_spirv), .variant = RT_POOL_PIXELS};

/* One channel's elements of a window: their positions and their class. */
struct scan {
    const struct rt_pool_constants *c;
    rt_load_f *load;
    const char *x; /* the channel's image */
    struct rt_pool_window h, w;
};

/* Maximum and its position h * W + w: a NaN wins, the first of equals stays. Average: the sum in
 * the class, divided as PyTorch divides it, for integers towards zero. */
#define DEFINE_SCAN(suffix, type, lowest, is_nan, plus, over)                                      \
    static type scan_max_##suffix(const struct scan *s, int64_t *out_place)                        \
    {                                                                                              \
        const struct rt_pool_constants *c = s->c;                                                  \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        type best = lowest, value;                                                                 \
        *out_place = s->h.begin * c->w.in + s->w.begin;                                            \
        for (int64_t i = 0; i < s->h.count; i++) {                                                 \
            int64_t h = s->h.begin + i * c->h.dilation;                                            \
            for (int64_t j = 0; j < s->w.count; j++) {                                             \
                int64_t w = s->w.begin + j * c->w.dilation;                                        \
                s->load(&value, s->x + (h * c->x.h + w * c->x.w) * width, width, 1);               \
                if (value > best || is_nan(value)) {                                               \
                    best = value;                                                                  \
                    *out_place = h * c->w.in + w;                                                  \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return best;                                                                               \
    }                                                                                              \
    static type scan_average_##suffix(const struct scan *s)                                        \
    {                                                                                              \
        const struct rt_pool_constants *c = s->c;                                                  \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        type sum = 0, value;                                                                       \
        for (int64_t i = 0; i < s->h.count; i++) {                                                 \
            int64_t h = s->h.begin + i * c->h.dilation;                                            \
            for (int64_t j = 0; j < s->w.count; j++) {                                             \
                int64_t w = s->w.begin + j * c->w.dilation;                                        \
                s->load(&value, s->x + (h * c->x.h + w * c->x.w) * width, width, 1);               \
                sum = plus(sum, value);                                                            \
            }                                                                                      \
        }                                                                                          \
        return over(sum, (type)divisor_of(c, &s->h, &s->w));                                       \
    }

#define NEVER(value) false
#define PLUS(a, b) ((a) + (b))
#define OVER(a, b) ((a) / (b))
#define WRAPPED_PLUS(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b)))
#define WRAPPED_OVER(a, b) ((b) == -1 ? (int64_t)(0 - (uint64_t)(a)) : (a) / (b))
DEFINE_SCAN(f32, float, -INFINITY, isnan, PLUS, OVER)
DEFINE_SCAN(f64, double, -INFINITY, isnan, PLUS, OVER)
DEFINE_SCAN(i64, int64_t, INT64_MIN, NEVER, WRAPPED_PLUS, WRAPPED_OVER)

/* One element of the output, and its index if indices are wanted. */
static void pool_element(const struct scan *s, char *y, int64_t *index)
{
    enum rt_class class = rt_convert_class(s->c->dtype);
    bool is_max = rt_pool_is_max(s->c->mode);
    int64_t place = 0;
    union {
        float f32;
        double f64;
        int64_t i64;
    } value;

    if (class == RT_CLASS_F32) {
        value.f32 = is_max ? scan_max_f32(s, &place) : scan_average_f32(s);
    } else if (class == RT_CLASS_F64) {
        value.f64 = is_max ? scan_max_f64(s, &place) : scan_average_f64(s);
    } else {
        value.i64 = is_max ? scan_max_i64(s, &place) : scan_average_i64(s);
    }
    rt_convert_store(class, s->c->dtype)(y, 0, &value, 1);
    if (index) {
        *index = place;
    }
}

static void pool_any(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_pool_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype);
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->images * c->h.out);
    struct scan s = {.c = c, .load = rt_convert_load(c->dtype, rt_convert_class(c->dtype))};

    for (int64_t r = first; r < behind; r++) {
        int64_t n = r / c->h.out, row = r % c->h.out;
        s.h = rt_pool_window(c->mode, &c->h, row);
        for (int64_t column = 0; column < c->w.out; column++) {
            s.w = rt_pool_window(c->mode, &c->w, column);
            for (int64_t channel = 0; channel < c->channels; channel++) {
                int64_t y = n * c->y.n + channel * c->y.c + row * c->y.h + column * c->y.w;
                int64_t i = n * c->indices.n + channel * c->indices.c + row * c->indices.h +
                            column * c->indices.w;
                s.x = (const char *)args->bindings[1] + (n * c->x.n + channel * c->x.c) * width;
                pool_element(&s, (char *)args->bindings[0] + y * width,
                             args->bindings[2] ? (int64_t *)args->bindings[2] + i : NULL);
            }
        }
    }
}

static const struct hal_kernel kernel_any = {.name = "pool_elements",
                                             .cpu = pool_any,
                                             .spirv = HAL_SPIRV(pool_spirv),
                                             .variant = RT_POOL_ELEMENTS};
static const struct hal_kernel kernel_bf16 = {.name = "pool", .cpu = pool_pixels};
static const struct hal_kernel kernel_f64 = {.name = "pool_elements", .cpu = pool_any};

/* ---- shapes ---------------------------------------------------------------------------------- */

enum status rt_pool_need_list(struct rt_shape_call *call, uint32_t index, uint32_t axes,
                              int64_t least, int64_t *out_items)
{
    const struct rt_value *list = rt_shape_arg(call, index);

    if (list->count > 1 && list->count != axes) {
        return rt_shape_refuse(call, "argument %u has %u numbers, expected %u", index, list->count,
                               axes);
    }
    for (uint32_t i = 0; list->count > 0 && i < axes; i++) {
        struct rt_dim item = list->ints[list->count == 1 ? 0 : i];
        if (!rt_dim_is_const(item)) {
            return rt_shape_unsupported(call, "argument %u must not depend on the inputs' dims",
                                        index);
        }
        if (item.value < least || item.value > INT32_MAX) {
            return rt_shape_refuse(call, "argument %u is %" PRId64 ", expected %" PRId64 " or more",
                                   index, item.value, least);
        }
        out_items[i] = item.value;
    }
    return ST_OK;
}

enum status rt_pool_need_lists(struct rt_shape_call *call, uint32_t axes, uint32_t dilation,
                               struct rt_pool_lists *lists)
{
    *lists = (struct rt_pool_lists){.dilation = {1, 1, 1}};
    if (rt_shape_arg(call, 1)->count == 0) {
        return rt_shape_refuse(call, "the kernel size is missing");
    }
    TRY(rt_pool_need_list(call, 1, axes, 1, lists->kernel));
    memcpy(lists->stride, lists->kernel, sizeof(lists->stride));
    TRY(rt_pool_need_list(call, 2, axes, 1, lists->stride));
    TRY(rt_pool_need_list(call, 3, axes, 0, lists->pad));
    return dilation ? rt_pool_need_list(call, dilation, axes, 1, lists->dilation) : ST_OK;
}

enum status rt_pool_need_divisor(struct rt_shape_call *call, uint32_t index)
{
    int64_t divisor = 1;

    if (!rt_shape_arg_is_none(call, index)) {
        TRY(rt_shape_need_const(call, index, &divisor));
    }
    return divisor == 0 ? rt_shape_refuse(call, "the divisor is 0") : ST_OK;
}

static enum status need_image(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    TRY(rt_view_same_dtype(call));
    if (self->rank != 3 && self->rank != 4) {
        return rt_shape_refuse(call, "rank %u, expected 3 or 4", self->rank);
    }
    return ST_OK;
}

enum status rt_pool_count(struct rt_shape_call *call, const struct rt_pool_lists *p, uint32_t axes,
                          uint32_t i, bool ceil, struct rt_dim *out_count)
{
    struct rt_dims *dims = &call->graph->dims;
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim in = self->dims[self->rank - axes + i], stride = rt_dim_of(p->stride[i]);
    int64_t reach = p->dilation[i] * (p->kernel[i] - 1) + 1;

    if (p->pad[i] > reach / 2) {
        return rt_shape_refuse(
            call, "pad %" PRId64 ", expected at most half of the window's size %" PRId64, p->pad[i],
            reach);
    }
    struct rt_dim room = rt_dim_add(dims, in, rt_dim_of(2 * p->pad[i] - reach));
    struct rt_dim steps =
        ceil ? rt_dim_ceildiv(dims, room, stride) : rt_dim_floordiv(dims, room, stride);
    struct rt_dim count = rt_dim_add(dims, steps, rt_dim_of(1));
    if (ceil) {
        struct rt_dim begun = rt_dim_add(dims, in, rt_dim_of(p->pad[i]));
        count = rt_dim_min(dims, count, rt_dim_ceildiv(dims, begun, stride));
    }
    if (count.value < 1) {
        return rt_shape_refuse(call, "windows of %" PRId64 " do not fit the image", reach);
    }
    *out_count = count;
    return ST_OK;
}

static enum status set_image(struct rt_shape_call *call, uint32_t index, struct rt_dim height,
                             struct rt_dim width)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[4];

    for (uint8_t d = 0; d < self->rank - 2; d++) {
        out[d] = self->dims[d];
    }
    out[self->rank - 2] = height;
    out[self->rank - 1] = width;
    return rt_shape_set_out(call, index, self->rank, out);
}

static enum status max_pool_shape(struct rt_shape_call *call)
{
    struct rt_pool_lists p;
    struct rt_dim height, width;
    bool ceil = rt_shape_arg(call, 5)->b;

    TRY(need_image(call));
    TRY(rt_pool_need_lists(call, 2, 4, &p));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(rt_pool_count(call, &p, 2, 0, ceil, &height));
    TRY(rt_pool_count(call, &p, 2, 1, ceil, &width));
    TRY(set_image(call, 0, height, width));
    return set_image(call, 1, height, width);
}

static enum status avg_pool_shape(struct rt_shape_call *call)
{
    struct rt_pool_lists p;
    struct rt_dim height, width;
    bool ceil = rt_shape_arg(call, 4)->b;

    TRY(need_image(call));
    TRY(rt_pool_need_lists(call, 2, 0, &p));
    TRY(rt_pool_need_divisor(call, 6));
    TRY(rt_pool_count(call, &p, 2, 0, ceil, &height));
    TRY(rt_pool_count(call, &p, 2, 1, ceil, &width));
    return set_image(call, 0, height, width);
}

static enum status adaptive_sizes(struct rt_shape_call *call, int64_t size[2])
{
    TRY(need_image(call));
    if (rt_shape_arg(call, 1)->count != 2) {
        return rt_shape_refuse(call, "%u output sizes, expected 2", rt_shape_arg(call, 1)->count);
    }
    return rt_pool_need_list(call, 1, 2, 0, size);
}

static enum status adaptive_shape(struct rt_shape_call *call)
{
    int64_t size[2];

    TRY(adaptive_sizes(call, size));
    return set_image(call, 0, rt_dim_of(size[0]), rt_dim_of(size[1]));
}

static enum status adaptive_max_shape(struct rt_shape_call *call)
{
    int64_t size[2];

    TRY(adaptive_sizes(call, size));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(set_image(call, 0, rt_dim_of(size[0]), rt_dim_of(size[1])));
    return set_image(call, 1, rt_dim_of(size[0]), rt_dim_of(size[1]));
}

/* ---- recording ------------------------------------------------------------------------------- */

/* Entry |i| of a list that the shape function has accepted. */
static int64_t list_item(const struct rt_emit *emit, uint32_t index, uint32_t i, int64_t otherwise)
{
    uint32_t count = rt_emit_value(emit, index)->count;
    return count ? rt_emit_ints(emit, index, count == 1 ? 0 : i) : otherwise;
}

void rt_pool_read_window(const struct rt_emit *emit, struct rt_pool_dim *dim, uint32_t axis,
                         uint32_t dilation)
{
    dim->kernel = list_item(emit, 1, axis, 1);
    dim->stride = list_item(emit, 2, axis, dim->kernel);
    dim->pad = list_item(emit, 3, axis, 0);
    dim->dilation = dilation ? list_item(emit, dilation, axis, 1) : 1;
}

static enum status emit_pool(struct rt_emit *emit, struct rt_pool_constants *c,
                             const struct rt_tensor *indices, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[3] = {out->binding, self->binding};
    uint8_t h = self->rank - 2, w = self->rank - 1;

    if (out->numel == 0) {
        return ST_OK;
    }
    c->dtype = self->dtype;
    c->images = rt_image_count(self);
    c->channels = self->dims[h - 1];
    c->h.in = self->dims[h];
    c->w.in = self->dims[w];
    c->h.out = out->dims[h];
    c->w.out = out->dims[w];
    if (c->h.in == 0 || c->w.in == 0) {
        return error_set(err, ST_INVALID,
                         "the image has %" PRId64 " x %" PRId64 " pixels, expected at least 1",
                         c->h.in, c->w.in);
    }
    c->x = rt_image_of(self);
    c->y = rt_image_of(out);
    if (indices) {
        c->indices = rt_image_of(indices);
        bindings[2] = indices->binding;
    }
    int64_t taps = rt_pool_is_adaptive(c->mode)
                       ? (c->h.in / c->h.out + 1) * (c->w.in / c->w.out + 1)
                       : c->h.kernel * c->w.kernel;
    int64_t row = rt_max(1, c->w.out * c->channels * rt_min(taps, TAPS_MAX));
    int64_t rows = c->images * c->h.out;
    bool is_pixels = c->channels == 1 || (c->x.c == 1 && c->y.c == 1);
    bool is_bf16 = c->dtype == DT_BF16 && hal_cpu_uk()->window_max_bf16 && rt_emit_is_host(emit);
    bool is_fast =
        (c->dtype == DT_F32 || ((c->dtype == DT_U8 || is_bf16) && rt_pool_is_max(c->mode))) &&
        !indices && is_pixels;
    const struct hal_kernel *kernel = is_fast && is_bf16   ? &kernel_bf16
                                      : is_fast            ? &kernel_pixels
                                      : c->dtype == DT_F64 ? &kernel_f64
                                                           : &kernel_any;
    c->tile =
        rt_cut_things(rt_emit_machine(emit, kernel), is_fast ? RT_WORK_MACS : RT_WORK_ELEMENTS,
                      rows, row, c->w.out * c->channels);
    return rt_emit_tiles(emit, rows, c->tile,
                         &(struct hal_dispatch){
                             .kernel = kernel,
                             .constants = c,
                             .constants_bytes = sizeof(*c),
                             .bindings = bindings,
                             .binding_count = 3,
                             .cost = (uint64_t)(rows * row) / (is_fast ? 4 : 1),
                         },
                         err);
}

static enum status max_pool_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_pool_constants c = {.mode = RT_POOL_MAX};

    rt_pool_read_window(emit, &c.h, 0, 4);
    rt_pool_read_window(emit, &c.w, 1, 4);
    return emit_pool(emit, &c, rt_emit_out(emit, 1), err);
}

static enum status avg_pool_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_pool_constants c = {.mode = RT_POOL_AVERAGE,
                                  .counts_padding = rt_emit_value(emit, 5)->b};

    rt_pool_read_window(emit, &c.h, 0, 0);
    rt_pool_read_window(emit, &c.w, 1, 0);
    if (rt_emit_value(emit, 6)->kind != RT_NONE) {
        c.divisor = rt_emit_int(emit, 6);
    }
    return emit_pool(emit, &c, NULL, err);
}

static enum status adaptive_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_pool_constants c = {.mode = RT_POOL_ADAPTIVE, .h.dilation = 1, .w.dilation = 1};
    return emit_pool(emit, &c, NULL, err);
}

static enum status adaptive_max_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_pool_constants c = {.mode = RT_POOL_ADAPTIVE_MAX, .h.dilation = 1, .w.dilation = 1};
    return emit_pool(emit, &c, rt_emit_out(emit, 1), err);
}

/* clang-format off */
const struct rt_op rt_ops_pool[] = {
    {.name = "max_pool2d", .kernels = "aten::max_pool2d_with_indices.out",
     .args = "TLLLLB>TT", .shape = max_pool_shape, .emit = max_pool_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel_pixels},
    {.name = "avg_pool2d", .kernels = "aten::avg_pool2d.out",
     .args = "TLLLBBI?>T", .shape = avg_pool_shape, .emit = avg_pool_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel_pixels},
    {.name = "adaptive_avg_pool2d", .kernels = "aten::_adaptive_avg_pool2d.out",
     .args = "TL>T", .shape = adaptive_shape, .emit = adaptive_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel_pixels},
    {.name = "adaptive_max_pool2d", .kernels = "aten::adaptive_max_pool2d.out",
     .args = "TL>TT", .shape = adaptive_max_shape, .emit = adaptive_max_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST, .batch = rt_batch_each,
     .dtypes = RT_DTYPES_REAL, .runs = &kernel_pixels},
    {0},
};
/* clang-format on */
