/* SPDX-License-Identifier: MIT */
/* Chooses the models that give way when --model-bytes-max is reached. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "server/model/repository_priv.h"

/* A file whose models are loaded and could go. */
struct candidate {
    struct origin *origin; /* borrowed from the index */
    uint64_t used_ns;      /* when the last request for one of its models ended; 0: none has come;
                              UINT64_MAX: one is in use */
    uint64_t bytes;        /* that it takes now */
};

struct evictor {
    struct repository *repository;
    struct repository_index *index; /* ref held */
    struct candidate *candidates;   /* owned; by |used_ns| */
    uint32_t count;
};

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
        uint64_t used_ns = model->stats ? model_stats_last_ns(model->stats) : 0;
        used_ns = repository_is_unused(model, sequences) ? used_ns : UINT64_MAX;
        candidate->bytes += candidate->bytes ? 0 : repository_model_bytes(model);
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
        freed += e->candidates[i].bytes;
        if (freed >= bytes) {
            e->count = i + 1;
            return true;
        }
    }
    return false;
}

static enum status evict(struct evictor *e, struct rt_sequences *sequences, uint64_t bytes,
                         struct repository_removed *out_removed, struct error *err)
{
    e->candidates = calloc((size_t)e->index->count + 1, sizeof(*e->candidates));
    if (!e->candidates) {
        return error_no_memory(err, "models");
    }
    list_candidates(e, sequences);
    if (!choose(e, bytes)) {
        return error_set(err, ST_EXHAUSTED, "too many models are in use");
    }
    for (uint32_t i = 0; i < e->count; i++) {
        e->candidates[i].origin->is_leaving = true;
    }
    return repository_list_again(e->repository, sequences, REPOSITORY_LISTED_DISPLACED, out_removed,
                                 err);
}

enum status repository_evict(struct repository *repository, struct rt_sequences *sequences,
                             uint64_t bytes, struct repository_removed *out_removed,
                             struct error *err)
{
    struct evictor e = {.repository = repository, .index = repository_ref_index(repository)};
    enum status status = evict(&e, sequences, bytes, out_removed, err);
    repository_unref_index(e.index);
    free(e.candidates);
    return status;
}
