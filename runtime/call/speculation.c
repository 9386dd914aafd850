/* SPDX-License-Identifier: MIT */
/* The form of a method for several steps of one sequence: a method of its own, with the inputs of
 * all steps, the positions as numbers, and the mutable buffers of the method. */
#include "config.h"

#include "runtime/call/speculation.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/buffer.h"
#include "runtime/call/speculation_priv.h"
#include "runtime/call/steps.h"
#include "runtime/passes/rows.h"

/* ---- forms ----------------------------------------------------------------------------------- */

/* The last position of several steps, and the only number that they take. */
static enum status check_step(const struct rt_method *method, struct error *err)
{
    const struct rt_steps *steps = method->steps;
    if (!steps || !steps->has_step) {
        return reason_set(err, REASON_STEPS_APART);
    }
    enum reason why_not = rt_method_why_not_positional(method);
    if (why_not != REASON_NONE) {
        return reason_set(err, why_not);
    }
    if (steps->step.number_count != 1) {
        return error_set(err, ST_UNSUPPORTED, "a step takes %u numbers, expected a position",
                         steps->step.number_count);
    }
    return ST_OK;
}

static enum status describe_all(struct rt_method *form, const struct rt_method *method,
                                uint32_t rows, struct error *err)
{
    const struct rt_graph *graph = &form->code.blocks[0]->graph;
    const struct rt_step *step = &method->steps->step;
    form->input_count = rows * (step->input_count + 1);
    form->result_count = rows * step->result_count;
    form->inputs = calloc((size_t)form->input_count, sizeof(*form->inputs));
    form->results = calloc((size_t)form->result_count + 1, sizeof(*form->results));
    if (!form->inputs || !form->results) {
        return error_no_memory(err, "speculative steps");
    }
    for (uint32_t i = 0; i < form->input_count; i++) {
        bool is_number = i >= rows * step->input_count;
        rt_steps_describe(&form->inputs[i], graph, graph->inputs[i],
                          is_number ? "a position" : method->inputs[i % step->input_count].label);
    }
    for (uint32_t i = 0; i < form->result_count; i++) {
        rt_steps_describe(&form->results[i], graph, graph->outputs[i],
                          method->results[i % step->result_count].label);
    }
    return ST_OK;
}

/* The form's buffers are the buffers of the method, in its order. */
static enum status take_states(struct rt_method *form, const struct rt_method *method,
                               struct error *err)
{
    size_t count = method->state_count;
    form->states = arena_array(&form->code.arena, count, sizeof(*form->states));
    if (!form->states) {
        return error_no_memory(err, "speculative steps");
    }
    memcpy(form->states, method->states, count * sizeof(*form->states));
    form->state_count = method->state_count;
    return ST_OK;
}

static enum status fill_form(struct rt_method *form, const struct rt_method *method, uint32_t rows,
                             struct error *err)
{
    const struct rt_step *step = &method->steps->step;
    const struct rt_graph_buffers buffers = {
        .first = step->input_count,
        .count = step->state_count,
        .outputs = step->state_outputs,
        .result_count = step->result_count,
    };
    struct rt_block **blocks = arena_array(&form->code.arena, 1, sizeof(struct rt_block *));
    struct rt_block *block = malloc(sizeof(*block));
    if (!blocks || !block) {
        free(block);
        return error_no_memory(err, "speculative steps");
    }
    if (rt_block_speculation(block, method->device, &step->graph, rows, &buffers, err) != ST_OK) {
        free(block);
        return err->code;
    }
    blocks[0] = block;
    form->code.blocks = blocks;
    form->code.block_count = 1;
    TRY(take_states(form, method, err));
    return describe_all(form, method, rows, err);
}

enum status rt_speculation_make_form(struct rt_method *method, uint32_t rows, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(rows > 1 && rows <= RT_SPECULATION_STEPS_MAX);
    TRY(check_step(method, err));
    if (method->steps->speculation[rows]) {
        return ST_OK;
    }
    struct rt_method *form = rt_steps_new_form(method);
    if (!form) {
        return error_no_memory(err, "speculative steps");
    }
    if (fill_form(form, method, rows, err) != ST_OK) {
        rt_method_fini(form);
        free(form);
        return err->code;
    }
    method->steps->speculation[rows] = form;
    return ST_OK;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Buffers that are written have their rows along dim 1: see writes_row() of runtime/passes/rows.c.
 */
int64_t rt_speculation_position_max(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(method->steps && method->steps->has_step);
    const struct rt_step *step = &method->steps->step;
    int64_t max = step->number_max;
    for (uint32_t i = 0; i < step->state_count; i++) {
        const struct rt_value *buffer =
            &step->graph.values[step->graph.inputs[step->input_count + i]];
        struct shape shape;
        if (step->state_outputs[i] != RT_NO_OUTPUT && rt_value_shape(buffer, &shape) &&
            shape.rank > 1 && shape.dims[1] <= max) {
            max = shape.dims[1] - 1;
        }
    }
    return max;
}

enum status rt_speculation_new(struct rt_method *method, struct hal_pool *pool, uint32_t steps,
                               struct rt_invocation **out_invocation, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(method->steps && steps > 1 && steps <= RT_SPECULATION_STEPS_MAX);
    struct rt_method *form = method->steps->speculation[steps];
    must(form);
    return rt_invocation_new(form, pool, out_invocation, err);
}

enum status rt_speculation_ready(struct rt_method *method, struct rt_invocation *inv,
                                 struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    OBJ_CHECK(inv, INVOCATION_MAGIC);
    const struct rt_step *step = &method->steps->step;
    uint32_t rows = inv->method->input_count / (step->input_count + 1);
    uint32_t first = rows * step->input_count, input = step->numbers[0].input;
    int64_t max = rt_speculation_position_max(method);
    must(inv->method == method->steps->speculation[rows]);
    for (uint32_t row = 0; row < rows; row++) {
        const int64_t *element = rt_steps_element(inv, row * step->input_count + input);
        must(element);
        int64_t number;
        memcpy(&number, element, sizeof(number));
        if (number < 0 || number > max) {
            return error_set(err, ST_UNSUPPORTED, "position %lld is behind the last one, %lld",
                             (long long)number, (long long)max);
        }
        must(number == inv->given[first].number + row || row == 0);
        inv->given[first + row].number = number;
        inv->inputs[first + row].is_given = true;
    }
    return ST_OK;
}
