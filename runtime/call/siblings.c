/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/call/siblings.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/call/steps.h"

/* ---- what is the same ------------------------------------------------------------------------ */

static bool is_same_array(const void *a, const void *b, size_t count, size_t size)
{
    return count == 0 || memcmp(a, b, count * size) == 0;
}

static bool are_same_dims(const struct rt_dim *a, const struct rt_dim *b, uint32_t count)
{
    bool is_same = true;
    for (uint32_t i = 0; i < count; i++) {
        is_same = is_same && rt_dim_same(a[i], b[i]);
    }
    return is_same;
}

static bool is_same_tensor(const struct rt_value *a, const struct rt_value *b)
{
    return a->dtype == b->dtype && a->rank == b->rank && a->is_constant == b->is_constant &&
           a->is_packed == b->is_packed && a->is_half == b->is_half && !a->order == !b->order &&
           !a->dims == !b->dims && (!a->dims || are_same_dims(a->dims, b->dims, a->rank)) &&
           (!a->order || is_same_array(a->order, b->order, a->rank, sizeof(*a->order))) &&
           (!a->is_constant || a->bytes.len == b->bytes.len);
}

/* The content of constant tensors apart. */
static bool is_same_value(const struct rt_value *a, const struct rt_value *b)
{
    if (a->kind != b->kind || a->symbol != b->symbol || a->count != b->count) {
        return false;
    }
    switch (a->kind) {
    case RT_NONE:
        return true;
    case RT_TENSOR:
        return is_same_tensor(a, b);
    case RT_INT:
        return rt_dim_same(a->i, b->i);
    case RT_FLOAT:
        return is_same_array(&a->f, &b->f, 1, sizeof(a->f));
    case RT_BOOL:
        return a->b == b->b;
    case RT_STRING:
        return a->bytes.len == b->bytes.len &&
               is_same_array(a->bytes.ptr, b->bytes.ptr, a->bytes.len, 1);
    case RT_INTS:
        return are_same_dims(a->ints, b->ints, a->count);
    case RT_FLOATS:
        return is_same_array(a->floats, b->floats, a->count, sizeof(*a->floats));
    case RT_BOOLS:
        return is_same_array(a->bools, b->bools, a->count, sizeof(*a->bools));
    case RT_TENSORS:
        return is_same_array(a->values, b->values, a->count, sizeof(*a->values));
    }
    unreachable();
}

static bool is_same_node(const struct rt_node *a, const struct rt_node *b)
{
    return a->op == b->op && a->arg_count == b->arg_count && a->out_count == b->out_count &&
           is_same_array(a->args, b->args, a->arg_count, sizeof(*a->args)) &&
           is_same_array(a->outs, b->outs, a->out_count, sizeof(*a->outs));
}

static bool is_same_expr(const struct rt_expr *a, const struct rt_expr *b)
{
    return a->kind == b->kind && a->lo == b->lo && a->hi == b->hi && rt_dim_same(a->a, b->a) &&
           rt_dim_same(a->b, b->b);
}

static bool are_same_sizes(const struct rt_dims *a, const struct rt_dims *b)
{
    bool is_same = a->expr_count == b->expr_count && a->requirement_count == b->requirement_count;
    for (uint32_t i = 1; is_same && i < a->expr_count; i++) {
        is_same = is_same_expr(&a->exprs[i], &b->exprs[i]);
    }
    for (uint32_t i = 0; is_same && i < a->requirement_count; i++) {
        is_same = rt_dim_same(a->requirements[i].a, b->requirements[i].a) &&
                  rt_dim_same(a->requirements[i].b, b->requirements[i].b);
    }
    return is_same;
}

static bool is_same_graph(const struct rt_graph *a, const struct rt_graph *b)
{
    bool is_same = a->precision == b->precision && a->value_count == b->value_count &&
                   a->node_count == b->node_count && a->input_count == b->input_count &&
                   a->output_count == b->output_count && are_same_sizes(&a->dims, &b->dims) &&
                   is_same_array(a->inputs, b->inputs, a->input_count, sizeof(*a->inputs)) &&
                   is_same_array(a->outputs, b->outputs, a->output_count, sizeof(*a->outputs));
    for (uint32_t i = 0; is_same && i < a->node_count; i++) {
        is_same = is_same_node(&a->nodes[i], &b->nodes[i]);
    }
    for (uint32_t i = 0; is_same && i < a->value_count; i++) {
        is_same = is_same_value(&a->values[i], &b->values[i]);
    }
    return is_same;
}

static bool is_same_step(const struct rt_step *a, const struct rt_step *b)
{
    bool is_same = a->input_count == b->input_count && a->state_count == b->state_count &&
                   a->number_count == b->number_count && a->result_count == b->result_count &&
                   a->number_max == b->number_max && is_same_graph(&a->graph, &b->graph) &&
                   is_same_array(a->state_outputs, b->state_outputs, a->state_count,
                                 sizeof(*a->state_outputs));
    for (uint32_t i = 0; is_same && i < a->number_count; i++) {
        is_same = a->numbers[i].input == b->numbers[i].input &&
                  a->numbers[i].is_element == b->numbers[i].is_element;
    }
    return is_same;
}

/* ---- meeting --------------------------------------------------------------------------------- */

void rt_siblings_unref(struct rt_siblings *siblings)
{
    if (siblings && refs_drop(&siblings->refs)) {
        free(siblings);
    }
}

/* Packed constants with equal bytes are one; those that are used as the file has them are not. */
static bool has_other_content(const struct rt_value *a, const struct rt_value *b)
{
    return a->kind == RT_TENSOR && a->is_constant && a->bytes.ptr != b->bytes.ptr &&
           !is_same_array(a->bytes.ptr, b->bytes.ptr, a->bytes.len, 1);
}

static struct rt_siblings *find_varying(const struct rt_graph *a, const struct rt_graph *b)
{
    struct rt_siblings *siblings = calloc(1, sizeof(*siblings) + a->value_count);
    if (!siblings) {
        return NULL;
    }
    refs_init(&siblings->refs);
    siblings->value_count = a->value_count;
    for (uint32_t i = 0; i < a->value_count; i++) {
        siblings->varies[i] = has_other_content(&a->values[i], &b->values[i]);
        siblings->varying_count += siblings->varies[i];
    }
    return siblings;
}

/* Are most bytes of the constants the same? Else a step of both would read more than it shares. */
static bool share_most(const struct rt_siblings *siblings, const struct rt_graph *graph)
{
    size_t same = 0, other = 0;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct rt_value *v = &graph->values[i];
        if (v->kind == RT_TENSOR && v->is_constant) {
            *(siblings->varies[i] ? &other : &same) += v->bytes.len;
        }
    }
    return other <= same;
}

static bool is_among(const struct rt_siblings *few, const struct rt_siblings *all)
{
    bool is_among = true;
    for (uint32_t i = 0; i < few->value_count; i++) {
        is_among &= !few->varies[i] || all->varies[i];
    }
    return is_among;
}

static void join(struct rt_steps *steps, struct rt_siblings *siblings)
{
    if (!steps->siblings) {
        refs_take(&siblings->refs);
        steps->siblings = siblings;
    }
}

enum status rt_siblings_meet(struct rt_method *method, struct rt_method *other, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    OBJ_CHECK(other, RT_METHOD_MAGIC);
    struct rt_steps *own = method->steps, *others = other->steps;
    if (rt_siblings_are(method, other)) {
        return ST_OK;
    }
    if (!own || !others || !own->has_step || !others->has_step || method->device != other->device ||
        !is_same_step(&own->step, &others->step)) {
        return error_set(err, ST_UNSUPPORTED, "it has other code");
    }
    struct rt_siblings *found = find_varying(&own->step.graph, &others->step.graph);
    if (!found) {
        return error_set(err, ST_EXHAUSTED, "no memory to compare weights");
    }
    struct rt_siblings *before = others->siblings ? others->siblings : own->siblings;
    enum status status = ST_OK;
    if (!share_most(found, &own->step.graph)) {
        status = error_set(err, ST_UNSUPPORTED, "it shares less than half of its weights");
    } else if ((own->siblings && others->siblings) || (before && !is_among(found, before))) {
        status = error_set(err, ST_UNSUPPORTED, "it differs in other weights");
    } else {
        join(own, before ? before : found);
        join(others, before ? before : found);
    }
    rt_siblings_unref(found);
    return status;
}

bool rt_siblings_are(const struct rt_method *a, const struct rt_method *b)
{
    OBJ_CHECK(a, RT_METHOD_MAGIC);
    const struct rt_siblings *siblings = a->steps ? a->steps->siblings : NULL;
    return siblings && b->steps && siblings == b->steps->siblings;
}
