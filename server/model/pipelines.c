/* SPDX-License-Identifier: MIT */
/* From documents to models: resolves the names in a document to models, steps and inputs. */
#include "config.h"

#include "server/model/pipelines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/check.h"
#include "runtime/program/names.h"
#include "server/model/card/card.h"
#include "server/model/pipelines_priv.h"
#include "server/model/repository_priv.h"

#define FILE_BYTES_MAX (16 << 20)
#define FILE_VALUES_MAX (1 << 20)
#define ARENA_BYTES_MAX (4 << 20)

/* A pipeline of the file under construction. */
struct builder {
    struct repository_draft *draft;
    const char *name;
    const struct pipelines_document *document;
    const struct pipelines_policy *policy;
    struct arena *arena;
    struct rt_pipeline_step *steps;
    const char **step_models;
    struct rt_sched_queue **queues;             /* by step: the model's */
    const struct model **served;                /* by step: the model; borrowed from the draft */
    const char *inputs[RT_PIPELINE_INPUTS_MAX]; /* names of the inputs, as listed or in the order of
                                                   their first use */
    uint32_t input_count;
    bool has_numbers; /* an input is given by its number alone */
};

/* Errors in the text name the place in the text; errors in the graph get this prefix. */
static enum status name_pipeline(const char *name, struct error *err)
{
    return error_prefix(err, "pipeline '%.100s': ", name);
}

static enum status name_step(const struct builder *m, uint32_t step, struct error *err)
{
    must(step < m->document->step_count && m->steps[step].name);
    return error_prefix(err, "step %u (%.64s): ", step, m->steps[step].name);
}

/* ---- models ---------------------------------------------------------------------------------- */

/* A method is a model of its own: NAME.METHOD is its name or its alias. Until its file is loaded,
 * the file stands for it. */
static const struct model *find_model(const struct builder *m, const struct pipelines_step *step)
{
    char full[2 * MODEL_NAME_MAX];
    int len =
        snprintf(full, sizeof(full), step->method ? "%s.%s" : "%s", step->model, step->method);
    bool fits = len > 0 && (size_t)len < sizeof(full);
    if (!fits) {
        return NULL;
    }
    const struct model *found = repository_draft_find(m->draft, full, step->version);
    return found ? found : repository_draft_find_listed(m->draft, full, step->version);
}

static enum status refuse_model(const struct pipelines_step *step, uint32_t index,
                                struct error *err)
{
    if (!step->method && !step->version) {
        return error_set(err, ST_INVALID,
                         "step %u: no model '%.64s', expected one that is served, or a pipeline "
                         "that stands before this one",
                         index, step->model);
    }
    return error_set(err, ST_INVALID, "step %u: no model '%.64s'%s%.64s%s%s", index, step->model,
                     step->method ? " with a method '" : "", step->method ? step->method : "",
                     step->method ? "'" : "", step->version ? " of that version" : "");
}

static enum status find_method(struct builder *m, uint32_t index, struct error *err)
{
    must(index < m->document->step_count);
    const struct pipelines_step *step = &m->document->steps[index];
    const struct model *found = find_model(m, step);
    if (found && model_state(found) == MODEL_UNKNOWN) {
        TRY(m->policy->load(m->policy->arg, found, err));
        found = find_model(m, step);
    }
    if (!found) {
        return refuse_model(step, index, err);
    }
    found->origin->is_pinned = true;
    if (!model_is_ready(found)) {
        return error_set(err, ST_INVALID, "step %u: model '%s' cannot be called: %s", index,
                         found->name, model_refusal(found));
    }
    m->served[index] = found;
    m->step_models[index] = arena_strdup(m->arena, found->name, strlen(found->name));
    if (!m->step_models[index]) {
        return error_no_memory(err, "a pipeline");
    }
    m->steps[index].name = step->name ? step->name : step->model;
    m->steps[index].method = found->method;
    m->queues[index] = found->queue;
    return ST_OK;
}

/* The step with that name, or UINT32_MAX. */
static uint32_t find_step(const struct builder *m, const char *name)
{
    for (uint32_t i = 0; i < m->document->step_count; i++) {
        const char *given = m->document->steps[i].name;
        if (given && strcmp(given, name) == 0) {
            return i;
        }
    }
    return UINT32_MAX;
}

static enum status check_step_name(const struct builder *m, uint32_t index, struct error *err)
{
    must(index < m->document->step_count);
    const char *name = m->document->steps[index].name;
    if (!name) {
        return ST_OK;
    }
    if (!rt_name_is_valid(span_str(name), RT_RESULT)) {
        return error_set(err, ST_INVALID,
                         "step %u: expected a name of 1 to %d of A-Z a-z 0-9 _ - . :, got '%.64s'",
                         index, RT_NAME_BYTES_MAX, name);
    }
    uint32_t first = find_step(m, name);
    return first == index
               ? ST_OK
               : error_set(err, ST_INVALID, "step %u: repeats the name '%.64s' of step %u", index,
                           name, first);
}

static enum status find_methods(struct builder *m, struct error *err)
{
    uint32_t count = m->document->step_count;
    m->steps = arena_array(m->arena, (size_t)count + 1, sizeof(*m->steps));
    m->step_models = arena_array(m->arena, (size_t)count + 1, sizeof(*m->step_models));
    m->served = arena_array(m->arena, (size_t)count + 1, sizeof(*m->served));
    m->queues = arena_array(m->arena, (size_t)count + 1, sizeof(struct rt_sched_queue *));
    if (!m->steps || !m->step_models || !m->served || !m->queues) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(check_step_name(m, i, err));
        TRY(find_method(m, i, err));
    }
    return ST_OK;
}

/* ---- inputs of the pipeline ------------------------------------------------------------------ */

static uint32_t find_input(const struct builder *m, const char *name)
{
    uint32_t i = 0;
    while (i < m->input_count && strcmp(m->inputs[i], name) != 0) {
        i++;
    }
    return i;
}

/* Finds an input by name: a listed one, its alias, or, if none are listed, a new one. */
static enum status take_name(struct builder *m, const char *name, uint32_t *out, struct error *err)
{
    must(m->input_count <= RT_PIPELINE_INPUTS_MAX);
    uint32_t index = find_input(m, name);
    if (index == m->input_count && rt_alias_index(span_str(name), RT_INPUT, out)) {
        m->has_numbers = true;
        return ST_OK;
    }
    if (index == m->input_count && m->document->inputs) {
        return error_set(err, ST_INVALID, "\"inputs\" of the pipeline do not list '%.64s'", name);
    }
    if (index == RT_PIPELINE_INPUTS_MAX) {
        return error_set(err, ST_INVALID, "expected at most %d inputs of the pipeline",
                         RT_PIPELINE_INPUTS_MAX);
    }
    if (index == m->input_count) {
        m->inputs[m->input_count++] = name;
    }
    *out = index;
    return ST_OK;
}

static enum status take_input(struct builder *m, const struct pipelines_ref *ref,
                              struct rt_source *out, struct error *err)
{
    out->kind = RT_SOURCE_INPUT;
    out->index = ref->number;
    if (ref->name) {
        TRY(take_name(m, ref->name, &out->index, err));
    } else {
        m->has_numbers = true;
    }
    if (m->document->inputs && out->index >= m->input_count) {
        return error_set(err, ST_INVALID, "input %u: the pipeline lists %u", out->index,
                         m->input_count);
    }
    return ST_OK;
}

/* A number does not say which name it belongs to. */
static enum status check_inputs(const struct builder *m, struct error *err)
{
    return m->document->inputs || !m->has_numbers || m->input_count == 0
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "inputs of the pipeline are given by number and by name ('%.64s'), "
                           "expected one of both, or \"inputs\" that list their names",
                           m->inputs[0]);
}

/* ---- sources --------------------------------------------------------------------------------- */

/* A result of a step; rt_pipeline_new() refuses results of later steps. */
static enum status take_result(const struct builder *m, const struct pipelines_source *source,
                               uint32_t before, struct rt_source *out, struct error *err)
{
    uint32_t step = source->from.name ? find_step(m, source->from.name) : source->from.number;
    if (source->from.name && step == UINT32_MAX) {
        return error_set(err, ST_INVALID, "no step is called '%.64s'", source->from.name);
    }
    *out = (struct rt_source){.kind = RT_SOURCE_STEP, .step = step};
    if (step >= before) {
        return step < m->document->step_count ? ST_OK
                                              : error_set(err, ST_INVALID, "step %u: there are %u",
                                                          step, m->document->step_count);
    }
    return rt_method_pick_result(m->steps[step].method, &source->output, &out->index, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "output of step %u (%.64s): ", step, m->steps[step].name);
}

static enum status take_source(struct builder *m, const struct pipelines_source *source,
                               uint32_t step, struct rt_source *out, struct error *err)
{
    switch (source->kind) {
    case RT_SOURCE_INPUT:
        return take_input(m, &source->from, out, err);
    case RT_SOURCE_STEP:
        return take_result(m, source, step, out, err);
    case RT_SOURCE_NONE:
        break;
    }
    *out = (struct rt_source){.kind = RT_SOURCE_NONE};
    return ST_OK;
}

/* The raw input of the step that takes source |index|. */
static enum status find_taker(const struct rt_method *method, const struct pipelines_source *source,
                              uint32_t index, uint32_t *out, struct error *err)
{
    uint32_t count = rt_method_input_count(method), i = 0;
    char names[NAMES_TEXT_MAX];
    *out = index;
    if (!source->input) {
        return ST_OK; /* rt_pipeline_new() compares the numbers of sources and inputs */
    }
    while (i < count && !rt_io_is_called(rt_method_input(method, i), span_str(source->input))) {
        i++;
    }
    *out = i;
    return i < count ? ST_OK
                     : error_set(err, ST_INVALID, "there is no input '%.64s', expected %s",
                                 source->input, rt_names_print(method, RT_INPUT, names));
}

/* By name: inputs that are not mentioned get nothing, and no input may be mentioned twice. */
static enum status take_sources(struct builder *m, uint32_t index, struct error *err)
{
    must(index < m->document->step_count && m->steps[index].method);
    const struct pipelines_step *step = &m->document->steps[index];
    const struct rt_method *method = m->steps[index].method;
    uint32_t inputs = rt_method_input_count(method);
    uint32_t count = step->has_input_names ? inputs : step->source_count;
    struct rt_source *sources = arena_array(m->arena, (size_t)count + 1, sizeof(*sources));
    bool *is_given = arena_array(m->arena, (size_t)count + 1, sizeof(*is_given));
    if (!sources || !is_given) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < step->source_count; i++) {
        uint32_t taker;
        TRY(find_taker(method, &step->sources[i], i, &taker, err));
        const char *label = taker < inputs ? rt_method_input(method, taker)->label : "input";
        if (is_given[taker]) {
            return error_set(err, ST_INVALID, "%s is given twice", label);
        }
        is_given[taker] = true;
        if (take_source(m, &step->sources[i], index, &sources[taker], err) != ST_OK) {
            return error_prefix(err, "%s: ", label);
        }
    }
    m->steps[index].sources = sources;
    m->steps[index].source_count = count;
    return ST_OK;
}

static enum status take_outputs(const struct builder *m, struct rt_source **out_sources,
                                const char *const **out_names, struct error *err)
{
    uint32_t count = m->document->output_count;
    struct rt_source *sources = arena_array(m->arena, (size_t)count + 1, sizeof(*sources));
    const char **names = arena_array(m->arena, (size_t)count + 1, sizeof(*names));
    bool has_names = false;
    if (!sources || !names) {
        return error_no_memory(err, "a pipeline");
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct pipelines_source *source = &m->document->outputs[i];
        if (take_result(m, source, m->document->step_count, &sources[i], err) != ST_OK) {
            return error_prefix(err, "outputs[%u]: ", i);
        }
        names[i] = source->name;
        has_names |= source->name != NULL;
    }
    *out_sources = sources;
    *out_names = has_names ? names : NULL;
    return ST_OK;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static enum status describe(struct builder *m, struct rt_pipeline_desc *out, struct error *err)
{
    struct rt_source *outputs = NULL;
    const char *const *output_names = NULL;
    TRY(find_methods(m, err));
    for (uint32_t i = 0; i < m->document->input_count; i++) {
        m->inputs[m->input_count++] = m->document->inputs[i];
    }
    for (uint32_t i = 0; i < m->document->step_count; i++) {
        if (take_sources(m, i, err) != ST_OK) {
            return name_step(m, i, err);
        }
    }
    TRY(check_inputs(m, err));
    TRY(take_outputs(m, &outputs, &output_names, err));
    *out = (struct rt_pipeline_desc){
        .name = m->name,
        .steps = m->steps,
        .models = m->step_models,
        .queues = m->queues,
        .step_count = m->document->step_count,
        .input_names = m->input_count ? m->inputs : NULL,
        .input_name_count = m->input_count,
        .outputs = outputs,
        .output_names = output_names,
        .output_count = m->document->output_count,
    };
    return ST_OK;
}

/* Copies: the step's model may go before the pipeline does. */
static enum status copy_labels(struct model *model, struct model_io *to,
                               const struct model_io *from, struct error *err)
{
    struct span *labels = arena_array(&model->arena, from->label_count, sizeof(*labels));
    for (uint32_t i = 0; labels && i < from->label_count; i++) {
        const char *copy = arena_strdup(&model->arena, from->labels[i].ptr, from->labels[i].len);
        if (!copy) {
            return arena_fail(&model->arena, "labels", err);
        }
        labels[i] = span_of(copy, from->labels[i].len);
    }
    if (!labels) {
        return arena_fail(&model->arena, "labels", err);
    }
    to->labels = labels;
    to->label_count = to->meta.label_count = from->label_count;
    return ST_OK;
}

/* Labels of boxes and the like are not about the numbers of a row. */
static bool has_classes(const struct model *step, const struct model_io *io)
{
    bool has_other = io->answer && io->answer->kind != ANSWER_CLASSES;
    for (uint32_t i = 0; i < step->output_count; i++) {
        const struct answer_form *answer = step->outputs[i].answer;
        has_other |= answer_has_part(answer, io->index);
    }
    return io->labels && !has_other && io->kind == RT_IO_TENSOR;
}

/* The classes of a result have the names that they have in the step which gives it. */
static enum status take_labels(const struct builder *m, const struct rt_pipeline_desc *desc,
                               struct model *model, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    for (uint32_t i = 0; i < model->output_count; i++) {
        struct model_io *to = &model->outputs[i];
        const struct rt_source last = {.step = desc->step_count - 1, .index = to->index};
        const struct rt_source *source = desc->output_count ? &desc->outputs[to->index] : &last;
        const struct model *step = m->served[source->step];
        for (uint32_t k = 0; k < step->output_count; k++) {
            const struct model_io *from = &step->outputs[k];
            if (from->index == source->index && has_classes(step, from)) {
                TRY(copy_labels(model, to, from, err));
            }
        }
    }
    return ST_OK;
}

static enum status add_pipeline(struct repository_draft *draft, const char *name,
                                struct arena *arena, const struct pipelines_document *document,
                                const struct pipelines_policy *policy, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct builder m = {
        .draft = draft, .name = name, .document = document, .policy = policy, .arena = arena};
    struct rt_pipeline_desc desc;
    struct rt_program *program;
    TRY(describe(&m, &desc, err));
    TRY(rt_pipeline_new(&desc, &program, err));
    struct origin *origin;
    enum status status = origin_new(span_str(name), 1, NULL, &origin, err);
    if (status == ST_OK) {
        status = repository_draft_add_program(draft, origin, program, err);
        origin_unref(origin);
    }
    if (status == ST_OK) {
        status = take_labels(&m, &desc, draft->models[draft->count - 1], err);
    }
    if (status == ST_OK) {
        status = pipelines_take_media(&desc, m.served, draft->models[draft->count - 1], err);
    }
    rt_program_unref(program);
    return status;
}

/* Makes the pipeline, or notes why there is none. */
static enum status add_or_note(struct repository_draft *draft, const char *name,
                               struct arena *arena, const struct pipelines_document *document,
                               const struct pipelines_policy *policy, struct error *err)
{
    const struct origin_id no_file = {0};
    uint32_t count = draft->count;
    if (policy->is_unloaded(policy->arg, name)) {
        return repository_add_unloaded(draft, name, 1, NULL, &no_file, err);
    }
    if (add_pipeline(draft, name, arena, document, policy, err) == ST_OK) {
        return ST_OK;
    }
    if (!policy->keeps_failed) {
        return name_pipeline(name, err);
    }
    struct error why = *err;
    repository_draft_cut(draft, count);
    return repository_add_failed_pipeline(draft, name, &why, err);
}

static enum status load(struct repository_draft *draft, const struct document *in,
                        const struct cJSON *value, struct arena *arena,
                        const struct pipelines_policy *policy, struct error *err)
{
    TRY(document_need(in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        struct pipelines_document document;
        arena_reset(arena);
        TRY(pipelines_read(in, at, arena, &document, err));
        TRY(add_or_note(draft, document_key(at), arena, &document, policy, err));
    }
    return ST_OK;
}

enum status pipelines_load(struct repository_draft *draft, const char *path,
                           const struct pipelines_policy *policy, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    const struct document_limits limits = {.bytes_max = FILE_BYTES_MAX,
                                           .values_max = FILE_VALUES_MAX};
    struct document in;
    enum status status = document_open(path, &limits, &in, err);
    if (status == ST_OK) {
        status = pipelines_load_value(draft, &in, in.root, policy, err);
        document_close(&in);
    }
    return status;
}

enum status pipelines_load_value(struct repository_draft *draft, const struct document *in,
                                 const struct cJSON *value, const struct pipelines_policy *policy,
                                 struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    enum status status = load(draft, in, value, &arena, policy, err);
    arena_fini(&arena);
    return status;
}

enum status pipelines_verify(const struct document *in, const struct cJSON *value,
                             struct error *err)
{
    struct pipelines_document document;
    struct arena arena;
    arena_init(&arena, ARENA_BYTES_MAX);
    enum status status = pipelines_read(in, value, &arena, &document, err);
    arena_fini(&arena);
    return status;
}
