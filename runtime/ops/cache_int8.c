/* SPDX-License-Identifier: MIT */
/* "quantize_cache" turns rows of floats, along the last dim, into rows for caches in 8 bits. */
#include "config.h"

#include "runtime/ops/cache_int8.h"

#include <math.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"

#define BYTE_MAX 127
#define LEAST 1e-36f /* below it the inverse of a scale is no float */
#define DEPTH_MAX ((int64_t)1 << 16)
#define TILE_NUMBERS 16384

struct quantize_cache {
    int64_t rows, depth, tile; /* rows of a tile */
    enum dtype in;
};

void rt_cache_int8_read(float *out, const char *from, int64_t depth)
{
    struct uk_quant quant = {.zero_point = 0, .min = -BYTE_MAX, .max = BYTE_MAX};
    memcpy(&quant.scale, from + depth, sizeof(quant.scale));
    hal_cpu_uk()->dequantize[UK_I8](out, from, &quant, (size_t)depth);
}

void rt_cache_int8_write(char *to, const float *x, int64_t depth)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    float low, high, nan = uk->max_f32(x, (size_t)depth);
    uk->range_f32(x, (size_t)depth, &low, &high);
    float most = fmaxf(-low, high), scale = most / BYTE_MAX;
    if (!isfinite(nan) || !isfinite(most) || most < LEAST) {
        scale = isfinite(nan) && most < LEAST ? 0 : NAN;
        memset(to, 1, (size_t)depth);
    } else {
        const struct uk_quant quant = {BYTE_MAX / most, 0, -BYTE_MAX, BYTE_MAX};
        uk->quantize[UK_I8](to, x, &quant, (size_t)depth);
    }
    memcpy(to + depth, &scale, sizeof(scale));
}

/* Bindings: output, input. Grid: blocks of rows. */
static void quantize_cache_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct quantize_cache *k = args->constants;
    int64_t width = (int64_t)dtype_bytes(k->in), end = rt_min(k->rows, (tile.x + 1) * k->tile);
    for (int64_t row = tile.x * k->tile; row < end; row++) {
        const char *from = (const char *)args->bindings[1] + row * k->depth * width;
        char *to = (char *)args->bindings[0] + row * (k->depth + RT_CACHE_INT8_SCALE);
        const float *x = (const float *)(const void *)from;
        if (k->in != DT_F32) {
            rt_convert_load(k->in, RT_CLASS_F32)(args->scratch, from, width, k->depth);
            x = args->scratch;
        }
        rt_cache_int8_write(to, x, k->depth);
    }
}

static const struct hal_kernel quantize_cache_kernel = {.name = "quantize_cache",
                                                        .cpu = quantize_cache_tile};

static enum status quantize_cache_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, 0);
    struct rt_dim dims[SHAPE_RANK_MAX];

    TRY(rt_shape_need_out_dtype(call, 0, 1u << DT_I8));
    if (x->rank < 2) {
        return rt_shape_refuse(call, "the input has rank %u, expected 2 or more", x->rank);
    }
    memcpy(dims, x->dims, x->rank * sizeof(*dims));
    dims[x->rank - 1] =
        rt_dim_add(&call->graph->dims, dims[x->rank - 1], rt_dim_of(RT_CACHE_INT8_SCALE));
    return rt_shape_set_out(call, 0, x->rank, dims);
}

static enum status quantize_cache_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, 0);
    int64_t depth = x->dims[x->rank - 1];
    if (x->numel == 0) {
        return ST_OK;
    }
    if (depth > DEPTH_MAX) {
        return error_set(err, ST_TOO_LARGE, "quantize_cache: rows of %lld numbers are too long",
                         (long long)depth);
    }
    struct quantize_cache k = {x->numel / depth, depth, TILE_NUMBERS / depth + 1, x->dtype};
    struct hal_binding bindings[] = {rt_emit_out(emit, 0)->binding, x->binding};
    struct hal_dispatch dispatch = {
        .kernel = &quantize_cache_kernel,
        .constants = &k,
        .constants_bytes = sizeof(k),
        .bindings = bindings,
        .binding_count = 2,
        .scratch_bytes = k.in == DT_F32 ? 0 : (size_t)depth * sizeof(float),
        .cost = (uint64_t)x->numel / 4,
    };
    return rt_emit_tiles(emit, k.rows, k.tile, &dispatch, err);
}

const struct rt_op rt_ops_cache_int8[] = {
    {"quantize_cache", NULL, "T>T", quantize_cache_shape, quantize_cache_emit, 0,
     RT_LAYOUT_ROW_MAJOR, NULL, rt_batch_each,
     .dtypes = 1u << DT_F32 | 1u << DT_F16 | 1u << DT_BF16, .runs = &quantize_cache_kernel},
    {0},
};
