/* SPDX-License-Identifier: MIT */
/*
 * Bodies that are no JSON: a plain picture, sound or text, for a model that takes one, and forms of
 * several parts, a field for each input. The route decides the form of the answer.
 */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_order.h"
#include "server/http/multipart.h"
#include "server/media/format.h"
#include "server/model/card/card.h"
#include "server/model/intake/medium.h"

/* Classes of an answer with labels, if nobody says how many. */
#define TOP_K_UNASKED 5

enum form { FORM_NONE, FORM_FILE, FORM_TEXT, FORM_PARTS };

/* ---- what it is ------------------------------------------------------------------------------ */

/* The type without its parameters. */
static struct span type_of(const struct infer *infer)
{
    struct span type = head_value(infer->head, HTTP_CONTENT_TYPE);
    const uint8_t *stop = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    type.len = stop ? (size_t)(stop - type.ptr) : type.len;
    while (type.len > 0 && type.ptr[type.len - 1] == ' ') {
        type.len--;
    }
    return type;
}

/* The usual type, as it is usually spelled. */
static bool is_json_type(const struct infer *infer)
{
    return span_is(head_value(infer->head, HTTP_CONTENT_TYPE), "application/json");
}

/* Types that clients send if they do not know the body's: then its first bytes decide. */
static bool says_nothing(struct span type)
{
    return type.len == 0 || span_is_word(type, "application/octet-stream") ||
           span_is_word(type, "application/x-www-form-urlencoded");
}

/* Has the model an input that may be made from a text, or from a file? */
static bool takes(const struct infer_call *call, bool is_text)
{
    uint32_t count;
    (void)model_find_medium(call->model, is_text, &count);
    return count > 0;
}

/* Pages that say no type send JSON as text/plain. */
static bool may_be_json(struct span body)
{
    size_t at = 0;
    while (at < body.len && memchr(" \t\r\n", body.ptr[at], 4)) {
        at++;
    }
    return at == body.len || body.ptr[at] == '{';
}

static enum form form_of(const struct infer *infer, const struct infer_call *call)
{
    if (head_has(infer->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH) || is_json_type(infer)) {
        return FORM_NONE;
    }
    struct span type = type_of(infer), body = body_span(infer->body);
    if (says_nothing(type)) {
        return takes(call, false) && !may_be_json(body) ? FORM_FILE : FORM_NONE;
    }
    if (span_is_word(type, "multipart/form-data")) {
        return FORM_PARTS;
    }
    const struct card_medium *kind = card_find_medium_type(type);
    if (kind && kind->is_text) {
        return takes(call, true) || !may_be_json(body) ? FORM_TEXT : FORM_NONE;
    }
    return kind ? FORM_FILE : FORM_NONE;
}

bool codec_form_is(const struct infer *infer, const struct infer_call *call)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return form_of(infer, call) != FORM_NONE;
}

/* |what|: a text, a picture, a sound or a file, without its article. */
static enum status refuse_medium(const struct infer_call *call, const char *what, struct error *err)
{
    return error_set(err, ST_INVALID, "model '%s' takes no %s, its card says nothing of it",
                     call->model->name, what);
}

static enum status refuse_type(const struct infer *infer, const struct infer_call *call,
                               struct error *err)
{
    const struct card_medium *kind = card_find_medium_type(type_of(infer));
    return refuse_medium(call, kind ? kind->noun : "file", err);
}

int codec_form_check(const struct infer *infer, const struct codec *codec,
                     const struct infer_call *call, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    if (!codec->takes_files || head_has(infer->head, HTTP_INFERENCE_HEADER_CONTENT_LENGTH) ||
        is_json_type(infer)) {
        return 200;
    }
    const struct card_medium *kind = card_find_medium_type(type_of(infer));
    bool is_wrong = kind && !kind->is_text && !takes(call, false);
    if (is_wrong) {
        (void)refuse_type(infer, call, err);
    }
    return is_wrong ? 415 : 200;
}

/* ---- a file or a text alone ------------------------------------------------------------------ */

/* The formats of files that the model takes; MEDIA_OTHER: of several kinds. */
static enum media_kind formats_of(const struct infer_call *call)
{
    const struct card_medium *only = NULL;
    for (uint32_t i = 0; i < call->model->input_count; i++) {
        const struct medium *medium = call->model->inputs[i].medium;
        if (medium && !medium->kind->is_text) {
            if (only && medium->kind != only) {
                return MEDIA_OTHER;
            }
            only = medium->kind;
        }
    }
    return only ? only->formats : MEDIA_OTHER;
}

static enum status fail_kind(struct infer *infer, const struct infer_call *call,
                             enum media_format format, struct error *err)
{
    enum media_kind kind = media_kind_of(format);
    if (!takes(call, false)) { /* a model that was loaded after the head had come */
        infer->is_unfit = true;
        return refuse_type(infer, call, err);
    }
    if (kind != MEDIA_OTHER) {
        infer->is_unfit = true;
        return refuse_medium(call, card_find_medium_files(kind)->noun, err);
    }
    return error_set(err, ST_INVALID, "the body is %s, expected %s", media_format_name(format),
                     media_formats_read(formats_of(call)));
}

/* The input that a file of |format| is for. */
static enum status find_file_input(struct infer *infer, const struct infer_call *call,
                                   enum media_format format, const struct model_io **out,
                                   struct error *err)
{
    const struct model *model = call->model;
    enum media_kind kind = media_kind_of(format);
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct medium *medium = model->inputs[i].medium;
        bool fits = medium && kind != MEDIA_OTHER && medium->kind->formats == kind;
        *out = fits ? &model->inputs[i] : count ? *out : NULL;
        count += fits;
    }
    if (count == 0) {
        return fail_kind(infer, call, format, err);
    }
    return count == 1 ? ST_OK
                      : error_set(err, ST_INVALID,
                                  "model '%s' has %u inputs of this kind: expected "
                                  "multipart/form-data with a field for each",
                                  model->name, count);
}

static enum status find_text_input(struct infer *infer, const struct infer_call *call,
                                   const struct model_io **out, struct error *err)
{
    uint32_t count;
    *out = model_find_medium(call->model, true, &count);
    if (count == 0) {
        infer->is_unfit = true;
        return refuse_medium(call, "text", err);
    }
    return count == 1 ? ST_OK
                      : error_set(err, ST_INVALID,
                                  "model '%s' takes %u texts: expected multipart/form-data with a "
                                  "field for each",
                                  call->model->name, count);
}

static enum status parse_alone(struct infer *infer, struct infer_call *call, struct span body,
                               bool is_text, struct error *err)
{
    const struct model_io *io = NULL;
    const struct call_item item = {CALL_BINARY, body};
    if (body.len == 0) {
        return error_set(err, ST_INVALID, "the body is empty, expected a %s",
                         is_text ? "text" : "file");
    }
    TRY(is_text ? find_text_input(infer, call, &io, err)
                : find_file_input(infer, call, media_find_format(body), &io, err));
    return call_add_item(&infer->arena, &call->tree.leaves[io->index], &item, err);
}

/* ---- forms of several parts ------------------------------------------------------------------ */

/* A value that is no file: JSON, which its type says, or its first byte. */
static bool is_json(const struct multipart_part *part)
{
    if (span_is_word(part->content_type, "application/json")) {
        return true;
    }
    size_t at = 0;
    while (at < part->data.len && (part->data.ptr[at] == ' ' || part->data.ptr[at] == '\n' ||
                                   part->data.ptr[at] == '\r' || part->data.ptr[at] == '\t')) {
        at++;
    }
    return part->filename.len == 0 && at < part->data.len &&
           (part->data.ptr[at] == '[' || part->data.ptr[at] == '{');
}

static enum status take_value(struct infer *infer, struct infer_call *call,
                              const struct model_io *io, const struct multipart_part *part,
                              struct error *err)
{
    struct call_leaf *leaf = &call->tree.leaves[io->index];
    const struct call_limits limits = codec_call_limits(infer);
    if (leaf->encoding != CALL_ABSENT) {
        return error_set(err, ST_INVALID, "it is given twice");
    }
    if (io->kind == RT_IO_STRING) {
        leaf->encoding = CALL_TEXT;
        leaf->data = part->data;
        return ST_OK;
    }
    return call_parse_input(part->data, &call->model->call, io->index, &limits, &infer->arena,
                            call->tree.leaves, err);
}

/* Several fields of one name are rows. */
static enum status take_item(struct infer *infer, struct infer_call *call,
                             const struct model_io *io, const struct multipart_part *part,
                             struct error *err)
{
    struct call_leaf *leaf = &call->tree.leaves[io->index];
    const struct call_item item = {CALL_BINARY, part->data};
    if (leaf->encoding != CALL_ABSENT && leaf->encoding != CALL_MEDIA) {
        return error_set(err, ST_INVALID, "it is given as numbers, too");
    }
    if (part->data.len == 0 && !io->medium->kind->is_text) {
        return error_set(err, ST_INVALID, "it is empty, expected a file");
    }
    if (part->filename.len == 0 && !io->medium->kind->is_text &&
        media_find_format(part->data) == MEDIA_FORMATS) {
        return error_set(err, ST_INVALID,
                         "expected a file, got %zu bytes of an unknown format; curl sends a file "
                         "as %.*s=@FILE",
                         part->data.len, SPAN_SHORT(part->name));
    }
    leaf->is_list = leaf->item_count > 0;
    return call_add_item(&infer->arena, leaf, &item, err);
}

static enum status take_part(struct infer *infer, struct infer_call *call,
                             const struct multipart_part *part, bool *has_parameters,
                             struct error *err)
{
    const struct model *model = call->model;
    const struct call_limits limits = codec_call_limits(infer);
    if (span_is(part->name, "parameters")) {
        if (*has_parameters) {
            return error_set(err, ST_INVALID, "field 'parameters': given twice");
        }
        *has_parameters = true;
        enum status status =
            call_parse_parameters(part->data, &limits, &infer->arena, &call->tree.parameters, err);
        return status == ST_OK ? ST_OK : error_prefix(err, "field 'parameters': ");
    }
    const struct model_io *io = model_find_io(model->inputs, model->input_count, part->name);
    if (!io) {
        return model_refuse_name(model, RT_INPUT, part->name, err);
    }
    bool is_text = io->medium && io->medium->kind->is_text;
    bool is_item = io->medium && !(is_text ? span_is_word(part->content_type, "application/json")
                                           : is_json(part));
    enum status status =
        is_item ? take_item(infer, call, io, part, err) : take_value(infer, call, io, part, err);
    return status == ST_OK ? ST_OK : error_prefix(err, "field '%.*s': ", SPAN_SHORT(part->name));
}

static enum status parse_parts(struct infer *infer, struct infer_call *call, struct span body,
                               struct error *err)
{
    struct multipart multipart;
    struct multipart_part part;
    bool is_found = true, has_parameters = false;
    TRY(multipart_init(&multipart, head_value(infer->head, HTTP_CONTENT_TYPE), body, err));
    while (is_found) {
        TRY(multipart_next(&multipart, &part, &is_found, err));
        if (is_found) {
            TRY(take_part(infer, call, &part, &has_parameters, err));
        }
    }
    return ST_OK;
}

/* ---- what both codecs do --------------------------------------------------------------------- */

static bool wants_binary(const struct infer *infer, const struct infer_call *call)
{
    return call->tree.parameters.binary_data_output || infer->query.is_binary;
}

static enum status parse_body(struct infer *infer, struct infer_call *call, struct error *err)
{
    struct arena *arena = &infer->arena;
    struct span body = body_span(infer->body);
    enum form form = form_of(infer, call);
    const struct call_limits limits = codec_call_limits(infer);
    call->tree = (struct call_request){
        .leaves = arena_array(arena, call->model->call.input_count, sizeof(struct call_leaf))};
    call->oip = (struct oip_request){.has_id = false};
    call->parameters = &call->tree.parameters;
    if (!call->tree.leaves) {
        return arena_fail(arena, "the request", err);
    }
    TRY(form == FORM_PARTS ? parse_parts(infer, call, body, err)
                           : parse_alone(infer, call, body, form == FORM_TEXT, err));
    return call_verify_leaves(&call->model->call, &limits, call->tree.leaves, err);
}

static enum status parse_call(struct infer *infer, struct infer_call *call,
                              const struct oip_body *parts, struct span *out_rest,
                              struct error *err)
{
    (void)parts;
    (void)out_rest;
    TRY(parse_body(infer, call, err));
    codec_take_query(infer, &call->tree.parameters);
    return ST_OK;
}

static enum status parse_oip(struct infer *infer, struct infer_call *call,
                             const struct oip_body *parts, struct span *out_rest, struct error *err)
{
    (void)parts;
    (void)out_rest;
    TRY(parse_body(infer, call, err));
    call->oip.parameters.binary_data_output = wants_binary(infer, call);
    codec_take_query(infer, &call->tree.parameters);
    return ST_OK;
}

/* If there are as many labels as numbers in a row, these are labels of classes. */
static bool has_classes(const struct model_io *io)
{
    const struct shape *shape = &io->meta.shape;
    int64_t count = shape->rank > 0 ? shape->dims[shape->rank - 1] : 0;
    return io->labels && !io->answer && io->kind == RT_IO_TENSOR &&
           oip_is_score(io->meta.type.dtype) && (count < 0 || count == io->label_count);
}

/* If nobody says how many classes, or that there are to be none. */
static void choose_unasked(const struct infer *infer, struct infer_call *call)
{
    if (call->parameters->has_top_k || wants_binary(infer, call)) {
        return;
    }
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        output->class_count = has_classes(output->io) ? TOP_K_UNASKED : 0;
    }
}

static enum status decode_call(struct infer *infer, struct infer_call *call, struct error *err)
{
    call->nan = oip_request_nan(call->parameters);
    TRY(codec_call_list_outputs(infer, call, wants_binary(infer, call), err));
    TRY(call->parameters->top_k ? codec_call_choose_classes(call, err) : ST_OK);
    choose_unasked(infer, call);
    if (!call->parameters->wants_tensors) {
        infer_answer_choose(call);
    }
    TRY(infer_order_choose(call, err));
    return codec_call_decode_inputs(infer, call, err);
}

static enum status decode_oip(struct infer *infer, struct infer_call *call, struct error *err)
{
    call->nan = oip_request_nan(call->parameters);
    TRY(codec_oip_choose_outputs(infer, call, err));
    TRY(call->parameters->top_k ? codec_call_choose_classes(call, err) : ST_OK);
    TRY(infer_order_choose(call, err));
    return codec_call_decode_inputs(infer, call, err);
}

static enum status print_call(struct infer *infer, struct infer_call *call, struct error *err)
{
    return codec_call.print(infer, call, err);
}

static enum status print_oip(struct infer *infer, struct infer_call *call, struct error *err)
{
    return codec_oip.print(infer, call, err);
}

static void print_oip_tail(struct infer *infer, const struct infer_call *call)
{
    codec_oip.print_tail(infer, call);
}

static enum status name_input(const struct infer_call *call, uint32_t index, const char *behind,
                              struct error *err)
{
    return error_prefix(err, "input '%s'%s", rt_method_input(call->model->method, index)->name,
                        behind);
}

const struct codec codec_form_call = {
    .parse = parse_call, .decode = decode_call, .print = print_call, .name_input = name_input};
const struct codec codec_form_oip = {.parse = parse_oip,
                                     .decode = decode_oip,
                                     .print = print_oip,
                                     .print_tail = print_oip_tail,
                                     .name_input = name_input};
