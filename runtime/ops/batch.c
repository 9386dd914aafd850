/* SPDX-License-Identifier: MIT */
/*
 * Batch rules that operators share. Dim 0 of a tensor that carries rows is the number of rows times
 * its extent for one row, in row-major order. One row's part is therefore a range of indices of dim
 * 0.
 */
#include "config.h"

#include "runtime/ops/batch_call.h"

#include <string.h>

enum status rt_batch_each(struct rt_batch_call *call)
{
    if (!rt_batch_carries(call, 0)) {
        return rt_batch_refuse(call, "its first argument does not vary by row");
    }
    const struct rt_epilogue *epilogue = call->node->op->detail;
    bool adds = call->node->op->flags & RT_OP_EPILOGUE && epilogue->residual;
    return adds ? rt_batch_spread(call, epilogue->residual) : ST_OK;
}

enum status rt_batch_lookup(struct rt_batch_call *call)
{
    return rt_batch_carries(call, 0) ? rt_batch_refuse(call, "its table varies by row") : ST_OK;
}

/* The rank that dim numbers refer to: the larger one when an operator adds a dim. */
static uint8_t rank_of(const struct rt_batch_call *call)
{
    const struct rt_value *self = rt_batch_arg(call, 0);
    const struct rt_value *out = rt_node_out(call->graph, call->node, 0);
    self = self->kind == RT_TENSORS ? &call->graph->values[self->values[0]] : self;
    out = out->kind == RT_TENSORS ? &call->graph->values[out->values[0]] : out;
    return self->rank > out->rank ? self->rank : out->rank;
}

enum status rt_batch_along(struct rt_batch_call *call)
{
    const struct rt_value *dims = rt_batch_arg(call, 1);
    uint8_t rank = rank_of(call);
    bool meets = dims->kind == RT_INT ? rt_batch_is_first(dims->i, rank)
                                      : dims->kind != RT_INTS || dims->count == 0;
    for (uint32_t i = 0; dims->kind == RT_INTS && i < dims->count; i++) {
        meets = meets || rt_batch_is_first(dims->ints[i], rank);
    }
    return meets ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

enum status rt_batch_trailing(struct rt_batch_call *call)
{
    bool meets = rt_batch_arg(call, 1)->count >= rt_batch_arg(call, 0)->rank;
    return meets ? rt_batch_refuse(call, "it works along dim 0") : rt_batch_each(call);
}

enum status rt_batch_padded(struct rt_batch_call *call)
{
    const struct rt_value *pads = rt_batch_arg(call, 1);
    uint32_t rank = rt_batch_arg(call, 0)->rank; /* dim 0 is the last pair, if it has one */
    bool meets = pads->count / 2 >= rank && !(rt_dim_is(pads->ints[2 * rank - 2], 0) &&
                                              rt_dim_is(pads->ints[2 * rank - 1], 0));
    return meets ? rt_batch_refuse(call, "it pads dim 0") : rt_batch_each(call);
}

/* Argument 1 lists the output's sizes. The first one now counts rows. */
enum status rt_batch_sizes(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    const struct rt_value *sizes = rt_batch_arg(call, 1);
    struct rt_dim items[SHAPE_RANK_MAX];
    uint32_t count = sizes->count;
    if (count == 0 || count > SHAPE_RANK_MAX || !rt_batch_carries(call, 0)) {
        return rt_batch_refuse(call, "its result has no dim 0");
    }
    memcpy(items, sizes->ints, count * sizeof(items[0]));
    if (!rt_dim_is(items[0], -1)) {
        items[0] = rt_dim_mul(&graph->dims, call->rows, items[0]);
    }
    return rt_batch_replace(call, 1, rt_graph_ints(graph, items, count));
}
