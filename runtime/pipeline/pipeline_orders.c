/* SPDX-License-Identifier: MIT */
/*
 * Orders of memory in a pipeline. A tensor that goes from a step to others, or from the caller to
 * some, costs a reorder for each end that prefers another order than it has; it gets the order that
 * costs less. Where that is not row-major, the step that makes the tensor gives it so. A result of
 * the pipeline stays row-major unless a call prefers it otherwise.
 */
#include "config.h"

#include "base/check.h"
#include "runtime/pipeline/pipeline_priv.h"
#include "runtime/program/orders.h"

/* Reorders that a tensor costs: row-major, and in another order. */
struct cost {
    const uint8_t *order; /* that an end prefers; NULL: none does */
    uint32_t row_major, turned;
};

static void add_end(struct cost *cost, const struct rt_io *io)
{
    cost->order = cost->order ? cost->order : io->order;
    cost->row_major += io->order != NULL;
    cost->turned += io->order == NULL;
}

static const uint8_t *cheaper(const struct cost *cost)
{
    return cost->turned < cost->row_major ? cost->order : NULL;
}

/* ---- edges ----------------------------------------------------------------------------------- */

/* How many results of the pipeline are result |output| of step |step|? */
static uint32_t count_outputs(const struct rt_pipeline *pipeline, uint32_t count, uint32_t step,
                              uint32_t output)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < count; i++) {
        found += pipeline->outputs[i].step == step && pipeline->outputs[i].output == output;
    }
    return found;
}

/* Is result |output| of step |step| cheaper in the order that it prefers? */
static bool is_turned(const struct rt_pipeline *pipeline, uint32_t step, uint32_t output)
{
    const struct rt_io *made = rt_method_result(pipeline->methods[step], output);
    const struct rt_cascade_layout *layout = &pipeline->layout;
    struct cost cost = {0};
    add_end(&cost, made);
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        if (edge->from == step && edge->output == output) {
            add_end(&cost, rt_method_input(pipeline->methods[edge->to], edge->input));
        }
    }
    return made->order && cheaper(&cost) == made->order;
}

static bool is_first_edge(const struct rt_cascade_layout *layout, uint32_t index)
{
    const struct rt_cascade_edge *edge = &layout->edges[index];
    for (uint32_t i = 0; i < index; i++) {
        if (layout->edges[i].from == edge->from && layout->edges[i].output == edge->output) {
            return false;
        }
    }
    return true;
}

static enum status choose_edges(struct rt_pipeline *pipeline, uint32_t output_count,
                                struct error *err)
{
    const struct rt_cascade_layout *layout = &pipeline->layout;
    struct rt_pipeline_output *turned =
        arena_array(&pipeline->arena, layout->edge_count, sizeof(*turned));
    if (!turned) {
        return arena_fail(&pipeline->arena, "a pipeline", err);
    }
    for (uint32_t i = 0; i < layout->edge_count; i++) {
        const struct rt_cascade_edge *edge = &layout->edges[i];
        if (is_first_edge(layout, i) &&
            count_outputs(pipeline, output_count, edge->from, edge->output) == 0 &&
            is_turned(pipeline, edge->from, edge->output)) {
            turned[pipeline->turned_count++] =
                (struct rt_pipeline_output){edge->from, edge->output};
        }
    }
    pipeline->turned = turned;
    return ST_OK;
}

/* ---- ends ------------------------------------------------------------------------------------ */

static const uint8_t *choose_input(const struct rt_pipeline *pipeline, uint32_t index)
{
    struct cost cost = {0};
    for (uint32_t i = 0; i < pipeline->input_count; i++) {
        const struct rt_pipeline_input *input = &pipeline->inputs[i];
        if (input->from == index) {
            add_end(&cost, rt_method_input(pipeline->methods[input->step], input->input));
        }
    }
    return cheaper(&cost);
}

enum status rt_pipeline_choose_orders(struct rt_method *method, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_pipeline *pipeline = rt_pipeline_of(method);
    uint32_t taken = 0;
    TRY(choose_edges(pipeline, method->result_count, err));
    for (uint32_t i = 0; i < method->input_count; i++) {
        rt_orders_prefer(&method->inputs[i], choose_input(pipeline, i), &taken);
    }
    for (uint32_t i = 0; i < method->result_count; i++) {
        const struct rt_pipeline_output *output = &pipeline->outputs[i];
        const struct rt_io *made =
            rt_method_result(pipeline->methods[output->step], output->output);
        bool is_twice =
            count_outputs(pipeline, method->result_count, output->step, output->output) > 1;
        rt_orders_prefer(&method->results[i], is_twice ? NULL : made->order,
                         &taken); /* one call, one order */
    }
    return ST_OK;
}
