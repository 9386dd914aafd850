/* SPDX-License-Identifier: MIT */
/* The answer to a call. It is read as a stream, since it may have millions of numbers. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "protocol/json.h"
#include "protocol/tensor_text.h"
#include "server/cli/remote.h"

#define PIECE_BYTES_MAX (64 << 10) /* of a name or a type in JSON */

/* An output as the JSON describes it. */
struct output {
    const char *name, *type; /* in the arena; NULL: not given */
    struct shape shape;
    bool has_shape, has_data, is_binary;
    struct span data;      /* JSON */
    uint64_t binary_bytes; /* bytes behind the JSON */
};

struct answer {
    struct cli_remote *remote;
    struct json in;
    struct span rest; /* bytes behind the JSON that no result has taken */
};

static enum status no_memory(const struct answer *a, struct error *err)
{
    return arena_fail(&a->remote->answer, "the results", err);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* A terminated copy of a string without controls. */
static enum status read_text(struct answer *a, const char **out, struct error *err)
{
    struct json_string string;
    TRY(json_read_string(&a->in, &string, err));
    uint8_t *text =
        string.bytes <= PIECE_BYTES_MAX ? arena_alloc(&a->remote->answer, string.bytes + 1) : NULL;
    if (string.bytes <= PIECE_BYTES_MAX && !text) {
        return no_memory(a, err);
    }
    if (text) {
        json_string_decode(&string, text);
    }
    if (!text || !cli_remote_is_name(span_of(text, string.bytes))) {
        return json_fail(&a->in, err, ST_INVALID,
                         "expected a name of 1 to %d bytes without control characters",
                         TARGET_NAME_MAX);
    }
    *out = (const char *)text;
    return ST_OK;
}

static enum status read_shape(struct answer *a, struct shape *out, struct error *err)
{
    TRY(json_array(&a->in, err));
    while (true) {
        uint64_t dim;
        TRY(json_element(&a->in, err));
        if (a->in.is_closed) {
            return ST_OK;
        }
        TRY(json_read_u64(&a->in, &dim, err));
        if (out->rank == SHAPE_RANK_MAX || dim > INT64_MAX) {
            return json_fail(&a->in, err, ST_INVALID, "expected at most %d dims below 2^63",
                             SHAPE_RANK_MAX);
        }
        out->dims[out->rank++] = (int64_t)dim;
    }
}

static enum status read_parameters(struct answer *a, struct output *out, struct error *err)
{
    struct json_string key;
    TRY(json_object(&a->in, err));
    while (true) {
        TRY(json_member(&a->in, &key, err));
        if (a->in.is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "binary_data_size")) {
            out->is_binary = true;
            TRY(json_read_u64(&a->in, &out->binary_bytes, err));
        } else {
            TRY(json_skip(&a->in, err));
        }
    }
}

static enum status read_member(struct answer *a, const struct json_string *key, struct output *out,
                               struct error *err)
{
    if (json_string_is(key, "name")) {
        return read_text(a, &out->name, err);
    }
    if (json_string_is(key, "datatype")) {
        return read_text(a, &out->type, err);
    }
    if (json_string_is(key, "shape")) {
        out->has_shape = true;
        return read_shape(a, &out->shape, err);
    }
    if (json_string_is(key, "parameters") && json_peek(&a->in) == JSON_OBJECT) {
        return read_parameters(a, out, err);
    }
    if (json_string_is(key, "data") && json_peek(&a->in) == JSON_ARRAY) {
        out->has_data = true;
        return json_array_text(&a->in, &out->data, err);
    }
    return json_skip(&a->in, err);
}

/* ---- content --------------------------------------------------------------------------------- */

/* The bytes that belong to |out|; all of them have come. */
static enum status take_bytes(struct answer *a, const struct output *out, struct span *bytes,
                              struct error *err)
{
    if (out->binary_bytes > a->rest.len) {
        return error_set(err, ST_CORRUPT,
                         "output '%.64s': binary_data_size is %llu, but only %zu bytes are left",
                         out->name, (unsigned long long)out->binary_bytes, a->rest.len);
    }
    size_t len = (size_t)out->binary_bytes;
    *bytes = span_of(a->rest.ptr, len);
    a->rest = len < a->rest.len ? span_of(a->rest.ptr + len, a->rest.len - len) : span_of(NULL, 0);
    return ST_OK;
}

static enum status fill_tensor(struct answer *a, const struct output *out,
                               struct cli_result *result, struct error *err)
{
    size_t bytes;
    struct tensor_nan nan = {.takes_null = true};
    TRY(shape_bytes(&out->shape, result->dtype, &bytes, err));
    if (out->is_binary) {
        TRY(take_bytes(a, out, &result->bytes, err));
        return result->bytes.len == bytes
                   ? ST_OK
                   : error_set(err, ST_CORRUPT,
                               "output '%.64s': expected %zu bytes for its shape, got %zu",
                               out->name, bytes, result->bytes.len);
    }
    size_t count = (size_t)shape_numel(&out->shape);
    if (out->data.len < tensor_text_bytes_min((int64_t)count)) {
        return error_set(err, ST_CORRUPT, "output '%.64s': expected %zu elements for its shape",
                         out->name, count);
    }
    void *memory = arena_alloc(&a->remote->answer, bytes + 1);
    if (!memory) {
        return no_memory(a, err);
    }
    result->bytes = span_of(memory, bytes);
    const struct shape flat = {.rank = 1, .dims = {(int64_t)count}};
    const struct shape *shape = out->shape.rank ? &out->shape : &flat;
    return tensor_text_parse(out->data, result->dtype, shape, &nan, memory, bytes, err) == ST_OK
               ? ST_OK
               : error_prefix(err, "output '%.64s': data", out->name);
}

/* Strings behind their lengths. */
static enum status split_strings(struct answer *a, const struct output *out, size_t count,
                                 struct span **out_strings, struct error *err)
{
    struct span bytes = {NULL, 0};
    size_t at = 0;
    TRY(take_bytes(a, out, &bytes, err));
    if (count > bytes.len / 4) {
        return error_set(err, ST_CORRUPT, "output '%.64s': expected %zu strings, got %zu bytes",
                         out->name, count, bytes.len);
    }
    struct span *strings = arena_array(&a->remote->answer, count + 1, sizeof(*strings));
    if (!strings) {
        return no_memory(a, err);
    }
    for (size_t i = 0; i < count; i++) {
        if (!in_range(at, 4, bytes.len) ||
            !in_range(at + 4, load_le32(bytes.ptr + at), bytes.len)) {
            return error_set(err, ST_CORRUPT, "output '%.64s': string %zu is not whole", out->name,
                             i);
        }
        strings[i] = span_of(bytes.ptr + at + 4, load_le32(bytes.ptr + at));
        at += 4 + strings[i].len;
    }
    *out_strings = strings;
    return at == bytes.len ? ST_OK
                           : error_set(err, ST_CORRUPT, "output '%.64s': %zu bytes too many",
                                       out->name, bytes.len - at);
}

/* An answer for people comes as texts in place of the tensor. */
static void settle_answer(const struct answer *a, struct cli_result *result)
{
    const struct cli_remote_form *form = cli_remote_find_form(a->remote, result->name);
    bool is_asked = form && a->remote->wish != CLI_REMOTE_TENSORS;
    bool is_answer = is_asked && form->kind != ANSWER_CLASSES && result->shape.rank == 1;
    result->answer = is_answer ? form->kind : ANSWER_TENSOR;
}

static enum status fill_strings(struct answer *a, const struct output *out,
                                struct cli_result *result, struct error *err)
{
    size_t count;
    struct span *strings;
    TRY(shape_bytes(&out->shape, DT_U8, &count, err));
    if (out->is_binary) {
        TRY(split_strings(a, out, count, &strings, err));
    } else if (out->data.len < tensor_text_bytes_min((int64_t)count) ||
               tensor_text_parse_strings(out->data, &out->shape, &a->remote->answer, &strings,
                                         err) != ST_OK) {
        return out->data.len < tensor_text_bytes_min((int64_t)count)
                   ? error_set(err, ST_CORRUPT, "output '%.64s': expected %zu strings", out->name,
                               count)
                   : error_prefix(err, "output '%.64s': data", out->name);
    }
    settle_answer(a, result);
    if (count == 1 && out->shape.rank <= 1 && result->answer == ANSWER_TENSOR) {
        result->bytes = strings[0];
    } else {
        result->strings = strings;
    }
    return ST_OK;
}

/* ---- a result -------------------------------------------------------------------------------- */

/* A name from a server must lead nowhere else. */
static const char *file_name(struct answer *a, const char *name)
{
    char *copy = arena_strdup(&a->remote->answer, name, strlen(name));
    for (char *at = copy; at && *at; at++) {
        *at = *at == '/' || (*at == '.' && at == copy) ? '_' : *at;
    }
    return copy;
}

/* A result without dims may be a number, which prints otherwise than a tensor. */
static enum pted_kind kind_of(const struct cli_remote *remote, const struct cli_result *result)
{
    for (uint32_t i = 0; i < remote->result_io_count; i++) {
        const struct cli_io *io = &remote->result_ios[i];
        if (cli_io_is_called(io, span_str(result->name)) && io->dtype == result->dtype &&
            io->kind != PTED_KIND_STRING && result->shape.rank == 0) {
            return io->kind;
        }
    }
    return PTED_KIND_TENSOR;
}

static enum status make_result(struct answer *a, const struct output *out,
                               struct cli_result *result, struct error *err)
{
    bool is_text = out->type && strcmp(out->type, "BYTES") == 0;
    if (!out->name || !out->type || !out->has_shape || !(out->is_binary || out->has_data)) {
        return json_fail(&a->in, err, ST_INVALID,
                         "expected name, datatype, shape, and data or binary_data_size");
    }
    if (!is_text &&
        !(dtype_from_oip(span_str(out->type), &result->dtype) && dtype_is_public(result->dtype))) {
        return json_fail(&a->in, err, ST_UNSUPPORTED, "the element type '%.32s' is not known",
                         out->type);
    }
    result->name = out->name;
    result->file_name = file_name(a, out->name);
    result->shape = out->shape;
    result->kind = is_text ? PTED_KIND_STRING : kind_of(a->remote, result);
    if (!result->file_name) {
        return no_memory(a, err);
    }
    return is_text ? fill_strings(a, out, result, err) : fill_tensor(a, out, result, err);
}

static enum status read_output(struct answer *a, struct cli_result *result, struct error *err)
{
    struct output out = {.name = NULL};
    struct json_string key;
    TRY(json_object(&a->in, err));
    while (true) {
        TRY(json_member(&a->in, &key, err));
        if (a->in.is_closed) {
            return make_result(a, &out, result, err);
        }
        TRY(read_member(a, &key, &out, err));
    }
}

static enum status read_outputs(struct answer *a, struct error *err)
{
    struct cli_remote *remote = a->remote;
    TRY(json_array(&a->in, err));
    while (true) {
        TRY(json_element(&a->in, err));
        if (a->in.is_closed) {
            return ST_OK;
        }
        if (remote->result_count == CLI_REMOTE_TENSORS_MAX) {
            return json_fail(&a->in, err, ST_UNSUPPORTED, "expected at most %d outputs",
                             CLI_REMOTE_TENSORS_MAX);
        }
        TRY(read_output(a, &remote->results[remote->result_count], err));
        remote->result_count++;
    }
}

static enum status read_answer(struct answer *a, struct error *err)
{
    struct json_string key;
    bool has_outputs = false;
    TRY(json_object(&a->in, err));
    while (true) {
        TRY(json_member(&a->in, &key, err));
        if (a->in.is_closed) {
            break;
        }
        if (json_string_is(&key, "outputs")) {
            has_outputs = true;
            TRY(read_outputs(a, err));
        } else {
            TRY(json_skip(&a->in, err));
        }
    }
    TRY(json_end(&a->in, err));
    if (!has_outputs) {
        return error_set(err, ST_CORRUPT, "expected a member 'outputs'");
    }
    return a->rest.len == 0
               ? ST_OK
               : error_set(err, ST_CORRUPT, "%zu bytes behind the last tensor", a->rest.len);
}

enum status cli_remote_read(struct cli_remote *remote, struct error *err)
{
    struct answer a = {.remote = remote};
    struct span json;
    arena_reset(&remote->answer);
    remote->result_count = 0;
    remote->results =
        arena_array(&remote->answer, CLI_REMOTE_TENSORS_MAX, sizeof(*remote->results));
    if (!remote->results) {
        return no_memory(&a, err);
    }
    TRY(transfer_split(&remote->transfer, &json, &a.rest, err));
    json_init(&a.in, json);
    return read_answer(&a, err) == ST_OK
               ? ST_OK
               : cli_remote_blame(remote, (const char *)remote->path.ptr, err);
}
