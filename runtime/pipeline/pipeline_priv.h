/* SPDX-License-Identifier: MIT */
/* The inside of a pipeline, shared by making and calling it. See runtime/pipeline/pipeline.h. */
#ifndef PTED_RUNTIME_PIPELINE_PIPELINE_PRIV_H
#define PTED_RUNTIME_PIPELINE_PIPELINE_PRIV_H

#include <stdatomic.h>

#include "runtime/pipeline/cascade.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/method.h"
#include "runtime/program/results.h"

/* Input |from| of the pipeline is input |input| of step |step|. */
struct rt_pipeline_input {
    uint32_t from, step, input;
};

struct rt_pipeline_output {
    uint32_t step, output;
};

/* See struct rt_step_counts. */
struct rt_step_counter {
    atomic_uint_fast64_t count, ns, joined_count, failed_count, failed_ns;
};

#define RT_PIPELINE_MAGIC 0x919e114eu

struct rt_pipeline {
    uint32_t magic;
    struct arena arena; /* holds all that follows */
    const char *const *names;
    const char *const *models;
    struct rt_step_counter *counters; /* by step */
    uint32_t all_steps, all_sources;  /* counts of pipelines among the steps included */
    size_t all_bytes;                 /* of heap that a call's steps take */
    uint32_t depth;                   /* 1: none of them is a pipeline */
    struct rt_method *const *methods; /* by step; their programs: refs held */
    struct rt_sched_queue **queues;   /* likewise; entries may be NULL */
    struct rt_cascade_layout layout;
    const struct rt_pipeline_input *inputs;
    uint32_t input_count;
    const struct rt_pipeline_output *outputs; /* by result */
    uint64_t output_steps;                    /* a bit for each step that has one */
    const struct rt_pipeline_output *turned;  /* results that only steps read, not row-major */
    uint32_t turned_count;
};

extern const struct rt_callable rt_pipelined_callable;

/* Returns NULL: |method| is no pipeline. */
static inline struct rt_pipeline *rt_pipeline_of(const struct rt_method *method)
{
    return method->callable == &rt_pipelined_callable ? method->own : NULL;
}

void rt_pipeline_free(struct rt_pipeline *pipeline); /* NULL is fine */

/* In runtime/pipeline/pipeline_orders.c: chooses the order of memory of each edge, and the orders
 * that the inputs and results of |method| prefer. */
MUST_CHECK enum status rt_pipeline_choose_orders(struct rt_method *method, struct error *err);

/* In runtime/pipeline/pipeline_describe.c: describes the inputs and results of |method|, with their
 * structure and their names; the pipeline knows its steps and which of them take which input. */
MUST_CHECK enum status rt_pipeline_describe(struct rt_method *method,
                                            const struct rt_pipeline_desc *desc, struct error *err);

/* Call when a call is over: counts its steps. |failed|: the step that ended it, or UINT32_MAX. */
void rt_pipeline_count(struct rt_pipeline *pipeline, const struct rt_cascade *cascade,
                       uint32_t failed);

/* Puts "step 2 (topk): " before the text in |err|. */
enum status rt_pipeline_prefix(const struct rt_pipeline *pipeline, uint32_t step,
                               struct error *err);

/* Implement the functions with these names in the row of callables. */
MUST_CHECK enum status rt_pipeline_measure(struct rt_method *method,
                                           const struct shape *const *inputs, bool says_paths,
                                           struct rt_result_info *out_infos, size_t *out_bytes,
                                           struct error *err);
MUST_CHECK enum status rt_pipeline_choose(struct rt_method *method,
                                          const struct shape *const *given,
                                          struct shape *out_shapes,
                                          struct rt_result_info *out_infos, struct error *err);

#endif
