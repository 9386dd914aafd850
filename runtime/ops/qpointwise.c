/* SPDX-License-Identifier: MIT */
/*
 * The u8 operators of a quantised network beside its products: sums and products of two tensors
 * with different scales, functions of one tensor as a table of 256 results, means over pixels.
 * Results equal the composition of float operations, rounded once. Only the quantize pass makes
 * these nodes.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/cut.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/ops/op.h"
#include "runtime/ops/qpointwise.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* ---- along runs ------------------------------------------------------------------------------ */

/* Bytes of the buffer that gathers a strided run. */
#define RUN_CHUNK 512
#define RUN_SCRATCH (3 * RUN_CHUNK)

static void do_run(const struct rt_qbytes *r, uint8_t *y, const uint8_t *a, const uint8_t *b,
                   const uint8_t *table, size_t n)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const struct uk_add_u8 add = {y, a, b, n, r->a_scale, r->b_scale, r->bias, r->min, r->max};
    const struct uk_mul_u8 mul = {y,         a,        b,       n,      r->a_zero,
                                  r->b_zero, r->scale, r->bias, r->min, r->max};
    switch (r->kind) {
    case RT_QBYTES_ADD:
        uk->add_u8(&add);
        break;
    case RT_QBYTES_MUL:
        uk->mul_u8(&mul);
        break;
    case RT_QBYTES_LOOKUP:
        uk->lookup_u8(y, a, table, n);
        break;
    case RT_QBYTES_FLIP:
        for (size_t i = 0; i < n; i++) {
            y[i] = a[i] ^ 0x80;
        }
        break;
    }
}

static const uint8_t *gather(uint8_t *to, const char *from, int64_t stride, int64_t n)
{
    if (stride == 1) {
        return (const uint8_t *)from;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = (uint8_t)from[i * stride];
    }
    return to;
}

/* Bindings: out, a, b or nothing, table. */
static void runs_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_qbytes *r = args->constants;
    const uint8_t *table = args->bindings[args->binding_count - 1];
    bool is_binary = r->loop.operands == 3;
    uint8_t *scratch = args->scratch;
    struct rt_cursor cursor;
    rt_loop_cursor_init(&cursor, &r->loop, args->bindings, tile.x);
    while (rt_loop_cursor_next(&cursor)) {
        int64_t sy = rt_loop_cursor_stride(&cursor, 0), sa = rt_loop_cursor_stride(&cursor, 1);
        int64_t sb = is_binary ? rt_loop_cursor_stride(&cursor, 2) : 1;
        bool is_whole = sy == 1 && sa == 1 && sb == 1;
        for (int64_t i = 0; i < cursor.count;) {
            int64_t n = is_whole ? cursor.count : rt_min(cursor.count - i, RUN_CHUNK);
            const uint8_t *a = gather(scratch, cursor.ptrs[1] + i * sa, sa, n);
            const uint8_t *b =
                is_binary ? gather(scratch + RUN_CHUNK, cursor.ptrs[2] + i * sb, sb, n) : NULL;
            uint8_t *y = (uint8_t *)cursor.ptrs[0] + i * sy, *to = y;
            to = sy == 1 ? y : scratch + 2 * RUN_CHUNK;
            do_run(r, to, a, b, table, (size_t)n);
            for (int64_t j = 0; to != y && j < n; j++) {
                y[j * sy] = to[j];
            }
            i += n;
        }
    }
}

#define KERNEL(kind)                                                                               \
    [kind] = {.name = "bytes", .cpu = runs_cpu, .spirv = HAL_SPIRV(qbytes_spirv), .variant = (kind)}
static const struct hal_kernel runs_kernels[] = {
    KERNEL(RT_QBYTES_ADD),
    KERNEL(RT_QBYTES_MUL),
    KERNEL(RT_QBYTES_LOOKUP),
    KERNEL(RT_QBYTES_FLIP),
};

#define TILE_BYTES (128 * 1024)

static enum status emit_runs(struct rt_emit *emit, struct rt_qbytes *r, uint32_t inputs,
                             const struct rt_tensor *table, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[4] = {out->binding};
    rt_loop_init(&r->loop, out->rank, out->dims);
    rt_loop_add(&r->loop, out);
    for (uint32_t i = 0; i < inputs; i++) {
        rt_loop_add(&r->loop, rt_emit_arg(emit, i));
        bindings[1 + i] = rt_emit_arg(emit, i)->binding;
    }
    uint64_t cost = (uint64_t)out->numel / (r->kind == RT_QBYTES_LOOKUP ? 1 : 8) + 1;
    const struct rt_machine *machine = rt_emit_machine(emit, &runs_kernels[r->kind]);
    rt_loop_close(&r->loop, rt_cut_length(machine, out->numel, (int64_t)cost, TILE_BYTES));
    bindings[1 + inputs] = table ? table->binding : (struct hal_binding){0};
    struct hal_dispatch dispatch = {
        .kernel = &runs_kernels[r->kind],
        .grid = {rt_loop_tiles(&r->loop), 1, 1},
        .constants = r,
        .constants_bytes = sizeof(*r),
        .bindings = bindings,
        .binding_count = 2 + inputs,
        .scratch_bytes = RUN_SCRATCH,
        .cost = cost,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

/* ---- sums and products ----------------------------------------------------------------------- */

static enum status like_shape(struct rt_shape_call *call)
{
    return rt_shape_set_out_like(call, 0, 0);
}

/* a, b?, factors of a and b, addend, bounds: see struct uk_add_u8 */
static enum status add_emit(struct rt_emit *emit, struct error *err)
{
    bool is_binary = rt_emit_arg(emit, 1) != NULL;
    struct rt_qbytes r = {
        .kind = RT_QBYTES_ADD,
        .a_scale = (float)rt_emit_number(emit, 2),
        .b_scale = (float)rt_emit_number(emit, 3),
        .bias = (float)rt_emit_number(emit, 4),
        .min = (float)rt_emit_number(emit, 5),
        .max = (float)rt_emit_number(emit, 6),
    };
    return emit_runs(emit, &r, is_binary ? 2 : 1, NULL, err);
}

/* a, b, zero points of a and b, factor, addend, bounds: see struct uk_mul_u8 */
static enum status mul_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_qbytes r = {
        .kind = RT_QBYTES_MUL,
        .a_zero = (float)rt_emit_int(emit, 2),
        .b_zero = (float)rt_emit_int(emit, 3),
        .scale = (float)rt_emit_number(emit, 4),
        .bias = (float)rt_emit_number(emit, 5),
        .min = (float)rt_emit_number(emit, 6),
        .max = (float)rt_emit_number(emit, 7),
    };
    return emit_runs(emit, &r, 2, NULL, err);
}

/* x, table of 256 */
static enum status lookup_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_qbytes r = {.kind = RT_QBYTES_LOOKUP};
    return emit_runs(emit, &r, 1, rt_emit_arg(emit, 1), err);
}

/* Converts i8 to u8 and back by adding 128 to the bytes' meaning. */
static enum status flip_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_qbytes r = {.kind = RT_QBYTES_FLIP};
    return emit_runs(emit, &r, 1, NULL, err);
}

/* ---- means ----------------------------------------------------------------------------------- */

/* x [n, c, ..], keep the reduced dims as 1?, factor, addend, bounds: for the mean over all pixels,
 * clamp(round(mean * factor + addend)) */
enum { MEAN_X, MEAN_KEEPS, MEAN_SCALE, MEAN_BIAS, MEAN_MIN, MEAN_MAX };

static enum status mean_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, MEAN_X);
    struct rt_dim out[SHAPE_RANK_MAX] = {x->dims[0], x->dims[1]};
    for (uint8_t i = 2; i < x->rank; i++) {
        out[i] = rt_dim_of(1);
    }
    return rt_shape_set_out(call, 0, rt_shape_arg(call, MEAN_KEEPS)->b ? x->rank : 2, out);
}

/* Bindings: out, x. Grid: groups of channels, images. */
static void mean_cpu(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_qmean *m = args->constants;
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t first = (int64_t)tile.x * m->tile, n = rt_min(m->channels - first, m->tile);
    const uint8_t *x = (const uint8_t *)args->bindings[1] + tile.y * m->channels * m->pixels;
    uint8_t *y = (uint8_t *)args->bindings[0] + tile.y * m->channels + first;
    int32_t *sums = args->scratch;
    memset(sums, 0, RT_QMEAN_CHANNELS * sizeof(*sums));
    if (m->channel == 1) {
        uk->rows_add_u8(sums, x + first, (size_t)m->pixels, m->pixel, (size_t)n);
    } else {
        for (int64_t c = 0; c < n; c++) {
            for (int64_t p = 0; p < m->pixels; p++) {
                sums[c] += x[(first + c) * m->channel + p * m->pixel];
            }
        }
    }
    for (int64_t c = 0; c < n; c++) {
        float v = __builtin_rintf((float)sums[c] * m->scale + m->bias);
        y[c] = (uint8_t)(v < m->min ? m->min : v > m->max ? m->max : v);
    }
}

static const struct hal_kernel mean_kernel = {
    .name = "mean_u8", .cpu = mean_cpu, .spirv = HAL_SPIRV(qmean_spirv)};

static enum status mean_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, MEAN_X), *out = rt_emit_out(emit, 0);
    int64_t plane = x->dims[0] * x->dims[1];
    struct rt_qmean m = {
        .channels = (uint32_t)x->dims[1],
        .tile = (uint32_t)rt_cut_block(rt_emit_machine(emit, &mean_kernel), plane, 1,
                                       RT_QMEAN_CHANNELS),
        .pixels = plane > 0 ? x->numel / plane : 0,
        .channel = x->strides[1],
        .pixel = x->strides[x->rank - 1],
        .bias = (float)rt_emit_number(emit, MEAN_BIAS),
        .min = (float)rt_emit_number(emit, MEAN_MIN),
        .max = (float)rt_emit_number(emit, MEAN_MAX),
    };
    m.scale = (float)(rt_emit_number(emit, MEAN_SCALE) / (double)m.pixels);
    struct hal_binding bindings[] = {out->binding, x->binding};
    struct hal_dispatch dispatch = {
        .kernel = &mean_kernel,
        .grid = {(m.channels + m.tile - 1) / m.tile, out->numel > 0 ? (uint32_t)x->dims[0] : 0, 1},
        .constants = &m,
        .constants_bytes = sizeof(m),
        .bindings = bindings,
        .binding_count = 2,
        .scratch_bytes = RT_QMEAN_CHANNELS * sizeof(int32_t),
        .cost = (uint64_t)x->numel / 8 + 1,
    };
    return rt_emit_dispatch(emit, &dispatch, err);
}

const struct rt_op rt_ops_qpointwise[] = {
    {"q_add", NULL, "TT?FFFFF>T", like_shape, add_emit, 0, RT_LAYOUT_ELEMENTWISE, NULL,
     rt_batch_each, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &runs_kernels[RT_QBYTES_ADD]},
    {"q_mul", NULL, "TTIIFFFF>T", like_shape, mul_emit, 0, RT_LAYOUT_ELEMENTWISE, NULL,
     rt_batch_each, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &runs_kernels[RT_QBYTES_MUL]},
    {"q_lookup", NULL, "TT>T", like_shape, lookup_emit, 0, RT_LAYOUT_ELEMENTWISE, NULL,
     rt_batch_each, .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &runs_kernels[RT_QBYTES_LOOKUP]},
    {"q_flip", NULL, "T>T", like_shape, flip_emit, 0, RT_LAYOUT_ELEMENTWISE, NULL, rt_batch_each,
     .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &runs_kernels[RT_QBYTES_FLIP]},
    {"q_mean", NULL, "TBFFFF>T", mean_shape, mean_emit, 0, RT_LAYOUT_ANY, NULL, rt_batch_each,
     .dtypes = 1u << DT_I8 | 1u << DT_U8, .runs = &mean_kernel},
    {0},
};
