/* SPDX-License-Identifier: MIT */
/*
 * The kernels of quantisation. A run of a loop nest with one scale and one zero point goes through
 * the micro-kernels in place. If each element has its own (the last dim is the channels'), or if
 * types or strides require it, a chunk at a time goes through scratch.
 *
 * Scales and zero points may come from a request. A scale of 0 or NaN gives the floats that follow
 * from it and the integers to which those saturate; a zero point is truncated to 32 bits.
 */
#include "config.h"

#include "runtime/ops/quant.h"

#include <math.h>

#include "base/check.h"
#include "runtime/kernels/copy.h"
#include "runtime/ops/op.h"
#include "runtime/ops/shaders/generated/spirv.h"

/* Index into RT_DTYPES_QUANT. */
static enum uk_int uk_int_of(enum dtype dtype)
{
    switch (dtype) {
    case DT_I8:
        return UK_I8;
    case DT_U8:
        return UK_U8;
    case DT_I16:
        return UK_I16;
    case DT_U16:
        return UK_U16;
    default:
        must(dtype == DT_I32);
        return UK_I32;
    }
}

static int32_t cut(int64_t v)
{
    return (int32_t)(uint32_t)v;
}

/* ---- a chunk of a run ---------------------------------------------------------------------- */

struct chunk {
    const struct rt_quant_constants *k;
    char *at[RT_LOOP_OPERANDS_MAX];
    int64_t strides[RT_LOOP_OPERANDS_MAX];
    int64_t n;
    float *floats, *others; /* arrays of RT_QUANT_CHUNK elements */
    void *wide;             /* and as many with elements of 8 bytes */
};

static struct chunk chunk_of(const struct hal_args *args, const struct rt_cursor *cursor)
{
    struct chunk c = {.k = args->constants, .wide = args->scratch};

    c.floats = (float *)((char *)args->scratch + sizeof(int64_t) * RT_QUANT_CHUNK);
    c.others = c.floats + RT_QUANT_CHUNK;
    for (uint32_t o = 0; o < cursor->loop->operands; o++) {
        c.strides[o] = rt_loop_cursor_stride(cursor, o);
        c.at[o] = cursor->ptrs[o];
    }
    return c;
}

/* Calls |fn| for each chunk of every run of the tile. */
static void each_chunk(const struct hal_args *args, struct hal_tile tile,
                       void (*fn)(const struct chunk *c))
{
    const struct rt_quant_constants *k = args->constants;
    struct rt_cursor cursor;

    rt_loop_cursor_init(&cursor, &k->loop, args->bindings, tile.x);
    while (rt_loop_cursor_next(&cursor)) {
        struct chunk c = chunk_of(args, &cursor);
        for (int64_t done = 0; done < cursor.count; done += c.n) {
            c.n = cursor.count - done < RT_QUANT_CHUNK ? cursor.count - done : RT_QUANT_CHUNK;
            fn(&c);
            for (uint32_t o = 0; o < k->loop.operands; o++) {
                c.at[o] += c.n * c.strides[o];
            }
        }
    }
}

static bool is_uniform(const struct chunk *c)
{
    return (!c->k->has_scales || c->strides[2] == 0) &&
           (!c->k->has_zero_points || c->strides[3] == 0);
}

static struct uk_quant read_uniform(const struct chunk *c)
{
    const struct rt_quant_constants *k = c->k;
    struct uk_quant quant = {k->scale, k->zero_point, k->min, k->max};
    int64_t zero_point;

    if (c->k->has_scales) {
        rt_convert_load(c->k->scales, RT_CLASS_F32)(&quant.scale, c->at[2], 0, 1);
    }
    if (c->k->has_zero_points) {
        rt_convert_load(c->k->zero_points, RT_CLASS_I64)(&zero_point, c->at[3], 0, 1);
        quant.zero_point = cut(zero_point);
    }
    return quant;
}

static void read_scales(const struct chunk *c, float *scales)
{
    rt_convert_load(c->k->scales, RT_CLASS_F32)(scales, c->at[2], c->strides[2], c->n);
}

/* Converts to floats; gives 0 if there is no list. */
static void read_zero_points(const struct chunk *c, float *zero_points)
{
    int64_t *wide = c->wide;

    if (!c->k->has_zero_points) {
        for (int64_t i = 0; i < c->n; i++) {
            zero_points[i] = (float)c->k->zero_point;
        }
        return;
    }
    rt_convert_load(c->k->zero_points, RT_CLASS_I64)(wide, c->at[3], c->strides[3], c->n);
    for (int64_t i = 0; i < c->n; i++) {
        zero_points[i] = (float)cut(wide[i]);
    }
}

/* ---- quantising ---------------------------------------------------------------------------- */

/* The input as floats, in place or converted; numbers of a wider type are multiplied by |inverse|
 * first. */
static const float *read_floats(const struct chunk *c, struct uk_quant *quant)
{
    double *wide = c->wide;

    if (c->k->real == DT_F32 && c->strides[1] == sizeof(float)) {
        return (const float *)(const void *)c->at[1];
    }
    if (c->k->real != DT_F64) {
        rt_convert_load(c->k->real, RT_CLASS_F32)(c->floats, c->at[1], c->strides[1], c->n);
        return c->floats;
    }
    rt_convert_load(DT_F64, RT_CLASS_F64)(wide, c->at[1], c->strides[1], c->n);
    for (int64_t i = 0; i < c->n; i++) {
        c->floats[i] = (float)(wide[i] * (double)quant->scale);
    }
    quant->scale = 1;
    return c->floats;
}

static void store_ints(const struct chunk *c, const float *x, const struct uk_quant *quant)
{
    int64_t width = (int64_t)dtype_bytes(c->k->whole);
    uk_quantize_f *quantize = hal_cpu_uk()->quantize[uk_int_of(c->k->whole)];

    if (c->strides[0] == width) {
        quantize(c->at[0], x, quant, (size_t)c->n);
        return;
    }
    quantize(c->wide, x, quant, (size_t)c->n);
    rt_copy_run(c->at[0], c->strides[0], c->wide, width, c->n, (uint32_t)width);
}

static void quantize_chunk(const struct chunk *c)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    size_t n = (size_t)c->n;

    if (is_uniform(c)) {
        struct uk_quant quant = read_uniform(c);
        quant.scale = 1.0f / quant.scale;
        const float *x = read_floats(c, &quant);
        store_ints(c, x, &quant);
        return;
    }
    struct uk_quant quant = {.scale = 1, .min = c->k->min, .max = c->k->max};
    const float *x = read_floats(c, &quant);
    read_scales(c, c->others);
    uk->unary_f32[UK_RECIPROCAL](c->others, c->others, n);
    uk->binary_f32[UK_MUL](c->floats, x, c->others, n);
    uk->unary_f32[UK_ROUND](c->floats, c->floats, n);
    read_zero_points(c, c->others);
    uk->binary_f32[UK_ADD](c->floats, c->floats, c->others, n);
    store_ints(c, c->floats, &quant);
}

static void quantize_tile(const struct hal_args *args, struct hal_tile tile)
{
    each_chunk(args, tile, quantize_chunk);
}

const struct hal_kernel rt_quantize_kernel = {.name = "quantize",
                                              .cpu = quantize_tile,
                                              .spirv = HAL_SPIRV(quantize_spirv),
                                              .variant = RT_QUANTIZE};
const struct hal_kernel rt_quantize_f64_kernel = {.name = "quantize", .cpu = quantize_tile};

/* ---- dequantising -------------------------------------------------------------------------- */

/* The integers, contiguous. */
static const void *read_ints(const struct chunk *c)
{
    int64_t width = (int64_t)dtype_bytes(c->k->whole);

    if (c->strides[1] == width) {
        return c->at[1];
    }
    rt_copy_run(c->wide, width, c->at[1], c->strides[1], c->n, (uint32_t)width);
    return c->wide;
}

/* Each element with its own parameters. The difference is computed in integers, as far as a float
 * can represent it. */
static void dequantize_each(const struct chunk *c, float *y)
{
    const struct hal_cpu_uk *uk = hal_cpu_uk();
    const struct uk_quant plain = {.scale = 1};
    size_t n = (size_t)c->n;

    uk->dequantize[uk_int_of(c->k->whole)](c->floats, read_ints(c), &plain, n);
    read_zero_points(c, c->others);
    uk->binary_f32[UK_SUB](c->floats, c->floats, c->others, n);
    read_scales(c, c->others);
    uk->binary_f32[UK_MUL](y, c->floats, c->others, n);
}

static void dequantize_chunk(const struct chunk *c)
{
    bool is_direct = c->k->real == DT_F32 && c->strides[0] == sizeof(float);
    float *y = is_direct ? (float *)(void *)c->at[0] : c->floats;

    if (is_uniform(c)) {
        struct uk_quant quant = read_uniform(c);
        hal_cpu_uk()->dequantize[uk_int_of(c->k->whole)](y, read_ints(c), &quant, (size_t)c->n);
    } else {
        dequantize_each(c, y);
    }
    if (!is_direct) {
        rt_convert_store(RT_CLASS_F32, c->k->real)(c->at[0], c->strides[0], y, c->n);
    }
}

static void dequantize_tile(const struct hal_args *args, struct hal_tile tile)
{
    each_chunk(args, tile, dequantize_chunk);
}

const struct hal_kernel rt_dequantize_kernel = {.name = "dequantize",
                                                .cpu = dequantize_tile,
                                                .spirv = HAL_SPIRV(quantize_spirv),
                                                .variant = RT_DEQUANTIZE};
const struct hal_kernel rt_dequantize_f64_kernel = {.name = "dequantize", .cpu = dequantize_tile};

/* ---- ranges of rows ------------------------------------------------------------------------ */

struct range {
    float min, max; /* The range always includes 0. */
};

static const float *read_row(const struct rt_quant_rows *k, const char *x, int64_t n, float *buffer)
{
    if (k->real == DT_F32) {
        return (const float *)(const void *)x;
    }
    rt_convert_load(k->real, RT_CLASS_F32)(buffer, x, (int64_t)dtype_bytes(k->real), n);
    return buffer;
}

static struct range find_range(const struct rt_quant_rows *k, const char *x, float *buffer)
{
    int64_t width = (int64_t)dtype_bytes(k->real);
    struct range range = {0, 0};

    for (int64_t done = 0; done < k->length; done += RT_QUANT_CHUNK) {
        int64_t n = k->length - done < RT_QUANT_CHUNK ? k->length - done : RT_QUANT_CHUNK;
        float min, max;
        hal_cpu_uk()->range_f32(read_row(k, x + done * width, n, buffer), (size_t)n, &min, &max);
        range.min = min < range.min ? min : range.min;
        range.max = max > range.max ? max : range.max;
    }
    return range;
}

/* Chooses parameters as ExecuTorch does, with its order of roundings and its use of double. The
 * zero point comes from the end of the range that loses less of its value. */
static void choose(struct range r, int32_t low, int32_t high, double *out_scale, int64_t *out_zero)
{
    int64_t steps = (int64_t)high - low;
    double scale = ((double)r.max - (double)r.min) / (double)steps;

    if ((float)scale == 0.0f || isinf(1.0f / (float)scale)) {
        scale = 0.1;
    }
    if (scale < (double)RT_QUANT_STEP_MIN) {
        float before = (float)scale;
        scale = (double)RT_QUANT_STEP_MIN;
        if (r.min == 0.0f) {
            r.max = RT_QUANT_STEP_MIN * (float)steps;
        } else if (r.max == 0.0f) {
            r.min = -RT_QUANT_STEP_MIN * (float)steps;
        } else {
            r.min *= RT_QUANT_STEP_MIN / before;
            r.max *= RT_QUANT_STEP_MIN / before;
        }
    }
    double from_min = low - (double)r.min / scale, from_max = high - (double)r.max / scale;
    double error_min = fabs((double)low) - fabs((double)r.min / scale);
    double error_max = fabs((double)high) - fabs((double)r.max / scale);
    double zero = error_min < error_max ? from_min : from_max;
    *out_scale = scale;
    *out_zero = !(zero >= low) ? low : zero > high ? high : (int64_t)rintf((float)zero);
}

static void store_params(const struct hal_args *args, uint32_t binding, int64_t row, double scale,
                         int64_t zero_point)
{
    const struct rt_quant_rows *k = args->constants;
    char *scales = args->bindings[binding], *zero_points = args->bindings[binding + 1];

    if (scales) {
        rt_convert_store_number((struct rt_number){.f = scale}, k->scale,
                                scales + row * (int64_t)dtype_bytes(k->scale));
    }
    if (zero_points) {
        rt_convert_store_number((struct rt_number){.f = (double)zero_point, .i = zero_point},
                                k->zero_point,
                                zero_points + row * (int64_t)dtype_bytes(k->zero_point));
    }
}

static void choose_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_quant_rows *k = args->constants;
    int64_t bytes = k->length * (int64_t)dtype_bytes(k->real), first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;

    for (int64_t row = first; row < end; row++) {
        const char *x = (const char *)args->bindings[2] + row * bytes;
        int64_t zero_point;
        double scale;
        choose(find_range(k, x, args->scratch), k->min, k->max, &scale, &zero_point);
        store_params(args, 0, row, scale, zero_point);
    }
}

const struct hal_kernel rt_choose_kernel = {.name = "choose_qparams",
                                            .cpu = choose_tile,
                                            .spirv = HAL_SPIRV_SUBGROUPS(quantize_rows, 256),
                                            .variant = RT_CHOOSE_PARAMS};
const struct hal_kernel rt_choose_f64_kernel = {.name = "choose_qparams", .cpu = choose_tile};

/* ---- dynamic quantisation ------------------------------------------------------------------ */

/* Chooses parameters as XNNPACK does, all in float. The zero point comes from that end of the range
 * whose rounding error is smaller; a range without numbers gives the least scale. */
static struct uk_quant choose_dynamic(struct range r)
{
    const float low = INT8_MIN, high = INT8_MAX;
    float scale = r.min == r.max ? 1.0f : (high - low) / (r.max - r.min);
    float min = r.min * scale, max = r.max * scale;
    float zero = (low + min) + (high + max) > 0 ? low - min : high - max;

    zero = zero > low ? zero : low;
    zero = zero < high ? zero : high;
    return (struct uk_quant){
        .scale = scale,
        .zero_point = (int32_t)rintf(zero),
        .min = INT8_MIN,
        .max = INT8_MAX,
    };
}

static void quantize_row(const struct rt_quant_rows *k, const struct uk_quant *quant, int8_t *q,
                         const char *x, float *buffer)
{
    int64_t width = (int64_t)dtype_bytes(k->real);

    for (int64_t done = 0; done < k->length; done += RT_QUANT_CHUNK) {
        int64_t n = k->length - done < RT_QUANT_CHUNK ? k->length - done : RT_QUANT_CHUNK;
        hal_cpu_uk()->quantize[UK_I8](q + done, read_row(k, x + done * width, n, buffer), quant,
                                      (size_t)n);
    }
}

static void quantize_dynamic_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_quant_rows *k = args->constants;
    int64_t bytes = k->length * (int64_t)dtype_bytes(k->real), first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;

    for (int64_t row = first; row < end; row++) {
        const char *x = (const char *)args->bindings[3] + row * bytes;
        struct uk_quant quant = choose_dynamic(find_range(k, x, args->scratch));
        quantize_row(k, &quant, (int8_t *)args->bindings[0] + row * k->length, x, args->scratch);
        store_params(args, 1, row, (double)(1.0f / quant.scale), quant.zero_point);
    }
}

const struct hal_kernel rt_quantize_dynamic_kernel = {.name = "quantize_dynamic",
                                                      .cpu = quantize_dynamic_tile,
                                                      .spirv =
                                                          HAL_SPIRV_SUBGROUPS(quantize_rows, 256),
                                                      .variant = RT_QUANTIZE_DYNAMIC};
const struct hal_kernel rt_quantize_dynamic_f64_kernel = {.name = "quantize_dynamic",
                                                          .cpu = quantize_dynamic_tile};

/* ---- weights ------------------------------------------------------------------------------- */

static void dequantize_groups_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_quant_groups *k = args->constants;
    int64_t groups = k->length / k->group, first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;
    int64_t width = (int64_t)dtype_bytes(k->scales);

    for (int64_t g = first * groups; g < end * groups; g++) {
        struct uk_quant quant = {0};
        const char *scale = (const char *)args->bindings[2] + g * width;
        rt_convert_load(k->scales, RT_CLASS_F32)(&quant.scale, scale, 0, 1);
        hal_cpu_uk()->dequantize[UK_I8]((float *)args->bindings[0] + g * k->group,
                                        (const int8_t *)args->bindings[1] + g * k->group, &quant,
                                        (size_t)k->group);
    }
}

const struct hal_kernel rt_dequantize_groups_kernel = {.name = "dequantize_groups",
                                                       .cpu = dequantize_groups_tile};

/* The two numbers of each byte: a look-up takes less time than to shift them out. */
static void list_pairs(bool high_first, int8_t pairs[256][2])
{
    for (int byte = 0; byte < 256; byte++) {
        pairs[byte][high_first ? 1 : 0] = (int8_t)((byte & 15) - 8);
        pairs[byte][high_first ? 0 : 1] = (int8_t)((byte >> 4) - 8);
    }
}

static void unpack_int4_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_quant_nibbles *k = args->constants;
    int64_t bytes = (k->length + 1) / 2, first = tile.x * k->tile;
    int64_t end = k->rows - first < k->tile ? k->rows : first + k->tile;
    int8_t pairs[256][2];

    list_pairs(k->high_first, pairs);
    for (int64_t row = first; row < end; row++) {
        const uint8_t *restrict from = (const uint8_t *)args->bindings[1] + row * bytes;
        int8_t *restrict to = (int8_t *)args->bindings[0] + row * k->length;
        for (int64_t i = 0; i < k->length / 2; i++) {
            memcpy(to + 2 * i, pairs[from[i]], 2);
        }
        if (k->length % 2) {
            to[k->length - 1] = pairs[from[bytes - 1]][0];
        }
    }
}

const struct hal_kernel rt_unpack_int4_kernel = {.name = "unpack_int4", .cpu = unpack_int4_tile};
