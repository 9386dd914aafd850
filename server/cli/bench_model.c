/* SPDX-License-Identifier: MIT */
/* Members that are not known are passed over: servers have their own. */
#include "config.h"

#include "server/cli/bench_model.h"

#include <stdio.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/cli/transfer.h"

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

/* ---- a model --------------------------------------------------------------------------------- */

void bench_model_init(struct bench_model *model, const struct cli_remote *remote)
{
    must(remote->io_count <= CLI_REMOTE_TENSORS_MAX);
    model->input_count = remote->io_count;
    for (uint32_t i = 0; i < remote->io_count; i++) {
        const struct cli_io *io = &remote->ios[i];
        struct bench_input *input = &model->inputs[i];
        *input = (struct bench_input){
            .name = io->name,
            .is_bytes = io->kind == PTED_KIND_STRING,
            .dtype = io->dtype,
            .is_optional = io->is_fixed,
            .shape = io->shape,
            .example = remote->examples[i],
        };
        for (uint8_t d = 0; d < input->shape.rank; d++) {
            input->shape.dims[d] = cli_io_is_dynamic(io, d) ? -1 : input->shape.dims[d];
        }
    }
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
        {"decode", {NULL, &stats->decode_ns}},
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
    TRY(read_all(text, read_stats_member, out, "statistics of the model", err));
    out->prepare_ns -= out->decode_ns < out->prepare_ns ? out->decode_ns : out->prepare_ns;
    return ST_OK;
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
        .decode_ns = growth(before->decode_ns, after->decode_ns),
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
