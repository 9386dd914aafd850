/* SPDX-License-Identifier: MIT */
/*
 * Several calls of one graph as rows of one graph. Where a node treats each row of dim 0 by itself
 * (its batch rule says so, see struct rt_op), it is recorded once for all rows: above all the
 * products, so that their weights are read once. Every other node is recorded once for each row:
 * nodes with a mutable buffer or a number of a call, and nodes without such a rule. Between the two
 * kinds, values of rows are put behind each other along dim 0 and taken apart again.
 *
 * |from| has constant sizes. Its inputs and outputs belong to one call; the made graph has them for
 * the first row, then for the second, and so on.
 */
#ifndef PTED_RUNTIME_PASSES_ROWS_H
#define PTED_RUNTIME_PASSES_ROWS_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/graph/graph.h"

/*
 * |graph| is initialised and empty. It borrows from |from|, which outlives it. |*out_joined|: nodes
 * that read weights and are recorded once for all rows; without any, rows gain nothing.
 *
 * Rows may belong to graphs that differ from |from| in the content of some constants. Each row gets
 * its own ones as inputs: behind all inputs of the rows those of the first row, by value of |from|,
 * then those of the second, and so on.
 */
struct rt_rows_own {
    const bool
        *is_private;    /* by input: a mutable buffer, which is never put together with others */
    const bool *varies; /* by value: a constant that rows give; NULL: there are none */
};

MUST_CHECK enum status rt_graph_rows(struct rt_graph *graph, const struct rt_graph *from,
                                     uint32_t rows, const struct rt_rows_own *own,
                                     uint32_t *out_joined, struct error *err);

/* Where |from| has its mutable buffers: inputs [first, first + count), before the only number. */
struct rt_graph_buffers {
    uint32_t first, count;
    const uint32_t *outputs; /* by buffer: the output that is its next content, or RT_NO_OUTPUT */
    uint32_t result_count;   /* outputs before all of these */
};

#define RT_NO_OUTPUT UINT32_MAX

/*
 * Steps that follow each other in one sequence, as rows: the number of row i is the number of the
 * first row plus i. The rows share their buffers. All rows are written to a buffer at once, the
 * first one at the place that the number names, and then each row reads the buffer. So the caller
 * must know that a row reads nothing behind its own place (rt_method_is_positional()).
 * ST_UNSUPPORTED if a buffer is written in another way.
 *
 * Inputs of |graph|: for the first row all inputs before the buffers, then for the second, and so
 * on; the numbers of all rows; the buffers. Outputs: the results of each row, then the written
 * buffers.
 */
MUST_CHECK enum status rt_graph_speculation(struct rt_graph *graph, const struct rt_graph *from,
                                            uint32_t rows, const struct rt_graph_buffers *buffers,
                                            uint32_t *out_joined, struct error *err);

#endif
