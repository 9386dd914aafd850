/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/shape.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>

#include "base/check.h"
#include "runtime/ops/op.h"

enum status rt_shape_refuse(struct rt_shape_call *call, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_setv(call->err, ST_INVALID, fmt, args);
    va_end(args);
    return ST_INVALID;
}

enum status rt_shape_unsupported(struct rt_shape_call *call, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    error_setv(call->err, ST_UNSUPPORTED, fmt, args);
    va_end(args);
    return ST_UNSUPPORTED;
}

/*
 * Brings |dims| and the dims that the file declares for |out| together. A static size must equal
 * the computed one. So must an upper bound of 1, which no exporter gives to a size that varies. If
 * equality is only known with a request, the file's constant is used and the request is checked.
 * Row counts that depend on data are compared when a run gives them; here they have their greatest
 * value.
 */
static enum status agree(struct rt_shape_call *call, const struct rt_value *out, uint8_t rank,
                         struct rt_dim *dims)
{
    if (out->rank != rank) {
        return rt_shape_refuse(call, "the file declares rank %u for an output, computed %u",
                               out->rank, rank);
    }
    bool has_extent = call->node->op->flags & RT_OP_EXTENT;
    for (uint8_t i = has_extent ? 1 : 0; i < rank; i++) {
        if (out->is_static || rt_dim_is(out->declared[i], 1)) {
            TRY(rt_dim_require_equal(&call->graph->dims, dims[i], out->declared[i],
                                     "size of a result (as the file declares it)", call->err));
            dims[i] = out->declared[i];
        }
    }
    return ST_OK;
}

static enum status set_dims(struct rt_shape_call *call, uint32_t value, uint8_t rank,
                            const struct rt_dim *dims)
{
    must(rank <= SHAPE_RANK_MAX);
    struct rt_graph *graph = call->graph;
    struct rt_value *out = &graph->values[value];
    struct rt_dim *copy = arena_array(&graph->arena, rank, sizeof(*copy));
    if (!copy) {
        graph->failed = true;
        return rt_graph_check(graph, call->err);
    }
    for (uint8_t i = 0; i < rank; i++) {
        if (dims[i].value < 0) { /* an upper bound, unless it is a constant */
            return rt_shape_refuse(call, "dim %u of an output is %" PRId64 ", expected 0 or more",
                                   i, dims[i].value);
        }
        copy[i] = dims[i];
    }
    if (out->declared) {
        TRY(agree(call, out, rank, copy));
    }
    out->rank = rank;
    out->dims = copy;
    return rt_graph_check(graph, call->err);
}

enum status rt_shape_set_out(struct rt_shape_call *call, uint32_t index, uint8_t rank,
                             const struct rt_dim *dims)
{
    return set_dims(call, call->node->outs[index], rank, dims);
}

enum status rt_shape_set_out_item(struct rt_shape_call *call, uint32_t index, uint32_t item,
                                  uint8_t rank, const struct rt_dim *dims)
{
    const struct rt_value *list = rt_node_out(call->graph, call->node, index);
    must(list->kind == RT_TENSORS && item < list->count);
    return set_dims(call, list->values[item], rank, dims);
}

enum status rt_shape_set_out_like(struct rt_shape_call *call, uint32_t index, uint32_t arg)
{
    const struct rt_value *v = rt_shape_arg(call, arg);
    return rt_shape_set_out(call, index, v->rank, v->dims);
}

enum status rt_shape_need_dtype(struct rt_shape_call *call, uint32_t index, uint32_t dtypes)
{
    const struct rt_value *v = rt_shape_arg(call, index);
    if (v->kind == RT_NONE || (dtypes >> v->dtype & 1)) {
        return ST_OK;
    }
    return rt_shape_unsupported(call, "argument %u has the unsupported element type %s", index,
                                dtype_text(v->dtype));
}

enum status rt_shape_need_dims(struct rt_shape_call *call, uint32_t index, uint8_t rank,
                               const struct rt_dim *dims)
{
    const struct rt_value *v = rt_shape_arg(call, index);

    TRY(rt_shape_need_dtype(call, index, 1u << DT_F32));
    if (v->rank != rank) {
        return rt_shape_refuse(call, "argument %u has rank %u, expected %u", index, v->rank, rank);
    }
    for (uint8_t d = 0; d < rank; d++) {
        TRY(rt_dim_require_equal(&call->graph->dims, v->dims[d], dims[d],
                                 "size of the arguments (must be equal)", call->err));
    }
    return ST_OK;
}

enum status rt_shape_need_out_dtype(struct rt_shape_call *call, uint32_t index, uint32_t dtypes)
{
    enum dtype dtype = rt_shape_out_dtype(call, index);
    return dtypes >> dtype & 1
               ? ST_OK
               : rt_shape_refuse(call, "output %u has the unsupported element type %s", index,
                                 dtype_text(dtype));
}

enum status rt_shape_need_const(struct rt_shape_call *call, uint32_t index, int64_t *out_value)
{
    const struct rt_value *v = rt_shape_arg(call, index);
    if (v->kind != RT_INT) {
        return rt_shape_refuse(call, "argument %u is missing, expected an int", index);
    }
    if (!rt_dim_is_const(v->i)) {
        return rt_shape_unsupported(call, "argument %u must not depend on the inputs' dims", index);
    }
    *out_value = v->i.value;
    return ST_OK;
}

enum status rt_shape_need_dim(struct rt_shape_call *call, int64_t dim, uint8_t rank,
                              uint8_t *out_dim)
{
    int64_t count = rank ? rank : 1;
    if (dim < -count || dim >= count) {
        return rt_shape_refuse(call, "dim %" PRId64 " does not exist in a tensor of rank %u", dim,
                               rank);
    }
    *out_dim = rt_dim_from_first(dim, rank);
    return ST_OK;
}

enum status rt_shape_need_at_least(struct rt_shape_call *call, struct rt_dim dim,
                                   struct rt_dim least, const char *what)
{
    struct rt_dims *dims = &call->graph->dims;
    if (rt_dim_is_const(dim) && rt_dim_is_const(least) && dim.value < least.value) {
        return rt_shape_refuse(call, "%s: got %" PRId64 ", expected at least %" PRId64, what,
                               dim.value, least.value);
    }
    return rt_dim_require_equal(dims, dim, rt_dim_max(dims, dim, least), what, call->err);
}

/* A symbol beside a constant other than 1 must equal it: an exporter that meant to broadcast the
 * symbol would have made it a constant 1. */
static enum status broadcast_dim(struct rt_shape_call *call, struct rt_dim a, struct rt_dim b,
                                 struct rt_dim *out)
{
    if (rt_dim_is(a, 1)) {
        *out = b;
        return ST_OK;
    }
    *out = a;
    if (rt_dim_is(b, 1)) {
        return ST_OK;
    }
    TRY(rt_dim_require_equal(&call->graph->dims, a, b, "size of the operands (must match)",
                             call->err));
    *out = rt_dim_is_const(b) ? b : a;
    return ST_OK;
}

enum status rt_shape_broadcast(struct rt_shape_call *call, uint8_t rank_a, const struct rt_dim *a,
                               uint8_t rank_b, const struct rt_dim *b,
                               struct rt_dim out[SHAPE_RANK_MAX], uint8_t *out_rank)
{
    uint8_t rank = rank_a > rank_b ? rank_a : rank_b;
    struct rt_dim result[SHAPE_RANK_MAX];
    for (uint8_t i = 0; i < rank; i++) {
        bool has_a = i >= rank - rank_a, has_b = i >= rank - rank_b;
        struct rt_dim da = has_a ? a[i - (rank - rank_a)] : rt_dim_of(1);
        struct rt_dim db = has_b ? b[i - (rank - rank_b)] : rt_dim_of(1);
        TRY(broadcast_dim(call, da, db, &result[i]));
    }
    memcpy(out, result, rank * sizeof(result[0]));
    *out_rank = rank;
    return ST_OK;
}
