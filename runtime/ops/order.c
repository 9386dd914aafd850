/* SPDX-License-Identifier: MIT */
/*
 * topk: the k largest or smallest elements of each row along a dim, and their positions. sort: all
 * elements of each row; equal ones keep their order.
 *
 * Elements are mapped to signed integers in the same order, NaN above all others, -0 equal to 0;
 * for the smallest elements all bits are inverted. PyTorch does not specify which of several equal
 * elements is chosen, nor the order of an unsorted result, but tests compare programs with it. The
 * selection therefore follows the C++ library: partial_sort for few of many (a heap, streamed over
 * the row), else nth_element and sort. Those fall back to heaps, so no data makes them slower than
 * n log n.
 */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/convert.h"
#include "runtime/ops/op.h"
#include "runtime/ops/order.h"
#include "runtime/ops/shaders/generated/spirv.h"
#include "runtime/ops/view_priv.h"

#define CHUNK 256
#define FEW 64                         /* a heap is used if k times this is at most n */
#define ENTRIES_MAX ((int64_t)1 << 19) /* of scratch */
#define INSERTION_SORT_MAX 16

struct entry {
    int64_t key, index;
};

/* ---- the order of elements ------------------------------------------------------------------- */

/* The class that holds all values of a type exactly: for small types, float. */
static enum rt_class key_class(enum dtype dtype)
{
    bool is_half = dtype == DT_F16 || dtype == DT_BF16 || dtype == DT_F32;
    return dtype == DT_F64 ? RT_CLASS_F64 : is_half ? RT_CLASS_F32 : RT_CLASS_I64;
}

static int64_t key_f32(float value)
{
    int32_t bits;
    value += 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &value, sizeof(bits));
    return value != value ? INT64_MAX : bits ^ ((bits >> 31) & INT32_MAX);
}

static int64_t key_f64(double value)
{
    int64_t bits;
    value += 0.0;
    memcpy(&bits, &value, sizeof(bits));
    return value != value ? INT64_MAX : bits ^ ((bits >> 63) & INT64_MAX);
}

/* Reads |count| elements and converts them to keys in place. */
static void load_keys(const struct rt_topk_constants *c, const char *from, int64_t count,
                      int64_t keys[CHUNK])
{
    enum rt_class class = key_class(c->dtype);
    int64_t turn = c->is_smallest ? -1 : 0;
    union {
        float f32[CHUNK];
        double f64[CHUNK];
        int64_t i64[CHUNK];
    } values;

    rt_convert_load(c->dtype, class)(&values, from, c->in_step, count);
    if (class == RT_CLASS_F32) {
        for (int64_t i = 0; i < count; i++) {
            keys[i] = key_f32(values.f32[i]) ^ turn;
        }
    } else if (class == RT_CLASS_F64) {
        for (int64_t i = 0; i < count; i++) {
            keys[i] = key_f64(values.f64[i]) ^ turn;
        }
    } else {
        turn ^= c->dtype == DT_U64 ? INT64_MIN : 0;
        for (int64_t i = 0; i < count; i++) {
            keys[i] = values.i64[i] ^ turn;
        }
    }
}

/* ---- heaps: the root is the entry that would go first ---------------------------------------- */

/* Puts |value| into the heap's hole at |hole|; larger keys come later on the way down. */
static void heap_adjust(struct entry *heap, int64_t hole, int64_t count, struct entry value)
{
    int64_t top = hole, child = hole;

    while (child < (count - 1) / 2) {
        child = 2 * child + 2;
        child -= heap[child].key > heap[child - 1].key;
        heap[hole] = heap[child];
        hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) {
        child = 2 * child + 1;
        heap[hole] = heap[child];
        hole = child;
    }
    for (int64_t parent = (hole - 1) / 2; hole > top && heap[parent].key > value.key;
         parent = (hole - 1) / 2) {
        heap[hole] = heap[parent];
        hole = parent;
    }
    heap[hole] = value;
}

static void heap_make(struct entry *heap, int64_t count)
{
    for (int64_t i = count / 2; i-- > 0;) {
        heap_adjust(heap, i, count, heap[i]);
    }
}

static void heap_sort(struct entry *heap, int64_t count)
{
    while (count-- > 1) {
        struct entry last = heap[count];
        heap[count] = heap[0];
        heap_adjust(heap, 0, count, last);
    }
}

/* Makes the first |k| a heap of the largest of all |count| entries. */
static void heap_select(struct entry *entries, int64_t k, int64_t count)
{
    heap_make(entries, k);
    for (int64_t i = k; i < count; i++) {
        if (entries[i].key > entries[0].key) {
            struct entry value = entries[i];
            entries[i] = entries[0];
            heap_adjust(entries, 0, k, value);
        }
    }
}

/* ---- partitions: larger keys first ----------------------------------------------------------- */

static void swap(struct entry *a, struct entry *b)
{
    struct entry held = *a;
    *a = *b;
    *b = held;
}

static void median_to(struct entry *to, struct entry *a, struct entry *b, struct entry *c)
{
    if (a->key > b->key) {
        swap(to, b->key > c->key ? b : a->key > c->key ? c : a);
    } else {
        swap(to, a->key > c->key ? a : b->key > c->key ? c : b);
    }
}

/* Splits 4 or more entries by the median of three; returns the start of the second part, whose
 * entries are at most as large as the first part's. */
static int64_t partition(struct entry *entries, int64_t count)
{
    int64_t low = 1, high = count;

    median_to(entries, entries + 1, entries + count / 2, entries + count - 1);
    for (int64_t pivot = entries[0].key;; low++) {
        while (entries[low].key > pivot) {
            low++;
        }
        while (pivot > entries[--high].key) {
        }
        if (low >= high) {
            return low;
        }
        swap(entries + low, entries + high);
    }
}

static void insertion_sort(struct entry *entries, int64_t count)
{
    for (int64_t i = 1; i < count; i++) {
        struct entry value = entries[i];
        int64_t at = i;
        for (; at > 0 && value.key > entries[at - 1].key; at--) {
            entries[at] = entries[at - 1];
        }
        entries[at] = value;
    }
}

/* Number of partitions before heaps take over. */
static int depth_of(int64_t count)
{
    int depth = 0;
    while (count >>= 1) {
        depth += 2;
    }
    return depth;
}

/* Puts the entry of rank |nth| in its sorted place; no smaller entry is before it. */
static void nth_element(struct entry *entries, int64_t nth, int64_t count)
{
    int64_t first = 0, last = count;

    for (int depth = depth_of(count); last - first > 3; depth--) {
        if (depth == 0) {
            heap_select(entries + first, nth + 1 - first, last - first);
            swap(entries + first, entries + nth);
            return;
        }
        int64_t cut = first + partition(entries + first, last - first);
        if (cut <= nth) {
            first = cut;
        } else {
            last = cut;
        }
    }
    insertion_sort(entries + first, last - first);
}

/* The stack holds the parts still to be sorted, each smaller than the one below it. */
static void sort(struct entry *entries, int64_t count)
{
    struct {
        int64_t end;
        int depth;
    } stack[2 * 64];
    int64_t first = 0, last = count;
    int depth = depth_of(count), waiting = 0;

    for (;;) {
        while (last - first > INSERTION_SORT_MAX && depth > 0) {
            int64_t cut = first + partition(entries + first, last - first);
            must(waiting < (int)(sizeof(stack) / sizeof(stack[0])));
            depth--;
            stack[waiting].end = last;
            stack[waiting++].depth = depth;
            last = cut;
        }
        if (last - first > INSERTION_SORT_MAX) {
            heap_make(entries + first, last - first);
            heap_sort(entries + first, last - first);
        }
        if (waiting == 0) {
            break;
        }
        first = last;
        last = stack[--waiting].end;
        depth = stack[waiting].depth;
    }
    insertion_sort(entries, count);
}

/* ---- merges: larger keys first, equal ones stay in order ------------------------------------- */

static void merge(const struct entry *a, const struct entry *a_end, const struct entry *b,
                  const struct entry *b_end, struct entry *to)
{
    while (a < a_end && b < b_end) {
        *to++ = b->key > a->key ? *b++ : *a++;
    }
    memcpy(to, a, (size_t)(a_end - a) * sizeof(*a));
    memcpy(to + (a_end - a), b, (size_t)(b_end - b) * sizeof(*b));
}

/* Sorts with as much memory behind the entries; returns where the sorted entries are. */
static struct entry *merge_sort(struct entry *entries, int64_t count)
{
    struct entry *from = entries, *to = entries + count;

    for (int64_t first = 0; first < count; first += INSERTION_SORT_MAX) {
        insertion_sort(from + first, rt_min(INSERTION_SORT_MAX, count - first));
    }
    for (int64_t run = INSERTION_SORT_MAX; run < count; run *= 2) {
        for (int64_t first = 0; first < count; first += 2 * run) {
            int64_t middle = rt_min(first + run, count), end = rt_min(first + 2 * run, count);
            merge(from + first, from + middle, from + middle, from + end, to + first);
        }
        struct entry *sorted = to;
        to = from;
        from = sorted;
    }
    return from;
}

/* ---- a row ----------------------------------------------------------------------------------- */

static void load_entries(const struct rt_topk_constants *c, const char *row, struct entry *entries,
                         int64_t count)
{
    int64_t keys[CHUNK];

    for (int64_t begin = 0; begin < count; begin += CHUNK) {
        int64_t n = rt_min(CHUNK, count - begin);
        load_keys(c, row + begin * c->in_step, n, keys);
        for (int64_t i = 0; i < n; i++) {
            entries[begin + i] = (struct entry){keys[i], begin + i};
        }
    }
}

/* Is any key above |least|? In most chunks none is, and their keys need no further look. */
static bool has_above(const int64_t *keys, int64_t count, int64_t least)
{
    int64_t above = 0;
    for (int64_t i = 0; i < count; i++) {
        above |= keys[i] > least;
    }
    return above != 0;
}

/* The first |k| in order, of a row that is read once. */
static void select_few(const struct rt_topk_constants *c, const char *row, struct entry *heap)
{
    int64_t keys[CHUNK];

    load_entries(c, row, heap, c->k);
    heap_make(heap, c->k);
    for (int64_t begin = c->k; begin < c->n; begin += CHUNK) {
        int64_t n = rt_min(CHUNK, c->n - begin);
        load_keys(c, row + begin * c->in_step, n, keys);
        if (!has_above(keys, n, heap[0].key)) {
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            if (keys[i] > heap[0].key) {
                heap_adjust(heap, 0, c->k, (struct entry){keys[i], begin + i});
            }
        }
    }
    heap_sort(heap, c->k);
}

static void topk_row(const struct rt_topk_constants *c, struct entry *entries, const char *row,
                     char *values, char *indices)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype);

    if (c->is_few) {
        select_few(c, row, entries);
    } else if (c->is_stable) {
        load_entries(c, row, entries, c->n);
        entries = merge_sort(entries, c->n);
    } else {
        load_entries(c, row, entries, c->n);
        nth_element(entries, c->k - 1, c->n);
        if (c->is_sorted) {
            sort(entries, c->k - 1);
        }
    }
    for (int64_t i = 0; i < c->k; i++) {
        if (values) {
            memcpy(values + i * c->value_step, row + entries[i].index * c->in_step, (size_t)width);
        }
        if (indices) {
            memcpy(indices + i * c->index_step, &entries[i].index, sizeof(int64_t));
        }
    }
}

/* Bindings: values, indices, input. */
static void topk_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_topk_constants *c = args->constants;
    int64_t width = (int64_t)dtype_bytes(c->dtype);
    int64_t first = tile.x * c->tile, end = rt_min(first + c->tile, c->rows);
    char *values = args->bindings[0], *indices = args->bindings[1];

    for (int64_t r = first; r < end; r++) {
        int64_t in = 0, out = 0, left = r;
        for (uint32_t d = c->rank; d-- > 0; left /= c->dims[d]) {
            in += left % c->dims[d] * c->in[d];
            out += left % c->dims[d] * c->out[d];
        }
        topk_row(c, args->scratch, (const char *)args->bindings[2] + in * width,
                 values ? values + out * width : NULL,
                 indices ? indices + out * (int64_t)sizeof(int64_t) : NULL);
    }
}

static const struct hal_kernel topk_kernel = {
    .name = "topk", .cpu = topk_tile, .spirv = HAL_SPIRV(topk_spirv)};
static const struct hal_kernel topk_host_kernel = {.name = "topk", .cpu = topk_tile};
static const struct hal_kernel sort_kernel = {
    .name = "sort", .cpu = topk_tile, .spirv = HAL_SPIRV(topk_spirv)};
static const struct hal_kernel sort_host_kernel = {.name = "sort", .cpu = topk_tile};

/* The entries must fit into a workgroup's memory; their positions have 32 bits there. */
static const struct hal_kernel *kernel_for(const struct rt_topk_constants *c)
{
    bool has_room = (c->is_few ? c->k : c->n) <= RT_TOPK_SHARED && c->n <= UINT32_MAX;
    if (c->is_stable) {
        return has_room ? &sort_kernel : &sort_host_kernel;
    }
    return has_room ? &topk_kernel : &topk_host_kernel;
}

/* ---- the operator ---------------------------------------------------------------------------- */

static enum status topk_shape(struct rt_shape_call *call)
{
    const struct rt_value *in = rt_shape_arg(call, 0);
    struct rt_dim dims[SHAPE_RANK_MAX], k = rt_shape_arg(call, 1)->i;
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(rt_view_need_dim(call, 2, &dim));
    if (rt_dim_is_const(k) && k.value < 0) {
        return rt_shape_refuse(call, "k is %" PRId64 ", expected 0 or more", k.value);
    }
    for (uint8_t d = 0; d < in->rank; d++) {
        dims[d] = d == dim ? k : in->dims[d];
    }
    if (in->rank > 0) { /* for a single number PyTorch accepts any k */
        TRY(rt_shape_need_at_least(call, in->dims[dim], k, "elements among which topk chooses"));
    }
    TRY(rt_shape_set_out(call, 0, in->rank, dims));
    return rt_shape_set_out(call, 1, in->rank, dims);
}

static void fill_constants(struct rt_topk_constants *c, const struct rt_tensor *in,
                           const int64_t *out_strides, uint8_t dim)
{
    int64_t width = (int64_t)dtype_bytes(in->dtype);

    c->rows = 1;
    c->n = in->rank ? in->dims[dim] : 1;
    c->in_step = in->rank ? in->strides[dim] * width : width;
    c->value_step = in->rank ? out_strides[dim] * width : width;
    c->index_step = in->rank ? out_strides[dim] * (int64_t)sizeof(int64_t) : 0;
    for (uint8_t d = 0; d < in->rank; d++) {
        if (d != dim) {
            c->dims[c->rank] = in->dims[d];
            c->in[c->rank] = in->strides[d];
            c->out[c->rank++] = out_strides[d];
            c->rows *= in->dims[d];
        }
    }
}

/* The rows of |emit| along |dim|, each with room for |entries|. */
static enum status emit_rows(struct rt_emit *emit, struct rt_topk_constants *c, int64_t entries,
                             struct error *err)
{
    const struct rt_tensor *indices = rt_emit_out(emit, 1);
    struct hal_binding bindings[3] = {
        [0] = rt_emit_out(emit, 0)->binding, [2] = rt_emit_arg(emit, 0)->binding};

    if (indices) {
        bindings[1] = indices->binding;
    }
    const struct hal_kernel *kernel = kernel_for(c);
    const struct rt_machine *machine = rt_emit_machine(emit, kernel);
    c->tile = rt_cut_things(machine, RT_WORK_ELEMENTS, c->rows, c->n,
                            rt_max(machine->lanes, c->n)); /* all lanes share a row */
    return rt_emit_tiles(emit, c->rows, c->tile,
                         &(struct hal_dispatch){
                             .kernel = kernel,
                             .constants = c,
                             .constants_bytes = sizeof(*c),
                             .bindings = bindings,
                             .binding_count = 3,
                             .scratch_bytes = (size_t)entries * sizeof(struct entry),
                             .cost = (uint64_t)(c->rows * (c->n * 2 + c->k * 20)),
                         },
                         err);
}

static enum status topk_emit(struct rt_emit *emit, struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *values = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, 2), in->rank);
    struct rt_topk_constants c = {.dtype = in->dtype,
                                  .is_smallest = !rt_emit_value(emit, 3)->b,
                                  .is_sorted = rt_emit_value(emit, 4)->b,
                                  .k = rt_emit_int(emit, 1)};

    if (in->rank == 0) {
        c.k = 1;
    }
    fill_constants(&c, in, values->strides, dim);
    if (c.k < 0) { /* k may exceed the row: see topk_shape() */
        return error_set(err, ST_INVALID, "topk: k is %" PRId64 ", expected 0 or more", c.k);
    }
    if (c.k == 0 || in->numel == 0) {
        return ST_OK;
    }
    c.is_few = c.k <= c.n / FEW || c.n > ENTRIES_MAX;
    int64_t entries = c.is_few ? c.k : c.n;
    if (entries > ENTRIES_MAX) {
        return error_set(err, ST_UNSUPPORTED,
                         "topk: the first %" PRId64 " of %" PRId64
                         " elements, expected at most %" PRId64,
                         c.k, c.n, ENTRIES_MAX);
    }
    return emit_rows(emit, &c, entries, err);
}

/* self, stable?, dim, descending; one of the two kernel calls has no |stable|. */
static uint32_t sort_dim(uint32_t arg_count)
{
    return arg_count - 2;
}

static enum status sort_shape(struct rt_shape_call *call)
{
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_out_dtype(call, 1, 1u << DT_I64));
    TRY(rt_view_need_dim(call, sort_dim(call->node->arg_count), &dim));
    TRY(rt_shape_set_out_like(call, 0, 0));
    return rt_shape_set_out_like(call, 1, 0);
}

static enum status emit_sort(struct rt_emit *emit, uint32_t dim_arg, struct error *err)
{
    const struct rt_tensor *in = rt_emit_arg(emit, 0), *values = rt_emit_out(emit, 0);
    uint8_t dim = rt_dim_from_first(rt_emit_int(emit, dim_arg), in->rank);
    struct rt_topk_constants c = {
        .dtype = in->dtype, .is_smallest = !rt_emit_value(emit, dim_arg + 1)->b, .is_stable = true};

    fill_constants(&c, in, values->strides, dim);
    c.k = c.n;
    if (in->numel == 0) {
        return ST_OK;
    }
    if (c.n > ENTRIES_MAX) {
        return error_set(err, ST_UNSUPPORTED,
                         "sort: %" PRId64 " elements, expected at most %" PRId64, c.n, ENTRIES_MAX);
    }
    return emit_rows(emit, &c, 2 * c.n, err);
}

static enum status sort_emit(struct rt_emit *emit, struct error *err)
{
    return emit_sort(emit, 1, err);
}

static enum status sort_stable_emit(struct rt_emit *emit, struct error *err)
{
    return emit_sort(emit, 2, err);
}

const struct rt_op rt_ops_order[] = {
    {.name = "topk",
     .kernels = "aten::topk.values",
     .args = "TIIBB>TT",
     .shape = topk_shape,
     .emit = topk_emit,
     .batch = rt_batch_along_third,
     .layout = RT_LAYOUT_ANY,
     .dtypes = RT_DTYPES_ALL,
     .runs = &topk_kernel},
    {.name = "sort",
     .kernels = "aten::sort.values",
     .args = "TIB>TT",
     .shape = sort_shape,
     .emit = sort_emit,
     .batch = rt_batch_along,
     .layout = RT_LAYOUT_ANY,
     .dtypes = RT_DTYPES_ALL,
     .runs = &sort_kernel},
    {.name = "sort_stable",
     .kernels = "aten::sort.values_stable",
     .args = "TB?IB>TT",
     .shape = sort_shape,
     .emit = sort_stable_emit,
     .batch = rt_batch_along_third,
     .layout = RT_LAYOUT_ANY,
     .dtypes = RT_DTYPES_ALL,
     .runs = &sort_kernel},
    {.name = NULL},
};
