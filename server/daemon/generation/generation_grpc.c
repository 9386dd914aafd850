/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/generation/generation_grpc.h"

#include <stdio.h>
#include <string.h>

#include "protocol/grpc_infer.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "protocol/tensor_text.h"
#include "server/daemon/generation/generation_priv.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/codec_grpc.h"
#include "server/daemon/infer/infer_one.h"

/* Elements of an input that is a list, such as stop texts. */
#define ELEMENTS_MAX 1024

#define TEXT_INPUT "text_input"

/* The request as JSON: what it has for /generate. */
struct translation {
    struct infer *infer;
    const struct oip_request *oip;
    struct buf *out;
    struct error *err;
    const char *before; /* the next member of "parameters" */
    bool has_stream, is_stream;
};

/* ---- values ---------------------------------------------------------------------------------- */

static enum status print_text(struct translation *t, struct span text)
{
    if (!json_is_utf8(text)) {
        return error_set(t->err, ST_INVALID, "expected text in UTF-8");
    }
    json_print_string(t->out, text);
    return ST_OK;
}

static enum status print_strings(struct translation *t, const struct oip_request_input *input,
                                 size_t count)
{
    struct span *strings;
    TRY(oip_decode_strings(input, &t->infer->arena, &strings, t->err));
    for (size_t i = 0; i < count; i++) {
        if (!json_is_utf8(strings[i])) {
            return error_set(t->err, ST_INVALID, "expected text in UTF-8");
        }
    }
    if (count == 1) {
        json_print_string(t->out, strings[0]);
    } else {
        tensor_text_print_strings(t->out, strings, count);
    }
    return ST_OK;
}

static enum status print_numbers(struct translation *t, const struct oip_request_input *input,
                                 size_t count)
{
    struct tensor_nan nan = {.takes_null = false};
    void *numbers = arena_alloc(&t->infer->arena, input->bytes ? input->bytes : 1);
    if (!numbers) {
        return arena_fail(&t->infer->arena, "the request", t->err);
    }
    TRY(oip_decode_input(input, &nan, numbers, input->bytes, t->err));
    const struct shape shape = {.rank = count == 1 ? 0 : 1, .dims = {(int64_t)count}};
    tensor_text_print_nested(t->out, input->type.dtype, &shape, numbers, NUMBER_NAN_TOKEN);
    return ST_OK;
}

/* One element is a value, several are a list: clients give [1] or [1, 1] to each of them. */
static enum status print_value(struct translation *t, const struct oip_request_input *input)
{
    int64_t count = shape_numel(&input->shape);
    if (input->shared.is_given) {
        return error_set(t->err, ST_UNSUPPORTED, "shared memory is for tensors");
    }
    if (count > ELEMENTS_MAX) {
        return error_set(t->err, ST_TOO_LARGE, "expected at most %d elements, got %lld",
                         ELEMENTS_MAX, (long long)count);
    }
    return input->type.is_bytes ? print_strings(t, input, (size_t)count)
                                : print_numbers(t, input, (size_t)count);
}

static enum status print_parameter(struct translation *t, const struct oip_parameter *parameter)
{
    uint8_t text[64];
    switch (parameter->type) {
    case OIP_BOOL:
        buf_add_str(t->out, parameter->b ? "true" : "false");
        return ST_OK;
    case OIP_INT:
        buf_add(t->out, text, number_print_i64(text, parameter->i));
        return ST_OK;
    case OIP_UINT:
        buf_add(t->out, text, number_print_u64(text, parameter->u));
        return ST_OK;
    case OIP_FLOAT:
        buf_add(t->out, text, number_print_f64(text, parameter->f, NUMBER_NAN_TOKEN));
        return ST_OK;
    case OIP_STRING:
        return print_text(t, parameter->s);
    }
    unreachable();
}

/* ---- members --------------------------------------------------------------------------------- */

static enum status begin_member(struct translation *t, struct span name)
{
    buf_add_str(t->out, t->before);
    t->before = ",";
    TRY(print_text(t, name));
    buf_add_char(t->out, ':');
    return ST_OK;
}

/* Takes what has been printed behind |begin| back. */
static struct span cut(struct translation *t, size_t begin)
{
    struct span text = span_of(t->out->ptr + begin, t->out->len - begin);
    t->out->len = begin;
    return text;
}

/* Is it a stream of tokens? Its value stands behind |begin|. */
static enum status take_stream(struct translation *t, size_t begin)
{
    struct span text = cut(t, begin);
    t->has_stream = true;
    t->is_stream = span_is(text, "true");
    return t->is_stream || span_is(text, "false")
               ? ST_OK
               : error_set(t->err, ST_INVALID, "stream: expected one BOOL");
}

/* The JSON of vLLM's input: its members stand beside the others. */
static enum status take_members(struct translation *t, const struct oip_request_input *input)
{
    struct span *strings;
    struct json in;
    if (!input->type.is_bytes || shape_numel(&input->shape) != 1) {
        return error_set(t->err, ST_INVALID, "expected one text");
    }
    TRY(oip_decode_strings(input, &t->infer->arena, &strings, t->err));
    json_init(&in, strings[0]);
    if (json_peek(&in) != JSON_OBJECT) {
        return error_set(t->err, ST_INVALID, "expected a JSON object as text");
    }
    TRY(json_skip(&in, t->err));
    TRY(json_end(&in, t->err));
    struct span text = span_trim(strings[0], " \t\r\n");
    struct span members = span_trim(span_of(text.ptr + 1, text.len - 2), " \t\r\n");
    if (members.len > 0) {
        buf_add_str(t->out, t->before);
        t->before = ",";
        buf_add(t->out, members.ptr, members.len);
    }
    return ST_OK;
}

static enum status translate_input(struct translation *t, const struct oip_request_input *input)
{
    if (span_is(input->name, TEXT_INPUT)) {
        return ST_OK; /* it is in front of them */
    }
    if (span_is(input->name, "sampling_parameters")) {
        return take_members(t, input);
    }
    if (span_is(input->name, "stream")) {
        size_t begin = t->out->len;
        TRY(print_value(t, input));
        return take_stream(t, begin);
    }
    TRY(begin_member(t, input->name));
    return print_value(t, input);
}

static enum status translate_inputs(struct translation *t)
{
    for (size_t i = 0; i < t->oip->input_count; i++) {
        const struct oip_request_input *input = &t->oip->inputs[i];
        if (translate_input(t, input) != ST_OK) {
            return error_prefix(t->err, "input '%.*s': ", SPAN_SHORT(input->name));
        }
    }
    return ST_OK;
}

static enum status translate_parameters(struct translation *t)
{
    const struct oip_parameters *parameters = &t->oip->parameters;
    for (size_t i = 0; i < parameters->other_count; i++) {
        const struct oip_parameter *parameter = &parameters->others[i];
        if (span_is(parameter->name, "stream")) {
            size_t begin = t->out->len;
            TRY(print_parameter(t, parameter));
            TRY(take_stream(t, begin));
        } else {
            TRY(begin_member(t, parameter->name));
            TRY(print_parameter(t, parameter));
        }
    }
    return ST_OK;
}

static const struct oip_request_input *find_text(const struct oip_request *oip)
{
    for (size_t i = 0; i < oip->input_count; i++) {
        if (span_is(oip->inputs[i].name, TEXT_INPUT)) {
            return &oip->inputs[i];
        }
    }
    return NULL;
}

static enum status print_prompt(struct translation *t)
{
    const struct oip_request_input *text = find_text(t->oip);
    if (!text || !text->type.is_bytes || shape_numel(&text->shape) != 1) {
        return error_set(t->err, ST_INVALID,
                         "input '" TEXT_INPUT "': expected one text of datatype BYTES");
    }
    buf_add_str(t->out, "\"" TEXT_INPUT "\":");
    return print_value(t, text) == ST_OK ? ST_OK : error_prefix(t->err, "input '" TEXT_INPUT "': ");
}

static enum status translate(struct translation *t)
{
    buf_add_char(t->out, '{');
    if (t->oip->id.len > 0) {
        buf_add_str(t->out, "\"id\":");
        json_print_string(t->out, t->oip->id);
        buf_add_char(t->out, ',');
    }
    TRY(print_prompt(t));
    buf_add_str(t->out, ",\"parameters\":{");
    TRY(translate_inputs(t));
    TRY(translate_parameters(t));
    buf_add_str(t->out, "}}");
    return buf_check(t->out, "the request", t->err);
}

/* An answer of ModelInfer is one message. */
static enum status check_stream(const struct translation *t)
{
    return t->has_stream && t->is_stream && !t->infer->is_in_stream
               ? error_set(t->err, ST_INVALID,
                           "stream: ModelInfer has one answer, expected ModelStreamInfer")
               : ST_OK;
}

/* ---- the codec ------------------------------------------------------------------------------- */

/* The text outlives the body: parts of the request borrow from it. */
static enum status keep(struct infer *infer, const struct buf *text, struct span *out,
                        struct error *err)
{
    const char *copy = arena_strdup(&infer->arena, text->ptr, text->len);
    *out = span_of(copy, text->len);
    return copy ? ST_OK : arena_fail(&infer->arena, "the request", err);
}

static enum status parse(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err)
{
    const struct oip_limits limits = codec_oip_limits(infer);
    struct oip_request oip;
    struct oip_body body = {.is_raw = false};
    struct buf text;
    (void)call, (void)out_rest;
    TRY(grpc_parse_infer(parts->binary, &limits, &infer->arena, &oip, err));
    infer_take_parameters(infer, &oip.parameters);
    buf_init(&text, infer->env->params->body_bytes_max);
    struct translation t = {.infer = infer, .oip = &oip, .out = &text, .err = err, .before = ""};
    enum status status = translate(&t);
    status = status == ST_OK ? check_stream(&t) : status;
    status = status == ST_OK ? keep(infer, &text, &body.json, err) : status;
    buf_fini(&text);
    TRY(status);
    bool is_stream = infer->is_in_stream && (t.is_stream || !t.has_stream);
    return generation_parse_generate(infer, is_stream, &body, err);
}

static const struct codec codec = {
    .parse = parse, .name_input = codec_name_none, .is_message = true};

/* From here on it is a generation, also if its step begins again. */
static enum status parse_call(struct infer *infer, const struct oip_body *parts, struct error *err)
{
    TRY(codec_grpc_find_model(infer, parts->binary, err));
    if (!infer->call.model->generator || !grpc_has_input(parts->binary, span_str(TEXT_INPUT))) {
        return infer_one_ops.life.parse(infer, parts, err);
    }
    TRY(work_leave_loop(&infer->work, err));
    infer->ops = &generation_ops;
    infer->call.codec = &codec;
    return runs_parse(infer, parts, err);
}

const struct infer_ops generation_grpc_ops = {
    .life = {.is_apart = true, .find = infer_find_any, .parse = parse_call},
};
