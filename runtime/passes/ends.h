/* SPDX-License-Identifier: MIT */
/*
 * Orders of memory at the ends of a compiled graph. The layout pass takes inputs and gives results
 * row-major; a "reorder" follows an input whose readers want another order, and stands before a
 * result that was computed in another one. A variant of the graph takes those inputs and gives
 * those results in the other order, without the reorders.
 */
#ifndef PTED_RUNTIME_PASSES_ENDS_H
#define PTED_RUNTIME_PASSES_ENDS_H

#include "base/status.h"
#include "runtime/graph/graph.h"

/* By number of a graph's inputs and outputs: the order of memory, NULL: row-major. See |order| of
 * struct rt_value. */
struct rt_graph_ends {
    const uint8_t **inputs, **outputs; /* in an arena that the caller chooses */
};

/* Finds the orders that spare reorders. The arrays are allocated in |arena|. */
MUST_CHECK enum status rt_graph_find_ends(const struct rt_graph *graph, struct arena *arena,
                                          struct rt_graph_ends *out, struct error *err);

/*
 * Makes |graph|, which is initialised and empty, the variant of |from| that has |ends|, each of
 * them row-major or what rt_graph_find_ends() says. ST_UNSUPPORTED: |from| cannot have them. It
 * borrows from |from|, which outlives it.
 */
MUST_CHECK enum status rt_graph_with_ends(struct rt_graph *graph, const struct rt_graph *from,
                                          const struct rt_graph_ends *ends, struct error *err);

#endif
