/* SPDX-License-Identifier: MIT */
/* Moves, jumps and the end of a method. */
#include "config.h"

#include "runtime/import/import_priv.h"

enum status rt_import_move(struct import *im, const struct pte_instr *instr)
{
    uint32_t from = instr->args[0], to = instr->args[1], value;
    const struct pte_value *a = &im->plan->values[from], *b = &im->plan->values[to];
    if (a->kind != b->kind || a->kind >= PTE_INT_LIST || a->kind == PTE_STRING) {
        return error_set(im->err, ST_INVALID, "cannot move %s to %s", pte_kind_name(a->kind),
                         pte_kind_name(b->kind));
    }
    if (a->kind == PTE_TENSOR &&
        (a->tensor->dtype != b->tensor->dtype || a->tensor->shape.rank != b->tensor->shape.rank ||
         b->tensor->storage == PTE_CONSTANT)) {
        return error_set(
            im->err, ST_INVALID,
            "cannot move between tensors of different dtype or rank, or to a constant");
    }
    TRY(rt_import_settle_value(im, from, false));
    TRY(rt_import_settle_value(im, to, true));
    TRY(rt_import_use(im, from, &value));
    return rt_import_publish(im, to, value);
}

/* The condition has the same value in each call. */
static bool is_constant_bool(const struct import *im, uint32_t index)
{
    return im->plan->values[index].kind == PTE_BOOL && !im->live.is_written[index];
}

/* A comparison of sizes is a bool, even if the file declares another kind for the value that holds
 * its result. */
static enum status check_condition(struct import *im, uint32_t index)
{
    const struct pte_value *v = &im->plan->values[index];
    struct rt_import_operand o;
    if (v->kind == PTE_TENSOR) {
        return v->tensor->dtype == DT_BOOL
                   ? ST_OK
                   : error_set(im->err, ST_INVALID,
                               "the condition is a tensor of another type, expected a bool");
    }
    TRY(rt_import_look_at(im, index, &o));
    return o.kind == RT_BOOL
               ? ST_OK
               : error_set(im->err, ST_INVALID, "the condition is %s, expected a bool",
                           pte_kind_name(v->kind));
}

enum status rt_import_jump(struct import *im, const struct pte_instr *instr)
{
    uint32_t condition = instr->args[0];
    const struct pte_value *v = &im->plan->values[condition];
    struct rt_step step = {.kind = RT_STEP_JUMP, .target = instr->index, .origin = im->position};
    TRY(check_condition(im, condition));
    if (is_constant_bool(im, condition) && v->bool_value) {
        return ST_OK;
    }
    if (!is_constant_bool(im, condition)) {
        step.kind = RT_STEP_JUMP_FALSE;
        TRY(rt_import_capture(im, condition, &step.a));
    }
    TRY(rt_import_end_block(im, im->position));
    im->has_branched = true;
    im->code->has_loop |= instr->index <= im->position;
    return rt_import_add_step(im, step);
}

/* Replaces the instruction numbers in jumps by step numbers. */
static void resolve_jumps(struct import *im)
{
    for (uint32_t i = 0; i < im->code->step_count; i++) {
        struct rt_step *step = &im->code->steps[i];
        if (step->kind == RT_STEP_JUMP || step->kind == RT_STEP_JUMP_FALSE) {
            step->target = im->step_of[step->target];
        }
    }
}

/* ---- the end --------------------------------------------------------------------------------- */

/* A mutable buffer is always written whole: the next call expects its declared type and dims. */
static enum status add_state(struct import *im, const struct rt_state_use *use)
{
    struct rt_graph *graph = im->graph;
    uint32_t value = im->slots[use->index].current;
    const struct rt_value *v = &graph->values[value];
    struct shape shape;
    if (v->kind != RT_TENSOR || v->dtype != use->tensor->dtype || !rt_value_shape(v, &shape) ||
        !shape_equal(&shape, &use->tensor->shape)) {
        return error_set(
            im->err, ST_INVALID,
            "the new content of a mutable buffer differs from the buffer in dtype or shape");
    }
    graph->outputs[graph->output_count++] = value;
    return ST_OK;
}

/* The outputs of the only block are the method's results, followed by the states that it writes. */
static enum status end_single_block(struct import *im)
{
    const struct pte_plan *plan = im->plan;
    struct rt_graph *graph = im->graph;
    graph->outputs = arena_array(&graph->arena, (size_t)plan->output_count + im->states->count,
                                 sizeof(*graph->outputs));
    if (!graph->outputs) {
        return rt_import_fail_full(im);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        if (rt_import_use(im, plan->outputs[i], &graph->outputs[i]) != ST_OK) {
            return error_prefix(im->err, "output %u: ", i);
        }
        graph->output_count = i + 1;
        im->code->results[i] = (struct rt_code_result){.output = i, .has_source = true};
    }
    for (uint32_t i = 0; i < im->states->count; i++) {
        const struct rt_state_use *use = &im->states->items[i];
        if (use->is_written) {
            TRY(add_state(im, use));
        }
    }
    return ST_OK;
}

/* Results that are not tensors and that nothing computes are described by the file alone. */
static enum status save_result(struct import *im, uint32_t i)
{
    uint32_t index = im->plan->outputs[i], value;
    struct rt_code_result *result = &im->code->results[i];
    const struct pte_value *v = &im->plan->values[index];
    if (v->kind == PTE_STRING || v->kind == PTE_NULL) {
        return rt_import_add_register(im, rt_import_describe_register(v), &result->reg);
    }
    if (im->slots[index].place == RT_PLACE_NONE) {
        TRY(rt_import_use(im, index, &value));
        if (im->slots[index].place == RT_PLACE_NONE) {
            rt_import_set(im, index, value); /* a constant, or a view */
        }
    }
    return rt_import_register_of(im, index, &result->reg);
}

static enum status save_results(struct import *im)
{
    for (uint32_t i = 0; i < im->plan->output_count; i++) {
        if (save_result(im, i) != ST_OK) {
            return error_prefix(im->err, "output %u: ", i);
        }
    }
    TRY(rt_import_end_block(im, im->plan->instr_count));
    for (uint32_t i = 0; i < im->plan->output_count; i++) {
        struct rt_code_result *result = &im->code->results[i];
        const struct rt_import_writer *w = &im->writers[result->reg];
        result->is_computed = w->count > 0;
        if (w->count == 1 && !w->is_input && result->reg >= im->plan->input_count) {
            result->has_source = true;
            result->is_extent = w->is_extent;
            result->block = w->block;
            result->output = w->output;
        }
    }
    return ST_OK;
}

enum status rt_import_end(struct import *im)
{
    const struct pte_plan *plan = im->plan;
    struct rt_code *code = im->code;
    code->result_count = plan->output_count;
    code->results = arena_array(&code->arena, plan->output_count, sizeof(*code->results));
    if (!code->results) {
        return rt_import_fail_full(im);
    }
    TRY(rt_import_arrive(im, plan->instr_count));
    if (code->step_count == 0 && im->queue_count == 0 && im->out_count == 0) {
        return end_single_block(im);
    }
    TRY(save_results(im));
    for (uint32_t i = 0; i < im->states->count; i++) {
        struct rt_state_use *use = &im->states->items[i];
        TRY(rt_import_register_of(im, use->index, &use->reg));
    }
    resolve_jumps(im);
    return ST_OK;
}
