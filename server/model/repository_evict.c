/* SPDX-License-Identifier: MIT */
/* Chooses the models that give way when --model-bytes-max is reached. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/sequence.h"
#include "server/model/repository_priv.h"

/* A file whose models are loaded and could go. */
struct candidate {
    struct origin *origin; /* borrowed from the index */
    uint64_t used_ns;      /* when the last request for one of its models ended; 0: none has come;
                              UINT64_MAX: one is in use */
};

struct evictor {
    struct repository *repository;
    struct repository_index *index; /* ref held */
    struct candidate *candidates;   /* owned; by |used_ns| */
    uint32_t count;
    struct model **models; /* owned; refs held: models that have given way */
    uint32_t model_count;
};

static bool is_unused(struct rt_sequences *sequences, struct model *model)
{
    return refs_is_only(&model->refs) && !model->older &&
           rt_sequences_count(sequences, model->program) == 0;
}

static struct candidate *candidate_of(struct evictor *e, struct origin *origin)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->candidates[i].origin == origin) {
            return &e->candidates[i];
        }
    }
    e->candidates[e->count] = (struct candidate){.origin = origin};
    return &e->candidates[e->count++];
}

static int compare(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return (a->used_ns > b->used_ns) - (a->used_ns < b->used_ns);
}

static void list_candidates(struct evictor *e, struct rt_sequences *sequences)
{
    for (uint32_t i = 0; i < e->index->count; i++) {
        struct model *model = e->index->models[i];
        if (!model->origin->is_on_demand || model->origin->is_pinned || !model->program) {
            continue;
        }
        struct candidate *candidate = candidate_of(e, model->origin);
        uint64_t used_ns = model->stats ? model->stats->last_ns : 0;
        used_ns = is_unused(sequences, model) ? used_ns : UINT64_MAX;
        candidate->used_ns = used_ns > candidate->used_ns ? used_ns : candidate->used_ns;
    }
    if (e->count) {
        qsort(e->candidates, e->count, sizeof(*e->candidates), compare);
    }
}

/* The candidates that stay are dropped from the list. False: all of them are not enough. */
static bool choose(struct evictor *e, uint64_t bytes)
{
    uint64_t freed = 0;
    for (uint32_t i = 0; i < e->count && e->candidates[i].used_ns != UINT64_MAX; i++) {
        freed += e->candidates[i].origin->bytes;
        if (freed >= bytes) {
            e->count = i + 1;
            return true;
        }
    }
    return false;
}

static bool is_chosen(const struct evictor *e, const struct model *model)
{
    for (uint32_t i = 0; i < e->count; i++) {
        if (e->candidates[i].origin == model->origin) {
            return true;
        }
    }
    return false;
}

/* The file is listed as it was when it was loaded; a scan sees whether it has changed. Its default
 * model goes on with the counts. */
static enum status list_again(const struct evictor *e, struct repository_draft *draft,
                              const struct origin *old, struct error *err)
{
    struct origin *origin;
    TRY(origin_new(span_str(old->name), old->version, old->path, &origin, err));
    origin->id = old->id;
    origin->bytes = old->bytes;
    origin->is_on_demand = true;
    enum status status = repository_draft_list(draft, origin, err);
    origin_unref(origin);
    if (status == ST_OK) {
        struct model *listed = draft->models[draft->count - 1];
        const struct model *twin = repository_index_twin(e->index, listed);
        if (twin) {
            model_keep_stats(listed, twin);
        }
    }
    return status;
}

/* Makes the index in which the chosen files are listed. */
static enum status replace(struct evictor *e, struct repository_draft *draft, struct error *err)
{
    for (uint32_t i = 0; i < e->index->count; i++) {
        struct model *model = e->index->models[i];
        if (is_chosen(e, model)) {
            e->models[e->model_count++] = model_ref(model);
            repository_draft_remove(draft, model);
        }
    }
    for (uint32_t i = 0; i < e->count; i++) {
        TRY(list_again(e, draft, e->candidates[i].origin, err));
    }
    return repository_draft_publish(draft, err);
}

static enum status evict(struct evictor *e, struct rt_sequences *sequences, uint64_t bytes,
                         struct error *err)
{
    e->candidates = calloc((size_t)e->index->count + 1, sizeof(*e->candidates));
    e->models = calloc((size_t)e->index->count + 1, sizeof(struct model *));
    if (!e->candidates || !e->models) {
        return error_set(err, ST_EXHAUSTED, "models: out of memory");
    }
    list_candidates(e, sequences);
    if (!choose(e, bytes)) {
        return error_set(err, ST_EXHAUSTED, "too many models are in use");
    }
    struct repository_draft draft;
    enum status status = repository_draft_init(&draft, e->repository, NULL, err);
    if (status == ST_OK) {
        status = replace(e, &draft, err);
    }
    repository_draft_fini(&draft);
    return status;
}

enum status repository_evict(struct repository *repository, struct rt_sequences *sequences,
                             uint64_t bytes, struct model ***out_models, uint32_t *out_count,
                             struct error *err)
{
    struct evictor e = {.repository = repository, .index = repository_ref_index(repository)};
    enum status status = evict(&e, sequences, bytes, err);
    repository_unref_index(e.index);
    free(e.candidates);
    if (status == ST_OK) {
        *out_models = e.models;
        *out_count = e.model_count;
        return ST_OK;
    }
    while (e.model_count > 0) {
        model_unref(e.models[--e.model_count]);
    }
    free(e.models);
    return status;
}
