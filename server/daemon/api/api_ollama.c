/* SPDX-License-Identifier: MIT */
/* What Ollama's clients ask of models: which there are, which are loaded, what they can do. Nothing
 * is changed by these routes. Source: the page "API" of Ollama's documentation. */
#include "config.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include <uv.h>

#include "base/check.h"
#include "base/digest.h"
#include "hal/device.h"
#include "protocol/json.h"
#include "protocol/number.h"
#include "server/daemon/api/api.h"
#include "server/daemon/request/request.h"
#include "server/daemon/serving/serving.h"
#include "server/language/ask_values.h"
#include "server/language/chat.h"
#include "server/language/embedder.h"
#include "server/language/generator.h"
#include "server/language/reply_ollama.h"
#include "server/language/words.h"

#define NS_PER_S 1000000000u

/* For ever, as other servers of this form have it: clients call what is later than a century so. */
#define FOR_EVER_NS ((uint64_t)INT64_MAX)

/* ---- one model ------------------------------------------------------------------------------- */

/* Tells the model's files from others, and their states; clients print its first 12 characters. */
static void print_digest(struct buf *out, const struct model *model)
{
    const struct origin_id *id = &model->origin->id;
    const uint64_t numbers[] = {id->program.device, id->program.inode,       id->program.bytes,
                                id->words,          id->program.modified_ns, id->data,
                                id->exported,       id->card.modified_ns,    id->beside};
    struct digest digest;
    uint64_t sum[2];
    digest_init(&digest);
    digest_add_text(&digest, model->name);
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        digest_add_number(&digest, numbers[i]);
    }
    digest_end(&digest, sum);
    buf_printf(out, ",\"digest\":\"%016" PRIx64 "%016" PRIx64 "\"", sum[0], sum[1]);
}

static void print_details(struct buf *out)
{
    buf_add_str(out, ",\"details\":{\"parent_model\":\"\",\"format\":\"pte\",\"family\":\"pte\","
                     "\"families\":[\"pte\"],\"parameter_size\":\"\",\"quantization_level\":\"\"}");
}

static void print_modified(struct buf *out, const struct model *model)
{
    buf_add_str(out, ",\"modified_at\":");
    reply_ollama_print_time(out, model->origin->id.program.modified_ns);
}

static void print_row(struct buf *out, const struct model *model)
{
    buf_add_str(out, "{\"name\":");
    json_print_string(out, span_str(model->name));
    buf_add_str(out, ",\"model\":");
    json_print_string(out, span_str(model->name));
    buf_printf(out, ",\"size\":%" PRIu64, model->origin->bytes);
    print_digest(out, model);
    print_details(out);
}

static uint32_t context_of(const struct model *model)
{
    return model->generator  ? model->generator->context
           : model->embedder ? model->embedder->tokens_max
                             : 0;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* A file that is not loaded may have what it takes. */
static bool is_listed(const struct model *model)
{
    const struct model_uses *uses = &model->uses;
    bool was_loaded = model_state(model) != MODEL_UNKNOWN || model->origin->why_listed;
    return model_can_serve(model) && (!was_loaded || uses->generates || uses->embeds);
}

static bool is_loaded(const struct model *model)
{
    return model_is_ready(model) && (model->uses.generates || model->uses.embeds);
}

static void print_listed(const struct request *request, const struct model *model, struct buf *out)
{
    (void)request;
    print_row(out, model);
    print_modified(out, model);
}

/* When its model may be unloaded, if nobody calls it until then. */
static uint64_t expiry_ns(const struct model *model)
{
    uint64_t due_ns = model->origin->keep.due_ns, now_ns = uv_hrtime();
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    uint64_t wall_ns = (uint64_t)wall.tv_sec * NS_PER_S + (uint64_t)wall.tv_nsec;
    uint64_t left_ns = due_ns > now_ns ? due_ns - now_ns : 0;
    return wall_ns + (left_ns < FOR_EVER_NS ? left_ns : FOR_EVER_NS);
}

static void print_loaded(const struct request *request, const struct model *model, struct buf *out)
{
    bool is_on_gpu = hal_device_props(request->serving->device)->is_gpu;
    print_row(out, model);
    buf_printf(out, ",\"size_vram\":%" PRIu64 ",\"context_length\":%u,\"expires_at\":",
               is_on_gpu ? model->origin->bytes : 0, context_of(model));
    reply_ollama_print_time(out, expiry_ns(model));
}

/* Every model for which |is_one|, once for all of its versions. */
static enum status print_models(struct request *request, bool (*is_one)(const struct model *model),
                                void (*print)(const struct request *request,
                                              const struct model *model, struct buf *out),
                                struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    const char *last = "";
    buf_add_str(&request->out, "{\"models\":[");
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (is_one(model) && strcmp(model->name, last) != 0) {
            buf_add_str(&request->out, *last ? "," : "");
            print(request, model, &request->out);
            buf_add_char(&request->out, '}');
            last = model->name;
        }
    }
    buf_add_str(&request->out, "]}");
    repository_unref_index(index);
    return api_check_printed(request, err);
}

/* GET /api/tags */
enum status api_tags(struct request *request, struct error *err)
{
    return print_models(request, is_listed, print_listed, err);
}

/* GET /api/ps */
enum status api_ps(struct request *request, struct error *err)
{
    return print_models(request, is_loaded, print_loaded, err);
}

/* ---- POST /api/show -------------------------------------------------------------------------- */

/* {"model": "..."}, or "name" as older clients send it. */
static enum status read_name(struct request *request, const char **out, struct error *err)
{
    struct json in;
    json_init(&in, body_span(&request->body));
    TRY(json_object(&in, err));
    while (true) {
        struct json_string key;
        TRY(json_member(&in, &key, err));
        if (in.is_closed) {
            return json_end(&in, err);
        }
        bool is_name = json_string_is(&key, "model") || json_string_is(&key, "name");
        TRY(is_name && json_peek(&in) != JSON_NULL
                ? ask_read_tagged_model(&in, &request->infer.arena, out, err)
                : json_skip(&in, err));
    }
}

static bool has_words(const struct model *model)
{
    return model->uses.generates || model->uses.embeds || model->uses.ranks;
}

static void print_parameter(struct buf *text, const char *name, double value)
{
    uint8_t number[NUMBER_TEXT_MAX];
    if (!isnan(value)) {
        buf_printf(text, "%s%s ", text->len ? "\n" : "", name);
        buf_add(text, number, number_print_f64(number, value, NUMBER_NAN_NULL));
    }
}

/* What the model says where requests do not, as lines of a Modelfile. */
static void print_parameters(struct buf *out, const struct ask_defaults *defaults)
{
    struct buf text;
    bool has_k = defaults->top_k != UINT32_MAX, has_count = defaults->max_tokens != UINT32_MAX;
    buf_init(&text, 4096);
    print_parameter(&text, "temperature", defaults->temperature);
    print_parameter(&text, "top_p", defaults->top_p);
    print_parameter(&text, "min_p", defaults->min_p);
    print_parameter(&text, "repeat_penalty", defaults->repetition);
    print_parameter(&text, "top_k", has_k ? defaults->top_k : (double)NAN);
    print_parameter(&text, "num_predict", has_count ? defaults->max_tokens : (double)NAN);
    buf_add_str(out, "\"parameters\":");
    json_print_string(out, buf_span(&text));
    buf_fini(&text);
}

/* The names begin with the architecture, for which clients look first. */
static void print_info(struct buf *out, const struct model *model)
{
    const struct words *words = model->generator ? model->generator->words : model->embedder->words;
    buf_printf(out,
               ",\"model_info\":{\"general.architecture\":\"pte\",\"pte.context_length\":%u,"
               "\"pte.vocab_size\":%u",
               context_of(model), words_count(words));
    if (model->embedder && !model->embedder->is_ranker) {
        buf_printf(out, ",\"pte.embedding_length\":%u", model->embedder->width);
    }
    buf_add_char(out, '}');
}

static void print_capabilities(struct buf *out, const struct model *model)
{
    const struct generator *generator = model->generator;
    const char *source = generator ? generator->chat.source : NULL;
    buf_add_str(out, ",\"capabilities\":[");
    if (generator) {
        buf_add_str(out, "\"completion\"");
        buf_add_str(out, source && strstr(source, "tools") ? ",\"tools\"" : "");
        buf_add_str(out, generator->infill.is_known ? ",\"insert\"" : "");
        buf_add_str(out, generator->thinking.thinks ? ",\"thinking\"" : "");
    } else if (!model->embedder->is_ranker) {
        buf_add_str(out, "\"embedding\"");
    }
    buf_add_char(out, ']');
}

static void print_shown(struct buf *out, const struct model *model)
{
    const struct generator *generator = model->generator;
    const struct ask_defaults none = ask_no_defaults();
    buf_add_char(out, '{');
    print_parameters(out, generator ? &generator->defaults : &none);
    buf_add_str(out, ",\"template\":");
    json_print_string(out,
                      span_str(generator && generator->chat.source ? generator->chat.source : ""));
    print_details(out);
    print_info(out, model);
    print_capabilities(out, model);
    print_modified(out, model);
    buf_add_char(out, '}');
}

enum status api_show(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    const char *name = NULL;
    TRY(read_name(request, &name, err));
    const struct model *model =
        api_find_named(request, name, has_words, "model with a tokenizer", err);
    if (!model) {
        return err->code;
    }
    if (!model->generator && !model->embedder) {
        return model_refuse_texts(model, "language model", err);
    }
    print_shown(&request->out, model);
    return api_check_printed(request, err);
}

/* ---- what changes models --------------------------------------------------------------------- */

/* Pull, push, create, copy and delete. */
enum status api_refuse_change(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return error_set(err, ST_UNSUPPORTED,
                     "models come from files that the operator of this server names: they are not "
                     "changed by this path");
}
