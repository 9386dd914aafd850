/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/summary.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/program/example.h"
#include "runtime/program/method.h"
#include "runtime/pte/file.h"
#include "runtime/pte/files.h"

/* ---- the file -------------------------------------------------------------------------------- */

size_t rt_program_file_bytes(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    return pte_file_of(rt_program_files(program)->pte)->bytes.len;
}

const char *rt_program_data_path(const struct rt_program *program, uint32_t index)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    const struct rt_files *files = rt_program_files(program);
    return index < files->data_count ? files->data[index].path : NULL;
}

bool rt_program_has_sources(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    const struct pte_program *pte = rt_program_files(program)->pte;
    struct pte_source source;
    bool is_found = false;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        is_found |= pte_find_source(pte, i, 0, &source);
    }
    return is_found;
}

static bool has_names(const struct pte_plan *plan)
{
    for (uint32_t i = 0; i < plan->value_count; i++) {
        const struct pte_value *v = &plan->values[i];
        if (v->kind == PTE_TENSOR && v->tensor->name[0] != '\0') {
            return true;
        }
    }
    return false;
}

bool rt_program_has_names(const struct rt_program *program)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    bool is_found = false;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        const struct pte_plan *plan = rt_program_const_method(program, i)->plan;
        is_found |= plan && has_names(plan);
    }
    return is_found;
}

/* ---- weights --------------------------------------------------------------------------------- */

static const char *type_name(const struct rt_weight *weight)
{
    return weight->per_byte == 2   ? "int4"
           : weight->per_byte == 4 ? "int2"
                                   : dtype_name(weight->dtype);
}

static void add_weight(struct rt_weight_sum *sum, const struct rt_weight *weight)
{
    const char *name = type_name(weight);
    uint32_t i = 0;
    while (i < sum->type_count && sum->types[i].name != name) {
        i++;
    }
    must(i < RT_WEIGHT_TYPES_MAX);
    if (i == sum->type_count) {
        sum->types[sum->type_count++] = (struct rt_weight_type){.name = name};
    }
    sum->types[i].count += rt_weight_count(weight);
    sum->types[i].bytes += weight->bytes.len;
    sum->count += rt_weight_count(weight);
    sum->bytes += weight->bytes.len;
    sum->tensors++;
    sum->named += weight->name != NULL;
}

static int compare_types(const void *a, const void *b)
{
    const struct rt_weight_type *x = a, *y = b;
    return x->count < y->count ? 1 : x->count > y->count ? -1 : 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct rt_weight *const *x = a, *const *y = b;
    const uint8_t *p = (*x)->bytes.ptr, *q = (*y)->bytes.ptr;
    return p < q ? -1 : p > q;
}

/* Sorted by the position of their bytes, so that shared tensors are neighbours. */
static uint32_t gather(const struct rt_program *program, const struct rt_method *only,
                       const struct rt_weight **items)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        const struct rt_method *method = rt_program_const_method(program, i);
        bool counts = (!only || only == method) && !rt_method_failure(method);
        for (uint32_t k = 0; counts && k < method->weights.count; k++) {
            if (items) {
                items[count] = &method->weights.items[k];
            }
            count++;
        }
    }
    return count;
}

enum status rt_program_sum_weights(const struct rt_program *program, const struct rt_method *method,
                                   struct rt_weight_sum *out, struct error *err)
{
    OBJ_CHECK(program, RT_PROGRAM_MAGIC);
    uint32_t count = gather(program, method, NULL);
    const struct rt_weight **items = calloc((size_t)count + 1, sizeof(*items));
    if (!items) {
        return error_no_memory(err, "%u weights", count);
    }
    *out = (struct rt_weight_sum){0};
    gather(program, method, items);
    qsort(items, count, sizeof(*items), compare_places);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || items[i]->bytes.ptr != items[i - 1]->bytes.ptr) {
            add_weight(out, items[i]);
        }
    }
    qsort(out->types, out->type_count, sizeof(out->types[0]), compare_types);
    free(items);
    return ST_OK;
}

void rt_method_each_weight(const struct rt_method *method,
                           void (*fn)(void *arg, const struct rt_weight_info *weight), void *arg)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    for (uint32_t i = 0; !rt_method_failure(method) && i < method->weights.count; i++) {
        const struct rt_weight *weight = &method->weights.items[i];
        struct rt_weight_info info = {
            .name = weight->name,
            .type = type_name(weight),
            .shape = {.rank = weight->rank},
            .count = rt_weight_count(weight),
            .bytes = weight->bytes.len,
        };
        for (uint8_t d = 0; d < weight->rank; d++) {
            info.shape.dims[d] = weight->dims[d].value;
        }
        fn(arg, &info);
    }
}

enum rt_activations rt_method_activations(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->weights.activations;
}

/* ---- methods --------------------------------------------------------------------------------- */

bool rt_method_has_state(const struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    return method->state_count > 0;
}

static void list_callees(const struct pte_plan *plan, const uint32_t *calls,
                         void (*fn)(void *arg, const struct rt_callee *callee), void *arg)
{
    for (uint32_t i = 0; i < plan->delegate_count; i++) {
        fn(arg, &(struct rt_callee){.name = plan->delegates[i].id,
                                    .is_delegate = true,
                                    .calls = calls[plan->operator_count + i],
                                    .bytes = plan->delegates[i].payload.len});
    }
    for (uint32_t i = 0; i < plan->operator_count; i++) {
        fn(arg, &(struct rt_callee){.name = plan->operators[i], .calls = calls[i]});
    }
}

enum status rt_method_each_callee(const struct rt_method *method,
                                  void (*fn)(void *arg, const struct rt_callee *callee), void *arg,
                                  struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    const struct pte_plan *plan = method->plan;
    if (!plan) {
        return ST_OK;
    }
    uint32_t *calls =
        calloc((size_t)plan->operator_count + plan->delegate_count + 1, sizeof(*calls));
    if (!calls) {
        return error_set(err, ST_EXHAUSTED, "no memory to count calls in");
    }
    for (uint32_t i = 0; i < plan->instr_count; i++) {
        const struct pte_instr *instr = &plan->instrs[i];
        if (instr->kind == PTE_KERNEL) {
            calls[instr->index]++;
        } else if (instr->kind == PTE_DELEGATE) {
            calls[plan->operator_count + instr->index]++;
        }
    }
    list_callees(plan, calls, fn, arg);
    free(calls);
    return ST_OK;
}

/* The first size that counts as a batch by the rules, or 0. */
static uint32_t batch_symbol(const struct rt_method *method)
{
    const struct rt_graph *graph = &method->code.blocks[0]->graph;
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        bool is_tensor = rt_method_input(method, i)->kind == RT_IO_TENSOR && v->kind == RT_TENSOR;
        if (is_tensor && rt_example_is_batch(method, i, 0)) {
            return v->dims[0].expr;
        }
    }
    return 0;
}

const char *rt_method_dim_name(const struct rt_method *method, bool is_input, uint32_t index,
                               uint8_t dim, char text[RT_DIM_NAME_MAX])
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    if (rt_method_failure(method) || method->code.block_count == 0 ||
        (!is_input && method->code.stmt_count > 0)) {
        return NULL;
    }
    const struct rt_graph *graph = &method->code.blocks[0]->graph;
    const struct rt_value *v =
        &graph->values[is_input ? graph->inputs[index] : graph->outputs[index]];
    uint32_t expr = v->kind == RT_TENSOR && dim < v->rank ? v->dims[dim].expr : 0;
    if (expr == 0 || graph->dims.exprs[expr].kind != RT_EXPR_SYMBOL) {
        return NULL;
    }
    if (expr == batch_symbol(method)) {
        return "batch";
    }
    snprintf(text, RT_DIM_NAME_MAX, "s%u", expr);
    return text;
}
