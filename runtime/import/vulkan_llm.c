/* SPDX-License-Identifier: MIT */
/*
 * Operators of the Vulkan dialect for language models and detectors: rotations of queries and keys,
 * caches of rows, places on a grid.
 *
 * An int that a call reads from a tensor, or that an input gives as a tensor, stays a tensor here:
 * the host does not need its value. If rows begin at such an int, the graph computes their places.
 * A cache is either an input of the delegate, with its new content as a result, or a constant that
 * calls change: then it is the delegate's own state from call to call, like a mutable buffer of a
 * program.
 */
#include "config.h"

#include <inttypes.h>
#include <math.h>

#include "base/check.h"
#include "runtime/import/vulkan.h"

static uint32_t whole(struct rt_vulkan_import *v, int64_t number)
{
    return rt_graph_int(v->graph, rt_dim_of(number));
}

static enum status binary(struct rt_vulkan_import *v, const struct rt_op *op, uint32_t a,
                          uint32_t b, uint32_t *out_value)
{
    uint32_t args[] = {a, b, whole(v, 1)};
    uint32_t count = op == RT_OP(mul) ? 2 : 3; /* add and sub have a factor as third argument */
    return rt_vulkan_apply(v, op, args, count, v->graph->values[a].dtype, out_value);
}

static enum status view(struct rt_vulkan_import *v, uint32_t value, const struct rt_dim *dims,
                        uint32_t rank, uint32_t *out_value)
{
    uint32_t args[] = {value, rt_graph_ints(v->graph, dims, rank)};
    return rt_vulkan_apply(v, RT_OP(view), args, 2, v->graph->values[value].dtype, out_value);
}

static enum status select(struct rt_vulkan_import *v, uint32_t value, int64_t dim, int64_t index,
                          uint32_t *out_value)
{
    uint32_t args[] = {value, whole(v, dim), whole(v, index)};
    return rt_vulkan_apply(v, RT_OP(select), args, 3, v->graph->values[value].dtype, out_value);
}

static enum status slice(struct rt_vulkan_import *v, uint32_t value, int64_t dim, uint32_t start,
                         uint32_t end, uint32_t *out_value)
{
    uint32_t args[] = {value, whole(v, dim), start, end, whole(v, 1)};
    return rt_vulkan_apply(v, RT_OP(slice), args, 5, v->graph->values[value].dtype, out_value);
}

/* 0, 1, .. |count| - 1. */
static enum status range(struct rt_vulkan_import *v, struct rt_dim count, uint32_t *out_value)
{
    uint32_t arg = rt_graph_int(v->graph, count);
    return rt_vulkan_apply(v, RT_OP(arange), &arg, 1, DT_I64, out_value);
}

/* The tensor at argument |index|, which must have |rank| dims. */
static enum status ranked(struct rt_vulkan_import *v, uint32_t index, uint8_t rank,
                          uint32_t *out_value)
{
    TRY(rt_vulkan_tensor(v, index, out_value));
    return v->graph->values[*out_value].rank == rank
               ? ST_OK
               : error_set(v->err, ST_UNSUPPORTED, "argument %" PRIu32 " has rank %u, expected %u",
                           index, v->graph->values[*out_value].rank, rank);
}

/* ---- ints in tensors ------------------------------------------------------------------------- */

/* Arguments: x, dim, index; x has one dim. */
enum status rt_vulkan_import_select_as_int(struct rt_vulkan_import *v)
{
    uint32_t value;
    int64_t dim, index;
    TRY(ranked(v, 0, 1, &value));
    TRY(rt_vulkan_whole(v, 1, &dim));
    TRY(rt_vulkan_whole(v, 2, &index));
    TRY(rt_vulkan_convert(v, value, DT_I64, &value));
    TRY(select(v, value, dim, index, &value));
    return rt_vulkan_define(v, 0, value);
}

/* |count| consecutive places, the first one being the int at argument |index|, as a tensor; or only
 * that int, if it is not in a tensor. */
static enum status places_from(struct rt_vulkan_import *v, uint32_t index, struct rt_dim count,
                               uint32_t *out_places, uint32_t *out_int)
{
    uint32_t start = rt_vulkan_arg(v, index)->graph, places;
    *out_places = *out_int = 0;
    if (rt_vulkan_arg(v, index)->kind != VK_SYMINT || start == 0 ||
        v->graph->values[start].kind != RT_TENSOR) {
        return rt_vulkan_argument(v, index, 'I', false, out_int);
    }
    TRY(range(v, count, &places));
    return binary(v, RT_OP(add), places, start, out_places);
}

/* ---- rotations ------------------------------------------------------------------------------- */

/* a * cos - b * sin, and a * sin + b * cos */
static enum status rotate(struct rt_vulkan_import *v, const uint32_t pair[2], uint32_t cosine,
                          uint32_t sine, uint32_t out[2])
{
    uint32_t products[4];
    TRY(binary(v, RT_OP(mul), pair[0], cosine, &products[0]));
    TRY(binary(v, RT_OP(mul), pair[1], sine, &products[1]));
    TRY(binary(v, RT_OP(mul), pair[0], sine, &products[2]));
    TRY(binary(v, RT_OP(mul), pair[1], cosine, &products[3]));
    TRY(binary(v, RT_OP(sub), products[0], products[1], &out[0]));
    return binary(v, RT_OP(add), products[2], products[3], &out[1]);
}

/* Pairs are neighbours along the last dim; |cosine| and |sine| have half its size. */
static enum status rotate_neighbours(struct rt_vulkan_import *v, uint32_t x, uint32_t cosine,
                                     uint32_t sine, uint32_t *out_value)
{
    struct rt_value tensor = v->graph->values[x];
    struct rt_dim dims[SHAPE_RANK_MAX];
    uint32_t pairs, pair[2], out[2];
    if (tensor.rank == 0 || tensor.rank == SHAPE_RANK_MAX) {
        return error_set(v->err, ST_UNSUPPORTED, "cannot rotate a tensor of rank %u", tensor.rank);
    }
    for (uint8_t d = 0; d < tensor.rank; d++) {
        dims[d] = tensor.dims[d];
    }
    dims[tensor.rank - 1] =
        rt_dim_floordiv(&v->graph->dims, tensor.dims[tensor.rank - 1], rt_dim_of(2));
    dims[tensor.rank] = rt_dim_of(2);
    TRY(view(v, x, dims, tensor.rank + 1u, &pairs));
    TRY(select(v, pairs, tensor.rank, 0, &pair[0]));
    TRY(select(v, pairs, tensor.rank, 1, &pair[1]));
    TRY(rotate(v, pair, cosine, sine, out));
    uint32_t stacked[] = {rt_graph_tensors(v->graph, out, 2), whole(v, tensor.rank)};
    TRY(rt_vulkan_apply(v, RT_OP(stack), stacked, 2, tensor.dtype, &pairs));
    return view(v, pairs, tensor.dims, tensor.rank, out_value);
}

/* Inserts a dim, [S, .., C] as [S, 1, C], so that heads share the table; a table for each head
 * stays as it is. */
static enum status for_heads(struct rt_vulkan_import *v, uint32_t value, uint32_t *out_value)
{
    *out_value = value;
    if (v->graph->values[value].rank != 2) {
        return ST_OK;
    }
    uint32_t args[] = {value, whole(v, 1)};
    return rt_vulkan_apply(v, RT_OP(unsqueeze), args, 2, v->graph->values[value].dtype, out_value);
}

/* queries and keys [B, S, H, D], cosines and sines [S, D / 2] or [S, H, D / 2] */
enum status rt_vulkan_import_rotary(struct rt_vulkan_import *v)
{
    uint32_t x, cosine, sine, value;
    TRY(rt_vulkan_tensor(v, 2, &cosine));
    TRY(rt_vulkan_tensor(v, 3, &sine));
    TRY(for_heads(v, cosine, &cosine));
    TRY(for_heads(v, sine, &sine));
    for (uint32_t i = 0; i < 2; i++) {
        TRY(ranked(v, i, 4, &x));
        TRY(rotate_neighbours(v, x, cosine, sine, &value));
        TRY(rt_vulkan_define(v, i, value));
    }
    return ST_OK;
}

/* x [B, N, C], and N * C numbers: the cosine and the sine of each pair */
enum status rt_vulkan_import_rotary_interleaved(struct rt_vulkan_import *v)
{
    uint32_t x, angles, cosine, sine, value;
    TRY(ranked(v, 0, 3, &x));
    TRY(rt_vulkan_tensor(v, 1, &angles));
    const struct rt_value tensor = v->graph->values[x];
    struct rt_dim dims[] = {tensor.dims[1],
                            rt_dim_floordiv(&v->graph->dims, tensor.dims[2], rt_dim_of(2)),
                            rt_dim_of(2)};
    TRY(view(v, angles, dims, 3, &angles));
    TRY(select(v, angles, 2, 0, &cosine));
    TRY(select(v, angles, 2, 1, &sine));
    TRY(rotate_neighbours(v, x, cosine, sine, &value));
    return rt_vulkan_define(v, 0, value);
}

/* The rows of the table at argument |index| for |count| places, as for_heads() returns them. */
static enum status rows_of(struct rt_vulkan_import *v, uint32_t index, struct rt_dim count,
                           uint32_t *out_value)
{
    uint32_t table, places, start;
    TRY(ranked(v, index, 2, &table));
    TRY(places_from(v, 4, count, &places, &start));
    if (places != 0) {
        uint32_t args[] = {table, whole(v, 0), places};
        TRY(rt_vulkan_apply(v, RT_OP(index_select), args, 3, v->graph->values[table].dtype,
                            &table));
    } else {
        struct rt_dim end = rt_dim_add(&v->graph->dims, v->graph->values[start].i, count);
        TRY(slice(v, table, 0, start, rt_graph_int(v->graph, end), &table));
    }
    return for_heads(v, table, out_value);
}

/* Rotates the first |width| elements of the last dim: pairs take one element of each half. The
 * halves of the tables are equal, so |cosine| and |sine| have only one. */
static enum status rotate_halves(struct rt_vulkan_import *v, uint32_t x, uint32_t cosine,
                                 uint32_t sine, int64_t width, uint32_t *out_value)
{
    struct rt_value tensor = v->graph->values[x];
    uint32_t zero = whole(v, 0), half = whole(v, width / 2), all = whole(v, width), parts[3];
    uint32_t pair[2], end = rt_graph_int(v->graph, tensor.dims[3]), count = 2;
    TRY(slice(v, x, 3, zero, half, &pair[0]));
    TRY(slice(v, x, 3, half, all, &pair[1]));
    TRY(rotate(v, pair, cosine, sine, parts));
    if (!rt_dim_is(tensor.dims[3], width)) {
        TRY(slice(v, x, 3, all, end, &parts[count++]));
    }
    uint32_t joined[] = {rt_graph_tensors(v->graph, parts, count), whole(v, 3)};
    return rt_vulkan_apply(v, RT_OP(cat), joined, 2, tensor.dtype, out_value);
}

/* Arguments: queries and keys [B, S, H, D], tables of cosines and sines [.., R], the first row. */
enum status rt_vulkan_import_rotary_halves(struct rt_vulkan_import *v)
{
    uint32_t x, tables[2], value;
    int64_t width = 0;
    TRY(ranked(v, 0, 4, &x));
    struct rt_dim count = v->graph->values[x].dims[1];
    for (uint32_t i = 0; i < 2; i++) {
        TRY(rows_of(v, 2 + i, count, &tables[i]));
        const struct rt_value *table = &v->graph->values[tables[i]];
        if (!rt_dim_is_const(table->dims[2]) || table->dims[2].value % 2 != 0 ||
            (i == 1 && table->dims[2].value != width)) {
            return error_set(v->err, ST_UNSUPPORTED,
                             "argument %" PRIu32
                             ": the last dim is not fixed, even and the same in both tables",
                             2 + i);
        }
        width = table->dims[2].value;
        TRY(slice(v, tables[i], 2, whole(v, 0), whole(v, width / 2), &tables[i]));
    }
    for (uint32_t i = 0; i < 2; i++) {
        TRY(ranked(v, i, 4, &x));
        TRY(rotate_halves(v, x, tables[0], tables[1], width, &value));
        TRY(rt_vulkan_define(v, i, value));
    }
    return ST_OK;
}

/* ---- caches ---------------------------------------------------------------------------------- */

/* A call changes value |number|. If that is a constant, or the copy of one that a device makes, the
 * constant is a buffer. */
static void note_buffer(struct rt_vulkan_graph *payload, uint32_t number)
{
    struct rt_vulkan_value *value = &payload->values[number];
    value->buffer = value->is_constant ? number + 1 : value->buffer;
    if (value->buffer != 0) {
        payload->values[value->buffer - 1].is_kept = true;
    }
}

/* A result with the place of a buffer: alias_buffer_mutations writes such payloads. */
static void note_results(struct rt_vulkan_graph *payload, const struct rt_vulkan_call *call)
{
    uint32_t last = call->args[call->arg_count - 1];
    const struct rt_vulkan_value *result = &payload->values[last];
    uint32_t count = result->kind == VK_VALUE_LIST ? result->count : 1;
    for (uint32_t i = 0; i < count; i++) {
        note_buffer(payload, result->kind == VK_VALUE_LIST ? result->values[i] : last);
    }
}

void rt_vulkan_find_buffers(struct rt_vulkan_graph *payload)
{
    for (uint32_t i = 0; i < payload->call_count; i++) {
        const struct rt_vulkan_call *call = &payload->calls[i];
        if (call->arg_count == 2 && span_is(call->name, "et_vk.prepack.default") &&
            payload->values[call->args[0]].is_constant) {
            payload->values[call->args[1]].buffer = call->args[0] + 1;
            continue;
        }
        if (call->arg_count == 4 && span_is(call->name, "update_cache.default")) {
            note_buffer(payload, call->args[1]);
        } else if (call->arg_count == 12 && span_is(call->name, "sdpa_with_kv_cache.default")) {
            note_buffer(payload, call->args[3]);
            note_buffer(payload, call->args[4]);
        }
        note_results(payload, call);
    }
}

/* Writes the rows [1, S, H, D] of argument |index| into |cache|, [1, .., H, D], beginning at the
 * place at argument |start_index|. */
static enum status write_rows(struct rt_vulkan_import *v, uint32_t index, uint32_t cache,
                              uint32_t start_index, uint32_t *out_value)
{
    uint32_t rows, places, start;
    TRY(ranked(v, index, 4, &rows));
    struct rt_dim dims[] = {rt_dim_of(1), v->graph->values[rows].dims[1]};
    TRY(places_from(v, start_index, dims[1], &places, &start));
    if (places != 0) {
        TRY(view(v, places, dims, 2, &start));
    }
    uint32_t args[] = {cache, rows, start};
    return rt_vulkan_apply(v, places ? RT_OP(write_rows_at) : RT_OP(write_rows), args, 3,
                           v->graph->values[cache].dtype, out_value);
}

/* Arguments: rows, a cache, the first place; the result is the cache. */
enum status rt_vulkan_import_update_cache(struct rt_vulkan_import *v)
{
    uint32_t cache, value;
    TRY(ranked(v, 1, 4, &cache));
    TRY(write_rows(v, 0, cache, 2, &value));
    TRY(rt_vulkan_keep(v, v->current->args[1], value));
    const struct rt_vulkan_value *result = rt_vulkan_result(v, 0);
    return result && result->graph == value ? ST_OK : rt_vulkan_define(v, 0, value);
}

/* [S, L], -inf if the key's place is after the query's. */
static enum status causal_mask(struct rt_vulkan_import *v, uint32_t places, struct rt_dim keys,
                               uint32_t *out_value)
{
    struct rt_dim dims[] = {v->graph->values[places].dims[0], keys};
    uint32_t columns, is_behind, zero = rt_graph_float(v->graph, 0), zeros;
    uint32_t upright[] = {places, whole(v, 1)};
    TRY(range(v, keys, &columns));
    TRY(rt_vulkan_apply(v, RT_OP(unsqueeze), upright, 2, DT_I64, &places));
    uint32_t compared[] = {columns, places};
    TRY(rt_vulkan_apply(v, RT_OP(gt), compared, 2, DT_BOOL, &is_behind));
    uint32_t filled[] = {rt_graph_ints(v->graph, dims, 2), zero};
    TRY(rt_vulkan_apply(v, RT_OP(full), filled, 2, DT_F32, &zeros));
    uint32_t masked[] = {zeros, is_behind, rt_graph_float(v->graph, -INFINITY)};
    return rt_vulkan_apply(v, RT_OP(masked_fill), masked, 3, DT_F32, out_value);
}

/*
 * Computes the result of attention. Argument 0 has queries [1, S, H, D] that begin at the place at
 * argument |start_index|; each sees the keys up to its own place. The arguments from |mask_index|
 * on are a mask, dropout, a causal flag and a scale; mask and scale have to be none.
 */
static enum status attend(struct rt_vulkan_import *v, uint32_t keys, uint32_t values,
                          uint32_t start_index, uint32_t mask_index)
{
    uint32_t args[8] = {0, keys, values}, places, start, value;
    TRY(ranked(v, 0, 4, &args[0]));
    if (!rt_vulkan_is_null(v, mask_index) || !rt_vulkan_is_null(v, mask_index + 3)) {
        return error_set(v->err, ST_UNSUPPORTED,
                         "attention with a mask or a scale is not supported");
    }
    TRY(places_from(v, start_index, v->graph->values[args[0]].dims[1], &places, &start));
    args[3] = places ? whole(v, 0) : start;
    args[4] = rt_graph_none(v->graph);
    if (places != 0) {
        TRY(causal_mask(v, places, v->graph->values[keys].dims[1], &args[4]));
    }
    args[5] = rt_graph_float(v->graph, 0);
    args[6] = rt_graph_bool(v->graph, places == 0);
    args[7] = rt_graph_none(v->graph);
    TRY(rt_vulkan_apply(v, RT_OP(attention), args, 8, v->graph->values[args[0]].dtype, &value));
    return rt_vulkan_define(v, 0, value);
}

/* Arguments: queries, caches of keys and values, the first place, then the arguments of attend().
 */
enum status rt_vulkan_import_cached_sdpa(struct rt_vulkan_import *v)
{
    uint32_t keys, values;
    TRY(ranked(v, 1, 4, &keys));
    TRY(ranked(v, 2, 4, &values));
    return attend(v, keys, values, 3, 4);
}

/* The cache at argument |index| with the rows at |rows_index|. */
static enum status grow_cache(struct rt_vulkan_import *v, uint32_t rows_index, uint32_t index,
                              uint32_t *out_value)
{
    uint32_t cache;
    TRY(ranked(v, index, 4, &cache));
    TRY(write_rows(v, rows_index, cache, 5, out_value));
    if (rt_vulkan_arg(v, index)->buffer == 0) {
        return error_set(v->err, ST_UNSUPPORTED, "argument %" PRIu32 " is not a constant", index);
    }
    return rt_vulkan_keep(v, v->current->args[index], *out_value);
}

/* Arguments: queries, keys, values, the delegate's own caches of keys and values, the first place,
 * the number of rows, then the arguments of attend(). */
enum status rt_vulkan_import_caching_sdpa(struct rt_vulkan_import *v)
{
    uint32_t keys, values;
    TRY(grow_cache(v, 1, 3, &keys));
    TRY(grow_cache(v, 2, 4, &values));
    return attend(v, keys, values, 5, 7);
}

/* ---- grids ----------------------------------------------------------------------------------- */

/* (i + offset) * stride for i from 0 to |count| - 1, with a dim of 1 at |dim|. */
static enum status grid_line(struct rt_vulkan_import *v, struct rt_dim count, int64_t dim,
                             uint32_t *out_value)
{
    uint32_t value;
    int64_t stride;
    double offset;
    TRY(rt_vulkan_whole(v, 1, &stride));
    TRY(rt_vulkan_number(v, 2, &offset));
    TRY(range(v, count, &value));
    TRY(rt_vulkan_convert(v, value, DT_F32, &value));
    uint32_t moved[] = {value, rt_graph_float(v->graph, offset), whole(v, 1)};
    TRY(rt_vulkan_apply(v, RT_OP(add_scalar), moved, 3, DT_F32, &value));
    uint32_t scaled[] = {value, rt_graph_float(v->graph, (double)stride)};
    TRY(rt_vulkan_apply(v, RT_OP(mul_scalar), scaled, 2, DT_F32, &value));
    uint32_t apart[] = {value, whole(v, dim)};
    return rt_vulkan_apply(v, RT_OP(unsqueeze), apart, 2, DT_F32, out_value);
}

/* Arguments: an image [.., H, W], stride, offset. The result has x and y of each pixel's corner: [H
 * * W, 2]. */
enum status rt_vulkan_import_grid_priors(struct rt_vulkan_import *v)
{
    uint32_t x, lines[2], value;
    TRY(rt_vulkan_tensor(v, 0, &x));
    const struct rt_value image = v->graph->values[x];
    if (image.rank < 2) {
        return error_set(v->err, ST_UNSUPPORTED, "an image has rank %u, expected at least 2",
                         image.rank);
    }
    struct rt_dim height = image.dims[image.rank - 2], width = image.dims[image.rank - 1];
    struct rt_dim all[] = {height, width};
    TRY(grid_line(v, width, 0, &lines[0]));
    TRY(grid_line(v, height, 1, &lines[1]));
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t args[] = {lines[i], rt_graph_ints(v->graph, all, 2),
                           rt_graph_bool(v->graph, false)};
        TRY(rt_vulkan_apply(v, RT_OP(expand), args, 3, DT_F32, &lines[i]));
    }
    uint32_t stacked[] = {rt_graph_tensors(v->graph, lines, 2), whole(v, 2)};
    TRY(rt_vulkan_apply(v, RT_OP(stack), stacked, 2, DT_F32, &value));
    struct rt_dim flat[] = {rt_dim_mul(&v->graph->dims, height, width), rt_dim_of(2)};
    TRY(view(v, value, flat, 2, &value));
    return rt_vulkan_define(v, 0, value);
}
