/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/program/orders.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/passes/ends.h"
#include "runtime/program/method.h"

#define SEARCH_BYTES_MAX (64u << 20)

static bool has_orders(const struct rt_method *method)
{
    const struct rt_code *code = &method->code;
    return code->block_count == 1 && code->stmt_count == 0 && method->state_count == 0;
}

void rt_orders_prefer(struct rt_io *io, const uint8_t *order, uint32_t *taken)
{
    if (order && io->kind == RT_IO_TENSOR && *taken < RT_ORDERS_MAX) {
        io->order = order;
        io->order_bit = 1u << (*taken)++;
    }
}

static void note_orders(struct rt_io *ios, uint32_t count, const uint8_t *const *orders,
                        uint32_t *taken)
{
    for (uint32_t i = 0; i < count; i++) {
        rt_orders_prefer(&ios[i], orders[i], taken);
    }
}

enum status rt_orders_find(struct rt_method *method, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    struct rt_graph_ends ends;
    struct arena arena;
    uint32_t taken = 0;
    if (!has_orders(method)) {
        return ST_OK;
    }
    arena_init(&arena, SEARCH_BYTES_MAX);
    enum status status = rt_graph_find_ends(&method->code.blocks[0]->graph, &arena, &ends, err);
    if (status == ST_OK) {
        note_orders(method->inputs, method->input_count, ends.inputs, &taken);
        note_orders(method->results, method->result_count - method->kept_count, ends.outputs,
                    &taken);
    }
    arena_fini(&arena);
    return status;
}

void rt_orders_fini(struct rt_method *method)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    for (uint32_t i = 0; i < 2 * RT_ORDERS_FORMS; i++) {
        struct rt_block *block = method->orders.forms[i].block;
        if (block) {
            rt_block_fini(block);
            free(block);
        }
    }
}

/* The orders of the tensors whose bits are in |bits|, in |arena|. */
static enum status list_ends(const struct rt_method *method, const struct rt_graph *graph,
                             uint32_t bits, struct arena *arena, struct rt_graph_ends *out,
                             struct error *err)
{
    out->inputs = arena_array(arena, graph->input_count, sizeof(*out->inputs));
    out->outputs = arena_array(arena, graph->output_count, sizeof(*out->outputs));
    if (!out->inputs || !out->outputs) {
        return arena_fail(arena, "the method", err);
    }
    for (uint32_t i = 0; i < graph->input_count; i++) {
        bool is_turned = i < method->input_count && method->inputs[i].order_bit & bits;
        out->inputs[i] = is_turned ? method->inputs[i].order : NULL;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        bool is_turned = i < method->result_count && method->results[i].order_bit & bits;
        out->outputs[i] = is_turned ? method->results[i].order : NULL;
    }
    return ST_OK;
}

static enum status make_form(const struct rt_method *method, const struct rt_block *from,
                             uint32_t bits, struct rt_block *form, struct error *err)
{
    struct rt_graph_ends ends;
    struct arena arena;
    arena_init(&arena, SEARCH_BYTES_MAX);
    enum status status = list_ends(method, &from->graph, bits, &arena, &ends, err);
    if (status == ST_OK) {
        status = rt_block_with_ends(form, from, &ends, err);
    }
    arena_fini(&arena);
    /* calls have room for the words of |from| */
    must(status != ST_OK || form->numbers.word_count <= from->numbers.word_count);
    return status;
}

static struct rt_block *look_up(struct rt_method *method, struct rt_orders_form *place)
{
    pthread_mutex_lock(&method->mutex);
    struct rt_block *form = place->block;
    place->used_at = ++method->orders.look_count;
    pthread_mutex_unlock(&method->mutex);
    return form;
}

/* Gives |form| to the method, unless another thread was faster. */
static struct rt_block *keep(struct rt_method *method, struct rt_orders_form *place,
                             struct rt_block *form)
{
    pthread_mutex_lock(&method->mutex);
    struct rt_block *kept = place->block ? place->block : form;
    place->block = kept;
    pthread_mutex_unlock(&method->mutex);
    if (kept != form) {
        rt_block_fini(form);
        free(form);
    }
    return kept;
}

enum status rt_orders_form(struct rt_method *method, const struct rt_block *from, uint32_t bits,
                           bool may_make, struct rt_block **out_form, struct error *err)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    must(bits > 0 && bits < RT_ORDERS_FORMS && has_orders(method));
    uint32_t first = from == method->batched ? RT_ORDERS_FORMS : 0;
    struct rt_orders_form *place = &method->orders.forms[first + bits];
    *out_form = look_up(method, place);
    if (*out_form || !may_make) {
        return ST_OK;
    }
    struct rt_block *form = malloc(sizeof(*form));
    if (!form) {
        return error_no_memory(err, "a form of a method");
    }
    if (make_form(method, from, bits, form, err) != ST_OK) {
        free(form);
        return err->code;
    }
    *out_form = keep(method, place, form);
    return ST_OK;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* With the mutex held. */
static void add_stats(const struct rt_method *method, struct rt_plan_stats *stats)
{
    for (uint32_t i = 0; i < 2 * RT_ORDERS_FORMS; i++) {
        if (method->orders.forms[i].block) {
            rt_plan_stats_add(stats, method->orders.forms[i].block);
        }
    }
}

void rt_orders_add_stats(struct rt_method *method, struct rt_plan_stats *stats)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    pthread_mutex_lock(&method->mutex);
    add_stats(method, stats);
    pthread_mutex_unlock(&method->mutex);
}

/* With the mutex held: the form beside |except| that has plans and was used least recently; NULL:
 * none has any. */
static struct rt_block *find_oldest(struct rt_method *method, const struct rt_block *except)
{
    const struct rt_orders_form *oldest = NULL;
    for (uint32_t i = 0; i < 2 * RT_ORDERS_FORMS; i++) {
        const struct rt_orders_form *form = &method->orders.forms[i];
        struct rt_plan_stats stats = {0};
        if (!form->block || form->block == except || (oldest && oldest->used_at < form->used_at)) {
            continue;
        }
        rt_plan_stats_add(&stats, form->block);
        oldest = stats.count > 0 ? form : oldest;
    }
    return oldest ? oldest->block : NULL;
}

/* With the mutex held: drops the plans of one form. False: they are few enough, or all |form|'s. */
static bool trim_one(struct rt_method *method, const struct rt_block *form, size_t bytes_max)
{
    struct rt_plan_stats stats = {0};
    add_stats(method, &stats);
    struct rt_block *oldest = stats.bytes > bytes_max ? find_oldest(method, form) : NULL;
    if (oldest) {
        rt_block_drop_plans(oldest);
    }
    return oldest != NULL;
}

void rt_orders_trim(struct rt_method *method, const struct rt_block *form, size_t bytes_max)
{
    OBJ_CHECK(method, RT_METHOD_MAGIC);
    pthread_mutex_lock(&method->mutex);
    while (trim_one(method, form, bytes_max)) {
    }
    pthread_mutex_unlock(&method->mutex);
}
