/* SPDX-License-Identifier: MIT */
/*
 * Convolutions. The file's form, of rank 3 ([N, C, L]) to 5, has no kernel. For 1-D and 2-D inputs
 * the lower pass replaces it with "conv" (also transposed and grouped), "conv_dw" (one channel a
 * group) or "conv_group" (a few channels a group) over packed f32 weights, all channels-last; for
 * all others with the operators of conv_direct.c.
 *
 * Shapes: torch.nn.functional.conv2d and conv_transpose2d.
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/gemm.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/conv.h"
#include "runtime/ops/depthwise.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* Real kernels are smaller, and a tile keeps a record for every tap. */
#define KERNEL_TAPS_MAX 16384

/* Larger strides, dilations and paddings are refused, so that a product of two stays far from
 * overflow. */
#define EXTENT_MAX (1 << 24)

/* A transposed convolution takes one dispatch for every phase of its strides. */
#define PHASES_MAX 4096

/* ---- the file's form ------------------------------------------------------------------------- */

/* Entry |axis| of a list with one entry for all axes, one for each axis, or (if |empty| is set)
 * none. */
static enum status list_entry(struct rt_shape_call *call, uint32_t index, uint8_t axes,
                              uint8_t axis, int64_t empty, int64_t *out_value)
{
    const struct rt_value *list = rt_shape_arg(call, index);
    if (list->count == 0 && empty >= 0) {
        *out_value = empty;
        return ST_OK;
    }
    if (list->count != 1 && list->count != axes) {
        return rt_shape_refuse(call, "argument %u has %u entries, expected %u", index, list->count,
                               axes);
    }
    struct rt_dim entry = list->ints[list->count == 1 ? 0 : axis];
    if (!rt_dim_is_const(entry) || entry.value < 0 || entry.value > EXTENT_MAX) {
        return rt_shape_refuse(call, "argument %u: entry %u is not in [0, %d]", index, axis,
                               EXTENT_MAX);
    }
    *out_value = entry.value;
    return ST_OK;
}

struct window {
    int64_t kernel, stride, padding, dilation, output_padding;
};

/* The positions of arguments, which the convolution and its gradients order differently. */
struct places {
    uint32_t x, w, stride, padding, dilation, transposed, output_padding, groups;
};

static const struct places forward = {
    .x = RT_CONV_X,
    .w = RT_CONV_W,
    .stride = RT_CONV_STRIDE,
    .padding = RT_CONV_PADDING,
    .dilation = RT_CONV_DILATION,
    .transposed = RT_CONV_TRANSPOSED,
    .output_padding = RT_CONV_OUTPUT_PADDING,
    .groups = RT_CONV_GROUPS,
};
static const struct places backward = {
    .x = RT_CONV_BACK_X,
    .w = RT_CONV_BACK_W,
    .stride = RT_CONV_BACK_STRIDE,
    .padding = RT_CONV_BACK_PADDING,
    .dilation = RT_CONV_BACK_DILATION,
    .transposed = RT_CONV_BACK_TRANSPOSED,
    .output_padding = RT_CONV_BACK_OUTPUT_PADDING,
    .groups = RT_CONV_BACK_GROUPS,
};

static enum status read_window(struct rt_shape_call *call, const struct places *at, uint8_t axes,
                               uint8_t axis, struct window *w)
{
    struct rt_dim kernel = rt_shape_arg(call, at->w)->dims[2 + axis];
    TRY(list_entry(call, at->stride, axes, axis, -1, &w->stride));
    TRY(list_entry(call, at->padding, axes, axis, -1, &w->padding));
    TRY(list_entry(call, at->dilation, axes, axis, -1, &w->dilation));
    TRY(list_entry(call, at->output_padding, axes, axis, 0, &w->output_padding));
    if (!rt_dim_is_const(kernel) || kernel.value < 1 || kernel.value > KERNEL_TAPS_MAX) {
        return rt_shape_refuse(call, "the kernel's size is not in [1, %d]", KERNEL_TAPS_MAX);
    }
    if (w->stride < 1 || w->dilation < 1) {
        return rt_shape_refuse(call, "stride %" PRId64 ", dilation %" PRId64 ", expected 1 or more",
                               w->stride, w->dilation);
    }
    w->kernel = kernel.value;
    return ST_OK;
}

static struct rt_dim out_extent(struct rt_dims *dims, struct rt_dim in, const struct window *w,
                                bool is_transposed)
{
    int64_t reach = w->dilation * (w->kernel - 1);
    if (is_transposed) {
        struct rt_dim span =
            rt_dim_mul(dims, rt_dim_sub(dims, in, rt_dim_of(1)), rt_dim_of(w->stride));
        return rt_dim_add(dims, span, rt_dim_of(reach - 2 * w->padding + w->output_padding + 1));
    }
    struct rt_dim room = rt_dim_add(dims, in, rt_dim_of(2 * w->padding - reach - 1));
    return rt_dim_add(dims, rt_dim_floordiv(dims, room, rt_dim_of(w->stride)), rt_dim_of(1));
}

/* Checks types, ranks and channels; |out_channels| receives the output's. */
static enum status check_channels(struct rt_shape_call *call, const struct places *at,
                                  struct rt_dim *out_channels)
{
    const struct rt_value *x = rt_shape_arg(call, at->x), *w = rt_shape_arg(call, at->w);
    bool is_transposed = rt_shape_arg(call, at->transposed)->b;
    struct rt_dims *dims = &call->graph->dims;
    int64_t groups = 1;
    TRY(rt_shape_need_dtype(call, at->x, RT_DTYPES_REAL & ~(1u << DT_U64)));
    TRY(rt_shape_need_dtype(call, at->w, 1u << x->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << x->dtype));
    if (x->rank < 3 || x->rank > 2 + RT_CONV_AXES_MAX || w->rank != x->rank) {
        return rt_shape_unsupported(
            call, "the input has rank %u and the weights rank %u, expected 3, 4 or 5 for both",
            x->rank, w->rank);
    }
    TRY(rt_shape_need_const(call, at->groups, &groups));
    if (!rt_dim_is_const(w->dims[0]) || !rt_dim_is_const(w->dims[1]) || groups < 1 ||
        w->dims[0].value % groups != 0) {
        return rt_shape_refuse(call, "the weights cannot be split into %" PRId64 " groups", groups);
    }
    struct rt_dim of_groups = rt_dim_mul(dims, w->dims[1], rt_dim_of(groups));
    *out_channels = is_transposed ? of_groups : w->dims[0];
    return rt_dim_require_equal(dims, x->dims[1], is_transposed ? w->dims[0] : of_groups,
                                "channels of the input (those of the weights times groups)",
                                call->err);
}

/* The dims of the convolution of x and w. */
static enum status find_output(struct rt_shape_call *call, const struct places *at,
                               struct rt_dim out[2 + RT_CONV_AXES_MAX])
{
    const struct rt_value *x = rt_shape_arg(call, at->x);
    bool is_transposed = rt_shape_arg(call, at->transposed)->b;
    struct rt_dims *dims = &call->graph->dims;
    int64_t taps = 1, phases = 1;
    TRY(check_channels(call, at, &out[1]));
    out[0] = x->dims[0];
    for (uint8_t i = 0; i + 2 < x->rank; i++) {
        struct window window;
        TRY(read_window(call, at, (uint8_t)(x->rank - 2), i, &window));
        taps *= window.kernel;
        phases *= window.stride;
        out[2 + i] = out_extent(dims, x->dims[2 + i], &window, is_transposed);
        if (out[2 + i].value < 0 || taps > KERNEL_TAPS_MAX) {
            return out[2 + i].value < 0
                       ? rt_shape_refuse(call, "the kernel is larger than the padded input")
                       : rt_shape_refuse(call, "%" PRId64 " taps, expected at most %d", taps,
                                         KERNEL_TAPS_MAX);
        }
        if (is_transposed && phases > PHASES_MAX) {
            return rt_shape_unsupported(call,
                                        "a transposed convolution with strides of product %" PRId64
                                        " is not supported",
                                        phases);
        }
    }
    return ST_OK;
}

static enum status convolution_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, RT_CONV_X),
                          *bias = rt_shape_arg(call, RT_CONV_BIAS);
    struct rt_dim out[2 + RT_CONV_AXES_MAX];
    TRY(find_output(call, &forward, out));
    TRY(rt_shape_need_dtype(call, RT_CONV_BIAS, 1u << x->dtype));
    if (bias->kind == RT_TENSOR) {
        if (bias->rank != 1) {
            return rt_shape_refuse(call, "the bias has rank %u, expected 1", bias->rank);
        }
        TRY(rt_dim_require_equal(&call->graph->dims, bias->dims[0], out[1],
                                 "elements of the bias (one for each output channel)", call->err));
    }
    return rt_shape_set_out(call, 0, x->rank, out);
}

/* Gradients for input, weights and bias have their dims, whatever the mask says. */
static enum status backward_shape(struct rt_shape_call *call)
{
    const struct rt_value *grad = rt_shape_arg(call, RT_CONV_BACK_GRAD);
    struct rt_dim out[2 + RT_CONV_AXES_MAX];
    TRY(find_output(call, &backward, out));
    TRY(rt_shape_need_dtype(call, RT_CONV_BACK_GRAD,
                            1u << rt_shape_arg(call, RT_CONV_BACK_X)->dtype));
    if (grad->rank != rt_shape_arg(call, RT_CONV_BACK_X)->rank) {
        return rt_shape_refuse(call, "the gradient has rank %u, expected that of the output",
                               grad->rank);
    }
    for (uint8_t d = 0; d < grad->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, grad->dims[d], out[d],
                                 "size of the gradient (must equal the output's)", call->err));
    }
    for (uint32_t i = 0; i < 3; i++) {
        TRY(rt_shape_need_out_dtype(call, i, 1u << grad->dtype));
    }
    TRY(rt_shape_set_out_like(call, 0, RT_CONV_BACK_X));
    TRY(rt_shape_set_out_like(call, 1, RT_CONV_BACK_W));
    return rt_shape_set_out(call, 2, 1, &out[1]);
}

/* ---- packed weights -------------------------------------------------------------------------- */

/* weights, groups, transposed -> [groups, panels, taps * channels of a group, width] */
static enum status pack_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, 0);
    int64_t groups = rt_shape_arg(call, 1)->i.value;
    bool is_transposed = rt_shape_arg(call, 2)->b;
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim k = is_transposed ? rt_dim_of(w->dims[0].value / groups) : w->dims[1];
    struct rt_dim n = is_transposed ? w->dims[1] : rt_dim_of(w->dims[0].value / groups);
    struct rt_dim out[4];
    for (uint8_t i = 2; i < w->rank; i++) {
        k = rt_dim_mul(dims, k, w->dims[i]);
    }
    rt_gemm_packed_dims(dims, rt_dim_of(groups), k, n, out);
    rt_node_out(call->graph, call->node, 0)->is_packed = true;
    return rt_shape_set_out(call, 0, 4, out);
}

static enum status pack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    int64_t groups = rt_emit_int(emit, 1), taps = w->dims[2] * (w->rank == 4 ? w->dims[3] : 1);
    bool is_transposed = rt_emit_value(emit, 2)->b;
    /* OIHW; transposed IOHW, where a group is a range of I. */
    int64_t inner = is_transposed ? w->dims[0] / groups : w->dims[1];
    struct rt_pack pack = {
        .column = is_transposed ? taps : w->dims[1] * taps,
        .outer_stride = 1,
        .inner_stride = is_transposed ? w->dims[1] * taps : taps,
        .n = is_transposed ? w->dims[1] : w->dims[0] / groups,
        .outer_count = taps,
        .inner_count = inner,
        .source = w->numel / groups,
        .packed = out->dims[1] * out->dims[2] * out->dims[3],
    };
    return rt_gemm_emit_pack(emit, &pack, groups, err);
}

/* ---- conv ------------------------------------------------------------------------------------ */

static struct window packed_window(const struct rt_value *const lists[5], uint8_t axis)
{
    return (struct window){
        .kernel = lists[0]->ints[axis].value,
        .stride = lists[1]->ints[axis].value,
        .padding = lists[2]->ints[axis].value,
        .dilation = lists[3]->ints[axis].value,
        .output_padding = lists[4]->ints[axis].value,
    };
}

static enum status packed_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, RT_PACKED_X), *lists[5];
    struct rt_dim out[4] = {x->dims[0], rt_shape_arg(call, RT_PACKED_OUTS)->i};
    for (uint32_t i = 0; i < 5; i++) {
        lists[i] = rt_shape_arg(call, RT_PACKED_KERNEL + i);
    }
    for (uint8_t i = 2; i < x->rank; i++) {
        struct window w = packed_window(lists, (uint8_t)(i + 2 - x->rank));
        out[i] = out_extent(&call->graph->dims, x->dims[i], &w,
                            rt_shape_arg(call, RT_PACKED_TRANSPOSED)->b);
    }
    return rt_shape_set_out(call, 0, x->rank, out);
}

/* Height and width of a channels-last tensor of rank 3 or 4. */
static void extents(const struct rt_tensor *t, int64_t *height, int64_t *width)
{
    *height = t->rank == 4 ? t->dims[2] : 1;
    *width = t->dims[t->rank - 1];
}

static struct window emit_window(struct rt_emit *emit, uint8_t axis)
{
    const struct rt_value *lists[5];
    for (uint32_t i = 0; i < 5; i++) {
        lists[i] = rt_emit_value(emit, RT_PACKED_KERNEL + i);
    }
    return packed_window(lists, axis);
}

static struct rt_axis direct_axis(const struct window *w, int64_t in, int64_t out)
{
    return (struct rt_axis){
        .out = out,
        .in = in,
        .step = w->stride,
        .taps = w->kernel,
        .first = -w->padding,
        .spread = w->dilation,
        .k_spread = 1,
    };
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/*
 * Output positions phase, phase + stride, ... of a transposed convolution are a plain convolution
 * of step 1. Output o takes tap t from input i where i * stride = o + padding - t * dilation. For
 * one phase these are every (stride / gcd)th tap, from the first that divides.
 */
static struct rt_axis phase_axis(const struct window *w, int64_t in, int64_t out, int64_t phase)
{
    int64_t every = w->stride / gcd(w->stride, w->dilation);
    int64_t base = phase + w->padding, first = 0;
    while (first < every && (base - first * w->dilation) % w->stride != 0) {
        first++;
    }
    bool is_empty = first == every || first >= w->kernel;
    return (struct rt_axis){
        .out = (out - phase + w->stride - 1) / w->stride,
        .in = in,
        .step = 1,
        .taps = is_empty ? 0 : (w->kernel - first + every - 1) / every,
        .first = is_empty ? 0 : (base - first * w->dilation) / w->stride,
        .spread = -(every * w->dilation / w->stride),
        .k_first = is_empty ? 0 : first,
        .k_spread = every,
    };
}

struct conv {
    struct rt_gemm gemm;
    struct rt_gemm_tensors tensors;
    struct window h, w;
    int64_t in_h, in_w, out_h, out_w;
};

static void describe(struct rt_emit *emit, struct conv *c)
{
    const struct rt_tensor *x = rt_emit_arg(emit, RT_PACKED_X), *b = rt_emit_arg(emit, RT_PACKED_W);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    const struct rt_tensor *bias = rt_emit_arg(emit, RT_PACKED_BIAS);
    const struct rt_tensor *residual = rt_emit_arg(emit, RT_PACKED_RESIDUAL);
    extents(x, &c->in_h, &c->in_w);
    extents(out, &c->out_h, &c->out_w);
    c->h = emit_window(emit, 0);
    c->w = emit_window(emit, 1);
    c->gemm = (struct rt_gemm){
        .images = x->dims[0],
        .groups = rt_emit_int(emit, RT_PACKED_GROUPS),
        .channels = x->dims[1],
        .outs = out->dims[1],
        .kernel_w = c->w.kernel,
        .k = b->dims[2],
        .image_in = c->in_h * c->in_w * x->dims[1],
        .image_out = c->out_h * c->out_w * out->pitch,
        .line_in = c->in_w * x->dims[1],
        .line_out = c->out_w * out->pitch,
        .pixel_out = out->pitch,
        .group_b = b->dims[1] * b->dims[2] * b->dims[3],
        .min = (float)rt_emit_number(emit, RT_PACKED_MIN),
        .max = (float)rt_emit_number(emit, RT_PACKED_MAX),
        .is_rounded = out->is_half,
        .activation = rt_activation_read(rt_emit_value(emit, RT_PACKED_ACTIVATION)),
    };
    c->tensors = (struct rt_gemm_tensors){
        .out = out->binding,
        .in = x->binding,
        .weights = b->binding,
        .bias = bias ? bias->binding : (struct hal_binding){0},
        .residual = residual ? residual->binding : (struct hal_binding){0},
        .are_halves = x->is_half && b->is_half,
        .is_bf16 = b->dtype == DT_BF16,
        .in_is_bf16 = x->dtype == DT_BF16,
        .residual_is_bf16 = residual && residual->dtype == DT_BF16,
        .out_is_bf16 = out->dtype == DT_BF16,
    };
}

static enum status emit_phases(struct rt_emit *emit, const struct conv *c, struct error *err)
{
    for (int64_t y = 0; y < c->h.stride && y < c->out_h; y++) {
        for (int64_t x = 0; x < c->w.stride && x < c->out_w; x++) {
            struct rt_gemm gemm = c->gemm;
            gemm.y = phase_axis(&c->h, c->in_h, c->out_h, y);
            gemm.x = phase_axis(&c->w, c->in_w, c->out_w, x);
            gemm.offset_out = y * c->gemm.line_out + x * c->gemm.pixel_out;
            gemm.line_out = c->h.stride * c->gemm.line_out;
            gemm.pixel_out = c->w.stride * c->gemm.pixel_out;
            TRY(rt_gemm_emit(emit, &gemm, &c->tensors, err));
        }
    }
    return ST_OK;
}

/* With one tap, no padding and step 1 the image becomes one line of pixels, which cuts into better
 * tiles. */
static bool is_flat(const struct conv *c)
{
    return c->h.kernel == 1 && c->w.kernel == 1 && c->h.stride == 1 && c->w.stride == 1 &&
           c->h.padding == 0 && c->w.padding == 0;
}

static enum status conv_emit(struct rt_emit *emit, struct error *err)
{
    struct conv c;
    describe(emit, &c);
    if (rt_emit_value(emit, RT_PACKED_TRANSPOSED)->b) {
        return emit_phases(emit, &c, err);
    }
    c.gemm.y = direct_axis(&c.h, c.in_h, c.out_h);
    c.gemm.x = direct_axis(&c.w, c.in_w, c.out_w);
    if (is_flat(&c)) {
        c.gemm.y.in = c.gemm.y.out = 1;
        c.gemm.x.in = c.gemm.x.out = c.in_h * c.in_w;
        c.gemm.line_in = c.gemm.image_in;
        c.gemm.line_out = c.gemm.image_out;
    }
    return rt_gemm_emit(emit, &c.gemm, &c.tensors, err);
}

/* ---- depthwise ------------------------------------------------------------------------------- */

/* Bindings: out, in, weights as [taps, channels], bias. */
static struct uk_dw_f32 depthwise_call(const struct rt_depthwise *d, const struct hal_args *args,
                                       struct hal_tile tile)
{
    uint32_t y = tile.x / d->bands_x * d->band_y, x = tile.x % d->bands_x * d->band_x;
    return (struct uk_dw_f32){
        .x = (const float *)args->bindings[1] + tile.y * d->image_in,
        .y = (float *)args->bindings[0] + tile.y * d->image_out + x * d->y_pixel,
        .w = args->bindings[2],
        .bias = args->bindings[3],
        .row_begin = y,
        .row_end = d->out_h - y < d->band_y ? d->out_h : y + d->band_y,
        .out_width = d->out_width - x < d->band_x ? d->out_width - x : d->band_x,
        .pad_left = (ptrdiff_t)d->pad_left - (ptrdiff_t)x * d->stride_w,
        .x_line = (ptrdiff_t)d->x_line,
        .x_pixel = (ptrdiff_t)d->channels,
        .y_line = (ptrdiff_t)d->y_line,
        .y_pixel = (ptrdiff_t)d->y_pixel,
        .channels = d->channels,
        .height = d->height,
        .width = d->width,
        .kernel_h = d->kernel_h,
        .kernel_w = d->kernel_w,
        .stride_h = d->stride_h,
        .stride_w = d->stride_w,
        .dilation_h = d->dilation_h,
        .dilation_w = d->dilation_w,
        .pad_top = d->pad_top,
        .min = d->min,
        .max = d->max,
    };
}

static void depthwise_cpu(const struct hal_args *args, struct hal_tile tile)
{
    struct uk_dw_f32 call = depthwise_call(args->constants, args, tile);
    uint64_t mode = uk_subnormals_drop();
    hal_cpu_uk()->dw_f32(&call);
    uk_subnormals_keep(mode);
}

/* Constants of the kernel for groups of a few channels. */
struct grouped {
    struct rt_depthwise d;
    uint32_t group; /* channels of one */
};

/* Bindings: out, in, weights as [kernel_h, group, kernel_w, channels], bias. */
static void grouped_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct grouped *g = args->constants;
    struct uk_dw_f32 call = depthwise_call(&g->d, args, tile);
    call.group = g->group;
    uint64_t mode = uk_subnormals_drop();
    hal_cpu_uk()->group_f32(&call);
    uk_subnormals_keep(mode);
}

static const struct hal_kernel depthwise_kernel = {
    .name = "depthwise_f32", .cpu = depthwise_cpu, .spirv = HAL_SPIRV(depthwise_spirv)};

static const struct hal_kernel grouped_kernel = {.name = "grouped_f32", .cpu = grouped_cpu};

/* Rough cost of depthwise rows. */
#define DEPTHWISE_MACS_PER_NS 20

static struct rt_depthwise describe_depthwise(const struct conv *c)
{
    return (struct rt_depthwise){
        .x_line = c->gemm.line_in,
        .y_line = c->gemm.line_out,
        .y_pixel = c->gemm.pixel_out,
        .channels = (uint32_t)c->gemm.channels,
        .height = (uint32_t)c->in_h,
        .width = (uint32_t)c->in_w,
        .out_width = (uint32_t)c->out_w,
        .kernel_h = (uint32_t)c->h.kernel,
        .kernel_w = (uint32_t)c->w.kernel,
        .stride_h = (uint32_t)c->h.stride,
        .stride_w = (uint32_t)c->w.stride,
        .dilation_h = (uint32_t)c->h.dilation,
        .dilation_w = (uint32_t)c->w.dilation,
        .pad_top = (uint32_t)c->h.padding,
        .pad_left = (uint32_t)c->w.padding,
        .min = c->gemm.min,
        .max = c->gemm.max,
        .image_in = c->gemm.image_in,
        .image_out = c->gemm.image_out,
        .out_h = (uint32_t)c->out_h,
    };
}

/* Groups of |group| channels. A depthwise kernel has only the first of the constants. */
static enum status emit_groups(struct rt_emit *emit, const struct hal_kernel *kernel, int64_t group,
                               struct error *err)
{
    struct conv c;
    describe(emit, &c);
    struct grouped g = {describe_depthwise(&c), (uint32_t)group};
    double row_ns = (double)c.out_w * (double)c.gemm.channels *
                    (double)(c.h.kernel * c.w.kernel * group) / DEPTHWISE_MACS_PER_NS;
    if (rt_emit_out(emit, 0)->numel == 0) {
        return ST_OK;
    }
    struct rt_cut_image image = {
        .images = c.gemm.images,
        .lines = c.out_h,
        .pixels = c.out_w,
        .channels = c.gemm.channels,
        .macs = c.h.kernel * c.w.kernel * group,
        .ns = (int64_t)(row_ns * (double)c.out_h * (double)c.gemm.images),
    };
    rt_cut_bands(rt_emit_machine(emit, kernel), &image);
    g.d.band_y = (uint32_t)image.band_y;
    g.d.band_x = (uint32_t)image.band_x;
    g.d.bands_x = (g.d.out_width - 1) / g.d.band_x + 1;
    struct hal_binding bindings[] = {c.tensors.out, c.tensors.in, c.tensors.weights,
                                     c.tensors.bias};
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {((g.d.out_h - 1) / g.d.band_y + 1) * g.d.bands_x, (uint32_t)c.gemm.images, 1},
        .constants = &g,
        .constants_bytes = kernel == &grouped_kernel ? sizeof(g) : sizeof(g.d),
        .bindings = bindings,
        .binding_count = 4,
        .cost = (uint64_t)image.ns,
        .macs = rt_cut_image_macs(&image),
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

static enum status depthwise_emit(struct rt_emit *emit, struct error *err)
{
    return emit_groups(emit, &depthwise_kernel, 1, err);
}

static enum status grouped_emit(struct rt_emit *emit, struct error *err)
{
    int64_t channels = rt_emit_out(emit, 0)->dims[1];
    return emit_groups(emit, &grouped_kernel, channels / rt_emit_int(emit, RT_PACKED_GROUPS), err);
}

#define SIGNATURE "TTT?T?LLLLLIIBFFZ?>T"

static const struct rt_epilogue conv_epilogue = {RT_PACKED_RESIDUAL, RT_PACKED_MIN, RT_PACKED_MAX,
                                                 true, RT_PACKED_ACTIVATION};
static const struct rt_epilogue depthwise_epilogue = {0, RT_PACKED_MIN, RT_PACKED_MAX, false, 0};

const struct rt_op rt_ops_conv[] = {
    {"convolution", "aten::convolution.out", "TTT?LLLBLI>T", convolution_shape, NULL, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_REAL & ~(1u << DT_U64),
     .becomes = "conv"},
    {"convolution_backward", "aten::convolution_backward.out", "TTTL?LLLBLIO>TTT", backward_shape,
     NULL, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL, .dtypes = RT_DTYPES_REAL & ~(1u << DT_U64),
     .becomes = "conv_gradient"},
    {"pack_conv", NULL, "TIB>T", pack_shape, pack_emit, RT_OP_MOVES, RT_LAYOUT_ROW_MAJOR, NULL,
     NULL, .dtypes = 1u << DT_F32, .runs = &rt_pack_kernel},
    {"conv", NULL, SIGNATURE, packed_shape, conv_emit, RT_OP_EPILOGUE | RT_OP_PARTS,
     RT_LAYOUT_CHANNELS_LAST, &conv_epilogue, rt_batch_each, .dtypes = 1u << DT_F32 | 1u << DT_BF16,
     .runs = &rt_gemm_kernel},
    {"conv_dw", NULL, SIGNATURE, packed_shape, depthwise_emit, RT_OP_EPILOGUE,
     RT_LAYOUT_CHANNELS_LAST, &depthwise_epilogue, rt_batch_each, .dtypes = 1u << DT_F32,
     .runs = &depthwise_kernel},
    {"conv_group", NULL, SIGNATURE, packed_shape, grouped_emit, RT_OP_EPILOGUE,
     RT_LAYOUT_CHANNELS_LAST, &depthwise_epilogue, rt_batch_each, .dtypes = 1u << DT_F32,
     .runs = &grouped_kernel},
    {0},
};
