/* SPDX-License-Identifier: MIT */
/* The lists of inputs and outputs in the envelope of a request. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "protocol/oip_priv.h"

/* The members that an input had, and the text of its data. */
struct input_members {
    bool has_name, has_shape, has_datatype;
    struct span text;
};

enum status oip_read_shape(struct json *in, struct shape *out, struct error *err)
{
    *out = (struct shape){.rank = 0};
    TRY(json_array(in, err));
    while (true) {
        int64_t dim;
        TRY(json_element(in, err));
        if (in->is_closed) {
            return ST_OK;
        }
        TRY(json_read_i64(in, &dim, err));
        if (dim < 0) {
            return json_fail(in, err, ST_INVALID, "expected 0 or more, got %" PRId64, dim);
        }
        if (out->rank == SHAPE_RANK_MAX) {
            return json_fail(in, err, ST_TOO_LARGE, "more than %d dims", SHAPE_RANK_MAX);
        }
        out->dims[out->rank++] = dim;
    }
}

static enum status parse_datatype(struct oip_parser *p, struct oip_type *type)
{
    struct json_string text;
    TRY(json_read_string(&p->in, &text, p->err));
    type->is_bytes = json_string_is(&text, "BYTES");
    if (!type->is_bytes && !dtype_from_oip(text.raw, &type->dtype)) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "unknown datatype \"%.*s\", expected one like FP32, INT64, BOOL or BYTES",
                         text.raw.len > 32 ? 32 : (int)text.raw.len, (const char *)text.raw.ptr);
    }
    return ST_OK;
}

/* Reads a parameter of shared memory; skips parameters without a meaning here. */
static enum status pass_parameter(const struct oip_reader *r, const struct json_string *key,
                                  struct oip_shared *shared)
{
    bool is_read;
    TRY(oip_read_shared(r, key, shared, &is_read));
    return is_read ? ST_OK : json_skip(r->in, r->err);
}

enum status oip_read_input_parameters(const struct oip_reader *r, struct oip_request_input *input)
{
    if (oip_take_null(r)) {
        return ST_OK;
    }
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "binary_data_size")) {
            uint64_t bytes;
            TRY(json_read_u64(r->in, &bytes, r->err));
            if (bytes > SIZE_MAX) {
                return json_fail(r->in, r->err, ST_TOO_LARGE, "%" PRIu64 " bytes", bytes);
            }
            input->is_binary = true;
            input->data.len = (size_t)bytes;
            continue;
        }
        bool is_read;
        TRY(oip_read_layout(r->in, &key, &input->layout, &is_read, r->err));
        if (!is_read) {
            TRY(pass_parameter(r, &key, &input->shared));
        }
    }
}

static enum status parse_input_member(struct oip_parser *p, const struct json_string *key,
                                      struct oip_request_input *input,
                                      struct input_members *members)
{
    if (json_string_is(key, "name")) {
        members->has_name = true;
        return oip_read_string(&p->reader, &input->name);
    }
    if (json_string_is(key, "shape")) {
        members->has_shape = true;
        return oip_read_shape(&p->in, &input->shape, p->err);
    }
    if (json_string_is(key, "datatype")) {
        members->has_datatype = true;
        return parse_datatype(p, &input->type);
    }
    if (json_string_is(key, "data")) {
        return json_array_text(&p->in, &members->text, p->err);
    }
    if (json_string_is(key, "parameters")) {
        return oip_read_input_parameters(&p->reader, input);
    }
    if (json_string_is(key, "$from")) {
        input->is_promise = true;
        return oip_read_promise(&p->reader, &input->promise);
    }
    return json_skip(&p->in, p->err);
}

/* An input without data needs only a name; if it has a type or a shape, they are compared. */
static enum status check_promise(struct oip_parser *p, struct oip_request_input *input,
                                 const struct input_members *members)
{
    if (members->text.ptr || input->is_binary || input->layout.is_given || input->shared.is_given) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "has both \"$from\" and data of its own, expected one");
    }
    input->promise.has_type = members->has_datatype;
    input->promise.has_shape = members->has_shape;
    return members->has_name ? ST_OK
                             : json_fail(&p->in, p->err, ST_INVALID, "member \"name\" is missing");
}

/* A tensor in shared memory is like a binary one whose bytes come from elsewhere. */
static enum status settle_shared(struct oip_parser *p, struct oip_request_input *input,
                                 const struct input_members *members)
{
    TRY(oip_check_shared(&p->reader, &input->shared));
    if (members->text.ptr || input->is_binary || input->layout.is_given) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "has both \"shared_memory_region\" and data of its own, expected one");
    }
    if (input->shared.bytes > SIZE_MAX) {
        return json_fail(&p->in, p->err, ST_TOO_LARGE, "%" PRIu64 " bytes", input->shared.bytes);
    }
    input->is_binary = true;
    input->data.len = (size_t)input->shared.bytes;
    return ST_OK;
}

static enum status parse_input(struct oip_parser *p, struct oip_request_input *input)
{
    struct input_members members = {.has_name = false};
    TRY(json_object(&p->in, p->err));
    while (true) {
        struct json_string key;
        TRY(json_member(&p->in, &key, p->err));
        if (p->in.is_closed) {
            break;
        }
        TRY(parse_input_member(p, &key, input, &members));
    }
    if (input->is_promise) {
        return check_promise(p, input, &members);
    }
    if (!members.has_name || !members.has_shape || (!members.has_datatype && !p->is_shapes_only)) {
        return json_fail(&p->in, p->err, ST_INVALID, "member \"%s\" is missing",
                         !members.has_name    ? "name"
                         : !members.has_shape ? "shape"
                                              : "datatype");
    }
    if (input->shared.is_given && !p->is_shapes_only) {
        return settle_shared(p, input, &members);
    }
    if (members.text.ptr && input->is_binary) {
        return json_fail(&p->in, p->err, ST_INVALID,
                         "has both \"data\" and \"binary_data_size\", expected one");
    }
    if (members.text.ptr) {
        input->data = members.text;
    }
    return ST_OK;
}

struct oip_request_input *oip_add_input(struct arena *arena, struct oip_request *request)
{
    struct oip_request_input *grown =
        oip_grow(arena, request->inputs, request->input_count, sizeof(*grown));
    if (!grown) {
        return NULL;
    }
    request->inputs = grown;
    struct oip_request_input *input = &grown[request->input_count];
    *input = (struct oip_request_input){.index = request->input_count++};
    return input;
}

enum status oip_parse_inputs(struct oip_parser *p)
{
    struct oip_request *request = p->request;
    TRY(json_array(&p->in, p->err));
    while (true) {
        TRY(json_element(&p->in, p->err));
        if (p->in.is_closed) {
            return ST_OK;
        }
        if (request->input_count == p->limits->inputs_max) {
            return json_fail(&p->in, p->err, ST_TOO_LARGE, OIP_MANY_INPUTS,
                             p->limits->inputs_max);
        }
        struct oip_request_input *input = oip_add_input(p->arena, request);
        if (!input) {
            return arena_fail(p->arena, "the request", p->err);
        }
        TRY(parse_input(p, input));
    }
}

/* true, false, or "json". */
static enum status read_answer(const struct oip_reader *r, struct oip_request_output *output)
{
    struct json_string word;
    if (json_peek(r->in) != JSON_STRING) {
        return json_read_bool(r->in, &output->wants_answer, r->err);
    }
    TRY(json_read_string(r->in, &word, r->err));
    output->wants_answer = output->wants_json = json_string_is(&word, "json");
    return output->wants_json
               ? ST_OK
               : json_fail(r->in, r->err, ST_INVALID, "expected true, false or \"json\"");
}

enum status oip_read_output_parameters(const struct oip_reader *r,
                                       struct oip_request_output *output)
{
    if (oip_take_null(r)) {
        return ST_OK;
    }
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (json_string_is(&key, "binary_data")) {
            TRY(json_read_bool(r->in, &output->is_binary, r->err));
            output->has_form = true;
        } else if (json_string_is(&key, "classification")) {
            uint64_t count;
            TRY(json_read_u64(r->in, &count, r->err));
            if (count > UINT32_MAX) {
                return json_fail(r->in, r->err, ST_TOO_LARGE, "%" PRIu64 " classes", count);
            }
            output->class_count = (uint32_t)count;
        } else if (json_string_is(&key, "order")) {
            TRY(oip_read_order(r->in, &output->is_channels_last, r->err));
            output->has_order = true;
        } else if (json_string_is(&key, "answer")) {
            TRY(read_answer(r, output));
        } else {
            TRY(pass_parameter(r, &key, &output->shared));
        }
    }
}

static enum status read_output_member(const struct oip_reader *r, const struct json_string *key,
                                      bool *has_name, struct oip_request_output *output)
{
    if (json_string_is(key, "name")) {
        *has_name = true;
        return oip_read_string(r, &output->name);
    }
    if (json_string_is(key, "parameters")) {
        return oip_read_output_parameters(r, output);
    }
    if (json_string_is(key, "shape") && r->takes_extents) {
        output->has_shape = !oip_take_null(r);
        return output->has_shape ? oip_read_shape(r->in, &output->shape, r->err) : ST_OK;
    }
    return json_skip(r->in, r->err);
}

static enum status read_output(const struct oip_reader *r, struct oip_request_output *output)
{
    bool has_name = false;
    TRY(json_object(r->in, r->err));
    while (true) {
        struct json_string key;
        TRY(json_member(r->in, &key, r->err));
        if (r->in->is_closed) {
            break;
        }
        TRY(read_output_member(r, &key, &has_name, output));
    }
    return has_name ? oip_check_output(r, output)
                    : json_fail(r->in, r->err, ST_INVALID, "member \"name\" is missing");
}

enum status oip_check_output(const struct oip_reader *r, const struct oip_request_output *output)
{
    if (output->shared.is_given && output->class_count) {
        return json_fail(r->in, r->err, ST_INVALID,
                         "has both \"shared_memory_region\" and \"classification\", expected one");
    }
    if (output->wants_answer && (output->shared.is_given || output->class_count)) {
        return json_fail(r->in, r->err, ST_INVALID, "has \"answer\" beside \"%s\", expected one",
                         output->class_count ? "classification" : "shared_memory_region");
    }
    const char *beside = output->class_count       ? "classification"
                         : output->wants_answer    ? "answer"
                         : output->shared.is_given ? "shared_memory_region"
                                                   : NULL;
    if (output->is_channels_last && beside) {
        return json_fail(r->in, r->err, ST_INVALID, "has \"order\" beside \"%s\", expected one",
                         beside);
    }
    return oip_check_shared(r, &output->shared);
}

/* A repeated name is merged into its first entry; the tensor and the answer are two outputs. */
static bool is_listed(const struct oip_outputs *outputs, const struct oip_request_output *wanted)
{
    for (size_t i = 0; i < outputs->count; i++) {
        const struct oip_request_output *item = &outputs->items[i];
        if (span_equal(item->name, wanted->name) && item->wants_answer == wanted->wants_answer) {
            return true;
        }
    }
    return false;
}

enum status oip_add_output(const struct oip_reader *r, const struct oip_request_output *output,
                           struct oip_outputs *out)
{
    if (is_listed(out, output)) {
        return ST_OK;
    }
    struct oip_request_output *grown = oip_grow(r->arena, out->items, out->count, sizeof(*grown));
    if (!grown) {
        return arena_fail(r->arena, "the request", r->err);
    }
    out->items = grown;
    out->items[out->count++] = *output;
    return ST_OK;
}

enum status oip_read_outputs(const struct oip_reader *r, struct oip_outputs *out)
{
    size_t listed_count = 0;
    if (oip_take_null(r)) {
        return ST_OK;
    }
    TRY(json_array(r->in, r->err));
    while (true) {
        TRY(json_element(r->in, r->err));
        if (r->in->is_closed) {
            return ST_OK;
        }
        if (listed_count++ == r->limits->outputs_max) {
            return json_fail(r->in, r->err, ST_TOO_LARGE, OIP_MANY_OUTPUTS,
                             r->limits->outputs_max);
        }
        struct oip_request_output output = {.index = listed_count - 1};
        TRY(read_output(r, &output));
        TRY(oip_add_output(r, &output, out));
    }
}
