/* SPDX-License-Identifier: MIT */
/*
 * Batch rules that operators share. Dim 0 of a tensor that carries rows is the number of rows times
 * its extent for one row, in row-major order. One row's part is therefore a range of indices of dim
 * 0.
 */
#include "config.h"

#include "runtime/ops/op.h"

#include <string.h>

static struct rt_value *arg_of(const struct rt_batch_call *call, uint32_t index)
{
    return rt_node_arg(call->graph, call->node, index);
}

static bool carries(const struct rt_batch_call *call, uint32_t index)
{
    return index < call->node->arg_count && call->has_rows[call->node->args[index]];
}

static enum status refuse(struct rt_batch_call *call, const char *why)
{
    return error_set(call->err, ST_UNSUPPORTED, "%s", why);
}

enum status rt_batch_each(struct rt_batch_call *call)
{
    return carries(call, 0) ? ST_OK : refuse(call, "its first argument does not vary by row");
}

enum status rt_batch_pointwise(struct rt_batch_call *call)
{
    (void)call; /* the output's dims show that the rows are along the same dim everywhere */
    return ST_OK;
}

enum status rt_batch_lookup(struct rt_batch_call *call)
{
    return carries(call, 0) ? refuse(call, "its table varies by row") : ST_OK;
}

/* Does the dim number |given| mean dim 0 of |rank|? */
static bool is_first(struct rt_dim given, uint8_t rank)
{
    return !rt_dim_is_const(given) || given.value == 0 || given.value == -(int64_t)rank;
}

/* The rank that dim numbers refer to: the larger one when an operator adds a dim. */
static uint8_t rank_of(const struct rt_batch_call *call)
{
    const struct rt_value *self = arg_of(call, 0), *out = rt_node_out(call->graph, call->node, 0);
    self = self->kind == RT_TENSORS ? &call->graph->values[self->values[0]] : self;
    out = out->kind == RT_TENSORS ? &call->graph->values[out->values[0]] : out;
    return self->rank > out->rank ? self->rank : out->rank;
}

enum status rt_batch_along(struct rt_batch_call *call)
{
    const struct rt_value *dims = arg_of(call, 1);
    uint8_t rank = rank_of(call);
    bool meets =
        dims->kind == RT_INT ? is_first(dims->i, rank) : dims->kind != RT_INTS || dims->count == 0;
    for (uint32_t i = 0; dims->kind == RT_INTS && i < dims->count; i++) {
        meets = meets || is_first(dims->ints[i], rank);
    }
    return meets ? refuse(call, "it works along dim 0") : rt_batch_each(call);
}

enum status rt_batch_trailing(struct rt_batch_call *call)
{
    bool meets = arg_of(call, 1)->count >= arg_of(call, 0)->rank;
    return meets ? refuse(call, "it works along dim 0") : rt_batch_each(call);
}

enum status rt_batch_padded(struct rt_batch_call *call)
{
    bool meets = arg_of(call, 1)->count / 2 >= arg_of(call, 0)->rank;
    return meets ? refuse(call, "it pads dim 0") : rt_batch_each(call);
}

enum status rt_batch_permute(struct rt_batch_call *call)
{
    const struct rt_value *order = arg_of(call, 1);
    bool stays = order->count > 0 && is_first(order->ints[0], arg_of(call, 0)->rank);
    return stays ? rt_batch_each(call) : refuse(call, "it moves dim 0");
}

enum status rt_batch_transpose(struct rt_batch_call *call)
{
    uint8_t rank = arg_of(call, 0)->rank;
    bool moves = is_first(arg_of(call, 1)->i, rank) || is_first(arg_of(call, 2)->i, rank);
    return moves ? refuse(call, "it moves dim 0") : rt_batch_each(call);
}

/* Argument 1 lists the output's sizes, of which the first now counts rows. */
enum status rt_batch_sizes(struct rt_batch_call *call)
{
    struct rt_graph *graph = call->graph;
    const struct rt_value *sizes = arg_of(call, 1);
    struct rt_dim items[SHAPE_RANK_MAX];
    uint32_t count = sizes->count;
    if (count == 0 || count > SHAPE_RANK_MAX || !carries(call, 0)) {
        return refuse(call, "its result has no dim 0");
    }
    memcpy(items, sizes->ints, count * sizeof(items[0]));
    if (!rt_dim_is(items[0], -1)) {
        items[0] = rt_dim_mul(&graph->dims, call->rows, items[0]);
    }
    uint32_t *args = arena_array(&graph->arena, call->node->arg_count, sizeof(*args));
    uint32_t made = rt_graph_ints(graph, items, count);
    if (!args) {
        return arena_fail(&graph->arena, "the method", call->err);
    }
    memcpy(args, call->node->args, call->node->arg_count * sizeof(*args));
    args[1] = made;
    call->node->args = args;
    return rt_graph_check(graph, call->err);
}
