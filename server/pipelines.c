/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/pipelines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "protocol/json.h"
#include "runtime/pipeline.h"
#include "server/file.h"
#include "server/model.h"

#define FILE_BYTES_MAX (16 << 20)
#define ARENA_BYTES_MAX (4 << 20)

/* One pipeline of the file while it is read; all in |arena|. */
struct reader {
    struct models *models;
    struct arena arena;
    struct json in;
    const char *pipeline; /* its name, for messages */
    struct rt_pipeline_step *steps;
    struct rt_source *outputs;
    uint32_t step_count, output_count;
};

static enum status exhausted(struct error *err)
{
    return error_set(err, ST_EXHAUSTED, "no memory for a pipeline");
}

/* ---- values ---------------------------------------------------------------------------------- */

static enum status keep(struct reader *r, const struct json_string *string, const char **out,
                        struct error *err)
{
    char *text = arena_alloc(&r->arena, string->bytes + 1);
    if (!text) {
        return exhausted(err);
    }
    json_string_decode(string, (uint8_t *)text);
    text[string->bytes] = '\0';
    *out = text;
    return strlen(text) == string->bytes
               ? ST_OK
               : json_fail(&r->in, err, ST_INVALID, "expected text without NUL");
}

static enum status read_text(struct reader *r, const char **out, struct error *err)
{
    struct json_string string;
    TRY(json_read_string(&r->in, &string, err));
    return keep(r, &string, out, err);
}

static enum status read_number(struct reader *r, uint32_t *out, struct error *err)
{
    uint64_t value;
    TRY(json_read_u64(&r->in, &value, err));
    if (value > UINT32_MAX) {
        return json_fail(&r->in, err, ST_INVALID, "expected a number below 2^32");
    }
    *out = (uint32_t)value;
    return ST_OK;
}

/* What is wrong with the text has its place in the text; what is wrong with the graph has this. */
static enum status name_pipeline(const struct reader *r, struct error *err)
{
    return error_prefix(err, "pipeline '%.100s': ", r->pipeline);
}

static enum status refuse_member(struct reader *r, const char *expected, struct error *err)
{
    return json_fail(&r->in, err, ST_INVALID, "unknown member, expected %s", expected);
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* {"input": n}, {"from": step, "output": n}, or null. */
static enum status read_source(struct reader *r, struct rt_source *out, struct error *err)
{
    struct json_string key;
    bool has_input = false, has_from = false, has_output = false;
    uint32_t input = 0;
    *out = (struct rt_source){.kind = RT_SOURCE_NONE};
    if (json_peek(&r->in) == JSON_NULL) {
        return json_read_null(&r->in, err);
    }
    TRY(json_object(&r->in, err));
    while (true) {
        TRY(json_member(&r->in, &key, err));
        if (r->in.is_closed) {
            break;
        }
        if (json_string_is(&key, "input")) {
            has_input = true;
            TRY(read_number(r, &input, err));
        } else if (json_string_is(&key, "from")) {
            has_from = true;
            TRY(read_number(r, &out->step, err));
        } else if (json_string_is(&key, "output")) {
            has_output = true;
            TRY(read_number(r, &out->index, err));
        } else {
            return refuse_member(r, "input, or from and output", err);
        }
    }
    if (has_input == has_from || has_from != has_output) {
        return json_fail(&r->in, err, ST_INVALID, "expected input, or from and output");
    }
    out->kind = has_input ? RT_SOURCE_INPUT : RT_SOURCE_STEP;
    out->index = has_input ? input : out->index;
    return ST_OK;
}

static enum status read_sources(struct reader *r, uint32_t max, struct rt_source **out,
                                uint32_t *out_count, struct error *err)
{
    struct rt_source *sources = arena_array(&r->arena, max, sizeof(*sources));
    uint32_t count = 0;
    if (!sources) {
        return exhausted(err);
    }
    TRY(json_array(&r->in, err));
    while (true) {
        TRY(json_element(&r->in, err));
        if (r->in.is_closed) {
            break;
        }
        if (count == max) {
            return json_fail(&r->in, err, ST_INVALID, "expected at most %u", max);
        }
        TRY(read_source(r, &sources[count++], err));
    }
    *out = sources;
    *out_count = count;
    return ST_OK;
}

/* A method is a model of its own: NAME.METHOD is its name or its alias. */
static const struct model *find_model(const struct reader *r, const char *name, uint32_t version,
                                      const char *method)
{
    char full[2 * ROUTE_MODEL_MAX];
    int len = snprintf(full, sizeof(full), method ? "%s.%s" : "%s", name, method);
    bool fits = len > 0 && (size_t)len < sizeof(full);
    return fits ? models_find_any(r->models, full, version) : NULL;
}

static enum status find_method(struct reader *r, const char *name, uint32_t version,
                               const char *method, struct rt_method **out, struct error *err)
{
    const struct model *found = find_model(r, name, version, method);
    if (!found) {
        return error_set(err, ST_INVALID, "step %u: no model '%s'%s%s%s%s", r->step_count, name,
                         method ? " with a method '" : "", method ? method : "", method ? "'" : "",
                         version ? " of that version" : "");
    }
    if (!model_is_ready(found)) {
        return error_set(err, ST_INVALID, "step %u: model '%s' cannot be called: %s", r->step_count,
                         name, found->failure.text);
    }
    *out = found->method;
    return ST_OK;
}

static enum status read_step(struct reader *r, struct error *err)
{
    struct rt_pipeline_step *step = &r->steps[r->step_count];
    const char *method = NULL;
    struct rt_source *sources = NULL;
    struct json_string key;
    uint32_t version = 0;
    *step = (struct rt_pipeline_step){0};
    TRY(json_object(&r->in, err));
    while (true) {
        TRY(json_member(&r->in, &key, err));
        if (r->in.is_closed) {
            break;
        }
        if (json_string_is(&key, "model")) {
            TRY(read_text(r, &step->name, err));
        } else if (json_string_is(&key, "method")) {
            TRY(read_text(r, &method, err));
        } else if (json_string_is(&key, "version")) {
            TRY(read_number(r, &version, err));
        } else if (json_string_is(&key, "inputs")) {
            TRY(read_sources(r, RT_PIPELINE_INPUTS_MAX, &sources, &step->source_count, err));
        } else {
            return refuse_member(r, "model, version, method or inputs", err);
        }
    }
    if (!step->name || !sources) {
        return json_fail(&r->in, err, ST_INVALID, "expected model and inputs");
    }
    step->sources = sources;
    if (find_method(r, step->name, version, method, &step->method, err) != ST_OK) {
        return name_pipeline(r, err);
    }
    r->step_count++;
    return ST_OK;
}

static enum status read_steps(struct reader *r, struct error *err)
{
    r->steps = arena_array(&r->arena, RT_PIPELINE_STEPS_MAX, sizeof(*r->steps));
    if (!r->steps) {
        return exhausted(err);
    }
    TRY(json_array(&r->in, err));
    while (true) {
        TRY(json_element(&r->in, err));
        if (r->in.is_closed) {
            return ST_OK;
        }
        if (r->step_count == RT_PIPELINE_STEPS_MAX) {
            return json_fail(&r->in, err, ST_INVALID, "expected at most %d steps",
                             RT_PIPELINE_STEPS_MAX);
        }
        TRY(read_step(r, err));
    }
}

/* ---- pipelines ------------------------------------------------------------------------------- */

static enum status read_pipeline(struct reader *r, struct error *err)
{
    struct json_string key;
    r->steps = NULL;
    r->outputs = NULL;
    r->step_count = r->output_count = 0;
    TRY(json_object(&r->in, err));
    while (true) {
        TRY(json_member(&r->in, &key, err));
        if (r->in.is_closed) {
            break;
        }
        if (json_string_is(&key, "steps")) {
            TRY(read_steps(r, err));
        } else if (json_string_is(&key, "outputs")) {
            TRY(read_sources(r, RT_PIPELINE_OUTPUTS_MAX, &r->outputs, &r->output_count, err));
        } else {
            TRY(json_skip(&r->in, err));
        }
    }
    return r->steps ? ST_OK : json_fail(&r->in, err, ST_INVALID, "expected steps");
}

static enum status add_pipeline(struct reader *r, struct error *err)
{
    const struct rt_pipeline_desc desc = {
        .name = r->pipeline,
        .steps = r->steps,
        .step_count = r->step_count,
        .outputs = r->outputs,
        .output_count = r->output_count,
    };
    struct rt_program *program;
    TRY(rt_pipeline_new(&desc, &program, err));
    enum status status = models_add_program(r->models, span_str(r->pipeline), 1, program, err);
    rt_program_unref(program);
    return status;
}

static enum status read_all(struct reader *r, struct error *err)
{
    struct json_string key;
    TRY(json_object(&r->in, err));
    while (true) {
        TRY(json_member(&r->in, &key, err));
        if (r->in.is_closed) {
            return json_end(&r->in, err);
        }
        TRY(keep(r, &key, &r->pipeline, err));
        TRY(read_pipeline(r, err));
        if (add_pipeline(r, err) != ST_OK) {
            return name_pipeline(r, err);
        }
    }
}

enum status pipelines_load(struct models *models, const char *path, struct error *err)
{
    struct buf text;
    buf_init(&text, FILE_BYTES_MAX);
    enum status status = file_read(path, &text, err);
    struct reader *r = status == ST_OK ? calloc(1, sizeof(*r)) : NULL;
    if (status == ST_OK && !r) {
        status = exhausted(err);
    }
    if (status == ST_OK) {
        r->models = models;
        arena_init(&r->arena, ARENA_BYTES_MAX);
        json_init(&r->in, buf_span(&text));
        status = read_all(r, err);
        arena_fini(&r->arena);
    }
    free(r);
    buf_fini(&text);
    return status == ST_OK ? ST_OK : error_prefix(err, "--pipeline %s: ", path);
}
