/* SPDX-License-Identifier: MIT */
/*
 * Fourier transforms. The file's forms, of several dims, have no kernels. The lower pass replaces
 * each with one "fft" for every dim and a table ("fft_table") that depends on the length alone and
 * is folded.
 *
 * Lines of one dim are gathered into lanes, transformed (base/fft.h) and scattered. Real numbers
 * count as complex ones without an imaginary part; the half spectrum of real numbers is completed
 * by its mirror image. A tile is some lines.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "base/fft.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/fft.h"
#include "runtime/ops/op.h"

#define LANES_MAX 16
#define WORK_BYTES                                                                                 \
    (256 * 1024) /* bytes of the four arrays, when several lanes are transformed together */
#define WORK_BYTES_MAX ((int64_t)16 << 20)
#define LENGTH_MAX (1 << 24)

/* ---- tables ---------------------------------------------------------------------------------- */

struct table_constants {
    struct fft_scheme scheme;
    enum dtype dtype;
};

static void table_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct table_constants *c = args->constants;
    int64_t count = fft_table_count(&c->scheme);
    double *table = args->scratch;
    (void)tile;

    fft_table(&c->scheme, table, table + count);
    rt_convert_store(RT_CLASS_F64, c->dtype)(args->bindings[0], (int64_t)dtype_bytes(c->dtype),
                                             table, count);
}

static const struct hal_kernel kernel_table = {.name = "fft_table", .cpu = table_tile};

/* The output has fft_table_count() elements for the given length. */
static enum status table_shape(struct rt_shape_call *call)
{
    int64_t n;

    TRY(rt_shape_need_const(call, 0, &n));
    if (n < 1 || n > LENGTH_MAX) {
        return rt_shape_refuse(call, "a transform of %" PRId64 " numbers, expected 1 to %d", n,
                               LENGTH_MAX);
    }
    struct fft_scheme scheme = fft_scheme(n);
    if (fft_work_count(&scheme) * 4 * (int64_t)sizeof(double) > WORK_BYTES_MAX / 2) {
        return rt_shape_unsupported(call, "a transform of %" PRId64 " numbers is too large", n);
    }
    struct rt_dim count = rt_dim_of(fft_table_count(&scheme));
    return rt_shape_set_out(call, 0, 1, &count);
}

static enum status table_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    struct table_constants c = {fft_scheme(rt_emit_int(emit, 0)), out->dtype};
    int64_t elements = out->numel + 4 * fft_work_count(&c.scheme);

    return rt_emit_dispatch(emit,
                            &(struct hal_dispatch){
                                .kernel = &kernel_table,
                                .grid = {1, 1, 1},
                                .constants = &c,
                                .constants_bytes = sizeof(c),
                                .bindings = (struct hal_binding[]){out->binding},
                                .binding_count = 1,
                                .scratch_bytes = (size_t)elements * sizeof(double),
                                .cost = (uint64_t)elements * 20,
                            },
                            err);
}

/* ---- one dim --------------------------------------------------------------------------------- */

struct fft_constants {
    struct fft_scheme scheme;
    enum rt_fft_mode mode;
    bool is_inverse;
    int64_t in, out;     /* numbers of a line */
    int64_t inner;       /* neighbouring lines, whose numbers are interleaved */
    int64_t lines, tile; /* lines of a tile, a multiple of lanes */
    int64_t lanes;
    double scale;
};

/* The first number of line |line|, in a tensor with |length| numbers a line. */
static int64_t first_of(const struct fft_constants *c, int64_t line, int64_t length)
{
    return line / c->inner * length * c->inner + line % c->inner;
}

/* A type holds |parts| numbers an element: 1 real, 2 complex. */
#define DEFINE_LINES(type, suffix)                                                                 \
    static void gather_##suffix(const struct fft_constants *c, const type *x, int64_t line,        \
                                int64_t lanes, type *re, type *im)                                 \
    {                                                                                              \
        int64_t parts = c->mode == RT_FFT_FROM_REAL ? 1 : 2;                                       \
        for (int64_t v = 0; v < lanes; v++) {                                                      \
            const type *from = x + parts * first_of(c, line + v, c->in);                           \
            for (int64_t k = 0; k < c->in; k++) {                                                  \
                re[k * lanes + v] = from[parts * k * c->inner];                                    \
                im[k * lanes + v] = parts == 2 ? from[parts * k * c->inner + 1] : 0;               \
            }                                                                                      \
            /* The spectrum of real numbers is its own mirror image. */                            \
            for (int64_t k = c->in; k < c->scheme.n; k++) {                                        \
                re[k * lanes + v] = re[(c->scheme.n - k) * lanes + v];                             \
                im[k * lanes + v] = -im[(c->scheme.n - k) * lanes + v];                            \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void scatter_##suffix(const struct fft_constants *c, type *y, int64_t line,             \
                                 int64_t lanes, const type *re, const type *im)                    \
    {                                                                                              \
        int64_t parts = c->mode == RT_FFT_TO_REAL ? 1 : 2;                                         \
        const type scale = (type)c->scale;                                                         \
        for (int64_t v = 0; v < lanes; v++) {                                                      \
            type *to = y + parts * first_of(c, line + v, c->out);                                  \
            for (int64_t k = 0; k < c->out; k++) {                                                 \
                to[parts * k * c->inner] = re[k * lanes + v] * scale;                              \
                if (parts == 2) {                                                                  \
                    to[parts * k * c->inner + 1] = im[k * lanes + v] * scale;                      \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    /* Bindings: out, in, table. */                                                                \
    static void fft_tile_##suffix(const struct hal_args *args, struct hal_tile tile)               \
    {                                                                                              \
        const struct fft_constants *c = args->constants;                                           \
        int64_t first = tile.x * c->tile, behind = rt_min(first + c->tile, c->lines);              \
        int64_t size = fft_work_count(&c->scheme) * c->lanes;                                      \
        type *space = args->scratch;                                                               \
        for (int64_t line = first; line < behind; line += c->lanes) {                              \
            int64_t lanes = rt_min(c->lanes, behind - line);                                       \
            type *work[4] = {space, space + size, space + 2 * size, space + 3 * size};             \
            uint32_t re = c->is_inverse ? 1 : 0, im = 1 - re;                                      \
            gather_##suffix(c, args->bindings[1], line, lanes, work[re], work[im]);                \
            fft_##suffix(&c->scheme, args->bindings[2], lanes, work);                              \
            scatter_##suffix(c, args->bindings[0], line, lanes, work[re], work[im]);               \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static const struct hal_kernel kernel_fft_##suffix = {.name = "fft_" #suffix,                  \
                                                          .cpu = fft_tile_##suffix};
DEFINE_LINES(float, f32)
DEFINE_LINES(double, f64)

/* x, table, dim, mode, inverse, length, numbers of an output line, scale. The lower pass makes this
 * operator from a node that has been checked. */
static enum status fft_shape(struct rt_shape_call *call)
{
    const struct rt_value *x = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < x->rank; d++) {
        out[d] = x->dims[d];
    }
    out[rt_shape_arg(call, 2)->i.value] = rt_shape_arg(call, 6)->i;
    return rt_shape_set_out(call, 0, x->rank, out);
}

static enum status fft_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, 0), *table = rt_emit_arg(emit, 1);
    const struct rt_tensor *out = rt_emit_out(emit, 0);
    int64_t dim = rt_emit_int(emit, 2), element = (int64_t)dtype_bytes(table->dtype);
    struct fft_constants c = {
        .scheme = fft_scheme(rt_emit_int(emit, 5)),
        .mode = (enum rt_fft_mode)rt_emit_int(emit, 3),
        .is_inverse = rt_emit_value(emit, 4)->b,
        .in = x->dims[dim],
        .out = out->dims[dim],
        .inner = x->strides[dim],
        .scale = rt_emit_number(emit, 7),
    };

    if (out->numel == 0) {
        return ST_OK;
    }
    c.inner = 1;
    for (int64_t d = dim + 1; d < out->rank; d++) {
        c.inner *= out->dims[d];
    }
    c.lines = out->numel / c.out;
    int64_t line_bytes = 4 * element * fft_work_count(&c.scheme);
    c.lanes = rt_max(1, rt_min(rt_min(LANES_MAX, c.lines), WORK_BYTES / line_bytes));
    const struct hal_kernel *kernel = table->dtype == DT_F64 ? &kernel_fft_f64 : &kernel_fft_f32;
    c.tile = c.lanes * rt_cut_things(rt_emit_machine(emit, kernel), RT_WORK_ELEMENTS,
                                     (c.lines - 1) / c.lanes + 1, c.scheme.m * c.lanes, c.scheme.m);
    return rt_emit_tiles(
        emit, c.lines, c.tile,
        &(struct hal_dispatch){
            .kernel = kernel,
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, x->binding, table->binding},
            .binding_count = 3,
            .scratch_bytes = (size_t)(line_bytes * c.lanes),
            .cost = (uint64_t)(c.lines * c.scheme.m) * c.scheme.factor_count,
        },
        err);
}

/* ---- the file's forms ------------------------------------------------------------------------ */

/* Dims to transform, without repetition; the last of them is the one whose length changes. */
static enum status check_dims(struct rt_shape_call *call, uint8_t *out_last)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *list = rt_shape_arg(call, 1);
    uint32_t seen = 0;

    if (list->count == 0 || self->rank == 0) {
        return rt_shape_refuse(call, "the list of dims is empty");
    }
    for (uint32_t i = 0; i < list->count; i++) {
        if (!rt_dim_is_const(list->ints[i])) {
            return rt_shape_unsupported(call, "the dims must not depend on the inputs");
        }
        TRY(rt_shape_need_dim(call, list->ints[i].value, self->rank, out_last));
        if (seen >> *out_last & 1) {
            return rt_shape_refuse(call, "dim %u is listed twice", *out_last);
        }
        seen |= 1u << *out_last;
        if (!rt_dim_is_const(self->dims[*out_last])) {
            return rt_shape_unsupported(
                call, "the length of the transform must not depend on the inputs' dims");
        }
    }
    int64_t normalization = 0;
    TRY(rt_shape_need_const(call, 2, &normalization));
    return normalization >= 0 && normalization <= 2
               ? ST_OK
               : rt_shape_refuse(call, "normalization %" PRId64 ", expected 0 to 2", normalization);
}

static enum status set_length(struct rt_shape_call *call, uint8_t dim, int64_t length)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct rt_dim out[SHAPE_RANK_MAX];

    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = d == dim ? rt_dim_of(length) : self->dims[d];
    }
    return rt_shape_set_out(call, 0, self->rank, out);
}

static enum status r2c_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t dim;

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_complex(self->dtype)));
    TRY(check_dims(call, &dim));
    int64_t length = self->dims[dim].value;
    return set_length(call, dim, rt_shape_arg(call, 3)->b ? length / 2 + 1 : length);
}

static enum status c2r_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    int64_t length;
    uint8_t dim;

    TRY(rt_shape_need_out_dtype(call, 0, 1u << rt_convert_part(self->dtype)));
    TRY(check_dims(call, &dim));
    TRY(rt_shape_need_const(call, 3, &length));
    if (length < 1 || self->dims[dim].value != length / 2 + 1) {
        return rt_shape_refuse(call,
                               "a spectrum does not give %" PRId64 " numbers if it has %" PRId64,
                               length, self->dims[dim].value);
    }
    return set_length(call, dim, length);
}

static enum status c2c_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t dim;

    TRY(rt_shape_need_out_dtype(call, 0, 1u << self->dtype));
    TRY(check_dims(call, &dim));
    return rt_shape_set_out(call, 0, self->rank, self->dims);
}

const struct rt_op rt_ops_fft[] = {
    {.name = "fft_r2c",
     .kernels = "aten::_fft_r2c.out",
     .args = "TLIB>T",
     .shape = r2c_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = 1u << DT_F32 | 1u << DT_F64,
     .becomes = "fft"},
    {.name = "fft_c2r",
     .kernels = "aten::_fft_c2r.out",
     .args = "TLII>T",
     .shape = c2r_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = 1u << DT_C64 | 1u << DT_C128,
     .becomes = "fft"},
    {.name = "fft_c2c",
     .kernels = "aten::_fft_c2c.out",
     .args = "TLIB>T",
     .shape = c2c_shape,
     .flags = RT_OP_COMPLEX,
     .dtypes = 1u << DT_C64 | 1u << DT_C128,
     .becomes = "fft"},
    {.name = "fft_table",
     .args = "I>T",
     .shape = table_shape,
     .emit = table_emit,
     .dtypes = 1u << DT_F32 | 1u << DT_F64,
     .runs = &kernel_table},
    {.name = "fft",
     .args = "TTIIBIIF>T",
     .shape = fft_shape,
     .emit = fft_emit,
     .flags = RT_OP_COMPLEX,
     .dtypes = 1u << DT_F32 | 1u << DT_F64 | 1u << DT_C64 | 1u << DT_C128,
     .runs = &kernel_fft_f32},
    {.name = NULL},
};
