/* SPDX-License-Identifier: MIT */
/* The models that are served, and their metadata. All of it is known since the start; arrays for
 * the printers are allocated in the request's arena. */
#include "config.h"

#include "base/check.h"
#include "hal/device.h"
#include "protocol/json.h"
#include "protocol/oip_config.h"
#include "protocol/oip_reply.h"
#include "runtime/program/state.h"
#include "runtime/sched/sched.h"
#include "server/daemon/api/api.h"
#include "server/daemon/generation/runs.h"
#include "server/daemon/infer/stats.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/transfers.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/language/embedder.h"

#define US_PER_MS 1000u

enum status api_no_memory(struct error *err)
{
    return error_no_memory(err, "the answer");
}

enum status api_check_printed(const struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    return buf_check(&request->out, "the answer", err);
}

const struct model *api_find_ready(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct infer_call *call = &request->infer.call;
    return infer_find_model(&request->infer, call, request->match.model, request->match.version,
                            err) == ST_OK
               ? call->model
               : NULL;
}

bool api_generates(const struct model *model)
{
    return model->uses.generates;
}

const struct model *api_find_named(struct request *request, const char *name,
                                   bool (*can_answer)(const struct model *model), const char *what,
                                   struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct infer *infer = &request->infer;
    char only[MODEL_NAME_MAX + 1];
    if (request->match.model[0]) {
        return api_find_ready(request, err);
    }
    if (!name && runs_find_only(infer, can_answer, what, only, err) != ST_OK) {
        return NULL;
    }
    return infer_find_model(infer, &infer->call, name ? name : only, 0, err) == ST_OK
               ? infer->call.model
               : NULL;
}

/* GET /v2/models: the names that can be called. */
enum status api_models(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    const char *last = "";
    buf_add_str(&request->out, "{\"models\":[");
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (model_can_serve(model) && strcmp(model->name, last) != 0) {
            buf_add_str(&request->out, *last ? "," : "");
            json_print_string(&request->out, span_str(model->name));
            last = model->name;
        }
    }
    repository_unref_index(index);
    buf_add_str(&request->out, "]}");
    return api_check_printed(request, err);
}

static struct oip_tensor_meta *copy_metas(struct arena *arena, const struct model_io *ios,
                                          uint32_t count)
{
    struct oip_tensor_meta *metas = arena_array(arena, count, sizeof(*metas));
    for (uint32_t i = 0; metas && i < count; i++) {
        metas[i] = ios[i].meta;
    }
    return metas;
}

static const struct shape **copy_examples(struct arena *arena, const struct model *model)
{
    const struct shape **examples = arena_array(arena, model->input_count, sizeof(*examples));
    for (uint32_t i = 0; examples && i < model->input_count; i++) {
        examples[i] = model->inputs[i].example;
    }
    return examples;
}

/* The largest shapes of inputs whose sizes vary: exactly the inputs with an example. */
static const struct shape **list_maxima(struct arena *arena, const struct model *model)
{
    const struct shape **maxima = arena_array(arena, model->input_count, sizeof(*maxima));
    for (uint32_t i = 0; maxima && i < model->input_count; i++) {
        maxima[i] = model->inputs[i].example ? &model->inputs[i].io->shape : NULL;
    }
    return maxima;
}

/* All callable versions of the model, or only the version that the request names. */
static const char **list_versions(struct request *request, const struct repository_index *index,
                                  const struct model *model, size_t *out_count)
{
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    const char **versions = arena_array(&request->infer.arena, index->count, sizeof(*versions));
    size_t count = 0;
    for (uint32_t i = 0; versions && i < index->count; i++) {
        const struct model *item = index->models[i];
        if (strcmp(item->name, model->name) == 0 && model_is_ready(item) &&
            (request->match.version == 0 || item == model)) {
            versions[count++] = item->version_text;
        }
    }
    *out_count = count;
    return versions;
}

/* The versions' texts belong to models of the index. */
static enum status print_model(struct request *request, const struct model *model,
                               struct oip_model_meta *meta, struct error *err)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    meta->versions = list_versions(request, index, model, &meta->version_count);
    if (meta->versions) {
        oip_print_model(&request->out, meta);
    }
    repository_unref_index(index);
    return meta->versions ? api_check_printed(request, err) : api_no_memory(err);
}

/* NULL: it gets everything. False: there is no memory. */
static bool print_lacks(const struct model *model, struct arena *arena, const char **out)
{
    const char *text = model_print_lacks(model, arena);
    *out = text && *text ? text : NULL;
    return text != NULL;
}

enum status api_model(struct request *request, struct error *err)
{
    const struct model *model = api_find_ready(request, err);
    if (!model) {
        return err->code;
    }
    struct arena *arena = &request->infer.arena;
    struct oip_model_meta meta = {
        .name = model->name,
        .platform = rt_method_platform(model->method),
        .inputs = copy_metas(arena, model->inputs, model->input_count),
        .outputs = copy_metas(arena, model->outputs, model->output_count),
        .examples = copy_examples(arena, model),
        .maxima = list_maxima(arena, model),
        .input_count = model->input_count,
        .output_count = model->output_count,
    };
    if (!meta.inputs || !meta.outputs || !meta.examples || !meta.maxima) {
        return api_no_memory(err);
    }
    if (rt_method_has_own_work(model->method)) {
        meta.precision = precision_word(rt_program_precision(model->program));
    }
    meta.cache = rt_program_has_int8_caches(model->program) ? "int8" : NULL;
    meta.description = model->description;
    meta.constants = model->origin->constants;
    meta.placement = model->placement;
    return print_lacks(model, arena, &meta.lacks) ? print_model(request, model, &meta, err)
                                                  : api_no_memory(err);
}

enum status api_config(struct request *request, struct error *err)
{
    const struct model *model = api_find_ready(request, err);
    if (!model) {
        return err->code;
    }
    struct arena *arena = &request->infer.arena;
    const struct params *params = &model->params;
    const struct hal_device_props *device = hal_device_props(request->serving->device);
    bool has_state = rt_program_state_bytes(model->program) > 0;
    const struct oip_model_config config = {
        .name = model->name,
        .platform = rt_method_platform(model->method),
        .backend = PACKAGE_NAME,
        .instance_name = device->name,
        .inputs = copy_metas(arena, model->inputs, model->input_count),
        .outputs = copy_metas(arena, model->outputs, model->output_count),
        .input_count = model->input_count,
        .output_count = model->output_count,
        .batch_size_max = model->batch_size_max,
        .is_batched = model->rows_max > 1 && !has_state, /* steps are joined otherwise */
        .is_on_gpu = device->is_gpu,
        .running_max =
            params->running_count_max ? (uint32_t)params->running_count_max : device->workers,
        .waiting_max = params->queue_count_max,
        .delay_us = params->max_delay_us,
        .timeout_us = params->request_timeout * US_PER_MS,
        .priorities = RT_SCHED_PRIORITIES,
        .priority_default = RT_SCHED_PRIORITY_DEFAULT,
        .sequence_count_max = has_state ? params->sequence_count_max : 0,
        .sequence_timeout_us = params->sequence_timeout * US_PER_MS,
    };
    if (!config.inputs || !config.outputs) {
        return api_no_memory(err);
    }
    oip_print_config(&request->out, &config);
    return api_check_printed(request, err);
}

enum status api_model_ready(struct request *request, struct error *err)
{
    repository_verify_files(&request->serving->repository);
    const struct model *model = api_find_ready(request, err);
    if (!model && err->code != ST_WOULD_LOAD) {
        return err->code;
    }
    err->code = ST_OK; /* a call would load the model */
    oip_print_model_ready(&request->out, model ? model->name : request->match.model, true);
    return api_check_printed(request, err);
}

#define STATS_HEAD "{\"model_stats\":["
/* Rows between two looks at the clock. */
#define STATS_ROWS 16

static void print_row(struct buf *out, const struct model *model)
{
    buf_add_str(out, out->len > sizeof(STATS_HEAD) - 1 ? "," : "");
    stats_print(out, model);
}

/* Every model, in as many turns as it takes: a row costs 3 us. */
enum status api_stats(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct buf *out = &request->out;
    if (!request->page.listing) {
        request->page.listing = repository_ref_index(&request->serving->repository);
        buf_add_str(out, STATS_HEAD);
    }
    const struct repository_index *index = request->page.listing;
    while (request->page.listed < index->count) {
        const struct model *model = index->models[request->page.listed++];
        if (model_is_ready(model)) {
            print_row(out, model);
        }
        if (request->page.listed % STATS_ROWS == 0 && !turns_has_time(&request->api->loop->turns)) {
            request->is_unfinished = !buf_failed(out);
            return api_check_printed(request, err);
        }
    }
    buf_add_str(out, "],\"memory\":");
    stats_print_memory(out, request->api->servings->current,
                       request->api->transfers->evicted_count);
    buf_add_char(out, '}');
    return api_check_printed(request, err);
}

/* All versions of the model, or the one that the target names. */
enum status api_model_stats(struct request *request, struct error *err)
{
    const struct model *found = api_find_ready(request, err);
    uint32_t version = request->match.version;
    if (!found) {
        return err->code;
    }
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    buf_add_str(&request->out, STATS_HEAD);
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (model_is_ready(model) && strcmp(model->name, found->name) == 0 &&
            (version == 0 || model->version == version)) {
            print_row(&request->out, model);
        }
    }
    repository_unref_index(index);
    buf_add_str(&request->out, "]}");
    return api_check_printed(request, err);
}

/* Why the model cannot be called, or why a newer file has not taken its place. */
static const char *reason_of(const struct model *model)
{
    const struct origin *origin = model->origin;
    return model_is_ready(model) && origin->refusal.code != ST_OK ? origin->refusal.text
                                                                  : model_refusal(model);
}

/* What people use it for; NULL: tensors. */
static const char *kind_of(const struct model *model)
{
    const struct model_uses *uses = &model->uses;
    const char *made_from = NULL;
    if (uses->generates) {
        return "language";
    }
    if (uses->transcribes) {
        return "speech";
    }
    if (uses->ranks) {
        return "ranking";
    }
    if (uses->embeds && uses->embeds_claim != EMBEDDER_CLASSES) {
        return "embedding";
    }
    for (uint32_t i = 0; i < model->input_count && !made_from; i++) {
        made_from = model->inputs[i].meta.media;
    }
    return made_from;
}

/* False: there is no memory. */
static bool make_row(const struct model *model, struct arena *arena, struct oip_index_row *out)
{
    *out = (struct oip_index_row){
        .name = model->name,
        .version = model->version_text,
        .state = model_state_word(model_state(model)),
        .reason = reason_of(model),
        .kind = kind_of(model),
        .id = strcmp(api_v1_id(model), model->name) != 0 ? api_v1_id(model) : NULL,
        .is_constant = model_is_constant(model),
    };
    /* An index of very many models has no room for what each lacks: it goes on without. */
    return !model_is_ready(model) || print_lacks(model, arena, &out->lacks) ||
           arena->refusal == ST_TOO_LARGE;
}

static enum status print_index(struct request *request, const struct repository_index *index,
                               bool is_ready_only, struct error *err)
{
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    struct oip_index_row *rows = arena_array(&request->infer.arena, index->count, sizeof(*rows));
    size_t count = 0;
    if (!rows) {
        return api_no_memory(err);
    }
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        if (is_ready_only && !model_is_ready(model)) {
            continue;
        }
        if (!make_row(model, &request->infer.arena, &rows[count++])) {
            return api_no_memory(err);
        }
    }
    oip_print_index(&request->out, rows, count);
    return api_check_printed(request, err);
}

/* POST /v2/repository/index: every model found, with the reason if it cannot be called. */
enum status api_index(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    bool is_ready_only;
    TRY(oip_parse_index(body_span(&request->body), &is_ready_only, err));
    repository_verify_files(&request->serving->repository);
    struct repository_index *index = repository_ref_index(&request->serving->repository);
    enum status status = print_index(request, index, is_ready_only, err);
    repository_unref_index(index);
    return status;
}
