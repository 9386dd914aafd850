/* SPDX-License-Identifier: MIT */
/*
 * Softmax and log-softmax along one dim.
 *
 * There are three paths. Rows (inner is 1) go one at a time through the micro-kernel, halves
 * through scratch. Otherwise blocks of neighbouring columns are computed together. Doubles take the
 * plain path. Sums run in double.
 */
#include "config.h"

#include "runtime/ops/along.h"

#include <math.h>

#include "base/check.h"
#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define SHORT 64 /* floats of a row */

/* ---- softmax of rows ----------------------------------------------------------------------- */

static float rounded(enum dtype dtype, float value)
{
    uint64_t element;

    rt_convert_store(RT_CLASS_F32, dtype)((char *)&element, 0, &value, 1);
    rt_convert_load(dtype, RT_CLASS_F32)(&value, (const char *)&element, 0, 1);
    return value;
}

/* A row of halves, computed as floats. PyTorch stores the sum and its logarithm as halves, so its
 * results are off by as much. |chunk| is scratch of RT_ALONG_COLUMNS floats. */
static void log_softmax_halves(const struct rt_along *k, float *x, float *chunk)
{
    float max = -INFINITY, sum = 0;

    for (int64_t i = 0; i < k->length; i++) {
        max = x[i] > max || x[i] != x[i] ? x[i] : max;
    }
    for (int64_t done = 0, n; done < k->length; done += n) {
        n = k->length - done < RT_ALONG_COLUMNS ? k->length - done : RT_ALONG_COLUMNS;
        for (int64_t i = 0; i < n; i++) {
            chunk[i] = x[done + i] - max;
        }
        hal_cpu_uk()->unary_f32[UK_EXP](chunk, chunk, (size_t)n);
        for (int64_t i = 0; i < n; i++) {
            sum += chunk[i];
        }
    }
    float log_sum = rounded(k->in, logf(rounded(k->in, sum)));
    for (int64_t i = 0; i < k->length; i++) {
        x[i] = x[i] - max - log_sum;
    }
}

static bool is_masked(const float *x, size_t n)
{
    return x[0] == -INFINITY && hal_cpu_uk()->max_f32(x, n) == -INFINITY;
}

static void softmax_row(const struct rt_along *k, char *y, const char *x, float *scratch)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    size_t n = (size_t)k->length;
    void (*softmax)(float *, const float *, size_t) =
        k->is_log ? uk->log_softmax_f32 : uk->softmax_f32;

    if (k->gives_zeros && is_masked((const float *)(const void *)x, n)) {
        memset(y, 0, n * sizeof(float));
        return;
    }
    if (k->in == DT_F32) {
        softmax((float *)(void *)y, (const float *)(const void *)x, n);
        return;
    }
    int64_t width = (int64_t)dtype_bytes(k->in);
    rt_convert_load(k->in, RT_CLASS_F32)(scratch, x, width, k->length);
    if (k->is_log) {
        log_softmax_halves(k, scratch, scratch + k->length);
    } else {
        softmax(scratch, scratch, n);
    }
    rt_convert_store(RT_CLASS_F32, k->in)(y, width, scratch, k->length);
}

/* Short rows of floats, several at a time, written from scratch. In place each row would wait until
 * the row before it has been stored: a processor knows only roughly where a masked store ends. */
static void softmax_short_rows(const struct rt_along *k, char *y, const char *x, int64_t rows,
                               float *scratch)
{
    size_t row = (size_t)k->length * sizeof(float);
    int64_t most = RT_ALONG_SCRATCH_FLOATS / k->length;

    for (int64_t count; rows > 0; rows -= count, x += (size_t)count * row) {
        count = rows < most ? rows : most;
        memcpy(scratch, x, (size_t)count * row);
        for (int64_t i = 0; i < count; i++, y += row) {
            softmax_row(k, y, (const char *)(scratch + i * k->length), NULL);
        }
    }
}

static void softmax_rows_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along *k = args->constants;
    int64_t bytes = k->length * (int64_t)dtype_bytes(k->in);
    int64_t first = tile.x * k->tile;
    int64_t end = k->outer - first < k->tile ? k->outer : first + k->tile;

    char *y = (char *)args->bindings[0] + first * bytes;
    const char *x = (const char *)args->bindings[1] + first * bytes;
    if (k->in == DT_F32 && k->length <= SHORT) {
        softmax_short_rows(k, y, x, end - first, args->scratch);
        return;
    }
    for (int64_t r = first; r < end; r++, y += bytes, x += bytes) {
        softmax_row(k, y, x, args->scratch);
    }
}

static const struct hal_kernel rows_kernel = {
    .name = "softmax_rows", .cpu = softmax_rows_tile, .spirv = HAL_SPIRV_SUBGROUPS(softmax, 256)};

/* ---- softmax of columns -------------------------------------------------------------------- */

struct columns {
    const struct rt_along *k;
    char *y;
    const char *x; /* the first row's first column */
    size_t n;
    int64_t row_bytes, width;
    rt_load_f *load;
    rt_store_f *store;
    float *max, *sum, *row;
};

/* Where all of a column is -inf, e^(x - 0) / 1 is 0. */
static void replace_infinite(const struct columns *c)
{
    for (size_t j = 0; j < c->n; j++) {
        bool is_masked = c->max[j] == -INFINITY;
        c->max[j] = is_masked ? 0 : c->max[j];
        c->sum[j] = is_masked ? 1 : 0;
    }
}

/* Row |r| minus the maximum of each column, into c->row. */
static void load_shifted(const struct columns *c, int64_t r)
{
    c->load(c->row, c->x + r * c->row_bytes, c->width, (int64_t)c->n);
    hal_cpu_uk()->binary_f32[UK_SUB](c->row, c->row, c->max, c->n);
}

static void softmax_columns(const struct columns *c)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();

    for (size_t j = 0; j < c->n; j++) {
        c->max[j] = -INFINITY;
        c->sum[j] = 0;
    }
    for (int64_t r = 0; r < c->k->length; r++) {
        c->load(c->row, c->x + r * c->row_bytes, c->width, (int64_t)c->n);
        uk->binary_f32[UK_MAX](c->max, c->max, c->row, c->n);
    }
    if (c->k->gives_zeros) {
        replace_infinite(c);
    }
    for (int64_t r = 0; r < c->k->length; r++) {
        load_shifted(c, r);
        uk->unary_f32[UK_EXP](c->row, c->row, c->n);
        uk->binary_f32[UK_ADD](c->sum, c->sum, c->row, c->n);
    }
    if (c->k->is_log) {
        uk->unary_f32[UK_LOG](c->sum, c->sum, c->n);
    }
    /* Computes the exponential again: cheaper than another pass over memory, and halves are rounded
     * once. */
    for (int64_t r = 0; r < c->k->length; r++) {
        load_shifted(c, r);
        if (c->k->is_log) {
            uk->binary_f32[UK_SUB](c->row, c->row, c->sum, c->n);
        } else {
            uk->unary_f32[UK_EXP](c->row, c->row, c->n);
            uk->binary_f32[UK_DIV](c->row, c->row, c->sum, c->n);
        }
        c->store(c->y + r * c->row_bytes, c->width, c->row, (int64_t)c->n);
    }
}

static void softmax_columns_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along *k = args->constants;
    int64_t width = (int64_t)dtype_bytes(k->in), all = k->outer * k->inner;
    int64_t at = tile.x * k->tile, end = all - at < k->tile ? all : at + k->tile;
    float *scratch = args->scratch;

    while (at < end) {
        int64_t outer = at / k->inner, first = at % k->inner, n = k->inner - first;
        n = n < end - at ? n : end - at;
        n = n < RT_ALONG_COLUMNS ? n : RT_ALONG_COLUMNS;
        int64_t begin = (outer * k->length * k->inner + first) * width;
        softmax_columns(&(struct columns){
            .k = k,
            .y = (char *)args->bindings[0] + begin,
            .x = (const char *)args->bindings[1] + begin,
            .n = (size_t)n,
            .row_bytes = k->inner * width,
            .width = width,
            .load = rt_convert_load(k->in, RT_CLASS_F32),
            .store = rt_convert_store(RT_CLASS_F32, k->in),
            .max = scratch,
            .sum = scratch + RT_ALONG_COLUMNS,
            .row = scratch + 2 * RT_ALONG_COLUMNS,
        });
        at += n;
    }
}

static const struct hal_kernel softmax_columns_kernel = {.name = "softmax_columns",
                                                         .cpu = softmax_columns_tile,
                                                         .spirv =
                                                             HAL_SPIRV_SUBGROUPS(softmax, 256)};

/* ---- softmax of doubles -------------------------------------------------------------------- */

static void softmax_f64(const struct rt_along *k, double *y, const double *x)
{
    int64_t step = k->inner, end = k->length * k->inner;
    double max = -INFINITY, sum = 0;

    for (int64_t i = 0; i < end; i += step) {
        max = x[i] > max || x[i] != x[i] ? x[i] : max;
    }
    for (int64_t i = 0; i < end; i += step) {
        sum += exp(x[i] - max);
    }
    for (int64_t i = 0; i < end; i += step) {
        y[i] = k->is_log ? x[i] - max - log(sum) : exp(x[i] - max) / sum;
    }
}

static void softmax_f64_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along *k = args->constants;
    int64_t all = k->outer * k->inner, first = tile.x * k->tile;
    int64_t end = all - first < k->tile ? all : first + k->tile;

    for (int64_t i = first; i < end; i++) {
        int64_t begin = i / k->inner * k->length * k->inner + i % k->inner;
        softmax_f64(k, (double *)args->bindings[0] + begin,
                    (const double *)args->bindings[1] + begin);
    }
}

static const struct hal_kernel softmax_f64_kernel = {.name = "softmax_f64",
                                                     .cpu = softmax_f64_tile};

/* ---- the operators ------------------------------------------------------------------------- */

static enum status softmax_shape(struct rt_shape_call *call)
{
    if (rt_shape_arg(call, 2)->b) {
        return rt_shape_unsupported(call, "halves to float on the way");
    }
    return rt_along_shape(call, 1u << rt_shape_arg(call, 0)->dtype);
}

/* The softmax of floats. It takes a row without a finite number for a row that a mask hides. */
static enum status masked_shape(struct rt_shape_call *call)
{
    return rt_along_shape(call, 1u << DT_F32);
}

static enum status emit_along(struct rt_emit *emit, struct rt_along along, struct error *err)
{
    const struct hal_kernel *kernel = &softmax_columns_kernel;
    int64_t count = along.outer * along.inner;
    if (along.in == DT_F64) {
        kernel = &softmax_f64_kernel;
    } else if (along.inner == 1 && /* longer rows of halves: columns, one wide */
               (along.in == DT_F32 || along.length <= RT_ALONG_ROW_MAX)) {
        kernel = &rows_kernel;
    }
    return rt_along_dispatch(emit, kernel, &along, count, err);
}

static enum status softmax_emit(struct rt_emit *emit, struct error *err)
{
    return emit_along(emit, rt_along_of(emit), err);
}

static enum status log_softmax_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along along = rt_along_of(emit);
    along.is_log = true;
    return emit_along(emit, along, err);
}

static enum status softmax_masked_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along along = rt_along_of(emit);
    along.gives_zeros = true;
    return emit_along(emit, along, err);
}

const struct rt_op rt_ops_softmax[] = {
    {.name = "softmax",
     .kernels = "aten::_softmax.out",
     .args = "TIB>T",
     .shape = softmax_shape,
     .emit = softmax_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_along,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rows_kernel},
    {.name = "log_softmax",
     .kernels = "aten::_log_softmax.out",
     .args = "TIB>T",
     .shape = softmax_shape,
     .emit = log_softmax_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_along,
     .dtypes = RT_DTYPES_FLOAT,
     .runs = &rows_kernel},
    {.name = "softmax_masked",
     .args = "TI>T",
     .shape = masked_shape,
     .emit = softmax_masked_emit,
     .flags = RT_OP_IN_PLACE,
     .batch = rt_batch_along,
     .dtypes = 1u << DT_F32,
     .runs = &rows_kernel},
    {.name = NULL},
};
