/* SPDX-License-Identifier: MIT */
/*
 * A body becomes an invocation and an invocation becomes an answer. Tensors are decoded straight
 * into the memory that the device reads, or bound where they lie in the body; results go out from
 * the memory that the device wrote.
 */
#include "config.h"

#include "server/infer.h"

#include "base/check.h"
#include "hal/buffer.h"
#include "runtime/invocation.h"
#include "runtime/oracle.h"
#include "server/request.h"
#include "server/server.h"

#define INPUTS_MAX 256
#define PARAMETERS_MAX 64
#define NAME_BYTES_MAX 1024
#define ARENA_BYTES_MAX (4 << 20)
#define ARENA_KEEP_BYTES (64 << 10)
/* Below this an answer is not worth compressing. */
#define DEFLATE_BYTES_MIN 1024

void infer_init(struct infer *infer, struct request *request)
{
    const struct params *params = request->server->params;
    *infer = (struct infer){0};
    arena_init(&infer->arena, ARENA_BYTES_MAX);
    body_init(&infer->inflated, request->server->pool, params->body_bytes_max);
    buf_init(&infer->deflated, params->answer_bytes_max);
}

void infer_fini(struct infer *infer)
{
    infer_reset(infer);
    arena_fini(&infer->arena);
    body_fini(&infer->inflated);
    buf_fini(&infer->deflated);
}

void infer_reset(struct infer *infer)
{
    rt_invocation_free(infer->invocation);
    infer->invocation = NULL;
    infer->encoded = (struct oip_encoded){0};
    infer->coding = CODING_IDENTITY;
    infer->outputs = NULL;
    infer->output_count = 0;
    body_reset(&infer->inflated);
    buf_fini(&infer->deflated);
    if (infer->arena.used_bytes > ARENA_KEEP_BYTES) {
        arena_fini(&infer->arena);
    } else {
        arena_reset(&infer->arena);
    }
}

/* ---- before the body ------------------------------------------------------------------------- */

int infer_begin(struct request *request)
{
    struct error *err = &request->err;
    const struct model *model =
        models_find(&request->server->models, request->match.model, request->match.version, err);
    if (!model) {
        return 404;
    }
    if (!model_is_ready(model)) {
        error_set(err, ST_UNAVAILABLE, "model '%s' cannot be called: %s", model->name,
                  model->failure.text);
        return 503;
    }
    const struct head *head = &request->head;
    struct span name = head_value(head, HTTP_CONTENT_ENCODING);
    enum coding coding;
    if (head->counts[HTTP_CONTENT_ENCODING] > 1 || !coding_find(name, &coding)) {
        error_set(err, ST_UNSUPPORTED, "Content-Encoding: expected gzip or deflate, got '%.*s'",
                  SPAN_FMT(name));
        return 415;
    }
    if (head->counts[HTTP_INFERENCE_HEADER_CONTENT_LENGTH] > 1) {
        error_set(err, ST_INVALID, "Inference-Header-Content-Length: given more than once");
        return 400;
    }
    request->infer.model = model;
    return 200;
}

/* ---- PARSE ----------------------------------------------------------------------------------- */

static enum status remove_coding(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    enum coding coding;
    bool is_known = coding_find(head_value(&request->head, HTTP_CONTENT_ENCODING), &coding);
    must(is_known);
    if (coding == CODING_IDENTITY) {
        infer->body = &request->body;
        return ST_OK;
    }
    infer->body = &infer->inflated;
    return coding_inflate(coding, body_span(&request->body), &infer->inflated, err);
}

/* A body that is nothing but a tensor fits only a model with one input. */
static enum status parse_raw(struct infer *infer, struct span binary,
                             const struct oip_limits *limits, struct error *err)
{
    const struct model *model = infer->model;
    if (model->input_count != 1) {
        return error_set(err, ST_INVALID,
                         "Inference-Header-Content-Length: 0 needs a model with one input, '%s' "
                         "has %u",
                         model->name, model->input_count);
    }
    return oip_parse_raw(binary, &model->inputs[0].meta, limits, &infer->arena, &infer->oip, err);
}

static enum status check_elements(const struct request *request, struct error *err)
{
    const struct oip_request *oip = &request->infer.oip;
    uint64_t max = request->server->params->element_count_max;
    for (size_t i = 0; i < oip->input_count; i++) {
        uint64_t count = (uint64_t)shape_numel(&oip->inputs[i].shape);
        if (count > max) {
            return error_set(err, ST_INVALID,
                             "inputs[%zu].shape: expected at most %llu elements, got %llu", i,
                             (unsigned long long)max, (unsigned long long)count);
        }
    }
    return ST_OK;
}

enum status infer_parse(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    const struct oip_limits limits = {
        .inputs_max = INPUTS_MAX,
        .outputs_max = INFER_OUTPUTS_MAX,
        .parameters_max = PARAMETERS_MAX,
        .name_bytes_max = NAME_BYTES_MAX,
        .tensor_bytes_max = request->server->params->ring_bytes,
        .json_depth_max = request->server->params->json_depth_max,
    };
    TRY(remove_coding(request, err));
    struct span length = head_value(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    bool has_length = head_has(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    struct oip_body parts;
    TRY(oip_split_body(body_span(infer->body), has_length ? &length : NULL, &parts, err));
    if (parts.is_raw) {
        TRY(parse_raw(infer, parts.binary, &limits, err));
    } else {
        TRY(oip_parse_infer(&parts, &limits, &infer->arena, &infer->oip, err));
    }
    return check_elements(request, err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static const struct model_io *find_io(const struct model_io *ios, uint32_t count, struct span name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (span_is(name, ios[i].meta.name)) {
            return &ios[i];
        }
    }
    return NULL;
}

static void add_output(struct infer *infer, const struct model_io *io, bool is_binary)
{
    for (size_t i = 0; i < infer->output_count; i++) {
        if (infer->outputs[i].io == io) {
            return; /* named twice: once is enough */
        }
    }
    infer->outputs[infer->output_count++] = (struct infer_output){io, is_binary};
}

/* The results that the client named, or all: settled before anything runs. */
static enum status choose_outputs(struct infer *infer, struct error *err)
{
    const struct model *model = infer->model;
    const struct oip_request *oip = &infer->oip;
    size_t count = oip->output_count ? oip->output_count : model->output_count;
    infer->outputs = arena_array(&infer->arena, count, sizeof(infer->outputs[0]));
    if (!infer->outputs || count > INFER_OUTPUTS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "outputs: expected at most %d, got %zu",
                         INFER_OUTPUTS_MAX, count);
    }
    for (uint32_t i = 0; oip->output_count == 0 && i < model->output_count; i++) {
        add_output(infer, &model->outputs[i], oip->binary_data_output);
    }
    for (size_t i = 0; i < oip->output_count; i++) {
        const struct oip_request_output *output = &oip->outputs[i];
        const struct model_io *io = find_io(model->outputs, model->output_count, output->name);
        if (!io) {
            return error_set(err, ST_INVALID, "outputs[%zu].name: model '%s' has no output '%.*s'",
                             i, model->name, SPAN_FMT(output->name));
        }
        if (output->class_count) {
            return error_set(err, ST_INVALID,
                             "outputs[%zu].parameters.classification: not supported", i);
        }
        add_output(infer, io, output->is_binary);
    }
    return ST_OK;
}

/* The runtime knows inputs by their index; the client knows where in its request they stand. */
static enum status name_input(enum status status, const struct oip_request_input *input,
                              struct error *err)
{
    return status == ST_OK
               ? ST_OK
               : error_prefix(err, "inputs[%zu] '%.*s': ", input->index, SPAN_FMT(input->name));
}

static enum status decode_tensor(struct infer *infer, const struct oip_request_input *input,
                                 uint32_t index, struct error *err)
{
    struct rt_invocation *invocation = infer->invocation;
    enum dtype dtype = input->type.dtype;
    const struct body *body = infer->body;
    if (body->buffer && oip_input_is_direct(input)) {
        const uint8_t *base = hal_buffer_map(body->buffer);
        const struct rt_buffer_desc given = {
            .dtype = dtype,
            .shape = input->shape,
            .buffer = body->buffer,
            .offset = (size_t)(input->data.ptr - base),
        };
        return name_input(rt_invocation_bind_input(invocation, index, &given, err), input, err);
    }
    void *memory;
    TRY(name_input(rt_invocation_input(invocation, index, dtype, &input->shape, &memory, err),
                   input, err));
    return oip_decode_input(input, memory, input->bytes, err);
}

static enum status decode_string(struct infer *infer, const struct oip_request_input *input,
                                 uint32_t index, struct error *err)
{
    struct span *strings;
    TRY(oip_decode_strings(input, &infer->arena, &strings, err));
    return name_input(rt_invocation_string(infer->invocation, index, strings[0], err), input, err);
}

static enum status decode_scalar(struct infer *infer, const struct oip_request_input *input,
                                 const struct model_io *io, struct error *err)
{
    struct rt_invocation *invocation = infer->invocation;
    union {
        int64_t i;
        double f;
        bool b;
    } value;
    TRY(oip_decode_input(input, &value, input->bytes, err));
    enum status status;
    if (io->kind == RT_IO_INT) {
        status = rt_invocation_int(invocation, io->index, value.i, err);
    } else if (io->kind == RT_IO_FLOAT) {
        status = rt_invocation_float(invocation, io->index, value.f, err);
    } else {
        status = rt_invocation_bool(invocation, io->index, value.b, err);
    }
    return name_input(status, input, err);
}

static enum status decode_input(struct infer *infer, const struct oip_request_input *input,
                                struct error *err)
{
    const struct model *model = infer->model;
    const struct model_io *io = find_io(model->inputs, model->input_count, input->name);
    if (!io) {
        return error_set(err, ST_INVALID, "inputs[%zu].name: model '%s' has no input '%.*s'",
                         input->index, model->name, SPAN_FMT(input->name));
    }
    TRY(oip_verify_input(input, &io->meta, err));
    switch (io->kind) {
    case RT_IO_TENSOR:
        return decode_tensor(infer, input, io->index, err);
    case RT_IO_STRING:
        return decode_string(infer, input, io->index, err);
    case RT_IO_INT:
    case RT_IO_FLOAT:
    case RT_IO_BOOL:
        return decode_scalar(infer, input, io, err);
    case RT_IO_NONE:
        break; /* has no entry in model->inputs */
    }
    unreachable();
}

enum status infer_decode(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    TRY(choose_outputs(infer, err));
    TRY(rt_invocation_new(infer->model->method, request->server->pool, &infer->invocation, err));
    for (size_t i = 0; i < infer->oip.input_count; i++) {
        TRY(decode_input(infer, &infer->oip.inputs[i], err));
    }
    return ST_OK;
}

/* ---- PREPARE, RUN ---------------------------------------------------------------------------- */

enum status infer_prepare(struct request *request, struct error *err)
{
    return rt_invocation_prepare(request->infer.invocation, err);
}

uint64_t infer_time_limit_ms(const struct request *request)
{
    uint64_t limit = request->server->params->run_timeout;
    uint64_t timeout_us = request->infer.oip.timeout_us;
    uint64_t wanted = timeout_us / 1000 + (timeout_us % 1000 != 0);
    return wanted && wanted < limit ? wanted : limit;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static enum coding wanted_coding(const struct request *request)
{
    return coding_accept(head_value(&request->head, HTTP_ACCEPT_ENCODING));
}

size_t infer_encode_bytes(const struct request *request)
{
    const struct infer *infer = &request->infer;
    bool is_compressed = wanted_coding(request) != CODING_IDENTITY;
    size_t bytes = 0;
    for (size_t i = 0; i < infer->output_count; i++) {
        const struct infer_output *output = &infer->outputs[i];
        if (is_compressed || !output->is_binary) {
            bytes += rt_invocation_result(infer->invocation, output->io->index)->bytes.len;
        }
    }
    return bytes;
}

static struct oip_result result_of(const struct infer *infer, const struct infer_output *output)
{
    const struct rt_result *result = rt_invocation_result(infer->invocation, output->io->index);
    return (struct oip_result){
        .name = span_str(output->io->meta.name),
        .type = output->io->meta.type,
        .shape = output->io->kind == RT_IO_STRING ? output->io->meta.shape : result->shape,
        .is_binary = output->is_binary,
        .data = result->bytes,
        .strings = &result->bytes, /* the one element of a BYTES result */
    };
}

static enum status compress(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    infer->coding = wanted_coding(request);
    if (infer->coding == CODING_IDENTITY || infer->encoded.total_bytes < DEFLATE_BYTES_MIN) {
        infer->coding = CODING_IDENTITY;
        return ST_OK;
    }
    return coding_deflate(infer->coding, infer->encoded.spans, infer->encoded.span_count,
                          &infer->deflated, err);
}

enum status infer_encode(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    size_t count = infer->output_count;
    struct oip_result *results = arena_array(&infer->arena, count, sizeof(*results));
    infer->encoded.spans = arena_array(&infer->arena, count + 1, sizeof(struct span));
    if (!results || !infer->encoded.spans) {
        return error_set(err, ST_EXHAUSTED, "answer: out of memory");
    }
    for (size_t i = 0; i < count; i++) {
        results[i] = result_of(infer, &infer->outputs[i]);
    }
    struct oip_reply reply = {
        .has_id = infer->oip.has_id,
        .id = infer->oip.id,
        .model_name = infer->model->name,
        .model_version = infer->model->version_text,
        .results = results,
        .result_count = count,
    };
    TRY(oip_print_infer(&reply, &request->out, &infer->encoded, err));
    return compress(request, err);
}
