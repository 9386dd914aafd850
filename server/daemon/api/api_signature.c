/* SPDX-License-Identifier: MIT */
/* The signature of a method, and the sizes of its results: both known without running it. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "protocol/oip_reply.h"
#include "protocol/rawsig.h"
#include "runtime/program/oracle.h"
#include "runtime/program/results.h"
#include "runtime/program/signature.h"
#include "server/daemon/api/api.h"
#include "server/daemon/infer/codec.h"
#include "server/daemon/request/request.h"

#define LABEL_BYTES_MAX ((size_t)64 << 10) /* of all labels of a model */
#define LABEL_EXTRA_BYTES 3                /* quotes and a comma */

static void print_member(struct buf *out, const char *name, const char *text)
{
    buf_printf(out, ",\"%s\":", name);
    if (text) {
        json_print_string(out, span_str(text));
    } else {
        buf_add_str(out, "null");
    }
}

/* ---- GET /v2/models/{m}/signature ------------------------------------------------------------ */

static void print_ios(struct buf *out, const char *name, const struct call_io *ios, uint32_t count)
{
    buf_printf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        char text[CALL_IO_TEXT_MAX];
        buf_printf(out, "%s\"%s\"", i ? "," : "", call_print_io(&ios[i], text));
    }
    buf_add_char(out, ']');
}

static void print_names(struct buf *out, const char *name, const struct rt_method *method,
                        enum rt_side side)
{
    uint32_t count =
        side == RT_INPUT ? rt_method_input_count(method) : rt_method_result_count(method);
    buf_printf(out, ",\"%s\":[", name);
    for (uint32_t i = 0; i < count; i++) {
        const struct rt_io *io =
            side == RT_INPUT ? rt_method_input(method, i) : rt_method_result(method, i);
        buf_printf(out, "%s\"%s\"", i ? "," : "", io->name); /* it needs no escapes */
    }
    buf_add_char(out, ']');
}

/* Labels of classes by the names of outputs; an output is left out if its labels would make the
 * answer long, so that printing it does not hold other clients up. */
static void print_labels(struct buf *out, const struct model *model)
{
    size_t room = LABEL_BYTES_MAX;
    bool is_first = true;
    buf_add_str(out, ",\"labels\":{");
    for (uint32_t i = 0; i < model->output_count; i++) {
        const struct model_io *io = &model->outputs[i];
        size_t size = 0;
        for (uint32_t k = 0; k < io->meta.label_count && size <= room; k++) {
            size += io->labels[k].len + LABEL_EXTRA_BYTES;
        }
        if (size == 0 || size > room) {
            continue;
        }
        room -= size;
        buf_add_str(out, is_first ? "" : ",");
        is_first = false;
        json_print_string(out, span_str(io->meta.name));
        for (uint32_t k = 0; k < io->meta.label_count; k++) {
            buf_add_str(out, k ? "," : ":[");
            json_print_string(out, io->labels[k]);
        }
        buf_add_char(out, ']');
    }
    buf_add_char(out, '}');
}

/* How the bytes of an input have to lie to be used there, in the order of memory that it prefers;
 * null: they never are. A stride that varies with the sizes is -1. */
static void print_layout(struct buf *out, const struct rt_method *method, const struct rt_io *io)
{
    int64_t strides[SHAPE_RANK_MAX], stride;
    if (io->kind != RT_IO_TENSOR || !oip_is_direct(io->dtype)) {
        buf_add_str(out, "null");
        return;
    }
    stride = (int64_t)dtype_bytes(io->dtype);
    for (int i = io->shape.rank - 1; i >= 0; i--) {
        int d = io->order ? io->order[i] : i;
        strides[d] = stride;
        bool varies = stride < 0 || rt_io_is_dynamic(io, (uint32_t)d);
        stride = varies ? -1 : stride * (io->shape.dims[d] ? io->shape.dims[d] : 1);
    }
    buf_printf(out, "{\"alignment\":%zu,\"strides\":[", rt_oracle_alignment(method, io->dtype));
    for (int d = 0; d < io->shape.rank; d++) {
        buf_printf(out, "%s%" PRId64, d ? "," : "", strides[d]);
    }
    buf_printf(out, "]%s}", io->order ? ",\"order\":\"channels_last\"" : "");
}

/* What a client sends so that no byte of its tensors is copied: the answers of the oracle. */
static void print_in_place(struct buf *out, const struct rt_method *method)
{
    buf_printf(out, ",\"in_place\":{\"byte_order\":\"little\",\"body_bytes_min\":%d,\"inputs\":[",
               BODY_SMALL_BYTES + 1);
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        buf_add_str(out, i ? "," : "");
        print_layout(out, method, rt_method_input(method, i));
    }
    buf_add_str(out, "]}");
}

static void print_readable(struct buf *out, const struct rt_signature *signature,
                           enum rawsig_version version)
{
    struct buf text;
    buf_init(&text, out->max_bytes);
    sip_print(&signature->structure.inputs, &text);
    buf_add_str(&text, " -> ");
    sip_print(&signature->structure.results, &text);
    buf_add_str(out, ",\"readable\":{\"f\":");
    json_print_string(out,
                      span_str(version == RAWSIG_2 ? signature->readable_f2 : signature->readable));
    buf_add_str(out, ",\"sip\":");
    json_print_string(out, buf_span(&text));
    buf_add_char(out, '}');
    out->failed |= buf_failed(&text);
    out->lacks_memory |= text.lacks_memory;
    buf_fini(&text);
}

/* The version of the raw function ABI that the request asks for. */
static enum status find_version(const struct request *request, enum rawsig_version *out,
                                struct error *err)
{
    const struct query *query = &request->infer.query;
    *out = query_has(query, QUERY_FV) && query->fv == RAWSIG_2 ? RAWSIG_2 : RAWSIG_1;
    return !query_has(query, QUERY_FV) || query->fv == (uint32_t)*out
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "query: fv: expected " RAWSIG_VERSION " or " RAWSIG_VERSION_ORDERS
                           ", got %" PRIu32,
                           query->fv);
}

enum status api_signature(struct request *request, struct error *err)
{
    enum rawsig_version version;
    TRY(find_version(request, &version, err));
    const struct model *model = api_find_ready(request, err);
    struct buf *out = &request->out;
    if (!model) {
        return err->code;
    }
    const struct rt_signature *signature = rt_method_signature(model->method);
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(model->name));
    print_member(out, "version", model->version_text);
    print_member(out, "abi", signature->is_positional ? "raw" : "sip");
    buf_add_str(out, ",\"abiv\":" SIP_VERSION);
    print_member(out, "fv", version == RAWSIG_2 ? RAWSIG_VERSION_ORDERS : RAWSIG_VERSION);
    print_member(out, "f", version == RAWSIG_2 ? signature->f2 : signature->f);
    print_member(out, "fbr", signature->fbr);
    buf_add_str(out, ",\"sipv\":" SIP_VERSION);
    print_member(out, "sip", signature->sip);
    print_readable(out, signature, version);
    print_ios(out, "inputs", model->call.inputs, model->call.input_count);
    print_ios(out, "results", model->call.results, model->call.result_count);
    print_names(out, "input_names", model->method, RT_INPUT);
    print_names(out, "result_names", model->method, RT_RESULT);
    print_in_place(out, model->method);
    print_labels(out, model);
    buf_printf(out, ",\"has_words\":%s", model->generator ? "true" : "false");
    buf_add_str(out, ",\"result_schema\":");
    call_print_result_schema(&model->call, "/openapi.json", out);
    buf_add_str(out, ",\"schema\":");
    call_print_schema(&model->call, out);
    buf_add_str(out, ",\"example\":");
    if (model->example) {
        call_print_example(&model->call, model->example, out);
    } else {
        buf_add_str(out, "null");
    }
    buf_add_char(out, '}');
    return api_check_printed(request, err);
}

/* ---- POST /v2/models/{m}/shape --------------------------------------------------------------- */

/* An input need not be given if it has only one size. */
static void fill_static(const struct rt_method *method, const struct shape **shapes)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        bool is_static = io->kind == RT_IO_TENSOR && io->dynamic_dims == 0;
        shapes[i] = is_static ? &io->shape : NULL;
    }
}

/* The shapes in a request for shapes, by raw index. */
struct shape_query {
    const struct shape **inputs;  /* NULL: not given */
    const struct shape **extents; /* of results, as a call found them out; NULL: not known */
    size_t *places;               /* results that the request's list of outputs names */
};

/* The results whose shapes the request gives. */
static enum status take_outputs(const struct model *model, const struct oip_outputs *outputs,
                                struct shape_query *query, struct error *err)
{
    for (size_t i = 0; i < outputs->count; i++) {
        const struct oip_request_output *output = &outputs->items[i];
        const struct model_io *io =
            model_find_io(model->outputs, model->output_count, output->name);
        if (!io) {
            model_refuse_name(model, RT_RESULT, output->name, err);
            return error_prefix(err, "outputs[%zu].name: ", output->index);
        }
        if (output->has_shape && io->kind == RT_IO_TENSOR) {
            query->extents[io->index] = &output->shape;
            query->places[io->index] = output->index;
        }
    }
    return ST_OK;
}

/* The body of a call, with or without the data of its tensors. */
static enum status read_call_shapes(struct request *request, const struct model *model,
                                    struct shape_query *query, struct error *err)
{
    const struct oip_body body = {.json = body_span(&request->body)};
    struct call_limits limits = codec_call_limits(&request->infer);
    struct call_request *call = &request->infer.call.tree;
    limits.shapes_only = true;
    TRY(call_parse(&body, &model->call, &limits, &request->infer.arena, call, NULL, err));
    for (uint32_t i = 0; i < model->call.input_count; i++) {
        if (model->call.inputs[i].kind == CALL_TENSOR && call->leaves[i].encoding != CALL_ABSENT) {
            query->inputs[i] = &call->leaves[i].shape;
        }
    }
    return take_outputs(model, &call->outputs, query, err);
}

static enum status read_oip_shapes(struct request *request, const struct model *model,
                                   struct shape_query *query, struct error *err)
{
    const struct oip_limits limits = codec_oip_limits(&request->infer);
    struct oip_request *oip = &request->infer.call.oip;
    TRY(oip_parse_shapes(body_span(&request->body), &limits, &request->infer.arena, oip, err));
    TRY(codec_oip_check_names(&request->infer.arena, model, oip, false, err));
    for (size_t i = 0; i < oip->input_count; i++) {
        const struct oip_request_input *input = &oip->inputs[i];
        const struct model_io *io = model_find_io(model->inputs, model->input_count, input->name);
        if (io->kind == RT_IO_TENSOR) {
            query->inputs[io->index] = &input->shape;
        }
    }
    return take_outputs(model, &oip->outputs, query, err);
}

static enum status init_query(struct request *request, const struct model *model,
                              struct shape_query *query, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct arena *arena = &request->infer.arena;
    uint32_t inputs = model->call.input_count, results = model->call.result_count;
    query->inputs = arena_array(arena, inputs, sizeof(*query->inputs));
    query->extents = arena_array(arena, results, sizeof(*query->extents));
    query->places = arena_array(arena, results, sizeof(*query->places));
    if (!query->inputs || !query->extents || !query->places) {
        return api_no_memory(err);
    }
    fill_static(model->method, query->inputs);
    return ST_OK;
}

static enum status take_extents(const struct model *model, const struct shape_query *query,
                                struct rt_result_info *infos, struct error *err)
{
    for (uint32_t i = 0; i < model->call.result_count; i++) {
        if (query->extents[i] &&
            rt_method_take_extent(model->method, i, query->extents[i], &infos[i], err) != ST_OK) {
            return error_prefix(err, "outputs[%zu] '%s': ", query->places[i],
                                rt_method_result(model->method, i)->name);
        }
    }
    return ST_OK;
}

/* The request is a body of infer or of call; the answer has the same kind. */
static enum status find_results(struct request *request, const struct model *model,
                                struct shape_query *query, struct rt_result_info *infos,
                                struct error *err)
{
    TRY(init_query(request, model, query, err));
    if (call_is_body(body_span(&request->body))) {
        TRY(read_call_shapes(request, model, query, err));
        TRY(rt_method_call_shapes(model->method, query->inputs, infos, err));
    } else {
        TRY(read_oip_shapes(request, model, query, err));
        TRY(rt_method_result_shapes(model->method, query->inputs, infos, err));
    }
    return take_extents(model, query, infos, err);
}

/*
 * A tensor's shape and its bytes. -1 stands for a dim that depends on data; that dim has a bound.
 */
static void print_sizes(struct buf *out, const struct rt_result_info *info)
{
    struct shape shape = info->shape;
    char text[SHAPE_TEXT_MAX];
    bool is_exact = true;
    for (uint8_t d = 0; d < shape.rank; d++) {
        bool is_known = info->known_dims >> d & 1;
        shape.dims[d] = is_known ? shape.dims[d] : -1;
        is_exact &= is_known;
    }
    buf_printf(out, ",\"shape\":%s", shape_print(&shape, text));
    if (is_exact) {
        buf_printf(out, ",\"bytes\":%zu", info->bytes);
    } else {
        buf_printf(out, ",\"bounds\":%s,\"bytes_max\":%zu", shape_print(&info->shape, text),
                   info->bytes);
    }
}

/* The bytes of a number, or of a string in binary form. A program's strings are constants. */
static size_t plain_bytes(const struct model_io *io)
{
    if (!io->meta.type.is_bytes) {
        return dtype_bytes(io->meta.type.dtype);
    }
    must(io->io->kind == RT_IO_STRING);
    return oip_string_bytes(io->io->value.s);
}

static void print_output(struct buf *out, const struct model_io *io,
                         const struct rt_result_info *info)
{
    char text[SHAPE_TEXT_MAX];
    buf_printf(out, "{\"name\":\"%s\",\"datatype\":\"%s\"", io->meta.name,
               oip_type_name(io->meta.type));
    if (info->is_tensor) {
        print_sizes(out, info);
    } else {
        buf_printf(out, ",\"shape\":%s,\"bytes\":%zu", shape_print(&io->meta.shape, text),
                   plain_bytes(io));
    }
    buf_add_char(out, '}');
}

enum status api_shape(struct request *request, struct error *err)
{
    const struct model *model = api_find_ready(request, err);
    struct arena *arena = &request->infer.arena;
    struct buf *out = &request->out;
    struct shape_query query;
    if (!model) {
        return err->code;
    }
    struct rt_result_info *infos = arena_array(arena, model->call.result_count, sizeof(*infos));
    if (!infos) {
        return api_no_memory(err);
    }
    TRY(find_results(request, model, &query, infos, err));
    buf_add_str(out, "{\"model_name\":");
    json_print_string(out, span_str(model->name));
    print_member(out, "model_version", model->version_text);
    buf_add_str(out, ",\"outputs\":[");
    for (uint32_t i = 0; i < model->output_count; i++) {
        buf_add_str(out, i ? "," : "");
        print_output(out, &model->outputs[i], &infos[model->outputs[i].index]);
    }
    buf_add_str(out, "]}");
    return api_check_printed(request, err);
}
