/* SPDX-License-Identifier: MIT */
/* GET /info: what an encoder of texts is, as TEI says it of its only model. */
#include "config.h"

#include <inttypes.h>

#include "base/check.h"
#include "protocol/json.h"
#include "server/daemon/api/api.h"
#include "server/daemon/generation/embedding.h"
#include "server/daemon/infer/query.h"
#include "server/daemon/request/request.h"
#include "server/language/embedder.h"

static const struct model_io *find_result(const struct model *model)
{
    for (uint32_t i = 0; i < model->output_count; i++) {
        if (model->outputs[i].index == model->embedder->result) {
            return &model->outputs[i];
        }
    }
    return NULL;
}

static void print_label(struct buf *out, const struct model_io *io, uint32_t index)
{
    if (io && index < io->label_count) {
        json_print_string(out, io->labels[index]);
    } else {
        buf_printf(out, "\"LABEL_%u\"", index);
    }
}

/* Names of classes by their numbers, and the contrary. */
static void print_labels(struct buf *out, const struct model *model)
{
    const struct model_io *io = find_result(model);
    buf_add_str(out, "{\"id2label\":{");
    for (uint32_t i = 0; i < model->embedder->width; i++) {
        buf_printf(out, "%s\"%u\":", i ? "," : "", i);
        print_label(out, io, i);
    }
    buf_add_str(out, "},\"label2id\":{");
    for (uint32_t i = 0; i < model->embedder->width; i++) {
        buf_add_str(out, i ? "," : "");
        print_label(out, io, i);
        buf_printf(out, ":%u", i);
    }
    buf_add_str(out, "}}");
}

static void print_type(struct buf *out, const struct model *model)
{
    static const char *const poolings[] = {
        [EMBEDDER_UNSAID] = "none",     [EMBEDDER_MEAN] = "mean",     [EMBEDDER_CLS] = "cls",
        [EMBEDDER_LAST] = "last_token", [EMBEDDER_SPLADE] = "splade", [EMBEDDER_NONE] = "none"};
    const struct embedder *embedder = model->embedder;
    bool has_classes = embedder->claim == EMBEDDER_CLASSES && !embedder->has_states;
    if (has_classes || embedder->is_ranker) {
        buf_printf(out, "{\"%s\":", embedder->is_ranker ? "reranker" : "classifier");
        print_labels(out, model);
        buf_add_char(out, '}');
    } else {
        buf_printf(out, "{\"embedding\":{\"pooling\":\"%s\"}}", poolings[embedder->pooling]);
    }
}

static void print_info(struct buf *out, const struct model *model)
{
    const struct embedder *embedder = model->embedder;
    buf_add_str(out, "{\"model_id\":");
    json_print_string(out, span_str(model->name));
    buf_printf(out, ",\"model_sha\":null,\"model_dtype\":\"%s\",\"model_type\":",
               dtype_name(embedder->floats));
    print_type(out, model);
    buf_printf(out,
               ",\"max_concurrent_requests\":%" PRIu64 ",\"max_input_length\":%u,"
               "\"max_batch_tokens\":%" PRIu64 ",\"max_batch_requests\":%u,"
               "\"max_client_batch_size\":%d,\"auto_truncate\":false,\"tokenization_workers\":4,"
               "\"version\":\"" PACKAGE_VERSION "\",\"sha\":null,\"docker_label\":null}",
               model->params.queue_count_max, embedder->tokens_max,
               (uint64_t)embedder->tokens_max * embedder->rows_max, embedder->rows_max,
               EMBED_TEXTS_MAX);
}

/* An encoder; without one a cross-encoder, or a classifier. */
static enum status find_name(struct request *request, char out_name[MODEL_NAME_MAX + 1],
                             struct error *err)
{
    static const enum embed_form forms[] = {EMBED_TEI, RANK_TEI, PREDICT_TEI};
    enum status status =
        query_find(head_target(&request->head), "model", out_name, MODEL_NAME_MAX, err);
    if (status != ST_OK || out_name[0]) {
        return status;
    }
    status = ST_NOT_FOUND;
    for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && status == ST_NOT_FOUND; i++) {
        status = embedding_find_only(&request->infer, forms[i], out_name, err);
    }
    return status;
}

enum status api_info(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    char name[MODEL_NAME_MAX + 1];
    TRY(find_name(request, name, err));
    const struct model *model = api_find_named(request, name, NULL, "encoder of texts", err);
    if (!model) {
        return err->code;
    }
    if (!model->embedder) {
        return model_refuse_texts(model, "encoder of texts", err);
    }
    print_info(&request->out, model);
    return api_check_printed(request, err);
}
