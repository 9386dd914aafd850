/* SPDX-License-Identifier: MIT */
/*
 * Intermediate values as further results of a method, for people who look for the layer that
 * computes something else than they expect. A method whose values are kept is another method: its
 * passes do not join nodes across a kept value, because a result has to be computed. So a kept
 * value is what the operators of the file compute, and the values that are not kept are still
 * joined.
 *
 * The values are those of the graph as the file has it, before the passes: each tensor that a node
 * of it makes from the inputs or the state, and that something uses. The name of one is the
 * operator and the number that the value has in graphs, "conv.12", behind the module of its first
 * weight where the file names weights, "stem.0.conv.12", and the number of its block where a method
 * has several, "block1.add.4". Inside of a delegate's payload dims are those of the payload:
 * XNNPACK has the channels of pictures last.
 *
 * A kept value of code with branches is the last one that the call computed. If the call computed
 * none, the result has no bytes (NULL) and the shape that the file declares.
 *
 * Only the thread that loads the program.
 */
#ifndef PTED_RUNTIME_PROGRAM_KEEP_H
#define PTED_RUNTIME_PROGRAM_KEEP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

struct rt_method;

/* A value that could be kept; valid during the call of |wants|. */
struct rt_keep_value {
    const char *name;
    struct span origin; /* "net.py:8: return self.lin(x)", "handle 7", or empty */
    struct span type;   /* "f32[s1,8]" */
};

/* Is |value| wanted? It is asked about each, in the order of the program. */
typedef bool rt_keep_f(void *arg, const struct rt_method *method,
                       const struct rt_keep_value *value);

struct rt_keep {
    rt_keep_f *wants;
    void *arg;
};

/* Makes the wanted values of |method|, which is imported and not compiled yet, results behind its
 * own. The structure of its results does not name them. */
MUST_CHECK enum status rt_keep_values(struct rt_method *method, const struct rt_keep *keep,
                                      struct error *err);

/* Counts the kept values among the results of |method|: they are the last ones. Any thread. */
uint32_t rt_method_kept_count(const struct rt_method *method);

#endif
