/* SPDX-License-Identifier: MIT */
/* From a program to models: a model for each method, with its queue and its share of the memory. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/reason.h"
#include "hal/pool.h"
#include "protocol/json.h"
#include "runtime/call/batch.h"
#include "runtime/program/held.h"
#include "runtime/program/state.h"
#include "runtime/sched/sched.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/model/card/card.h"
#include "server/model/intake/intake.h"
#include "server/model/repository_priv.h"

/* Rows to try if no option gives the number. */
#define ROWS_MAX_UNASKED 32

/* ---- constant methods ------------------------------------------------------------------------ */

/* A longer value is left out: calling the method gives it. */
#define CONSTANT_TEXT_MAX 4096
#define CONSTANTS_TEXT_MAX (256 << 10)

/* False: the model is no constant, or the value is too long. */
static bool print_constant(struct model *model, struct buf *out)
{
    const struct call_method *call = &model->call;
    struct call_result *results = arena_array(&model->arena, call->result_count, sizeof(*results));
    if (!results || !model->method || !rt_method_is_constant(model->method)) {
        return false;
    }
    for (uint32_t i = 0; i < call->result_count; i++) {
        results[i].shape = call->results[i].shape;
        must(rt_method_constant_result(model->method, i, &results[i].bytes));
        if (results[i].bytes.len > CONSTANT_TEXT_MAX) {
            return false;
        }
    }
    call_print_value(call, results, out);
    return !buf_failed(out);
}

/* {"get_width":10} of a program's models; NULL without any. */
static const char *print_constants(struct arena *arena, struct model *const *models, uint32_t count)
{
    struct buf all, one;
    buf_init(&all, CONSTANTS_TEXT_MAX);
    buf_init(&one, CONSTANT_TEXT_MAX);
    for (uint32_t i = 0; i < count; i++) {
        buf_reset(&one);
        if (print_constant(models[i], &one)) {
            buf_add_char(&all, all.len ? ',' : '{');
            json_print_string(&all, span_str(models[i]->method_name));
            buf_add_char(&all, ':');
            buf_add(&all, one.ptr, one.len);
        }
    }
    buf_add_char(&all, '}');
    const char *text =
        all.len > 1 && !buf_failed(&all) ? arena_strdup(arena, all.ptr, all.len) : NULL;
    buf_fini(&one);
    buf_fini(&all);
    return text;
}

/* ---- queues and settings --------------------------------------------------------------------- */

bool repository_is_meant(const struct model *model, struct span name)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    return span_is(name, model->name) || span_is(name, model->origin->name) ||
           (model->alias && span_is(name, model->alias));
}

static struct params params_of(const struct model *model, const struct options *options)
{
    struct params params = options->params;
    card_put_params(model->origin->card, options, &params);
    for (uint32_t i = 0; i < options->setting_count; i++) {
        const struct option_setting *setting = &options->settings[i];
        if (repository_is_meant(model, span_of(setting->name, setting->name_len))) {
            options_apply(setting, &params);
        }
    }
    return params;
}

/* Two texts, or none twice. */
static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* Are the members of a card in the document as they were? */
static bool has_same_members(const struct origin *origin, const struct options *options)
{
    const struct cJSON *now = options_find_members(options, span_str(origin->name));
    const char *before = origin->card ? origin->card->members : NULL;
    return now ? before && span_is(document_raw(options->document, now), before) : !before;
}

bool repository_has_same_params(const struct model *model, const struct options *options)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct params params = params_of(model, options);
    params.version_count_max = model->params.version_count_max; /* chooses files, no more */
    struct span name = span_str(model->origin->name);
    const struct option_model *labels = options_find_labels(options, name);
    if (!is_same_text(labels ? labels->path : NULL, model->origin->labels_path) ||
        !is_same_text(options_find_tokenizer(options, name), model->origin->tokenizer_path) ||
        !has_same_members(model->origin, options)) {
        return false;
    }
#define PARAM(name, ...)
#define MODEL_PARAM(name, ...)                                                                     \
    if (params.name != model->params.name) {                                                       \
        return false;                                                                              \
    }
#include "server/process/params.def"
#undef PARAM
    return true;
}

/* How many of the wanted rows the model's form takes. */
static void open_batches(struct model *model)
{
    int64_t given = (int64_t)model->params.max_batch, asked = given ? given : ROWS_MAX_UNASKED;
    int64_t rows = 1;
    model->rows_form = 1;
    model->rows_max = 1;
    if (asked == 1) {
        (void)reason_set(&model->why_alone, REASON_BATCHES_OFF);
    } else if (rt_batch_open(model->method, &rows, &model->why_alone) == ST_OK) {
        model->rows_form = rows < asked ? rows : asked;
        (void)reason_set(&model->why_alone, REASON_UNTRIED);
    }
    model_trial_init(&model->trial, model->rows_form > 1);
    model->trial_is_open = model->trial.is_open;
    model->batch_size_max = rt_batch_size_max(model->method);
    /* dim 0 of its states is no sample */
    bool has_steps = rt_program_state_bytes(model->program) > 0;
    if (model->batch_size_max == 0 && rows > 1 && !has_steps) {
        model->batch_size_max = 1; /* exported for one sample; its operators decide */
    }
}

static enum status open_queue(struct repository *repository, struct model *model, struct error *err)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    must(!model->queue && !model->pool && !model->run_pool && !model->stats);
    const struct params *params = &model->params;
    const struct rt_sched_queue_options queue = {
        .waiting_max = (uint32_t)params->queue_count_max,
        .waiting_bytes_max = (size_t)params->queue_bytes_max,
        .running_max = (uint32_t)params->running_count_max,
        .rows_max = model->rows_max,
        .weight = (uint32_t)params->weight,
    };
    rt_method_set_weight(model->method, (uint32_t)params->weight);
    TRY(rt_sched_queue_new(repository->sched, &queue, &model->queue, err));
    TRY(hal_pool_share(repository->pool, &model->pool, err));
    TRY(hal_pool_part(repository->running, &model->run_pool, err));
    model->stats = calloc(1, sizeof(*model->stats));
    if (!model->stats) {
        return error_no_memory(err, "statistics of models");
    }
    refs_init(&model->stats->refs);
    return ST_OK;
}

static enum status open_language(struct model *model, struct error *err)
{
    const struct origin *origin = model->origin;
    struct intake_language language;
    TRY(intake_open_language(model->method, origin->card, origin->path, origin->tokenizer_path,
                             &language, err));
    model->transcriber = language.transcriber;
    model->generator = language.generator;
    model->embedder = language.embedder;
    model->uses = (struct model_uses){
        .generates = model->generator != NULL,
        .transcribes = model->transcriber != NULL,
        .embeds = model->embedder && !model->embedder->is_ranker,
        .ranks = model->embedder && model->embedder->is_ranker,
        .embeds_claim = model->embedder ? model->embedder->claim : 0,
    };
    return ST_OK;
}

/* READY, or FAILED if the method cannot be called. */
static enum status open_model(struct repository_draft *draft, struct model *model,
                              struct error *err)
{
    must(model_state(model) == MODEL_LOADING && model->method);
    const struct error *failure = rt_method_failure(model->method);
    model->params = params_of(model, draft->options);
    if (failure) {
        model_fail(model, failure);
        return ST_OK;
    }
    open_batches(model);
    TRY(open_language(model, err));
    TRY(model_open_media(model, err));
    TRY(open_queue(draft->repository, model, err));
    model_set_state(model, MODEL_READY);
    return ST_OK;
}

/* ---- a program ------------------------------------------------------------------------------- */

/* "NAME.METHOD". */
static struct span name_method(struct span file, const struct rt_method *method,
                               char text[2 * MODEL_NAME_MAX])
{
    int len = snprintf(text, 2 * MODEL_NAME_MAX, "%.*s.%s", SPAN_FMT(file), rt_method_name(method));
    must(len > 0);
    return span_of(text, (size_t)len < 2 * MODEL_NAME_MAX ? (size_t)len : 2 * MODEL_NAME_MAX - 1);
}

/* A program without a default method may be a speech model: its decoder has the file's name as an
 * alias, because that is the model's name for clients that send sound. */
static bool is_speech_model(const struct rt_method *method)
{
    const struct rt_program *program = rt_method_program(method);
    return !rt_program_default_method(program) &&
           strcmp(rt_method_name(method), "text_decoder") == 0 &&
           rt_program_find_method(program, span_str("encoder")) != NULL;
}

/* The same of a language model whose methods have other names: the only one of its program. */
static bool is_language_model(const struct rt_method *method)
{
    struct rt_program *program = rt_method_program(method);
    if (rt_program_default_method(program) || !generator_fits(method)) {
        return false;
    }
    for (uint32_t i = 0; i < rt_program_method_count(program); i++) {
        struct rt_method *other = rt_program_method(program, i);
        if (other != method && generator_fits(other)) {
            return false;
        }
    }
    return true;
}

/* The default method has the file's name; its own is an alias, if that is a valid name. */
static enum status add_method(struct repository_draft *draft, struct origin *origin,
                              struct rt_method *method, bool is_default, struct error *err)
{
    OBJ_CHECK(origin, ORIGIN_MAGIC);
    char text[2 * MODEL_NAME_MAX];
    struct span file = span_str(origin->name), full = name_method(file, method, text);
    struct model *model;
    TRY(repository_draft_add(draft, origin, is_default ? file : full, &model, err));
    TRY(model_describe(model, method, draft->repository->device, err));
    if (is_speech_model(method) || is_language_model(method)) {
        model->alias = arena_strdup(&model->arena, file.ptr, file.len);
        return model->alias ? ST_OK : error_no_memory(err, "models");
    }
    bool is_pipeline = origin->path == NULL; /* its method has no name but the pipeline's */
    if (is_default && !is_pipeline && model_name_is_valid(full)) {
        model->alias = arena_strdup(&model->arena, full.ptr, full.len);
        return model->alias ? ST_OK : error_no_memory(err, "models");
    }
    return ST_OK;
}

enum status repository_draft_add_program(struct repository_draft *draft, struct origin *origin,
                                         struct rt_program *program, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    uint32_t count = rt_program_method_count(program), first = draft->count;
    const struct rt_method *by_default = rt_program_default_method(program);
    for (uint32_t i = 0; i < count; i++) {
        struct rt_method *method = rt_program_method(program, i);
        TRY(add_method(draft, origin, method, method == by_default, err));
    }
    origin->constants = print_constants(&origin->arena, draft->models + first, count);
    for (uint32_t i = first; i < draft->count; i++) {
        TRY(open_model(draft, draft->models[i], err));
    }
    return ST_OK;
}

/* Only a file that can be called is loaded; a pipeline has no weights and no file. */
static struct rt_held_bytes held_by(const struct model *model)
{
    return model_is_ready(model) && model->origin->path ? rt_program_held(model->program)
                                                        : (struct rt_held_bytes){0};
}

uint64_t repository_model_bytes(const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct rt_held_bytes held = held_by(model);
    return held.own + held.part + held.rest;
}

uint64_t repository_model_bytes_alone(const struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct rt_held_bytes held = held_by(model);
    return held.own + held.shared + held.rest;
}
