/* SPDX-License-Identifier: MIT */
/*
 * GET /openapi.json: all routes (server/daemon/console/openapi.json, whose last member is "paths"),
 * and behind them the call of each model with the types of its arguments and of its result.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/daemon/api/api.h"
#include "server/daemon/console/console.h"
#include "server/daemon/request/request.h"
#include "server/daemon/serving/serving.h"
#include "server/model/intake/medium.h"

/* The file without the two braces that close "paths" and the document. */
static struct span open_paths(struct span document)
{
    for (int braces = 2; braces > 0; document.len--) {
        must(document.len > 0);
        braces -= document.ptr[document.len - 1] == '}';
    }
    return document;
}

/* ---- what a call takes ----------------------------------------------------------------------- */

static void print_json_body(struct buf *out, const struct model *model)
{
    buf_add_str(out, "\"application/json\":{\"schema\":");
    call_print_schema(&model->call, out);
    buf_add_char(out, '}');
}

/* Does dim 0 count rows, so that several files may come? */
static bool takes_rows(const struct model_io *io)
{
    return io->meta.shape.rank > 0 && io->meta.shape.dims[0] != 1;
}

static void print_field(struct buf *out, const struct model_io *io)
{
    char text[CALL_IO_TEXT_MAX];
    const char *item = !io->medium                 ? NULL
                       : io->medium->kind->is_text ? "{\"type\":\"string\"}"
                                                   : "{\"type\":\"string\","
                                                     "\"format\":\"binary\"}";
    buf_printf(out, "\"%s\":", io->meta.name); /* it needs no escapes */
    if (item && takes_rows(io)) {
        buf_printf(out, "{\"type\":\"array\",\"minItems\":1,\"items\":%s}", item);
    } else if (item) {
        buf_add_str(out, item);
    } else if (io->kind == RT_IO_STRING) {
        buf_add_str(out, "{\"type\":\"string\"}");
    } else {
        const struct call_io leaf = {.kind = CALL_TENSOR,
                                     .dtype = io->meta.type.dtype,
                                     .shape = io->meta.shape,
                                     .bounds = io->meta.shape};
        buf_printf(out,
                   "{\"type\":\"string\",\"contentMediaType\":\"application/json\","
                   "\"description\":\"as in JSON: %s\"}",
                   call_print_io(&leaf, text));
    }
}

/* A field for each input; files are not encoded. */
static void print_form_body(struct buf *out, const struct model *model)
{
    bool is_first = true;
    buf_add_str(out, ",\"multipart/form-data\":{\"schema\":{\"type\":\"object\",\"properties\":{");
    for (uint32_t i = 0; i < model->input_count; i++) {
        print_field(out, &model->inputs[i]);
        buf_add_char(out, ',');
    }
    buf_add_str(out, "\"parameters\":{\"type\":\"string\","
                     "\"contentMediaType\":\"application/json\"}},\"required\":[");
    for (uint32_t i = 0; i < model->input_count; i++) {
        const struct model_io *io = &model->inputs[i];
        if (!io->meta.is_optional) {
            buf_printf(out, "%s\"%s\"", is_first ? "" : ",", io->meta.name);
            is_first = false;
        }
    }
    buf_add_str(out, "],\"additionalProperties\":false}}");
}

/* The only input that must be given, if it may come as a file or a text; or NULL. */
static const struct model_io *find_alone(const struct model *model)
{
    const struct model_io *found = NULL;
    uint32_t count = 0;
    for (uint32_t i = 0; i < model->input_count; i++) {
        if (!model->inputs[i].meta.is_optional) {
            found = &model->inputs[i];
            count++;
        }
    }
    return count == 1 && found->medium ? found : NULL;
}

/* Generators know octets, but no pictures. */
static void print_file_body(struct buf *out, const struct model_io *io)
{
    const struct card_medium *kind = io->medium->kind;
    bool is_text = kind->is_text;
    buf_printf(out, ",\"%s\":{\"schema\":{\"type\":\"string\"%s}}", kind->types[0],
               is_text ? "" : ",\"format\":\"binary\"");
    buf_add_str(out, is_text ? ""
                             : ",\"application/octet-stream\":{\"schema\":{\"type\":\"string\","
                               "\"format\":\"binary\"}}");
}

static bool has_media(const struct model *model)
{
    bool has_any = false;
    for (uint32_t i = 0; i < model->input_count; i++) {
        has_any |= model->inputs[i].medium != NULL;
    }
    return has_any;
}

static bool has_classes(const struct model *model)
{
    bool has_any = false;
    for (uint32_t i = 0; i < model->call.result_count; i++) {
        has_any |= model->call.results[i].answer == CALL_CLASSES;
    }
    return has_any;
}

static void print_bodies(struct buf *out, const struct model *model)
{
    const struct model_io *alone = find_alone(model);
    print_json_body(out, model);
    if (has_media(model)) {
        print_form_body(out, model);
    }
    if (alone) {
        print_file_body(out, alone);
    }
}

/* ---- a model --------------------------------------------------------------------------------- */

static void print_call(struct buf *out, const struct model *model)
{
    buf_add_str(out, ",\n\"/v2/models/");
    buf_add_str(out, model->name); /* it needs no escapes */
    buf_add_str(out, "/call\":{\"post\":{\"tags\":[\"models\"],\"operationId\":");
    buf_printf(out, "\"call_%s\",\"summary\":", model->name);
    json_print_string(out, span_str(model->description ? model->description : model->name));
    buf_add_str(out, ",\"parameters\":[{\"$ref\":\"#/components/parameters/Profile\"}");
    if (has_classes(model)) {
        buf_add_str(out, ",{\"$ref\":\"#/components/parameters/TopK\"}");
    }
    buf_add_str(out, "],\"requestBody\":{\"required\":true,\"content\":{");
    print_bodies(out, model);
    buf_add_str(out, "}},\"responses\":{\"200\":{\"description\":\"the result\",\"content\":"
                     "{\"application/json\":{\"schema\":{\"type\":\"object\",\"properties\":"
                     "{\"result\":");
    call_print_result_schema(&model->call, "", out);
    buf_add_str(out, "},\"required\":[\"result\"]}}}},"
                     "\"default\":{\"$ref\":\"#/components/responses/Error\"}}}}");
}

enum status api_openapi(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct console_file document;
    struct buf *out = &request->out;
    const char *last = "";
    bool has_document = console_find("openapi.json", &document);
    must(has_document);
    struct span head = open_paths(document.bytes);
    buf_add(out, head.ptr, head.len);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (model_is_ready(model) && strcmp(model->name, last) != 0) {
            print_call(out, model);
            last = model->name;
        }
    }
    repository_unref_index(index);
    buf_add_str(out, "}}\n");
    TRY(api_check_printed(request, err));
    return infer_compress_text(&request->infer, err);
}
