/* SPDX-License-Identifier: MIT */
/*
 * The alloc model: where every class of a flow lies at one set of dims. Transient classes are
 * packed into one workspace: two may share bytes when no region needs both, which is safe because a
 * barrier stands between any two regions.
 */
#ifndef PTED_RUNTIME_PLAN_ALLOC_H
#define PTED_RUNTIME_PLAN_ALLOC_H

#include "base/arena.h"
#include "runtime/plan/flow.h"

#define RT_WORKSPACE_ALIGN 64

struct rt_alloc {
    size_t *bytes;  /* by value that names a class: size of its tensors */
    size_t *offset; /* likewise, of transient classes: place in the workspace */
    size_t workspace_bytes;
};

/* |values|: see rt_plan_new(). Storage from |arena|. */
MUST_CHECK enum status rt_alloc_make(struct rt_alloc *alloc, const struct rt_flow *flow,
                                     const int64_t *values, struct arena *arena, struct error *err);

/*
 * Checks the concrete dims of every tensor that has a home; ST_INVALID or ST_TOO_LARGE if a dim is
 * impossible. |out_bytes|, unless NULL, gets the size of each class, at the value that names it.
 */
MUST_CHECK enum status rt_alloc_measure(const struct rt_flow *flow, const int64_t *values,
                                        size_t *out_bytes, struct error *err);

/* Returns the concrete shape of a tensor. */
struct shape rt_concrete_shape(const struct rt_value *value, const int64_t *values);

#endif
