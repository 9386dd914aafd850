/* SPDX-License-Identifier: MIT */
/* From one method of a file to something that can be planned: import, passes,
 * descriptions, plans. */
#include "config.h"

#include "runtime/method.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "hal/device.h"
#include "runtime/graph/passes.h"
#include "runtime/import/kernels.h"
#include "runtime/ops/op.h"

/* Plans of a method that are kept, the most recently used; a request looks at them all. */
#define PLANS_BYTES_MAX (64u << 20)
#define PLANS_MAX 256

/* A signature is as long as the file's own description of the structure, which is bounded. */
#define SIGNATURE_BYTES_MAX (64u << 20)

struct cached_plan {
    struct list link;
    struct rt_plan *plan; /* shared: ref held */
    int64_t symbols[];    /* method->symbol_count: the dims it was made for */
};

/* ---- description ----------------------------------------------------------------------------- */

/* Names are made once, beside the array they are named in. */
#define IO_NAME_MAX 24

static enum status allocate_io(struct rt_io **out_ios, uint32_t count, const char *what,
                               struct error *err)
{
    struct rt_io *ios = calloc(count ? count : 1, sizeof(*ios) + IO_NAME_MAX);
    if (!ios) {
        return error_set(err, ST_EXHAUSTED, "no memory for %u %ss", count, what);
    }
    char *names = (char *)(ios + count);
    for (uint32_t i = 0; i < count; i++) {
        char *name = names + (size_t)i * IO_NAME_MAX;
        snprintf(name, IO_NAME_MAX, "%s_%u", what, i);
        ios[i].name = name;
    }
    *out_ios = ios;
    return ST_OK;
}

static void describe_tensor(struct rt_io *io, const struct pte_tensor *t)
{
    io->kind = RT_IO_TENSOR;
    io->dtype = t->dtype;
    io->shape = t->shape;
    for (uint8_t d = 0; t->dynamism != PTE_STATIC && d < t->shape.rank; d++) {
        io->dynamic_dims |= t->shape.dims[d] > 1 ? 1u << d : 0;
    }
}

/* What the file says; what inference found out about a tensor's dims comes later. */
static void describe(struct rt_io *io, const struct pte_value *v)
{
    switch (v->kind) {
    case PTE_TENSOR:
        describe_tensor(io, v->tensor);
        return;
    case PTE_INT:
        io->kind = RT_IO_INT;
        io->dtype = DT_I64;
        io->value.i = v->int_value;
        break;
    case PTE_DOUBLE:
        io->kind = RT_IO_FLOAT;
        io->dtype = DT_F64;
        io->value.f = v->double_value;
        break;
    case PTE_BOOL:
        io->kind = RT_IO_BOOL;
        io->dtype = DT_BOOL;
        io->value.b = v->bool_value;
        break;
    case PTE_STRING:
        io->kind = RT_IO_STRING;
        io->value.s = v->string;
        break;
    default:
        io->kind = RT_IO_NONE;
        return;
    }
    io->is_fixed = true;
}

static enum status describe_all(struct rt_method *method, struct error *err)
{
    const struct pte_plan *plan = method->plan;
    TRY(allocate_io(&method->inputs, plan->input_count, "input", err));
    TRY(allocate_io(&method->results, plan->output_count, "output", err));
    for (uint32_t i = 0; !plan->unsupported && i < plan->input_count; i++) {
        describe(&method->inputs[i], &plan->values[plan->inputs[i]]);
    }
    for (uint32_t i = 0; !plan->unsupported && i < plan->output_count; i++) {
        describe(&method->results[i], &plan->values[plan->outputs[i]]);
    }
    return ST_OK;
}

/* What the compiled graph knows better than the file: which dims vary, and which ints. */
static void refine(struct rt_io *io, const struct rt_value *v)
{
    io->is_fixed = io->is_fixed && !(v->kind == RT_INT && !rt_dim_is_const(v->i));
    if (io->kind != RT_IO_TENSOR || v->kind != RT_TENSOR) {
        return;
    }
    io->dynamic_dims = 0;
    for (uint8_t d = 0; d < v->rank; d++) {
        io->shape.dims[d] = v->dims[d].value;
        io->dynamic_dims |= rt_dim_is_const(v->dims[d]) ? 0 : 1u << d;
    }
}

/* ---- compilation ----------------------------------------------------------------------------- */

static enum status find_symbols(struct rt_method *method, struct error *err)
{
    const struct rt_dims *dims = &method->graph.dims;
    method->symbols = arena_array(&method->graph.arena, dims->expr_count, sizeof(*method->symbols));
    method->values = arena_array(&method->graph.arena, dims->expr_count, sizeof(*method->values));
    if (!method->symbols || !method->values) {
        return error_set(err, ST_EXHAUSTED, "the method is too large");
    }
    for (uint32_t i = 1; i < dims->expr_count; i++) {
        bool is_free = dims->exprs[i].kind == RT_EXPR_SYMBOL && dims->solved[i].expr == i;
        if (is_free) {
            method->symbols[method->symbol_count++] = i;
        }
    }
    return ST_OK;
}

static enum status compile(struct rt_method *method, struct error *err)
{
    struct rt_graph *graph = &method->graph;
    struct hal_device *device = method->device;
    if (method->plan->unsupported) {
        return error_set(err, ST_UNSUPPORTED, "%s", method->plan->unsupported);
    }
    TRY(rt_import_kernels(method->plan, device, graph, err));
    TRY(rt_pass_resolve(graph, err));
    TRY(rt_pass_fold(graph, device, err));
    TRY(rt_pass_normalize(graph, err));
    TRY(rt_pass_lower(graph, err));
    TRY(rt_pass_fold(graph, device, err));
    TRY(rt_pass_fuse(graph, err));
    TRY(rt_pass_layout(graph, err));
    TRY(rt_pass_fold(graph, device, err));
    TRY(find_symbols(method, err));
    return rt_flow_make(&method->flow, graph, &graph->arena, err);
}

enum status rt_method_compile(struct rt_method *method, struct rt_program *program,
                              const struct pte_plan *plan, struct hal_device *device,
                              struct hal_buffer *file, struct error *err)
{
    *method = (struct rt_method){.program = program, .plan = plan, .device = device};
    list_init(&method->plans);
    list_init(&method->invocations);
    must(pthread_mutex_init(&method->mutex, NULL) == 0);
    rt_graph_init(&method->graph, plan->name);
    method->graph.file = file;
    TRY(describe_all(method, err));
    arena_init(&method->signature_arena, SIGNATURE_BYTES_MAX);
    if (compile(method, &method->failure) != ST_OK) {
        return rt_signature_make(method, &method->signature_arena, &method->signature, err);
    }
    method->failure.code = ST_OK;
    for (uint32_t i = 0; i < plan->input_count; i++) {
        refine(&method->inputs[i], &method->graph.values[method->graph.inputs[i]]);
    }
    for (uint32_t i = 0; i < plan->output_count; i++) {
        refine(&method->results[i], &method->graph.values[method->graph.outputs[i]]);
    }
    return rt_signature_make(method, &method->signature_arena, &method->signature, err);
}

static void drop_plan(struct rt_method *method, struct cached_plan *cached)
{
    list_remove(&cached->link);
    method->plan_count--;
    method->plan_bytes -= cached->plan->bytes;
    rt_plan_unref(cached->plan);
    free(cached);
}

void rt_method_fini(struct rt_method *method)
{
    while (!list_is_empty(&method->invocations)) {
        rt_invocation_destroy(method->invocations.next);
    }
    while (!list_is_empty(&method->plans)) {
        drop_plan(method, LIST_ENTRY(method->plans.next, struct cached_plan, link));
    }
    rt_graph_fini(&method->graph);
    arena_fini(&method->signature_arena);
    free(method->inputs);
    free(method->results);
    pthread_mutex_destroy(&method->mutex);
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Puts every symbol's value into |values|: solved input dims are symbols or constants. */
static void read_symbols(const struct rt_method *method, const struct shape *const *shapes,
                         int64_t *values)
{
    const struct rt_graph *graph = &method->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
            if (v->dims[d].expr) {
                values[v->dims[d].expr] = shapes[i]->dims[d];
            }
        }
    }
}

/* Two inputs that share a symbol must agree on it. */
static enum status check_inputs(const struct rt_method *method, const struct shape *const *shapes,
                                const int64_t *values, struct error *err)
{
    const struct rt_graph *graph = &method->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        for (uint8_t d = 0; v->kind == RT_TENSOR && d < v->rank; d++) {
            int64_t wanted = rt_dim_at(v->dims[d], values);
            if (shapes[i]->dims[d] != wanted) {
                return error_set(err, ST_INVALID,
                                 "%s: dim %u is %" PRId64 ", expected %" PRId64
                                 " as another input has it",
                                 method->inputs[i].name, d, shapes[i]->dims[d], wanted);
            }
        }
    }
    return ST_OK;
}

enum status rt_method_symbols(const struct rt_method *method, const struct shape *const *shapes,
                              int64_t *values, struct error *err)
{
    read_symbols(method, shapes, values);
    return check_inputs(method, shapes, values, err);
}

static struct cached_plan *find_plan(struct rt_method *method)
{
    const uint32_t *symbols = method->symbols;
    for (struct list *l = method->plans.next; l != &method->plans; l = l->next) {
        struct cached_plan *cached = LIST_ENTRY(l, struct cached_plan, link);
        uint32_t i = 0;
        while (i < method->symbol_count && cached->symbols[i] == method->values[symbols[i]]) {
            i++;
        }
        if (i == method->symbol_count) {
            return cached;
        }
    }
    return NULL;
}

static enum status make_plan(struct rt_method *method, struct cached_plan **out_cached,
                             struct error *err)
{
    size_t size = sizeof(struct cached_plan) + method->symbol_count * sizeof(int64_t);
    struct cached_plan *cached = malloc(size);
    if (!cached) {
        return error_set(err, ST_EXHAUSTED, "no memory for a plan");
    }
    for (uint32_t i = 0; i < method->symbol_count; i++) {
        cached->symbols[i] = method->values[method->symbols[i]];
    }
    enum status status = rt_dims_eval(&method->graph.dims, method->values, err);
    if (status == ST_OK) {
        status = rt_plan_new(&method->flow, method->device, method->values, &cached->plan, err);
    }
    if (status != ST_OK) {
        free(cached);
        return status;
    }
    list_push_front(&method->plans, &cached->link);
    method->plan_count++;
    method->plan_bytes += cached->plan->bytes;
    while ((method->plan_bytes > PLANS_BYTES_MAX || method->plan_count > PLANS_MAX) &&
           method->plans.prev != &cached->link) {
        drop_plan(method, LIST_ENTRY(method->plans.prev, struct cached_plan, link));
    }
    *out_cached = cached;
    return ST_OK;
}

/* With the mutex held: a second request with the same new dims waits for the first's plan. */
static enum status plan_for(struct rt_method *method, const struct shape *const *shapes,
                            struct rt_plan **out_plan, struct error *err)
{
    TRY(rt_method_symbols(method, shapes, method->values, err));
    struct cached_plan *cached = find_plan(method);
    if (cached) {
        list_remove(&cached->link);
        list_push_front(&method->plans, &cached->link);
    } else {
        TRY(make_plan(method, &cached, err));
    }
    *out_plan = rt_plan_ref(cached->plan);
    return ST_OK;
}

enum status rt_method_plan(struct rt_method *method, const struct shape *const *shapes,
                           struct rt_plan **out_plan, struct error *err)
{
    pthread_mutex_lock(&method->mutex);
    enum status status = plan_for(method, shapes, out_plan, err);
    pthread_mutex_unlock(&method->mutex);
    return status;
}

/* ---- text ------------------------------------------------------------------------------------ */

enum status rt_method_print_graph(struct rt_method *method, struct buf *out, struct error *err)
{
    if (method->failure.code != ST_OK) {
        *err = method->failure;
        return err->code;
    }
    rt_graph_print(&method->graph, out);
    return ST_OK;
}

enum status rt_method_print_plan(struct rt_method *method, struct buf *out, struct error *err)
{
    const struct rt_dims *dims = &method->graph.dims;
    struct rt_plan *plan;
    if (method->failure.code != ST_OK) {
        *err = method->failure;
        return err->code;
    }
    int64_t *values = calloc(dims->expr_count, sizeof(*values));
    if (!values) {
        return error_set(err, ST_EXHAUSTED, "no memory for %u sizes", dims->expr_count);
    }
    for (uint32_t i = 0; i < method->symbol_count; i++) {
        values[method->symbols[i]] = dims->exprs[method->symbols[i]].hi;
    }
    enum status status = rt_dims_eval(dims, values, err);
    if (status == ST_OK) {
        status = rt_plan_new(&method->flow, method->device, values, &plan, err);
    }
    free(values);
    if (status == ST_OK) {
        buf_printf(out, "method %s\n", rt_method_name(method));
        rt_plan_print(plan, out);
        rt_plan_unref(plan);
    }
    return status;
}

struct rt_input_stats rt_method_input_stats(const struct rt_method *method)
{
    return (struct rt_input_stats){
        .in_place = atomic_load_explicit(&method->inputs_in_place, memory_order_relaxed),
        .converted = atomic_load_explicit(&method->converted_inputs, memory_order_relaxed),
    };
}

const char *rt_method_name(const struct rt_method *method)
{
    return method->plan->name;
}

struct rt_program *rt_method_program(const struct rt_method *method)
{
    return method->program;
}

const struct error *rt_method_failure(const struct rt_method *method)
{
    return method->failure.code == ST_OK ? NULL : &method->failure;
}

uint32_t rt_method_input_count(const struct rt_method *method)
{
    return method->plan->input_count;
}

uint32_t rt_method_result_count(const struct rt_method *method)
{
    return method->plan->output_count;
}

const struct rt_io *rt_method_input(const struct rt_method *method, uint32_t index)
{
    must(index < method->plan->input_count);
    return &method->inputs[index];
}

const struct rt_io *rt_method_result(const struct rt_method *method, uint32_t index)
{
    must(index < method->plan->output_count);
    return &method->results[index];
}
