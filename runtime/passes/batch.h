/* SPDX-License-Identifier: MIT */
/*
 * Turns a graph for one row into a graph for any number of rows: dim 0 of its inputs, 1 until now,
 * becomes a symbol. The batch rule of each node's operator (struct rt_op) says whether the node
 * treats each row separately, and how its arguments change. The shape functions then run again:
 * they have to find the dims that the rules promise, and must not require a certain number of rows.
 */
#ifndef PTED_RUNTIME_PASSES_BATCH_H
#define PTED_RUNTIME_PASSES_BATCH_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* The names of a graph's inputs and outputs in messages, by their number. */
struct rt_graph_labels {
    const char *const *inputs, *const *outputs;
};

/*
 * |graph| is initialised and empty; it becomes a variant of |from| for up to |rows_max| rows. It
 * borrows from |from|, which does not change and has to outlive it. ST_UNSUPPORTED names the first
 * node that does not allow it.
 */
MUST_CHECK enum status rt_graph_batch(struct rt_graph *graph, const struct rt_graph *from,
                                      int64_t rows_max, const struct rt_graph_labels *labels,
                                      struct error *err);

#endif
