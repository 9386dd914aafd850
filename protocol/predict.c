/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/predict.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/call_priv.h"
#include "protocol/json_priv.h"
#include "protocol/tensor_text.h"

/* ---- requests -------------------------------------------------------------------------------- */

struct predict_parser {
    struct call_parser p;
    const struct predict_names *names;
    bool has_values; /* "instances" or "inputs" has been read */
};

static enum status read_input(struct predict_parser *r, uint32_t index)
{
    struct call_parser *p = &r->p;
    must(index < p->method->input_count);
    if (p->leaves[index].encoding != CALL_ABSENT) {
        return json_fail(&p->in, p->err, ST_INVALID, "this input is given twice");
    }
    return call_read_leaf(p, call_find_leaf(p->method, index));
}

/* An input that has to be given. */
static bool is_wanted(const struct call_io *io)
{
    return io->kind != CALL_NONE && !io->fixed && !io->is_filled;
}

/* The only input that has to be given; false: there are more, or none. */
static bool find_only(const struct call_method *method, uint32_t *out_index, uint32_t *out_count)
{
    *out_count = 0;
    for (uint32_t i = 0; i < method->input_count; i++) {
        if (is_wanted(&method->inputs[i])) {
            *out_index = i;
            (*out_count)++;
        }
    }
    return *out_count == 1;
}

static enum status read_only_input(struct predict_parser *r)
{
    uint32_t index, count;
    if (!find_only(r->p.method, &index, &count)) {
        return json_fail(&r->p.in, r->p.err, ST_INVALID,
                         "the model has %u inputs, expected \"inputs\": {\"NAME\": ...} or "
                         "\"instances\": [{\"NAME\": ...}]",
                         count);
    }
    return read_input(r, index);
}

/* {"a": [1, 2], "b": 0}: row |row| of the inputs that it names. */
static enum status read_row(struct predict_parser *r, uint32_t row)
{
    struct call_parser *p = &r->p;
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        uint32_t index;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        if (!r->names->find(r->names->user, key.raw, &index, p->err)) {
            return error_prefix(p->err, "instances[%" PRIu32 "]: ", row);
        }
        must(index < p->method->input_count);
        TRY(call_read_row(p, call_find_leaf(p->method, index), row));
    }
}

static enum status read_rows(struct predict_parser *r)
{
    struct call_parser *p = &r->p;
    uint32_t rows = 0;
    TRY(json_array(&p->in, p->err));
    while (true) {
        TRY(json_element(&p->in, p->err));
        if (p->in.is_closed) {
            break;
        }
        TRY(read_row(r, rows));
        rows++;
    }
    for (uint32_t i = 0; i < p->method->input_count; i++) {
        if (p->leaves[i].item_count > 0) {
            TRY(call_finish_rows(p, call_find_leaf(p->method, i), rows));
        }
    }
    return ST_OK;
}

/* Are the elements of the array that comes next objects by name? A file is an object, too. */
static bool has_named_rows(struct predict_parser *r)
{
    const struct json *in = &r->p.in;
    uint32_t index, count;
    if (json_peek(&r->p.in) != JSON_ARRAY || call_first_of_array(in) != '{') {
        return false;
    }
    if (!find_only(r->p.method, &index, &count) || r->p.method->inputs[index].medium != CALL_FILE) {
        return true;
    }
    const uint8_t *at = memchr(in->at, '{', (size_t)(in->end - in->at));
    return !json_begins_with(at, in->end, "b64") && !json_begins_with(at, in->end, "base64") &&
           !json_begins_with(at, in->end, "binary_data_size");
}

static enum status read_named_inputs(struct predict_parser *r)
{
    struct call_parser *p = &r->p;
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        uint32_t index;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        if (!r->names->find(r->names->user, key.raw, &index, p->err)) {
            return error_prefix(p->err, "inputs: ");
        }
        TRY(read_input(r, index));
    }
}

static enum status read_member(struct predict_parser *r, const struct json_string *key,
                               bool *are_rows)
{
    struct call_parser *p = &r->p;
    bool is_column = json_string_is(key, "inputs");
    if (json_string_is(key, "parameters")) {
        return oip_read_parameters(&p->reader, &p->parameters);
    }
    if (json_string_is(key, "signature_name")) {
        return json_skip(&p->in, p->err);
    }
    if (!is_column && !json_string_is(key, "instances")) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "unknown member, expected instances, inputs or parameters");
    }
    if (r->has_values) {
        return json_fail(&p->in, p->err, ST_INVALID, "expected instances or inputs, got both");
    }
    r->has_values = true;
    *are_rows = !is_column;
    p->in.indexed_depth = JSON_LEVELS_MAX;
    TRY(is_column && json_peek(&p->in) == JSON_OBJECT ? read_named_inputs(r)
        : !is_column && has_named_rows(r)             ? read_rows(r)
                                                      : read_only_input(r));
    p->in.indexed_depth = 0;
    return ST_OK;
}

enum status predict_parse(const struct oip_body *body, const struct call_method *method,
                          const struct predict_names *names, const struct call_limits *limits,
                          struct arena *arena, struct call_request *out, struct error *err)
{
    struct predict_parser r; /* no initialiser: it would clear the reader's tables too */
    bool are_rows = false;
    r.names = names;
    r.has_values = false;
    call_parser_init(&r.p, body, method, limits, arena, err);
    if (!r.p.leaves) {
        return arena_fail(arena, "the request", err);
    }
    TRY(json_object(&r.p.in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&r.p.in, &key, err));
        if (r.p.in.is_closed) {
            break;
        }
        TRY(read_member(&r, &key, &are_rows));
    }
    TRY(json_end(&r.p.in, err));
    if (!r.has_values && method->input_count > 0) {
        return error_set(err, ST_INVALID, "member \"instances\" or \"inputs\" is missing");
    }
    TRY(call_check_missing(&r.p));
    TRY(oip_verify_rest(r.p.binary, err));
    *out = (struct call_request){.parameters = r.p.parameters,
                                 .leaves = r.p.leaves,
                                 .outputs = r.p.outputs,
                                 .are_rows = are_rows};
    return ST_OK;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void print_value(const struct predict_result *result, const struct shape *shape,
                        const void *bytes, enum number_nan nan, struct buf *out)
{
    switch (result->io->kind) {
    case CALL_NONE:
        buf_add_str(out, "null");
        break;
    case CALL_STRING:
        json_print_string(out, result->value.bytes);
        break;
    case CALL_SCALAR:
    case CALL_TENSOR:
        tensor_text_print_nested(out, result->io->dtype, shape, bytes, nan);
        break;
    }
}

/* {"a": ..., "b": ...}: of row |row|, or whole values with -1. */
static void print_object(const struct predict_result *results, size_t count, int64_t row,
                         enum number_nan nan, struct buf *out)
{
    buf_add_char(out, '{');
    for (size_t i = 0; i < count; i++) {
        struct shape shape = results[i].value.shape;
        const uint8_t *bytes = results[i].value.bytes.ptr;
        if (row >= 0) {
            shape.rank--;
            for (uint8_t d = 0; d < shape.rank; d++) {
                shape.dims[d] = shape.dims[d + 1];
            }
            bytes += (size_t)(row * shape_numel(&shape)) * dtype_bytes(results[i].io->dtype);
        }
        buf_add_str(out, i ? "," : "");
        json_print_string(out, span_str(results[i].name));
        buf_add_char(out, ':');
        print_value(&results[i], &shape, bytes, nan, out);
    }
    buf_add_char(out, '}');
}

/* The number of rows that all results have; -1: they differ, or some have none. */
static int64_t count_rows(const struct predict_result *results, size_t count)
{
    int64_t rows = -1;
    for (size_t i = 0; i < count; i++) {
        const struct shape *shape = &results[i].value.shape;
        if (results[i].io->kind != CALL_TENSOR || shape->rank == 0 ||
            (i > 0 && shape->dims[0] != rows)) {
            return -1;
        }
        rows = shape->dims[0];
    }
    return rows;
}

void predict_print(const struct predict_result *results, size_t count, bool are_rows,
                   enum number_nan nan, struct buf *out)
{
    int64_t rows = are_rows && count > 1 ? count_rows(results, count) : -1;
    buf_add_str(out, "\"predictions\":");
    if (count == 1) {
        print_value(&results[0], &results[0].value.shape, results[0].value.bytes.ptr, nan, out);
    } else if (rows < 0) {
        print_object(results, count, -1, nan, out);
    } else {
        buf_add_char(out, '[');
        for (int64_t row = 0; row < rows && !buf_failed(out); row++) {
            buf_add_str(out, row ? "," : "");
            print_object(results, count, row, nan, out);
        }
        buf_add_char(out, ']');
    }
}
