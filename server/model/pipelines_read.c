/* SPDX-License-Identifier: MIT */
/* The document of a pipeline: its members and their form. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/program/names.h"
#include "server/model/pipelines_priv.h"

#define SOURCES_MAX                                                                                \
    (RT_PIPELINE_INPUTS_MAX > RT_PIPELINE_OUTPUTS_MAX ? RT_PIPELINE_INPUTS_MAX                     \
                                                      : RT_PIPELINE_OUTPUTS_MAX)

/* A pipeline while it is read. Lists are copied into the arena when their length is known. */
struct reader {
    const struct document *in;
    struct arena *arena;
    struct pipelines_document *out;
    struct pipelines_source sources[SOURCES_MAX];
    struct pipelines_step steps[RT_PIPELINE_STEPS_MAX];
    const char *names[RT_PIPELINE_INPUTS_MAX];
};

/* Members of a pipeline for people and for its tests. */
static const char *const passed_over[] = {"description", "cases", "tolerance", "et_check"};

/* ---- values ---------------------------------------------------------------------------------- */

static enum status read_number(struct reader *r, const struct cJSON *value, uint32_t *out,
                               struct error *err)
{
    uint64_t number;
    TRY(document_u64(r->in, value, UINT32_MAX, &number, err));
    *out = (uint32_t)number;
    return ST_OK;
}

static enum status read_ref(struct reader *r, const struct cJSON *value, struct pipelines_ref *out,
                            struct error *err)
{
    return document_type(value) == JSON_STRING ? document_text(r->in, value, &out->name, err)
                                               : read_number(r, value, &out->number, err);
}

/* |count| items of |size| bytes as an array in the arena. */
static enum status keep_list(struct reader *r, const void *items, uint32_t count, size_t size,
                             void *out_list, struct error *err)
{
    void *list = arena_array(r->arena, (size_t)count + 1, size);
    if (!list) {
        return error_no_memory(err, "a pipeline");
    }
    memcpy(list, items, count * size);
    memcpy(out_list, &list, sizeof(list));
    return ST_OK;
}

/* ---- results of steps ------------------------------------------------------------------------ */

static enum status read_name(struct reader *r, const struct cJSON *value, struct span *out,
                             struct error *err)
{
    const char *text;
    TRY(document_text(r->in, value, &text, err));
    *out = span_str(text);
    return out->len <= RT_NAME_BYTES_MAX
               ? ST_OK
               : document_fail(r->in, value, err, ST_TOO_LARGE,
                               "expected at most %d bytes of text, got %zu", RT_NAME_BYTES_MAX,
                               out->len);
}

/* A key of a dict, or a position in a list. */
static enum status read_path_key(struct reader *r, const struct cJSON *value,
                                 struct sip_path_key *out, struct error *err)
{
    uint64_t position;
    *out = (struct sip_path_key){.is_name = document_type(value) != JSON_NUMBER};
    if (out->is_name) {
        return read_name(r, value, &out->key.name, err);
    }
    TRY(document_u64(r->in, value, INT64_MAX, &position, err));
    out->key.position = (int64_t)position;
    return ST_OK;
}

static enum status read_path(struct reader *r, const struct cJSON *list, struct pick *out,
                             struct error *err)
{
    struct sip_path_key keys[SIP_DEPTH_MAX];
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        if (out->depth == SIP_DEPTH_MAX) {
            return document_fail(r->in, list, err, ST_TOO_LARGE,
                                 "expected a path of at most %d steps", SIP_DEPTH_MAX);
        }
        TRY(read_path_key(r, at, &keys[out->depth], err));
        out->depth++;
    }
    return keep_list(r, keys, out->depth, sizeof(keys[0]), &out->path, err);
}

/* In the forms of protocol/pick.h. */
static enum status read_output(struct reader *r, const struct cJSON *value, struct pick *out,
                               struct error *err)
{
    enum json_type type = document_type(value);
    *out = (struct pick){.kind = PICK_PATH};
    switch (type) {
    case JSON_NUMBER:
        out->kind = PICK_INDEX;
        return document_u64(r->in, value, UINT64_MAX, &out->index, err);
    case JSON_STRING:
        out->kind = PICK_NAME;
        return read_name(r, value, &out->name, err);
    case JSON_ARRAY:
        return read_path(r, value, out, err);
    default:
        return document_fail(r->in, value, err, ST_INVALID,
                             "expected an output's number, its name or its path, got %s",
                             json_type_text(type));
    }
}

/* ---- sources --------------------------------------------------------------------------------- */

struct source_members {
    bool has_input, has_from, has_output;
};

/* |may_name|: the source is a result of the pipeline, which may have a name. */
static enum status read_source_member(struct reader *r, const struct cJSON *member, bool may_name,
                                      struct pipelines_source *out, struct source_members *members,
                                      struct error *err)
{
    if (document_is(member, "input") && !may_name) {
        members->has_input = true;
        return read_ref(r, member, &out->from, err);
    }
    if (document_is(member, "from")) {
        members->has_from = true;
        return read_ref(r, member, &out->from, err);
    }
    if (document_is(member, "output")) {
        members->has_output = true;
        return read_output(r, member, &out->output, err);
    }
    if (document_is(member, "name") && may_name) {
        return document_text(r->in, member, &out->name, err);
    }
    return document_refuse_member(
        r->in, member, may_name ? "from, output or name" : "input, or from and output", err);
}

/* {"input": n}, {"from": step, "output": pick}, or null for an input that the exporter fixed. */
static enum status read_source(struct reader *r, const struct cJSON *value, bool is_result,
                               struct pipelines_source *out, struct error *err)
{
    struct source_members members = {false};
    *out = (struct pipelines_source){.kind = RT_SOURCE_NONE};
    if (document_type(value) == JSON_NULL && !is_result) {
        return ST_OK;
    }
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_source_member(r, at, is_result, out, &members, err));
    }
    if (members.has_input == members.has_from || (members.has_input && members.has_output)) {
        return document_fail(r->in, value, err, ST_INVALID,
                             is_result
                                 ? "expected from, and output where the step has several results"
                                 : "expected input, or from and output");
    }
    out->kind = members.has_input ? RT_SOURCE_INPUT : RT_SOURCE_STEP;
    return ST_OK;
}

/* A list in the order of the step's inputs, or an object by their names. */
static enum status read_sources(struct reader *r, const struct cJSON *value, bool is_result,
                                uint32_t max, struct pipelines_source **out, uint32_t *out_count,
                                struct error *err)
{
    bool is_object = !is_result && document_type(value) == JSON_OBJECT;
    uint32_t count = 0;
    TRY(document_need(r->in, value, is_object ? JSON_OBJECT : JSON_ARRAY, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        if (count == max) {
            return document_fail(r->in, at, err, ST_INVALID, "expected at most %u", max);
        }
        TRY(read_source(r, at, is_result, &r->sources[count], err));
        r->sources[count++].input = is_object ? document_key(at) : NULL;
    }
    *out_count = count;
    return keep_list(r, r->sources, count, sizeof(r->sources[0]), out, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum status read_step_member(struct reader *r, const struct cJSON *member,
                                    struct pipelines_step *step, struct error *err)
{
    if (document_is(member, "name")) {
        return document_text(r->in, member, &step->name, err);
    }
    if (document_is(member, "model")) {
        return document_text(r->in, member, &step->model, err);
    }
    if (document_is(member, "method")) {
        return document_text(r->in, member, &step->method, err);
    }
    if (document_is(member, "version")) {
        return read_number(r, member, &step->version, err);
    }
    if (document_is(member, "inputs")) {
        step->has_input_names = document_type(member) == JSON_OBJECT;
        return read_sources(r, member, false, RT_PIPELINE_INPUTS_MAX, &step->sources,
                            &step->source_count, err);
    }
    return document_refuse_member(r->in, member, "name, model, method, version or inputs", err);
}

static enum status read_step(struct reader *r, const struct cJSON *value,
                             struct pipelines_step *step, struct error *err)
{
    *step = (struct pipelines_step){.version = 0};
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_step_member(r, at, step, err));
    }
    return step->model && step->sources
               ? ST_OK
               : document_fail(r->in, value, err, ST_INVALID, "expected model and inputs%s",
                               step->model     ? ", got no inputs"
                               : step->sources ? ", got no model"
                                               : ", got none of them");
}

static enum status read_steps(struct reader *r, const struct cJSON *list, struct error *err)
{
    uint32_t count = 0;
    TRY(document_need(r->in, list, JSON_ARRAY, err));
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        if (count == RT_PIPELINE_STEPS_MAX) {
            return document_fail(r->in, at, err, ST_INVALID, "expected at most %d steps",
                                 RT_PIPELINE_STEPS_MAX);
        }
        TRY(read_step(r, at, &r->steps[count++], err));
    }
    r->out->step_count = count;
    return keep_list(r, r->steps, count, sizeof(r->steps[0]), &r->out->steps, err);
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

static enum status read_inputs(struct reader *r, const struct cJSON *list, struct error *err)
{
    uint32_t count = 0;
    TRY(document_need(r->in, list, JSON_ARRAY, err));
    for (const struct cJSON *at = document_first(list); at; at = document_next(at)) {
        if (count == RT_PIPELINE_INPUTS_MAX) {
            return document_fail(r->in, at, err, ST_INVALID, "expected at most %d names",
                                 RT_PIPELINE_INPUTS_MAX);
        }
        TRY(document_text(r->in, at, &r->names[count++], err));
    }
    r->out->input_count = count;
    return keep_list(r, r->names, count, sizeof(r->names[0]), &r->out->inputs, err);
}

static enum status read_outputs(struct reader *r, const struct cJSON *list, struct error *err)
{
    TRY(read_sources(r, list, true, RT_PIPELINE_OUTPUTS_MAX, &r->out->outputs,
                     &r->out->output_count, err));
    return r->out->output_count > 0
               ? ST_OK
               : document_fail(r->in, list, err, ST_INVALID,
                               "expected one result or more; without \"outputs\" the pipeline has "
                               "those of its last step");
}

static bool is_passed_over(const struct cJSON *member)
{
    for (size_t i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++) {
        if (document_is(member, passed_over[i])) {
            return true;
        }
    }
    return false;
}

static enum status read_member(struct reader *r, const struct cJSON *member, struct error *err)
{
    if (document_is(member, "inputs")) {
        return read_inputs(r, member, err);
    }
    if (document_is(member, "steps")) {
        return read_steps(r, member, err);
    }
    if (document_is(member, "outputs")) {
        return read_outputs(r, member, err);
    }
    return is_passed_over(member)
               ? ST_OK
               : document_refuse_member(r->in, member, "inputs, steps, outputs or description",
                                        err);
}

static enum status read_pipeline(struct reader *r, const struct cJSON *value, struct error *err)
{
    TRY(document_need(r->in, value, JSON_OBJECT, err));
    for (const struct cJSON *at = document_first(value); at; at = document_next(at)) {
        TRY(read_member(r, at, err));
    }
    return r->out->steps ? ST_OK
                         : document_fail(r->in, value, err, ST_INVALID, "expected steps, got none");
}

enum status pipelines_read(const struct document *in, const struct cJSON *value,
                           struct arena *arena, struct pipelines_document *out, struct error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    if (!r) {
        return error_no_memory(err, "a pipeline");
    }
    *out = (struct pipelines_document){.input_count = 0};
    r->in = in;
    r->arena = arena;
    r->out = out;
    enum status status = read_pipeline(r, value, err);
    free(r);
    return status;
}
