/* SPDX-License-Identifier: MIT */
/*
 * Data flow: when each node of a graph runs, and which values share memory. Depends on the graph
 * alone, not on concrete dims, so it is made once for a method.
 *
 * Nodes are put into regions, as early as their arguments allow. The nodes of one region run side
 * by side; a barrier separates two regions. Values are put into classes: a view is in its base's
 * class, and so is a part that is one run of its elements, such as a row; and an operator that may
 * work in place joins its output to its input if no other node needs the input any more. Images
 * that are only concatenated along their channels are computed where the concatenation has them,
 * which then runs nothing. A class has one home for all its values.
 */
#ifndef PTED_RUNTIME_PLAN_FLOW_H
#define PTED_RUNTIME_PLAN_FLOW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/status.h"
#include "runtime/graph/graph.h"
#include "runtime/plan/numbers.h"

enum rt_home {
    RT_HOME_NONE,      /* not a tensor, or never used */
    RT_HOME_CONSTANT,  /* the file or a folded constant's buffer */
    RT_HOME_INPUT,     /* memory that the caller binds to input |index| */
    RT_HOME_RESULT,    /* memory that the caller binds to result |index| */
    RT_HOME_WORKSPACE, /* transient; packed for each set of dims */
};

struct rt_storage {
    enum rt_home home;
    uint32_t index;       /* of the input or result */
    uint32_t first, last; /* regions in which it is alive: from its first write to its last read */
    uint32_t last_uses;   /* arguments that read it in region |last| */
};

/* A result whose value already has a home elsewhere: copied after the last region. */
struct rt_result_copy {
    uint32_t result, value;
};

/* Inputs and results in memory that the device reaches only slowly. They are copied into the
 * workspace before the first region, and out of it after the last. */
struct rt_staging {
    uint32_t inputs, results; /* how many of the graph's are the method's */
};

struct rt_flow {
    const struct rt_graph *graph; /* borrowed */
    struct rt_staging staging;
    const struct rt_numbers
        *numbers;               /* borrowed, set by the caller; NULL: plans know all numbers */
    uint32_t *class_of;         /* by value: the value that names its class */
    struct rt_storage *classes; /* by value; only entries that name a class are meaningful */
    bool *is_used;              /* by value: some node or the caller reads it */
    uint32_t *whole;            /* by value: the image that it is a part of; 0: none */
    int64_t *channel;           /* of a part: where its channels begin */
    bool *is_cut;               /* by value: it is a run of bytes of its class, */
    size_t *begin;              /* ...from this one on; 0 of other values */
    uint32_t *order;            /* nodes that dispatch, by region, then as in the graph */
    uint32_t *region;           /* by node; a node that runs nothing has no region */
    uint32_t order_count, region_count;
    struct rt_result_copy *copies;
    uint32_t copy_count;
};

/* Takes all storage from |arena|; |graph| must not change from now on. */
MUST_CHECK enum status rt_flow_make(struct rt_flow *flow, const struct rt_graph *graph,
                                    struct rt_staging staging, struct arena *arena,
                                    struct error *err);

/* Does so for a graph without inputs, whose sizes are all constants. The nodes go in waves, in the
 * order of the graph: no node runs before the wave before its own has ended. A wave makes no more
 * than |wave_bytes|, or is one node; so values that few nodes need, as one behind the other, take
 * little memory together. */
MUST_CHECK enum status rt_flow_make_waves(struct rt_flow *flow, const struct rt_graph *graph,
                                          size_t wave_bytes, struct arena *arena,
                                          struct error *err);

/* Input |index|, a tensor, is staged and a node reads it. */
bool rt_flow_is_uploaded(const struct rt_flow *flow, uint32_t index);

static inline const struct rt_storage *rt_flow_class(const struct rt_flow *flow, uint32_t value)
{
    return &flow->classes[flow->class_of[value]];
}

#endif
