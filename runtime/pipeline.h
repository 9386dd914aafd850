/* SPDX-License-Identifier: MIT */
/*
 * A pipeline: methods whose results feed each other, as a method of its own. It has inputs, results
 * and a signature, and is called like any other (runtime/invocation.h): a call of it is a cascade
 * of calls of its steps (runtime/cascade.h), validated, given its memory and submitted before the
 * first step has run. Inputs and results have positions and no structure.
 *
 * Without a state each call of a step begins with the initial contents. Immutable; any thread.
 */
#ifndef PTED_RUNTIME_PIPELINE_H
#define PTED_RUNTIME_PIPELINE_H

#include "base/status.h"
#include "runtime/program.h"

struct rt_cascade;
struct rt_invocation;

#define RT_PIPELINE_STEPS_MAX 64
#define RT_PIPELINE_INPUTS_MAX 256 /* of the pipeline, and of a step */
#define RT_PIPELINE_OUTPUTS_MAX 256

/* Where an input of a step comes from. */
enum rt_source_kind {
    RT_SOURCE_NONE,  /* nowhere: a scalar that the exporter fixed, or None */
    RT_SOURCE_INPUT, /* input |index| of the pipeline */
    RT_SOURCE_STEP   /* result |index| of |step|, an earlier one */
};

struct rt_source {
    enum rt_source_kind kind;
    uint32_t step, index;
};

struct rt_pipeline_step {
    const char *name;                /* for messages; copied */
    struct rt_method *method;        /* has no failure; its program is retained */
    const struct rt_source *sources; /* by raw input */
    uint32_t source_count;
};

struct rt_pipeline_desc {
    const char *name; /* copied */
    const struct rt_pipeline_step *steps;
    uint32_t step_count;
    const struct rt_source *outputs; /* results of steps; none: all of the last step */
    uint32_t output_count;
};

/*
 * A program with the pipeline as its only method. ST_INVALID names the step and the input: an
 * index out of range, a later step, a type, rank or dim that cannot fit, an input of the pipeline
 * that nobody takes or that two steps take with sizes that exclude each other.
 */
MUST_CHECK enum status rt_pipeline_new(const struct rt_pipeline_desc *desc,
                                       struct rt_program **out_program, struct error *err);

bool rt_method_is_pipeline(const struct rt_method *method);

/* The cascade of a prepared call of a pipeline, to be traced. */
struct rt_cascade *rt_invocation_cascade(struct rt_invocation *invocation);

#endif
