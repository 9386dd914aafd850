/* SPDX-License-Identifier: MIT */
/*
 * The kernels of the normalisations. All of them see a tensor as rows that share a mean and a
 * variance, and each row as runs of contiguous elements: in a layer norm the whole row, in a group
 * norm a channel's pixels, in a batch norm a channel's pixels in one image of the batch.
 *
 * Floats and converted halves are summed in chunks, the chunks in double. The variance is computed
 * from differences to the mean, never as a difference of squares.
 */
#include "config.h"

#include "runtime/ops/norm.h"

#include <math.h>

#include "hal/cpu/uk.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* ---- arithmetic of a chunk, in float or in double ------------------------------------------ */

static double sum(enum rt_class class, const void *x, int64_t n)
{
    const double *doubles = x;
    double result = 0;

    if (class == RT_CLASS_F32) {
        return (double)hal_cpu_uk()->sum_f32(x, (size_t)n);
    }
    for (int64_t i = 0; i < n; i++) {
        result += doubles[i];
    }
    return result;
}

/* y = x - mean, also in place */
static void center(enum rt_class class, void *y, const void *x, double mean, int64_t n)
{
    const double *from = x;
    double *to = y;

    if (class == RT_CLASS_F32) {
        hal_cpu_uk()->scalar_f32[UK_SUB](y, x, (float)mean, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = from[i] - mean;
    }
}

static double sum_squares(enum rt_class class, const void *x, int64_t n)
{
    const double *doubles = x;
    double result = 0;

    if (class == RT_CLASS_F32) {
        return (double)hal_cpu_uk()->sum_squares_f32(x, (size_t)n);
    }
    for (int64_t i = 0; i < n; i++) {
        result += doubles[i] * doubles[i];
    }
    return result;
}

/* y = y * scale + shift */
static void scale_by(enum rt_class class, void *y, double scale, double shift, int64_t n)
{
    double *doubles = y;

    if (class == RT_CLASS_F32) {
        hal_cpu_uk()->scalar_f32[UK_MUL](y, y, (float)scale, (size_t)n);
        hal_cpu_uk()->scalar_f32[UK_ADD](y, y, (float)shift, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        doubles[i] = doubles[i] * scale + shift;
    }
}

/* y = y op v, element by element; |op| is UK_MUL or UK_ADD. */
static void combine(enum rt_class class, enum uk_binary op, void *y, const void *v, int64_t n)
{
    const double *from = v;
    double *to = y;

    if (class == RT_CLASS_F32) {
        hal_cpu_uk()->binary_f32[op](y, y, v, (size_t)n);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        to[i] = op == UK_MUL ? to[i] * from[i] : to[i] + from[i];
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

/* One of the tensors in the bindings, in the kernel's class. */
struct view {
    enum rt_class class;
    enum dtype dtype;
    const char *base;
    char *buffer; /* a chunk's */
};

static struct view view_of(const struct hal_args *args, uint32_t binding, uint32_t buffer)
{
    const struct rt_norm_constants *k = args->constants;
    return (struct view){
        .class = k->class,
        .dtype = k->dtypes[binding],
        .base = args->bindings[binding],
        .buffer = (char *)args->scratch + buffer * RT_NORM_CHUNK * RT_CLASS_BYTES_MAX,
    };
}

/* Elements |at| to |at| + |n|, contiguous: in place or converted. */
static const void *read_chunk(const struct view *v, int64_t at, int64_t n)
{
    int64_t width = (int64_t)dtype_bytes(v->dtype);

    if (rt_convert_is_direct(v->class, v->dtype)) {
        return v->base + at * width;
    }
    rt_convert_load(v->dtype, v->class)(v->buffer, v->base + at * width, width, n);
    return v->buffer;
}

static double read_number(const struct hal_args *args, uint32_t binding, int64_t at)
{
    const struct rt_norm_constants *k = args->constants;
    enum dtype dtype = k->dtypes[binding];
    double value;

    rt_convert_load(dtype, RT_CLASS_F64)(
        &value, (const char *)args->bindings[binding] + at * (int64_t)dtype_bytes(dtype), 0, 1);
    return value;
}

static void write_number(const struct hal_args *args, uint32_t binding, int64_t at, double value)
{
    const struct rt_norm_constants *k = args->constants;
    enum dtype dtype = k->dtypes[binding];
    char *base = args->bindings[binding];

    if (base) {
        rt_convert_store_number((struct rt_number){.f = value}, dtype,
                                base + at * (int64_t)dtype_bytes(dtype));
    }
}

struct moments {
    double mean, inverse; /* 1 / sqrt(variance + epsilon) */
};

/* Calls |part| for each chunk of a row and adds up the results. */
typedef double part_f(struct view *x, char *buffer, int64_t at, int64_t n, double mean);

static double part_sum(struct view *x, char *buffer, int64_t at, int64_t n, double mean)
{
    (void)buffer, (void)mean;
    return sum(x->class, read_chunk(x, at, n), n);
}

static double part_deviation(struct view *x, char *buffer, int64_t at, int64_t n, double mean)
{
    center(x->class, buffer, read_chunk(x, at, n), mean, n);
    return sum_squares(x->class, buffer, n);
}

static double over_row(const struct hal_args *args, int64_t row, part_f *part, double mean)
{
    const struct rt_norm_constants *k = args->constants;
    struct view x = view_of(args, RT_NORM_INPUT, 0);
    char *buffer = (char *)args->scratch + RT_NORM_CHUNK * RT_CLASS_BYTES_MAX;
    double result = 0;

    for (int64_t r = 0; r < k->runs; r++) {
        int64_t begin = row * k->row_stride + r * k->run_stride;
        for (int64_t done = 0; done < k->run; done += RT_NORM_CHUNK) {
            int64_t n = k->run - done < RT_NORM_CHUNK ? k->run - done : RT_NORM_CHUNK;
            result += part(&x, buffer, begin + done, n, mean);
        }
    }
    return result;
}

static struct moments find_moments(const struct hal_args *args, int64_t row)
{
    const struct rt_norm_constants *k = args->constants;
    double count = (double)(k->runs * k->run);
    struct moments m;

    if (k->is_given) {
        m.mean = read_number(args, RT_NORM_MEAN, row);
        m.inverse = 1 / sqrt(read_number(args, RT_NORM_VARIANCE, row) + k->epsilon);
        return m;
    }
    m.mean = over_row(args, row, part_sum, 0) / count;
    m.inverse = 1 / sqrt(over_row(args, row, part_deviation, m.mean) / count + k->epsilon);
    write_number(args, RT_NORM_MEAN, row, m.mean);
    write_number(args, RT_NORM_VARIANCE, row, m.inverse);
    return m;
}

/* A run of |row|; |channel| is the index of its weight when there is one weight for each run. */
static void write_run(const struct hal_args *args, int64_t begin, int64_t channel,
                      const struct moments *m)
{
    const struct rt_norm_constants *k = args->constants;
    struct view x = view_of(args, RT_NORM_INPUT, 0);
    struct view weight = view_of(args, RT_NORM_WEIGHT, 1), bias = view_of(args, RT_NORM_BIAS, 1);
    bool by_element = k->weights_by_element;
    double scale = m->inverse, shift = 0;
    int64_t width = (int64_t)dtype_bytes(k->dtypes[RT_NORM_OUTPUT]);
    bool is_direct = rt_convert_is_direct(k->class, k->dtypes[RT_NORM_OUTPUT]);

    if (k->has_weight && !by_element) {
        scale *= read_number(args, RT_NORM_WEIGHT, channel);
    }
    if (k->has_bias && !by_element) {
        shift = read_number(args, RT_NORM_BIAS, channel);
    }
    for (int64_t done = 0; done < k->run; done += RT_NORM_CHUNK) {
        int64_t n = k->run - done < RT_NORM_CHUNK ? k->run - done : RT_NORM_CHUNK;
        char *out = (char *)args->bindings[RT_NORM_OUTPUT] + (begin + done) * width;
        char *y = is_direct ? out : (char *)args->scratch + 2 * RT_NORM_CHUNK * RT_CLASS_BYTES_MAX;
        center(k->class, y, read_chunk(&x, begin + done, n), m->mean, n);
        scale_by(k->class, y, scale, shift, n);
        if (k->has_weight && by_element) {
            combine(k->class, UK_MUL, y, read_chunk(&weight, done, n), n);
        }
        if (k->has_bias && by_element) {
            combine(k->class, UK_ADD, y, read_chunk(&bias, done, n), n);
        }
        if (!is_direct) {
            rt_convert_store(k->class, k->dtypes[RT_NORM_OUTPUT])(out, width, y, n);
        }
    }
}

static void plain_row(const struct hal_args *args, int64_t row)
{
    const struct rt_norm_constants *k = args->constants;
    bool is_bf16 = k->dtypes[RT_NORM_OUTPUT] == DT_BF16;
    float *y =
        is_bf16 ? args->scratch : (float *)args->bindings[RT_NORM_OUTPUT] + row * k->row_stride;

    hal_cpu_uk()->layer_norm_f32(&(struct uk_norm_f32){
        .y = y,
        .x = (const float *)args->bindings[RT_NORM_INPUT] + row * k->row_stride,
        .scale = k->has_weight ? args->bindings[RT_NORM_WEIGHT] : NULL,
        .shift = k->has_bias ? args->bindings[RT_NORM_BIAS] : NULL,
        .n = (size_t)k->run,
        .epsilon = (float)k->epsilon,
    });
    if (is_bf16) {
        hal_cpu_uk()->f32_to_bf16((uint16_t *)args->bindings[RT_NORM_OUTPUT] + row * k->row_stride,
                                  y, (size_t)k->run);
    }
}

static void norm_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_norm_constants *k = args->constants;
    int64_t first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;

    for (int64_t row = first; row < end; row++) {
        if (k->is_plain) {
            plain_row(args, row);
            continue;
        }
        struct moments m = find_moments(args, row);
        for (int64_t r = 0; r < k->runs; r++) {
            write_run(args, row * k->row_stride + r * k->run_stride,
                      row % k->weight_rows * k->weights_a_row + r % k->weights_a_row, &m);
        }
    }
}

const struct hal_kernel rt_norm_kernel = {
    .name = "norm", .cpu = norm_tile, .spirv = HAL_SPIRV_SUBGROUPS(norm, 256)};
const struct hal_kernel rt_norm_f64_kernel = {.name = "norm", .cpu = norm_tile};

/* ---- per-channel affine -------------------------------------------------------------------- */

static void affine_run(const struct rt_affine_constants *k, const struct rt_cursor *cursor,
                       int64_t done, int64_t n, float *buffer)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    int64_t strides[4];
    char *at[4];

    for (uint32_t o = 0; o < 4; o++) {
        strides[o] = rt_loop_cursor_stride(cursor, o);
        at[o] = cursor->ptrs[o] + done * strides[o];
    }
    bool is_direct = k->dtype == DT_F32 && strides[0] == sizeof(float);
    float *y = is_direct ? (float *)(void *)at[0] : buffer;
    const float *scale = (const float *)(const void *)at[2],
                *shift = (const float *)(const void *)at[3];

    if (is_direct && strides[1] == sizeof(float)) {
        buffer = (float *)(void *)at[1];
    } else {
        rt_convert_load(k->dtype, RT_CLASS_F32)(buffer, at[1], strides[1], n);
    }
    if (strides[2] == 0) {
        uk->scalar_f32[UK_MUL](y, buffer, *scale, (size_t)n);
        uk->scalar_f32[UK_ADD](y, y, *shift, (size_t)n);
    } else {
        uk->binary_f32[UK_MUL](y, buffer, scale, (size_t)n);
        uk->binary_f32[UK_ADD](y, y, shift, (size_t)n);
    }
    if (!is_direct) {
        rt_convert_store(RT_CLASS_F32, k->dtype)(at[0], strides[0], y, n);
    }
}

static void affine_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_affine_constants *k = args->constants;
    struct rt_cursor cursor;

    rt_loop_cursor_init(&cursor, &k->loop, args->bindings, tile.x);
    while (rt_loop_cursor_next(&cursor)) {
        for (int64_t done = 0; done < cursor.count; done += RT_NORM_CHUNK) {
            int64_t n = cursor.count - done < RT_NORM_CHUNK ? cursor.count - done : RT_NORM_CHUNK;
            affine_run(k, &cursor, done, n, args->scratch);
        }
    }
}

const struct hal_kernel rt_affine_kernel = {
    .name = "affine", .cpu = affine_tile, .spirv = HAL_SPIRV(affine_spirv)};
