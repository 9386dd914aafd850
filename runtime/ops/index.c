/* SPDX-License-Identifier: MIT */
/*
 * Indexing by tensors: index, index_select and embedding take from a table, index_put writes into
 * one. All are one walk. Index tensors, broadcast together, stand for some dims of the table; both
 * sides walk the remaining dims, here called the rest. The list is the side that has the index
 * dims: the output of a take, the values of a put.
 *
 * A place outside the table is a fault. index and index_put count negative places from the end. If
 * several puts write one place, the last in row-major order stays.
 *
 * index_put also accepts a single mask. Its places are the positions of its true elements in
 * row-major order; there must be as many values, or one value for all. The result of taking by a
 * mask has an extent that depends on data, so that is another operator.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/emit/emit.h"
#include "runtime/emit/minmax.h"
#include "runtime/kernels/copy.h"
#include "runtime/kernels/keep.h"
#include "runtime/ops/index_priv.h"
#include "runtime/ops/op.h"
#include "runtime/ops/view_priv.h"

#define UNIT_MAX 16 /* bytes that a lane moves at a time */

/* ---- which dims are indexed, and how --------------------------------------------------------- */

/* The index tensors of a node; tensor k stands for dim dims[k] of the table. */
struct index_dims {
    uint8_t count;
    uint8_t dims[SHAPE_RANK_MAX];
    uint32_t mask; /* bit set of the indexed dims */
    uint8_t first; /* number of rest dims before the index dims in the result */
};

static void add_dim(struct index_dims *index, uint8_t dim)
{
    index->dims[index->count++] = dim;
    index->mask |= 1u << dim;
}

/* Adjacent indexed dims are replaced in place; otherwise the index dims go to the front. */
static void place_dims(struct index_dims *index)
{
    bool is_adjacent = index->dims[index->count - 1] - index->dims[0] == index->count - 1;
    index->first = is_adjacent ? index->dims[0] : 0;
}

/* The result's dims: the rest's, with |index_rank| index dims inserted at |first|. */
static enum status result_dims(struct rt_shape_call *call, const struct index_dims *index,
                               uint8_t index_rank, const struct rt_dim *index_dims,
                               struct rt_dim out[SHAPE_RANK_MAX], uint8_t *out_rank)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    uint8_t rank = 0, rest = 0;

    TRY(rt_view_rank(call, (uint32_t)self->rank - index->count + index_rank));
    for (uint8_t d = 0; d <= self->rank; d++) {
        if (rest == index->first && rank == rest) {
            for (uint8_t i = 0; i < index_rank; i++) {
                out[rank++] = index_dims[i];
            }
        }
        if (d < self->rank && !(index->mask >> d & 1)) {
            out[rank++] = self->dims[d];
            rest++;
        }
    }
    *out_rank = rank;
    return ST_OK;
}

static enum status need_places(struct rt_shape_call *call, const struct rt_value *tensor)
{
    if (tensor->dtype == DT_BOOL || tensor->dtype == DT_U8) {
        return rt_shape_unsupported(call, "indexing by a mask is not supported here");
    }
    if (tensor->dtype != DT_I64 && tensor->dtype != DT_I32) {
        return rt_shape_refuse(call, "the indices are %s, expected i64 or i32",
                               dtype_text(tensor->dtype));
    }
    return ST_OK;
}

/* Argument 1 is a list of index tensors or nones; computes the result's dims from it. */
static enum status list_result(struct rt_shape_call *call, struct rt_dim out[SHAPE_RANK_MAX],
                               uint8_t *out_rank)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *list = rt_shape_arg(call, 1);
    struct index_dims index = {0};
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint8_t rank = 0;

    if (list->count > self->rank) {
        return rt_shape_refuse(call, "%u indices for a tensor of rank %u", list->count, self->rank);
    }
    for (uint32_t i = 0; i < list->count; i++) {
        const struct rt_value *tensor = rt_graph_value(call->graph, list->values[i]);
        if (tensor->kind == RT_NONE) {
            continue;
        }
        TRY(need_places(call, tensor));
        TRY(rt_shape_broadcast(call, rank, dims, tensor->rank, tensor->dims, dims, &rank));
        add_dim(&index, (uint8_t)i);
    }
    if (index.count == 0) {
        return rt_shape_refuse(call, "there are no indices");
    }
    place_dims(&index);
    return result_dims(call, &index, rank, dims, out, out_rank);
}

/* Number of the list's entries that are tensors. */
static uint32_t count_indices(const struct rt_graph *graph, const struct rt_value *list)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < list->count; i++) {
        count += rt_graph_value(graph, list->values[i])->kind != RT_NONE;
    }
    return count;
}

static enum status index_shape(struct rt_shape_call *call)
{
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t rank;

    TRY(rt_view_same_dtype(call));
    if (count_indices(call->graph, rt_shape_arg(call, 1)) == 0) {
        return rt_shape_set_out_like(call, 0, 0); /* the whole table */
    }
    TRY(list_result(call, out, &rank));
    return rt_shape_set_out(call, 0, rank, out);
}

static bool is_mask(const struct rt_value *tensor)
{
    return tensor->kind == RT_TENSOR && (tensor->dtype == DT_BOOL || tensor->dtype == DT_U8);
}

/* The mask among the index tensors, which must be the only one, and the first dim that it stands
 * for. */
static enum status find_mask(struct rt_shape_call *call, const struct rt_value **out_mask,
                             uint8_t *out_dim)
{
    const struct rt_value *list = rt_shape_arg(call, 1);
    uint32_t others = 0;

    *out_mask = NULL;
    for (uint32_t i = 0; i < list->count; i++) {
        const struct rt_value *tensor = rt_graph_value(call->graph, list->values[i]);
        if (is_mask(tensor) && !*out_mask) {
            *out_mask = tensor;
            *out_dim = (uint8_t)i;
        } else {
            others += tensor->kind != RT_NONE;
        }
    }
    return *out_mask && others > 0
               ? rt_shape_unsupported(call, "a mask cannot be combined with other indices")
               : ST_OK;
}

/* As list_result(), for a mask. The number of its places is unknown and stays 0. */
static enum status mask_result(struct rt_shape_call *call, const struct rt_value *mask, uint8_t dim,
                               struct rt_dim out[SHAPE_RANK_MAX], uint8_t *out_rank)
{
    const struct rt_value *self = rt_shape_arg(call, 0);
    struct index_dims index = {.first = dim};
    struct rt_dim unknown = rt_dim_of(0);

    if (dim + mask->rank > self->rank) {
        return rt_shape_refuse(call, "a mask of rank %u at dim %u does not fit a tensor of rank %u",
                               mask->rank, dim, self->rank);
    }
    for (uint8_t d = 0; d < mask->rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, mask->dims[d], self->dims[dim + d],
                                 "size of the mask (must equal the indexed dim)", call->err));
        add_dim(&index, (uint8_t)(dim + d));
    }
    return result_dims(call, &index, 1, &unknown, out, out_rank);
}

static enum status index_put_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *values = rt_shape_arg(call, 2), *mask;
    struct rt_dim result[SHAPE_RANK_MAX];
    uint8_t rank, dim = 0;

    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 2, 1u << self->dtype));
    TRY(find_mask(call, &mask, &dim));
    TRY(mask ? mask_result(call, mask, dim, result, &rank) : list_result(call, result, &rank));
    if (values->rank > rank) {
        return rt_shape_refuse(call, "the values have rank %u, expected at most %u", values->rank,
                               rank);
    }
    for (uint8_t d = 0; d < values->rank; d++) {
        uint8_t at = (uint8_t)(rank - values->rank + d);
        if (!mask || at != dim) {
            TRY(rt_view_fits(call, values->dims[d], result[at],
                             "size of the values (must fit the indexed places)"));
        }
    }
    return rt_shape_set_out_like(call, 0, 0);
}

static enum status index_select_shape(struct rt_shape_call *call)
{
    const struct rt_value *self = rt_shape_arg(call, 0), *tensor = rt_shape_arg(call, 2);
    struct rt_dim out[SHAPE_RANK_MAX];
    uint8_t dim;

    TRY(rt_view_same_dtype(call));
    TRY(rt_view_need_dim(call, 1, &dim));
    TRY(rt_shape_need_dtype(call, 2, 1u << DT_I32 | 1u << DT_I64));
    if (tensor->rank > 1) {
        return rt_shape_refuse(call, "the indices have rank %u, expected at most 1", tensor->rank);
    }
    if (self->rank == 0 && tensor->rank == 1) {
        TRY(rt_dim_require_equal(&call->graph->dims, tensor->dims[0], rt_dim_of(1),
                                 "indices into a tensor of rank 0", call->err));
    }
    for (uint8_t d = 0; d < self->rank; d++) {
        out[d] = d != dim ? self->dims[d] : tensor->rank ? tensor->dims[0] : rt_dim_of(1);
    }
    return rt_shape_set_out(call, 0, self->rank, out);
}

static enum status embedding_shape(struct rt_shape_call *call)
{
    const struct rt_value *tensor = rt_shape_arg(call, 1);
    struct rt_dim out[SHAPE_RANK_MAX];
    struct index_dims index = {0};
    uint8_t rank;

    if (rt_shape_arg(call, 0)->rank != 2) {
        return rt_shape_refuse(call, "the weights have rank %u, expected 2",
                               rt_shape_arg(call, 0)->rank);
    }
    TRY(rt_view_same_dtype(call));
    TRY(rt_shape_need_dtype(call, 1, 1u << DT_I32 | 1u << DT_I64));
    add_dim(&index, 0);
    TRY(result_dims(call, &index, tensor->rank, tensor->dims, out, &rank));
    return rt_shape_set_out(call, 0, rank, out);
}

/* ---- recording ------------------------------------------------------------------------------- */

/* A dispatch under construction: the source of the constants. */
struct index_build {
    struct rt_index_constants c;
    const struct rt_tensor *table, *list;
    const struct rt_tensor *tensors[SHAPE_RANK_MAX];
    struct index_dims index;
    bool is_mask; /* tensors[0] is a mask and stands for all dims of |index| */
};

static void add_tensor(struct index_build *b, uint8_t dim, const struct rt_tensor *tensor)
{
    b->tensors[b->index.count] = tensor;
    add_dim(&b->index, dim);
}

static void add_mask(struct index_build *b, uint8_t dim, const struct rt_tensor *mask)
{
    b->tensors[0] = mask;
    b->is_mask = true;
    b->index.first = dim;
    for (uint8_t d = 0; d < mask->rank; d++) {
        add_dim(&b->index, (uint8_t)(dim + d));
    }
}

static void read_list(struct rt_emit *emit, struct index_build *b)
{
    for (uint32_t i = 0; i < rt_emit_value(emit, 1)->count; i++) {
        const struct rt_tensor *tensor = rt_emit_arg_item(emit, 1, i);
        if (tensor && (tensor->dtype == DT_BOOL || tensor->dtype == DT_U8)) {
            add_mask(b, (uint8_t)i, tensor);
        } else if (tensor) {
            add_tensor(b, (uint8_t)i, tensor);
        }
    }
}

/* The list's stride along dim |d| of a result of |rank| dims; the list is aligned at the right. */
static int64_t list_stride(const struct rt_tensor *list, uint32_t d, uint32_t rank)
{
    uint32_t missing = rank - list->rank;
    if (d < missing || list->dims[d - missing] == 1) {
        return 0;
    }
    return list->strides[d - missing] * (int64_t)dtype_bytes(list->dtype);
}

static void add_rest(struct index_build *b, uint32_t index_rank)
{
    struct rt_index_constants *c = &b->c;
    const struct rt_tensor *table = b->table;
    uint32_t rank = table->rank - b->index.count + index_rank, result = 0;

    for (uint32_t d = 0; d < table->rank; d++) {
        if (b->index.mask >> d & 1) {
            continue;
        }
        result += result == b->index.first ? index_rank : 0;
        c->dims[c->rest] = table->dims[d];
        c->table[c->rest] = table->strides[d] * (int64_t)dtype_bytes(table->dtype);
        c->list[c->rest++] = list_stride(b->list, result++, rank);
    }
    c->rank = c->rest;
}

static void add_index_dims(struct index_build *b, uint32_t index_rank)
{
    struct rt_index_constants *c = &b->c;
    uint32_t rank = b->table->rank - b->index.count + index_rank;

    c->places = 1;
    for (uint32_t i = 0; i < index_rank; i++) {
        uint32_t d = c->rank++;
        c->dims[d] = 1;
        c->list[d] = list_stride(b->list, b->index.first + i, rank);
        for (uint32_t k = 0; k < b->index.count; k++) {
            const struct rt_tensor *tensor = b->tensors[k];
            uint32_t missing = index_rank - tensor->rank;
            if (i >= missing && tensor->dims[i - missing] != 1) {
                c->dims[d] = tensor->dims[i - missing];
                c->masks[k] |= (uint16_t)(1u << d);
            }
        }
        c->places *= c->dims[d];
    }
}

/* The places of a mask are one dim of the list, whatever the mask's own rank. */
static void add_mask_dim(struct index_build *b)
{
    struct rt_index_constants *c = &b->c;
    const struct rt_tensor *mask = b->tensors[0], *list = b->list;
    uint32_t rank = b->table->rank - b->index.count + 1, missing = rank - list->rank;
    uint32_t at = b->index.first;

    c->is_mask = true;
    c->places = mask->numel;
    c->dims[c->rank] = mask->numel;
    c->list[c->rank] = list_stride(list, at, rank);
    c->rank++;
    bool is_one = at < missing || list->dims[at - missing] == 1;
    c->values = is_one ? RT_INDEX_NO_LIMIT : list->dims[at - missing];
}

/* Can the two dims be merged on both sides, or in all index tensors and the list? */
static bool may_merge(const struct rt_index_constants *c, uint32_t outer, uint32_t inner,
                      bool is_rest)
{
    if (c->list[outer] != c->list[inner] * c->dims[inner]) {
        return false;
    }
    if (is_rest) {
        return c->table[outer] == c->table[inner] * c->dims[inner];
    }
    for (uint32_t k = 0; k < c->count; k++) {
        if ((c->masks[k] >> outer & 1) != (c->masks[k] >> inner & 1)) {
            return false;
        }
    }
    return true;
}

/* Moves dim |from| to |to|, together with its bits in the masks. */
static void move_dim(struct rt_index_constants *c, uint32_t to, uint32_t from)
{
    c->dims[to] = c->dims[from];
    c->table[to] = c->table[from];
    c->list[to] = c->list[from];
    for (uint32_t k = 0; k < c->count; k++) {
        uint32_t has = c->masks[k] >> from & 1u;
        c->masks[k] = (uint16_t)((c->masks[k] & ~(1u << to)) | has << to);
    }
}

static void merge_dims(struct rt_index_constants *c)
{
    uint32_t kept = 0, rest = 0;

    for (uint32_t d = 0; d < c->rank; d++) {
        bool is_rest = d < c->rest;
        if (c->dims[d] == 1) {
            continue;
        }
        move_dim(c, kept, d);
        if (kept > (is_rest ? 0 : rest) && may_merge(c, kept - 1, kept, is_rest)) {
            int64_t dim = c->dims[kept - 1];
            move_dim(c, kept - 1, kept);
            c->dims[kept - 1] *= dim;
        } else {
            kept++;
        }
        rest = is_rest ? kept : rest;
    }
    c->rest = (uint8_t)rest;
    c->rank = (uint8_t)kept;
}

/* If both sides are contiguous along the innermost rest dim, that dim becomes a run of bytes. */
static void find_run(struct rt_index_constants *c)
{
    int64_t width = (int64_t)dtype_bytes(c->dtype);

    c->run = width;
    if (c->rest > 0 && c->table[c->rest - 1] == width && c->list[c->rest - 1] == width) {
        c->run *= c->dims[c->rest - 1];
        for (uint32_t d = c->rest; d < c->rank; d++) {
            move_dim(c, d - 1, d);
        }
        c->rest--;
        c->rank--;
    }
    c->rows = 1;
    for (uint32_t d = 0; d < c->rest; d++) {
        c->rows *= c->dims[d];
    }
}

static void finish(struct index_build *b)
{
    struct rt_index_constants *c = &b->c;
    uint32_t index_rank = 0;

    must(b->index.count <= SHAPE_RANK_MAX);
    c->dtype = b->table->dtype;
    c->count = b->index.count;
    must(c->count <= SHAPE_RANK_MAX);
    for (uint32_t k = 0; k < c->count; k++) {
        uint8_t dim = b->index.dims[k];
        c->sizes[k] = b->table->dims[dim];
        c->steps[k] = b->table->strides[dim] * (int64_t)dtype_bytes(c->dtype);
    }
    if (b->is_mask) {
        add_rest(b, 1);
        add_mask_dim(b);
        find_run(c);
        return;
    }
    place_dims(&b->index);
    for (uint32_t k = 0; k < c->count; k++) {
        c->i32 |= (b->tensors[k]->dtype == DT_I32 ? 1u : 0u) << k;
        index_rank = b->tensors[k]->rank > index_rank ? b->tensors[k]->rank : index_rank;
    }
    add_rest(b, index_rank);
    add_index_dims(b, index_rank);
    merge_dims(c);
    find_run(c);
}

static uint32_t tiles_of(int64_t n, int64_t tile)
{
    int64_t tiles = (n - 1) / tile + 1;
    must(tiles <= UINT32_MAX);
    return (uint32_t)tiles;
}

static enum status emit_update(struct rt_emit *emit, const struct hal_dispatch *dispatch,
                               struct hal_binding *out_words, struct error *err)
{
    const struct rt_index_constants *c = dispatch->constants;
    const struct rt_update update = {
        .rows = c->sizes[0],
        .row_bytes = c->steps[0],
        .count = c->places,
        .tiles = dispatch->grid[1] * dispatch->grid[2],
        .entries = c->places * c->tile_rows,
        .entry_bytes = c->piece,
    };
    return rt_emit_update(emit, &update, out_words, err);
}

static enum status emit_index(struct rt_emit *emit, struct index_build *b, struct error *err)
{
    struct rt_index_constants *c = &b->c;
    const struct rt_tensor *self = rt_emit_arg(emit, 0), *out = rt_emit_out(emit, 0);
    struct hal_binding bindings[4 + SHAPE_RANK_MAX] = {out->binding, self->binding};
    bool is_take = c->mode == RT_INDEX_TAKE;

    if (out->numel == 0) {
        return ST_OK;
    }
    finish(b);
    c->first = is_take ? 2 : 3;
    bindings[2] = b->list->binding;
    uint32_t tensors = b->is_mask ? 1 : c->count;
    for (uint32_t k = 0; k < tensors; k++) {
        bindings[c->first + k] = b->tensors[k]->binding;
    }
    c->words = c->first + tensors;
    /* Puts happen in order, so a tile has all places and is cut along the rest only. */
    int64_t places = is_take ? c->places : (int64_t)(self->bytes / (size_t)(c->rows * c->run));
    const struct hal_kernel *kernel = is_take ? &rt_index_take_kernel : rt_index_choose_put(c);
    int64_t bytes =
        rt_cut_units(rt_emit_machine(emit, kernel), RT_WORK_COPY, (int64_t)out->bytes, UNIT_MAX);
    c->piece = c->run < bytes ? c->run : bytes;
    if (!is_take && c->rows == 1 && c->run > 4096) {
        c->piece = 4096;
    }
    c->tile_places = bytes / c->piece < RT_INDEX_PLACES ? bytes / c->piece : RT_INDEX_PLACES;
    c->tile_places = c->tile_places < c->places ? c->tile_places : c->places;
    int64_t row = is_take ? c->tile_places * c->piece : places * c->piece;
    c->tile_rows = row < bytes ? bytes / row : 1;
    struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {is_take ? tiles_of(c->places, c->tile_places) : 1, tiles_of(c->rows, c->tile_rows),
                 tiles_of(c->run, c->piece)},
        .constants = c,
        .constants_bytes = sizeof(*c),
        .bindings = bindings,
        .binding_count = c->words + !is_take,
        .scratch_bytes = sizeof(struct rt_index_places),
        .cost = out->bytes / 4 + (uint64_t)c->places * 8,
    };
    if (!is_take && c->count == 1 && !c->is_mask) {
        TRY(emit_update(emit, &dispatch, &bindings[c->words], err));
    }
    return rt_emit_dispatch(emit, &dispatch, err);
}

static enum status index_emit(struct rt_emit *emit, struct error *err)
{
    struct index_build b = {.table = rt_emit_arg(emit, 0), .list = rt_emit_out(emit, 0)};

    b.c.mode = RT_INDEX_TAKE;
    b.c.wraps = true;
    read_list(emit, &b);
    if (b.index.count == 0) {
        struct rt_copy box = rt_copy_to(b.list);
        memcpy(box.src, b.table->strides, b.table->rank * sizeof(*box.src));
        return rt_copy_emit(emit, b.list, b.table, &box, err);
    }
    return emit_index(emit, &b, err);
}

static enum status index_put_emit(struct rt_emit *emit, struct error *err)
{
    struct index_build b = {.table = rt_emit_arg(emit, 0), .list = rt_emit_arg(emit, 2)};

    b.c.mode = rt_emit_value(emit, 3)->b ? RT_INDEX_ADD : RT_INDEX_PUT;
    b.c.wraps = true;
    read_list(emit, &b);
    return emit_index(emit, &b, err);
}

/* Treats a tensor of rank 0 as one of rank 1. */
static void give_dim(struct rt_tensor *tensor)
{
    tensor->rank = 1;
    tensor->dims[0] = tensor->strides[0] = 1;
}

static enum status index_select_emit(struct rt_emit *emit, struct error *err)
{
    struct rt_tensor table = *rt_emit_arg(emit, 0), list = *rt_emit_out(emit, 0);
    struct rt_tensor places = *rt_emit_arg(emit, 2);
    struct index_build b = {.table = &table, .list = &list};

    b.c.mode = RT_INDEX_TAKE;
    if (table.rank == 0) {
        give_dim(&table);
        give_dim(&list);
    }
    if (places.rank == 0) {
        give_dim(&places);
    }
    add_tensor(&b, rt_dim_from_first(rt_emit_int(emit, 1), table.rank), &places);
    return emit_index(emit, &b, err);
}

static enum status embedding_emit(struct rt_emit *emit, struct error *err)
{
    struct index_build b = {.table = rt_emit_arg(emit, 0), .list = rt_emit_out(emit, 0)};

    b.c.mode = RT_INDEX_TAKE;
    add_tensor(&b, 0, rt_emit_arg(emit, 1));
    return emit_index(emit, &b, err);
}

/* clang-format off */
const struct rt_op rt_ops_index[] = {
    {.name = "index", .kernels = "aten::index.Tensor_out",
     .args = "TY>T", .shape = index_shape, .emit = index_emit,
     .batch = rt_batch_index, .dtypes = RT_DTYPES_ALL, .runs = &rt_index_take_kernel},
    {.name = "index_select", .kernels = "aten::index_select.out",
     .args = "TIT>T", .shape = index_select_shape, .emit = index_select_emit,
     .batch = rt_batch_along, .dtypes = RT_DTYPES_ALL, .runs = &rt_index_take_kernel},
    {.name = "embedding", .kernels = "aten::embedding.out",
     .args = "TTIBB>T", .shape = embedding_shape, .emit = embedding_emit, .batch = rt_batch_lookup,
     .dtypes = RT_DTYPES_ALL, .runs = &rt_index_take_kernel},
    {.name = "index_put", .kernels = "aten::index_put.out",
     .args = "TYTB>T", .shape = index_put_shape, .emit = index_put_emit,
     .flags = RT_OP_IN_PLACE | RT_OP_ROWS, .batch = rt_batch_put, .dtypes = RT_DTYPES_ALL,
     .runs = &rt_index_put_kernel},
    {.name = "index_put_into", .kernels = "aten::index_put_",
     .args = "T!YTB>", .shape = index_put_shape, .emit = index_put_emit,
     .flags = RT_OP_IN_PLACE | RT_OP_ROWS, .dtypes = RT_DTYPES_ALL, .runs = &rt_index_put_kernel},
    {0},
};
/* clang-format on */
