/* SPDX-License-Identifier: MIT */
/*
 * Internal to rows.h: the state of making a graph of several rows.
 *
 * Each value of |from| is the same in all rows, or it differs. A value that differs has a value for
 * each row, or one for all rows (dim 0 is then |rows| times as large), or both: the other form is
 * made when a node first asks for it, and kept.
 */
#ifndef PTED_RUNTIME_PASSES_ROWS_PRIV_H
#define PTED_RUNTIME_PASSES_ROWS_PRIV_H

#include <stdbool.h>

#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/passes/rows.h"

#define RT_ROWS_NONE UINT32_MAX

struct rt_rows_making {
    struct rt_graph *graph;
    const struct rt_graph *from;
    uint32_t rows;
    const bool *varies; /* by value of |from|: see struct rt_rows_own; or NULL */
    const struct rt_graph_buffers *buffers; /* of rt_graph_speculation(), else NULL */
    struct error *err;
    /* ---- by value of |from| ---- */
    bool *differs;
    bool *is_private; /* as large as a mutable buffer, and made of one */
    uint32_t *same;   /* the value in |graph|, or RT_ROWS_NONE; of one that differs always that */
    uint32_t *joined; /* of all rows, or RT_ROWS_NONE */
    uint32_t *apart;  /* [value * rows + row], or RT_ROWS_NONE */
    /* ---- by node of |from| ---- */
    bool *wants_rows; /* it reads weights, or its output goes to a node that does */
    /* ---- by value of |graph| ---- */
    bool *has_rows;
    uint32_t value_max;
    /* ---- by expression of |from|, of the row whose numbers were last looked up ---- */
    struct rt_dim *dims; /* [expression * rows + row] */
};

/* Zeroed memory that lives as long as the made graph; NULL: then rt_rows_exhausted() is the error.
 */
void *rt_rows_take(const struct rt_rows_making *m, size_t count, size_t size);
enum status rt_rows_exhausted(const struct rt_rows_making *m);

/* ---- rows_mark.c: how values and nodes are treated ------------------------------------------- */

/* Does input |i| of |from| belong to each row, and not to all of them? */
bool rt_rows_has_own_input(const struct rt_rows_making *m, uint32_t i);

bool rt_rows_reads_weights(const struct rt_graph *graph, const struct rt_node *node);

/* Is |node| possible only row by row? */
bool rt_rows_is_apart(const struct rt_rows_making *m, const struct rt_node *node);

/* Fills |differs| and |is_private|; the latter from |is_private|, by input of |from|. */
void rt_rows_mark(const struct rt_rows_making *m, const bool *is_private);

/* Fills |wants_rows|, behind rt_rows_mark(). */
MUST_CHECK enum status rt_rows_find_wants(const struct rt_rows_making *m);

/* Is it a constant that each row gives? */
static inline bool rt_rows_varies(const struct rt_rows_making *m, uint32_t value)
{
    return m->varies && m->varies[value];
}

/* ---- rows_values.c: making values ------------------------------------------------------------ */

/* Makes the symbolic numbers of |from| for each row. */
MUST_CHECK enum status rt_rows_make_dims(const struct rt_rows_making *m);

/* |count| dims with the numbers of |row|; NULL: no memory. */
struct rt_dim *rt_rows_copy_dims(const struct rt_rows_making *m, const struct rt_dim *from,
                                 uint32_t count, uint32_t row);

MUST_CHECK enum status rt_rows_add_value(const struct rt_rows_making *m, struct rt_value value,
                                         uint32_t *out);

/* Makes a copy of |value| with the numbers of |row|. */
MUST_CHECK enum status rt_rows_copy_value(const struct rt_rows_making *m, uint32_t value,
                                          uint32_t row, uint32_t *out);

/* Nodes that the pass adds have the origin of the node that it works on. */
MUST_CHECK enum status rt_rows_add_node(const struct rt_rows_making *m, const struct rt_op *op,
                                        const uint32_t *args, uint32_t arg_count,
                                        const uint32_t *outs, uint32_t out_count);

/* |value| in row |row|. */
MUST_CHECK enum status rt_rows_apart(const struct rt_rows_making *m, uint32_t value, uint32_t row,
                                     uint32_t *out);

/* May the rows of |value| be put behind each other? */
bool rt_rows_may_join(const struct rt_rows_making *m, uint32_t value);

/* |value| of all rows; ST_UNSUPPORTED: it cannot be put together. */
MUST_CHECK enum status rt_rows_joined(const struct rt_rows_making *m, uint32_t value,
                                      uint32_t *out);

#endif
