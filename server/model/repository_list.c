/* SPDX-License-Identifier: MIT */
/* Takes loaded files out of service until they are called again: their models are only listed. */
#include "config.h"

#include <stdlib.h>

#include "base/check.h"
#include "runtime/sched/prefix.h"
#include "runtime/sched/sequence.h"
#include "server/language/generator.h"
#include "server/model/repository_priv.h"

bool repository_is_unused(struct model *model, struct rt_sequences *sequences)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    return refs_is_only(&model->refs) && !model->older &&
           rt_sequences_count(sequences, model->program) == 0;
}

void repository_close_prefixes(const struct model *model, struct rt_sequences *sequences)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    if (model->program && model->generator) {
        rt_prefixes_close(rt_sequences_prefixes(sequences), model->method,
                          &model->generator->is_retired);
    }
}

void repository_drop_removed(struct repository_removed *removed)
{
    while (removed->count > 0) {
        model_unref(removed->models[--removed->count]);
    }
    free(removed->models);
    removed->models = NULL;
}

static void add_uses(struct model_uses *uses, const struct model_uses *more)
{
    bool is_surer = (more->embeds || more->ranks) &&
                    ((!uses->embeds && !uses->ranks) || more->embeds_claim < uses->embeds_claim);
    uses->embeds_claim = is_surer ? more->embeds_claim : uses->embeds_claim;
    uses->generates |= more->generates;
    uses->transcribes |= more->transcribes;
    uses->embeds |= more->embeds;
    uses->ranks |= more->ranks;
}

/* Its listed file is for what its models are for. */
static void keep_uses(const struct repository_index *index, struct model *listed,
                      const struct origin *old)
{
    for (uint32_t i = 0; i < index->count; i++) {
        if (index->models[i]->origin == old) {
            add_uses(&listed->uses, &index->models[i]->uses);
        }
    }
}

/* The file is listed as it was when it was loaded; a scan sees whether it has changed. Its default
 * model goes on with the counts. */
static enum status list_file(const struct repository_index *index, struct repository_draft *draft,
                             const struct origin *old, const char *why, struct error *err)
{
    struct origin *origin;
    TRY(origin_new(span_str(old->name), old->version, old->path, &origin, err));
    origin->id = old->id;
    origin->bytes = old->bytes;
    origin->is_on_demand = true;
    origin->why_listed = why;
    enum status status = repository_draft_list(draft, origin, err);
    origin_unref(origin);
    if (status == ST_OK) {
        struct model *listed = draft->models[draft->count - 1];
        keep_uses(index, listed, old);
        const struct model *twin = repository_index_twin(index, listed);
        if (twin) {
            model_keep_stats(listed, twin);
        }
    }
    return status;
}

/* Makes the index in which the files that leave are listed, each once. */
static enum status replace(const struct repository_index *index, struct repository_draft *draft,
                           const char *why, struct repository_removed *removed, struct error *err)
{
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *model = index->models[i];
        if (model->origin->is_leaving) {
            removed->models[removed->count++] = model_ref(model);
            repository_draft_remove(draft, model);
        }
    }
    for (uint32_t i = 0; i < removed->count; i++) {
        struct origin *origin = removed->models[i]->origin;
        if (origin->is_leaving) {
            TRY(list_file(index, draft, origin, why, err));
            origin->is_leaving = false;
        }
    }
    return repository_draft_publish(draft, err);
}

static enum status list_again(struct repository *repository, const struct repository_index *index,
                              const char *why, struct repository_removed *removed,
                              struct error *err)
{
    struct repository_draft draft;
    removed->models = calloc((size_t)index->count + 1, sizeof(struct model *));
    if (!removed->models) {
        return error_no_memory(err, "models");
    }
    enum status status = repository_draft_init(&draft, repository, NULL, err);
    if (status == ST_OK) {
        status = replace(index, &draft, why, removed, err);
    }
    repository_draft_fini(&draft);
    return status;
}

enum status repository_list_again(struct repository *repository, struct rt_sequences *sequences,
                                  const char *why, struct repository_removed *out_removed,
                                  struct error *err)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    *out_removed = (struct repository_removed){0};
    enum status status = list_again(repository, index, why, out_removed, err);
    for (uint32_t i = 0; i < index->count; i++) {
        index->models[i]->origin->is_leaving = false;
    }
    repository_unref_index(index);
    for (uint32_t i = 0; status == ST_OK && i < out_removed->count; i++) {
        repository_close_prefixes(out_removed->models[i], sequences);
    }
    if (status != ST_OK) {
        repository_drop_removed(out_removed);
    }
    return status;
}
