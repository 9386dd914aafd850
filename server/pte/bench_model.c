/* SPDX-License-Identifier: MIT */
/* Members that are not known are passed over: servers have their own. */
#include "config.h"

#include "server/pte/bench_model.h"

#include <stdio.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/pte/transfer.h"

#define SHOWN_MAX 40 /* bytes of a text of the server in a line of ours */

/* Reads the value of a member of an object into |own|, or passes over it. */
typedef enum status read_member_f(struct json *in, const struct json_string *key, void *own,
                                  struct error *err);

static enum status read_object(struct json *in, read_member_f *read, void *own, struct error *err)
{
    struct json_string key;
    TRY(json_object(in, err));
    while (true) {
        TRY(json_member(in, &key, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(read(in, &key, own, err));
    }
}

/* The whole text is one object. */
static enum status read_all(struct span text, read_member_f *read, void *own, const char *what,
                            struct error *err)
{
    struct json in;
    json_init(&in, text);
    enum status status = read_object(&in, read, own, err);
    if (status == ST_OK) {
        status = json_end(&in, err);
    }
    if (status != ST_OK) {
        err->code = ST_CORRUPT; /* it is the server's fault, not that of an option */
        return error_prefix(err, "%s: ", what);
    }
    return ST_OK;
}

static enum status read_text(struct json *in, char *out, size_t size, struct error *err)
{
    struct json_string text;
    TRY(json_read_string(in, &text, err));
    if (text.bytes >= size) {
        return json_fail(in, err, ST_CORRUPT, "expected at most %zu bytes", size - 1);
    }
    json_string_decode(&text, (uint8_t *)out);
    out[text.bytes] = '\0';
    return ST_OK;
}

/* ---- a model --------------------------------------------------------------------------------- */

static enum status read_shape(struct json *in, struct shape *out, struct error *err)
{
    *out = (struct shape){0};
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (out->rank == SHAPE_RANK_MAX) {
            return json_fail(in, err, ST_CORRUPT, "expected at most %d dims", SHAPE_RANK_MAX);
        }
        int64_t *dim = &out->dims[out->rank++];
        TRY(json_read_i64(in, dim, err));
        if (*dim < -1) {
            return json_fail(in, err, ST_CORRUPT, "expected a dim or -1");
        }
    }
}

static enum status read_type(struct json *in, struct bench_input *input, struct error *err)
{
    char name[16];
    TRY(read_text(in, name, sizeof(name), err));
    input->is_bytes = strcmp(name, "BYTES") == 0;
    if (!input->is_bytes &&
        (!dtype_from_oip(span_str(name), &input->dtype) || !dtype_is_public(input->dtype))) {
        return json_fail(in, err, ST_CORRUPT, "expected a datatype of the protocol");
    }
    return ST_OK;
}

/* The name is shown on terminals, and no model needs control characters in it. */
static enum status read_name(struct json *in, struct bench_input *input, struct error *err)
{
    TRY(read_text(in, input->name, sizeof(input->name), err));
    const uint8_t *at = (const uint8_t *)input->name;
    for (; *at; at++) {
        if (*at < ' ' || *at == 0x7f || (*at == 0xc2 && at[1] < 0xa0)) {
            return json_fail(in, err, ST_CORRUPT, "a control character in a name");
        }
    }
    return ST_OK;
}

static enum status read_input_member(struct json *in, const struct json_string *key, void *own,
                                     struct error *err)
{
    struct bench_input *input = own;
    if (json_string_is(key, "name")) {
        return read_name(in, input, err);
    }
    if (json_string_is(key, "datatype")) {
        return read_type(in, input, err);
    }
    if (json_string_is(key, "shape")) {
        return read_shape(in, &input->shape, err);
    }
    if (json_string_is(key, "example_shape")) {
        input->has_example = true;
        return read_shape(in, &input->example, err);
    }
    if (json_string_is(key, "optional")) {
        return json_read_bool(in, &input->is_optional, err);
    }
    return json_skip(in, err);
}

static enum status read_inputs(struct json *in, struct bench_model *model, struct error *err)
{
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        if (model->input_count == BENCH_INPUTS_MAX) {
            return json_fail(in, err, ST_CORRUPT, "expected at most %d inputs", BENCH_INPUTS_MAX);
        }
        TRY(read_object(in, read_input_member, &model->inputs[model->input_count++], err));
    }
}

static enum status read_model_member(struct json *in, const struct json_string *key, void *own,
                                     struct error *err)
{
    return json_string_is(key, "inputs") ? read_inputs(in, own, err) : json_skip(in, err);
}

enum status bench_model_read(struct span text, struct bench_model *model, struct error *err)
{
    TRY(read_all(text, read_model_member, model, "metadata of the model", err));
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (!model->inputs[i].name[0]) {
            return error_set(err, ST_CORRUPT, "metadata of the model: input %u has no name", i);
        }
    }
    return ST_OK;
}

static enum status read_config_member(struct json *in, const struct json_string *key, void *own,
                                      struct error *err)
{
    struct bench_model *model = own;
    int64_t rows_max;
    if (!json_string_is(key, "max_batch_size")) {
        return json_skip(in, err);
    }
    TRY(json_read_i64(in, &rows_max, err));
    model->has_rows = rows_max > 0;
    return ST_OK;
}

enum status bench_model_read_config(struct span text, struct bench_model *model, struct error *err)
{
    return read_all(text, read_config_member, model, "configuration of the model", err);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static enum status add_number(struct json *in, uint64_t *sum, struct error *err)
{
    uint64_t value;
    TRY(json_read_u64(in, &value, err));
    *sum += value;
    return ST_OK;
}

struct phase {
    uint64_t *count, *ns; /* NULL: not wanted */
};

static enum status read_phase_member(struct json *in, const struct json_string *key, void *own,
                                     struct error *err)
{
    const struct phase *phase = own;
    if (phase->count && json_string_is(key, "count")) {
        return add_number(in, phase->count, err);
    }
    if (phase->ns && json_string_is(key, "ns")) {
        return add_number(in, phase->ns, err);
    }
    return json_skip(in, err);
}

static enum status read_phases_member(struct json *in, const struct json_string *key, void *own,
                                      struct error *err)
{
    struct bench_stats *stats = own;
    const struct {
        const char *name;
        struct phase phase;
    } rows[] = {
        {"success", {&stats->requests, &stats->total_ns}},
        {"fail", {&stats->failed, NULL}},
        {"queue", {NULL, &stats->queue_ns}},
        {"compute_input", {NULL, &stats->prepare_ns}},
        {"compute_infer", {NULL, &stats->compute_ns}},
        {"compute_output", {NULL, &stats->encode_ns}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct phase phase = rows[i].phase;
        if (json_string_is(key, rows[i].name)) {
            return read_object(in, read_phase_member, &phase, err);
        }
    }
    return json_skip(in, err);
}

static enum status read_row_member(struct json *in, const struct json_string *key, void *own,
                                   struct error *err)
{
    struct bench_stats *stats = own;
    if (json_string_is(key, "inference_count")) {
        return add_number(in, &stats->inferences, err);
    }
    if (json_string_is(key, "execution_count")) {
        return add_number(in, &stats->executions, err);
    }
    return json_string_is(key, "inference_stats") ? read_object(in, read_phases_member, own, err)
                                                  : json_skip(in, err);
}

static enum status read_stats_member(struct json *in, const struct json_string *key, void *own,
                                     struct error *err)
{
    if (!json_string_is(key, "model_stats")) {
        return json_skip(in, err);
    }
    TRY(json_array(in, err));
    while (true) {
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(read_object(in, read_row_member, own, err));
    }
}

enum status bench_stats_read(struct span text, struct bench_stats *out, struct error *err)
{
    *out = (struct bench_stats){0};
    return read_all(text, read_stats_member, out, "statistics of the model", err);
}

static uint64_t growth(uint64_t before, uint64_t after)
{
    return after > before ? after - before : 0;
}

struct bench_stats bench_stats_between(const struct bench_stats *before,
                                       const struct bench_stats *after)
{
    return (struct bench_stats){
        .inferences = growth(before->inferences, after->inferences),
        .executions = growth(before->executions, after->executions),
        .requests = growth(before->requests, after->requests),
        .failed = growth(before->failed, after->failed),
        .total_ns = growth(before->total_ns, after->total_ns),
        .prepare_ns = growth(before->prepare_ns, after->prepare_ns),
        .queue_ns = growth(before->queue_ns, after->queue_ns),
        .compute_ns = growth(before->compute_ns, after->compute_ns),
        .encode_ns = growth(before->encode_ns, after->encode_ns),
    };
}

/* ---- the server ------------------------------------------------------------------------------ */

struct server {
    struct json_string name, version;
};

static enum status read_server_member(struct json *in, const struct json_string *key, void *own,
                                      struct error *err)
{
    struct server *server = own;
    if (json_string_is(key, "name")) {
        return json_read_string(in, &server->name, err);
    }
    return json_string_is(key, "version") ? json_read_string(in, &server->version, err)
                                          : json_skip(in, err);
}

enum status bench_server_read(struct span text, char out[BENCH_SERVER_MAX], struct error *err)
{
    struct server server = {.name = {.bytes = 0}};
    TRY(read_all(text, read_server_member, &server, "GET /v2", err));
    struct buf shown;
    out[0] = '\0';
    if (server.name.bytes == 0) {
        return ST_OK;
    }
    buf_init(&shown, BENCH_SERVER_MAX);
    transfer_show(server.name.raw, SHOWN_MAX, &shown);
    buf_add_char(&shown, ' ');
    transfer_show(server.version.raw, SHOWN_MAX, &shown);
    snprintf(out, BENCH_SERVER_MAX, "%.*s", SPAN_FMT(buf_span(&shown)));
    buf_fini(&shown);
    return ST_OK;
}
