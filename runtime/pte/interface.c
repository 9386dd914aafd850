/* SPDX-License-Identifier: MIT */
/*
 * The inputs and outputs of a method. A list among them is replaced by its items, in order, which
 * is how exporters write structures anyway: later code sees only tensors, numbers, strings and
 * nones.
 *
 * A none in a list has no value of its own in a file, and neither have the numbers of a list of
 * doubles or bools; they become further values of the plan, after the file's values. So do the
 * integers of an input, because a file may name one value several times: the caller must give the
 * numbers of the file, so no instruction reads them.
 */
#include "config.h"

#include "runtime/pte/decode.h"

#include <inttypes.h>
#include <string.h>

#include "runtime/pte/limits.h"

/* The values of a plan under construction. */
struct expansion {
    struct pte_decoder *decoder;
    bool is_input;
    struct pte_value *values; /* values of the file, then made ones; NULL: only counts */
    uint32_t made;
};

static bool is_list(const struct pte_value *value)
{
    return value->kind >= PTE_INT_LIST;
}

static uint32_t add_value(struct expansion *e, struct pte_value value)
{
    uint32_t index = e->decoder->plan->value_count + e->made++;
    if (e->values) {
        e->values[index] = value;
    }
    return index;
}

/* The plan value for item |i| of |list|. */
static uint32_t item_of(struct expansion *e, const struct pte_value *list, uint32_t i)
{
    const struct pte_value *values = e->decoder->plan->values;
    switch (list->kind) {
    case PTE_INT_LIST:
        return e->is_input ? add_value(e, values[list->list.values[i]]) : list->list.values[i];
    case PTE_DOUBLE_LIST:
        return add_value(
            e, (struct pte_value){.kind = PTE_DOUBLE, .double_value = list->list.doubles[i]});
    case PTE_BOOL_LIST:
        return add_value(e,
                         (struct pte_value){.kind = PTE_BOOL, .bool_value = list->list.bools[i]});
    case PTE_OPTIONAL_TENSOR_LIST:
        if (list->list.values[i] == PTE_NO_VALUE) {
            return add_value(e, (struct pte_value){.kind = PTE_NULL});
        }
        return list->list.values[i];
    default:
        return list->list.values[i];
    }
}

/* Replaces lists by their items. |to| is NULL if only |*count| is wanted. */
static enum status expand(struct expansion *e, const uint32_t *from, uint32_t from_count,
                          uint32_t *to, uint32_t *out_count, struct error *err)
{
    const struct pte_value *values = e->decoder->plan->values;
    uint32_t count = 0;
    for (uint32_t i = 0; i < from_count; i++) {
        const struct pte_value *value = &values[from[i]];
        uint32_t items = is_list(value) ? value->list.count : 1;
        if (items > PTE_ARGS_MAX - count) {
            return error_set(err, ST_TOO_LARGE,
                             "%s %" PRIu32 ": with the items of lists more than %u of them",
                             e->is_input ? "input" : "output", i, PTE_ARGS_MAX);
        }
        for (uint32_t j = 0; j < items; j++, count++) {
            uint32_t index = is_list(value) ? item_of(e, value, j) : from[i];
            if (to) {
                to[count] = index;
            }
        }
    }
    *out_count = count;
    return ST_OK;
}

/* For both lists of the plan; made values are numbered from 0. */
static enum status expand_both(struct expansion *e, uint32_t *in, uint32_t *out, uint32_t counts[2],
                               struct error *err)
{
    const struct pte_plan *plan = e->decoder->plan;
    e->made = 0;
    e->is_input = true;
    TRY(expand(e, plan->inputs, plan->input_count, in, &counts[0], err));
    e->is_input = false;
    return expand(e, plan->outputs, plan->output_count, out, &counts[1], err);
}

static bool has_list(const struct pte_plan *plan, const uint32_t *indices, uint32_t count)
{
    bool has = false;
    for (uint32_t i = 0; i < count; i++) {
        has |= is_list(&plan->values[indices[i]]);
    }
    return has;
}

enum status pte_expand_lists(struct pte_decoder *decoder, struct error *err)
{
    struct pte_plan *plan = decoder->plan;
    struct expansion e = {.decoder = decoder};
    uint32_t counts[2];
    if (!has_list(plan, plan->inputs, plan->input_count) &&
        !has_list(plan, plan->outputs, plan->output_count)) {
        return ST_OK;
    }
    TRY(expand_both(&e, NULL, NULL, counts, err));
    uint32_t *in = pte_decode_array(decoder, counts[0], sizeof(*in), err);
    uint32_t *out = in ? pte_decode_array(decoder, counts[1], sizeof(*out), err) : NULL;
    size_t value_count = (size_t)plan->value_count + e.made;
    e.values = out ? pte_decode_array(decoder, value_count, sizeof(*e.values), err) : NULL;
    if (!e.values) {
        return err->code;
    }
    memcpy(e.values, plan->values, plan->value_count * sizeof(*e.values));
    TRY(expand_both(&e, in, out, counts, err));
    plan->inputs = in;
    plan->outputs = out;
    plan->input_count = counts[0];
    plan->output_count = counts[1];
    plan->values = e.values;
    plan->value_count += e.made;
    return ST_OK;
}
