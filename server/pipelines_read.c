/* SPDX-License-Identifier: MIT */
/* The text of a pipeline: its members and their form. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/program/names.h"
#include "server/pipelines_priv.h"

#define SOURCES_MAX                                                                                \
    (RT_PIPELINE_INPUTS_MAX > RT_PIPELINE_OUTPUTS_MAX ? RT_PIPELINE_INPUTS_MAX                     \
                                                      : RT_PIPELINE_OUTPUTS_MAX)

/* A pipeline while it is read. Lists are copied into the arena when their length is known. */
struct reader {
    struct json *in;
    struct arena *arena;
    struct pipelines_document *document;
    struct pipelines_source sources[SOURCES_MAX];
    struct pipelines_step steps[RT_PIPELINE_STEPS_MAX];
    const char *names[RT_PIPELINE_INPUTS_MAX];
};

/* Members of a pipeline for people and for its tests. */
static const char *const passed_over[] = {"description", "cases", "tolerance", "et_check"};

static enum status exhausted(struct error *err)
{
    return error_set(err, ST_EXHAUSTED, "no memory for a pipeline");
}

/* ---- values ---------------------------------------------------------------------------------- */

enum status pipelines_keep(const struct json *in, struct arena *arena,
                           const struct json_string *string, const char **out, struct error *err)
{
    char *text = arena_alloc(arena, string->bytes + 1);
    if (!text) {
        return exhausted(err);
    }
    json_string_decode(string, (uint8_t *)text);
    text[string->bytes] = '\0';
    *out = text;
    return strlen(text) == string->bytes
               ? ST_OK
               : json_fail(in, err, ST_INVALID, "expected text without NUL");
}

static enum status read_text(struct reader *r, const char **out, struct error *err)
{
    struct json_string string;
    TRY(json_read_string(r->in, &string, err));
    return pipelines_keep(r->in, r->arena, &string, out, err);
}

static enum status read_number(struct reader *r, uint32_t *out, struct error *err)
{
    uint64_t value;
    TRY(json_read_u64(r->in, &value, err));
    if (value > UINT32_MAX) {
        return json_fail(r->in, err, ST_INVALID, "expected a number below 2^32");
    }
    *out = (uint32_t)value;
    return ST_OK;
}

static enum status read_ref(struct reader *r, struct pipelines_ref *out, struct error *err)
{
    return json_peek(r->in) == JSON_STRING ? read_text(r, &out->name, err)
                                           : read_number(r, &out->number, err);
}

static enum status refuse_member(const struct reader *r, const struct json_string *key,
                                 const char *expected, struct error *err)
{
    return json_fail(r->in, err, ST_INVALID, "unknown member '%.*s', expected %s",
                     SPAN_SHORT(key->raw), expected);
}

/* |count| items of |size| bytes as an array in the arena. */
static enum status keep_list(struct reader *r, const void *items, uint32_t count, size_t size,
                             void *out_list, struct error *err)
{
    void *list = arena_array(r->arena, (size_t)count + 1, size);
    if (!list) {
        return exhausted(err);
    }
    memcpy(list, items, count * size);
    memcpy(out_list, &list, sizeof(list));
    return ST_OK;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct source_members {
    bool has_input, has_from, has_output;
};

/* |may_name|: the source is a result of the pipeline, which may have a name. */
static enum status read_source_member(struct reader *r, const struct json_string *key,
                                      bool may_name, struct pipelines_source *out,
                                      struct source_members *members, struct error *err)
{
    if (json_string_is(key, "input") && !may_name) {
        members->has_input = true;
        return read_ref(r, &out->from, err);
    }
    if (json_string_is(key, "from")) {
        members->has_from = true;
        return read_ref(r, &out->from, err);
    }
    if (json_string_is(key, "output")) {
        members->has_output = true;
        return pick_read(r->in, RT_NAME_BYTES_MAX, r->arena, &out->output, err);
    }
    if (json_string_is(key, "name") && may_name) {
        return read_text(r, &out->name, err);
    }
    return refuse_member(r, key, may_name ? "from, output or name" : "input, or from and output",
                         err);
}

/* {"input": n}, {"from": step, "output": pick}, or null for an input that the exporter fixed. */
static enum status read_source(struct reader *r, bool is_result, struct pipelines_source *out,
                               struct error *err)
{
    struct source_members members = {false};
    struct json_string key;
    if (json_peek(r->in) == JSON_NULL && !is_result) {
        return json_read_null(r->in, err);
    }
    TRY(json_object(r->in, err));
    while (true) {
        TRY(json_member(r->in, &key, err));
        if (r->in->is_closed) {
            break;
        }
        TRY(read_source_member(r, &key, is_result, out, &members, err));
    }
    if (members.has_input == members.has_from || (members.has_input && members.has_output)) {
        return json_fail(r->in, err, ST_INVALID,
                         is_result ? "expected from, and output where the step has several results"
                                   : "expected input, or from and output");
    }
    out->kind = members.has_input ? RT_SOURCE_INPUT : RT_SOURCE_STEP;
    return ST_OK;
}

/* A list in the order of the step's inputs, or an object by their names. */
static enum status next_source(struct reader *r, bool is_object, struct pipelines_source *out,
                               struct error *err)
{
    struct json_string key;
    *out = (struct pipelines_source){.kind = RT_SOURCE_NONE};
    TRY(is_object ? json_member(r->in, &key, err) : json_element(r->in, err));
    return is_object && !r->in->is_closed ? pipelines_keep(r->in, r->arena, &key, &out->slot, err)
                                          : ST_OK;
}

static enum status read_sources(struct reader *r, bool is_result, uint32_t max,
                                struct pipelines_source **out, uint32_t *out_count,
                                struct error *err)
{
    bool is_object = !is_result && json_peek(r->in) == JSON_OBJECT;
    uint32_t count = 0;
    TRY(is_object ? json_object(r->in, err) : json_array(r->in, err));
    while (true) {
        struct pipelines_source source;
        TRY(next_source(r, is_object, &source, err));
        if (r->in->is_closed) {
            break;
        }
        if (count == max) {
            return json_fail(r->in, err, ST_INVALID, "expected at most %u", max);
        }
        TRY(read_source(r, is_result, &source, err));
        r->sources[count++] = source;
    }
    *out_count = count;
    return keep_list(r, r->sources, count, sizeof(r->sources[0]), out, err);
}

/* ---- steps ----------------------------------------------------------------------------------- */

static enum status read_step_member(struct reader *r, const struct json_string *key,
                                    struct pipelines_step *step, struct error *err)
{
    if (json_string_is(key, "name")) {
        return read_text(r, &step->name, err);
    }
    if (json_string_is(key, "model")) {
        return read_text(r, &step->model, err);
    }
    if (json_string_is(key, "method")) {
        return read_text(r, &step->method, err);
    }
    if (json_string_is(key, "version")) {
        return read_number(r, &step->version, err);
    }
    if (json_string_is(key, "inputs")) {
        step->has_slots = json_peek(r->in) == JSON_OBJECT;
        return read_sources(r, false, RT_PIPELINE_INPUTS_MAX, &step->sources, &step->source_count,
                            err);
    }
    return refuse_member(r, key, "name, model, method, version or inputs", err);
}

static enum status read_step(struct reader *r, struct pipelines_step *step, struct error *err)
{
    struct json_string key;
    *step = (struct pipelines_step){.version = 0};
    TRY(json_object(r->in, err));
    while (true) {
        TRY(json_member(r->in, &key, err));
        if (r->in->is_closed) {
            break;
        }
        TRY(read_step_member(r, &key, step, err));
    }
    return step->model && step->sources
               ? ST_OK
               : json_fail(r->in, err, ST_INVALID, "expected model and inputs");
}

static enum status read_steps(struct reader *r, struct error *err)
{
    struct pipelines_document *document = r->document;
    TRY(json_array(r->in, err));
    while (true) {
        TRY(json_element(r->in, err));
        if (r->in->is_closed) {
            break;
        }
        if (document->step_count == RT_PIPELINE_STEPS_MAX) {
            return json_fail(r->in, err, ST_INVALID, "expected at most %d steps",
                             RT_PIPELINE_STEPS_MAX);
        }
        TRY(read_step(r, &r->steps[document->step_count], err));
        document->step_count++;
    }
    return keep_list(r, r->steps, document->step_count, sizeof(r->steps[0]), &document->steps, err);
}

/* ---- the pipeline ---------------------------------------------------------------------------- */

static enum status read_inputs(struct reader *r, struct error *err)
{
    struct pipelines_document *document = r->document;
    TRY(json_array(r->in, err));
    while (true) {
        TRY(json_element(r->in, err));
        if (r->in->is_closed) {
            break;
        }
        if (document->input_count == RT_PIPELINE_INPUTS_MAX) {
            return json_fail(r->in, err, ST_INVALID, "expected at most %d names",
                             RT_PIPELINE_INPUTS_MAX);
        }
        TRY(read_text(r, &r->names[document->input_count], err));
        document->input_count++;
    }
    return keep_list(r, r->names, document->input_count, sizeof(r->names[0]), &document->inputs,
                     err);
}

static bool is_passed_over(const struct json_string *key)
{
    for (size_t i = 0; i < sizeof(passed_over) / sizeof(passed_over[0]); i++) {
        if (json_string_is(key, passed_over[i])) {
            return true;
        }
    }
    return false;
}

static enum status read_member(struct reader *r, const struct json_string *key, struct error *err)
{
    struct pipelines_document *document = r->document;
    if (json_string_is(key, "inputs")) {
        return read_inputs(r, err);
    }
    if (json_string_is(key, "steps")) {
        return read_steps(r, err);
    }
    if (json_string_is(key, "outputs")) {
        TRY(read_sources(r, true, RT_PIPELINE_OUTPUTS_MAX, &document->outputs,
                         &document->output_count, err));
        return document->output_count > 0
                   ? ST_OK
                   : json_fail(r->in, err, ST_INVALID,
                               "expected one result or more; without \"outputs\" the pipeline has "
                               "those of its last step");
    }
    return is_passed_over(key)
               ? json_skip(r->in, err)
               : refuse_member(r, key, "inputs, steps, outputs or description", err);
}

static enum status read_document(struct reader *r, struct error *err)
{
    struct json_string key;
    TRY(json_object(r->in, err));
    while (true) {
        TRY(json_member(r->in, &key, err));
        if (r->in->is_closed) {
            break;
        }
        TRY(read_member(r, &key, err));
    }
    return r->document->steps ? ST_OK : json_fail(r->in, err, ST_INVALID, "expected steps");
}

enum status pipelines_read(struct json *in, struct arena *arena, struct pipelines_document *out,
                           struct error *err)
{
    struct reader *r = calloc(1, sizeof(*r));
    if (!r) {
        return exhausted(err);
    }
    *out = (struct pipelines_document){.input_count = 0};
    r->in = in;
    r->arena = arena;
    r->document = out;
    enum status status = read_document(r, err);
    free(r);
    return status;
}
