/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/model/model.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/pool.h"
#include "runtime/sched/sched.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/language/transcriber.h"
#include "server/model/intake/intake.h"
#include "server/model/intake/medium.h"

#define ARENA_BYTES_MAX (64 << 20)

/* ---- states ---------------------------------------------------------------------------------- */

static const struct {
    const char *word, *refusal;
    unsigned next; /* bits of the states that may follow */
} states[MODEL_STATES] = {
#define NEXT(name) 1u << MODEL_##name
#define STATE(name, word, refusal, next) [MODEL_##name] = {word, refusal, next},
#include "server/model/model_state.def"
#undef STATE
#undef NEXT
};

bool model_state_may_follow(enum model_state from, enum model_state to)
{
    must(from < MODEL_STATES && to < MODEL_STATES);
    return (states[from].next & 1u << to) != 0;
}

const char *model_state_word(enum model_state state)
{
    must(state < MODEL_STATES);
    return states[state].word;
}

void model_set_state(struct model *model, enum model_state state)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model_state_may_follow(model_state(model), state));
    must(state != MODEL_READY || (model->queue && model->pool && model->stats));
    must(state != MODEL_FAILED || model->failure.code != ST_OK);
    atomic_store_explicit(&model->state, state, memory_order_release);
}

/* Other threads read the reason once they have seen that the state is FAILED. */
void model_fail(struct model *model, const struct error *why)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(why->code != ST_OK);
    if (model_state_may_follow(model_state(model), MODEL_FAILED)) {
        model->failure = *why;
        model_set_state(model, MODEL_FAILED);
    }
}

const char *model_refusal(const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    enum model_state state = model_state(model);
    bool was_loaded = state == MODEL_UNKNOWN && model->origin->why_listed;
    return state == MODEL_FAILED ? model->failure.text
           : was_loaded          ? model->origin->why_listed
                                 : states[state].refusal;
}

enum status model_verify_ready(const struct model *model, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const char *refusal = model_refusal(model);
    return refusal ? error_set(err, ST_UNAVAILABLE, "model '%s' cannot be called: %s", model->name,
                               refusal)
                   : ST_OK;
}

bool model_lacks_tokenizer(const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct rt_method *method = model->method;
    bool has_one = model->generator || model->embedder || model->transcriber;
    return method && model->origin->path && !has_one && intake_kind(method);
}

bool model_reads_words(const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    bool has_text = false;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct medium *medium = model->inputs[i].medium;
        has_text |= medium && medium->kind->is_text;
    }
    return has_text || model->generator || model->embedder || model->transcriber ||
           model_lacks_tokenizer(model);
}

enum status model_refuse_texts(const struct model *model, const char *what, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    return model_lacks_tokenizer(model)
               ? error_set(err, ST_INVALID,
                           "model '%s' has no tokenizer: expected tokenizer.json or "
                           "tokenizer.model beside its program",
                           model->name)
               : error_set(err, ST_INVALID,
                           "model '%s' is no %s: GET /v2/models/%s says what it takes", model->name,
                           what, model->name);
}

/* ---- life ------------------------------------------------------------------------------------ */

/* 64 bits do not wrap. */
static uint64_t next_serial(void)
{
    static _Atomic(uint64_t) last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

enum status model_new(struct origin *origin, struct span name, struct model **out_model,
                      struct error *err)
{
    TRY(model_name_verify(name, err));
    struct model *model = calloc(1, sizeof(*model));
    if (!model) {
        return error_no_memory(err, "models");
    }
    model->magic = MODEL_MAGIC;
    model->serial = next_serial();
    refs_init(&model->refs);
    atomic_init(&model->state, MODEL_UNKNOWN);
    arena_init(&model->arena, ARENA_BYTES_MAX);
    model->origin = origin_ref(origin);
    model->version = origin->version;
    memcpy(model->name, name.ptr, name.len);
    snprintf(model->version_text, sizeof(model->version_text), "%u", model->version);
    *out_model = model;
    return ST_OK;
}

struct model *model_ref(struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    refs_take(&model->refs);
    return model;
}

static void unref_stats(struct model_stats *stats)
{
    if (stats && refs_drop(&stats->refs)) {
        free(stats);
    }
}

static void free_model(struct model *model)
{
    must(model_state(model) == MODEL_UNLOADING);
    model_unref(model->older);
    model_close(model);
    origin_unref(model->origin);
    unref_stats(model->stats);
    arena_fini(&model->arena);
    model->magic = 0;
    free(model);
}

void model_unref(struct model *model)
{
    if (!model) {
        return;
    }
    OBJ_CHECK(model, MODEL_MAGIC);
    if (refs_drop(&model->refs)) {
        free_model(model);
    }
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct rt_step_counts model_step_counts(const struct model *model, uint32_t step)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(step < model->step_count);
    struct rt_step_counts counts = {0};
    const struct rt_step_counts *before = &model->steps_before[step];
    if (model->method) {
        counts = rt_pipeline_step_counts(model->method, step);
    }
    counts.count += before->count;
    counts.ns += before->ns;
    counts.joined_count += before->joined_count;
    counts.failed_count += before->failed_count;
    counts.failed_ns += before->failed_ns;
    return counts;
}

void model_keep_stats(struct model *model, const struct model *old)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    OBJ_CHECK(old, MODEL_MAGIC);
    if (old->stats) {
        unref_stats(model->stats);
        refs_take(&old->stats->refs);
        model->stats = old->stats;
    }
    for (uint32_t i = 0; i < model->step_count && i < old->step_count; i++) {
        model->steps_before[i] = model_step_counts(old, i);
    }
}

/* The method is released but its counts stay, without the names that they borrow from it. */
static void keep_counts(struct model *model)
{
    for (uint32_t i = 0; model->steps_before && i < model->step_count; i++) {
        model->steps_before[i] = model_step_counts(model, i);
        model->steps_before[i].name = model->steps_before[i].model = NULL;
    }
}

void model_close(struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    must(model_state(model) == MODEL_FAILED || model_state(model) == MODEL_UNLOADING);
    keep_counts(model);
    generator_free(model->generator);
    model->generator = NULL;
    transcriber_free(model->transcriber);
    model->transcriber = NULL;
    embedder_free(model->embedder);
    model->embedder = NULL;
    for (uint32_t i = 0; i < model->input_count; i++) {
        medium_unref(model->inputs[i].medium);
        model->inputs[i].medium = NULL;
    }
    model->picture = NULL;
    rt_sched_queue_unref(model->queue);
    rt_program_unref(model->program);
    hal_pool_free(model->pool);
    hal_pool_free(model->run_pool);
    model->pool = model->run_pool = NULL;
    model->queue = NULL;
    model->program = NULL;
    model->method = NULL;
}

/* ---- inputs and outputs ---------------------------------------------------------------------- */

const struct model_io *model_find_io(const struct model_io *ios, uint32_t count, struct span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (rt_io_is_called(ios[i].io, name)) {
            return &ios[i];
        }
    }
    return NULL;
}

const struct model_io *model_find_medium(const struct model *model, bool is_text,
                                         uint32_t *out_count)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct model_io *found = NULL;
    *out_count = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct medium *medium = model->inputs[i].medium;
        if (medium && medium->kind->is_text == is_text) {
            found = &model->inputs[i];
            ++*out_count;
        }
    }
    return *out_count == 1 ? found : NULL;
}

enum status model_refuse_name(const struct model *model, enum rt_side side, struct span name,
                              struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    char names[NAMES_TEXT_MAX];
    bool is_prompt = side == RT_INPUT && model->generator && span_is(name, "text_input");
    return error_set(err, ST_INVALID, "model '%s' has no %s '%.*s', expected %s%s", model->name,
                     side == RT_INPUT ? "input" : "output", SPAN_SHORT(name),
                     rt_names_print(model->method, side, names),
                     is_prompt ? "; prompts go to its route generate" : "");
}
