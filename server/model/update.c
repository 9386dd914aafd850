/* SPDX-License-Identifier: MIT */
/*
 * The draft of an update is made from nothing: models of files that stay as they are are carried
 * over, and the others are loaded. Models of one origin share a source.
 */
#include "config.h"

#include "server/model/update.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "runtime/program/state.h"
#include "runtime/program/summary.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sequence.h"
#include "server/language/generator.h"
#include "server/model/model_log.h"
#include "server/model/pipelines.h"
#include "server/process/log.h"

struct source {
    struct origin *origin; /* borrowed from the models */
    struct model **models; /* in the updater's list, like the models of other sources */
    uint32_t count;
    bool is_settled; /* the draft has its models, or what replaces them */
};

struct updater {
    struct update *update;
    struct catalog catalog;
    struct model **models;  /* owned; refs borrowed from the index: by origin */
    struct source *sources; /* owned; by name, and of a name the highest version first */
    uint32_t source_count;
    bool is_found;        /* UPDATE_LOAD, UPDATE_UNLOAD: the name */
    struct error passing; /* UPDATE_NEED: why a version cannot be loaded now, the first of them */
};

/* What is done with a file. */
enum decision { KEEP, LEAVE_OUT, UNLOAD, LIST, LOAD };

/* ---- sources --------------------------------------------------------------------------------- */

static int compare_names(const struct origin *origin, const char *name, uint32_t version)
{
    int order = strcmp(origin->name, name);
    return order != 0 ? order : (origin->version < version) - (origin->version > version);
}

static int compare_models(const void *left, const void *right)
{
    const struct origin *a = (*(struct model *const *)left)->origin;
    const struct origin *b = (*(struct model *const *)right)->origin;
    int order = compare_names(a, b->name, b->version);
    return order != 0 ? order : (a > b) - (a < b);
}

/* Lists the sources of the present index. */
static enum status list_sources(struct updater *u, const struct repository_index *index,
                                struct error *err)
{
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    u->models = calloc((size_t)index->count + 1, sizeof(struct model *));
    u->sources = calloc((size_t)index->count + 1, sizeof(*u->sources));
    if (!u->models || !u->sources) {
        return error_no_memory(err, "models");
    }
    for (uint32_t i = 0; i < index->count; i++) {
        u->models[i] = index->models[i];
    }
    qsort(u->models, index->count, sizeof(struct model *), compare_models);
    for (uint32_t i = 0; i < index->count; i++) {
        struct origin *origin = u->models[i]->origin;
        if (i == 0 || origin != u->models[i - 1]->origin) {
            u->sources[u->source_count++] =
                (struct source){.origin = origin, .models = &u->models[i]};
        }
        u->sources[u->source_count - 1].count++;
    }
    return ST_OK;
}

static struct source *find_source(const struct updater *u, const char *name, uint32_t version)
{
    uint32_t low = 0, high = u->source_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = compare_names(u->sources[middle].origin, name, version);
        if (order == 0) {
            return &u->sources[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

static bool has_state(const struct source *source, enum model_state state)
{
    for (uint32_t i = 0; i < source->count; i++) {
        if (model_state(source->models[i]) == state) {
            return true;
        }
    }
    return false;
}

static bool has_ready(const struct source *source)
{
    return has_state(source, MODEL_READY);
}

/* Its file is loaded when it is called. */
static bool is_listed(const struct source *source)
{
    return has_state(source, MODEL_UNKNOWN);
}

/* Are |id| the files that the models of |source| come from? Files of tokenizers and of weights
 * count for models that read them, and for those that failed: they may have lacked them. */
static bool comes_from(const struct source *source, const struct origin_id *id)
{
    const struct origin_id *own = &source->origin->id;
    bool reads_words = false, reads_data = false;
    for (uint32_t i = 0; i < source->count; i++) {
        const struct model *model = source->models[i];
        bool is_ready = model_is_ready(model);
        reads_words |= !is_ready || model_reads_words(model);
        reads_data |= !is_ready || rt_program_data_path(model->program, 0);
    }
    return origin_id_equal_alone(own, id) && (!reads_words || own->words == id->words) &&
           (!reads_data || own->data == id->data);
}

static enum status keep(struct updater *u, const struct source *source, struct error *err)
{
    for (uint32_t i = 0; i < source->count; i++) {
        TRY(repository_draft_keep(&u->update->draft, source->models[i], err));
    }
    return ST_OK;
}

/* ---- files ----------------------------------------------------------------------------------- */

static bool is_meant(const struct updater *u, const char *name)
{
    enum update_kind kind = u->update->kind;
    bool has_name = kind == UPDATE_LOAD || kind == UPDATE_UNLOAD || kind == UPDATE_NEED;
    return has_name && strcmp(u->update->name, name) == 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static uint64_t bytes_max(const struct updater *u)
{
    return u->update->options->params.model_bytes_max;
}

/* Files of a folder are loaded when they are called, if there is a limit. */
static bool is_on_demand(const struct updater *u, const struct catalog_file *file)
{
    return bytes_max(u) > 0 && !file->is_named;
}

/* As --model-bytes-max counts the models, of which those of one file follow each other. */
static uint64_t sum_bytes(struct model *const *models, uint32_t count)
{
    uint64_t sum = 0, of_file = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool is_next = i > 0 && models[i - 1]->origin == models[i]->origin;
        if (!is_next || of_file == 0) {
            of_file = repository_model_bytes(models[i]);
            sum += of_file;
        }
    }
    return sum;
}

/* Of the first |count| models of the draft and of those that are not settled. Weights that several
 * models have count for each in part. The parts change as models come and go, on other threads,
 * too: so this is a sum of what is now, and nothing is ever taken off an earlier one. */
static uint64_t others_bytes(const struct updater *u, uint32_t count)
{
    uint64_t bytes = sum_bytes(u->update->draft.models, count);
    for (uint32_t i = 0; i < u->source_count; i++) {
        const struct source *source = &u->sources[i];
        bytes += source->is_settled ? 0 : sum_bytes(source->models, source->count);
    }
    return bytes;
}

/* Does a loaded model read the same data files? Their weights are there once. */
static bool has_same_data(const struct updater *u, const struct catalog_file *file)
{
    for (uint32_t i = 0; i < u->source_count; i++) {
        const struct source *source = &u->sources[i];
        for (uint32_t k = 0; file->id.data && k < source->count; k++) {
            const struct model *model = source->models[k];
            if (source->origin->id.data == file->id.data && model_is_ready(model) &&
                rt_program_data_path(model->program, 0)) {
                return true;
            }
        }
    }
    return false;
}

/* What the file probably takes; what it does take is known when it has been loaded. */
static uint64_t expect_bytes(const struct updater *u, const struct catalog_file *file,
                             const struct source *old)
{
    if (has_same_data(u, file)) {
        return file->id.program.bytes;
    }
    bool is_known = old && old->origin->bytes > file->bytes &&
                    origin_id_equal_alone(&file->id, &old->origin->id);
    return is_known ? old->origin->bytes : file->bytes;
}

/* May |file| take |bytes| beside the first |count| models of the draft? */
static enum status check_room(const struct updater *u, const struct catalog_file *file,
                              uint64_t bytes, uint32_t count, struct error *err)
{
    uint64_t max = bytes_max(u), others = max > 0 ? others_bytes(u, count) : 0;
    if (max == 0 || bytes <= max - (others < max ? others : max)) {
        return ST_OK;
    }
    if (bytes > max) {
        return error_set(err, ST_TOO_LARGE,
                         "model '%s' takes %llu bytes, all models may take %llu "
                         "(--model-bytes-max)",
                         file->name, (unsigned long long)bytes, (unsigned long long)max);
    }
    u->update->short_bytes = others + bytes - max;
    return error_set(err, ST_EXHAUSTED,
                     "model '%s' takes %llu bytes, but models that are in use take %llu of %llu "
                     "(--model-bytes-max)",
                     file->name, (unsigned long long)bytes, (unsigned long long)others,
                     (unsigned long long)max);
}

/* The models of |file| are the last ones of the draft, from |first| on: what they take, which may
 * be more than was expected. */
static enum status check_loaded(const struct updater *u, const struct catalog_file *file,
                                uint32_t first, struct error *err)
{
    const struct repository_draft *draft = &u->update->draft;
    struct model *const *models = draft->models + first;
    if (first < draft->count) {
        models[0]->origin->bytes = repository_model_bytes_alone(models[0]);
    }
    return check_room(u, file, sum_bytes(models, draft->count - first), first, err);
}

/* ---- decisions ------------------------------------------------------------------------------- */

/* Are the settings of its models still the same? */
static bool has_same_params(const struct updater *u, const struct source *source)
{
    for (uint32_t i = 0; i < source->count; i++) {
        const struct model *model = source->models[i];
        if (model_is_ready(model) && !repository_has_same_params(model, u->update->options)) {
            return false;
        }
    }
    return true;
}

/* A scan looks at what the system says of the files. */
static enum decision decide_by_file(const struct updater *u, const struct catalog_file *file,
                                    const struct source *old)
{
    bool retries = u->update->retries_failed;
    if (file->error_number) { /* it is named, and may come back; SIGHUP says that it is not there */
        return retries ? LOAD : old ? KEEP : LEAVE_OUT;
    }
    if (!old) {
        return is_on_demand(u, file) ? LIST : LOAD;
    }
    if (strcmp(file->path, old->origin->path) == 0 &&
        (is_listed(old) ? origin_id_equal_alone(&file->id, &old->origin->id)
                        : comes_from(old, &file->id))) {
        bool is_new_try = retries && !has_ready(old) && !is_listed(old);
        return is_new_try || !has_same_params(u, old) ? LOAD : KEEP;
    }
    if (is_listed(old)) {
        return LIST;
    }
    return origin_id_equal(&file->id, &old->origin->refused) && !retries ? KEEP : LOAD;
}

static enum decision decide(const struct updater *u, const struct catalog_file *file,
                            const struct source *old)
{
    enum update_kind kind = u->update->kind;
    if (kind == UPDATE_NEED) {
        return !old ? LEAVE_OUT : is_meant(u, file->name) && is_listed(old) ? LOAD : KEEP;
    }
    if (is_meant(u, file->name)) {
        return kind == UPDATE_LOAD ? LOAD : UNLOAD;
    }
    if (old && old->origin->is_unloaded) {
        return UNLOAD;
    }
    if (kind == UPDATE_START) {
        return is_on_demand(u, file) ? LIST : LOAD; /* see fill_room() */
    }
    if (kind != UPDATE_SCAN) {
        return old ? KEEP : LEAVE_OUT;
    }
    return decide_by_file(u, file, old);
}

/* The models of |old| go on; the next scan does not try the same file again. */
static enum status note_refusal(struct updater *u, const struct source *old,
                                const struct origin_id *id, const struct error *why,
                                struct error *err)
{
    struct update *update = u->update;
    struct update_refusal *refusals =
        realloc(update->refusals, (update->refusal_count + 1) * sizeof(*refusals));
    if (!refusals) {
        return error_no_memory(err, "models");
    }
    update->refusals = refusals;
    refusals[update->refusal_count++] =
        (struct update_refusal){.origin = origin_ref(old->origin), .id = *id, .why = *why};
    return ST_OK;
}

/* There is no room for the file, which nobody has called yet. */
static enum status keep_or_list(struct updater *u, const struct catalog_file *file,
                                const struct source *old, struct error *err)
{
    u->update->short_bytes = 0;
    return old && is_listed(old) ? keep(u, old, err)
                                 : repository_add_listed(&u->update->draft, file, err);
}

/* May the same file load at another time? */
static bool is_passing(enum status status)
{
    return status == ST_NOT_FOUND || status == ST_UNAVAILABLE || status == ST_EXHAUSTED ||
           status == ST_SYSTEM;
}

/* A version of the file that is called cannot be loaded now: it stays listed, for its next call. If
 * no other version loads, the call fails, and nothing changes. */
static enum status pass_over(struct updater *u, const struct source *old, const char *why,
                             struct error *err)
{
    if (u->passing.code == ST_OK) {
        error_set(&u->passing, ST_UNAVAILABLE, "model '%s' cannot be loaded: %s", u->update->name,
                  why);
    }
    return keep(u, old, err);
}

/* |err| says why the file did not load. Only some updates go on without it. */
static enum status settle_failed(struct updater *u, const struct catalog_file *file,
                                 const struct source *old, struct error *err)
{
    struct update *update = u->update;
    must(err->code != ST_OK);
    if (update->kind == UPDATE_LOAD || (update->kind == UPDATE_START && file->is_named)) {
        bool is_readable =
            err->code != ST_NOT_FOUND && err->code != ST_UNAVAILABLE && err->code != ST_EXHAUSTED;
        bool is_valid = err->code == ST_UNSUPPORTED && update->kind == UPDATE_START;
        if (is_readable && !is_valid) {
            err->code = ST_CORRUPT; /* whatever is wrong, this file is to blame */
        }
        return update->kind == UPDATE_START ? error_prefix(err, "model file %s: ", file->path)
                                            : err->code;
    }
    if (update->short_bytes || err->code == ST_TOO_LARGE) {
        bool is_asked_for = update->kind == UPDATE_NEED || file->is_named;
        return is_asked_for ? err->code : keep_or_list(u, file, old, err);
    }
    struct error why = *err;
    if (update->kind == UPDATE_NEED && is_passing(why.code)) {
        return pass_over(u, old, why.text, err);
    }
    if (old && has_ready(old)) {
        log_line(LOG_ERROR, "model file %s: %s; the one that was loaded before goes on", file->path,
                 why.text);
        TRY(note_refusal(u, old, &file->id, &why, err));
        update->failed_count++;
        return keep(u, old, err);
    }
    log_line(LOG_ERROR, "model file %s: %s", file->path, why.text);
    update->failed_count++;
    return repository_add_failed(&update->draft, file, &why, err);
}

static enum status load(struct updater *u, const struct catalog_file *file,
                        const struct source *old, struct error *err)
{
    struct update *update = u->update;
    uint32_t count = update->draft.count;
    enum status status = check_room(u, file, expect_bytes(u, file, old), count, err);
    if (file->error_number) {
        status =
            error_set(err, status_of_errno(file->error_number), "%s", strerror(file->error_number));
    } else if (status == ST_OK) {
        status = repository_load_file(&update->draft, file, err);
        if (status == ST_TOO_LARGE) { /* a part of it is, which no free memory changes */
            err->code = status = ST_UNSUPPORTED;
        }
        status = status == ST_OK ? check_loaded(u, file, count, err) : status;
    }
    if (status == ST_OK) {
        update->loaded_count++;
        return ST_OK;
    }
    repository_draft_cut(&update->draft, count);
    return settle_failed(u, file, old, err);
}

static enum status unload(struct updater *u, const char *name, uint32_t version, const char *path,
                          const struct origin_id *id, const struct source *old, struct error *err)
{
    bool is_unloaded = old && old->origin->is_unloaded;
    if (is_unloaded && u->update->kind != UPDATE_START) {
        return keep(u, old, err);
    }
    u->update->gone_count++;
    return repository_add_unloaded(&u->update->draft, name, version, path, id, err);
}

/* The file that is served is the one on disk again. */
static enum status forget_refusal(struct updater *u, const struct source *old,
                                  const struct catalog_file *file, struct error *err)
{
    const struct origin_id none = {0};
    const struct error no_error = {.code = ST_OK};
    bool is_over =
        !file->error_number && old->origin->refusal.code != ST_OK && comes_from(old, &file->id);
    return is_over ? note_refusal(u, old, &none, &no_error, err) : ST_OK;
}

static enum status settle_file(struct updater *u, const struct catalog_file *file,
                               struct error *err)
{
    struct source *old = find_source(u, file->name, file->version);
    if (old && !old->origin->path) {
        old = NULL; /* a pipeline; the end shows which of the two is wrong */
    }
    if (old) {
        old->is_settled = true;
    }
    u->is_found |= is_meant(u, file->name);
    switch (decide(u, file, old)) {
    case KEEP:
        u->update->kept_count++;
        TRY(forget_refusal(u, old, file, err));
        return keep(u, old, err);
    case LEAVE_OUT:
        return ST_OK;
    case LIST:
        u->update->loaded_count++;
        return repository_add_listed(&u->update->draft, file, err);
    case UNLOAD:
        return unload(u, file->name, file->version, file->path, &file->id, old, err);
    case LOAD:
        break;
    }
    return load(u, file, old, err);
}

/* Models whose file is in no folder any more: a scan drops them. */
static enum status settle_rest(struct updater *u, struct error *err)
{
    for (uint32_t i = 0; i < u->source_count; i++) {
        struct source *source = &u->sources[i];
        if (source->is_settled || !source->origin->path || u->update->kind == UPDATE_START) {
            continue;
        }
        source->is_settled = true;
        if (u->update->kind == UPDATE_SCAN) {
            log_line(LOG_NOTICE, "model '%s' version %u: its file is gone", source->origin->name,
                     source->origin->version);
            u->update->gone_count++;
            continue;
        }
        bool is_named = is_meant(u, source->origin->name);
        if (is_named && u->update->kind == UPDATE_NEED && is_listed(source)) {
            TRY(pass_over(u, source, "its file is not there", err));
            continue;
        }
        u->is_found |= is_named;
        TRY(keep(u, source, err));
    }
    return ST_OK;
}

/* ---- pipelines ------------------------------------------------------------------------------- */

/* Is the pipeline out of service from now on, or still? */
static bool is_unloaded(void *arg, const char *name)
{
    struct updater *u = arg;
    const struct source *old = find_source(u, name, 1);
    bool is_named = is_meant(u, name);
    u->is_found |= is_named;
    return is_named ? u->update->kind == UPDATE_UNLOAD
                    : old && !old->origin->path && old->origin->is_unloaded;
}

/* A pipeline calls a model that is only listed, so it is loaded. */
static enum status load_listed(void *arg, const struct model *model, struct error *err)
{
    struct updater *u = arg;
    struct update *update = u->update;
    const struct origin *origin = model->origin;
    const struct catalog_file *file = NULL;
    for (uint32_t i = 0; i < u->catalog.count && !file; i++) {
        const struct catalog_file *at = &u->catalog.files[i];
        bool is_it = at->version == origin->version && strcmp(at->name, origin->name) == 0;
        file = is_it ? at : NULL;
    }
    if (!file) {
        return error_set(err, ST_NOT_FOUND, "model '%s': its file is gone", origin->name);
    }
    TRY(check_room(u, file, expect_bytes(u, file, NULL), update->draft.count, err));
    TRY(repository_load_file(&update->draft, file, err));
    repository_draft_remove(&update->draft, model);
    update->loaded_count++;
    return ST_OK;
}

static enum status keep_pipelines(struct updater *u, struct error *err)
{
    for (uint32_t i = 0; i < u->source_count; i++) {
        if (!u->sources[i].origin->path) {
            TRY(keep(u, &u->sources[i], err));
        }
    }
    return ST_OK;
}

/* Pipelines are made again when a model was, or when nothing says that their files are the same. */
static enum status settle_pipelines(struct updater *u, struct error *err)
{
    struct update *update = u->update;
    const struct pipelines_policy policy = {.is_unloaded = is_unloaded,
                                            .load = load_listed,
                                            .arg = u,
                                            .keeps_failed = update->with_dependents};
    bool is_same = update->kind == UPDATE_SCAN && !update->retries_failed &&
                   update->loaded_count == 0 && update->gone_count == 0;
    is_same |= update->kind == UPDATE_NEED; /* models that pipelines call are loaded already */
    if (is_same) {
        return keep_pipelines(u, err);
    }
    const struct options *options = update->options;
    bool is_for_client = update->kind != UPDATE_START && update->kind != UPDATE_SCAN;
    for (uint32_t i = 0; i < update->draft.count; i++) {
        update->draft.models[i]->origin->is_pinned = false;
    }
    if (options->document_pipelines &&
        pipelines_load_value(&update->draft, options->document, options->document_pipelines,
                             &policy, err) != ST_OK) {
        return is_for_client ? err->code : error_prefix(err, "%s: ", options->config_file);
    }
    for (uint32_t i = 0; i < options->pipeline_count; i++) {
        const char *path = options->pipelines[i];
        if (pipelines_load(&update->draft, path, &policy, err) != ST_OK) {
            return is_for_client ? err->code : error_prefix(err, "--pipeline %s: ", path);
        }
    }
    return ST_OK;
}

/* While there is room, files are loaded before somebody calls them. Pipelines have had theirs. */
static enum status fill_room(struct updater *u, struct error *err)
{
    struct repository_draft *draft = &u->update->draft;
    uint64_t used = others_bytes(u, draft->count);
    for (uint32_t i = 0; i < u->catalog.count; i++) {
        const struct catalog_file *file = &u->catalog.files[i];
        if (!is_on_demand(u, file) || used + file->bytes > bytes_max(u)) {
            continue;
        }
        const struct model *model = repository_draft_find(draft, file->name, file->version);
        if (model && model_state(model) == MODEL_UNKNOWN) {
            repository_draft_remove(draft, model);
            TRY(load(u, file, NULL, err));
            used = others_bytes(u, draft->count);
        }
    }
    return ST_OK;
}

/* ---- the first half -------------------------------------------------------------------------- */

/* A watched folder may come later; one that models came from, as of a network, is only away. */
static bool may_be_away(void *owner, const char *folder)
{
    const struct updater *u = owner;
    bool has_models = false;
    for (uint32_t i = 0; i < u->source_count; i++) {
        has_models |= origin_is_in(u->sources[i].origin, folder);
    }
    return u->update->options->watches && !has_models;
}

static enum status settle_all(struct updater *u, struct error *err)
{
    struct update *update = u->update;
    const struct catalog_folders folders = {
        .may_be_away = may_be_away, .owner = u, .are_told = update->kind != UPDATE_NEED};
    TRY(catalog_list(&u->catalog, update->options, &folders, err));
    for (uint32_t i = 0; i < u->catalog.count; i++) {
        TRY(settle_file(u, &u->catalog.files[i], err));
    }
    TRY(settle_rest(u, err));
    if (u->passing.code != ST_OK && update->loaded_count == 0) {
        *err = u->passing;
        return err->code;
    }
    TRY(settle_pipelines(u, err));
    if (update->kind == UPDATE_START) {
        TRY(fill_room(u, err));
        return repository_check_names(&update->draft, err);
    }
    if ((update->kind == UPDATE_LOAD || update->kind == UPDATE_UNLOAD) && !u->is_found) {
        return error_set(err, ST_NOT_FOUND,
                         "no model file and no pipeline is called '%s'; methods of a file come and "
                         "go with the file",
                         update->name);
    }
    return ST_OK;
}

/* Does a call load a file again? The log has described its models, and is not to do so each time.
 */
static bool is_again(const struct update *update)
{
    for (uint32_t i = 0; update->kind == UPDATE_NEED && i < update->old->count; i++) {
        const struct origin *origin = update->old->models[i]->origin;
        if (origin->why_listed && strcmp(origin->name, update->name) == 0) {
            return true;
        }
    }
    return false;
}

/* The log describes models that are new; for that their largest call is planned. */
static void describe_new(const struct update *update)
{
    if (is_again(update)) {
        return;
    }
    for (uint32_t i = 0; i < update->draft.count; i++) {
        const struct model *model = update->draft.models[i];
        bool is_kept = repository_index_twin(update->old, model) == model;
        if (!is_kept && !model->origin->is_unloaded && model_state(model) != MODEL_UNKNOWN) {
            model_log(model, update->repository->device);
        }
    }
}

enum status update_prepare(struct update *update, struct error *err)
{
    must(update->magic == 0);
    struct updater u = {.update = update};
    update->magic = UPDATE_MAGIC;
    update->old = repository_ref_index(update->before ? update->before : update->repository);
    enum status status =
        repository_draft_init(&update->draft, update->repository, update->options, err);
    if (status == ST_OK) {
        status = update_fetch(update, err);
    }
    if (status == ST_OK) {
        repository_draft_cut(&update->draft, 0);
        status = list_sources(&u, update->old, err);
    }
    if (status == ST_OK) {
        status = settle_all(&u, err);
        catalog_fini(&u.catalog);
    }
    free(u.models);
    free(u.sources);
    if (status == ST_OK) {
        describe_new(update);
    }
    return status;
}

/* ---- the second half ------------------------------------------------------------------------- */

static enum status list_retired(struct update *update, struct error *err)
{
    update->retired = calloc((size_t)update->old->count + 1, sizeof(struct model *));
    if (!update->retired) {
        return error_no_memory(err, "models");
    }
    for (uint32_t i = 0; i < update->old->count; i++) {
        struct model *model = update->old->models[i];
        if (repository_draft_twin(&update->draft, model) != model) {
            update->retired[update->retired_count++] = model_ref(model);
        }
    }
    return ST_OK;
}

/* Requests of sequences that are open in the old generation are for it. */
static bool has_sequences(struct rt_sequences *sequences, const struct model *model)
{
    return model->program && rt_program_state_bytes(model->program) > 0 &&
           (model->older || rt_sequences_count(sequences, model->program) > 0);
}

static void follow(struct update *update, struct rt_sequences *sequences)
{
    for (uint32_t i = 0; i < update->draft.count; i++) {
        struct model *model = update->draft.models[i];
        struct model *twin = repository_index_twin(update->old, model);
        if (!twin || twin == model) {
            continue;
        }
        model_keep_stats(model, twin);
        if (model->program && has_sequences(sequences, twin)) {
            must(!model->older); /* it is new */
            model->older = model_ref(twin);
        }
    }
}

/* States that generations of the retired models have computed are of no use to newer ones. No name
 * leads to these models any more, unless a newer generation does. */
static void end_sequences(const struct update *update, struct rt_sequences *sequences)
{
    for (uint32_t i = 0; i < update->retired_count; i++) {
        const struct model *model = update->retired[i];
        const struct model *twin = repository_draft_twin(&update->draft, model);
        repository_close_prefixes(model, sequences);
        if (model->program && (!twin || !twin->program)) {
            rt_sequences_end_all(sequences, model->program);
        }
    }
}

static void apply_refusals(const struct update *update)
{
    for (uint32_t i = 0; i < update->refusal_count; i++) {
        const struct update_refusal *refusal = &update->refusals[i];
        refusal->origin->refused = refusal->id;
        refusal->origin->refusal = refusal->why;
    }
}

/* Models that are new are needed for now. */
static void begin_idle(const struct update *update)
{
    uint64_t now_ns = uv_hrtime();
    for (uint32_t i = 0; i < update->draft.count; i++) {
        struct model *model = update->draft.models[i];
        if (repository_index_twin(update->old, model) != model) {
            repository_count_idle(model);
            keep_begin(&model->origin->keep, now_ns, model->origin->load_ns);
        }
    }
}

enum status update_publish(struct update *update, struct rt_sequences *sequences, struct error *err)
{
    OBJ_CHECK(update, UPDATE_MAGIC);
    begin_idle(update);
    if (update->kind == UPDATE_START) {
        return repository_draft_publish(&update->draft, err);
    }
    TRY(repository_draft_sort(&update->draft, err));
    TRY(list_retired(update, err));
    follow(update, sequences);
    end_sequences(update, sequences);
    apply_refusals(update);
    return repository_draft_publish(&update->draft, err);
}

void update_fini(struct update *update)
{
    if (update->magic == 0) {
        return;
    }
    OBJ_CHECK(update, UPDATE_MAGIC);
    repository_draft_fini(&update->draft);
    for (uint32_t i = 0; i < update->refusal_count; i++) {
        origin_unref(update->refusals[i].origin);
    }
    for (uint32_t i = 0; i < update->retired_count; i++) {
        model_unref(update->retired[i]);
    }
    free(update->refusals);
    free(update->retired);
    repository_unref_index(update->old);
    update->magic = 0;
}
