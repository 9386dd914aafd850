/* SPDX-License-Identifier: MIT */
/* The index of models, and finding a model in it. */
#include "config.h"

#include "server/model/repository.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/sequence.h"
#include "server/model/repository_priv.h"
#include "server/process/log.h"
#include "server/process/nearest.h"

#define NAMES_COMPARED 64 /* with a name that no model has */

/* ---- the index ------------------------------------------------------------------------------- */

int repository_compare(const struct model *a, const struct model *b)
{
    int order = strcmp(a->name, b->name);
    if (order == 0 && a->version != b->version) {
        return a->version > b->version ? -1 : 1;
    }
    return order;
}

static int compare_names(const void *a, const void *b)
{
    const struct repository_name *left = a, *right = b;
    int order = strcmp(left->text, right->text);
    if (order == 0 && left->is_alias != right->is_alias) {
        return left->is_alias ? 1 : -1;
    }
    if (order == 0 && left->model->version != right->model->version) {
        return left->model->version > right->model->version ? -1 : 1;
    }
    return order;
}

static void list_names(struct repository_index *index)
{
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *model = index->models[i];
        index->names[index->name_count++] =
            (struct repository_name){.text = model->name, .model = model};
        if (model->alias) {
            index->names[index->name_count++] =
                (struct repository_name){.text = model->alias, .model = model, .is_alias = true};
        }
    }
    if (index->name_count) {
        qsort(index->names, index->name_count, sizeof(index->names[0]), compare_names);
    }
}

enum status repository_index_new(struct model **models, uint32_t count,
                                 struct repository_index **out_index, struct error *err)
{
    struct repository_index *index = calloc(1, sizeof(*index));
    struct repository_name *names = calloc((size_t)count + 1, 2 * sizeof(*names));
    if (!index || !names) {
        free(index);
        free(names);
        return error_no_memory(err, "models");
    }
    *index = (struct repository_index){
        .magic = REPOSITORY_INDEX_MAGIC, .models = models, .count = count, .names = names};
    refs_init(&index->refs);
    for (uint32_t i = 1; i < count; i++) {
        must(repository_compare(models[i - 1], models[i]) < 0);
    }
    list_names(index);
    *out_index = index;
    return ST_OK;
}

struct repository_index *repository_ref_index(struct repository *repository)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    pthread_mutex_lock(&repository->lock);
    struct repository_index *index = repository->index;
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    refs_take(&index->refs);
    pthread_mutex_unlock(&repository->lock);
    return index;
}

void repository_unref_index(struct repository_index *index)
{
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    if (!refs_drop(&index->refs)) {
        return;
    }
    for (uint32_t i = 0; i < index->count; i++) {
        model_unref(index->models[i]);
    }
    index->magic = 0;
    free(index->models);
    free(index->names);
    free(index);
}

struct model *repository_index_twin(const struct repository_index *index, const struct model *model)
{
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    uint32_t low = 0, high = index->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = repository_compare(index->models[middle], model);
        if (order == 0) {
            return index->models[middle];
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return NULL;
}

void repository_replace_index(struct repository *repository, struct repository_index *index)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    OBJ_CHECK(index, REPOSITORY_INDEX_MAGIC);
    pthread_mutex_lock(&repository->lock);
    struct repository_index *old = repository->index;
    repository->index = index;
    pthread_mutex_unlock(&repository->lock);
    for (uint32_t i = 0; i < old->count; i++) {
        if (repository_index_twin(index, old->models[i]) != old->models[i]) {
            model_set_state(old->models[i], MODEL_UNLOADING);
        }
    }
    repository_unref_index(old);
}

/* ---- life ------------------------------------------------------------------------------------ */

enum status repository_init(struct repository *repository, struct hal_device *device,
                            struct hal_pool *pool, struct hal_pool *running, struct rt_sched *sched,
                            struct error *err)
{
    must(repository->magic == 0);
    *repository = (struct repository){.device = device,
                                      .pool = pool,
                                      .running = running,
                                      .sched = sched,
                                      .lock = PTHREAD_MUTEX_INITIALIZER};
    TRY(repository_index_new(NULL, 0, &repository->index, err));
    repository->magic = REPOSITORY_MAGIC;
    return ST_OK;
}

void repository_fini(struct repository *repository)
{
    if (repository->magic == 0) {
        return;
    }
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository->index;
    must(refs_is_only(&index->refs));
    for (uint32_t i = 0; i < index->count; i++) {
        must(refs_is_only(&index->models[i]->refs)); /* else a call has lost its device */
        model_set_state(index->models[i], MODEL_UNLOADING);
    }
    repository_unref_index(index);
    pthread_mutex_destroy(&repository->lock);
    repository->index = NULL;
    repository->magic = 0;
}

void repository_close(struct repository *repository)
{
    struct repository_index *index = repository_ref_index(repository);
    for (uint32_t i = 0; i < index->count; i++) {
        must(refs_is_only(&index->models[i]->refs));
        model_close(index->models[i]);
    }
    repository_unref_index(index);
}

/* ---- finding --------------------------------------------------------------------------------- */

/* The first of |name|'s versions, which is the highest; or the place for it. */
static uint32_t lower_bound(const struct repository_index *index, const char *name)
{
    uint32_t low = 0, high = index->name_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (strcmp(index->names[middle].text, name) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A model of a method of file |name|, or NULL; its name begins with "|name|.". "resnet.large" may
 * be a file of its own instead. */
static const struct model *find_method(const struct repository_index *index, const char *name)
{
    char prefix[MODEL_NAME_MAX + 2];
    int len = snprintf(prefix, sizeof(prefix), "%s.", name);
    if (len < 0 || (size_t)len >= sizeof(prefix)) {
        return NULL;
    }
    for (uint32_t i = lower_bound(index, prefix); i < index->name_count; i++) {
        const struct repository_name *entry = &index->names[i];
        if (strncmp(entry->text, prefix, (size_t)len) != 0) {
            break;
        }
        if (strcmp(entry->model->origin->name, name) == 0) {
            return entry->model;
        }
    }
    return NULL;
}

/* A file that is only listed and may have the method |name|: "a.b" of the file "a". Or NULL. */
static struct model *find_listed(const struct repository_index *index, const char *name)
{
    char file[MODEL_NAME_MAX + 1];
    size_t len = strnlen(name, MODEL_NAME_MAX + 1);
    for (size_t i = len <= MODEL_NAME_MAX ? len : 0; i > 1; i--) {
        if (name[i - 1] != '.') {
            continue;
        }
        memcpy(file, name, i - 1);
        file[i - 1] = '\0';
        uint32_t at = lower_bound(index, file);
        struct model *model = at < index->name_count ? index->names[at].model : NULL;
        if (model && strcmp(index->names[at].text, file) == 0 &&
            model_state(model) == MODEL_UNKNOWN) {
            return model;
        }
    }
    return NULL;
}

/* A name that is like |name|, of those around its place; or NULL. To compare |name| with thousands
 * of names would take too long for a turn of the loop. */
static const char *find_like(const struct repository_index *index, const char *name)
{
    const char *names[NAMES_COMPARED];
    uint32_t place = lower_bound(index, name), count = 0;
    uint32_t from = place > NAMES_COMPARED / 2 ? place - NAMES_COMPARED / 2 : 0;
    for (uint32_t i = from; i < index->name_count && count < NAMES_COMPARED; i++) {
        if (count == 0 || strcmp(names[count - 1], index->names[i].text) != 0) {
            names[count++] = index->names[i].text;
        }
    }
    return nearest_word(name, names, count);
}

/* A file without a default method has no model of its name. */
static void refuse_name(const struct repository_index *index, const char *name, struct error *err)
{
    const struct model *method = find_method(index, name);
    const char *like = method ? NULL : find_like(index, name);
    if (method) {
        error_set(err, ST_NOT_FOUND, "no model '%s', but models of its methods, such as '%s'", name,
                  method->name);
    } else if (like) {
        error_set(err, ST_NOT_FOUND, "no model '%s'; did you mean '%s'?", name, like);
    } else {
        error_set(err, ST_NOT_FOUND, "no model '%s', see GET /v2/models", name);
    }
}

/* The model of that name, borrowed from |index|; NULL with ST_NOT_FOUND in |err|. */
static struct model *find(const struct repository_index *index, const char *name, uint32_t version,
                          struct error *err)
{
    uint32_t first = lower_bound(index, name);
    struct model *highest = NULL;
    for (uint32_t i = first; i < index->name_count; i++) {
        const struct repository_name *entry = &index->names[i];
        struct model *model = entry->model;
        if (strcmp(entry->text, name) != 0 || entry->is_alias != index->names[first].is_alias) {
            break;
        }
        if (version ? model->version == version : model_can_serve(model)) {
            return model;
        }
        highest = highest ? highest : model;
    }
    struct model *listed = highest ? NULL : find_listed(index, name);
    if (listed) {
        return listed;
    }
    if (highest && !version) {
        return highest; /* none is ready: the caller gives the reason */
    }
    if (highest) {
        error_set(err, ST_NOT_FOUND, "model '%s' has no version %u", name, version);
    } else {
        refuse_name(index, name, err);
    }
    return NULL;
}

enum status repository_find(struct repository *repository, const char *name, uint32_t version,
                            struct model **out_model, struct error *err)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    struct model *model = find(index, name, version, err);
    if (model) {
        *out_model = model_ref(model);
    }
    repository_unref_index(index);
    return model ? ST_OK : err->code;
}

/* ---- generations ----------------------------------------------------------------------------- */

static bool is_open(struct rt_sequences *sequences, const struct model *model,
                    const struct rt_sequence_key *key)
{
    struct rt_sequence_key there = *key;
    there.program = model->program;
    return model->program && rt_sequences_has(sequences, &there);
}

struct model *repository_find_generation(struct repository *repository, struct model *model,
                                         struct rt_sequences *sequences,
                                         const struct rt_sequence_key *key)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    pthread_mutex_lock(&repository->lock);
    struct model *found = model;
    while (found && !is_open(sequences, found, key)) {
        found = found->older;
    }
    found = model_ref(found ? found : model);
    pthread_mutex_unlock(&repository->lock);
    return found;
}

/* Takes the next unused generation out of the chain behind |model|, or returns NULL. */
static struct model *take_unused(struct repository *repository, struct rt_sequences *sequences,
                                 struct model *model)
{
    struct model *unused = NULL;
    pthread_mutex_lock(&repository->lock);
    for (struct model **at = &model->older; *at && !unused;) {
        if (!sequences || rt_sequences_count(sequences, (*at)->program) == 0) {
            unused = *at;
            *at = unused->older;
            unused->older = NULL;
        } else {
            at = &(*at)->older;
        }
    }
    pthread_mutex_unlock(&repository->lock);
    return unused;
}

void repository_forget_generations(struct repository *repository, struct rt_sequences *sequences)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *unused;
        while ((unused = take_unused(repository, sequences, index->models[i])) != NULL) {
            model_unref(unused);
        }
    }
    repository_unref_index(index);
}

/* ---- all of them ----------------------------------------------------------------------------- */

void repository_fail(struct repository *repository, const struct error *why)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    for (uint32_t i = 0; i < index->count; i++) {
        model_fail(index->models[i], why);
    }
    repository_unref_index(index);
}

void repository_verify_files(struct repository *repository)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *model = index->models[i];
        struct error why;
        if (model_is_ready(model) && rt_program_verify_files(model->program, &why) != ST_OK) {
            log_line(LOG_ERROR, "model '%s' version %u cannot be called any more: %s", model->name,
                     model->version, why.text);
            model_fail(model, &why);
        }
    }
    repository_unref_index(index);
}

void repository_keep_stats(struct repository *repository, struct repository *old)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    struct repository_index *before = repository_ref_index(old);
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *twin = repository_index_twin(before, index->models[i]);
        if (twin) {
            model_keep_stats(index->models[i], twin);
        }
    }
    repository_unref_index(before);
    repository_unref_index(index);
}

static uint32_t count_models(struct repository *repository, bool only_ready)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        count += !model_is_constant(model) && (model_is_ready(model) || !only_ready);
    }
    repository_unref_index(index);
    return count;
}

uint32_t repository_count(struct repository *repository)
{
    return count_models(repository, false);
}

uint32_t repository_ready_count(struct repository *repository)
{
    return count_models(repository, true);
}
