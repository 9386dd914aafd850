/* SPDX-License-Identifier: MIT */
/*
 * Convolutions of 3 x 3 at step 1 by Winograd's algorithm: see hal/cpu/uk_winograd.h. The winograd
 * pass (runtime/passes/winograd.c) makes these operators of "conv" and "pack_conv" where they are
 * faster. There is no form for other devices.
 *
 * A worker's tile is a range of Winograd's tiles and a range of output channels. Workers that take
 * different channels transform the same patches. So there are several ranges of channels only if
 * the image has too few tiles for all workers.
 */
#include "config.h"

#include "runtime/ops/winograd.h"

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/gemm.h"
#include "runtime/ops/activation.h"
#include "runtime/ops/op.h"

/* Multiply-adds of one core in a nanosecond, roughly. */
#define MACS_PER_NS 50

/* Floats of transformed patches that stay in a second-level cache beside a part of the weights. */
#define PATCH_FLOATS (160 * 1024)

/* A patch is transformed in about the time of multiplying so many columns. */
#define TRANSFORM_COLUMNS 64

/* ---- packed weights -------------------------------------------------------------------------- */

/* weights, side -> [elements, panels, channels, width] */
static enum status pack_shape(struct rt_shape_call *call)
{
    const struct rt_value *w = rt_shape_arg(call, 0);
    int64_t side = 0;
    TRY(rt_shape_need_const(call, 1, &side));
    if (w->rank != 4 || !rt_dim_is(w->dims[2], 3) || !rt_dim_is(w->dims[3], 3) ||
        (side != 2 && side != 4)) {
        return rt_shape_refuse(call, "the kernels are not 3 x 3, or the tiles not of side 2 or 4");
    }
    struct rt_dim out[4];
    rt_gemm_packed_dims(&call->graph->dims, rt_dim_of(uk_winograd_elements((uint32_t)side)),
                        w->dims[1], w->dims[0], out);
    rt_node_out(call->graph, call->node, 0)->is_packed = true;
    return rt_shape_set_out(call, 0, 4, out);
}

struct pack {
    uint32_t side, n, channels;
    size_t element;
};

/* Bindings: packed, source. Grid: panels. */
static void pack_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct pack *p = args->constants;
    struct uk_winograd_pack call = {
        .side = p->side,
        .w = args->bindings[1],
        .n = p->n,
        .channels = p->channels,
        .packed = args->bindings[0],
        .element = p->element,
    };
    hal_cpu_uk()->winograd_pack_f32(&call, tile.x, tile.x + 1);
}

static const struct hal_kernel pack_kernel = {.name = "pack_winograd", .cpu = pack_cpu};

/* Channels and columns must be numbers of the micro-kernel. */
static enum status check_sizes(int64_t channels, int64_t outs, struct error *err)
{
    if (channels > RT_WINOGRAD_CHANNELS_MAX || outs > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld channels and %lld columns are too large",
                         (long long)channels, (long long)outs);
    }
    return ST_OK;
}

static enum status pack_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *w = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    TRY(check_sizes(w->dims[1], w->dims[0], err));
    struct pack p = {
        .side = (uint32_t)rt_emit_int(emit, 1),
        .n = (uint32_t)w->dims[0],
        .channels = (uint32_t)w->dims[1],
        .element = (size_t)(out->dims[1] * out->dims[2] * out->dims[3]),
    };
    struct hal_binding bindings[] = {out->binding, w->binding};
    struct hal_dispatch dispatch = {
        .kernel = &pack_kernel,
        .constants = &p,
        .constants_bytes = sizeof(p),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)out->bytes / 4,
    };
    return rt_emit_tiles(emit, out->numel ? out->dims[1] : 0, 1, &dispatch, err);
}

/* ---- convolution ----------------------------------------------------------------------------- */

static enum status winograd_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, RT_WINOGRAD_X);
    const struct rt_value *padding = rt_shape_arg(call, RT_WINOGRAD_PADDING);
    struct rt_dims *dims = &call->graph->dims;
    struct rt_dim out[4] = {x->dims[0], rt_shape_arg(call, RT_WINOGRAD_OUTS)->i};
    if (x->rank != 4 || padding->count != 2) {
        return rt_shape_refuse(call, "the input has rank %u and %u paddings, expected 4 and 2",
                               x->rank, padding->count);
    }
    for (uint8_t i = 0; i < 2; i++) {
        out[2 + i] = rt_dim_add(dims, x->dims[2 + i], rt_dim_of(2 * padding->ints[i].value - 2));
    }
    return rt_shape_set_out(call, 0, 4, out);
}

struct winograd {
    int64_t image_in, image_out, element;
    int64_t tiles, blocks; /* Winograd's tiles; a block of them is the grid's x */
    uint32_t side, channels, height, width, pad_top, pad_left;
    uint32_t outs, out_height, out_width, pitch;
    uint32_t columns; /* of a worker's tile; ranges of columns are the grid's y */
    float min, max;
    uint32_t activation; /* as rt_activation_read() says */
};

/* Bindings: out, in, weights, bias, residual. Grid: blocks of tiles, ranges of columns. */
static void winograd_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct winograd *w = args->constants;
    uint32_t column = tile.y * w->columns, left = w->outs - column;
    const float *bias = args->bindings[3], *residual = args->bindings[4];
    struct uk_winograd_f32 call = {
        .side = w->side,
        .x = args->bindings[1],
        .x_image = (ptrdiff_t)w->image_in,
        .x_line = (ptrdiff_t)w->width * w->channels,
        .x_pixel = w->channels,
        .height = w->height,
        .width = w->width,
        .channels = w->channels,
        .pad_top = w->pad_top,
        .pad_left = w->pad_left,
        .u = (const float *)args->bindings[2] + (size_t)column * w->channels,
        .u_element = (size_t)w->element,
        .bias = bias ? bias + column : NULL,
        .residual = residual ? residual + column : NULL,
        .y = (float *)args->bindings[0] + column,
        .y_image = (ptrdiff_t)w->image_out,
        .y_line = (ptrdiff_t)w->out_width * w->pitch,
        .y_pixel = w->pitch,
        .out_height = w->out_height,
        .out_width = w->out_width,
        .n = left < w->columns ? left : w->columns,
        .begin = (uint64_t)(w->tiles * tile.x / w->blocks),
        .end = (uint64_t)(w->tiles * (tile.x + 1) / w->blocks),
        .scratch = args->scratch,
        .min = w->min,
        .max = w->max,
        .activation = w->activation ? hal_cpu_uk()->unary_f32[w->activation - 1] : NULL,
    };
    uint64_t mode = uk_subnormals_drop();
    hal_cpu_uk()->winograd_f32(&call);
    uk_subnormals_keep(mode);
}

static const struct hal_kernel winograd_kernel = {.name = "winograd_f32", .cpu = winograd_cpu};

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

/* Most tiles of a block: all of them, because each block reads all weights, or else whole register
 * tiles of the product, at least one of them. */
static int64_t block_max(const struct winograd *w)
{
    int64_t floats = uk_winograd_elements(w->side) * (int64_t)uk_winograd_row(w->channels);
    int64_t rows = hal_cpu_uk()->f32_mr, most = PATCH_FLOATS / floats;
    return w->tiles <= most ? most : rt_max(rows, most / rows * rows);
}

/* Chooses blocks and ranges of columns, as of a product with a row for each of Winograd's tiles;
 * returns the cost. */
static int64_t cut(struct winograd *w, const struct rt_machine *machine)
{
    double macs = (double)w->tiles * uk_winograd_elements(w->side) * w->channels * w->outs;
    struct rt_cut cut = {
        .images = 1,
        .groups = 1,
        .lines = 1,
        .pixels = w->tiles,
        .panels = ceil_div(w->outs, UK_WINOGRAD_COLUMNS),
        .width = UK_WINOGRAD_COLUMNS,
        .rows = hal_cpu_uk()->f32_mr,
        .per_read = hal_cpu_uk()->f32_per_read,
        .per_input = rt_cut_reads(hal_cpu_uk()->f32_per_read, 1, 1) + TRANSFORM_COLUMNS,
        .ns = macs / MACS_PER_NS > 1e15 ? (int64_t)1e15 : (int64_t)(macs / MACS_PER_NS) + 1,
    };
    rt_cut_product(machine, &cut);
    w->blocks = ceil_div(w->tiles, cut.band_x);
    if (cut.band_x > block_max(w)) { /* as many for each worker */
        w->blocks = ceil_div(w->tiles, block_max(w) * machine->workers) * machine->workers;
    }
    w->columns = (uint32_t)(cut.block * UK_WINOGRAD_COLUMNS);
    return cut.ns;
}

static enum status describe(struct rt_emit *emit, struct winograd *w, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, RT_WINOGRAD_X), *out = rt_emit_out(emit, 0);
    const struct rt_tensor *u = rt_emit_arg(emit, RT_WINOGRAD_W);
    TRY(check_sizes(x->dims[1], out->dims[1], err));
    if (rt_max(rt_max(x->dims[2], x->dims[3]), rt_max(out->dims[2], out->dims[3])) > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "the image is too large");
    }
    *w = (struct winograd){
        .image_in = x->dims[1] * x->dims[2] * x->dims[3],
        .image_out = out->pitch * out->dims[2] * out->dims[3],
        .element = u->dims[1] * u->dims[2] * u->dims[3],
        .side = (uint32_t)rt_emit_int(emit, RT_WINOGRAD_SIDE),
        .channels = (uint32_t)x->dims[1],
        .height = (uint32_t)x->dims[2],
        .width = (uint32_t)x->dims[3],
        .pad_top = (uint32_t)rt_emit_ints(emit, RT_WINOGRAD_PADDING, 0),
        .pad_left = (uint32_t)rt_emit_ints(emit, RT_WINOGRAD_PADDING, 1),
        .outs = (uint32_t)out->dims[1],
        .pitch = (uint32_t)out->pitch,
        .out_height = (uint32_t)out->dims[2],
        .out_width = (uint32_t)out->dims[3],
        .min = (float)rt_emit_number(emit, RT_WINOGRAD_MIN),
        .max = (float)rt_emit_number(emit, RT_WINOGRAD_MAX),
        .activation = rt_activation_read(rt_emit_value(emit, RT_WINOGRAD_ACTIVATION)),
    };
    w->tiles = out->dims[0] * ceil_div(out->dims[2], w->side) * ceil_div(out->dims[3], w->side);
    return ST_OK;
}

static enum status winograd_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    const struct rt_tensor *bias = rt_emit_arg(emit, RT_WINOGRAD_BIAS);
    const struct rt_tensor *residual = rt_emit_arg(emit, RT_WINOGRAD_RESIDUAL);
    struct winograd w;
    if (out->numel == 0) {
        return ST_OK;
    }
    TRY(describe(emit, &w, err));
    int64_t ns = cut(&w, rt_emit_machine(emit, &winograd_kernel));
    struct hal_binding bindings[] = {
        out->binding,
        rt_emit_arg(emit, RT_WINOGRAD_X)->binding,
        rt_emit_arg(emit, RT_WINOGRAD_W)->binding,
        bias ? bias->binding : (struct hal_binding){0},
        residual ? residual->binding : (struct hal_binding){0},
    };
    if (w.blocks > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld images are too many", (long long)out->dims[0]);
    }
    size_t block = (size_t)ceil_div(w.tiles, w.blocks);
    struct hal_dispatch dispatch = {
        .kernel = &winograd_kernel,
        .grid = {(uint32_t)w.blocks, (uint32_t)ceil_div(w.outs, w.columns), 1},
        .constants = &w,
        .constants_bytes = sizeof(w),
        .bindings = bindings,
        .binding_count = 5,
        .scratch_bytes = uk_winograd_scratch(w.side, w.channels, block),
        .cost = (uint64_t)ns,
        /* The multiply-adds of the plain form, so that rates show what the algorithm saves. */
        .macs = (double)out->numel * 9 * w.channels,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

static const struct rt_epilogue epilogue = {RT_WINOGRAD_RESIDUAL, RT_WINOGRAD_MIN, RT_WINOGRAD_MAX,
                                            false, RT_WINOGRAD_ACTIVATION};

const struct rt_op rt_ops_winograd[] = {
    {"pack_winograd", NULL, "TI>T", pack_shape, pack_emit, 0, RT_LAYOUT_ROW_MAJOR, NULL, NULL,
     .dtypes = 1u << DT_F32, .runs = &pack_kernel},
    {"conv_winograd", NULL, "TTT?T?LIIFFZ?>T", winograd_shape, winograd_emit,
     RT_OP_EPILOGUE | RT_OP_PARTS, RT_LAYOUT_CHANNELS_LAST, &epilogue, rt_batch_each,
     .dtypes = 1u << DT_F32, .runs = &winograd_kernel},
    {0},
};
