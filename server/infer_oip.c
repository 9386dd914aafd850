/* SPDX-License-Identifier: MIT */
/* Requests and answers of the Open Inference Protocol: inputs and outputs by name. */
#include "config.h"

#include "base/check.h"
#include "runtime/invocation.h"
#include "server/infer.h"
#include "server/request.h"
#include "server/server.h"

/* ---- PARSE ----------------------------------------------------------------------------------- */

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

static enum status parse(struct request *request, const struct oip_body *parts, struct error *err)
{
    struct infer *infer = &request->infer;
    const struct oip_limits limits = infer_limits(request);
    if (parts->is_raw) {
        TRY(parse_raw(infer, parts->binary, &limits, err));
    } else {
        TRY(oip_parse_infer(parts, &limits, &infer->arena, &infer->oip, err));
    }
    infer->timeout_us = infer->oip.timeout_us;
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
    enum dtype dtype = input->type.dtype;
    if (infer->body->buffer && oip_input_is_direct(input)) {
        return name_input(infer_bind(infer, index, dtype, &input->shape, input->data, err), input,
                          err);
    }
    void *memory;
    TRY(name_input(
        rt_invocation_input(infer->invocation, index, dtype, &input->shape, &memory, err), input,
        err));
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
    union infer_scalar value;
    TRY(oip_decode_input(input, &value, input->bytes, err));
    return name_input(infer_scalar(infer, io->kind, io->index, &value, err), input, err);
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

static enum status decode(struct request *request, struct error *err)
{
    struct infer *infer = &request->infer;
    TRY(choose_outputs(infer, err));
    for (size_t i = 0; i < infer->oip.input_count; i++) {
        TRY(decode_input(infer, &infer->oip.inputs[i], err));
    }
    return ST_OK;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

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

static enum status print(struct request *request, struct error *err)
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
    return oip_print_infer(&reply, &request->out, &infer->encoded, err);
}

const struct infer_form infer_form_oip = {parse, decode, print};
