/* SPDX-License-Identifier: MIT */
/*
 * Shapes to call a pipeline with: see runtime/program/example.h. Each step chooses shapes for the
 * inputs of the pipeline that no earlier step has chosen.
 */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/example.h"

struct scratch {
    const struct shape *
        *chosen; /* shape of each raw input of the pipeline: NULL until it is chosen */
    const struct shape **given;   /* by raw input of the step */
    struct shape *shapes;         /* likewise */
    struct rt_result_info *infos; /* of all steps */
    uint32_t *first;              /* by step: of its results among |infos| */
};

/* The known inputs of a step: results of earlier steps, and inputs that have been chosen. */
static void gather(const struct rt_pipeline *pipeline, const struct scratch *scratch, uint32_t step)
{
    for (uint32_t i = 0; i < rt_method_input_count(pipeline->methods[step]); i++) {
        scratch->given[i] = NULL;
    }
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        const struct rt_pipeline_input *input = &pipeline->inputs[i];
        if (input->step == step) {
            scratch->given[input->input] = scratch->chosen[input->from];
        }
    }
    for (uint32_t i = 0; i < pipeline->layout.edge_count; i++) {
        const struct rt_cascade_edge *edge = &pipeline->layout.edges[i];
        const struct rt_result_info *info =
            &scratch->infos[scratch->first[edge->from] + edge->output];
        if (edge->to == step && info->is_tensor) {
            scratch->given[edge->input] = &info->shape;
        }
    }
}

/* Keeps the step's choice for the pipeline's inputs that are still open. */
static void keep(const struct rt_method *method, const struct scratch *scratch, uint32_t step,
                 struct shape *out_shapes)
{
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        const struct rt_pipeline_input *input = &pipeline->inputs[i];
        const struct rt_io *io = rt_method_input(method, input->from);
        if (input->step != step || io->kind != RT_IO_TENSOR || scratch->chosen[input->from]) {
            continue;
        }
        struct shape *shape = &out_shapes[input->from];
        *shape = scratch->shapes[input->input];
        for (uint8_t d = 0; d < shape->rank; d++) { /* another step may take less */
            bool is_free = rt_io_is_dynamic(io, d);
            int64_t bound = io->shape.dims[d];
            shape->dims[d] = is_free && shape->dims[d] < bound ? shape->dims[d] : bound;
        }
        scratch->chosen[input->from] = shape;
    }
}

static enum status choose_by_steps(struct rt_method *method, const struct shape *const *given,
                                   struct scratch *scratch, struct shape *out_shapes,
                                   struct error *err)
{
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    uint32_t results = 0;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        scratch->chosen[i] = given[i];
    }
    for (uint32_t i = 0; i < pipeline->layout.step_count; i++) {
        struct rt_method *step = pipeline->methods[i];
        scratch->first[i] = results;
        results += rt_method_result_count(step);
        gather(pipeline, scratch, i);
        TRY(rt_example_find(step, scratch->given, scratch->shapes,
                            &scratch->infos[scratch->first[i]], err));
        keep(method, scratch, i, out_shapes);
    }
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (scratch->chosen[i]) {
            out_shapes[i] = *scratch->chosen[i];
        }
    }
    return ST_OK;
}

enum status rt_pipeline_choose(struct rt_method *method, const struct shape *const *given,
                               struct shape *out_shapes, struct rt_result_info *out_infos,
                               struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct rt_pipeline *pipeline = rt_pipeline_of(method);
    size_t results = 1, inputs = 1;
    for (uint32_t i = 0; i < pipeline->layout.step_count; i++) {
        results += rt_method_result_count(pipeline->methods[i]);
        inputs += rt_method_input_count(pipeline->methods[i]);
    }
    struct scratch scratch = {
        .chosen = calloc((size_t)rt_method_input_count(method) + 1, sizeof(struct shape *)),
        .given = calloc(inputs, sizeof(struct shape *)),
        .shapes = calloc(inputs, sizeof(*scratch.shapes)),
        .infos = calloc(results, sizeof(*scratch.infos)),
        .first = calloc(pipeline->layout.step_count, sizeof(*scratch.first)),
    };
    bool has_memory =
        scratch.chosen && scratch.given && scratch.shapes && scratch.infos && scratch.first;
    enum status status = has_memory ? choose_by_steps(method, given, &scratch, out_shapes, err)
                                    : error_no_memory(err, "an example");
    if (status == ST_OK) {
        status = rt_method_result_shapes(method, scratch.chosen, out_infos, err);
    }
    free(scratch.chosen);
    free(scratch.given);
    free(scratch.shapes);
    free(scratch.infos);
    free(scratch.first);
    return status;
}
