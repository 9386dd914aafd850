/* SPDX-License-Identifier: MIT */
/*
 * "planes": the planes of an image of up to four channels side by side in each pixel, rounded to
 * bfloat16, with channels of zeros up to four. The first convolution of a network reads that. The
 * narrow pass (runtime/passes/narrow.c) makes it of the nodes that pad, reorder and round the
 * image. There is no form for other devices.
 */
#include "config.h"

#include "runtime/ops/planes.h"

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/op.h"

_Static_assert(RT_PLANES == UK_PLANES_MAX, "the kernel makes them");

struct planes {
    int64_t pixels; /* of an image */
    int64_t tile;
    uint32_t count; /* planes of an image */
};

/* Bindings: out, in. Grid: pixels, images. */
static void planes_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct planes *c = args->constants;
    int64_t begin = tile.x * c->tile, end = rt_min(begin + c->tile, c->pixels);
    const float *in = args->bindings[1];
    uint16_t *out = args->bindings[0];
    in += (size_t)tile.y * c->count * (size_t)c->pixels;
    out += (size_t)tile.y * RT_PLANES * (size_t)c->pixels;
    hal_cpu_uk()->planes_to_bf16(out + begin * RT_PLANES, in + begin, (ptrdiff_t)c->pixels,
                                 c->count, (size_t)(end - begin));
}

static const struct hal_kernel kernel = {.name = "planes", .cpu = planes_cpu};

static enum status planes_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];
    if (x->rank < 2 || !rt_dim_is_const(x->dims[1]) || x->dims[1].value < 1 ||
        x->dims[1].value > RT_PLANES) {
        return rt_shape_refuse(call, "expected 1 to %d channels in dim 1", RT_PLANES);
    }
    for (uint8_t d = 0; d < x->rank; d++) {
        out[d] = d == 1 ? rt_dim_of(RT_PLANES) : x->dims[d];
    }
    return rt_shape_set_out(call, 0, x->rank, out);
}

static enum status planes_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    if (out->numel == 0) {
        return ST_OK;
    }
    struct planes c = {
        .pixels = out->numel / out->dims[0] / RT_PLANES,
        .count = (uint32_t)x->dims[1],
    };
    if (out->dims[0] > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "%lld images are too many", (long long)out->dims[0]);
    }
    c.tile = rt_cut_things(rt_emit_machine(emit, &kernel), RT_WORK_COPY, c.pixels,
                           RT_PLANES * (int64_t)sizeof(float), RT_PLANES);
    struct hal_binding bindings[] = {out->binding, x->binding};
    struct hal_dispatch dispatch = {
        .kernel = &kernel,
        .grid = {(uint32_t)((c.pixels + c.tile - 1) / c.tile), (uint32_t)out->dims[0], 1},
        .constants = &c,
        .constants_bytes = sizeof(c),
        .bindings = bindings,
        .binding_count = 2,
        .cost = (uint64_t)(out->numel / 16),
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

const struct rt_op rt_ops_planes[] = {
    {.name = "planes",
     .args = "T>T",
     .shape = planes_shape,
     .emit = planes_emit,
     .layout = RT_LAYOUT_ROW_MAJOR,
     .batch = rt_batch_each,
     .dtypes = 1u << DT_F32,
     .runs = &kernel},
    {.name = NULL},
};
