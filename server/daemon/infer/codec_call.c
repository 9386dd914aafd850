/* SPDX-License-Identifier: MIT */
/* Requests and answers in the method's own structure (protocol/call.h). */
#include "config.h"

#include "base/check.h"
#include "runtime/call/invocation.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/infer_answer.h"
#include "server/daemon/infer/infer_order.h"
#include "server/model/answer/answer.h"
#include "server/model/card/card.h"

struct call_limits codec_call_limits(const struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    const struct params *params = infer->env->params;
    return (struct call_limits){
        .oip = codec_oip_limits(infer),
        .element_count_max = params->element_count_max,
    };
}

static enum status parse(struct infer *infer, struct infer_call *call, const struct oip_body *parts,
                         struct span *out_rest, struct error *err)
{
    struct call_limits limits = codec_call_limits(infer);
    if (!out_rest && codec_form_is(infer, call)) {
        call->codec = &codec_form_call;
        return call->codec->parse(infer, call, parts, NULL, err);
    }
    limits.oip.is_listed = out_rest != NULL;
    call->parameters = &call->tree.parameters;
    TRY(call_parse(parts, &call->model->call, &limits, &infer->arena, &call->tree, out_rest, err));
    codec_take_query(infer, &call->tree.parameters);
    return ST_OK;
}

/* ---- DECODE ---------------------------------------------------------------------------------- */

static const struct model_io *find_output(const struct model *model, int64_t index)
{
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].index == index) {
            return &model->outputs[i];
        }
    }
    return NULL;
}

/* The leaves of the results, in their order; a None has no bytes. */
enum status codec_call_list_outputs(struct infer *infer, struct infer_call *call, bool is_binary,
                                    struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    OBJ_CHECK(call->model, MODEL_MAGIC);
    struct arena *arena = &infer->arena;
    const struct sip_tree *tree = &call->model->call.structure->results;
    if (tree->leaf_count > INFER_OUTPUTS_MAX) {
        return error_set(err, ST_UNSUPPORTED, "result: expected at most %d leaves, got %u",
                         INFER_OUTPUTS_MAX, tree->leaf_count);
    }
    TRY(codec_outputs_new(arena, call, tree->leaf_count, err));
    for (uint32_t node = 0; node != SIP_NO_NODE; node = sip_next(tree, node)) {
        const struct model_io *io = tree->nodes[node].kind == SIP_LEAF
                                        ? find_output(call->model, tree->nodes[node].raw_index)
                                        : NULL;
        if (io) {
            call->outputs[call->output_count++] =
                (struct infer_output){.io = io, .name = io->meta.name, .is_binary = is_binary};
        }
    }
    return ST_OK;
}

static bool has_scores(const struct infer_output *output)
{
    bool is_other = output->io->answer && output->io->answer->kind != ANSWER_CLASSES;
    return !is_other && !output->region && output->io->kind == RT_IO_TENSOR &&
           oip_is_score(output->io->meta.type.dtype) && output->io->meta.shape.rank > 0;
}

static enum status refuse_classes(const struct infer_call *call, struct error *err)
{
    for (size_t i = 0; i < call->output_count; i++) {
        const struct model_io *io = call->outputs[i].io;
        if (io->answer && io->answer->kind != ANSWER_CLASSES) {
            return error_set(err, ST_INVALID,
                             "parameters.top_k: '%.64s' is answered as %s, top_k is for classes",
                             io->meta.name, card_answer_word(io->answer->kind));
        }
    }
    return error_set(err, ST_INVALID,
                     "parameters.top_k: no result of the method has scores, which are real "
                     "numbers in a tensor with dims");
}

/* "top_k" is about the results whose classes have labels, or about all if none have. */
enum status codec_call_choose_classes(struct infer_call *call, struct error *err)
{
    bool has_labels = false;
    uint32_t count = 0;
    for (size_t i = 0; i < call->output_count; i++) {
        has_labels |= has_scores(&call->outputs[i]) && call->outputs[i].io->labels;
    }
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        bool is_meant = has_scores(output) && (output->io->labels || !has_labels);
        if (output->class_count == 0 && is_meant) {
            output->class_count = call->parameters->top_k;
        }
        output->is_binary &= !is_meant; /* classes are text */
        count += is_meant;
    }
    return count ? ST_OK : refuse_classes(call, err);
}

static enum status decode_tensor(struct infer *infer, struct infer_call *call, uint32_t index,
                                 const struct call_leaf *leaf, struct error *err)
{
    const struct call_method *method = &call->model->call;
    enum dtype dtype = method->inputs[index].dtype;
    const struct codec_tensor tensor = {index, dtype, &leaf->shape, &leaf->layout};
    bool is_direct = leaf->encoding == CALL_BINARY && oip_is_direct(dtype) && infer->body->buffer;
    void *memory;
    enum status status = is_direct ? codec_bind(infer, call, &tensor, leaf->data, err)
                                   : codec_stage(infer, call, &tensor, leaf->stored, &memory, err);
    if (status != ST_OK) {
        return call_prefix(method, leaf, index, ": ", err);
    }
    if (!is_direct && call_decode_leaf(leaf, dtype, &call->nan, memory, err) != ST_OK) {
        return call_prefix(method, leaf, index, "", err);
    }
    return ST_OK;
}

static enum status decode_scalar(struct infer_call *call, uint32_t index,
                                 const struct call_leaf *leaf, struct error *err)
{
    const struct call_method *method = &call->model->call;
    enum rt_io_kind kind = rt_method_input(call->model->method, index)->kind;
    union codec_scalar value;
    must(leaf->bytes <= sizeof(value));
    if (call_decode_leaf(leaf, method->inputs[index].dtype, &call->nan, &value, err) != ST_OK) {
        return call_prefix(method, leaf, index, "", err);
    }
    return codec_put_scalar(call, kind, index, &value, err) == ST_OK
               ? ST_OK
               : call_prefix(method, leaf, index, ": ", err);
}

static enum status decode_input(struct infer *infer, struct infer_call *call, uint32_t index,
                                struct error *err)
{
    const struct call_leaf *leaf = &call->tree.leaves[index];
    const struct call_method *method = &call->model->call;
    if (leaf->encoding == CALL_ABSENT || leaf->encoding == CALL_PROMISE) {
        return ST_OK; /* call_parse() has checked that it may be left out */
    }
    if (leaf->encoding == CALL_MEDIA) {
        return infer_media_decode(infer, call, index, leaf->items, leaf->item_count, leaf->is_list,
                                  err);
    }
    switch (method->inputs[index].kind) {
    case CALL_TENSOR:
        return decode_tensor(infer, call, index, leaf, err);
    case CALL_SCALAR:
        return decode_scalar(call, index, leaf, err);
    case CALL_STRING:
        return codec_put_string(infer, call, index, leaf->data, err) == ST_OK
                   ? ST_OK
                   : call_prefix(method, leaf, index, ": ", err);
    case CALL_NONE:
        break; /* no leaf is given for it */
    }
    unreachable();
}

enum status codec_call_decode_inputs(struct infer *infer, struct infer_call *call,
                                     struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    OBJ_CHECK(call->model, MODEL_MAGIC);
    must(call->invocation != NULL);
    for (uint32_t i = 0; i < call->model->call.input_count; i++) {
        TRY(decode_input(infer, call, i, err));
    }
    return ST_OK;
}

static enum status choose_outputs(struct infer *infer, struct infer_call *call, bool is_binary,
                                  struct error *err)
{
    call->nan = oip_request_nan(call->parameters);
    rt_invocation_say_paths(call->invocation);
    TRY(codec_call_list_outputs(infer, call, is_binary, err));
    return call->parameters->top_k ? codec_call_choose_classes(call, err) : ST_OK;
}

static enum status decode(struct infer *infer, struct infer_call *call, struct error *err)
{
    bool is_binary = call->parameters->binary_data_output || infer->query.is_binary;
    TRY(choose_outputs(infer, call, is_binary, err));
    if (!call->parameters->wants_tensors) {
        infer_answer_choose(call);
    }
    TRY(infer_order_choose(call, err));
    return codec_call_decode_inputs(infer, call, err);
}

enum status codec_call_decode_text(struct infer *infer, struct infer_call *call, struct error *err)
{
    TRY(choose_outputs(infer, call, false, err));
    return codec_call_decode_inputs(infer, call, err);
}

/* ---- ENCODE ---------------------------------------------------------------------------------- */

static enum status classify(struct arena *arena, const struct infer_output *output,
                            struct call_result *result, struct error *err)
{
    const struct oip_classes classes = {.dtype = output->io->meta.type.dtype,
                                        .shape = &result->shape,
                                        .scores = result->bytes,
                                        .wanted = output->class_count};
    result->labels = output->io->labels;
    result->label_count = output->io->label_count;
    return oip_find_classes(&classes, arena, &result->classes, &result->classes_shape, err);
}

/* Appends what takes the place of the tensor, if anything does, to |texts|. Its address is known
 * when all are there. */
static enum status add_answer(const struct infer_call *call, const struct infer_output *output,
                              struct buf *texts, struct call_result *result, struct error *err)
{
    size_t begin = texts->len;
    if (output->is_answer) {
        TRY(infer_answer_print(call, output, texts, err));
    } else if (output->is_part) {
        buf_add_str(texts, "null");
    }
    result->json.len = texts->len - begin;
    return buf_check(texts, "the answer", err);
}

static enum status print_all(struct infer *infer, struct infer_call *call,
                             struct call_result *results, struct buf *texts, struct error *err)
{
    const struct call_method *method = &call->model->call;
    bool is_binary = false;
    size_t at = 0;
    for (size_t i = 0; i < call->output_count; i++) {
        const struct infer_output *output = &call->outputs[i];
        is_binary |= output->is_binary;
        TRY(add_answer(call, output, texts, &results[output->io->index], err));
    }
    for (size_t i = 0; i < call->output_count; i++) {
        struct span *json = &results[call->outputs[i].io->index].json;
        json->ptr = json->len ? texts->ptr + at : NULL;
        at += json->len;
    }
    return call_print(method, results, is_binary, oip_answer_nan(call->parameters, &call->nan),
                      infer->out, &infer->encoded, err);
}

static enum status print(struct infer *infer, struct infer_call *call, struct error *err)
{
    const struct call_method *method = &call->model->call;
    struct call_result *results =
        arena_array(&infer->arena, method->result_count, sizeof(*results));
    if (!results) {
        return arena_fail(&infer->arena, "the answer", err);
    }
    for (size_t i = 0; i < call->output_count; i++) {
        struct infer_output *output = &call->outputs[i];
        struct call_result *result = &results[output->io->index];
        TRY(infer_order_turn(infer, call, output, err));
        *result = (struct call_result){
            .shape = rt_invocation_result(call->invocation, output->io->index)->shape,
            .is_channels_last = output->is_channels_last,
            .bytes = infer_order_bytes(call, output),
        };
        if (output->class_count) {
            TRY(classify(&infer->arena, output, result, err));
        }
    }
    struct buf texts;
    buf_init(&texts, infer->env->params->answer_bytes_max);
    enum status status = print_all(infer, call, results, &texts, err);
    buf_fini(&texts);
    return status;
}

enum status codec_call_name_input(const struct infer_call *call, uint32_t index, const char *behind,
                                  struct error *err)
{
    return call_prefix(&call->model->call, &call->tree.leaves[index], index, behind, err);
}

const struct codec codec_call = {.parse = parse,
                                 .decode = decode,
                                 .print = print,
                                 .name_input = codec_call_name_input,
                                 .takes_files = true};
