/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc_infer.h"

#include <string.h>

#include "base/check.h"
#include "protocol/grpc_contents.h"
#include "protocol/grpc_json.h"
#include "protocol/grpc_schema.h"
#include "protocol/json.h"
#include "protocol/oip_priv.h"
#include "protocol/protobuf.h"


#define REQUEST(name) GRPC_NUMBER_ModelInferRequest_##name
#define INPUT(name) GRPC_NUMBER_ModelInferRequest_InferInputTensor_##name
#define OUTPUT(name) GRPC_NUMBER_ModelInferRequest_InferRequestedOutputTensor_##name

struct parser {
    const struct oip_limits *limits;
    struct arena *arena;
    struct oip_request *request;
    struct error *err;
    uint32_t field_count;
    size_t parameter_bytes;
    size_t output_count; /* that the request lists, with those that repeat */
    struct span *raw;    /* raw_input_contents, in the arena */
    size_t raw_count;
};

/* ---- fields ---------------------------------------------------------------------------------- */

/* Finds the next field; false: there is none. A message of very many fields is refused. */
static bool next(struct parser *p, struct protobuf *in, struct protobuf_field *out)
{
    return p->field_count < GRPC_FIELDS_MAX && protobuf_next(in, out) && ++p->field_count;
}

static enum status end_fields(const struct parser *p, const struct protobuf *in,
                              enum grpc_message id)
{
    if (p->field_count == GRPC_FIELDS_MAX) {
        return error_set(p->err, ST_TOO_LARGE, "the message has more than %d fields",
                         GRPC_FIELDS_MAX - 1);
    }
    return in->is_wrong ? grpc_refuse_message(id, p->err) : ST_OK;
}

static enum status refuse_type(const struct parser *p, const struct protobuf_field *field,
                               const char *where)
{
    return error_set(p->err, ST_INVALID, "%s: field %u of the message has another type", where,
                     (unsigned)field->number);
}

static enum status read_text(struct parser *p, const struct protobuf_field *field, const char *name,
                             struct span *out)
{
    if (field->type != PROTOBUF_BYTES) {
        return refuse_type(p, field, name);
    }
    if (field->bytes.len > p->limits->name_bytes_max) {
        return error_set(p->err, ST_TOO_LARGE, "%s: string of %zu bytes, at most %zu are taken",
                         name, field->bytes.len, p->limits->name_bytes_max);
    }
    if (!json_is_utf8(field->bytes)) {
        return error_set(p->err, ST_INVALID, "%s: expected text in UTF-8", name);
    }
    *out = field->bytes;
    return ST_OK;
}

/* ---- parameters ------------------------------------------------------------------------------ */

/* Counts the bytes of one: its own fields are not counted. */
static enum status note_parameter(struct parser *p, const struct protobuf_field *field)
{
    p->parameter_bytes += field->type == PROTOBUF_BYTES ? field->bytes.len : 0;
    return p->parameter_bytes <= GRPC_PARAMETERS_BYTES_MAX
               ? ST_OK
               : error_set(p->err, ST_TOO_LARGE, "parameters: more than %d bytes",
                           GRPC_PARAMETERS_BYTES_MAX);
}

/* The parameters of |message| as JSON, in the arena; NULL: it has none. */
static enum status take_parameters(struct parser *p, struct span message, enum grpc_message id,
                                   struct span *out)
{
    const struct grpc_message_info info = grpc_message_info(id);
    const struct grpc_field_info *field = grpc_find_name(&info, "parameters");
    struct buf text;
    buf_init(&text, GRPC_PARAMETERS_BYTES_MAX);
    enum status status = grpc_field_to_json(message, field, &text, p->err);
    if (status == ST_OK) {
        status = buf_check(&text, "the text of the parameters", p->err);
    }
    if (status == ST_OK) {
        const char *copy = arena_strdup(p->arena, text.ptr, text.len);
        *out = span_of(copy, text.len);
        status = copy ? ST_OK : arena_fail(p->arena, "the request", p->err);
    }
    buf_fini(&text);
    return status;
}

/* The reader of the parameters of |message|, "{}" if |has_any| is false. */
static enum status begin_parameters(struct parser *p, struct span message, enum grpc_message id,
                                    bool has_any, struct json *in, struct oip_reader *out)
{
    struct span text = span_str("{}");
    TRY(has_any ? take_parameters(p, message, id, &text) : ST_OK);
    json_init(in, text);
    in->is_derived = true;
    *out = (struct oip_reader){.in = in, .limits = p->limits, .arena = p->arena, .err = p->err};
    return ST_OK;
}

static enum status parse_parameters(struct parser *p, struct span message)
{
    struct json in;
    struct oip_reader reader;
    TRY(begin_parameters(p, message, GRPC_ModelInferRequest, true, &in, &reader));
    return oip_read_parameters(&reader, &p->request->parameters) == ST_OK
               ? ST_OK
               : error_prefix(p->err, "parameters.");
}

/* ---- inputs ---------------------------------------------------------------------------------- */

static enum status parse_datatype(struct parser *p, const struct protobuf_field *field,
                                  struct oip_type *out)
{
    struct span name;
    TRY(read_text(p, field, "datatype", &name));
    out->is_bytes = span_is(name, "BYTES");
    if (!out->is_bytes && !dtype_from_oip(name, &out->dtype)) {
        return error_set(p->err, ST_INVALID,
                         "datatype: unknown datatype \"%.*s\", expected one like FP32, INT64, BOOL "
                         "or BYTES",
                         name.len > 32 ? 32 : (int)name.len, (const char *)name.ptr);
    }
    return ST_OK;
}

static enum status parse_shape(struct parser *p, const struct protobuf_field *field,
                               struct shape *shape)
{
    struct protobuf dims;
    uint8_t alone[10];
    uint64_t dim;
    if (!protobuf_numbers(field, PROTOBUF_VARINT, alone, &dims)) {
        return refuse_type(p, field, "shape");
    }
    while (protobuf_next_packed(&dims, PROTOBUF_VARINT, &dim)) {
        if (dim > INT64_MAX) {
            return error_set(p->err, ST_INVALID, "shape[%u]: expected 0 or more, got %lld",
                             shape->rank, (long long)dim);
        }
        if (shape->rank == SHAPE_RANK_MAX) {
            return error_set(p->err, ST_TOO_LARGE, "shape: more than %d dims", SHAPE_RANK_MAX);
        }
        shape->dims[shape->rank++] = (int64_t)dim;
    }
    return dims.is_wrong ? error_set(p->err, ST_INVALID, "shape: damaged") : ST_OK;
}

/* The members that an input had. */
struct input_fields {
    bool has_datatype, has_parameters, has_contents;
    size_t contents_bytes; /* of all that came: a message that comes in parts is one */
};

static enum status parse_input_field(struct parser *p, const struct protobuf_field *field,
                                     struct oip_request_input *input, struct input_fields *seen)
{
    switch (field->number) {
    case INPUT(name):
        return read_text(p, field, "name", &input->name);
    case INPUT(datatype):
        seen->has_datatype = true;
        return parse_datatype(p, field, &input->type);
    case INPUT(shape):
        return parse_shape(p, field, &input->shape);
    case INPUT(parameters):
        seen->has_parameters = true;
        return note_parameter(p, field);
    case INPUT(contents):
        seen->has_contents = true;
        seen->contents_bytes += field->bytes.len;
        input->data = field->bytes;
        return field->type == PROTOBUF_BYTES ? ST_OK : refuse_type(p, field, "contents");
    }
    return ST_OK;
}

static enum status check_shared(const struct oip_reader *reader,
                                const struct oip_request_input *input, bool has_contents)
{
    TRY(oip_check_shared(reader, &input->shared));
    if (input->shared.is_given && (has_contents || input->layout.is_given)) {
        return error_set(reader->err, ST_INVALID,
                         "has both \"shared_memory_region\" and data of its own, expected one");
    }
    return input->shared.bytes <= SIZE_MAX
               ? ST_OK
               : error_set(reader->err, ST_TOO_LARGE, "too many bytes of shared memory");
}

/* An input with contents has them now; others get their bytes when all is read. */
static enum status parse_input_parameters(struct parser *p, struct span message,
                                          struct oip_request_input *input,
                                          const struct input_fields *seen)
{
    struct json in;
    struct oip_reader reader;
    struct span contents = input->data;
    TRY(begin_parameters(p, message, GRPC_ModelInferRequest_InferInputTensor, seen->has_parameters,
                         &in, &reader));
    TRY(oip_read_input_parameters(&reader, input));
    TRY(check_shared(&reader, input, seen->has_contents));
    input->is_binary = input->shared.is_given;
    input->data = input->shared.is_given ? span_of(NULL, (size_t)input->shared.bytes) : contents;
    return ST_OK;
}

/* Joins the parts of the contents, if there are several. */
static enum status join_contents(struct parser *p, struct span message,
                                 const struct input_fields *seen, struct oip_request_input *input)
{
    if (!seen->has_contents || seen->contents_bytes == input->data.len) {
        return ST_OK;
    }
    uint8_t *joined = arena_alloc(p->arena, seen->contents_bytes);
    struct protobuf in;
    struct protobuf_field field;
    size_t len = 0;
    if (!joined) {
        return arena_fail(p->arena, "the request", p->err);
    }
    for (protobuf_init(&in, message); protobuf_next(&in, &field);) {
        if (field.number == INPUT(contents) && field.bytes.len > 0) {
            memcpy(joined + len, field.bytes.ptr, field.bytes.len);
            len += field.bytes.len;
        }
    }
    must(len == seen->contents_bytes);
    input->data = span_of(joined, len);
    return ST_OK;
}

static enum status read_input(struct parser *p, struct span message,
                              struct oip_request_input *input)
{
    struct input_fields seen = {.has_datatype = false};
    struct protobuf in;
    struct protobuf_field field;
    for (protobuf_init(&in, message); next(p, &in, &field);) {
        TRY(parse_input_field(p, &field, input, &seen));
    }
    TRY(end_fields(p, &in, GRPC_ModelInferRequest_InferInputTensor));
    TRY(join_contents(p, message, &seen, input));
    if (input->name.len == 0 || !seen.has_datatype) {
        return error_set(p->err, ST_INVALID, "field \"%s\" is missing",
                         input->name.len ? "datatype" : "name");
    }
    TRY(seen.has_parameters ? parse_input_parameters(p, message, input, &seen) : ST_OK);
    if (seen.has_contents && !input->data.ptr) {
        input->data.ptr = (const uint8_t *)""; /* it has contents, if only none */
    }
    return ST_OK;
}

static enum status parse_input(struct parser *p, const struct protobuf_field *field)
{
    struct oip_request *request = p->request;
    if (request->input_count == p->limits->inputs_max) {
        return error_set(p->err, ST_TOO_LARGE, OIP_MANY_INPUTS, p->limits->inputs_max);
    }
    struct oip_request_input *input = oip_add_input(p->arena, request);
    if (!input) {
        return arena_fail(p->arena, "the request", p->err);
    }
    input->is_message = true;
    return read_input(p, field->bytes, input) == ST_OK
               ? ST_OK
               : error_prefix(p->err, "inputs[%zu]: ", input->index);
}

/* ---- outputs --------------------------------------------------------------------------------- */

static enum status read_output(struct parser *p, struct span message,
                               struct oip_request_output *output)
{
    bool has_parameters = false;
    struct protobuf in;
    struct protobuf_field field;
    struct json json;
    struct oip_reader reader;
    for (protobuf_init(&in, message); next(p, &in, &field);) {
        TRY(field.number == OUTPUT(name) ? read_text(p, &field, "name", &output->name) : ST_OK);
        if (field.number == OUTPUT(parameters)) {
            has_parameters = true;
            TRY(note_parameter(p, &field));
        }
    }
    TRY(end_fields(p, &in, GRPC_ModelInferRequest_InferRequestedOutputTensor));
    if (output->name.len == 0) {
        return error_set(p->err, ST_INVALID, "field \"name\" is missing");
    }
    TRY(begin_parameters(p, message, GRPC_ModelInferRequest_InferRequestedOutputTensor,
                         has_parameters, &json, &reader));
    TRY(oip_read_output_parameters(&reader, output));
    TRY(oip_check_output(&reader, output));
    output->is_binary = !output->shared.is_given;
    return oip_add_output(&reader, output, &p->request->outputs);
}

static enum status parse_output(struct parser *p, const struct protobuf_field *field)
{
    struct oip_request_output output = {.index = p->output_count};
    if (p->output_count++ == p->limits->outputs_max) {
        return error_set(p->err, ST_TOO_LARGE, OIP_MANY_OUTPUTS, p->limits->outputs_max);
    }
    return read_output(p, field->bytes, &output) == ST_OK
               ? ST_OK
               : error_prefix(p->err, "outputs[%zu]: ", output.index);
}

/* ---- the request ----------------------------------------------------------------------------- */

static enum status add_raw(struct parser *p, const struct protobuf_field *field)
{
    if (p->raw_count == p->limits->inputs_max) {
        return error_set(p->err, ST_TOO_LARGE, "more than %zu raw_input_contents",
                         p->limits->inputs_max);
    }
    struct span *grown = oip_grow(p->arena, p->raw, p->raw_count, sizeof(*grown));
    if (!grown) {
        return arena_fail(p->arena, "the request", p->err);
    }
    p->raw = grown;
    p->raw[p->raw_count++] = field->bytes;
    return ST_OK;
}

static enum status parse_field(struct parser *p, const struct protobuf_field *field,
                               bool *has_parameters)
{
    bool is_ours =
        field->number >= REQUEST(parameters) && field->number <= REQUEST(raw_input_contents);
    if (is_ours && field->type != PROTOBUF_BYTES) {
        return refuse_type(p, field, "ModelInferRequest");
    }
    switch (field->number) {
    case REQUEST(id):
        p->request->has_id = true;
        return read_text(p, field, "id", &p->request->id);
    case REQUEST(parameters):
        *has_parameters = true;
        return note_parameter(p, field);
    case REQUEST(inputs):
        return parse_input(p, field);
    case REQUEST(outputs):
        return parse_output(p, field);
    case REQUEST(raw_input_contents):
        return add_raw(p, field);
    }
    return ST_OK;
}

static bool is_empty(const struct shape *shape)
{
    for (uint8_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 0) {
            return true;
        }
    }
    return false;
}

/* An input without shared memory has contents, or one of the raw contents: all alike. */
static enum status settle_source(struct parser *p, struct oip_request_input *input,
                                 size_t *raw_used)
{
    if (p->raw_count > 0 && input->data.ptr) {
        return error_set(p->err, ST_INVALID,
                         "inputs[%zu]: has contents beside raw_input_contents, expected one",
                         input->index);
    }
    if (p->raw_count > 0) {
        input->is_binary = true;
        input->data = *raw_used < p->raw_count ? p->raw[*raw_used] : span_of("", 0);
        ++*raw_used;
        return ST_OK;
    }
    if (!input->data.ptr) {
        input->is_binary = is_empty(&input->shape);
        return input->is_binary
                   ? ST_OK
                   : error_set(p->err, ST_INVALID,
                               "inputs[%zu]: expected contents or raw_input_contents, got "
                               "neither",
                               input->index);
    }
    input->is_binary = grpc_contents_are_bytes(input, &input->data);
    return ST_OK;
}

static enum status settle_sources(struct parser *p)
{
    size_t raw_used = 0;
    for (size_t i = 0; i < p->request->input_count; i++) {
        if (!p->request->inputs[i].shared.is_given) {
            TRY(settle_source(p, &p->request->inputs[i], &raw_used));
        }
    }
    return raw_used == p->raw_count
               ? ST_OK
               : error_set(p->err, ST_INVALID, "raw_input_contents: expected %zu, got %zu",
                           raw_used, p->raw_count);
}

static enum status parse_fields(struct parser *p, struct span message)
{
    bool has_parameters = false;
    struct protobuf in;
    struct protobuf_field field;
    for (protobuf_init(&in, message); next(p, &in, &field);) {
        TRY(parse_field(p, &field, &has_parameters));
    }
    TRY(end_fields(p, &in, GRPC_ModelInferRequest));
    return has_parameters ? parse_parameters(p, message) : ST_OK;
}

enum status grpc_parse_infer(struct span message, const struct oip_limits *limits,
                             struct arena *arena, struct oip_request *out, struct error *err)
{
    struct oip_request request = {.has_id = false};
    struct parser p = {.limits = limits, .arena = arena, .request = &request, .err = err};
    TRY(parse_fields(&p, message));
    TRY(settle_sources(&p));
    TRY(oip_finish_messages(&request, limits, err));
    request.parameters.binary_data_output = true;
    *out = request;
    return ST_OK;
}

/* The head of a field whose bytes have not all come: its key and its length. */
size_t grpc_find_tensor(struct span begin)
{
    struct protobuf in;
    protobuf_init(&in, begin);
    for (uint64_t key, len; in.at != in.end; in.at += len) {
        if (!protobuf_next_packed(&in, PROTOBUF_VARINT, &key) || (key & 7) != PROTOBUF_BYTES ||
            !protobuf_next_packed(&in, PROTOBUF_VARINT, &len)) {
            return 0;
        }
        if (key >> 3 == REQUEST(raw_input_contents)) {
            return (size_t)(in.at - begin.ptr);
        }
        if (len > (size_t)(in.end - in.at)) {
            return 0;
        }
    }
    return 0;
}

static bool is_input(struct span input, struct span name)
{
    struct protobuf in;
    struct protobuf_field field;
    struct span found = span_str("");
    for (protobuf_init(&in, input); protobuf_next(&in, &field);) {
        if (field.number == INPUT(name) && field.type == PROTOBUF_BYTES) {
            found = field.bytes;
            break; /* the field of a message that is no attack stands in front */
        }
    }
    return span_equal(found, name);
}

bool grpc_has_input(struct span message, struct span name)
{
    struct protobuf in;
    struct protobuf_field field;
    int left = GRPC_FIELDS_MAX;
    for (protobuf_init(&in, message); left > 0 && protobuf_next(&in, &field); left--) {
        if (field.number == REQUEST(inputs) && field.type == PROTOBUF_BYTES &&
            is_input(field.bytes, name)) {
            return true;
        }
    }
    return false;
}

enum status grpc_read_model(struct span message, struct span *out_model, struct span *out_version,
                            struct error *err)
{
    struct parser p = {.err = err};
    struct protobuf in;
    struct protobuf_field field;
    *out_model = *out_version = span_str("");
    for (protobuf_init(&in, message); next(&p, &in, &field);) {
        if (field.type == PROTOBUF_BYTES && field.number == REQUEST(model_name)) {
            *out_model = field.bytes;
        } else if (field.type == PROTOBUF_BYTES && field.number == REQUEST(model_version)) {
            *out_version = field.bytes;
        }
    }
    return end_fields(&p, &in, GRPC_ModelInferRequest);
}
