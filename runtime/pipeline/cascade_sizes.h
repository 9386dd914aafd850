/* SPDX-License-Identifier: MIT */
/* The sizes of a cascade before anything has run: the sizes of one step after the other, as far as
 * its inputs are known. Any thread. */
#ifndef PTED_RUNTIME_PIPELINE_CASCADE_SIZES_H
#define PTED_RUNTIME_PIPELINE_CASCADE_SIZES_H

#include "base/status.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/program/results.h"

/* Puts the shapes of the tensors that no edge gives into |shapes|, by raw input of step |step|.
 * False: this step is not called. */
typedef bool rt_cascade_given_f(const void *arg, uint32_t step, const struct shape **shapes);

struct rt_cascade_sizes {
    const struct rt_cascade_layout *layout;
    struct rt_method *const *methods; /* by step; NULL: the step is not called */
    rt_cascade_given_f *given;
    const void *arg;
    bool with_bytes;              /* |bytes| is wanted, which takes longer */
    struct rt_result_info *infos; /* by step and raw result, owned */
    uint32_t first[RT_CASCADE_STEPS_MAX];
    size_t bytes;         /* of all calls of known size, see rt_method_measure() */
    uint32_t failed_step; /* the step at fault */
};

/* Call with the members before |infos| set and the others 0. ST_INVALID: a step does not take its
 * inputs. The caller frees the sizes whatever the status. */
MUST_CHECK enum status rt_cascade_measure(struct rt_cascade_sizes *sizes, struct error *err);
void rt_cascade_sizes_fini(struct rt_cascade_sizes *sizes);

#endif
