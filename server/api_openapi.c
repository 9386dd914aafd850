/* SPDX-License-Identifier: MIT */
/*
 * GET /openapi.json: all routes (server/console/openapi.json, whose last member is "paths"), and
 * behind them the call of each model with the types of its arguments.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/api.h"
#include "server/console/console.h"
#include "server/request.h"
#include "server/server.h"
#include "server/serving.h"

/* The file without the two braces that close "paths" and the document. */
static struct span open_paths(struct span document)
{
    for (int braces = 2; braces > 0; document.len--) {
        must(document.len > 0);
        braces -= document.ptr[document.len - 1] == '}';
    }
    return document;
}

static void print_call(struct buf *out, const struct model *model)
{
    buf_add_str(out, ",\n\"/v2/models/");
    buf_add_str(out, model->name); /* it needs no escapes */
    buf_add_str(out, "/call\":{\"post\":{\"tags\":[\"models\"],\"operationId\":");
    buf_printf(out, "\"call_%s\",\"summary\":", model->name);
    json_print_string(out, span_str(model->description ? model->description : model->name));
    buf_add_str(out, ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":"
                     "{\"schema\":");
    call_print_schema(&model->call, out);
    buf_add_str(out, "}}},\"responses\":{\"200\":{\"$ref\":\"#/components/responses/Called\"},"
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
    return infer_compress_text(request, err);
}
