/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/block.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/device.h"
#include "runtime/code/fold.h"
#include "runtime/code/round.h"
#include "runtime/passes/batch.h"
#include "runtime/passes/caches_int8.h"
#include "runtime/passes/ends.h"
#include "runtime/passes/passes.h"
#include "runtime/passes/rows.h"

/* A request looks at all plans of its block. */
#define PLANS_MAX 256

struct cached_plan {
    struct list link;
    struct rt_plan *plan; /* shared: ref held */
    int64_t keys[];       /* block->numbers.key_count: the numbers that it was made for */
};

/* ---- compilation ----------------------------------------------------------------------------- */

void rt_block_init(struct rt_block *block, const char *name, struct hal_device *device,
                   struct rt_files *files)
{
    const struct hal_device_props *props = hal_device_props(device);
    *block = (struct rt_block){.magic = RT_BLOCK_MAGIC, .device = device};
    list_init(&block->plans);
    must(pthread_mutex_init(&block->mutex, NULL) == 0);
    rt_graph_init(&block->graph, name);
    block->graph.is_host = props->is_host;
    block->graph.f32_per_read = props->f32_per_read;
    block->graph.bf16_speed = props->bf16_speed;
    block->graph.group_max = props->group_max;
    block->graph.files = files;
}

/* When no pass changes the graph any more: finds the numbers that inputs decide, and which of them
 * decide plans. */
static enum status find_numbers(struct rt_block *block, struct error *err)
{
    struct rt_graph *graph = &block->graph;
    const struct rt_dims *dims = &graph->dims;
    TRY(rt_numbers_find(&block->numbers, graph, &graph->arena, err));
    block->symbols = arena_array(&graph->arena, dims->expr_count, sizeof(*block->symbols));
    block->values = arena_array(&graph->arena, dims->expr_count, sizeof(*block->values));
    if (!block->symbols || !block->values) {
        return arena_fail(&graph->arena, "the method", err);
    }
    for (uint32_t i = 1; i < dims->expr_count; i++) {
        bool is_free = dims->exprs[i].kind == RT_EXPR_SYMBOL && dims->solved[i].expr == i;
        if (is_free) {
            block->symbols[block->symbol_count++] = i;
        }
    }
    return ST_OK;
}

/* State stays where it is: a call reads and writes it about once. */
static enum status make_flow(struct rt_block *block, struct error *err)
{
    struct rt_staging staging = {0};
    if (!hal_device_props(block->device)->host_visible) {
        staging = (struct rt_staging){block->given_count, block->result_count};
    }
    TRY(find_numbers(block, err));
    TRY(rt_flow_make(&block->flow, &block->graph, staging, &block->graph.arena, err));
    block->flow.numbers = &block->numbers;
    return ST_OK;
}

enum status rt_block_prepare(struct rt_block *block, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
#define PREPARE_PASS(name) TRY(rt_pass_##name(&block->graph, err));
#define PASS(name, when)
#define CACHES_PASS(name)
#define FOLD()
#include "runtime/passes/passes.def"
#undef PREPARE_PASS
#undef PASS
#undef CACHES_PASS
#undef FOLD
    return ST_OK;
}

enum when { ALWAYS, FUSING, FUSING_ON_HOST };

static bool runs_pass(const struct rt_graph *graph, enum when when, bool fuses)
{
    return when == ALWAYS || (fuses && (when == FUSING || graph->is_host));
}

enum status rt_block_compile(struct rt_block *block, enum precision precision, bool fuses,
                             const struct rt_caches_int8 *caches, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    struct rt_graph *graph = &block->graph;
    graph->precision = precision;
#define PREPARE_PASS(name)
#define PASS(name, when) TRY(runs_pass(graph, when, fuses) ? rt_pass_##name(graph, err) : ST_OK);
#define CACHES_PASS(name) TRY(caches ? rt_pass_##name(graph, caches, err) : ST_OK);
#define FOLD() TRY(rt_fold_constants(graph, block->device, err));
#include "runtime/passes/passes.def"
#undef PREPARE_PASS
#undef PASS
#undef CACHES_PASS
#undef FOLD
    TRY(rt_round_share_rest(graph, err));
    return make_flow(block, err);
}

static void init_form(struct rt_block *block, const struct rt_block *from)
{
    OBJ_CHECK(from, RT_BLOCK_MAGIC);
    rt_block_init(block, from->graph.name, from->device, NULL);
    block->given_count = from->given_count;
    block->result_count = from->result_count;
}

/* The graph of a form is made, or |status| says why not. */
static enum status end_form(struct rt_block *block, enum status status, struct error *err)
{
    if (status == ST_OK) {
        status = make_flow(block, err);
    }
    if (status != ST_OK) {
        rt_block_fini(block);
    }
    return status;
}

enum status rt_block_batch(struct rt_block *block, const struct rt_block *from, int64_t rows_max,
                           const char *const *labels, struct error *err)
{
    init_form(block, from);
    const struct rt_graph_labels all = {labels, labels + from->graph.input_count};
    return end_form(block, rt_graph_batch(&block->graph, &from->graph, rows_max, &all, err), err);
}

enum status rt_block_with_ends(struct rt_block *block, const struct rt_block *from,
                               const struct rt_graph_ends *ends, struct error *err)
{
    init_form(block, from);
    return end_form(block, rt_graph_with_ends(&block->graph, &from->graph, ends, err), err);
}

/* The graph of several rows is made, or |status| says why not. |joined|: how many of its nodes read
 * weights once for all rows. */
static enum status end_rows(struct rt_block *block, uint32_t joined, enum status status,
                            struct error *err)
{
    if (status == ST_OK && joined == 0) {
        status = reason_set(err, REASON_NO_SHARED_WEIGHTS);
    }
    return end_form(block, status, err);
}

enum status rt_block_rows(struct rt_block *block, struct hal_device *device,
                          const struct rt_graph *from, uint32_t rows, const struct rt_rows_own *own,
                          struct error *err)
{
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1);
    uint32_t joined;
    rt_block_init(block, from->name, device, NULL);
    enum status status = rt_graph_rows(&block->graph, from, rows, own, &joined, err);
    block->given_count = block->graph.input_count;
    block->result_count = block->graph.output_count;
    return end_rows(block, joined, status, err);
}

enum status rt_block_speculation(struct rt_block *block, struct hal_device *device,
                                 const struct rt_graph *from, uint32_t rows,
                                 const struct rt_graph_buffers *buffers, struct error *err)
{
    OBJ_CHECK(from, RT_GRAPH_MAGIC);
    must(rows > 1);
    uint32_t joined;
    rt_block_init(block, from->name, device, NULL);
    enum status status = rt_graph_speculation(&block->graph, from, rows, buffers, &joined, err);
    block->given_count = rows * (buffers->first + 1);
    block->result_count = rows * buffers->result_count;
    return end_rows(block, joined, status, err);
}

static void drop_plan(struct rt_block *block, struct cached_plan *cached)
{
    list_remove(&cached->link);
    block->plan_count--;
    block->plan_bytes -= cached->plan->bytes;
    rt_plan_unref(cached->plan);
    free(cached);
}

void rt_block_drop_plans(struct rt_block *block)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    pthread_mutex_lock(&block->mutex);
    while (!list_is_empty(&block->plans)) {
        drop_plan(block, LIST_ENTRY(block->plans.next, struct cached_plan, link));
    }
    pthread_mutex_unlock(&block->mutex);
}

void rt_block_fini(struct rt_block *block)
{
    rt_block_drop_plans(block);
    rt_graph_fini(&block->graph);
    must(block->plan_count == 0);
    pthread_mutex_destroy(&block->mutex);
    block->magic = 0;
}

/* ---- inputs ---------------------------------------------------------------------------------- */

/* The expression of a scalar input's value, or 0: the value is the same for every run. */
static uint32_t scalar_expr(const struct rt_value *v)
{
    return v->kind == RT_INT ? v->i.expr : v->symbol;
}

/* Puts every symbol's value into |values|; solved input dims are symbols or constants. */
static void read_symbols(const struct rt_block *block, const struct rt_block_input *inputs,
                         int64_t *values)
{
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; block->symbol_count && i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        for (uint8_t d = 0; inputs[i].shape && v->kind == RT_TENSOR && d < v->rank; d++) {
            if (v->dims[d].expr) {
                values[v->dims[d].expr] = inputs[i].shape->dims[d];
            }
        }
        if (v->kind != RT_TENSOR && scalar_expr(v)) {
            values[scalar_expr(v)] = inputs[i].number;
        }
    }
}

/* ", as dim 0 of input 'x'": the last input dim that gave |dim| its value. */
static void name_symbol(const struct rt_block *block, const struct rt_block_input *inputs,
                        struct rt_dim dim, char text[80])
{
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; dim.expr && i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        for (uint8_t d = 0; inputs[i].label && v->kind == RT_TENSOR && d < v->rank; d++) {
            if (rt_dim_same(v->dims[d], dim)) {
                snprintf(text, 80, ", as dim %u of %.50s", d, inputs[i].label);
            }
        }
    }
}

static enum status check_dim(const struct rt_block *block, const struct rt_block_input *inputs,
                             uint32_t i, uint8_t d, const int64_t *values, struct error *err)
{
    struct rt_dim dim = block->graph.values[block->graph.inputs[i]].dims[d];
    int64_t given = inputs[i].shape->dims[d], wanted = rt_dim_at(dim, values);
    const char *label = inputs[i].label ? inputs[i].label : "a value";
    if (given != wanted) {
        char other[80] = "";
        name_symbol(block, inputs, dim, other);
        return error_set(err, ST_INVALID, "%s: dim %u is %" PRId64 ", expected %" PRId64 "%s",
                         label, d, given, wanted, other);
    }
    if (given > dim.value) {
        return error_set(err, ST_INVALID, "%s: dim %u is %" PRId64 ", expected at most %" PRId64,
                         label, d, given, dim.value);
    }
    return ST_OK;
}

/* The first wrong dim of tensor input |i|, which has one. */
static enum status explain_dims(const struct rt_block *block, const struct rt_block_input *inputs,
                                uint32_t i, const int64_t *values, struct error *err)
{
    const struct rt_value *v = &block->graph.values[block->graph.inputs[i]];
    for (uint8_t d = 0; d < v->rank; d++) {
        TRY(check_dim(block, inputs, i, d, values, err));
    }
    unreachable();
}

/* Sizes were compared by the bounds of a symbol that is a size as well. */
static enum status check_int(const struct rt_graph *graph, struct rt_dim dim, int64_t given,
                             const int64_t *values, struct error *err)
{
    int64_t least = rt_dim_lo(&graph->dims, dim), wanted = rt_dim_at(dim, values);
    if (given != wanted) {
        return error_set(err, ST_INVALID, "an int is %" PRId64 ", expected %" PRId64, given,
                         wanted);
    }
    if (given < least || given > dim.value) {
        return error_set(err, ST_INVALID, "an int is %" PRId64 ", expected %" PRId64 " to %" PRId64,
                         given, least, dim.value);
    }
    return ST_OK;
}

/* Has the tensor |v| the dims of |shape|, and none of them more than its bound? */
static bool has_dims(const struct rt_value *v, const struct shape *shape, const int64_t *values)
{
    bool has_them = true;
    for (uint8_t d = 0; d < v->rank; d++) {
        int64_t given = shape->dims[d];
        has_them &= given == rt_dim_at(v->dims[d], values) && given <= v->dims[d].value;
    }
    return has_them;
}

/* Two inputs that share a symbol must agree on it. */
static enum status check_inputs(const struct rt_block *block, const struct rt_block_input *inputs,
                                const int64_t *values, struct error *err)
{
    const struct rt_graph *graph = &block->graph;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        bool is_tensor = inputs[i].shape && v->kind == RT_TENSOR;
        if (is_tensor && !has_dims(v, inputs[i].shape, values)) {
            return explain_dims(block, inputs, i, values, err);
        }
        bool is_int = v->kind == RT_INT && i >= block->given_count;
        if (is_int) {
            TRY(check_int(graph, v->i, inputs[i].number, values, err));
        }
    }
    return ST_OK;
}

static enum status eval_symbols(const struct rt_block *block, const struct rt_block_input *inputs,
                                int64_t *values, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    read_symbols(block, inputs, values);
    return check_inputs(block, inputs, values, err);
}

/* Appends to the text in |err| which input's number or dim it is about. */
static void add_place(struct error *err, const char *name, int dim, int64_t is)
{
    struct error before = *err;
    char place[32] = "";
    if (dim >= 0) {
        snprintf(place, sizeof(place), "dim %d of ", dim);
    }
    error_set(err, before.code, "%s; %s%.60s is %" PRId64, before.text, place, name, is);
}

/* The dims of inputs from which the broken requirement follows, as far as they have labels. */
static void explain(const struct rt_block *block, const struct rt_block_input *inputs,
                    const int64_t *values, struct error *err)
{
    const struct rt_graph *graph = &block->graph;
    const struct rt_requirement *broken = rt_dims_broken(&graph->dims, values);
    bool *is_part = broken && err ? calloc(graph->dims.expr_count, sizeof(*is_part)) : NULL;
    if (!is_part) {
        return;
    }
    rt_dim_mark(&graph->dims, broken->a, is_part);
    rt_dim_mark(&graph->dims, broken->b, is_part);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        const struct rt_value *v = &graph->values[graph->inputs[i]];
        const char *name = inputs[i].label;
        if (!name) {
            continue;
        }
        for (uint8_t d = 0; inputs[i].shape && v->kind == RT_TENSOR && d < v->rank; d++) {
            if (v->dims[d].expr && is_part[v->dims[d].expr]) {
                add_place(err, name, d, inputs[i].shape->dims[d]);
            }
        }
        if (v->kind == RT_INT && v->i.expr && is_part[v->i.expr]) {
            add_place(err, name, -1, inputs[i].number);
        }
    }
    free(is_part);
}

enum status rt_block_eval(const struct rt_block *block, const struct rt_block_input *inputs,
                          int64_t *values, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    TRY(eval_symbols(block, inputs, values, err));
    enum status status = rt_dims_eval(&block->graph.dims, values, err);
    if (status != ST_OK) {
        explain(block, inputs, values, err);
    }
    return status;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* With the mutex held. */
static struct cached_plan *find_plan(const struct rt_block *block, const int64_t *values)
{
    const struct rt_numbers *numbers = &block->numbers;
    for (struct list *l = block->plans.next; l != &block->plans; l = l->next) {
        struct cached_plan *cached = LIST_ENTRY(l, struct cached_plan, link);
        uint32_t i = 0;
        while (i < numbers->key_count && cached->keys[i] == values[numbers->keys[i]]) {
            i++;
        }
        if (i == numbers->key_count) {
            return cached;
        }
    }
    return NULL;
}

/* Takes long, so it runs without the mutex, which the loop takes too. NULL: |err| is the reason. */
static struct cached_plan *make_plan(const struct rt_block *block, int64_t *values,
                                     struct error *err)
{
    const struct rt_numbers *numbers = &block->numbers;
    size_t size = sizeof(struct cached_plan) + numbers->key_count * sizeof(int64_t);
    struct cached_plan *cached = malloc(size);
    if (!cached) {
        error_no_memory(err, "a plan");
        return NULL;
    }
    for (uint32_t i = 0; i < numbers->key_count; i++) {
        cached->keys[i] = values[numbers->keys[i]];
    }
    list_init(&cached->link);
    enum status status = rt_plan_new(&block->flow, block->device, values, &cached->plan, err);
    if (status != ST_OK) {
        free(cached);
        return NULL;
    }
    return cached;
}

/* With the mutex held. */
static void keep_plan(struct rt_block *block, struct cached_plan *cached)
{
    list_push_front(&block->plans, &cached->link);
    block->plan_count++;
    block->plan_bytes += cached->plan->bytes;
    while ((block->plan_bytes > RT_BLOCK_PLANS_BYTES_MAX || block->plan_count > PLANS_MAX) &&
           block->plans.prev != &cached->link) {
        drop_plan(block, LIST_ENTRY(block->plans.prev, struct cached_plan, link));
    }
}

/* The numbers that select the plan, and the words for its run. */
static enum status evaluate(const struct rt_block *block, const struct rt_block_input *inputs,
                            int64_t *values, int64_t *words, struct error *err)
{
    if (!block->numbers.is_each_evaluated) {
        return eval_symbols(block, inputs, values, err);
    }
    TRY(rt_block_eval(block, inputs, values, err));
    for (uint32_t i = 0; words && i < block->numbers.word_count; i++) {
        words[i] = values[block->numbers.words[i]];
    }
    return ST_OK;
}

enum status rt_block_find_plan(struct rt_block *block, const struct rt_block_input *inputs,
                               int64_t *words, struct rt_plan **out_plan, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    *out_plan = NULL;
    pthread_mutex_lock(&block->mutex);
    enum status status = evaluate(block, inputs, block->values, words, err);
    struct cached_plan *cached = status == ST_OK ? find_plan(block, block->values) : NULL;
    if (cached) {
        list_remove(&cached->link);
        list_push_front(&block->plans, &cached->link);
        *out_plan = rt_plan_ref(cached->plan);
        rt_block_note_found(block);
    }
    pthread_mutex_unlock(&block->mutex);
    return status;
}

/*
 * If two threads plan the same dims at the same time, the second to finish takes the first's plan.
 */
static enum status add_plan(struct rt_block *block, int64_t *values, struct rt_plan **out_plan,
                            struct error *err)
{
    struct cached_plan *made = make_plan(block, values, err);
    if (!made) {
        return err->code;
    }
    pthread_mutex_lock(&block->mutex);
    struct cached_plan *cached = find_plan(block, values);
    *out_plan = rt_plan_ref(cached ? cached->plan : made->plan);
    block->made_count++;
    if (!cached) {
        keep_plan(block, made);
    }
    pthread_mutex_unlock(&block->mutex);
    if (cached) {
        rt_plan_unref(made->plan);
        free(made);
    }
    return ST_OK;
}

enum status rt_block_plan(struct rt_block *block, const struct rt_block_input *inputs,
                          int64_t *words, struct rt_plan **out_plan, struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    TRY(rt_block_find_plan(block, inputs, words, out_plan, err));
    if (*out_plan) {
        return ST_OK;
    }
    int64_t *values = calloc(block->graph.dims.expr_count, sizeof(*values));
    if (!values) {
        return error_no_memory(err, "a plan");
    }
    enum status status = rt_block_eval(block, inputs, values, err);
    if (status == ST_OK) {
        status = add_plan(block, values, out_plan, err);
    }
    free(values);
    return status;
}

/* A number without bounds is taken as 1: bounds of sizes that depend on it would mean nothing. */
static int64_t largest(const struct rt_expr *symbol)
{
    return symbol->lo < 0 ? 1 : symbol->hi;
}

/* All sizes at their upper bounds, or all but one if those exclude each other: a slice whose first
 * row is the last possible one is empty. */
static enum status eval_bounds(const struct rt_block *block, int64_t *values, struct error *err)
{
    const struct rt_dims *dims = &block->graph.dims;
    enum status status = ST_INVALID;
    for (uint32_t low = 0; status == ST_INVALID && low <= block->symbol_count; low++) {
        for (uint32_t i = 0; i < block->symbol_count; i++) {
            const struct rt_expr *symbol = &dims->exprs[block->symbols[i]];
            bool is_low = i + 1 == low && symbol->lo >= 0;
            values[block->symbols[i]] = is_low ? symbol->lo : largest(symbol);
        }
        status = rt_dims_eval(dims, values, err);
    }
    return status == ST_INVALID ? error_set(err, ST_UNSUPPORTED, "no plan at the upper bounds")
                                : status;
}

/* For a block that has only one plan. */
static enum status only_plan(struct rt_block *block, int64_t *values, struct rt_plan **out_plan,
                             struct error *err)
{
    pthread_mutex_lock(&block->mutex);
    struct cached_plan *cached = find_plan(block, values);
    *out_plan = cached ? rt_plan_ref(cached->plan) : NULL;
    pthread_mutex_unlock(&block->mutex);
    return cached ? ST_OK : add_plan(block, values, out_plan, err);
}

enum status rt_block_plan_bounds(struct rt_block *block, struct rt_plan **out_plan,
                                 struct error *err)
{
    OBJ_CHECK(block, RT_BLOCK_MAGIC);
    const struct rt_dims *dims = &block->graph.dims;
    int64_t *values = calloc(dims->expr_count, sizeof(*values));
    if (!values) {
        return error_no_memory(err, "%u sizes", dims->expr_count);
    }
    enum status status = eval_bounds(block, values, err);
    if (status == ST_OK && block->symbol_count > 0) {
        status = rt_plan_new(&block->flow, block->device, values, out_plan, err);
    } else if (status == ST_OK) {
        status = only_plan(block, values, out_plan, err);
    }
    free(values);
    return status;
}
