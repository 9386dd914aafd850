/* SPDX-License-Identifier: MIT */
/*
 * The values, operators and delegates of the second plan come first and keep their numbers; those
 * of the first plan come behind them. The instructions follow each other as they run:
 *
 *     the first plan's;  move(result, input) for each of its results;  the second plan's
 */
#include "config.h"

#include "runtime/load/compose.h"

#include <string.h>

#include "base/check.h"
#include "runtime/program/composition.h"
#include "runtime/pte/pte.h"

/* Where the places of the first plan in its memory 0 begin: sizes in a file are signed. */
#define FIRST_OFFSET (UINT64_C(1) << 63)

struct composer {
    struct arena *arena;
    const struct pte_plan *first, *second;
    struct pte_plan *plan; /* being made */
    struct pte_value *values;
    struct pte_instr *instrs;
    uint32_t *taken; /* by result of the first plan: the input of the second one that it becomes */
    struct error *err;
};

static enum status fail_full(const struct composer *c)
{
    return arena_fail(c->arena, "the method", c->err);
}

/* ---- do they fit? ---------------------------------------------------------------------------- */

static const struct pte_plan *find_plan(const struct pte_plan *plans, uint32_t count,
                                        const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(plans[i].name, name) == 0) {
            return &plans[i];
        }
    }
    return NULL;
}

static const struct pte_tensor *input_of(const struct pte_plan *plan, uint32_t index)
{
    const struct pte_value *v = &plan->values[plan->inputs[index]];
    return v->kind == PTE_TENSOR ? v->tensor : NULL;
}

static const struct pte_tensor *result_of(const struct pte_plan *plan, uint32_t index)
{
    const struct pte_value *v = &plan->values[plan->outputs[index]];
    return v->kind == PTE_TENSOR ? v->tensor : NULL;
}

/* Can |result| be |input|, with some dims? */
static bool fits(const struct pte_tensor *result, const struct pte_tensor *input)
{
    bool does = input->dtype == result->dtype && input->shape.rank == result->shape.rank &&
                input->storage != PTE_CONSTANT;
    for (uint8_t d = 0; does && d < input->shape.rank; d++) {
        int64_t given = result->shape.dims[d], wanted = input->shape.dims[d];
        does =
            given == wanted || (given < wanted ? input->dynamism : result->dynamism) != PTE_STATIC;
    }
    return does;
}

static bool is_taken(const struct composer *c, uint32_t results, uint32_t input)
{
    for (uint32_t i = 0; i < results; i++) {
        if (c->taken[i] == input) {
            return true;
        }
    }
    return false;
}

/* Each result becomes the next input that it fits. */
static bool match(struct composer *c)
{
    for (uint32_t i = 0; i < c->first->output_count; i++) {
        const struct pte_tensor *result = result_of(c->first, i);
        uint32_t at = 0;
        for (; result && at < c->second->input_count; at++) {
            const struct pte_tensor *input = input_of(c->second, at);
            if (input && !is_taken(c, i, at) && fits(result, input)) {
                break;
            }
        }
        if (!result || at == c->second->input_count) {
            return false;
        }
        c->taken[i] = at;
    }
    return c->first->output_count > 0;
}

/* ---- values of the first plan ---------------------------------------------------------------- */

static uint32_t shifted(const struct composer *c, uint32_t value)
{
    return value == PTE_NO_VALUE ? value : c->second->value_count + value;
}

/* |from| behind the values of the second plan; NULL: no memory. */
static const uint32_t *shift_all(const struct composer *c, const uint32_t *from, uint32_t count)
{
    uint32_t *to = arena_array(c->arena, (size_t)count + 1, sizeof(*to));
    for (uint32_t i = 0; to && i < count; i++) {
        to[i] = shifted(c, from[i]);
    }
    return to;
}

/* Both methods have a memory 0 of their own, and the second one's stays as it is, with its buffers;
 * the other memories are shared by the whole file. */
static enum status shift_tensor(const struct composer *c, struct pte_value *v)
{
    if (v->tensor->storage != PTE_PLANNED || v->tensor->memory > 0) {
        return ST_OK;
    }
    struct pte_tensor *copy = arena_alloc(c->arena, sizeof(*copy));
    if (!copy) {
        return fail_full(c);
    }
    *copy = *v->tensor;
    copy->offset += FIRST_OFFSET;
    v->tensor = copy;
    return ST_OK;
}

static enum status shift_value(const struct composer *c, struct pte_value *v)
{
    switch (v->kind) {
    case PTE_TENSOR:
        return shift_tensor(c, v);
    case PTE_INT_LIST:
    case PTE_TENSOR_LIST:
    case PTE_OPTIONAL_TENSOR_LIST:
        v->list.values = shift_all(c, v->list.values, v->list.count);
        return v->list.values ? ST_OK : fail_full(c);
    default:
        return ST_OK;
    }
}

static enum status join_values(struct composer *c)
{
    const struct pte_plan *first = c->first, *second = c->second;
    c->plan->value_count = second->value_count + first->value_count;
    c->values = arena_array(c->arena, c->plan->value_count, sizeof(*c->values));
    if (!c->values) {
        return fail_full(c);
    }
    memcpy(c->values, second->values, second->value_count * sizeof(*c->values));
    memcpy(c->values + second->value_count, first->values, first->value_count * sizeof(*c->values));
    for (uint32_t i = second->value_count; i < c->plan->value_count; i++) {
        TRY(shift_value(c, &c->values[i]));
    }
    c->plan->values = c->values;
    return ST_OK;
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Dims of |value| that vary up to |from| vary only up to |to|, or are that. */
static enum status limit_input(struct composer *c, uint32_t value, int64_t from,
                               const struct pte_tensor *to, uint8_t dim)
{
    const struct pte_tensor *t = c->values[value].tensor;
    bool is_tensor = c->values[value].kind == PTE_TENSOR && t->dynamism != PTE_STATIC;
    for (uint8_t d = 0; is_tensor && d < t->shape.rank; d++) {
        if (t->shape.dims[d] != from) {
            continue;
        }
        struct pte_tensor *copy = arena_alloc(c->arena, sizeof(*copy));
        if (!copy) {
            return fail_full(c);
        }
        *copy = *t;
        copy->shape.dims[d] = to->shape.dims[dim];
        copy->dynamism = to->dynamism == PTE_STATIC ? PTE_STATIC : t->dynamism;
        c->values[value].tensor = copy;
        return shape_bytes(&copy->shape, copy->dtype, &copy->byte_count, c->err);
    }
    return ST_OK;
}

/* Where the second method takes less than the first one gives, that is the bound of its inputs. */
static enum status limit(struct composer *c)
{
    for (uint32_t i = 0; i < c->first->output_count; i++) {
        const struct pte_tensor *result = result_of(c->first, i);
        const struct pte_tensor *input = input_of(c->second, c->taken[i]);
        for (uint8_t d = 0; d < result->shape.rank; d++) {
            int64_t bound = result->shape.dims[d];
            for (uint32_t k = 0; input->shape.dims[d] < bound && k < c->first->input_count; k++) {
                TRY(limit_input(c, shifted(c, c->first->inputs[k]), bound, input, d));
            }
        }
    }
    return ST_OK;
}

/* ---- the other tables ------------------------------------------------------------------------ */

static enum status join_callees(struct composer *c)
{
    const struct pte_plan *first = c->first, *second = c->second;
    struct pte_plan *plan = c->plan;
    plan->operator_count = second->operator_count + first->operator_count;
    plan->delegate_count = second->delegate_count + first->delegate_count;
    const char **operators =
        arena_array(c->arena, (size_t)plan->operator_count + 1, sizeof(*operators));
    struct pte_delegate *delegates =
        arena_array(c->arena, (size_t)plan->delegate_count + 1, sizeof(*delegates));
    if (!operators || !delegates) {
        return fail_full(c);
    }
    for (uint32_t i = 0; i < plan->operator_count; i++) {
        operators[i] = i < second->operator_count ? second->operators[i]
                                                  : first->operators[i - second->operator_count];
    }
    for (uint32_t i = 0; i < plan->delegate_count; i++) {
        delegates[i] = i < second->delegate_count ? second->delegates[i]
                                                  : first->delegates[i - second->delegate_count];
    }
    plan->operators = operators;
    plan->delegates = delegates;
    return ST_OK;
}

/* ---- instructions ---------------------------------------------------------------------------- */

static enum status take_first(struct composer *c)
{
    for (uint32_t i = 0; i < c->first->instr_count; i++) {
        struct pte_instr *instr = &c->instrs[i];
        *instr = c->first->instrs[i];
        instr->index += instr->kind == PTE_KERNEL     ? c->second->operator_count
                        : instr->kind == PTE_DELEGATE ? c->second->delegate_count
                                                      : 0;
        instr->args = shift_all(c, instr->args, instr->arg_count);
        if (!instr->args) {
            return fail_full(c);
        }
    }
    return ST_OK;
}

static enum status hand_over(struct composer *c)
{
    for (uint32_t i = 0; i < c->first->output_count; i++) {
        uint32_t *args = arena_array(c->arena, 2, sizeof(*args));
        if (!args) {
            return fail_full(c);
        }
        args[0] = shifted(c, c->first->outputs[i]);
        args[1] = c->second->inputs[c->taken[i]];
        c->instrs[c->first->instr_count + i] =
            (struct pte_instr){.kind = PTE_MOVE, .arg_count = 2, .args = args};
    }
    return ST_OK;
}

static enum status join_instrs(struct composer *c)
{
    const struct pte_plan *second = c->second;
    uint32_t before = c->first->instr_count + c->first->output_count;
    c->plan->instr_count = before + second->instr_count;
    c->instrs = arena_array(c->arena, c->plan->instr_count, sizeof(*c->instrs));
    if (!c->instrs) {
        return fail_full(c);
    }
    TRY(take_first(c));
    TRY(hand_over(c));
    for (uint32_t i = 0; i < second->instr_count; i++) {
        struct pte_instr *instr = &c->instrs[before + i];
        *instr = second->instrs[i];
        instr->index += instr->kind == PTE_JUMP_FALSE ? before : 0;
    }
    c->plan->instrs = c->instrs;
    return ST_OK;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static enum status list_inputs(struct composer *c)
{
    const struct pte_plan *first = c->first, *second = c->second;
    uint32_t *inputs = arena_array(c->arena, (size_t)first->input_count + second->input_count + 1,
                                   sizeof(*inputs));
    if (!inputs) {
        return fail_full(c);
    }
    uint32_t count = 0;
    for (uint32_t i = 0; i < first->input_count; i++) {
        inputs[count++] = shifted(c, first->inputs[i]);
    }
    for (uint32_t i = 0; i < second->input_count; i++) {
        if (!is_taken(c, first->output_count, i)) {
            inputs[count++] = second->inputs[i];
        }
    }
    c->plan->inputs = inputs;
    c->plan->input_count = count;
    return ST_OK;
}

static enum status join(struct composer *c, const char *name)
{
    c->plan = arena_alloc(c->arena, sizeof(*c->plan));
    if (!c->plan) {
        return fail_full(c);
    }
    *c->plan = *c->second;
    c->plan->name = name;
    c->plan->base = c->second;
    c->plan->failure = c->first->failure ? c->first->failure : c->second->failure;
    c->plan->encoded_inputs = c->plan->encoded_outputs = ""; /* both say too little by themselves */
    TRY(join_values(c));
    TRY(limit(c));
    TRY(join_callees(c));
    TRY(join_instrs(c));
    return list_inputs(c);
}

enum status rt_compose(const struct pte_plan *plans, uint32_t count,
                       const struct rt_composition *composition, struct arena *arena,
                       const struct pte_plan **out_plan, struct error *err)
{
    struct composer c = {.arena = arena,
                         .first = find_plan(plans, count, composition->first),
                         .second = find_plan(plans, count, composition->second),
                         .err = err};
    *out_plan = NULL;
    if (!c.first || !c.second || find_plan(plans, count, composition->name)) {
        return ST_OK;
    }
    c.taken = arena_array(arena, (size_t)c.first->output_count + 1, sizeof(*c.taken));
    if (!c.taken) {
        return fail_full(&c);
    }
    if (!match(&c)) {
        return ST_OK;
    }
    TRY(join(&c, composition->name));
    *out_plan = c.plan;
    must(c.plan != NULL);
    return ST_OK;
}
