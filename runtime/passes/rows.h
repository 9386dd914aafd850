/* SPDX-License-Identifier: MIT */
/*
 * Several calls of one graph as rows of one graph. Where a node treats each row of dim 0 by itself
 * (its batch rule says so, see struct rt_op), it is recorded once for all rows: above all the
 * products, so that their weights are read once. Every other node is recorded once for each row:
 * what a mutable buffer or a number of a call is part of, or whatever has no such rule. Between the
 * two kinds, values of rows are put behind each other along dim 0 and taken apart again.
 *
 * |from| has constant sizes. Its inputs and outputs are those of a call; the made graph has them
 * for the first row, then for the second, and so on.
 */
#ifndef PTED_RUNTIME_PASSES_ROWS_H
#define PTED_RUNTIME_PASSES_ROWS_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/graph/graph.h"

/*
 * |graph| is initialised and empty. It borrows from |from|, which outlives it. |is_private|, by
 * input of |from|: a mutable buffer, which is never put together with others. |*out_joined|: nodes
 * that read weights and are recorded once for all rows; without any, rows gain nothing.
 */
MUST_CHECK enum status rt_graph_rows(struct rt_graph *graph, const struct rt_graph *from,
                                     uint32_t rows, const bool *is_private, uint32_t *out_joined,
                                     struct error *err);

#endif
