/* SPDX-License-Identifier: MIT */
/* The planner's side of emitting. The planner embeds a struct rt_emit, fills it for each node and
 * calls the operator's emit function with it. Operators never include this header. */
#ifndef PTED_RUNTIME_EMIT_PLANNER_H
#define PTED_RUNTIME_EMIT_PLANNER_H

#include "runtime/emit/emit.h"

/* Questions about the current node that only the planner can answer. */
struct rt_emit_planner {
    /* false: the plan is made for the value of int argument |index|, which is known */
    bool (*find_place)(const struct rt_emit *emit, uint32_t index, struct rt_place *out_place);
    /* See rt_emit_update(). */
    enum status (*update)(struct rt_emit *emit, const struct rt_update *update,
                          struct hal_binding *out_words, struct error *err);
    /* See rt_emit_workspace(). */
    enum status (*workspace)(struct rt_emit *emit, size_t bytes, struct hal_binding *out_binding,
                             struct error *err);
};

struct rt_emit {
    const struct rt_emit_planner *planner;
    const struct rt_graph *graph;
    const struct rt_node *node;
    const char *label;          /* of the node's dispatches; it outlives the command buffer */
    const int64_t *values;      /* of expressions */
    struct rt_tensor **tensors; /* by value; the node's are there before its emit function runs */
    const bool *is_used;        /* by value */
    struct hal_binding words;   /* where word 0 is; no bytes */
    struct hal_command *command;
    const struct hal_device_props *props;
};

#endif
