/* SPDX-License-Identifier: MIT */
/*
 * Joins images along their channels, multiplies each channel by a number, adds another one, and
 * clamps: a concatenation and the batch norm that alone reads it. The cat_affine pass
 * (runtime/passes/cat_affine.c) makes it of "cat" and a 1x1 "conv_dw", so all tensors are
 * channels-last: rows of channels, one for each pixel. There is no form for other devices.
 *
 * The joined image is never stored as it is. Each number is the result of the same operations as in
 * the two layers.
 */
#include "config.h"

#include "runtime/ops/cat_affine.h"

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/op.h"

/* Images of one dispatch; the other bindings are the output, the factors and the summands. */
#define SOURCES_MAX (HAL_BINDINGS_MAX - 3)

/* Pixels that are rounded at a time: some KiB of floats, of very many channels some pixels less. */
#define ROUNDED_PIXELS 16
#define ROUNDED_BYTES (1 << 20)

struct cat_affine {
    int64_t pixels, tile;         /* all pixels, and the pixels of a tile */
    int64_t channels;             /* of the output */
    int64_t begin;                /* the first channel that the dispatch computes */
    int64_t width;                /* and how many */
    uint32_t widths[SOURCES_MAX]; /* channels of each image */
    uint32_t count;               /* of images */
    uint32_t is_bf16;             /* the output is */
    uint32_t rounded;             /* then: pixels that are rounded at a time */
    float min, max;
};
_Static_assert(sizeof(struct cat_affine) <= HAL_CONSTANTS_MAX, "constants are copied whole");

/* ---- the kernel ------------------------------------------------------------------------------ */

/* Computes |n| pixels from |pixel| on into |y|, whose rows are |y_row| apart. */
static void join_pixels(const struct hal_args *args, int64_t pixel, int64_t n, float *y,
                        int64_t y_row)
{
    const struct cat_affine *c = args->constants;
    const float *scale = (const float *)args->bindings[1] + c->begin;
    const float *shift = args->bindings[2] ? (const float *)args->bindings[2] + c->begin : NULL;
    for (uint32_t i = 0, at = 0; i < c->count; at += c->widths[i++]) {
        hal_cpu_uk()->affine_f32(&(struct uk_affine_f32){
            .y = y + at,
            .y_row = (ptrdiff_t)y_row,
            .x = (const float *)args->bindings[3 + i] + pixel * c->widths[i],
            .x_row = c->widths[i],
            .scale = scale + at,
            .shift = shift ? shift + at : NULL,
            .rows = (size_t)n,
            .n = c->widths[i],
            .min = c->min,
            .max = c->max,
        });
    }
}

static void join_rounded(const struct hal_args *args, int64_t pixel, int64_t n)
{
    const struct cat_affine *c = args->constants;
    uint16_t *out = (uint16_t *)args->bindings[0] + pixel * c->channels + c->begin;
    join_pixels(args, pixel, n, args->scratch, c->width);
    for (int64_t i = 0; i < n; i++) {
        const float *row = (const float *)args->scratch + i * c->width;
        hal_cpu_uk()->f32_to_bf16(out + i * c->channels, row, (size_t)c->width);
    }
}

/* Bindings: out, factors, summands, images. Grid: blocks of pixels. */
static void cat_affine_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct cat_affine *c = args->constants;
    int64_t pixel = tile.x * c->tile, end = rt_min(pixel + c->tile, c->pixels);
    uint64_t mode = uk_subnormals_drop();
    if (!c->is_bf16) {
        float *out = (float *)args->bindings[0] + pixel * c->channels + c->begin;
        join_pixels(args, pixel, end - pixel, out, c->channels);
    }
    for (; c->is_bf16 && pixel < end; pixel += c->rounded) {
        join_rounded(args, pixel, rt_min(end - pixel, c->rounded));
    }
    uk_subnormals_keep(mode);
}

static const struct hal_kernel kernel = {.name = "cat_affine_f32", .cpu = cat_affine_cpu};

/* ---- the operator ---------------------------------------------------------------------------- */

static enum status cat_affine_shape(struct rt_shape_call *call)
{
    const struct rt_value *list = rt_shape_arg(call, RT_CAT_AFFINE_LIST);
    const struct rt_value *model = &call->graph->values[list->values[0]];
    struct rt_dim out[SHAPE_RANK_MAX], sum = rt_dim_of(0);
    for (uint32_t i = 0; i < list->count; i++) {
        sum = rt_dim_add(&call->graph->dims, sum, call->graph->values[list->values[i]].dims[1]);
    }
    for (uint8_t d = 0; d < model->rank; d++) {
        out[d] = d == 1 ? sum : model->dims[d];
    }
    return rt_shape_set_out(call, 0, model->rank, out);
}

static enum status record(struct rt_emit *emit, struct cat_affine *c, struct hal_binding *bindings,
                          struct error *err)
{
    const struct rt_machine *machine = rt_emit_machine(emit, &kernel);
    int64_t bytes = c->width * (int64_t)sizeof(float);
    c->tile = rt_cut_things(machine, RT_WORK_COPY, c->pixels, bytes, c->width);
    c->rounded = (uint32_t)rt_max(1, rt_min(ROUNDED_PIXELS, ROUNDED_BYTES / rt_max(1, bytes)));
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &kernel,
                                .grid = {(uint32_t)((c->pixels + c->tile - 1) / c->tile), 1, 1},
                                .constants = c,
                                .constants_bytes = sizeof(*c),
                                .bindings = bindings,
                                .binding_count = 3 + c->count,
                                .scratch_bytes = c->is_bf16 ? (size_t)(bytes * c->rounded) : 0,
                                .cost = (uint64_t)(c->pixels * bytes / 16),
                            },
                            err);
}

static enum status cat_affine_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    const struct rt_tensor *shift = rt_emit_arg(emit, RT_CAT_AFFINE_SHIFT);
    struct hal_binding bindings[HAL_BINDINGS_MAX] = {
        out->binding,
        rt_emit_arg(emit, RT_CAT_AFFINE_SCALE)->binding,
        shift ? shift->binding : (struct hal_binding){0},
    };
    uint32_t count = rt_emit_value(emit, RT_CAT_AFFINE_LIST)->count;
    struct cat_affine c = {
        .channels = out->dims[1],
        .pixels = out->numel > 0 ? out->numel / out->dims[1] : 0,
        .is_bf16 = out->dtype == DT_BF16,
        .min = (float)rt_emit_number(emit, RT_CAT_AFFINE_MIN),
        .max = (float)rt_emit_number(emit, RT_CAT_AFFINE_MAX),
    };
    if (c.channels > INT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld channels are too many", (long long)c.channels);
    }
    for (uint32_t i = 0; c.pixels > 0 && i < count; i++) {
        const struct rt_tensor *part = rt_emit_arg_item(emit, RT_CAT_AFFINE_LIST, i);
        bindings[3 + c.count] = part->binding;
        c.widths[c.count++] = (uint32_t)part->dims[1];
        c.width += part->dims[1];
        if (c.count == SOURCES_MAX || i + 1 == count) {
            TRY(record(emit, &c, bindings, err));
            c.begin += c.width;
            c.width = 0;
            c.count = 0;
        }
    }
    return ST_OK;
}

const struct rt_op rt_ops_cat_affine[] = {
    {.name = "cat_affine",
     .args = "XITT?FF>T",
     .shape = cat_affine_shape,
     .emit = cat_affine_emit,
     .layout = RT_LAYOUT_CHANNELS_LAST,
     .batch = rt_batch_list,
     .dtypes = 1u << DT_F32,
     .runs = &kernel},
    {.name = NULL},
};
