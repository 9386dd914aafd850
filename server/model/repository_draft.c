/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/check.h"
#include "server/model/repository_priv.h"

#define MODELS_MAX 65536

static enum status make_room(struct repository_draft *draft, uint32_t count, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    if (count > MODELS_MAX || !ARRAY_ROOM(draft->models, draft->capacity, count)) {
        return error_set(err, ST_EXHAUSTED, "models: no room for more than %u", draft->count);
    }
    return ST_OK;
}

enum status repository_draft_init(struct repository_draft *draft, struct repository *repository,
                                  const struct options *options, struct error *err)
{
    *draft = (struct repository_draft){
        .magic = REPOSITORY_DRAFT_MAGIC, .repository = repository, .options = options};
    struct repository_index *index = repository_ref_index(repository);
    enum status status = make_room(draft, index->count, err);
    for (uint32_t i = 0; status == ST_OK && i < index->count; i++) {
        draft->models[draft->count++] = model_ref(index->models[i]);
    }
    repository_unref_index(index);
    return status;
}

/* The reference of the draft to |model|, which is in no list any more. */
static void drop(const struct repository_draft *draft, struct model *model)
{
    struct repository_index *index = repository_ref_index(draft->repository);
    if (repository_index_twin(index, model) != model) {
        model_set_state(model, MODEL_UNLOADING);
    }
    repository_unref_index(index);
    model_unref(model);
}

void repository_draft_cut(struct repository_draft *draft, uint32_t count)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    must(count <= draft->count);
    while (draft->count > count) {
        drop(draft, draft->models[--draft->count]);
    }
}

void repository_draft_fini(struct repository_draft *draft)
{
    repository_draft_cut(draft, 0);
    free(draft->models);
    draft->models = NULL;
    draft->magic = 0;
}

static enum status add_unknown(struct repository_draft *draft, struct origin *origin,
                               struct span name, struct model **out_model, struct error *err)
{
    TRY(make_room(draft, draft->count + 1, err));
    TRY(model_new(origin, name, out_model, err));
    draft->models[draft->count++] = *out_model;
    return ST_OK;
}

enum status repository_draft_add(struct repository_draft *draft, struct origin *origin,
                                 struct span name, struct model **out_model, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    TRY(add_unknown(draft, origin, name, out_model, err));
    model_set_state(*out_model, MODEL_LOADING);
    return ST_OK;
}

enum status repository_draft_list(struct repository_draft *draft, struct origin *origin,
                                  struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct model *model;
    return add_unknown(draft, origin, span_str(origin->name), &model, err);
}

enum status repository_draft_keep(struct repository_draft *draft, struct model *model,
                                  struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    TRY(make_room(draft, draft->count + 1, err));
    draft->models[draft->count++] = model_ref(model);
    return ST_OK;
}

void repository_draft_remove(struct repository_draft *draft, const struct model *model)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    uint32_t i = 0;
    while (i < draft->count && draft->models[i] != model) {
        i++;
    }
    must(i < draft->count);
    struct model *found = draft->models[i];
    draft->count--; /* those of one file still follow each other */
    memmove(&draft->models[i], &draft->models[i + 1], (draft->count - i) * sizeof(struct model *));
    drop(draft, found);
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool is_called(const struct model *model, const char *name, bool by_alias)
{
    return by_alias ? model->alias && strcmp(model->alias, name) == 0
                    : strcmp(model->name, name) == 0;
}

static const struct model *find_best(const struct repository_draft *draft, const char *name,
                                     uint32_t version, bool by_alias)
{
    const struct model *best = NULL;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct model *model = draft->models[i];
        if (!is_called(model, name, by_alias) || (version && model->version != version)) {
            continue;
        }
        bool is_better =
            !best || model_is_ready(model) > model_is_ready(best) ||
            (model_is_ready(model) == model_is_ready(best) && model->version > best->version);
        best = is_better ? model : best;
    }
    return best;
}

const struct model *repository_draft_find(const struct repository_draft *draft, const char *name,
                                          uint32_t version)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    const struct model *named = find_best(draft, name, version, false);
    return named ? named : find_best(draft, name, version, true);
}

const struct model *repository_draft_find_listed(const struct repository_draft *draft,
                                                 const char *name, uint32_t version)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    const struct model *longest = NULL;
    size_t longest_len = 0;
    for (uint32_t i = 0; i < draft->count; i++) {
        const struct model *model = draft->models[i];
        size_t len = strlen(model->name);
        bool may_have_it = model_state(model) == MODEL_UNKNOWN && len >= longest_len &&
                           strncmp(model->name, name, len) == 0 && name[len] == '.' &&
                           (version == 0 || model->version == version);
        bool is_better =
            may_have_it && (!longest || len > longest_len || model->version > longest->version);
        longest = is_better ? model : longest;
        longest_len = is_better ? len : longest_len;
    }
    return longest;
}

/* ---- publishing ------------------------------------------------------------------------------ */

static int compare(const void *a, const void *b)
{
    return repository_compare(*(struct model *const *)a, *(struct model *const *)b);
}

static const char *origin_of(const struct model *model)
{
    return model->origin->path ? model->origin->path : "a pipeline";
}

static enum status refuse_twins(const struct model *a, const struct model *b, struct error *err)
{
    return error_set(err, ST_INVALID, "model '%s' version %u: there are two of them, %s and %s",
                     a->name, a->version, origin_of(a), origin_of(b));
}

enum status repository_draft_sort(struct repository_draft *draft, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    if (draft->count) {
        qsort(draft->models, draft->count, sizeof(struct model *), compare);
    }
    for (uint32_t i = 1; i < draft->count; i++) {
        if (repository_compare(draft->models[i - 1], draft->models[i]) == 0) {
            return refuse_twins(draft->models[i - 1], draft->models[i], err);
        }
    }
    return ST_OK;
}

struct model *repository_draft_twin(const struct repository_draft *draft, const struct model *model)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct model *const *found = NULL;
    if (draft->count) {
        found = bsearch(&model, draft->models, draft->count, sizeof(struct model *), compare);
    }
    return found ? *found : NULL;
}

enum status repository_draft_publish(struct repository_draft *draft, struct error *err)
{
    OBJ_CHECK(draft, REPOSITORY_DRAFT_MAGIC);
    struct repository_index *index;
    for (uint32_t i = 0; i < draft->count; i++) {
        must(model_state(draft->models[i]) != MODEL_UNLOADING);
    }
    TRY(repository_draft_sort(draft, err));
    TRY(repository_index_new(draft->models, draft->count, &index, err));
    draft->models = NULL;
    draft->count = draft->capacity = 0;
    repository_replace_index(draft->repository, index);
    return ST_OK;
}
