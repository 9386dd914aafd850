/* SPDX-License-Identifier: MIT */
/*
 * Products and convolutions of 8-bit integers. Activations are u8 here (an i8 tensor becomes one by
 * adding 128); results are floats or u8 with a scale of their own. qweights.c packs weights and
 * columns.
 *
 * Only the quantize pass makes these nodes, and only for constant weights.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/qgemm.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

static struct hal_binding optional_binding(const struct rt_tensor *t)
{
    return t ? t->binding : (struct hal_binding){0};
}

/* ---- linear ---------------------------------------------------------------------------------- */

/* x [.., k], packed weights, columns? and scales of groups? (none: in the weights), scales and zero
 * points of rows?, n, 4 bits?, group (0: none), do the weights have bfloat16 scales in them?, zero
 * point of the output, bounds before it is added */
enum {
    LINEAR_X,
    LINEAR_W,
    LINEAR_COLUMNS,
    LINEAR_GROUP_SCALES,
    LINEAR_ROW_SCALES,
    LINEAR_ROW_ZEROS,
    LINEAR_N,
    LINEAR_IS_4BIT,
    LINEAR_GROUP,
    LINEAR_HAS_SHORT_SCALES,
    LINEAR_ZERO,
    LINEAR_MIN,
    LINEAR_MAX
};

static enum status linear_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, LINEAR_X);
    struct rt_dim out[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i + 1 < x->rank; i++) {
        out[i] = x->dims[i];
    }
    out[x->rank - 1] = rt_shape_arg(call, LINEAR_N)->i;
    return rt_shape_set_out(call, 0, x->rank, out);
}

static enum status linear_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, LINEAR_X), *w = rt_emit_arg(emit, LINEAR_W);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t k = x->dims[x->rank - 1], n = rt_emit_int(emit, LINEAR_N);
    int64_t m = n > 0 ? out->numel / n : 0;
    bool is_4bit = rt_emit_value(emit, LINEAR_IS_4BIT)->b;
    struct rt_qgemm gemm = {
        .y = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1},
        .x = {.in = m, .out = m, .kernel = 1, .stride = 1, .dilation = 1},
        .images = 1,
        .groups = 1,
        .channels = k,
        .outs = n,
        .k = rt_qgemm_run(k, is_4bit),
        .panel_bytes = w->dims[2],
        .merges = true,
        .is_4bit = is_4bit,
        .is_f32 = out->dtype == DT_F32,
        .group = (uint32_t)rt_emit_int(emit, LINEAR_GROUP),
        .has_short_scales = rt_emit_value(emit, LINEAR_HAS_SHORT_SCALES)->b,
        .zero = (int32_t)rt_emit_int(emit, LINEAR_ZERO),
        .min = (float)rt_emit_number(emit, LINEAR_MIN),
        .max = (float)rt_emit_number(emit, LINEAR_MAX),
    };
    struct rt_qgemm_tensors tensors = {
        .out = out->binding,
        .in = x->binding,
        .weights = w->binding,
        .columns = optional_binding(rt_emit_arg(emit, LINEAR_COLUMNS)),
        .group_scales = optional_binding(rt_emit_arg(emit, LINEAR_GROUP_SCALES)),
        .row_scales = optional_binding(rt_emit_arg(emit, LINEAR_ROW_SCALES)),
        .row_zeros = optional_binding(rt_emit_arg(emit, LINEAR_ROW_ZEROS)),
    };
    return rt_qgemm_emit(emit, &gemm, &tensors, err);
}

/* ---- convolutions ---------------------------------------------------------------------------- */

/*
 * x, packed weights, columns, kernel, stride, padding, dilation (2 entries each; for rank 3 the
 * first is unused), groups, outs, zero points of input and output, bounds before the latter is
 * added
 */
enum {
    CONV_X,
    CONV_W,
    CONV_COLUMNS,
    CONV_KERNEL,
    CONV_STRIDE,
    CONV_PADDING,
    CONV_DILATION,
    CONV_GROUPS,
    CONV_OUTS,
    CONV_X_ZERO,
    CONV_ZERO,
    CONV_MIN,
    CONV_MAX
};

static enum status conv_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, CONV_X);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim out[4] = {x->dims[0], rt_shape_arg(call, CONV_OUTS)->i};
    for (uint8_t i = 2; i < x->rank; i++) {
        uint8_t axis = (uint8_t)(i + 2 - x->rank);
        int64_t kernel = rt_shape_arg(call, CONV_KERNEL)->ints[axis].value;
        int64_t padding = rt_shape_arg(call, CONV_PADDING)->ints[axis].value;
        int64_t dilation = rt_shape_arg(call, CONV_DILATION)->ints[axis].value;
        struct rt_dim room =
            rt_dim_add(dims, x->dims[i], rt_dim_of(2 * padding - dilation * (kernel - 1) - 1));
        struct rt_dim steps =
            rt_dim_floordiv(dims, room, rt_shape_arg(call, CONV_STRIDE)->ints[axis]);
        out[i] = rt_dim_add(dims, steps, rt_dim_of(1));
    }
    return rt_shape_set_out(call, 0, x->rank, out);
}

static struct rt_qaxis read_axis(struct rt_emit *emit, uint32_t axis, int64_t in, int64_t out)
{
    return (struct rt_qaxis){
        .in = in,
        .out = out,
        .kernel = rt_emit_ints(emit, CONV_KERNEL, axis),
        .stride = rt_emit_ints(emit, CONV_STRIDE, axis),
        .padding = rt_emit_ints(emit, CONV_PADDING, axis),
        .dilation = rt_emit_ints(emit, CONV_DILATION, axis),
    };
}

static struct rt_qgemm describe(struct rt_emit *emit)
{
    const struct rt_tensor *x = rt_emit_arg(emit, CONV_X), *out = rt_emit_out(emit, 0);
    bool is_image = x->rank == 4;
    struct rt_qgemm gemm = {
        .images = x->dims[0],
        .groups = rt_emit_int(emit, CONV_GROUPS),
        .channels = x->dims[1],
        .outs = out->dims[1],
        .is_f32 = out->dtype == DT_F32,
        .x_zero = (int32_t)rt_emit_int(emit, CONV_X_ZERO),
        .zero = (int32_t)rt_emit_int(emit, CONV_ZERO),
        .min = (float)rt_emit_number(emit, CONV_MIN),
        .max = (float)rt_emit_number(emit, CONV_MAX),
    };
    gemm.y = read_axis(emit, 0, is_image ? x->dims[2] : 1, is_image ? out->dims[2] : 1);
    gemm.x = read_axis(emit, 1, x->dims[x->rank - 1], out->dims[x->rank - 1]);
    return gemm;
}

/* With one tap, no padding and step 1 the image becomes one line of pixels, which cuts into better
 * tiles. */
static void flatten(struct rt_qgemm *g)
{
    const struct rt_qaxis point = {.in = 1, .out = 1, .kernel = 1, .stride = 1, .dilation = 1};
    bool is_flat = g->y.kernel == 1 && g->x.kernel == 1 && g->y.stride == 1 && g->x.stride == 1 &&
                   g->y.padding == 0 && g->x.padding == 0;
    if (is_flat) {
        int64_t pixels = g->y.in * g->x.in;
        g->y = g->x = point;
        g->x.in = g->x.out = pixels;
    }
}

/* Rows of a packed panel. */
static int64_t rows_of(const struct rt_qgemm *g)
{
    int64_t channels = g->channels / g->groups, taps = g->y.kernel * g->x.kernel;
    return g->merges ? g->y.kernel * rt_qgemm_run(g->x.kernel * channels, false)
                     : taps * rt_qgemm_run(channels, false);
}

static enum status conv_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, CONV_W);
    struct rt_qgemm g = describe(emit);
    g.merges = rt_qgemm_merges(g.x.dilation);
    g.panel_bytes = w->dims[2];
    g.k = rows_of(&g);
    flatten(&g);
    struct rt_qgemm_tensors tensors = {
        .out = rt_emit_out(emit, 0)->binding,
        .in = rt_emit_arg(emit, CONV_X)->binding,
        .weights = w->binding,
        .columns = rt_emit_arg(emit, CONV_COLUMNS)->binding,
    };
    return rt_qgemm_emit(emit, &g, &tensors, err);
}

/* ---- depthwise ------------------------------------------------------------------------------- */

/* Rough cost of depthwise pixels, and the part of an image that a tile copies. */
#define MACS_PER_NS 50
#define COPY_BYTES (128 * 1024)

/* Channels that are copied together: whole cache lines. */
#define COPY_CHANNELS 64

/* Bytes of the input for |lines| x |columns| outputs, for one block of channels; and for as many as
 * are copied together. */
static int64_t plane_bytes(const struct rt_qdepthwise *d, int64_t lines, int64_t columns)
{
    int64_t pixels = rt_qaxis_reach(&d->g.y, lines) * rt_qaxis_reach(&d->g.x, columns);
    return (pixels + UK_DW_U8_SLACK) * hal_cpu_uk()->u8_block;
}

static int64_t copy_bytes(const struct rt_qdepthwise *d, int64_t lines, int64_t columns)
{
    int64_t blocks = rt_min(d->g.channels, COPY_CHANNELS) / hal_cpu_uk()->u8_block + 1;
    return plane_bytes(d, lines, columns) * blocks;
}

/* A few blocks of channels of a band of one image, through a copy that includes the padding. */
static void depthwise_blocks(const struct hal_args *args, const struct rt_qcopy *part,
                             struct uk_dw_u8 call, int64_t channel)
{
    const struct rt_qdepthwise *d = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t pixels = part->lines * part->columns, slack = (int64_t)UK_DW_U8_SLACK * uk->u8_block;
    uint8_t *to = args->scratch;
    struct rt_qcopy copy = *part;
    copy.image += channel;
    copy.bytes = rt_min(COPY_CHANNELS, d->g.channels - channel);
    call.x = to;
    call.x_block = pixels * uk->u8_block + slack;
    call.w = (const uint8_t *)args->bindings[2] +
             uk_dw_u8_bytes(uk, call.kernel_h, call.kernel_w, (size_t)channel);
    call.columns = (const union uk_number *)args->bindings[3] + channel * UK_COLUMN_ARRAYS;
    call.y += channel;
    call.channels = (uint32_t)copy.bytes;
    rt_qgemm_copy_planes(&copy, to, call.x_block);
    for (int64_t c = 0; c < copy.bytes; c += uk->u8_block) {
        to += call.x_block;
        memset(to - slack, 0, (size_t)slack);
    }
    uk->dw_u8(&call);
}

/* Bindings: out, in, weights, columns. Grid: bands, images. */
static void depthwise_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_qdepthwise *d = args->constants;
    const struct rt_qgemm *g = &d->g;
    int64_t block = hal_cpu_uk()->u8_block, image = tile.y;
    int64_t y = tile.x / d->bands_x * d->band_y, x = tile.x % d->bands_x * d->band_x;
    int64_t rows = rt_min(d->band_y, g->y.out - y), width = rt_min(d->band_x, g->x.out - x);
    struct rt_qcopy part = {
        .image = (const uint8_t *)args->bindings[1] + image * g->y.in * g->x.in * g->channels,
        .height = g->y.in,
        .width = g->x.in,
        .line = g->x.in * g->channels,
        .pixel = g->channels,
        .y = y * g->y.stride - g->y.padding,
        .x = x * g->x.stride - g->x.padding,
        .lines = rt_qaxis_reach(&g->y, rows),
        .columns = rt_qaxis_reach(&g->x, width),
        .to_pixel = block,
        .zero = (uint8_t)g->x_zero,
    };
    struct uk_dw_u8 call = {
        .x_line = part.columns * block,
        .y = (uint8_t *)args->bindings[0] + ((image * g->y.out + y) * g->x.out + x) * g->channels,
        .y_line = g->x.out * g->channels,
        .y_pixel = g->channels,
        .rows = (uint32_t)rows,
        .width = (uint32_t)width,
        .kernel_h = (uint32_t)g->y.kernel,
        .kernel_w = (uint32_t)g->x.kernel,
        .stride_h = (uint32_t)g->y.stride,
        .stride_w = (uint32_t)g->x.stride,
        .dilation_h = (uint32_t)g->y.dilation,
        .dilation_w = (uint32_t)g->x.dilation,
        .min = g->min,
        .max = g->max,
        .zero = g->zero,
    };
    for (int64_t c = 0; c < g->channels; c += COPY_CHANNELS) {
        depthwise_blocks(args, &part, call, c);
    }
}

static const struct hal_kernel depthwise_kernel = {
    .name = "depthwise_u8", .cpu = depthwise_cpu, .spirv = HAL_SPIRV(qdepthwise_spirv)};

static enum status depthwise_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_qdepthwise d = {.g = describe(emit)};
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    double row_ns = (double)d.g.x.out * (double)d.g.channels *
                    (double)(d.g.y.kernel * d.g.x.kernel) / MACS_PER_NS;
    if (out->numel == 0) {
        return ST_OK;
    }
    d.g.width = hal_cpu_uk()->u8_block;
    d.g.word = hal_cpu_uk()->u8_word;
    struct rt_cut_image image = {
        .images = d.g.images,
        .lines = d.g.y.out,
        .pixels = d.g.x.out,
        .channels = d.g.channels,
        .macs = d.g.y.kernel * d.g.x.kernel,
        .ns = (int64_t)(row_ns * (double)d.g.y.out * (double)d.g.images),
    };
    rt_cut_bands(rt_emit_machine(emit, &depthwise_kernel), &image);
    d.band_y = image.band_y;
    d.band_x = image.band_x;
    while (d.band_y > 1 && copy_bytes(&d, d.band_y, d.band_x) > COPY_BYTES) {
        d.band_y = (d.band_y + 1) / 2;
    }
    while (d.band_x > 1 && copy_bytes(&d, d.band_y, d.band_x) > COPY_BYTES) {
        d.band_x = (d.band_x + 1) / 2;
    }
    d.bands_x = (d.g.x.out - 1) / d.band_x + 1;
    int64_t bands = ((d.g.y.out - 1) / d.band_y + 1) * d.bands_x;
    if (bands > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld bands are too many", (long long)bands);
    }
    struct hal_binding bindings[] = {
        out->binding,
        rt_emit_arg(emit, CONV_X)->binding,
        rt_emit_arg(emit, CONV_W)->binding,
        rt_emit_arg(emit, CONV_COLUMNS)->binding,
    };
    struct hal_dispatch dispatch = {
        .kernel = &depthwise_kernel,
        .grid = {(uint32_t)bands, (uint32_t)d.g.images, 1},
        .constants = &d,
        .constants_bytes = sizeof(d),
        .bindings = bindings,
        .binding_count = 4,
        .scratch_bytes = (size_t)copy_bytes(&d, d.band_y, d.band_x),
        .cost = (uint64_t)image.ns,
        .macs = rt_cut_image_macs(&image),
        .macs_kind = HAL_MACS_U8,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

#define CONV_ARGS "TTTLLLLIIIIFF>T"

/* Only bounds of floats are left to apply: bounds of u8 are its own range, and finite. */
static const struct rt_epilogue linear_epilogue = {0, LINEAR_MIN, LINEAR_MAX, false, 0};
static const struct rt_epilogue conv_epilogue = {0, CONV_MIN, CONV_MAX, false, 0};

const struct rt_op rt_ops_qproduct[] = {
    {"q_linear", NULL, "TTT?T?T?T?IBIBIFF>T", linear_shape, linear_emit, RT_OP_EPILOGUE,
     RT_LAYOUT_ROW_MAJOR, &linear_epilogue, rt_batch_each, .dtypes = 1u << DT_U8,
     .runs = &rt_qgemm_kernel},
    {"q_conv", NULL, CONV_ARGS, conv_shape, conv_emit, RT_OP_EPILOGUE, RT_LAYOUT_CHANNELS_LAST,
     &conv_epilogue, rt_batch_each, .dtypes = 1u << DT_U8, .runs = &rt_qgemm_kernel},
    {"q_conv_dw", NULL, CONV_ARGS, conv_shape, depthwise_emit, 0, RT_LAYOUT_CHANNELS_LAST, NULL,
     rt_batch_each, .dtypes = 1u << DT_U8, .runs = &depthwise_kernel},
    {0},
};
