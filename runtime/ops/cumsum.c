/* SPDX-License-Identifier: MIT */
/* Running sums along one dim: floats are summed as doubles, integers wrap in 64 bits. */
#include "config.h"

#include "runtime/ops/along.h"

#include "runtime/kernels/convert.h"
#include "runtime/ops/shaders/generated/cumsum.spv.h"

#define SCAN_CHUNK 256

#define SCAN(name, type, expr)                                                                     \
    static type name(type *x, int64_t n, type sum)                                                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type v = x[i];                                                                   \
            x[i] = sum = (expr);                                                                   \
        }                                                                                          \
        return sum;                                                                                \
    }
SCAN(scan_f64, double, sum + v)
SCAN(scan_i64, int64_t, (int64_t)((uint64_t)sum + (uint64_t)v))

static void cumsum_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along *k = args->constants;
    bool is_float = dtype_infos[k->out].kind == DTYPE_FLOAT;
    enum rt_class class = is_float ? RT_CLASS_F64 : RT_CLASS_I64;
    int64_t in_bytes = (int64_t)dtype_bytes(k->in), out_bytes = (int64_t)dtype_bytes(k->out);
    int64_t all = k->outer * k->inner, first = tile.x * k->tile;
    int64_t end = all - first < k->tile ? all : first + k->tile;
    union {
        double f[SCAN_CHUNK];
        int64_t i[SCAN_CHUNK];
    } chunk;

    for (int64_t c = first; c < end; c++) {
        int64_t at = c / k->inner * k->length * k->inner + c % k->inner;
        struct rt_number sum = {0};
        for (int64_t done = 0, n; done < k->length; done += n, at += n * k->inner) {
            n = k->length - done < SCAN_CHUNK ? k->length - done : SCAN_CHUNK;
            rt_convert_load(k->in, class)(&chunk, (const char *)args->bindings[1] + at * in_bytes,
                                          k->inner * in_bytes, n);
            if (is_float) {
                sum.f = scan_f64(chunk.f, n, sum.f);
            } else {
                sum.i = scan_i64(chunk.i, n, sum.i);
            }
            rt_convert_store(class, k->out)((char *)args->bindings[0] + at * out_bytes,
                                            k->inner * out_bytes, &chunk, n);
        }
    }
}

static const struct hal_kernel cumsum_kernel = {
    .name = "cumsum", .cpu = cumsum_tile, .spirv = HAL_SPIRV(cumsum_spirv)};
static const struct hal_kernel cumsum_f64_kernel = {.name = "cumsum", .cpu = cumsum_tile};

static enum status cumsum_shape(struct rt_shape_call *call)
{
    return rt_along_shape(call, RT_DTYPES_REAL & ~(1u << DT_U64));
}

static enum status cumsum_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along along = rt_along_of(emit);
    bool is_wide = along.in == DT_F64 || along.out == DT_F64;
    return rt_along_dispatch(emit, is_wide ? &cumsum_f64_kernel : &cumsum_kernel, &along,
                             along.outer * along.inner, err);
}

const struct rt_op rt_ops_cumsum[] = {
    {.name = "cumsum",
     .kernels = "aten::cumsum.out",
     .args = "TII?>T",
     .shape = cumsum_shape,
     .emit = cumsum_emit,
     .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ALL & ~(1u << DT_U64),
     .runs = &cumsum_kernel},
    {.name = NULL},
};
