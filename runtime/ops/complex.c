/* SPDX-License-Identifier: MIT */
/* Operators of complex numbers outside the other families: views as pairs of reals, and matrix
 * products. Elements are read and written through their class, a pair of doubles. */
#include "config.h"

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

/* ---- pairs ----------------------------------------------------------------------------------- */

static enum status view_as_real_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_part(self->dtype)));
    TRY(rt_view_rank(call, self->rank + 1u));
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = self->dims[d];
    }
    out[self->rank] = rt_dim_of(2);
    return rt_shape_set_out(call, 0, self->rank + 1, out);
}

/* The last dim, of two, becomes the parts of one number. */
static enum status view_as_complex_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_complex(self->dtype)));
    if (self->rank == 0) {
        return rt_shape_refuse(call, "expected a last dim of 2, got a scalar");
    }
    TRY(rt_dim_require_equal(&call->graph->dims, self->dims[self->rank - 1], rt_dim_of(2),
                             "the parts of a number", call->err));
    return rt_shape_set_out(call, 0, self->rank - 1, self->dims);
}

/* Two tensors of reals, broadcast: the parts of numbers, or their sizes and angles. */
static enum status of_two_shape(struct rt_shape_call *call)
{
    const struct rt_value *a = rt_shape_arg(call, 0), *b = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t rank;

    TRY(rt_shape_need_dtype(call, 1, 1u << a->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_complex(a->dtype)));
    TRY(rt_shape_broadcast(call, a->rank, a->dims, b->rank, b->dims, out, &rank));
    TRY(rt_view_rank(call, rank + 1u));
    return rt_shape_set_out(call, 0, rank, out);
}

static enum status angle_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_part(self->dtype)));
    TRY(rt_view_rank(call, self->rank + 1u));
    return rt_shape_set_out(call, 0, self->rank, self->dims);
}

/* ---- products -------------------------------------------------------------------------------- */

#define COLUMNS 64 /* of a tile */

struct product_constants {
    enum dtype dtype;
    int64_t m, k, n;
};

struct number {
    double re, im;
};

/* One row times |columns| columns: sums += a[k] * b[k][..]. */
static void product_row(const struct product_constants *c, const char *a, const char *b,
                        int64_t columns, struct number *sums)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype);
    struct number row[COLUMNS], x;

    for (int64_t j = 0; j < columns; j++) {
        sums[j] = (struct number){0, 0};
    }
    for (int64_t k = 0; k < c->k; k++) {
        rt_convert_load(c->dtype, RT_CLASS_C128)(&x, a + k * width, width, 1);
        rt_convert_load(c->dtype, RT_CLASS_C128)(row, b + k * c->n * width, width, columns);
        for (int64_t j = 0; j < columns; j++) {
            sums[j].re += x.re * row[j].re - x.im * row[j].im;
            sums[j].im += x.re * row[j].im + x.im * row[j].re;
        }
    }
}

/* Bindings: out, a, b. A tile is some columns of one row. Grid: x columns, y rows, z matrices. */
static void product_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct product_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype), first = (int64_t)tile.x * COLUMNS;
    int64_t row = tile.z * c->m + tile.y;
    struct number sums[COLUMNS];

    int64_t columns = rt_min(COLUMNS, c->n - first);
    product_row(c, (const char *)args->bindings[1] + row * c->k * width,
                (const char *)args->bindings[2] + (tile.z * c->k * c->n + first) * width, columns,
                sums);
    rt_convert_store(RT_CLASS_C128, c->dtype)(
        (char *)args->bindings[0] + (row * c->n + first) * width, width, sums, columns);
}

static const struct hal_kernel kernel_product = {.name = "product_complex", .cpu = product_tile};

/*
 * [.., m, k] x [.., k, n]. The lower pass makes this operator from products that have been checked.
 */
static enum status product_shape(struct rt_shape_call *call)
{
    const struct rt_value *a = rt_shape_arg(call, 0), *b = rt_shape_arg(call, 1);
    struct rt_dim out[3] = {a->dims[0], a->dims[a->rank - 2]};

    out[a->rank - 1] = b->dims[b->rank - 1];
    return rt_shape_set_out(call, 0, a->rank, out);
}

static enum status product_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *a = rt_emit_arg(emit, 0), *b = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    uint8_t rows = a->rank - 2, columns = a->rank - 1;
    struct product_constants c = {a->dtype, a->dims[rows], a->dims[columns], b->dims[columns]};
    int64_t matrices = a->rank == 3 ? a->dims[0] : 1;

    must(c.m <= UINT32_MAX && matrices <= UINT32_MAX);
    return rt_emit_dispatch(
        emit,
        &(struct hal_dispatch){
            .kernel = &kernel_product,
            .grid = {(uint32_t)((c.n + COLUMNS - 1) / COLUMNS), (uint32_t)c.m, (uint32_t)matrices},
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, a->binding, b->binding},
            .binding_count = 3,
            .cost = (uint64_t)(out->numel * c.k),
        },
        err);
}

const struct rt_op rt_ops_complex[] = {
    {.name = "view_as_real",
     .kernels = "aten::view_as_real_copy.out",
     .args = "T>T",
     .shape = view_as_real_shape,
     .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_COMPLEX},
    {.name = "view_as_complex",
     .kernels = "aten::view_as_complex_copy.out",
     .args = "T>T",
     .shape = view_as_complex_shape,
     .flags = RT_OP_VIEW | RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_FLOAT & ~(1u << DT_BF16)},
    {.name = "complex",
     .kernels = "aten::complex.out",
     .args = "TT>T",
     .shape = of_two_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_FLOAT & ~(1u << DT_BF16),
     .becomes = "view_as_complex"},
    {.name = "polar",
     .kernels = "aten::polar.out",
     .args = "TT>T",
     .shape = of_two_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = 1u << DT_F32 | 1u << DT_F64,
     .becomes = "view_as_complex"},
    {.name = "angle",
     .kernels = "aten::angle.out",
     .args = "T>T",
     .shape = angle_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_COMPLEX,
     .becomes = "atan2"},
    {.name = "product_complex",
     .args = "TT>T",
     .shape = product_shape,
     .emit = product_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = RT_DTYPES_COMPLEX,
     .runs = &kernel_product},
    {.name = NULL},
};
