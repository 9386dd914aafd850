/* SPDX-License-Identifier: MIT */
/* Operators appended to a graph: for importers and passes. */
#ifndef PTED_RUNTIME_OPS_APPLY_H
#define PTED_RUNTIME_OPS_APPLY_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/*
 * Does as rt_graph_node() with one output of the given element type, whose dims the operator's
 * shape function finds at once; RT_OP(add) of known.h is a row. The node stands at the end until
 * rt_graph_compact().
 */
MUST_CHECK enum status rt_op_apply(struct rt_graph *graph, const struct rt_op *op,
                                   const uint32_t *args, uint32_t arg_count, enum dtype dtype,
                                   uint32_t *out_value, struct error *err);

/* |value| as |dtype|: itself if it is of that type or a none, else a node that converts it. */
MUST_CHECK enum status rt_op_convert(struct rt_graph *graph, uint32_t value, enum dtype dtype,
                                     uint32_t *out_value, struct error *err);

/* |value| with other dims; the order of its elements stays. |dims| are copied. */
MUST_CHECK enum status rt_op_view(struct rt_graph *graph, uint32_t value, const struct rt_dim *dims,
                                  uint8_t rank, uint32_t *out_value, struct error *err);

/* Dim d of the output is dim order[d] of |value|. */
MUST_CHECK enum status rt_op_permute(struct rt_graph *graph, uint32_t value, const uint8_t *order,
                                     uint8_t rank, uint32_t *out_value, struct error *err);

#endif
