/* SPDX-License-Identifier: MIT */
/* Copies of a graph, for passes that make a variant of it. */
#ifndef PTED_RUNTIME_PASSES_COPY_H
#define PTED_RUNTIME_PASSES_COPY_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/*
 * Makes |graph|, which is initialised and empty, a copy of |from|. Its values and nodes are its
 * own; the lists that they point to are those of |from|, which outlives it. Whoever changes a list
 * puts another one in its place.
 */
MUST_CHECK enum status rt_graph_copy(struct rt_graph *graph, const struct rt_graph *from,
                                     struct error *err);

/* Gives a copy lists of its own: inputs, outputs, arguments of nodes, items of lists. Passes that
 * rewrite need it. */
MUST_CHECK enum status rt_graph_own_lists(struct rt_graph *graph, struct error *err);

#endif
