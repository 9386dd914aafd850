/* SPDX-License-Identifier: MIT */
/*
 * "pixels": bytes of pixels as floats, x * scale + shift along the last dim, which are the channels
 * of a picture; their order may be reversed. No exporter writes it: runtime/program/adapt.c puts it
 * in front of programs that take pictures.
 *
 * The channels are few, so the kernel repeats the factors until they fill a piece, and the
 * micro-kernels work on pieces of many pixels.
 */
#include "config.h"

#include "runtime/ops/pixels.h"

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define PIECE 512 /* elements at a time */

static enum status pixels_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);

    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_F32));
    if (in->rank == 0 || !rt_dim_is_const(in->dims[in->rank - 1]) ||
        in->dims[in->rank - 1].value < 1 || in->dims[in->rank - 1].value > PIECE) {
        return rt_shape_refuse(call, "expected 1 to %d channels in the last dim", PIECE);
    }
    for (uint32_t arg = 1; arg <= 2; arg++) {
        const struct rt_value *v = rt_shape_arg(call, arg);
        TRY(rt_shape_need_dtype(call, arg, 1u << DT_F32));
        if (v->rank != 1 || !rt_dim_is(v->dims[0], in->dims[in->rank - 1].value)) {
            return rt_shape_refuse(call, "argument %u: expected a number for each channel", arg);
        }
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static void pixels_tile(const struct hal_args *args, struct hal_tile tile);

static const struct hal_kernel kernel = {
    .name = "pixels", .cpu = pixels_tile, .spirv = HAL_SPIRV(pixels_spirv)};

/* The bytes begin at the last channel and go backwards. */
static void add_bytes(struct rt_loop *loop, const struct rt_tensor *in, bool is_reversed)
{
    int64_t strides[SHAPE_RANK_MAX], channels = in->dims[in->rank - 1];

    for (uint8_t d = 0; d < in->rank; d++) {
        strides[d] = in->strides[d];
    }
    if (is_reversed) {
        strides[in->rank - 1] = -1;
    }
    rt_loop_add_strides(loop, strides, is_reversed ? channels - 1 : 0);
}

static enum status pixels_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0), *in = rt_emit_arg(emit, 0);
    const struct rt_tensor *scale = rt_emit_arg(emit, 1), *shift = rt_emit_arg(emit, 2);
    struct hal_binding bindings[4] = {out->binding, in->binding, scale->binding, shift->binding};
    int64_t by_channel[SHAPE_RANK_MAX] = {0};
    struct rt_pixels_constants k = {
        .channels = (uint32_t)in->dims[in->rank - 1],
        .is_reversed = rt_emit_value(emit, 3)->b,
    };

    by_channel[in->rank - 1] = sizeof(float);
    rt_loop_init(&k.loop, out->rank, out->dims);
    rt_loop_add(&k.loop, out);
    add_bytes(&k.loop, in, k.is_reversed);
    rt_loop_add_strides(&k.loop, by_channel, 0);
    rt_loop_add_strides(&k.loop, by_channel, 0);
    rt_loop_cut(&k.loop, rt_emit_machine(emit, &kernel), RT_WORK_ELEMENTS);
    k.loop.tile = (k.loop.tile + k.channels - 1) / k.channels * k.channels; /* whole pixels */
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &kernel,
                                .grid = {rt_loop_tiles(&k.loop), 1, 1},
                                .constants = &k,
                                .constants_bytes = sizeof(k),
                                .bindings = bindings,
                                .binding_count = 4,
                                .scratch_bytes = 3 * PIECE * sizeof(float),
                                .cost = (uint64_t)out->numel / 4,
                            },
                            err);
}

/* ---- the kernel ---------------------------------------------------------------------------- */

static void repeat(float *to, const float *from, uint32_t channels, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        to[i] = i < channels ? from[i] : to[i - channels];
    }
}

/* |n| bytes of whole pixels, with the channels of each in reverse order. */
static const uint8_t *reverse(uint8_t *to, const uint8_t *from, uint32_t channels, size_t n)
{
    if (channels == 3) {
        for (size_t i = 0; i < n; i += 3) {
            to[i] = from[i + 2];
            to[i + 1] = from[i + 1];
            to[i + 2] = from[i];
        }
        return to;
    }
    for (size_t i = 0; i < n; i += channels) {
        for (uint32_t c = 0; c < channels; c++) {
            to[i + c] = from[i + channels - 1 - c];
        }
    }
    return to;
}

static void pixels_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_pixels_constants *k = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const struct uk_quant plain = {.scale = 1};
    float *scale = args->scratch, *shift = scale + PIECE;
    uint8_t *turned = (uint8_t *)(shift + PIECE);
    size_t begin = (size_t)tile.x * (size_t)k->loop.tile, end = (size_t)k->loop.numel;
    size_t piece = PIECE / k->channels * k->channels;

    end = end - begin < (size_t)k->loop.tile ? end : begin + (size_t)k->loop.tile;
    repeat(scale, args->bindings[2], k->channels, piece);
    repeat(shift, args->bindings[3], k->channels, piece);
    for (size_t at = begin; at < end; at += piece) {
        size_t n = end - at < piece ? end - at : piece;
        const uint8_t *from = (const uint8_t *)args->bindings[1] + at;
        float *y = (float *)args->bindings[0] + at;
        from = k->is_reversed ? reverse(turned, from, k->channels, n) : from;
        uk->dequantize[UK_U8](y, from, &plain, n);
        uk->binary_f32[UK_MUL](y, y, scale, n);
        uk->binary_f32[UK_ADD](y, y, shift, n);
    }
}

const struct rt_op rt_ops_pixels[] = {
    {.name = "pixels",
     .args = "TTTB>T",
     .shape = pixels_shape,
     .emit = pixels_emit,
     .layout = RT_LAYOUT_ROW_MAJOR,
     .batch = rt_batch_each,
     .dtypes = 1u << DT_U8,
     .runs = &kernel},
    {.name = NULL},
};
