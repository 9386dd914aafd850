/* SPDX-License-Identifier: MIT */
/*
 * The second check of a plan, when every index in it is in range: do the values that inputs, moves,
 * jumps and frees name fit their use? Arguments of kernels and delegates are not checked; only
 * their importer knows the requirements.
 */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>
#include <stdlib.h>

#define SCALAR_TYPE_BOOL 11

static bool is_constant(const struct pte_value *value)
{
    return value->kind == PTE_TENSOR && value->tensor->storage == PTE_CONSTANT;
}

static enum status verify_inputs(const struct pte_plan *plan, bool *is_input, struct error *err)
{
    for (uint32_t i = 0; i < plan->input_count; i++) {
        uint32_t index = plan->inputs[i];
        const struct pte_value *value = &plan->values[index];
        if (is_input[index]) {
            return error_set(err, ST_CORRUPT,
                             "input %" PRIu32 " is value %" PRIu32 ", which is an input already", i,
                             index);
        }
        is_input[index] = true;
        if (is_constant(value)) {
            return error_set(err, ST_CORRUPT,
                             "input %" PRIu32 " is value %" PRIu32 ", a constant tensor", i, index);
        }
    }
    return ST_OK;
}

/* A value keeps its kind: lists have been checked against it. */
static enum status verify_move(const struct pte_value *from, const struct pte_value *to,
                               struct error *err)
{
    if (from->kind != to->kind) {
        return error_set(err, ST_CORRUPT, "moves a value of kind %s over one of kind %s",
                         pte_kind_name(from->kind), pte_kind_name(to->kind));
    }
    if (is_constant(to)) {
        return error_set(err, ST_CORRUPT, "moves over a constant tensor");
    }
    if (to->kind == PTE_TENSOR && (from->tensor->scalar_type != to->tensor->scalar_type ||
                                   from->tensor->shape.rank != to->tensor->shape.rank)) {
        return error_set(err, ST_CORRUPT,
                         "moves a tensor over one of another element type or rank");
    }
    return ST_OK;
}

/* A number may become a bool before it is read: primitive operators replace the value that they
 * write. */
static enum status verify_condition(const struct pte_value *value, struct error *err)
{
    if (value->kind == PTE_BOOL || value->kind == PTE_INT || value->kind == PTE_DOUBLE ||
        value->kind == PTE_NULL ||
        (value->kind == PTE_TENSOR && value->tensor->scalar_type == SCALAR_TYPE_BOOL)) {
        return ST_OK;
    }
    return error_set(err, ST_CORRUPT,
                     "the condition is of kind %s, expected a bool or a tensor of bools",
                     pte_kind_name(value->kind));
}

static enum status verify_free(const struct pte_value *value, struct error *err)
{
    if (value->kind != PTE_TENSOR || value->tensor->storage != PTE_UNBOUND) {
        return error_set(
            err, ST_CORRUPT,
            "frees a value of kind %s, expected a tensor that is neither constant nor planned",
            pte_kind_name(value->kind));
    }
    return ST_OK;
}

static enum status verify_instr(const struct pte_plan *plan, const struct pte_instr *instr,
                                struct error *err)
{
    switch (instr->kind) {
    case PTE_MOVE:
        return verify_move(&plan->values[instr->args[0]], &plan->values[instr->args[1]], err);
    case PTE_JUMP_FALSE:
        return verify_condition(&plan->values[instr->args[0]], err);
    case PTE_FREE:
        return verify_free(&plan->values[instr->args[0]], err);
    case PTE_KERNEL:
    case PTE_DELEGATE:
        break;
    }
    return ST_OK;
}

enum status pte_verify_plan(struct pte_decoder *decoder, struct error *err)
{
    const struct pte_plan *plan = decoder->plan;
    bool *is_input = calloc(plan->value_count + 1u, sizeof(*is_input));
    if (!is_input) {
        return error_no_memory(err, "%" PRIu32 " values", plan->value_count);
    }
    enum status status = verify_inputs(plan, is_input, err);
    free(is_input);
    TRY(status);
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        if (verify_instr(plan, &plan->instrs[i], err) != ST_OK) {
            return error_prefix(err, "instruction %" PRIu32 ": ", i);
        }
    }
    return ST_OK;
}
