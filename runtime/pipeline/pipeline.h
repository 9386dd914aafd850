/* SPDX-License-Identifier: MIT */
/*
 * A pipeline: methods whose results feed each other, as a method of its own. It has inputs, results
 * and a signature, and is called like any other method (runtime/call/invocation.h). A call of it is
 * a cascade of calls of its steps (runtime/pipeline/cascade.h): validated, given its memory and
 * submitted before the first step has run.
 *
 * Inputs with names are keyword arguments, and results with names are members of a dict. Otherwise
 * they have positions; an input then takes the name that its steps have for it, and a result the
 * name that its step has for it, if that is unambiguous. If no results are chosen, the pipeline has
 * the results of the last step, in its structure.
 *
 * Without a state each call of a step begins with the initial contents. Immutable except for
 * counts; any thread.
 */
#ifndef PTED_RUNTIME_PIPELINE_PIPELINE_H
#define PTED_RUNTIME_PIPELINE_PIPELINE_H

#include "base/status.h"
#include "runtime/program/program.h"

struct rt_cascade;
struct rt_invocation;
struct rt_sched_job;
struct rt_sched_queue;

#define RT_PIPELINE_STEPS_MAX 64
#define RT_PIPELINE_INPUTS_MAX 256 /* of the pipeline, and of a step */
#define RT_PIPELINE_OUTPUTS_MAX 256

/* Limits of a pipeline including the pipelines in it: all steps, these pipelines counted too; all
 * inputs of steps; pipelines inside each other. */
#define RT_PIPELINE_ALL_STEPS_MAX 256
#define RT_PIPELINE_ALL_SOURCES_MAX 4096
#define RT_PIPELINE_DEPTH_MAX 16

/* The source of an input of a step. */
enum rt_source_kind {
    RT_SOURCE_NONE,  /* none: a scalar that the exporter fixed, or None */
    RT_SOURCE_INPUT, /* input |index| of the pipeline */
    RT_SOURCE_STEP   /* result |index| of |step|, an earlier one */
};

struct rt_source {
    enum rt_source_kind kind;
    uint32_t step, index;
};

struct rt_pipeline_step {
    const char *name;                /* for messages and counts; copied */
    struct rt_method *method;        /* has no failure; its program is retained */
    const struct rt_source *sources; /* by raw input */
    uint32_t source_count;
};

struct rt_pipeline_desc {
    const char *name; /* copied */
    const struct rt_pipeline_step *steps;
    const char *const *models; /* by step: how counts call its method; copied; NULL: as the step */
    uint32_t step_count;
    struct rt_sched_queue *const *queues; /* by step: where its calls wait: each gets a reference;
                                             NULL, or entries are: nowhere */
    const char *const
        *input_names; /* names of all inputs, valid and different; NULL: they have none */
    uint32_t input_name_count;
    const struct rt_source *outputs; /* results of steps; none: all results of the last step */
    const char *const *output_names; /* likewise, but entries may be NULL; or NULL */
    uint32_t output_count;
};

/*
 * Makes a program with the pipeline as its only method. ST_INVALID names the step and the input: an
 * index out of range, a later step, a type, rank or dim that cannot fit, an input of the pipeline
 * that no step takes or that two steps take with incompatible sizes, or too many steps in all.
 */
MUST_CHECK enum status rt_pipeline_new(const struct rt_pipeline_desc *desc,
                                       struct rt_program **out_program, struct error *err);

/* Calls of methods and pipelines in one call of |method|: 1, or all its steps as
 * RT_PIPELINE_ALL_STEPS_MAX counts them, and the pipeline itself. */
uint32_t rt_method_call_count(const struct rt_method *method);

/*
 * Returns the bytes of heap that the steps of a call of |method| take, at any depth; 0 if it is not
 * a pipeline.
 */
size_t rt_method_steps_bytes(const struct rt_method *method);

/*
 * Call before submit, in the start() of the call's job |parent|: the job yields and the steps
 * become children of it, which run as one with other calls that wait for the same methods. Does
 * nothing if |invocation| is no call of a pipeline, if no step could run as one with anything, or
 * if the device has nothing else to do: the steps then follow each other without a detour.
 */
void rt_invocation_hand_over(struct rt_invocation *invocation, struct rt_sched_job *parent);

/* May steps of |method|, at any depth, run as one with other calls? False if it is no pipeline. */
bool rt_pipeline_joins(const struct rt_method *method);

/* The cost of the calls of one step, from all callers of the pipeline: the time from when the
 * step's inputs were there until its results were. */
struct rt_step_counts {
    const char *name, *model;
    uint64_t count, ns;               /* calls that succeeded */
    uint64_t joined_count;            /* successful calls that ran as one with other calls */
    uint64_t failed_count, failed_ns; /* calls that made their pipeline's call fail */
};

/* 0 if the method is not a pipeline. */
uint32_t rt_pipeline_step_count(const struct rt_method *method);
struct rt_step_counts rt_pipeline_step_counts(const struct rt_method *method, uint32_t step);

/* Returns the method that a step of a pipeline calls; where raw input |input| of the step comes
 * from; the result of a step that is result |result| of the pipeline. */
const struct rt_method *rt_pipeline_step_method(const struct rt_method *method, uint32_t step);
struct rt_source rt_pipeline_source(const struct rt_method *method, uint32_t step, uint32_t input);
struct rt_source rt_pipeline_result_source(const struct rt_method *method, uint32_t result);

/* Returns the cascade of a prepared call of a pipeline, for tests of the order of its steps. */
struct rt_cascade *rt_invocation_cascade(struct rt_invocation *invocation);

#endif
