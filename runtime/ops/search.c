/* SPDX-License-Identifier: MIT */
/*
 * Places of numbers in sorted rows: how many elements of a row are less than a number, or with
 * |right| not greater. A row that is not sorted gives some place, as in PyTorch. The place of NaN
 * is behind all elements. Numbers are compared as doubles, or as integers of 64 bits. A tile is
 * some numbers.
 */
#include "config.h"

#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"

#define CHUNK 256
#define TYPES (RT_DTYPES_REAL & ~(1u << DT_U64))

struct search_constants {
    enum dtype dtype, out;
    bool is_right;
    int64_t length;  /* of a row */
    int64_t per_row; /* numbers that are looked up in a row */
    int64_t numel, tile;
};

/* A row, whose elements are loaded one at a time. */
struct row {
    rt_load_f *load;
    const char *bytes;
    int64_t width, length;
};

#define DEFINE_PLACE(type, suffix)                                                                 \
    static int64_t place_##suffix(const struct row *row, type x, bool is_right)                    \
    {                                                                                              \
        int64_t low = 0, high = row->length;                                                       \
        while (low < high) {                                                                       \
            int64_t middle = low + (high - low) / 2;                                               \
            type at;                                                                               \
            row->load(&at, row->bytes + middle * row->width, row->width, 1);                       \
            bool is_before = is_right ? !(at > x) : !(at >= x);                                    \
            low = is_before ? middle + 1 : low;                                                    \
            high = is_before ? high : middle;                                                      \
        }                                                                                          \
        return low;                                                                                \
    }
DEFINE_PLACE(double, f64)
DEFINE_PLACE(int64_t, i64)

/* Bindings: out, rows, numbers. */
static void search_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct search_constants *c = args->constants;
    bool is_float = dtype_is_float(c->dtype);
    enum rt_class class = is_float ? RT_CLASS_F64 : RT_CLASS_I64;
    int64_t width = (int64_t)dtype_bytes(c->dtype), out_width = (int64_t)dtype_bytes(c->out);
    int64_t first = tile.x * c->tile, end = rt_min(first + c->tile, c->numel);
    union {
        double f[CHUNK];
        int64_t i[CHUNK];
    } x;
    int64_t places[CHUNK];

    for (int64_t at = first, n; at < end; at += n) {
        n = rt_min(CHUNK, end - at);
        rt_convert_load(c->dtype, class)(&x, (const char *)args->bindings[2] + at * width, width,
                                         n);
        for (int64_t j = 0; j < n; j++) {
            int64_t begin = (at + j) / c->per_row * c->length;
            struct row row = {rt_convert_load(c->dtype, class),
                              (const char *)args->bindings[1] + begin * width, width, c->length};
            places[j] = is_float ? place_f64(&row, x.f[j], c->is_right)
                                 : place_i64(&row, x.i[j], c->is_right);
        }
        rt_convert_store(RT_CLASS_I64, c->out)((char *)args->bindings[0] + at * out_width,
                                               out_width, places, n);
    }
}

static const struct hal_kernel kernel_search = {.name = "search", .cpu = search_tile};

/* Numbers and rows are arguments |numbers| and 1 - |numbers|. */
static enum status search_shape(struct rt_shape_call *call, uint32_t numbers)
{
    const struct rt_value *x = rt_shape_arg(call, numbers);
    const struct rt_value *rows = rt_shape_arg(call, 1 - numbers);

    TRY(rt_shape_need_dtype(call, 1, 1u << rt_shape_arg(call, 0)->dtype));
    TRY(rt_shape_need_out_dtype(call, 0, 1u << (rt_shape_arg(call, 2)->b ? DT_I32 : DT_I64)));
    if (rows->rank == 0 || (rows->rank != 1 && rows->rank != x->rank)) {
        return rt_shape_refuse(call, "sorted rows of rank %u for numbers of rank %u", rows->rank,
                               x->rank);
    }
    for (uint8_t d = 0; d + 1 < rows->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, x->dims[d], rows->dims[d],
                                 "the sorted rows and the numbers", call->err));
    }
    return rt_shape_set_out(call, 0, x->rank, x->dims);
}

static enum status search_emit(struct rt_emit *emit, uint32_t numbers, bool is_right,
                               struct error *err)
{
    const struct rt_tensor *x = rt_emit_arg(emit, numbers);
    const struct rt_tensor *rows = rt_emit_arg(emit, 1 - numbers), *out = rt_emit_out(emit, 0);
    struct search_constants c = {.dtype = x->dtype,
                                 .out = out->dtype,
                                 .is_right = is_right,
                                 .length = rows->dims[rows->rank - 1],
                                 .numel = x->numel,
                                 .tile = 4 * CHUNK};

    c.per_row = rt_max(1, rows->rank == 1 ? x->numel : x->dims[x->rank - 1]);
    return rt_emit_tiles(
        emit, c.numel, c.tile,
        &(struct hal_dispatch){
            .kernel = &kernel_search,
            .constants = &c,
            .constants_bytes = sizeof(c),
            .bindings = (struct hal_binding[]){out->binding, rows->binding, x->binding},
            .binding_count = 3,
            .cost = (uint64_t)c.numel * 40,
        },
        err);
}

static enum status bucketize_shape(struct rt_shape_call *call)
{
    if (rt_shape_arg(call, 1)->rank != 1) {
        return rt_shape_refuse(call, "boundaries of rank %u, expected 1",
                               rt_shape_arg(call, 1)->rank);
    }
    return search_shape(call, 0);
}

static enum status bucketize_emit(struct rt_emit *emit, struct error *err)
{
    return search_emit(emit, 0, rt_emit_value(emit, 3)->b, err);
}

static enum status searchsorted_shape(struct rt_shape_call *call)
{
    const struct rt_value *side = rt_shape_arg(call, 4);

    if (rt_shape_arg(call, 5)->kind != RT_NONE) {
        return rt_shape_unsupported(call, "an order of the rows (sorter)");
    }
    if (side->kind != RT_NONE && !span_is(side->bytes, "left") && !span_is(side->bytes, "right")) {
        return rt_shape_refuse(call, "side '%.*s', expected left or right", (int)side->bytes.len,
                               side->bytes.ptr);
    }
    return search_shape(call, 1);
}

static enum status searchsorted_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_value *side = rt_emit_value(emit, 4);
    bool is_right =
        rt_emit_value(emit, 3)->b || (side->kind != RT_NONE && span_is(side->bytes, "right"));
    return search_emit(emit, 1, is_right, err);
}

const struct rt_op rt_ops_search[] = {
    {.name = "bucketize",
     .kernels = "aten::bucketize.Tensor_out",
     .args = "TTBB>T",
     .shape = bucketize_shape,
     .emit = bucketize_emit,
     .dtypes = TYPES,
     .runs = &kernel_search},
    {.name = "searchsorted",
     .kernels = "aten::searchsorted.Tensor_out",
     .args = "TTBBZ?T?>T",
     .shape = searchsorted_shape,
     .emit = searchsorted_emit,
     .dtypes = TYPES,
     .runs = &kernel_search},
    {.name = NULL},
};
