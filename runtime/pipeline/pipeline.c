/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pipeline/pipeline.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "runtime/call/inside.h"
#include "runtime/pipeline/cascade_sizes.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/oracle.h"
#include "runtime/sched/sched.h"

#define ARENA_BYTES_MAX (4u << 20)

_Static_assert(RT_PIPELINE_STEPS_MAX <= RT_CASCADE_STEPS_MAX, "each pipeline is a cascade");

struct build {
    const struct rt_pipeline_desc *desc;
    struct rt_pipeline *pipeline;
    struct rt_method *method;
};

void rt_pipeline_free(struct rt_pipeline *pipeline)
{
    if (!pipeline) {
        return;
    }
    OBJ_CHECK(pipeline, RT_PIPELINE_MAGIC);
    for (uint32_t i = 0; pipeline->methods && i < pipeline->layout.step_count; i++) {
        rt_program_unref(rt_method_program(pipeline->methods[i]));
        rt_sched_queue_unref(pipeline->queues[i]);
    }
    arena_fini(&pipeline->arena);
    pipeline->magic = 0;
    free(pipeline);
}

enum status rt_pipeline_prefix(const struct rt_pipeline *pipeline, uint32_t step, struct error *err)
{
    OBJ_CHECK(pipeline, RT_PIPELINE_MAGIC);
    return error_prefix(err, "step %u (%s): ", step, pipeline->names[step]);
}

/* ---- checks ---------------------------------------------------------------------------------- */

static enum status check_index(uint32_t index, uint32_t count, const char *what, struct error *err)
{
    return index < count ? ST_OK
                         : error_set(err, ST_INVALID, "%s %u: there are %u", what, index, count);
}

/* An input without a source keeps its fixed value. */
static enum status check_none(const struct rt_io *input, struct error *err)
{
    bool is_settled = input->kind == RT_IO_NONE || input->is_fixed;
    return is_settled ? ST_OK : rt_io_refuse(input, "nothing", err);
}

static enum status check_source(const struct build *build, uint32_t step, uint32_t input,
                                struct error *err)
{
    const struct rt_pipeline_desc *desc = build->desc;
    const struct rt_source *source = &desc->steps[step].sources[input];
    const struct rt_io *io = rt_method_input(desc->steps[step].method, input);
    switch (source->kind) {
    case RT_SOURCE_NONE:
        return check_none(io, err);
    case RT_SOURCE_INPUT:
        TRY(check_index(source->index, RT_PIPELINE_INPUTS_MAX, "input", err));
        return io->kind == RT_IO_NONE ? rt_io_refuse(io, "an input of the pipeline", err) : ST_OK;
    case RT_SOURCE_STEP:
        TRY(check_index(source->step, desc->step_count, "step", err));
        if (source->step >= step) {
            return error_set(err, ST_INVALID, "takes a result of step %u, which %s", source->step,
                             source->step == step ? "is itself" : "comes later");
        }
        struct rt_method *from = desc->steps[source->step].method;
        TRY(check_index(source->index, rt_method_result_count(from), "output", err));
        return rt_cascade_verify_edge(rt_method_result(from, source->index), io, err);
    }
    unreachable();
}

static enum status check_step(const struct build *build, uint32_t step, struct error *err)
{
    const struct rt_pipeline_step *desc = &build->desc->steps[step];
    uint32_t count = rt_method_input_count(desc->method);
    if (desc->source_count != count || count > RT_PIPELINE_INPUTS_MAX) {
        return error_set(err, ST_INVALID, "expected %u inputs, got %u", count, desc->source_count);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (check_source(build, step, i, err) != ST_OK) {
            return error_prefix(err, "%s: ", rt_method_input(desc->method, i)->label);
        }
    }
    return ST_OK;
}

/* ---- the graph ------------------------------------------------------------------------------- */

/*
 * Edges in the order of the steps that they lead to, and the steps that take the pipeline's inputs.
 */
static enum status add_sources(struct build *build, struct error *err)
{
    const struct rt_pipeline_desc *desc = build->desc;
    struct rt_pipeline *pipeline = build->pipeline;
    size_t count = 0;
    for (uint32_t i = 0; i < desc->step_count; i++) {
        count += desc->steps[i].source_count;
    }
    struct rt_cascade_edge *edges = arena_array(&pipeline->arena, count, sizeof(*edges));
    struct rt_pipeline_input *inputs = arena_array(&pipeline->arena, count, sizeof(*inputs));
    if (!edges || !inputs) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < desc->step_count; i++) {
        for (uint32_t k = 0; k < desc->steps[i].source_count; k++) {
            const struct rt_source *source = &desc->steps[i].sources[k];
            if (source->kind == RT_SOURCE_STEP) {
                edges[pipeline->layout.edge_count++] = (struct rt_cascade_edge){
                    .from = source->step, .output = source->index, .to = i, .input = k};
            } else if (source->kind == RT_SOURCE_INPUT) {
                inputs[pipeline->input_count++] = (struct rt_pipeline_input){source->index, i, k};
            }
        }
    }
    pipeline->layout.edges = edges;
    pipeline->inputs = inputs;
    return rt_cascade_verify(&pipeline->layout, err);
}

static enum status add_outputs(struct build *build, struct error *err)
{
    const struct rt_pipeline_desc *desc = build->desc;
    struct rt_pipeline *pipeline = build->pipeline;
    uint32_t last = desc->step_count - 1;
    uint32_t count =
        desc->output_count ? desc->output_count : rt_method_result_count(desc->steps[last].method);
    struct rt_pipeline_output *outputs = arena_array(&pipeline->arena, count, sizeof(*outputs));
    if (count > RT_PIPELINE_OUTPUTS_MAX) {
        return error_set(err, ST_INVALID, "expected at most %d outputs, got %u",
                         RT_PIPELINE_OUTPUTS_MAX, count);
    }
    if (!outputs) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        struct rt_source all = {RT_SOURCE_STEP, last, i};
        const struct rt_source *source = desc->output_count ? &desc->outputs[i] : &all;
        uint32_t step = source->step;
        if (source->kind != RT_SOURCE_STEP ||
            check_index(step, desc->step_count, "step", err) != ST_OK ||
            check_index(source->index, rt_method_result_count(desc->steps[step].method), "output",
                        err) != ST_OK) {
            return source->kind == RT_SOURCE_STEP
                       ? error_prefix(err, "outputs: ")
                       : error_set(err, ST_INVALID, "output %u: expected a result of a step", i);
        }
        outputs[i] = (struct rt_pipeline_output){step, source->index};
        pipeline->output_steps |= (uint64_t)1 << step;
    }
    pipeline->outputs = outputs;
    build->method->result_count = count;
    return ST_OK;
}

/* ---- making ---------------------------------------------------------------------------------- */

static enum status copy_text(struct arena *arena, const char *text, const char **out,
                             struct error *err)
{
    *out = arena_strdup(arena, text, strlen(text));
    return *out ? ST_OK : error_no_memory(err, "a pipeline");
}

static enum status copy_steps(struct build *build, struct error *err)
{
    const struct rt_pipeline_desc *desc = build->desc;
    struct rt_pipeline *pipeline = build->pipeline;
    struct arena *arena = &pipeline->arena;
    const char **names = arena_array(arena, desc->step_count, sizeof(*names));
    const char **models = arena_array(arena, desc->step_count, sizeof(*models));
    struct rt_method **methods = arena_array(arena, desc->step_count, sizeof(*methods));
    pipeline->counters = arena_array(arena, desc->step_count, sizeof(*pipeline->counters));
    pipeline->queues = arena_array(arena, desc->step_count, sizeof(struct rt_sched_queue *));
    if (!names || !models || !methods || !pipeline->counters || !pipeline->queues) {
        return error_no_memory(err, "a pipeline");
    }
    TRY(copy_text(arena, desc->name, &build->method->name, err));
    for (uint32_t i = 0; i < desc->step_count; i++) {
        TRY(copy_text(arena, desc->steps[i].name, &names[i], err));
        models[i] = names[i];
        if (desc->models) {
            TRY(copy_text(arena, desc->models[i], &models[i], err));
        }
    }
    for (uint32_t i = 0; i < desc->step_count; i++) {
        methods[i] = desc->steps[i].method;
        rt_program_ref(rt_method_program(methods[i]));
        struct rt_sched_queue *queue = desc->queues ? desc->queues[i] : NULL;
        pipeline->queues[i] = queue ? rt_sched_queue_ref(queue) : NULL;
    }
    pipeline->names = names;
    pipeline->models = models;
    pipeline->methods = methods;
    build->method->parts = methods;
    build->method->part_count = desc->step_count;
    pipeline->layout.step_count = desc->step_count;
    return ST_OK;
}

/* |got| of a pipeline with those in it. */
static enum status check_all(uint32_t got, uint32_t max, const char *what, struct error *err)
{
    return got <= max ? ST_OK
                      : error_set(err, ST_INVALID,
                                  "expected at most %u %s, those of the pipelines in it counted, "
                                  "got %u",
                                  max, what, got);
}

/* Counts the steps of the pipeline and of all pipelines in it, before anything is made. */
static enum status count_all(struct build *build, struct error *err)
{
    struct rt_pipeline *pipeline = build->pipeline;
    pipeline->depth = 1;
    for (uint32_t i = 0; i < build->desc->step_count; i++) {
        const struct rt_pipeline_step *step = &build->desc->steps[i];
        const struct rt_pipeline *inner = rt_pipeline_of(step->method);
        pipeline->all_steps += rt_method_call_count(step->method);
        pipeline->all_sources += step->source_count + (inner ? inner->all_sources : 0);
        if (inner && inner->depth >= pipeline->depth) {
            pipeline->depth = inner->depth + 1;
        }
    }
    TRY(check_all(pipeline->all_steps, RT_PIPELINE_ALL_STEPS_MAX, "steps", err));
    TRY(check_all(pipeline->all_sources, RT_PIPELINE_ALL_SOURCES_MAX, "inputs of steps", err));
    return pipeline->depth <= RT_PIPELINE_DEPTH_MAX
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected pipelines inside each other at most %d deep, got %u",
                           RT_PIPELINE_DEPTH_MAX, pipeline->depth);
}

static enum status count_bytes(struct rt_pipeline *pipeline, struct error *err)
{
    for (uint32_t i = 0; i < pipeline->layout.step_count; i++) {
        size_t bytes;
        TRY(rt_invocation_heap_bytes(pipeline->methods[i], &bytes, err));
        bytes += rt_method_steps_bytes(pipeline->methods[i]);
        if (!add_size(pipeline->all_bytes, bytes, &pipeline->all_bytes)) {
            return error_no_memory(err, "a pipeline");
        }
    }
    return ST_OK;
}

static enum status make(struct build *build, struct error *err)
{
    TRY(count_all(build, err));
    TRY(copy_steps(build, err));
    for (uint32_t i = 0; i < build->desc->step_count; i++) {
        if (check_step(build, i, err) != ST_OK) {
            return rt_pipeline_prefix(build->pipeline, i, err);
        }
    }
    TRY(add_sources(build, err));
    TRY(count_bytes(build->pipeline, err));
    TRY(add_outputs(build, err));
    return rt_pipeline_describe(build->method, build->desc, err);
}

enum status rt_pipeline_new(const struct rt_pipeline_desc *desc, struct rt_program **out_program,
                            struct error *err)
{
    struct rt_program *program;
    if (desc->step_count == 0 || desc->step_count > RT_PIPELINE_STEPS_MAX) {
        return error_set(err, ST_INVALID, "expected 1 to %d steps, got %u", RT_PIPELINE_STEPS_MAX,
                         desc->step_count);
    }
    struct rt_pipeline *pipeline = calloc(1, sizeof(*pipeline));
    if (!pipeline) {
        return error_no_memory(err, "a pipeline");
    }
    if (rt_program_new_empty(desc->steps[0].method->device, &rt_pipelined_callable, &program,
                             err) != ST_OK) {
        free(pipeline);
        return err->code;
    }
    struct rt_method *method = rt_program_method(program, 0);
    pipeline->magic = RT_PIPELINE_MAGIC;
    arena_init(&pipeline->arena, ARENA_BYTES_MAX);
    method->own = pipeline;
    struct build build = {.desc = desc, .pipeline = pipeline, .method = method};
    enum status status = make(&build, err);
    if (status != ST_OK) {
        rt_program_unref(program);
        return status;
    }
    *out_program = program;
    return ST_OK;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

struct given {
    const struct rt_pipeline *pipeline;
    const struct shape *const *inputs;
};

static bool give_shapes(const void *arg, uint32_t step, const struct shape **shapes)
{
    const struct given *given = arg;
    for (uint32_t i = 0; i < given->pipeline->input_count; i++) {
        const struct rt_pipeline_input *input = &given->pipeline->inputs[i];
        if (input->step == step) {
            shapes[input->input] = given->inputs[input->from];
        }
    }
    return true;
}

enum status rt_pipeline_measure(struct rt_method *method, const struct shape *const *inputs,
                                bool says_paths, struct rt_result_info *out_infos,
                                size_t *out_bytes, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    (void)says_paths; /* the inputs belong to steps, and messages of a step use its own names */
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    const struct given given = {pipeline, inputs};
    struct rt_cascade_sizes sizes = {
        .layout = &pipeline->layout,
        .methods = pipeline->methods,
        .given = give_shapes,
        .arg = &given,
        .with_bytes = out_bytes != NULL,
    };
    enum status status = rt_cascade_measure(&sizes, err);
    if (status != ST_OK) {
        rt_pipeline_prefix(pipeline, sizes.failed_step, err);
    }
    for (uint32_t i = 0; status == ST_OK && i < method->result_count; i++) {
        const struct rt_pipeline_output *output = &pipeline->outputs[i];
        out_infos[i] = sizes.infos[sizes.first[output->step] + output->output];
    }
    if (out_bytes) {
        *out_bytes = sizes.bytes;
    }
    rt_cascade_sizes_fini(&sizes);
    return status;
}

/* ---- looking at one -------------------------------------------------------------------------- */

uint32_t rt_method_call_count(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    return 1 + (pipeline ? pipeline->all_steps : 0);
}

size_t rt_method_steps_bytes(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    return pipeline ? pipeline->all_bytes : 0;
}

bool rt_pipeline_joins(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    for (uint32_t i = 0; pipeline && i < pipeline->layout.step_count; i++) {
        const struct rt_sched_queue *queue = pipeline->queues[i];
        if ((queue && rt_sched_queue_joins(queue)) || rt_pipeline_joins(pipeline->methods[i])) {
            return true;
        }
    }
    return false;
}

uint32_t rt_pipeline_step_count(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    return pipeline ? pipeline->layout.step_count : 0;
}

const struct rt_method *rt_pipeline_step_method(const struct rt_method *method, uint32_t step)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    must(step < pipeline->layout.step_count);
    return pipeline->methods[step];
}

struct rt_source rt_pipeline_source(const struct rt_method *method, uint32_t step, uint32_t input)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        const struct rt_pipeline_input *from = &pipeline->inputs[i];
        if (from->step == step && from->input == input) {
            return (struct rt_source){.kind = RT_SOURCE_INPUT, .index = from->from};
        }
    }
    for (uint32_t i = 0; i < pipeline->layout.edge_count; i++) {
        const struct rt_cascade_edge *edge = &pipeline->layout.edges[i];
        if (edge->to == step && edge->input == input) {
            return (struct rt_source){RT_SOURCE_STEP, edge->from, edge->output};
        }
    }
    return (struct rt_source){.kind = RT_SOURCE_NONE};
}

struct rt_source rt_pipeline_result_source(const struct rt_method *method, uint32_t result)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    must(result < method->result_count);
    const struct rt_pipeline_output *output = &pipeline->outputs[result];
    return (struct rt_source){RT_SOURCE_STEP, output->step, output->output};
}

/* ---- counts ---------------------------------------------------------------------------------- */

static void add(atomic_uint_fast64_t *counter, uint64_t more)
{
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

static uint64_t look(const atomic_uint_fast64_t *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

void rt_pipeline_count(struct rt_pipeline *pipeline, const struct rt_cascade *cascade,
                       uint32_t failed)
{
    OBJ_CHECK(pipeline, RT_PIPELINE_MAGIC);
    uint64_t ns[RT_CASCADE_STEPS_MAX];
    rt_cascade_times(cascade, ns);
    for (uint32_t i = 0; i < pipeline->layout.step_count; i++) {
        struct rt_step_counter *counter = &pipeline->counters[i];
        if (rt_cascade_status(cascade, i) == ST_OK) {
            add(&counter->count, 1);
            add(&counter->ns, ns[i]);
            add(&counter->joined_count, rt_cascade_joined(cascade, i) != 0);
        } else if (i == failed) {
            add(&counter->failed_count, 1);
            add(&counter->failed_ns, ns[i]);
        }
    }
}

struct rt_step_counts rt_pipeline_step_counts(const struct rt_method *method, uint32_t step)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    must(step < pipeline->layout.step_count);
    const struct rt_step_counter *counter = &pipeline->counters[step];
    return (struct rt_step_counts){
        .name = pipeline->names[step],
        .model = pipeline->models[step],
        .count = look(&counter->count),
        .ns = look(&counter->ns),
        .joined_count = look(&counter->joined_count),
        .failed_count = look(&counter->failed_count),
        .failed_ns = look(&counter->failed_ns),
    };
}
