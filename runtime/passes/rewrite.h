/* SPDX-License-Identifier: MIT */
/*
 * How a pass changes a graph: one walk in topological order. Before the pass looks at a node,
 * rt_rewrite_node() updates its arguments; when the pass replaces a value, all later nodes and the
 * outputs use the replacement. Nodes that the pass adds go to the end and are not visited. The
 * whole walk takes time linear in the size of the graph.
 *
 * Nodes that are visited may read values that the pass has added. A pass's own arrays by value end
 * where the values ended when it began: rt_rewrite_has() says whether a value is in them.
 *
 *     struct rt_rewrite rw;
 *     TRY(rt_rewrite_begin(&rw, graph, err));
 *     for (uint32_t i = 0; i < rw.node_count; i++) {
 *         struct rt_node *node = rt_rewrite_node(&rw, i);
 *         … rt_rewrite_replace(&rw, node->outs[0], better) …
 *     }
 *     return rt_rewrite_end(&rw, err);
 */
#ifndef PTED_RUNTIME_PASSES_REWRITE_H
#define PTED_RUNTIME_PASSES_REWRITE_H

#include "runtime/graph/graph.h"
#include "runtime/ops/known.h"

struct rt_rewrite {
    struct rt_graph *graph;
    uint32_t node_count;  /* when the pass began */
    uint32_t value_count; /* likewise, and the length of the two arrays */
    uint32_t *to;         /* by value: its replacement */
    uint32_t *uses;       /* by value: its uses by nodes (items of lists count) and outputs */
};

MUST_CHECK enum status rt_rewrite_begin(struct rt_rewrite *rewrite, struct rt_graph *graph,
                                        struct error *err);

/* Returns node |index| with updated arguments. The pointer is valid until a node is added. */
struct rt_node *rt_rewrite_node(struct rt_rewrite *rewrite, uint32_t index);

/* From the next node on, |to| is used instead of |from|. */
void rt_rewrite_replace(struct rt_rewrite *rewrite, uint32_t from, uint32_t to);

/* Was |value| there when the pass began? */
static inline bool rt_rewrite_has(const struct rt_rewrite *rewrite, uint32_t value)
{
    return value < rewrite->value_count;
}

/* Returns how often |value| is used. UINT32_MAX: nobody knows, because the pass has added it. */
uint32_t rt_rewrite_uses(const struct rt_rewrite *rewrite, uint32_t value);
/* From now on it counts as used so often. */
void rt_rewrite_set_uses(struct rt_rewrite *rewrite, uint32_t value, uint32_t uses);

/* Is |value| used exactly once, so that a pass may absorb its producer? */
bool rt_rewrite_is_single_use(const struct rt_rewrite *rewrite, uint32_t value);

/* |node| does not read its arguments any more. */
void rt_rewrite_drop_uses(struct rt_rewrite *rewrite, const struct rt_node *node);

/* Returns the node that makes |value| if it is not dead and its operator is |op|; else NULL. */
struct rt_node *rt_rewrite_producer(const struct rt_rewrite *rewrite, uint32_t value,
                                    enum rt_known op);

/* Updates the outputs and compacts the graph. */
MUST_CHECK enum status rt_rewrite_end(struct rt_rewrite *rewrite, struct error *err);

#endif
