/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/code/round.h"

#include <stdlib.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/queue.h"
#include "runtime/code/fingerprint.h"
#include "runtime/code/recipe.h"
#include "runtime/code/shared.h"
#include "runtime/ops/op.h"
#include "runtime/pte/files.h"
#include "runtime/pte/packed.h"

/* Values between a constant and its result go one after the other through the same memory: what the
 * system clears for them is not cleared for each. They stay in a cache, too. */
#define WAVE_BYTES ((size_t)4 << 20)

struct round {
    struct rt_graph *graph, *sub;
    struct hal_device *device;
    struct rt_packed *packed;        /* borrowed; NULL: packed weights are not kept */
    struct rt_value_recipe *recipes; /* owned; by value */
    struct hal_buffer **results;     /* by output of |sub|, refs held; NULL: not there yet */
};

/* ---- computing ------------------------------------------------------------------------------- */

/* Runs |plan| with fresh buffers: |slots| owns them, slot 0 is the workspace. */
static enum status run(struct hal_device *device, struct rt_plan *plan, struct hal_binding *slots,
                       struct error *err)
{
    size_t sizes[RT_ROUND_OUTPUTS_MAX];
    struct hal_buffer *results[RT_ROUND_OUTPUTS_MAX];
    slots[0].length = plan->workspace_bytes;
    TRY(hal_buffer_new(device, slots[0].length, &slots[0].buffer, err));
    for (uint32_t i = 0; i < plan->result_count; i++) {
        sizes[i] = plan->results[i].bytes;
    }
    TRY(hal_buffer_new_constants(device, sizes, plan->result_count, results, err));
    for (uint32_t i = 0; i < plan->result_count; i++) {
        slots[i + 1] = hal_binding_whole(results[i]);
    }
    struct hal_fault_record fault = {0};
    const struct hal_submission submission = {
        .command = plan->command,
        .slots = slots,
        .slot_count = rt_slot_result(plan->input_count, plan->result_count),
        .fault = &fault,
    };
    return hal_queue_run(device, &submission, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "constant folding: ");
}

static enum status plan_and_run(const struct round *round, struct rt_graph *missing,
                                struct hal_binding *slots, struct error *err)
{
    struct rt_flow flow;
    struct rt_plan *plan;
    struct arena *arena = &round->graph->arena;
    missing->is_host = round->graph->is_host;
    /* No size here is symbolic, so no expression is looked up. */
    TRY(rt_flow_make_waves(&flow, missing, WAVE_BYTES, arena, err));
    TRY(rt_plan_new(&flow, round->device, NULL, &plan, err));
    enum status status = run(round->device, plan, slots, err);
    rt_plan_unref(plan);
    return status;
}

static bool makes_needed(const struct rt_node *node, const bool *is_needed)
{
    for (uint32_t i = 0; i < node->out_count; i++) {
        if (is_needed[node->outs[i]]) {
            return true;
        }
    }
    return false;
}

/* |missing|: the nodes that the results need that are not there yet; they are its outputs. */
static enum status extract_missing(const struct round *round, struct rt_graph *missing,
                                   struct error *err)
{
    const struct rt_graph *sub = round->sub;
    struct arena *arena = &round->graph->arena;
    bool *is_needed = arena_array(arena, sub->value_count, sizeof(*is_needed));
    *missing = *sub;
    missing->outputs = arena_array(arena, sub->output_count, sizeof(*missing->outputs));
    missing->nodes = arena_array(arena, sub->node_count, sizeof(*missing->nodes));
    if (!is_needed || !missing->outputs || !missing->nodes) {
        return arena_fail(arena, "the method", err);
    }
    missing->output_count = 0;
    for (uint32_t i = 0; i < sub->output_count; i++) {
        if (!round->results[i]) {
            missing->outputs[missing->output_count++] = sub->outputs[i];
            is_needed[sub->outputs[i]] = true;
        }
    }
    uint32_t first = sub->node_count; /* of the nodes, from the last one to the first */
    for (uint32_t i = sub->node_count; i-- > 0;) {
        struct rt_tensors tensors = rt_node_arg_tensors(sub, &sub->nodes[i]);
        if (makes_needed(&sub->nodes[i], is_needed)) {
            missing->nodes[--first] = sub->nodes[i];
            for (uint32_t value; rt_tensors_next(&tensors, &value);) {
                is_needed[value] = true;
            }
        }
    }
    missing->nodes += first;
    missing->node_count = sub->node_count - first;
    return ST_OK;
}

/* Computes the results that are not there yet. */
static enum status compute(struct round *round, struct error *err)
{
    struct rt_graph missing;
    struct arena *arena = &round->graph->arena;
    TRY(extract_missing(round, &missing, err));
    if (missing.output_count == 0) {
        return ST_OK;
    }
    struct hal_binding *slots =
        arena_array(arena, (size_t)missing.output_count + 1, sizeof(*slots));
    if (!slots) {
        return arena_fail(arena, "the method", err);
    }
    enum status status = plan_and_run(round, &missing, slots, err);
    uint32_t next = 1;
    for (uint32_t i = 0; status == ST_OK && i < round->sub->output_count; i++) {
        if (!round->results[i]) {
            round->results[i] = slots[next].buffer;
            slots[next++].buffer = NULL;
        }
    }
    for (uint32_t i = 0; i <= missing.output_count; i++) {
        hal_buffer_unref(slots[i].buffer);
    }
    return status;
}

/* ---- files of packed weights ----------------------------------------------------------------- */

static size_t bytes_of(const struct rt_value *v)
{
    struct shape shape;
    struct error ignored;
    size_t bytes = 0;
    bool is_known =
        rt_value_shape(v, &shape) && shape_bytes(&shape, v->dtype, &bytes, &ignored) == ST_OK;
    must(is_known); /* constant folding has counted them */
    return bytes;
}

/* The results that are not there yet from the file, as buffers over its mapping. False: the file
 * does not have this round. */
static bool take_packed(struct round *round, const uint64_t fingerprint[2])
{
    struct span spans[RT_ROUND_OUTPUTS_MAX];
    size_t bytes[RT_ROUND_OUTPUTS_MAX] = {0};
    uint32_t count = round->sub->output_count;
    for (uint32_t i = 0; i < count; i++) {
        bytes[i] = bytes_of(&round->sub->values[round->sub->outputs[i]]);
    }
    if (!rt_packed_take(round->packed, fingerprint, bytes, count, spans)) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!round->results[i] &&
            !rt_packed_import(round->packed, round->device, spans[i], &round->results[i])) {
            return false;
        }
    }
    return true;
}

/* A result that several rounds have is stored once, by its first recipe. */
static void put_packed(struct round *round, const uint64_t fingerprint[2])
{
    struct rt_packed_result results[RT_ROUND_OUTPUTS_MAX];
    for (uint32_t i = 0; i < round->sub->output_count; i++) {
        struct hal_buffer *buffer = round->results[i];
        struct rt_recipe recipe = {{0}};
        results[i].bytes = span_of(hal_buffer_map(buffer), hal_buffer_size(buffer));
        results[i].has_name = rt_shared_recipe(buffer, &recipe);
        memcpy(results[i].name, recipe.words, sizeof(results[i].name));
    }
    rt_packed_put(round->packed, fingerprint, results, round->sub->output_count);
}

/* ---- sharing --------------------------------------------------------------------------------- */

/* |value| has a buffer: from now on, the one that all share. */
static enum status share_constant(struct rt_graph *graph, uint32_t value, struct rt_packed *packed,
                                  struct error *err)
{
    struct rt_value *v = &graph->values[value];
    TRY(rt_shared_put(NULL, &v->buffer, packed, err));
    v->bytes = span_of(hal_buffer_map(v->buffer), hal_buffer_size(v->buffer));
    return ST_OK;
}

/* Constants that the importer has made, and not a round. */
static enum status share_arguments(struct round *round, struct error *err)
{
    struct rt_graph *sub = round->sub;
    for (uint32_t i = 0; i < sub->node_count; i++) {
        struct rt_tensors tensors = rt_node_arg_tensors(sub, &sub->nodes[i]);
        for (uint32_t value; rt_tensors_next(&tensors, &value);) {
            if (sub->values[value].buffer) {
                TRY(share_constant(sub, value, round->packed, err));
            }
        }
    }
    return ST_OK;
}

static void find_shared(struct round *round)
{
    for (uint32_t i = 0; i < round->sub->output_count; i++) {
        const struct rt_value_recipe *recipe = &round->recipes[round->sub->outputs[i]];
        if (recipe->is_known) {
            round->results[i] = rt_shared_find(&recipe->recipe, round->packed);
        }
    }
}

static enum status share_results(struct round *round, struct error *err)
{
    for (uint32_t i = 0; i < round->sub->output_count; i++) {
        const struct rt_value_recipe *recipe = &round->recipes[round->sub->outputs[i]];
        hal_buffer_freeze(round->results[i]);
        TRY(rt_shared_put(recipe->is_known ? &recipe->recipe : NULL, &round->results[i],
                          round->packed, err));
    }
    return ST_OK;
}

static enum status find_or_compute(struct round *round, struct error *err)
{
    uint64_t fingerprint[2];
    bool is_taken = false;
    TRY(share_arguments(round, err));
    rt_recipes_find(round->sub, round->device, round->recipes);
    find_shared(round);
    if (round->packed) {
        rt_fingerprint(round->sub, fingerprint);
        is_taken = take_packed(round, fingerprint);
    }
    TRY(is_taken ? ST_OK : compute(round, err));
    TRY(share_results(round, err));
    if (round->packed && !is_taken) {
        put_packed(round, fingerprint);
    }
    return ST_OK;
}

enum status rt_round_compute(struct rt_graph *graph, struct rt_graph *sub,
                             struct hal_device *device, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    OBJ_CHECK(sub, RT_GRAPH_MAGIC);
    must(sub->input_count == 0); /* constants alone */
    struct round round = {
        .graph = graph,
        .sub = sub,
        .device = device,
        .packed = graph->files ? graph->files->packed : NULL,
        .results = arena_array(&graph->arena, sub->output_count, sizeof(*round.results)),
        .recipes = calloc((size_t)sub->value_count + 1, sizeof(*round.recipes)),
    };
    enum status status = round.results && round.recipes
                             ? find_or_compute(&round, err)
                             : arena_fail(&graph->arena, "the method", err);
    for (uint32_t i = 0; round.results && i < sub->output_count; i++) {
        if (status == ST_OK) {
            rt_graph_set_constant(graph, sub->outputs[i], round.results[i]);
        } else {
            hal_buffer_unref(round.results[i]);
        }
    }
    free(round.recipes);
    return status;
}

enum status rt_round_share_rest(struct rt_graph *graph, struct error *err)
{
    OBJ_CHECK(graph, RT_GRAPH_MAGIC);
    struct rt_packed *packed = graph->files ? graph->files->packed : NULL;
    for (uint32_t i = 0; i < graph->value_count; i++) {
        if (graph->values[i].is_constant && graph->values[i].buffer) {
            TRY(share_constant(graph, i, packed, err));
        }
    }
    return ST_OK;
}
