/* SPDX-License-Identifier: MIT */
/*
 * Convolutions without packed weights, in float, double and 64-bit integers, of up to three spatial
 * dims: the cases outside the packed f32 kernels, and the gradients. Row-major tensors.
 *
 * An output line is the sum, over channels and taps, of input lines times a number; the compiler
 * vectorises the loop along a line. A tile is some lines; a tile of a gradient is some weights.
 */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/conv_direct.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define CLASS_DTYPES (1u << DT_F32 | 1u << DT_F64 | 1u << DT_I64)

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return -floor_div(-a, b);
}

/* The input position that output |at| reads for tap |k|; -1: the tap lies in the padding. */
static int64_t input_of(const struct rt_direct_axis *axis, bool is_transposed, int64_t at,
                        int64_t k)
{
    int64_t in = is_transposed ? at + axis->pad - k * axis->dilation
                               : at * axis->stride - axis->pad + k * axis->dilation;
    if (is_transposed) {
        if (in < 0 || in % axis->stride != 0) {
            return -1;
        }
        in /= axis->stride;
    }
    return in >= 0 && in < axis->in ? in : -1;
}

/*
 * Positions [first, behind) on the denser side of a line whose partners first * stride + shift, ...
 * fall into [0, size). For a convolution the partners are inputs of outputs, for a transposed one
 * outputs of inputs.
 */
struct overlap {
    int64_t first, behind, shift;
};

static struct overlap overlap_of(const struct rt_direct_axis *axis, bool is_transposed, int64_t k)
{
    int64_t size = is_transposed ? axis->out : axis->in;
    int64_t count = is_transposed ? axis->in : axis->out;
    int64_t shift = k * axis->dilation - axis->pad;
    return (struct overlap){
        .first = rt_max(0, ceil_div(-shift, axis->stride)),
        .behind = rt_min(count, floor_div(size - 1 - shift, axis->stride) + 1),
        .shift = shift,
    };
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Integers wrap around, so they are computed as unsigned. */
#define DEFINE_LINES(type, suffix)                                                                 \
    static void add_line_##suffix(type *restrict y, const type *restrict x, type w,                \
                                  const struct rt_direct_axis *axis, bool is_transposed,           \
                                  int64_t k)                                                       \
    {                                                                                              \
        struct overlap o = overlap_of(axis, is_transposed, k);                                     \
        int64_t stride = axis->stride;                                                             \
        if (is_transposed) {                                                                       \
            for (int64_t i = o.first; i < o.behind; i++) {                                         \
                y[i * stride + o.shift] += w * x[i];                                               \
            }                                                                                      \
        } else if (stride == 1) {                                                                  \
            for (int64_t i = o.first; i < o.behind; i++) {                                         \
                y[i] += w * x[i + o.shift];                                                        \
            }                                                                                      \
        } else {                                                                                   \
            for (int64_t i = o.first; i < o.behind; i++) {                                         \
                y[i] += w * x[i * stride + o.shift];                                               \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Adds all taps of one input channel: |x| is its plane, |w| its weights. */                   \
    static void add_channel_##suffix(const struct rt_direct_constants *c, type *y, const type *x,  \
                                     const type *w, int64_t at_z, int64_t at_y)                    \
    {                                                                                              \
        const struct rt_direct_axis *z = &c->axes[0], *v = &c->axes[1], *h = &c->axes[2];          \
        for (int64_t kz = 0; kz < z->kernel; kz++) {                                               \
            int64_t iz = input_of(z, c->is_transposed, at_z, kz);                                  \
            for (int64_t ky = 0; iz >= 0 && ky < v->kernel; ky++) {                                \
                int64_t iy = input_of(v, c->is_transposed, at_y, ky);                              \
                const type *taps = w + (kz * v->kernel + ky) * h->kernel;                          \
                for (int64_t kx = 0; iy >= 0 && kx < h->kernel; kx++) {                            \
                    add_line_##suffix(y, x + (iz * v->in + iy) * h->in, taps[kx], h,               \
                                      c->is_transposed, kx);                                       \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void lines_##suffix(const struct hal_args *args, struct hal_tile tile)                  \
    {                                                                                              \
        const struct rt_direct_constants *c = args->constants;                                     \
        const struct rt_direct_axis *v = &c->axes[1], *h = &c->axes[2];                            \
        int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->lines);              \
        const type *bias = args->bindings[3];                                                      \
        for (int64_t line = first; line < behind; line++) {                                        \
            int64_t at_y = line % v->out, at_z = line / v->out % c->axes[0].out;                   \
            int64_t plane = line / v->out / c->axes[0].out, o = plane % (c->groups * c->outs);     \
            int64_t group = o / c->outs, n = plane / (c->groups * c->outs);                        \
            type *y = (type *)args->bindings[0] + line * h->out;                                   \
            for (int64_t i = 0; i < h->out; i++) {                                                 \
                y[i] = bias ? bias[o] : 0;                                                         \
            }                                                                                      \
            for (int64_t i = 0; i < c->ins; i++) {                                                 \
                int64_t in = group * c->ins + i;                                                   \
                int64_t w = c->is_transposed ? in * c->outs + o % c->outs : o * c->ins + i;        \
                add_channel_##suffix(c, y,                                                         \
                                     (const type *)args->bindings[1] +                             \
                                         (n * c->groups * c->ins + in) * c->in_plane,              \
                                     (const type *)args->bindings[2] + w * c->taps, at_z, at_y);   \
            }                                                                                      \
        }                                                                                          \
    }
DEFINE_LINES(float, f32)
DEFINE_LINES(double, f64)
DEFINE_LINES(uint64_t, i64)

/* ---- gradients of weights -------------------------------------------------------------------- */

/* For one tap: the sum over all places of one image and one pair of channels. */
#define DEFINE_GRADIENT(type, sum_type, suffix)                                                    \
    static sum_type tap_##suffix(const struct rt_direct_constants *c, const type *out,             \
                                 const type *in, const int64_t k[RT_CONV_AXES_MAX])                \
    {                                                                                              \
        const struct rt_direct_axis *z = &c->axes[0], *v = &c->axes[1], *h = &c->axes[2];          \
        struct overlap o = overlap_of(h, false, k[2]);                                             \
        sum_type sum = 0;                                                                          \
        for (int64_t at_z = 0; at_z < z->out; at_z++) {                                            \
            int64_t iz = input_of(z, false, at_z, k[0]);                                           \
            for (int64_t at_y = 0; iz >= 0 && at_y < v->out; at_y++) {                             \
                int64_t iy = input_of(v, false, at_y, k[1]);                                       \
                const type *a = out + (at_z * v->out + at_y) * h->out;                             \
                const type *b = in + (iz * v->in + iy) * h->in + o.shift;                          \
                for (int64_t i = o.first; iy >= 0 && i < o.behind; i++) {                          \
                    sum += (sum_type)a[i] * (sum_type)b[i * h->stride];                            \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
        return sum;                                                                                \
    }                                                                                              \
                                                                                                   \
    static void gradient_##suffix(const struct hal_args *args, struct hal_tile tile)               \
    {                                                                                              \
        const struct rt_direct_constants *c = args->constants;                                     \
        int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->lines);              \
        for (int64_t w = first; w < behind; w++) {                                                 \
            int64_t tap = w % c->taps, i = w / c->taps % c->ins, o = w / c->taps / c->ins;         \
            int64_t in = o / c->outs * c->ins + i;                                                 \
            int64_t k[RT_CONV_AXES_MAX] = {tap / c->axes[2].kernel / c->axes[1].kernel,            \
                                           tap / c->axes[2].kernel % c->axes[1].kernel,            \
                                           tap % c->axes[2].kernel};                               \
            sum_type sum = 0;                                                                      \
            for (int64_t n = 0; n < c->images; n++) {                                              \
                sum += tap_##suffix(c,                                                             \
                                    (const type *)args->bindings[1] +                              \
                                        (n * c->groups * c->outs + o) * c->out_plane,              \
                                    (const type *)args->bindings[2] +                              \
                                        (n * c->groups * c->ins + in) * c->in_plane,               \
                                    k);                                                            \
            }                                                                                      \
            ((type *)args->bindings[0])[w] = (type)sum;                                            \
        }                                                                                          \
    }
DEFINE_GRADIENT(float, double, f32)
DEFINE_GRADIENT(double, double, f64)
DEFINE_GRADIENT(uint64_t, uint64_t, i64)

/* ---- the kernels, by class; doubles have no SPIR-V form -------------------------------------- */

#define SPIRV_FORM(which) .spirv = HAL_SPIRV(conv_direct_spirv), .variant = (which)

static const struct hal_kernel lines_kernels[] = {
    [RT_CLASS_F32] = {.name = "conv_direct_f32", .cpu = lines_f32, SPIRV_FORM(RT_DIRECT_LINES)},
    [RT_CLASS_F64] = {.name = "conv_direct_f64", .cpu = lines_f64},
    [RT_CLASS_I64] = {.name = "conv_direct_i64",
                      .cpu = lines_i64,
                      SPIRV_FORM(RT_DIRECT_LINES | RT_DIRECT_I64)},
};
static const struct hal_kernel gradient_kernels[] = {
    [RT_CLASS_F32] = {.name = "conv_gradient_f32",
                      .cpu = gradient_f32,
                      SPIRV_FORM(RT_DIRECT_GRADIENT)},
    [RT_CLASS_F64] = {.name = "conv_gradient_f64", .cpu = gradient_f64},
    [RT_CLASS_I64] = {.name = "conv_gradient_i64",
                      .cpu = gradient_i64,
                      SPIRV_FORM(RT_DIRECT_GRADIENT | RT_DIRECT_I64)},
};

/* ---- the operators --------------------------------------------------------------------------- */

/* Argument |index| lists the output's dims. The lower pass has computed them, so they are valid. */
static enum status set_listed(struct rt_shape_call *call, uint32_t index)
{
    const struct rt_value *list = rt_shape_arg(call, index);

    TRY(rt_shape_need_dtype(call, 1, 1u << rt_shape_arg(call, 0)->dtype));
    return rt_shape_set_out(call, 0, (uint8_t)list->count, list->ints);
}

static enum status direct_shape(struct rt_shape_call *call)
{
    return set_listed(call, 8);
}

static enum status gradient_shape(struct rt_shape_call *call)
{
    return set_listed(call, 6);
}

/* |lists|: the index of the first of the arguments stride, padding and dilation. */
static void read_axes(struct rt_emit *emit, uint32_t lists, const struct rt_tensor *in,
                      const struct rt_tensor *out, const struct rt_tensor *weights,
                      struct rt_direct_constants *c)
{
    uint32_t idle = RT_CONV_AXES_MAX + 2u - in->rank;

    c->taps = c->in_plane = c->out_plane = 1;
    for (uint32_t a = 0; a < RT_CONV_AXES_MAX; a++) {
        struct rt_direct_axis *axis = &c->axes[a];
        *axis = (struct rt_direct_axis){
            .in = a < idle ? 1 : in->dims[2 + a - idle],
            .out = a < idle ? 1 : out->dims[2 + a - idle],
            .kernel = a < idle ? 1 : weights->dims[2 + a - idle],
            .stride = rt_emit_ints(emit, lists, a),
            .pad = rt_emit_ints(emit, lists + 1, a),
            .dilation = rt_emit_ints(emit, lists + 2, a),
        };
        c->taps *= axis->kernel;
        c->in_plane *= axis->in;
        c->out_plane *= axis->out;
    }
}

/* Multiply-adds (|macs|) and outputs of a line. */
static enum status record(struct rt_emit *emit, struct rt_direct_constants *c, int64_t macs,
                          int64_t outputs, const struct hal_kernel *kernels,
                          const struct hal_binding bindings[4], struct error *err)
{
    if (c->lines == 0) {
        return ST_OK;
    }
    c->tile = rt_cut_things(rt_emit_machine(emit, &kernels[c->class]), RT_WORK_MACS, c->lines, macs,
                            outputs);
    return rt_emit_tiles(emit, c->lines, c->tile,
                         &(struct hal_dispatch){
                             .kernel = &kernels[c->class],
                             .constants = c,
                             .constants_bytes = sizeof(*c),
                             .bindings = bindings,
                             .binding_count = 4,
                             .cost = (uint64_t)(c->lines * macs) / 2,
                             .macs = (double)c->lines * (double)macs,
                         },
                         err);
}

/* x, weights, bias?, stride, padding, dilation, transposed, groups, dims of the output */
static enum status direct_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, 0), *w = rt_emit_arg(emit, 1);
    const struct rt_tensor *bias = rt_emit_arg(emit, 2), *out = rt_emit_out(emit, 0);
    int64_t groups = rt_emit_int(emit, 7);
    struct rt_direct_constants c = {
        .class = rt_convert_class(out->dtype),
        .is_transposed = rt_emit_value(emit, 6)->b,
        .ins = x->dims[1] / groups,
        .outs = out->dims[1] / groups,
        .groups = groups,
        .images = x->dims[0],
    };
    struct hal_binding bindings[] = {out->binding, x->binding, w->binding,
                                     bias ? bias->binding : (struct hal_binding){0}};

    read_axes(emit, 3, x, out, w, &c);
    int64_t line = c.axes[RT_CONV_AXES_MAX - 1].out;
    c.lines = line > 0 ? out->numel / line : 0;
    return record(emit, &c, line * c.taps * c.ins, line, lines_kernels, bindings, err);
}

/* The side with the outputs, the side with the inputs, stride, padding, dilation, groups, the
 * weights' dims */
static enum status gradient_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *grad = rt_emit_arg(emit, 0), *x = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t groups = rt_emit_int(emit, 5);
    struct rt_direct_constants c = {
        .class = rt_convert_class(out->dtype),
        .ins = x->dims[1] / groups,
        .outs = grad->dims[1] / groups,
        .groups = groups,
        .images = x->dims[0],
        .lines = out->numel,
    };
    struct hal_binding bindings[] = {out->binding, grad->binding, x->binding, {0}};

    read_axes(emit, 2, x, grad, out, &c);
    return record(emit, &c, c.images * c.out_plane, 1, gradient_kernels, bindings, err);
}

const struct rt_op rt_ops_conv_direct[] = {
    {.name = "conv_direct",
     .args = "TTT?LLLBIL>T",
     .shape = direct_shape,
     .emit = direct_emit,
     .layout = RT_LAYOUT_ROW_MAJOR,
     .batch = rt_batch_each,
     .dtypes = CLASS_DTYPES,
     .runs = &lines_kernels[RT_CLASS_F32]},
    {.name = "conv_gradient",
     .args = "TTLLLIL>T",
     .shape = gradient_shape,
     .emit = gradient_emit,
     .layout = RT_LAYOUT_ROW_MAJOR,
     .dtypes = CLASS_DTYPES,
     .runs = &gradient_kernels[RT_CLASS_F32]},
    {.name = NULL},
};
