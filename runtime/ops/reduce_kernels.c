/* SPDX-License-Identifier: MIT */
/*
 * Folding. There are two kernels. One reads rows: an output's elements one after the other, with
 * any strides. The other reads columns: neighbouring outputs together, in the order of memory (for
 * instance the mean over the pixels of a channels-last image). The order of additions depends only
 * on dims and strides. Floats are summed in blocks, the blocks in double. A NaN wins every
 * comparison; of equal elements the first one's index is reported.
 */
#include "config.h"

#include "runtime/ops/reduce.h"

#include <math.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "runtime/ops/shaders/generated/spirv.h"

struct state {
    double f;      /* F32, F64 */
    int64_t i;     /* I64, TRUTH */
    int64_t index; /* index of the extreme */
    double mean;   /* second pass of a variance */
};

/* |x| holds |n| packed elements; the first has index |at|. */
typedef void fold_f(struct state *s, const void *x, int64_t n, int64_t at);

/* ---- folds of packed elements -------------------------------------------------------------- */

static void sum_f32(struct state *s, const void *x, int64_t n, int64_t at)
{
    (void)at;
    s->f += (double)hal_cpu_uk()->sum_f32(x, (size_t)n);
}

#define FOLD(name, type, member, expr)                                                             \
    static void name(struct state *s, const void *x, int64_t n, int64_t at)                        \
    {                                                                                              \
        const type *xs = x;                                                                        \
        (void)at;                                                                                  \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type v = xs[i];                                                                  \
            s->member = (expr);                                                                    \
        }                                                                                          \
    }
FOLD(sum_f64, double, f, s->f + v)
FOLD(sum_i64, int64_t, i, (int64_t)((uint64_t)s->i + (uint64_t)v))
FOLD(prod_f32, float, f, s->f *(double)v)
FOLD(prod_f64, double, f, s->f *v)
FOLD(prod_i64, int64_t, i, (int64_t)((uint64_t)s->i *(uint64_t)v))
FOLD(any_truth, uint8_t, i, s->i | (v != 0))
FOLD(deviation_f32, float, f, s->f + ((double)v - s->mean) * ((double)v - s->mean))
FOLD(deviation_f64, double, f, s->f + (v - s->mean) * (v - s->mean))

/* Nothing beats a NaN; a NaN beats all else. */
#define EXTREME(name, type, member, op)                                                            \
    static void name(struct state *s, const void *x, int64_t n, int64_t at)                        \
    {                                                                                              \
        const type *xs = x;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            if (s->member == s->member && (xs[i] op s->member || xs[i] != xs[i] || at + i == 0)) { \
                s->member = xs[i];                                                                 \
                s->index = at + i;                                                                 \
            }                                                                                      \
        }                                                                                          \
    }
EXTREME(max_f64, double, f, >)
EXTREME(max_i64, int64_t, i, >)
EXTREME(min_f64, double, f, <)
EXTREME(min_i64, int64_t, i, <)

/* Takes |extreme|, that of |n| packed elements from index |at| on, and the place of the first of
 * them that is equal to it; a NaN if there is one. */
static void locate(struct state *s, const float *x, int64_t n, float extreme, int64_t at)
{
    int64_t i = 0;
    while (i + 1 < n && x[i] != extreme && x[i] == x[i]) {
        i++;
    }
    s->f = (double)x[i];
    s->index = at + i;
}

/* Only elements among which there is a new extreme are looked at one by one. */
static void max_f32(struct state *s, const void *x, int64_t n, int64_t at)
{
    float most = hal_cpu_uk()->max_f32(x, (size_t)n);
    if (at == 0 || (s->f == s->f && !((double)most <= s->f))) {
        locate(s, x, n, most, at);
    }
}

static void min_f32(struct state *s, const void *x, int64_t n, int64_t at)
{
    float negative[RT_REDUCE_CHUNK];
    hal_cpu_uk()->unary_f32[UK_NEG](negative, x, (size_t)n);
    float least = -hal_cpu_uk()->max_f32(negative, (size_t)n);
    if (at == 0 || (s->f == s->f && !((double)least >= s->f))) {
        locate(s, x, n, least, at);
    }
}

static fold_f *const folds[RT_FOLD_COUNT][RT_CLASS_COUNT] = {
    [RT_FOLD_SUM] = {sum_f32, sum_f64, sum_i64, NULL},
    [RT_FOLD_PROD] = {prod_f32, prod_f64, prod_i64, NULL},
    [RT_FOLD_MAX] = {max_f32, max_f64, max_i64, NULL},
    [RT_FOLD_MIN] = {min_f32, min_f64, min_i64, NULL},
    [RT_FOLD_ANY] = {NULL, NULL, NULL, any_truth},
};

/* The result for no elements; an extreme takes the first element whatever this is. */
static struct state empty_state(enum rt_fold fold)
{
    return fold == RT_FOLD_PROD ? (struct state){.f = 1, .i = 1} : (struct state){0};
}

/* ---- positions ----------------------------------------------------------------------------- */

/* Byte offset of position |position| of the first |rank| dims. */
static int64_t offset_of(const struct rt_nest *nest, uint32_t rank, int64_t position)
{
    int64_t offset = 0;
    for (uint32_t d = rank; d-- > 0 && position > 0;) {
        offset += position % nest->dims[d] * nest->strides[d];
        position /= nest->dims[d];
    }
    return offset;
}

static void write_outputs(const struct hal_args *args, int64_t output, const struct state *s)
{
    const struct rt_reduce_constants *k = args->constants;
    bool is_float = k->class == RT_CLASS_F32 || k->class == RT_CLASS_F64;
    double count = (double)k->reduced.numel;
    double freedom = count - k->correction;

    for (uint32_t o = 0; o < k->output_count; o++) {
        enum dtype dtype = k->outputs[o].dtype;
        struct rt_number number = {is_float ? s->f : (double)s->i, s->i};
        char *base = args->bindings[o];
        if (!base) {
            continue; /* no node reads it */
        }
        switch (k->outputs[o].result) {
        case RT_RESULT_VALUE:
            break;
        case RT_RESULT_INDEX:
            number = (struct rt_number){(double)s->index, s->index};
            break;
        case RT_RESULT_MEAN:
            number.f = s->mean;
            break;
        case RT_RESULT_VARIANCE:
            number.f = s->f / (freedom > 0 ? freedom : 0);
            break;
        }
        rt_convert_store_number(number, dtype, base + output * (int64_t)dtype_bytes(dtype));
    }
}

/* ---- rows ---------------------------------------------------------------------------------- */

static void fold_row(const struct rt_reduce_constants *k, const char *from, fold_f *fold,
                     struct state *s, void *buffer)
{
    const struct rt_nest *nest = &k->reduced;
    uint32_t inner = nest->rank - 1;
    int64_t run = nest->dims[inner], stride = nest->strides[inner], at = 0;
    bool is_direct = rt_convert_is_direct(k->class, k->dtype) &&
                     (run == 1 || stride == (int64_t)rt_convert_class_bytes(k->class));
    rt_load_f *load = rt_convert_load(k->dtype, k->class);

    for (int64_t r = 0; at < nest->numel; r++) {
        const char *begin = from + offset_of(nest, inner, r);
        for (int64_t done = 0; done < run; done += RT_REDUCE_CHUNK) {
            int64_t n = run - done < RT_REDUCE_CHUNK ? run - done : RT_REDUCE_CHUNK;
            const void *x = begin + done * stride;
            if (!is_direct) {
                load(buffer, x, stride, n);
                x = buffer;
            }
            fold(s, x, n, at);
            at += n;
        }
    }
}

static void rows_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_reduce_constants *k = args->constants;
    const char *in = args->bindings[k->output_count]; /* NULL without elements */
    bool has_mean = k->outputs[k->output_count - 1].result == RT_RESULT_MEAN;
    bool has_variance = k->outputs[0].result == RT_RESULT_VARIANCE;
    int64_t first = tile.x * k->tile;
    int64_t end = k->kept.numel - first < k->tile ? k->kept.numel : first + k->tile;

    for (int64_t o = first; o < end; o++) {
        const char *from = in ? in + offset_of(&k->kept, k->kept.rank, o) : NULL;
        struct state s = empty_state(k->fold);
        fold_row(k, from, folds[k->fold][k->class], &s, args->scratch);
        if (has_mean || has_variance) {
            s.mean = s.f / (double)k->reduced.numel;
        }
        if (has_variance) {
            s.f = 0;
            fold_row(k, from, k->class == RT_CLASS_F32 ? deviation_f32 : deviation_f64, &s,
                     args->scratch);
        }
        write_outputs(args, o, &s);
    }
}

const struct hal_kernel rt_reduce_rows_kernel = {.name = "reduce_rows",
                                                 .cpu = rows_tile,
                                                 .spirv = HAL_SPIRV_SUBGROUPS(reduce, 256),
                                                 .variant = RT_REDUCE_ROWS};
const struct hal_kernel rt_reduce_rows_f64_kernel = {.name = "reduce_rows", .cpu = rows_tile};

/* ---- columns ------------------------------------------------------------------------------- */

struct columns {
    const struct rt_reduce_constants *k;
    int64_t n;       /* columns */
    char *row;       /* one row of them, converted */
    char *values;    /* their folded values */
    double *sums;    /* for floats, the sums of earlier blocks */
    int64_t *index;  /* NULL: nobody asks for the place of an extreme */
    rt_load_f *load; /* NULL: rows are read in place */
};

#define COLUMNS(name, type, expr)                                                                  \
    static void name(void *values, const void *row, int64_t n)                                     \
    {                                                                                              \
        const type *x = row;                                                                       \
        type *acc = values;                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const type a = acc[i], v = x[i];                                                       \
            acc[i] = (expr);                                                                       \
        }                                                                                          \
    }
#define COLUMNS_UK(name, op)                                                                       \
    static void name(void *values, const void *row, int64_t n)                                     \
    {                                                                                              \
        hal_cpu_uk()->binary_f32[op](values, values, row, (size_t)n);                              \
    }
COLUMNS_UK(sum_columns_f32, UK_ADD)
COLUMNS_UK(prod_columns_f32, UK_MUL)
COLUMNS_UK(max_columns_f32, UK_MAX)
COLUMNS_UK(min_columns_f32, UK_MIN)
COLUMNS(sum_columns_f64, double, a + v)
COLUMNS(prod_columns_f64, double, a *v)
COLUMNS(max_columns_f64, double, a > v || a != a ? a : v)
COLUMNS(min_columns_f64, double, a < v || a != a ? a : v)
COLUMNS(sum_columns_i64, int64_t, (int64_t)((uint64_t)a + (uint64_t)v))
COLUMNS(prod_columns_i64, int64_t, (int64_t)((uint64_t)a *(uint64_t)v))
COLUMNS(max_columns_i64, int64_t, a > v ? a : v)
COLUMNS(min_columns_i64, int64_t, a < v ? a : v)
COLUMNS(any_columns_truth, uint8_t, a | (v != 0))

typedef void columns_f(void *values, const void *row, int64_t n);

static columns_f *const column_folds[RT_FOLD_COUNT][RT_CLASS_COUNT] = {
    [RT_FOLD_SUM] = {sum_columns_f32, sum_columns_f64, sum_columns_i64, NULL},
    [RT_FOLD_PROD] = {prod_columns_f32, prod_columns_f64, prod_columns_i64, NULL},
    [RT_FOLD_MAX] = {max_columns_f32, max_columns_f64, max_columns_i64, NULL},
    [RT_FOLD_MIN] = {min_columns_f32, min_columns_f64, min_columns_i64, NULL},
    [RT_FOLD_ANY] = {NULL, NULL, NULL, any_columns_truth},
};

/* Rows whose extremes are found before anybody asks where they are. */
#define FEW_ROWS 16

/* Column by column, the first of |rows| rows that beats the value from before, if there is one. The
 * extremes of these rows are in |c->row|. */
#define LOCATE(name, type, op)                                                                     \
    static void name(const struct columns *c, const char *from, int64_t stride, int64_t rows,      \
                     int64_t at)                                                                   \
    {                                                                                              \
        const type *extremes = (const type *)(const void *)c->row;                                 \
        type *values = (type *)(void *)c->values;                                                  \
        for (int64_t j = 0; j < c->n; j++) {                                                       \
            if (at > 0 && (values[j] != values[j] || extremes[j] op values[j])) {                  \
                continue;                                                                          \
            }                                                                                      \
            for (int64_t r = 0; r < rows; r++) {                                                   \
                type v = *((const type *)(const void *)(from + r * stride) + j);                   \
                if (v == extremes[j] || v != v) {                                                  \
                    values[j] = v;                                                                 \
                    c->index[j] = at + r;                                                          \
                    break;                                                                         \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
LOCATE(locate_max_f32, float, <=)
LOCATE(locate_max_f64, double, <=)
LOCATE(locate_max_i64, int64_t, <=)
LOCATE(locate_min_f32, float, >=)
LOCATE(locate_min_f64, double, >=)
LOCATE(locate_min_i64, int64_t, >=)

typedef void locate_f(const struct columns *c, const char *from, int64_t stride, int64_t rows,
                      int64_t at);

static locate_f *const locates[RT_FOLD_COUNT][RT_CLASS_COUNT] = {
    [RT_FOLD_MAX] = {locate_max_f32, locate_max_f64, locate_max_i64, NULL},
    [RT_FOLD_MIN] = {locate_min_f32, locate_min_f64, locate_min_i64, NULL},
};

/* As fold_run(), with the places of extremes; the first row has index |at|. */
static void locate_run(const struct columns *c, const char *from, int64_t stride, int64_t rows,
                       int64_t at)
{
    columns_f *fold = column_folds[c->k->fold][c->k->class];
    size_t bytes = (size_t)c->n * dtype_bytes(c->k->dtype);
    for (int64_t done = 0; done < rows; done += FEW_ROWS) {
        const char *first = from + done * stride;
        int64_t few = rows - done < FEW_ROWS ? rows - done : FEW_ROWS;
        memcpy(c->row, first, bytes);
        for (int64_t r = 1; r < few; r++) {
            fold(c->row, first + r * stride, c->n);
        }
        locates[c->k->fold][c->k->class](c, first, stride, few, at + done);
    }
}

/* Folds rows |first| to |end| of a run, |stride| bytes apart, into values that are already set. */
static void fold_run(const struct columns *c, const char *from, int64_t stride, int64_t rows)
{
    columns_f *fold = column_folds[c->k->fold][c->k->class];

    if (!c->load && fold == sum_columns_f32) {
        hal_cpu_uk()->rows_add_f32((float *)(void *)c->values, (const float *)(const void *)from,
                                   (size_t)rows, stride / (int64_t)sizeof(float), (size_t)c->n);
        return;
    }
    for (int64_t r = 0; r < rows; r++) {
        const void *row = from + r * stride;
        if (c->load) {
            c->load(c->row, row, (int64_t)dtype_bytes(c->k->dtype), c->n);
            row = c->row;
        }
        fold(c->values, row, c->n);
    }
}

/* Adds the block's float sums to the sums of earlier blocks and starts a new block. */
static void flush_sums(const struct columns *c)
{
    float *values = (float *)(void *)c->values;

    for (int64_t j = 0; j < c->n; j++) {
        c->sums[j] += (double)values[j];
        values[j] = 0;
    }
}

static void fold_columns(const struct columns *c, const char *from)
{
    const struct rt_nest *nest = &c->k->reduced;
    uint32_t inner = nest->rank - 1;
    bool in_blocks = c->k->fold == RT_FOLD_SUM && c->k->class == RT_CLASS_F32;
    int64_t stride = nest->strides[inner], at = 0;

    for (int64_t r = 0; at < nest->numel; r++) {
        const char *begin = from + offset_of(nest, inner, r);
        for (int64_t done = 0; done < nest->dims[inner]; done += RT_REDUCE_BLOCK_ROWS) {
            int64_t rows = nest->dims[inner] - done;
            rows = rows < RT_REDUCE_BLOCK_ROWS ? rows : RT_REDUCE_BLOCK_ROWS;
            if (c->index) {
                locate_run(c, begin + done * stride, stride, rows, at);
            } else {
                fold_run(c, begin + done * stride, stride, rows);
            }
            if (in_blocks) {
                flush_sums(c);
            }
            at += rows;
        }
    }
}

static void set_identity(const struct columns *c)
{
    static const struct rt_number identities[RT_FOLD_COUNT] = {
        [RT_FOLD_PROD] = {1, 1},
        [RT_FOLD_MAX] = {-INFINITY, INT64_MIN},
        [RT_FOLD_MIN] = {INFINITY, INT64_MAX},
    };
    const struct rt_number *identity = &identities[c->k->fold];

    if (c->k->class == RT_CLASS_I64) {
        rt_convert_load(DT_I64, RT_CLASS_I64)(c->values, (const char *)&identity->i, 0, c->n);
    } else {
        rt_convert_load(DT_F64, c->k->class)(c->values, (const char *)&identity->f, 0, c->n);
    }
    for (int64_t j = 0; j < c->n; j++) {
        c->sums[j] = 0;
    }
}

/* Column |j|'s result. */
static struct state column_state(const struct columns *c, int64_t j)
{
    struct state s = {0};

    switch (c->k->class) {
    case RT_CLASS_F32:
        s.f = c->sums[j] + (double)((const float *)(const void *)c->values)[j];
        break;
    case RT_CLASS_F64:
        s.f = ((const double *)(const void *)c->values)[j];
        break;
    case RT_CLASS_I64:
        s.i = ((const int64_t *)(const void *)c->values)[j];
        break;
    default:
        s.i = ((const uint8_t *)c->values)[j];
    }
    s.mean = s.f / (double)c->k->reduced.numel;
    s.index = c->index ? c->index[j] : 0;
    return s;
}

/* Is an index among the outputs that a node reads? */
static bool tells_index(const struct hal_args *args)
{
    const struct rt_reduce_constants *k = args->constants;
    uint32_t last = k->output_count - 1;
    return k->outputs[last].result == RT_RESULT_INDEX && args->bindings[last];
}

static void columns_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_reduce_constants *k = args->constants;
    const struct rt_nest *kept = &k->kept;
    int64_t width = kept->dims[kept->rank - 1], first = (int64_t)tile.x * k->tile;
    size_t area = (size_t)RT_REDUCE_COLUMNS * RT_CLASS_BYTES_MAX;
    char *scratch = args->scratch;
    struct columns c = {
        .k = k,
        .n = width - first < k->tile ? width - first : k->tile,
        .row = scratch,
        .values = scratch + area,
        .sums = (double *)(void *)(scratch + 2 * area),
        .index = tells_index(args) ? (int64_t *)(void *)(scratch + 3 * area) : NULL,
        .load =
            rt_convert_is_direct(k->class, k->dtype) ? NULL : rt_convert_load(k->dtype, k->class),
    };
    const char *from = (const char *)args->bindings[k->output_count] +
                       offset_of(kept, kept->rank - 1, tile.y) +
                       first * kept->strides[kept->rank - 1];

    set_identity(&c);
    fold_columns(&c, from);
    for (int64_t j = 0; j < c.n; j++) {
        struct state s = column_state(&c, j);
        write_outputs(args, tile.y * width + first + j, &s);
    }
}

const struct hal_kernel rt_reduce_columns_kernel = {.name = "reduce_columns",
                                                    .cpu = columns_tile,
                                                    .spirv = HAL_SPIRV_SUBGROUPS(reduce, 256),
                                                    .variant = RT_REDUCE_BY_COLUMNS};
const struct hal_kernel rt_reduce_columns_f64_kernel = {.name = "reduce_columns",
                                                        .cpu = columns_tile};

/* ---- columns in two steps -------------------------------------------------------------------- */

static void blocks_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_reduce_constants *k = args->constants;
    const struct rt_nest *kept = &k->kept;
    int64_t width = kept->dims[kept->rank - 1], blocks = rt_reduce_blocks(k);
    int64_t stride = k->reduced.strides[0], first = (int64_t)tile.x * k->tile;
    int64_t behind = blocks - first < k->tile ? blocks : first + k->tile;
    const char *from = (const char *)args->bindings[1] + offset_of(kept, kept->rank - 1, tile.y);
    float *sums = (float *)args->bindings[0] + tile.y * blocks * width;

    for (int64_t block = first; block < behind; block++) {
        int64_t row = block * RT_REDUCE_BLOCK_ROWS, rows = k->reduced.numel - row;
        rows = rows < RT_REDUCE_BLOCK_ROWS ? rows : RT_REDUCE_BLOCK_ROWS;
        float *to = sums + block * width;
        memset(to, 0, (size_t)width * sizeof(*to));
        hal_cpu_uk()->rows_add_f32(to, (const float *)(const void *)(from + row * stride),
                                   (size_t)rows, stride / (int64_t)sizeof(float), (size_t)width);
    }
}

static void joined_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_reduce_constants *k = args->constants;
    int64_t width = k->kept.dims[k->kept.rank - 1], blocks = rt_reduce_blocks(k);
    int64_t first = (int64_t)tile.x * k->tile;
    int64_t behind = width - first < k->tile ? width : first + k->tile;
    const float *sums = (const float *)args->bindings[k->output_count] + tile.y * blocks * width;

    for (int64_t j = first; j < behind; j++) {
        struct state s = {0};
        for (int64_t block = 0; block < blocks; block++) {
            s.f += (double)sums[block * width + j];
        }
        s.mean = s.f / (double)k->reduced.numel;
        write_outputs(args, tile.y * width + j, &s);
    }
}

const struct hal_kernel rt_reduce_blocks_kernel = {.name = "reduce_blocks", .cpu = blocks_tile};
const struct hal_kernel rt_reduce_joined_kernel = {.name = "reduce_joined", .cpu = joined_tile};
