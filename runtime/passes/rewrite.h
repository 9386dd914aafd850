/* SPDX-License-Identifier: MIT */
/*
 * How a pass changes a graph: one walk in topological order. Before the pass looks at a node,
 * rt_rewrite_node() brings its arguments up to date; what the pass replaces is used by every later
 * node and by the outputs. Nodes that the pass adds stand at the end and are not visited. All of it
 * is linear in the size of the graph.
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
    uint32_t value_count; /* likewise: the length of the two arrays */
    uint32_t *to;         /* what stands for each value now */
    uint32_t *uses;       /* of each value: by nodes (list items count) and outputs */
};

MUST_CHECK enum status rt_rewrite_begin(struct rt_rewrite *rewrite, struct rt_graph *graph,
                                        struct error *err);

/* Node |index| with current arguments. The pointer is good until a node is added. */
struct rt_node *rt_rewrite_node(struct rt_rewrite *rewrite, uint32_t index);

/* From the next node on, |to| is used where |from| was. */
void rt_rewrite_replace(struct rt_rewrite *rewrite, uint32_t from, uint32_t to);

/* Is |value| used exactly once, so that a pass may absorb its producer? */
bool rt_rewrite_is_single_use(const struct rt_rewrite *rewrite, uint32_t value);

/* |node| reads its arguments no longer. */
void rt_rewrite_drop_uses(struct rt_rewrite *rewrite, const struct rt_node *node);

/* The node that makes |value| if it is a live one of operator |op|, or NULL. */
struct rt_node *rt_rewrite_producer(const struct rt_rewrite *rewrite, uint32_t value,
                                    enum rt_known op);

/* Brings outputs up to date and compacts. */
MUST_CHECK enum status rt_rewrite_end(struct rt_rewrite *rewrite, struct error *err);

#endif
