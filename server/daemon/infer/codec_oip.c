/* SPDX-License-Identifier: MIT */
/* Requests and answers of the Open Inference Protocol: inputs and outputs by name. */
#include "config.h"

#include "base/check.h"
#include "protocol/oip_classes.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_order.h"
#include "server/daemon/infer/infer_shared.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/serving/serving.h"

#define INPUTS_MAX 256
#define PARAMETERS_MAX 64
#define NAME_BYTES_MAX 1024

/* ---- PARSE ----------------------------------------------------------------------------------- */

struct oip_limits codec_oip_limits(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    return (struct oip_limits){
        .inputs_max = INPUTS_MAX,
        .outputs_max = INFER_OUTPUTS_MAX,
        .parameters_max = PARAMETERS_MAX,
        .name_bytes_max = NAME_BYTES_MAX,
        .tensor_bytes_max = infer->env->params->ring_bytes,
        .json_depth_max = infer->env->params->json_depth_max,
    };
}

/* A body that is nothing but a tensor fits only a model with one input. */
static enum status parse_raw(struct infer *infer, struct infer_call *call, struct span binary,
                             const struct oip_limits *limits, struct error *err)
{
    const struct model *model = call->model;
    if (model->input_count != 1) {
        return error_set(err, ST_INVALID,
                         "Inference-Header-Content-Length: 0 needs a model with one input, '%s' "
                         "has %u",
                         model->name, model->input_count);
    }
    return oip_parse_raw(binary, &model->inputs[0].meta, limits, &infer->arena, &call->oip, err);
}

static enum status check_elements(const struct infer *infer, const struct oip_request *oip,
                                  struct error *err)
{
    uint64_t max = infer->env->params->element_count_max;
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

/* A client that may not use shared memory is told so before copies begin, which take time. */
static enum status check_shared(struct infer *infer, const struct oip_request *oip,
                                struct error *err)
{
    bool is_used = false;
    for (size_t i = 0; i < oip->input_count; i++) {
        is_used |= oip->inputs[i].shared.is_given;
    }
    for (size_t i = 0; i < oip->outputs.count; i++) {
        is_used |= oip->outputs.items[i].shared.is_given;
    }
    return is_used ? infer_shared_check(infer, err) : ST_OK;
}

enum status codec_oip_check(struct infer *infer, const struct oip_request *oip, struct error *err)
{
    TRY(check_shared(infer, oip, err));
    return check_elements(infer, oip, err);
}

/* Takes the query's settings for results that have none of their own. */
static void take_query(const struct infer *infer, struct oip_request *oip)
{
    codec_take_query(infer, &oip->parameters);
    for (size_t i = 0; infer->query.is_binary && i < oip->outputs.count; i++) {
        struct oip_request_output *output = &oip->outputs.items[i];
        output->is_binary |= !output->has_form && !output->shared.is_given;
    }
    oip->parameters.binary_data_output |= infer->query.is_binary;
}

/* A request that has a pattern has been checked before, but for its elements. A query changes what
 * the body asks for. */
static enum status parse_body(struct infer *infer, struct infer_call *call,
                              const struct oip_body *parts, const struct oip_limits *limits,
                              struct span *out_rest, struct error *err)
{
    bool may_recall = !out_rest && !infer->query.given;
    if (may_recall && habit_recall(&infer->habit, parts, limits, &call->oip)) {
        return ST_OK;
    }
    TRY(oip_parse_infer(parts, limits, &infer->arena, &call->oip, out_rest, err));
    take_query(infer, &call->oip);
    TRY(codec_oip_check(infer, &call->oip, err));
    if (may_recall) {
        habit_learn(&infer->habit, parts, &call->oip);
    }
    return ST_OK;
}

static enum status parse(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err)
{
    struct oip_limits limits = codec_oip_limits(infer);
    if (!out_rest && !parts->is_raw && codec_form_is(infer, call)) {
        call->codec = &codec_form_oip;
        return call->codec->parse(infer, call, parts, NULL, err);
    }
    limits.is_listed = out_rest != NULL;
    call->parameters = &call->oip.parameters;
    if (!parts->is_raw) {
        return parse_body(infer, call, parts, &limits, out_rest, err);
    }
    TRY(parse_raw(infer, call, parts->binary, &limits, err));
    take_query(infer, &call->oip);
    return check_elements(infer, &call->oip, err);
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static void add_output(struct infer_call *call, const struct model_io *io, const char *name,
                       bool is_binary)
{
    call->outputs[call->output_count++] =
        (struct infer_output){.io = io, .name = name, .is_binary = is_binary};
}

/* The results that the client named, or all of them: decided before anything runs. */
enum status codec_oip_choose_outputs(struct infer *infer, struct infer_call *call,
                                     struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    OBJ_CHECK(call->model, MODEL_MAGIC);
    const struct model *model = call->model;
    const struct oip_request *oip = &call->oip;
    size_t count = oip->outputs.count ? oip->outputs.count : model->output_count;
    if (count > INFER_OUTPUTS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "outputs: expected at most %d, got %zu",
                         INFER_OUTPUTS_MAX, count);
    }
    TRY(codec_outputs_new(&infer->arena, call, count, err));
    for (uint32_t i = 0; oip->outputs.count == 0 && i < model->output_count; i++) {
        const struct model_io *io = &model->outputs[i];
        add_output(call, io, io->meta.name, oip->parameters.binary_data_output);
    }
    for (size_t i = 0; i < oip->outputs.count; i++) {
        const struct oip_request_output *output = &oip->outputs.items[i];
        const struct model_io *io =
            model_find_io(model->outputs, model->output_count, output->name);
        if (!io) {
            model_refuse_name(model, RT_RESULT, output->name, err);
            return error_prefix(err, "outputs[%zu].name: ", output->index);
        }
        if (output->class_count && io->kind != RT_IO_TENSOR) {
            return error_set(err, ST_INVALID,
                             "outputs[%zu].parameters.classification: '%s' is no tensor",
                             output->index, io->meta.name);
        }
        bool is_name = span_is(output->name, io->meta.name);
        add_output(call, io, is_name ? io->meta.name : io->io->alias, output->is_binary);
        struct infer_output *added = &call->outputs[call->output_count - 1];
        added->class_count = output->class_count;
        if (output->has_order && infer_order_ask(added, output->is_channels_last, err) != ST_OK) {
            return error_prefix(err, "outputs[%zu].parameters.order: ", output->index);
        }
        if (output->wants_answer && infer_answer_ask(added, output->wants_json, err) != ST_OK) {
            return error_prefix(err, "outputs[%zu].parameters.answer: ", output->index);
        }
        if (output->shared.is_given &&
            infer_shared_note(infer, added, &output->shared, err) != ST_OK) {
            return error_prefix(err, "outputs[%zu] '%.64s': ", output->index, added->name);
        }
    }
    return ST_OK;
}

/* The runtime knows inputs by index; the client knows their position in its request. */
static enum status place_input(enum status status, const struct oip_request_input *input,
                               const char *behind, struct error *err)
{
    return status == ST_OK ? ST_OK
                           : error_prefix(err, "inputs[%zu] '%.*s'%s", input->index,
                                          SPAN_SHORT(input->name), behind);
}

static enum status name_input(const struct infer_call *call, uint32_t index, const char *behind,
                              struct error *err)
{
    const struct model *model = call->model;
    for (size_t i = 0; i < call->oip.input_count; i++) {
        const struct oip_request_input *input = &call->oip.inputs[i];
        const struct model_io *io = model_find_io(model->inputs, model->input_count, input->name);
        if (io && io->index == index) {
            return place_input(err->code, input, behind, err);
        }
    }
    return err->code;
}

/* Copies the input's bytes from shared memory to |dst|; after that |*out_here| is an input whose
 * bytes came with the request. They are read only once, because the client may change them. */
static enum status fetch(struct infer *infer, const struct oip_request_input *input, void *dst,
                         struct oip_request_input *out_here, struct error *err)
{
    *out_here = *input;
    out_here->data.ptr = dst;
    return place_input(infer_shared_read(infer, &input->shared, dst, input->data.len, err), input,
                       ": ", err);
}

static enum status decode_shared_tensor(struct infer *infer, struct infer_call *call,
                                        const struct oip_request_input *input,
                                        const struct codec_tensor *tensor, struct error *err)
{
    void *memory;
    struct oip_request_input here;
    TRY(place_input(codec_stage(infer, call, tensor, input->bytes, &memory, err), input, ": ",
                    err));
    TRY(fetch(infer, input, memory, &here, err));
    return oip_input_is_direct(&here)
               ? ST_OK
               : oip_decode_input(&here, &call->nan, memory, input->bytes, err);
}

static enum status decode_tensor(struct infer *infer, struct infer_call *call,
                                 const struct oip_request_input *input, uint32_t index,
                                 struct error *err)
{
    const struct codec_tensor tensor = {index, input->type.dtype, &input->shape, &input->layout};
    if (input->shared.is_given) {
        return decode_shared_tensor(infer, call, input, &tensor, err);
    }
    if (infer->body->buffer && oip_input_is_direct(input)) {
        return place_input(codec_bind(infer, call, &tensor, input->data, err), input, ": ", err);
    }
    size_t stored = oip_input_stored_bytes(input);
    void *memory;
    TRY(place_input(codec_stage(infer, call, &tensor, stored, &memory, err), input, ": ", err));
    return oip_decode_input(input, &call->nan, memory, stored, err);
}

/* The strings of the input, from shared memory or not. */
static enum status read_strings(struct infer *infer, const struct oip_request_input *input,
                                struct span **out, struct error *err)
{
    struct arena *arena = &infer->arena;
    struct oip_request_input here = *input;
    if (input->shared.is_given) {
        TRY(work_add(&infer->work, input->data.len, err));
        void *memory = arena_alloc(arena, input->data.len);
        if (!memory) {
            return arena_fail(arena, "the request", err);
        }
        TRY(fetch(infer, input, memory, &here, err));
    }
    return oip_decode_strings(&here, arena, out, err);
}

static enum status decode_string(struct infer *infer, struct infer_call *call,
                                 const struct oip_request_input *input, uint32_t index,
                                 struct error *err)
{
    struct span *strings;
    TRY(read_strings(infer, input, &strings, err));
    return place_input(codec_put_string(infer, call, index, strings[0], err), input, ": ", err);
}

static enum status decode_scalar(struct infer *infer, struct infer_call *call,
                                 const struct oip_request_input *input, const struct model_io *io,
                                 struct error *err)
{
    union codec_scalar bytes, value;
    struct oip_request_input here = *input;
    must(input->bytes <= sizeof(value));
    if (input->shared.is_given) {
        TRY(fetch(infer, input, &bytes, &here, err));
    }
    TRY(oip_decode_input(&here, &call->nan, &value, input->bytes, err));
    return place_input(codec_put_scalar(call, io->kind, io->index, &value, err), input, ": ", err);
}

/* Strings are files or texts, a row each. Files in JSON are in base64. */
static enum status decode_media(struct infer *infer, struct infer_call *call,
                                const struct oip_request_input *input, const struct model_io *io,
                                struct error *err)
{
    struct arena *arena = &infer->arena;
    int64_t count = shape_numel(&input->shape);
    struct span *strings;
    TRY(read_strings(infer, input, &strings, err));
    struct call_item *items = arena_array(arena, (size_t)count + 1, sizeof(*items));
    if (!items) {
        return arena_fail(arena, "the request", err);
    }
    for (int64_t i = 0; i < count; i++) {
        bool is_base64 = !input->is_binary && !input->is_message &&
                         call->model->call.inputs[io->index].medium == CALL_FILE;
        items[i] = (struct call_item){is_base64 ? CALL_BASE64 : CALL_BINARY, strings[i]};
    }
    return infer_media_decode(infer, call, io->index, items, (uint32_t)count, count > 1, err);
}

/* Has the input been found and checked for this very model? */
static bool is_bound(const struct oip_request_input *input, const struct model *model)
{
    return input->bound.by == model->serial;
}

static enum status decode_input(struct infer *infer, struct infer_call *call,
                                const struct oip_request_input *input, const struct model_io *io,
                                struct error *err)
{
    if (io->medium && input->type.is_bytes) {
        return decode_media(infer, call, input, io, err);
    }
    TRY(is_bound(input, call->model) ? ST_OK : oip_verify_input(input, &io->meta, err));
    switch (io->kind) {
    case RT_IO_TENSOR:
        return decode_tensor(infer, call, input, io->index, err);
    case RT_IO_STRING:
        return decode_string(infer, call, input, io->index, err);
    case RT_IO_INT:
    case RT_IO_FLOAT:
    case RT_IO_BOOL:
        return decode_scalar(infer, call, input, io, err);
    case RT_IO_NONE:
        break; /* has no entry in model->inputs */
    }
    unreachable();
}

static enum status refuse_missing(const struct oip_tensor_meta *meta, struct error *err)
{
    char shape[SHAPE_TEXT_MAX];
    return error_set(err, ST_INVALID, "input '%s' is missing, expected %s %.80s", meta->name,
                     oip_type_name(meta->type), shape_print(&meta->shape, shape));
}

/* Finds the input of the model for each input of |oip|. */
static enum status find_inputs(struct arena *arena, const struct model *model,
                               const struct oip_request *oip, bool needs_all,
                               const struct model_io **out_ios, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    const struct oip_request_input **given = arena_array(arena, model->input_count, sizeof(*given));
    if (!given) {
        return arena_fail(arena, "the request", err);
    }
    for (size_t i = 0; i < oip->input_count; i++) {
        const struct oip_request_input *input = &oip->inputs[i];
        const struct model_io *io = model_find_io(model->inputs, model->input_count, input->name);
        if (!io) {
            model_refuse_name(model, RT_INPUT, input->name, err);
            return error_prefix(err, "inputs[%zu].name: ", input->index);
        }
        const struct oip_request_input **first = &given[io - model->inputs];
        if (*first) {
            return error_set(
                err, ST_INVALID, "inputs[%zu].name: '%.*s' is the input of inputs[%zu], '%.*s'",
                input->index, SPAN_SHORT(input->name), (*first)->index, SPAN_SHORT((*first)->name));
        }
        *first = input;
        out_ios[i] = io;
    }
    for (uint32_t i = 0; needs_all && i < model->input_count; i++) {
        if (!given[i] && !model->inputs[i].meta.is_optional) {
            return refuse_missing(&model->inputs[i].meta, err);
        }
    }
    return ST_OK;
}

enum status codec_oip_check_names(struct arena *arena, const struct model *model,
                                  const struct oip_request *oip, bool needs_all, struct error *err)
{
    const struct model_io *ios[INPUTS_MAX];
    must(oip->input_count <= INPUTS_MAX);
    return find_inputs(arena, model, oip, needs_all, ios, err);
}

/* Finds the inputs as the request before this one did, if it had the same form and was for the same
 * model: that has found all of them. */
static bool recall_inputs(const struct infer_call *call, const struct model_io **out_ios)
{
    bool is_known = call->oip.input_count > 0;
    for (size_t i = 0; is_known && i < call->oip.input_count; i++) {
        const struct oip_request_input *input = &call->oip.inputs[i];
        is_known = is_bound(input, call->model);
        out_ios[i] = is_known ? &call->model->inputs[input->bound.index] : NULL;
    }
    return is_known;
}

/* For requests of the same form. */
static void bind_inputs(const struct infer_call *call, const struct model_io *const *ios)
{
    for (size_t i = 0; i < call->oip.input_count; i++) {
        call->oip.inputs[i].bound =
            (struct oip_bound){call->model->serial, (uint32_t)(ios[i] - call->model->inputs)};
    }
}

static enum status decode(struct infer *infer, struct infer_call *call, struct error *err)
{
    const struct model_io *ios[INPUTS_MAX];
    call->nan = oip_request_nan(call->parameters);
    must(call->oip.input_count <= INPUTS_MAX);
    bool is_known = recall_inputs(call, ios);
    if (!is_known) {
        TRY(find_inputs(&infer->arena, call->model, &call->oip, true, ios, err));
    }
    TRY(codec_oip_choose_outputs(infer, call, err));
    TRY(call->parameters->top_k ? codec_call_choose_classes(call, err) : ST_OK);
    TRY(infer_order_choose(call, err));
    for (size_t i = 0; i < call->oip.input_count; i++) {
        if (!call->oip.inputs[i].is_promise) {
            TRY(decode_input(infer, call, &call->oip.inputs[i], ios[i], err));
        }
    }
    if (!is_known) {
        bind_inputs(call, ios);
    }
    return ST_OK;
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

/* The classes of an output take the place of its tensor. */
static enum status classify(struct arena *arena, const struct infer_call *call,
                            struct infer_output *output, struct error *err)
{
    const struct rt_result *result = rt_invocation_result(call->invocation, output->io->index);
    const struct oip_classes classes = {.dtype = output->io->meta.type.dtype,
                                        .shape = &result->shape,
                                        .scores = result->bytes,
                                        .labels = output->io->labels,
                                        .label_count = output->io->label_count,
                                        .wanted = output->class_count};
    return oip_classify(&classes, arena, &output->classes, &output->classes_shape, err);
}

static struct oip_result result_of(const struct infer_call *call, const struct infer_output *output)
{
    if (output->classes) {
        return (struct oip_result){.name = span_str(output->name),
                                   .type = {.is_bytes = true},
                                   .shape = output->classes_shape,
                                   .is_binary = output->is_binary,
                                   .strings = output->classes};
    }
    const struct rt_result *result = rt_invocation_result(call->invocation, output->io->index);
    bool is_alias = output->name != output->io->meta.name;
    return (struct oip_result){
        .head = is_alias ? span_str("") : output->io->head,
        .name = span_str(output->name),
        .type = output->io->meta.type,
        .shape = output->io->kind == RT_IO_STRING ? output->io->meta.shape : result->shape,
        .is_binary = output->is_binary,
        .is_channels_last = output->is_channels_last,
        .is_shared = output->region != NULL,
        .shared = {.region = span_str(output->region ? output->region->name : ""),
                   .offset = output->region_offset,
                   .bytes = output->region_bytes},
        .data = infer_order_bytes(call, output),
        .strings = &result->bytes, /* the one element of a BYTES result */
    };
}

static enum status store(struct infer_call *call, struct error *err)
{
    for (size_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i].region) {
            const struct oip_result result = result_of(call, &call->outputs[i]);
            TRY(infer_shared_write(&call->outputs[i], &result, err));
        }
    }
    return ST_OK;
}

enum status codec_oip_reply(struct infer *infer, struct infer_call *call, struct oip_reply *out,
                            struct error *err)
{
    struct oip_result *results = arena_array(&infer->arena, call->output_count, sizeof(*results));
    if (!results) {
        return arena_fail(&infer->arena, "the answer", err);
    }
    for (size_t i = 0; i < call->output_count; i++) {
        if (call->outputs[i].class_count) {
            TRY(classify(&infer->arena, call, &call->outputs[i], err));
        }
        if (call->outputs[i].is_answer) {
            TRY(infer_answer_take(&infer->arena, call, &call->outputs[i], err));
        }
        TRY(infer_order_turn(infer, call, &call->outputs[i], err));
        results[i] = result_of(call, &call->outputs[i]);
    }
    *out = (struct oip_reply){
        .head = call->model->reply_head,
        .model_name = call->model->name,
        .model_version = call->model->version_text,
        .results = results,
        .result_count = call->output_count,
        .nan = oip_answer_nan(call->parameters, &call->nan),
    };
    return ST_OK;
}

static enum status print(struct infer *infer, struct infer_call *call, struct error *err)
{
    struct oip_reply reply;
    TRY(codec_oip_reply(infer, call, &reply, err));
    oip_print_members(&reply, infer->out, &infer->encoded);
    return ST_OK;
}

static void print_tail(struct infer *infer, const struct infer_call *call)
{
    for (size_t i = 0; i < call->output_count; i++) {
        const struct infer_output *output = &call->outputs[i];
        if (output->is_binary && (output->classes || output->io->meta.type.is_bytes)) {
            const struct oip_result result = result_of(call, output);
            oip_print_strings(&result, infer->out);
        }
    }
}

const struct codec codec_oip = {.parse = parse,
                                .decode = decode,
                                .print = print,
                                .print_tail = print_tail,
                                .name_input = name_input,
                                .store = store,
                                .takes_files = true};
