/* SPDX-License-Identifier: MIT */
/*
 * The sizes of a cascade before anything has run: the steps' own sizes, one after the other, where
 * what feeds a step is known. Any thread.
 */
#ifndef PTED_RUNTIME_PIPELINE_CASCADE_SIZES_H
#define PTED_RUNTIME_PIPELINE_CASCADE_SIZES_H

#include "base/status.h"
#include "runtime/pipeline/cascade.h"
#include "runtime/program/results.h"

/* Puts the shapes of the tensors that no edge brings into |shapes|, by raw input of step |step|.
 * False: the call of this step does not take place. */
typedef bool rt_cascade_given_f(const void *arg, uint32_t step, const struct shape **shapes);

struct rt_cascade_sizes {
    const struct rt_cascade_layout *layout;
    struct rt_method *const *methods; /* by step; NULL: its call does not take place */
    rt_cascade_given_f *given;
    const void *arg;
    bool with_bytes;              /* |bytes| is asked for, which takes longer */
    struct rt_result_info *infos; /* by step and raw result, owned */
    uint32_t first[RT_CASCADE_STEPS_MAX];
    size_t bytes;         /* that all calls of known size take, see rt_method_measure() */
    uint32_t failed_step; /* what a failure is about */
};

/*
 * The members before |infos| are set, the others 0. ST_INVALID: a step does not take what it is
 * given. To be freed whatever the status.
 */
MUST_CHECK enum status rt_cascade_measure(struct rt_cascade_sizes *sizes, struct error *err);
void rt_cascade_sizes_fini(struct rt_cascade_sizes *sizes);

#endif
