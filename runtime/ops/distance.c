/* SPDX-License-Identifier: MIT */
/*
 * Distances between vectors in a p-norm: from every row of one matrix to every row of another
 * (cdist), and between all pairs of rows of one matrix (pdist). A chunk of coordinates at a time is
 * summed in several parallel sums, which vectorises; half-precision inputs are converted chunk by
 * chunk.
 *
 * A tile is some rows of the first matrix, for cdist within one batch entry. The norm of an empty
 * vector is 0.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/distance.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define CHUNK 512
#define LANES 16 /* parallel sums */

/* ---- one distance --------------------------------------------------------------------------- */

/* Adds each coordinate's part to one of LANES sums; |expr| uses the difference d. */
#define EACH(type, expr, join)                                                                     \
    for (int64_t i = 0; i < n; i++) {                                                              \
        type d = fabs(a[i] - b[i]), part = (expr), *sum = &sums[i % LANES];                        \
        *sum = join;                                                                               \
    }

#define DEFINE_DISTANCE(type, suffix, class)                                                       \
    static void fold_##suffix(const struct rt_distance_constants *c, type sums[LANES],             \
                              const type *a, const type *b, int64_t n)                             \
    {                                                                                              \
        const type p = (type)c->p;                                                                 \
        switch (c->norm) {                                                                         \
        case RT_DISTANCE_NONZERO:                                                                  \
            EACH(type, d != 0, *sum + part)                                                        \
            break;                                                                                 \
        case RT_DISTANCE_1:                                                                        \
            EACH(type, d, *sum + part)                                                             \
            break;                                                                                 \
        case RT_DISTANCE_2:                                                                        \
            EACH(type, d *d, *sum + part)                                                          \
            break;                                                                                 \
        case RT_DISTANCE_MAX:                                                                      \
            EACH(type, d, part > *sum || part != part ? part : *sum)                               \
            break;                                                                                 \
        case RT_DISTANCE_P:                                                                        \
            EACH(type, pow(d, p), *sum + part)                                                     \
            break;                                                                                 \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static type finish_##suffix(const struct rt_distance_constants *c, const type sums[LANES])     \
    {                                                                                              \
        type all = sums[0];                                                                        \
        for (int i = 1; i < LANES; i++) {                                                          \
            if (c->norm == RT_DISTANCE_MAX) {                                                      \
                all = sums[i] > all || sums[i] != sums[i] ? sums[i] : all;                         \
            } else {                                                                               \
                all += sums[i];                                                                    \
            }                                                                                      \
        }                                                                                          \
        return c->norm == RT_DISTANCE_2   ? sqrt(all)                                              \
               : c->norm == RT_DISTANCE_P ? pow(all, (type)(1 / c->p))                             \
                                          : all;                                                   \
    }                                                                                              \
                                                                                                   \
    static void distance_##suffix(const struct rt_distance_constants *c, char *out, const char *a, \
                                  const char *b)                                                   \
    {                                                                                              \
        int64_t width = (int64_t)dtype_bytes(c->dtype);                                            \
        type sums[LANES] = {0}, x[CHUNK], y[CHUNK], result;                                        \
        for (int64_t at = 0; at < c->coordinates; at += CHUNK) {                                   \
            int64_t n = rt_min(CHUNK, c->coordinates - at);                                        \
            const void *from_a = a + at * width, *from_b = b + at * width;                         \
            if (!rt_convert_is_direct(class, c->dtype)) {                                          \
                rt_convert_load(c->dtype, class)(x, from_a, width, n);                             \
                rt_convert_load(c->dtype, class)(y, from_b, width, n);                             \
                from_a = x;                                                                        \
                from_b = y;                                                                        \
            }                                                                                      \
            fold_##suffix(c, sums, from_a, from_b, n);                                             \
        }                                                                                          \
        result = finish_##suffix(c, sums);                                                         \
        rt_convert_store(class, c->dtype)(out, width, &result, 1);                                 \
    }
DEFINE_DISTANCE(float, f32, RT_CLASS_F32)
DEFINE_DISTANCE(double, f64, RT_CLASS_F64)

/* ---- the kernel ----------------------------------------------------------------------------- */

/* Number of vectors in front of batch |batch| of operand |side|. */
static int64_t batch_offset(const struct rt_distance_constants *c, int side, int64_t batch)
{
    int64_t offset = 0;

    for (uint32_t d = c->batch_rank; d-- > 0;) {
        offset += batch % c->batch[d] * c->strides[side][d];
        batch /= c->batch[d];
    }
    return offset;
}

/* Bindings: out, rows, columns. Tile y is the batch. */
static void distance_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_distance_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype), vector = c->coordinates * width;
    int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->rows);
    const char *a = (const char *)args->bindings[1] + batch_offset(c, 0, tile.y) * vector;
    const char *b = (const char *)args->bindings[2] + batch_offset(c, 1, tile.y) * vector;
    char *out = (char *)args->bindings[0] + tile.y * c->rows * c->columns * width;
    bool is_double = rt_convert_class(c->dtype) == RT_CLASS_F64;

    for (int64_t r = first; r < behind; r++) {
        int64_t column = c->is_pairs ? r + 1 : 0;
        int64_t at = c->is_pairs ? r * (2 * c->rows - r - 1) / 2 : r * c->columns;
        for (; column < c->columns; column++, at++) {
            (is_double ? distance_f64 : distance_f32)(c, out + at * width, a + r * vector,
                                                      b + column * vector);
        }
    }
}

static const struct hal_kernel kernel_distance = {
    .name = "distance", .cpu = distance_tile, .spirv = HAL_SPIRV(distance_spirv)};
static const struct hal_kernel kernel_f64 = {.name = "distance", .cpu = distance_tile};

/* ---- the operators -------------------------------------------------------------------------- */

static enum status need_norm(struct rt_shape_call *call, uint32_t index)
{
    double p = rt_value_number(rt_shape_arg(call, index));

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_shape_arg(call, 0)->dtype));
    return p >= 0 ? ST_OK : rt_shape_refuse(call, "a norm of %g, expected 0 or more", p);
}

static enum status cdist_shape(struct rt_shape_call *call)
{
    const struct rt_value *a = rt_shape_arg(call, 0), *b = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t rank;

    TRY(need_norm(call, 2));
    TRY(rt_shape_need_dtype(call, 1, 1u << a->dtype));
    if (a->rank < 2 || b->rank < 2) {
        return rt_shape_refuse(call, "ranks %u and %u, expected 2 or more", a->rank, b->rank);
    }
    TRY(rt_dim_require_equal(&call->graph->dims, a->dims[a->rank - 1], b->dims[b->rank - 1],
                             "coordinates of a vector (must be equal)", call->err));
    TRY(rt_shape_broadcast(call, a->rank - 2, a->dims, b->rank - 2, b->dims, out, &rank));
    out[rank] = a->dims[a->rank - 2];
    out[rank + 1] = b->dims[b->rank - 2];
    return rt_shape_set_out(call, 0, rank + 2, out);
}

static enum status pdist_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dims *dims = &call->graph->dims;

    TRY(need_norm(call, 1));
    if (self->rank != 2) {
        return rt_shape_refuse(call, "rank %u, expected 2", self->rank);
    }
    struct rt_dim n = self->dims[0];
    struct rt_dim twice = rt_dim_mul(dims, n, rt_dim_sub(dims, n, rt_dim_of(1)));
    struct rt_dim pairs = rt_dim_floordiv(dims, twice, rt_dim_of(2));
    return rt_shape_set_out(call, 0, 1, &pairs);
}

static enum rt_distance_norm norm_of(double p)
{
    return p == 0          ? RT_DISTANCE_NONZERO
           : p == 1        ? RT_DISTANCE_1
           : p == 2        ? RT_DISTANCE_2
           : p == INFINITY ? RT_DISTANCE_MAX
                           : RT_DISTANCE_P;
}

static void add_batch(struct rt_distance_constants *c, int side, const struct rt_tensor *tensor)
{
    uint32_t own = tensor->rank - 2u, skip = c->batch_rank - own;
    int64_t vectors = tensor->dims[tensor->rank - 2];

    for (uint32_t d = own; d-- > 0; vectors *= tensor->dims[d]) {
        c->strides[side][skip + d] = tensor->dims[d] == 1 ? 0 : vectors;
    }
}

static enum status record(struct rt_emit *emit, struct rt_distance_constants *c, int64_t batches,
                          const struct hal_binding bindings[3], struct error *err)
{
    int64_t row = rt_max(1, c->coordinates) * c->columns;

    c->norm = norm_of(c->p);
    int64_t macs = (c->norm == RT_DISTANCE_P ? 16 : 1) * row;
    const struct hal_kernel *kernel = c->dtype == DT_F64 ? &kernel_f64 : &kernel_distance;
    c->tile = rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_MACS, batches * c->rows, macs,
                            c->columns);
    int64_t tiles = (c->rows - 1) / c->tile + 1;
    must(tiles <= UINT32_MAX && batches <= UINT32_MAX);
    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = kernel,
                                .grid = {(uint32_t)tiles, (uint32_t)batches, 1},
                                .constants = c,
                                .constants_bytes = sizeof(*c),
                                .bindings = bindings,
                                .binding_count = 3,
                                .cost = (uint64_t)(batches * c->rows * row) / 4,
                            },
                            err);
}

static enum status cdist_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *a = rt_emit_arg(emit, 0), *b = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct rt_distance_constants c = {
        .dtype = a->dtype,
        .p = rt_emit_number(emit, 2),
        .coordinates = a->dims[a->rank - 1],
        .rows = a->dims[a->rank - 2],
        .columns = b->dims[b->rank - 2],
        .batch_rank = out->rank - 2,
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    memcpy(c.batch, out->dims, c.batch_rank * sizeof(c.batch[0]));
    add_batch(&c, 0, a);
    add_batch(&c, 1, b);
    return record(emit, &c, out->numel / (c.rows * c.columns),
                  (struct hal_binding[]){out->binding, a->binding, b->binding}, err);
}

static enum status pdist_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct rt_distance_constants c = {
        .dtype = self->dtype,
        .p = rt_emit_number(emit, 1),
        .coordinates = self->dims[1],
        .rows = self->dims[0],
        .columns = self->dims[0],
        .is_pairs = true,
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    return record(emit, &c, 1, (struct hal_binding[]){out->binding, self->binding, self->binding},
                  err);
}

const struct rt_op rt_ops_distance[] = {
    {.name = "cdist",
     .kernels = "aten::_cdist_forward.out",
     .args = "TTFI?>T",
     .shape = cdist_shape,
     .emit = cdist_emit,
     .batch = rt_batch_matrices,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &kernel_distance},
    {.name = "pdist",
     .kernels = "aten::_pdist_forward.out",
     .args = "TF>T",
     .shape = pdist_shape,
     .emit = pdist_emit,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &kernel_distance},
    {.name = NULL},
};
