/* SPDX-License-Identifier: MIT */
/*
 * Files whose models nobody has needed for as long as --idle-unload says. A file is the unit: all
 * of its models go, or none does.
 */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "server/model/repository_priv.h"

#define NS_PER_MS 1000000u
#define NS_PER_S 1000000000u

/* Between two looks at a file whose time is up, but which is in use. */
#define BUSY_NS NS_PER_S
/* Files that leave at a time: the loop has other work. */
#define LEAVING_MAX 32

/* May the file be unloaded at all, whatever the time? */
static bool may_leave(const struct model *model)
{
    const struct origin *origin = model->origin;
    return model->program && origin->path && !origin->is_pinned;
}

void repository_count_idle(struct model *model)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    uint64_t ms = model->params.idle_unload, ns = ms ? ms * NS_PER_MS : KEEP_FOR_EVER;
    struct keep *keep = &model->origin->keep;
    if (model_is_ready(model) && ns > keep->idle_ns) {
        keep->idle_ns = ns;
    }
}

/* Marks the files whose time is up; returns when that of another one is. */
static uint64_t mark_due(const struct repository_index *index, uint64_t now_ns)
{
    uint64_t next_ns = RT_SCHED_NEVER;
    for (uint32_t i = 0; i < index->count; i++) {
        const struct model *model = index->models[i];
        uint64_t due_ns = model->origin->keep.due_ns;
        model->origin->is_leaving = may_leave(model) && due_ns <= now_ns;
        if (may_leave(model) && due_ns > now_ns) {
            next_ns = due_ns < next_ns ? due_ns : next_ns;
        }
    }
    return next_ns;
}

/* Takes the mark from files that are in use. False: none was. */
static bool unmark_used(const struct repository_index *index, struct rt_sequences *sequences)
{
    bool are_used = false;
    for (uint32_t i = 0; i < index->count; i++) {
        struct model *model = index->models[i];
        if (model->origin->is_leaving && !repository_is_unused(model, sequences)) {
            model->origin->is_leaving = false;
            are_used = true;
        }
    }
    return are_used;
}

/* At most LEAVING_MAX files keep the mark. Returns how many, and in |*out_are_more| whether others
 * had it. */
static uint32_t cut_marks(const struct repository_index *index, bool *out_are_more)
{
    struct origin *leaving[LEAVING_MAX];
    uint32_t count = 0;
    *out_are_more = false;
    for (uint32_t i = 0; i < index->count; i++) {
        struct origin *origin = index->models[i]->origin;
        uint32_t at = 0;
        while (origin->is_leaving && at < count && leaving[at] != origin) {
            at++;
        }
        if (!origin->is_leaving || at < count) {
            continue;
        }
        if (count == LEAVING_MAX) {
            origin->is_leaving = false;
            *out_are_more = true;
        } else {
            leaving[count++] = origin;
        }
    }
    return count;
}

enum status repository_unload_idle(struct repository *repository, struct rt_sequences *sequences,
                                   uint64_t now_ns, struct repository_removed *out_removed,
                                   uint64_t *out_next_ns, struct error *err)
{
    OBJ_CHECK(repository, REPOSITORY_MAGIC);
    struct repository_index *index = repository_ref_index(repository);
    bool are_more;
    *out_removed = (struct repository_removed){0};
    *out_next_ns = mark_due(index, now_ns);
    if (unmark_used(index, sequences) && *out_next_ns > now_ns + BUSY_NS) {
        *out_next_ns = now_ns + BUSY_NS;
    }
    uint32_t count = cut_marks(index, &are_more);
    *out_next_ns = are_more ? now_ns : *out_next_ns;
    repository_unref_index(index);
    return count ? repository_list_again(repository, sequences, REPOSITORY_LISTED_IDLE, out_removed,
                                         err)
                 : ST_OK;
}
