/* SPDX-License-Identifier: MIT */
/* Running sums and products along one dim: floats are joined as doubles, integers wrap in 64
 * bits. */
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

union element {
    double f;
    int64_t i;
};

/* How the numbers of a line are joined, from the first on. */
struct joining {
    union element start;
    void (*line)(union chunk *x, int64_t n, union element *result);
    void (*row)(union chunk *results, const union chunk *x, int64_t n);
};

#define JOINING(name, type, member, first, expr)                                                   \
    static void line_##name(union chunk *x, int64_t n, union element *result)                      \
    {                                                                                              \
        type s = result->member;                                                                   \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const type v = x->member[j];                                                           \
            x->member[j] = s = (expr);                                                             \
        }                                                                                          \
        result->member = s;                                                                        \
    }                                                                                              \
    static void row_##name(union chunk *results, const union chunk *x, int64_t n)                  \
    {                                                                                              \
        for (int64_t j = 0; j < n; j++) {                                                          \
            const type v = x->member[j], s = results->member[j];                                   \
            results->member[j] = (expr);                                                           \
        }                                                                                          \
    }                                                                                              \
    static const struct joining name = {{.member = (first)}, line_##name, row_##name};
/* clang-format off */
JOINING(sum_f64, double, f, 0, s + v)
JOINING(sum_i64, int64_t, i, 0, (int64_t)((uint64_t)s + (uint64_t)v))
JOINING(product_f64, double, f, 1, s * v)
JOINING(product_i64, int64_t, i, 1, (int64_t)((uint64_t)s * (uint64_t)v))
/* clang-format on */

struct scan {
    const struct rt_along *k;
    const struct joining *joining;
    rt_load_f *load;
    rt_store_f *store;
    const char *in;
    char *out;
    int64_t in_bytes, out_bytes;
};

/* The results along the line that begins at |at|. */
static void scan_line(const struct scan *s, int64_t at)
{
    const struct rt_along *k = s->k;
    union chunk chunk;
    union element result = s->joining->start;
    for (int64_t done = 0, n; done < k->length; done += n, at += n * k->inner) {
        n = k->length - done < SCAN_CHUNK ? k->length - done : SCAN_CHUNK;
        s->load(&chunk, s->in + at * s->in_bytes, k->inner * s->in_bytes, n);
        s->joining->line(&chunk, n, &result);
        s->store(s->out + at * s->out_bytes, k->inner * s->out_bytes, &chunk, n);
    }
}

/* The same of |n| neighbouring lines, in the order of memory. */
static void scan_lines(const struct scan *s, int64_t at, int64_t n)
{
    union chunk results, chunk;
    for (int64_t j = 0; j < n; j++) {
        results.i[j] = s->joining->start.i; /* the bits of either */
    }
    for (int64_t done = 0; done < s->k->length; done++, at += s->k->inner) {
        s->load(&chunk, s->in + at * s->in_bytes, s->in_bytes, n);
        s->joining->row(&results, &chunk, n);
        s->store(s->out + at * s->out_bytes, s->out_bytes, &results, n);
    }
}

/* |joinings|: of doubles and of integers. */
static void scan_tile(const struct hal_args *args, struct hal_tile tile,
                      const struct joining *const joinings[2])
{
    const struct rt_along *k = args->constants;
    bool is_float = dtype_is_float(k->out);
    enum rt_class class = is_float ? RT_CLASS_F64 : RT_CLASS_I64;
    struct scan s = {
        .k = k,
        .joining = joinings[is_float ? 0 : 1],
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

static void cumsum_tile(const struct hal_args *args, struct hal_tile tile)
{
    scan_tile(args, tile, (const struct joining *const[]){&sum_f64, &sum_i64});
}

static void cumprod_tile(const struct hal_args *args, struct hal_tile tile)
{
    scan_tile(args, tile, (const struct joining *const[]){&product_f64, &product_i64});
}

static const struct hal_kernel cumsum_kernel = {
    .name = "cumsum", .cpu = cumsum_tile, .spirv = HAL_SPIRV(cumsum_spirv)};
static const struct hal_kernel cumsum_f64_kernel = {.name = "cumsum", .cpu = cumsum_tile};
static const struct hal_kernel cumprod_kernel = {.name = "cumprod", .cpu = cumprod_tile};

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

static enum status cumprod_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_along along = rt_along_of(emit);
    return rt_along_dispatch(emit, &cumprod_kernel, &along, along.outer * along.inner, err);
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
    {.name = "cumprod",
     .kernels = "aten::cumprod.out",
     .args = "TII?>T",
     .shape = cumsum_shape,
     .emit = cumprod_emit,
     .batch = rt_batch_along,
     .dtypes = RT_DTYPES_ALL & ~(1u << DT_U64),
     .runs = &cumprod_kernel},
    {.name = NULL},
};
