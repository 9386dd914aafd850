/* SPDX-License-Identifier: MIT */
/* Shared by the files of batch rules: questions about a node, and changes of it. */
#ifndef PTED_RUNTIME_OPS_BATCH_CALL_H
#define PTED_RUNTIME_OPS_BATCH_CALL_H

#include "runtime/ops/op.h"

static inline struct rt_value *rt_batch_arg(const struct rt_batch_call *call, uint32_t index)
{
    return rt_node_arg(call->graph, call->node, index);
}

/* Does dim 0 of |value| count rows? Tensors that rules make always do. */
static inline bool rt_batch_has_rows(const struct rt_batch_call *call, uint32_t value)
{
    return value >= call->value_count || call->has_rows[value];
}

/* Does the same for argument |index|. */
static inline bool rt_batch_carries(const struct rt_batch_call *call, uint32_t index)
{
    return index < call->node->arg_count && rt_batch_has_rows(call, call->node->args[index]);
}

enum status rt_batch_refuse(const struct rt_batch_call *call, const char *why);

/* Does the dim number |given| mean dim 0 of |rank|? */
bool rt_batch_is_first(struct rt_dim given, uint8_t rank);

/* Argument |index| of the node is |value| from now on. */
MUST_CHECK enum status rt_batch_replace(struct rt_batch_call *call, uint32_t index, uint32_t value);

/*
 * Argument |index| is the same for all rows. If it is a tensor, it is repeated once for each row
 * from now on, so that dim 0 counts rows. Arguments that carry rows, and none, stay.
 */
MUST_CHECK enum status rt_batch_spread(struct rt_batch_call *call, uint32_t index);

#endif
