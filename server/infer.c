/* SPDX-License-Identifier: MIT */
/*
 * A body becomes an invocation and an invocation becomes an answer, whichever form they have.
 * Tensors are decoded straight into the memory that the device reads, or bound where they lie in
 * the body; results go out from the memory that the device wrote.
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
    infer->leaves = NULL;
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
    request->infer.timeout_us = 0;
    request->infer.form = request->match.id == ROUTE_CALL || request->match.id == ROUTE_VERSION_CALL
                              ? &infer_form_call
                              : &infer_form_oip;
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

struct oip_limits infer_limits(const struct request *request)
{
    return (struct oip_limits){
        .inputs_max = INPUTS_MAX,
        .outputs_max = INFER_OUTPUTS_MAX,
        .parameters_max = PARAMETERS_MAX,
        .name_bytes_max = NAME_BYTES_MAX,
        .tensor_bytes_max = request->server->params->ring_bytes,
        .json_depth_max = request->server->params->json_depth_max,
    };
}

enum status infer_parse(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    TRY(remove_coding(request, err));
    struct span length = head_value(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    bool has_length = head_has(&request->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH);
    struct oip_body parts;
    TRY(oip_split_body(body_span(infer->body), has_length ? &length : NULL, &parts, err));
    return infer->form->parse(request, &parts, err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

enum status infer_bind(struct infer *infer, uint32_t index, enum dtype dtype,
                       const struct shape *shape, struct span bytes, struct error *err)
{
    const struct body *body = infer->body;
    const uint8_t *base = hal_buffer_map(body->buffer);
    const struct rt_buffer_desc given = {
        .dtype = dtype,
        .shape = *shape,
        .buffer = body->buffer,
        .offset = (size_t)(bytes.ptr - base),
    };
    return rt_invocation_bind_input(infer->invocation, index, &given, err);
}

enum status infer_scalar(struct infer *infer, enum rt_io_kind kind, uint32_t index,
                         const union infer_scalar *value, struct error *err)
{
    struct rt_invocation *invocation = infer->invocation;
    if (kind == RT_IO_INT) {
        return rt_invocation_int(invocation, index, value->i, err);
    }
    if (kind == RT_IO_FLOAT) {
        return rt_invocation_float(invocation, index, value->f, err);
    }
    must(kind == RT_IO_BOOL);
    return rt_invocation_bool(invocation, index, value->b, err);
}

enum status infer_decode(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    TRY(rt_invocation_new(infer->model->method, request->server->pool, &infer->invocation, err));
    return infer->form->decode(request, err);
}

/* ---- PREPARE, RUN ---------------------------------------------------------------------------- */

enum status infer_prepare(struct request *request, struct error *err)
{
    return rt_invocation_prepare(request->infer.invocation, err);
}

uint64_t infer_time_limit_ms(const struct request *request)
{
    uint64_t limit = request->server->params->run_timeout;
    uint64_t timeout_us = request->infer.timeout_us;
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
    TRY(request->infer.form->print(request, err));
    return compress(request, err);
}
