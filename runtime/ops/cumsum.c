/* SPDX-License-Identifier: MIT */
/* Running sums along one dim: floats are summed as doubles, integers wrap in 64 bits. */
#include "config.h"

#include "runtime/ops/along.h"

#include "runtime/kernels/convert.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define SCAN_CHUNK 256

/* A part of a line: the elements along the dim, or, if these are apart in memory, neighbouring
 * lines at one place of the dim. */
union chunk {
    double f[SCAN_CHUNK];
    int64_t i[SCAN_CHUNK];
};

#define SCAN(class, type, member, expr)                                                            \
    static void scan_##class(type * x, int64_t n, struct rt_number * sum)                          \
    {                                                                                              \
        type s = sum->member;                                                                      \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const type v = x[j];                                                                   \
            x[j] = s = (expr);                                                                     \
        }                                                                                          \
        sum->member = s;                                                                           \
    }                                                                                              \
    static void add_row_##class(type * sums, const type *x, int64_t n)                             \
    {                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const type v = x[j], s = sums[j];                                                      \
            sums[j] = (expr);                                                                      \
        }                                                                                          \
    }
SCAN(f64, double, f, s + v)
SCAN(i64, int64_t, i, (int64_t)((uint64_t)s + (uint64_t)v))

struct scan {
    const struct rt_along *k;
    enum rt_class class;
    rt_load_f *load;
    rt_store_f *store;
    const char *in;
    char *out;
    int64_t in_bytes, out_bytes;
};

/* The sums along the line that begins at |at|. */
static void scan_line(const struct scan *s, int64_t at)
{
    const struct rt_along *k = s->k;
    union chunk chunk;
    struct rt_number sum = {0};
    for (int64_t done = 0, n; done < k->length; done += n, at += n * k->inner) {
        n = k->length - done < SCAN_CHUNK ? k->length - done : SCAN_CHUNK;
        s->load(&chunk, s->in + at * s->in_bytes, k->inner * s->in_bytes, n);
        if (s->class == RT_CLASS_F64) {
            scan_f64(chunk.f, n, &sum);
        } else {
            scan_i64(chunk.i, n, &sum);
        }
        s->store(s->out + at * s->out_bytes, k->inner * s->out_bytes, &chunk, n);
    }
}

/* The same of |n| neighbouring lines, in the order of memory. */
static void scan_lines(const struct scan *s, int64_t at, int64_t n)
{
    union chunk sums = {{0}}, chunk;
    for (int64_t done = 0; done < s->k->length; done++, at += s->k->inner) {
        s->load(&chunk, s->in + at * s->in_bytes, s->in_bytes, n);
        if (s->class == RT_CLASS_F64) {
            add_row_f64(sums.f, chunk.f, n);
        } else {
            add_row_i64(sums.i, chunk.i, n);
        }
        s->store(s->out + at * s->out_bytes, s->out_bytes, &sums, n);
    }
}

static void cumsum_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_along *k = args->constants;
    bool is_float = dtype_is_float(k->out);
    enum rt_class class = is_float ? RT_CLASS_F64 : RT_CLASS_I64;
    struct scan s = {
        .k = k,
        .class = class,
        .load = rt_convert_load(k->in, class),
        .store = rt_convert_store(class, k->out),
        .in = args->bindings[1],
        .out = args->bindings[0],
        .in_bytes = (int64_t)dtype_bytes(k->in),
        .out_bytes = (int64_t)dtype_bytes(k->out),
    };
    int64_t all = k->outer * k->inner, first = tile.x * k->tile;
    int64_t end = all - first < k->tile ? all : first + k->tile;

    for (int64_t c = first, n; c < end; c += n) {
        int64_t place = c % k->inner, at = c / k->inner * k->length * k->inner + place;
        n = k->inner - place < end - c ? k->inner - place : end - c;
        n = n < SCAN_CHUNK ? n : SCAN_CHUNK;
        if (n > 1) {
            scan_lines(&s, at, n);
        } else {
            scan_line(&s, at);
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
