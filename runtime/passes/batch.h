/* SPDX-License-Identifier: MIT */
/*
 * A graph for one row as a graph for any number of them: dim 0 of its inputs, 1 until now, becomes
 * a symbol, and each node says by its operator's batch rule (struct rt_op) whether it treats every
 * row by itself and how its arguments change. The shape functions then run again, and have to find
 * the dims that the rules promise without asking anything of the number of rows.
 */
#ifndef PTED_RUNTIME_PASSES_BATCH_H
#define PTED_RUNTIME_PASSES_BATCH_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* What messages call the inputs and outputs of a graph, by their number in it. */
struct rt_graph_labels {
    const char *const *inputs, *const *outputs;
};

/*
 * |graph| is initialised; it becomes a form of |from| for up to |rows_max| rows. It borrows from
 * |from|, which stays as it is and outlives it. ST_UNSUPPORTED with the node that is in the way.
 */
MUST_CHECK enum status rt_graph_batch(struct rt_graph *graph, const struct rt_graph *from,
                                      int64_t rows_max, const struct rt_graph_labels *labels,
                                      struct error *err);

#endif
