/* SPDX-License-Identifier: MIT */
/* Models below /v1: for clients of KServe's first protocol and of OpenAI's API at once, and, by a
 * field of the head that these always send, for clients of Anthropic's. */
#include "config.h"

#include <inttypes.h>
#include <string.h>

#include "base/check.h"
#include "protocol/json.h"
#include "runtime/program/held.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"
#include "server/daemon/serving/serving.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/language/reply_ollama.h"
#include "server/language/words.h"

#define NS_PER_S 1000000000u

/* A speech model has the name of its file. */
const char *api_v1_id(const struct model *model)
{
    return model->transcriber && model->alias ? model->alias : model->name;
}

/* Has OpenAI's API a use for it? A file that is not loaded may have what it takes. */
static bool is_for_openai(const struct model *model)
{
    const struct model_uses *uses = &model->uses;
    bool was_loaded = model_state(model) != MODEL_UNKNOWN || model->origin->why_listed;
    return !was_loaded || uses->generates || uses->transcribes || uses->embeds || uses->ranks;
}

/* The model that |model| is an adapter of: the least one, should there be several; or itself. */
static const struct model *find_root(const struct repository_index *index,
                                     const struct model *model)
{
    const struct model *root = model;
    uint64_t least = UINT64_MAX;
    if (!model_is_ready(model) || rt_program_held(model->program).shared == 0) {
        return root; /* it reads nothing that others read */
    }
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *other = index->models[i];
        uint64_t bytes = model_is_ready(other) && other->program != model->program &&
                                 other->origin->path && model->origin->path &&
                                 strcmp(other->method_name, model->method_name) == 0
                             ? rt_program_extends(model->program, other->program)
                             : 0;
        if (bytes > 0 && bytes < least) {
            root = other;
            least = bytes;
        }
    }
    return root;
}

/* What clients of vLLM and llama.cpp look for: how much fits into the context. */
static void print_v1_context(struct buf *out, const struct model *model)
{
    const struct words *words = model->generator  ? model->generator->words
                                : model->embedder ? model->embedder->words
                                                  : NULL;
    if (!words) {
        return;
    }
    uint32_t context = model->generator ? model->generator->context : model->embedder->tokens_max;
    buf_printf(out,
               ",\"max_model_len\":%u,\"context_length\":%u,\"meta\":{\"n_vocab\":%u,"
               "\"n_ctx\":%u,\"n_ctx_train\":%u,\"size\":%" PRIu64 "}",
               context, context, words_count(words), context, context, model->origin->bytes);
}

static void print_v1_members(struct buf *out, const struct repository_index *index,
                             const struct model *model)
{
    buf_add_str(out, "\"id\":");
    json_print_string(out, span_str(api_v1_id(model)));
    buf_add_str(out, ",\"root\":");
    json_print_string(out, span_str(api_v1_id(find_root(index, model))));
    buf_printf(out, ",\"object\":\"model\",\"created\":%" PRIu64 ",\"owned_by\":\"pted\"",
               model->origin->id.program.modified_ns / NS_PER_S);
    if (model_is_ready(model)) {
        print_v1_context(out, model);
    }
}

/* All names for KServe, or the models that OpenAI's clients can use. */
static void print_v1_models(struct buf *out, const struct repository_index *index, bool are_names)
{
    const char *last = "";
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (!model_can_serve(model) || strcmp(model->name, last) == 0 ||
            (!are_names && !is_for_openai(model))) {
            continue;
        }
        buf_add_str(out, *last ? "," : "");
        last = model->name;
        if (are_names) {
            json_print_string(out, span_str(model->name));
        } else {
            buf_add_char(out, '{');
            print_v1_members(out, index, model);
            buf_add_char(out, '}');
        }
    }
}

/* ---- Anthropic's form ------------------------------------------------------------------------ */

static bool is_for_anthropic(const struct request *request)
{
    return head_has(&request->head, HTTP_ANTHROPIC_VERSION);
}

/* Has it a use for it? As is_for_openai(). */
static bool is_answerer(const struct model *model)
{
    bool was_loaded = model_state(model) != MODEL_UNKNOWN || model->origin->why_listed;
    return model_can_serve(model) && (!was_loaded || model->uses.generates);
}

static void print_anthropic(struct buf *out, const struct model *model)
{
    buf_add_str(out, "{\"type\":\"model\",\"id\":");
    json_print_string(out, span_str(model->name));
    buf_add_str(out, ",\"display_name\":");
    json_print_string(out, span_str(model->name));
    buf_add_str(out, ",\"lifecycle\":\"active\",\"created_at\":");
    reply_ollama_print_time(out, model->origin->id.program.modified_ns);
    if (model_is_ready(model) && model->generator) {
        buf_printf(out, ",\"max_input_tokens\":%u,\"max_tokens\":%u", model->generator->context,
                   model->generator->context);
    }
    buf_add_char(out, '}');
}

static void print_or_null(struct buf *out, const char *text)
{
    if (text) {
        json_print_string(out, span_str(text));
    } else {
        buf_add_str(out, "null");
    }
}

/* All on one page. */
static void print_anthropic_models(struct buf *out, const struct repository_index *index)
{
    const char *first = NULL, *last = NULL;
    buf_add_str(out, "{\"data\":[");
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (!is_answerer(model) || (last && strcmp(model->name, last) == 0)) {
            continue;
        }
        buf_add_str(out, last ? "," : "");
        print_anthropic(out, model);
        first = first ? first : model->name;
        last = model->name;
    }
    buf_add_str(out, "],\"has_more\":false,\"first_id\":");
    print_or_null(out, first);
    buf_add_str(out, ",\"last_id\":");
    print_or_null(out, last);
    buf_add_char(out, '}');
}

/* ---- routes ---------------------------------------------------------------------------------- */

enum status api_v1_models(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    struct buf *out = &request->out;
    if (is_for_anthropic(request)) {
        print_anthropic_models(out, index);
    } else {
        buf_add_str(out, "{\"object\":\"list\",\"data\":[");
        print_v1_models(out, index, false);
        buf_add_str(out, "],\"models\":[");
        print_v1_models(out, index, true);
        buf_add_str(out, "]}");
    }
    repository_unref_index(index);
    return api_check_printed(request, err);
}

enum status api_v1_model(struct request *request, struct error *err)
{
    TRY(api_model_ready(request, err));
    const struct model *model = request->infer.call.model;
    struct buf *out = &request->out;
    if (model && is_for_anthropic(request)) {
        buf_reset(out);
        print_anthropic(out, model);
    } else if (model && !buf_failed(out)) {
        must(out->len > 0 && out->ptr[out->len - 1] == '}');
        out->ptr[out->len - 1] = ',';
        struct repository_index *index = repository_ref_index(&request->serving->repository);
        print_v1_members(out, index, model);
        repository_unref_index(index);
        buf_add_char(out, '}');
    }
    return api_check_printed(request, err);
}
