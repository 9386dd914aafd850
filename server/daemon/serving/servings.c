/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/servings.h"

#include "base/check.h"
#include "server/daemon/serving/serving.h"

void servings_init(struct servings *servings, const struct servings_ops *ops, void *owner)
{
    *servings = (struct servings){.ops = ops, .owner = owner};
}

void servings_fini(struct servings *servings)
{
    serving_free(servings->current);
    servings->current = NULL;
}

struct serving *servings_hold(struct servings *servings)
{
    OBJ_CHECK(servings->current, SERVING_MAGIC);
    servings->current->users++;
    return servings->current;
}

void servings_let_go(struct servings *servings, struct serving *serving)
{
    OBJ_CHECK(serving, SERVING_MAGIC);
    must(serving->users > 0);
    if (--serving->users == 0 && serving != servings->current) {
        struct serving *newer = servings->current;
        while (newer->older != serving) {
            newer = newer->older;
            OBJ_CHECK(newer, SERVING_MAGIC); /* else it is not in the list */
        }
        newer->older = serving->older;
        serving_free(serving);
    }
}

void servings_replace(struct servings *servings, struct serving *fresh)
{
    OBJ_CHECK(fresh, SERVING_MAGIC);
    must(fresh != servings->current && fresh->users == 0);
    struct serving *old = servings->current;
    servings->ops->leave_pool(servings->owner);
    servings->current = fresh;
    servings->ops->enter_pool(servings->owner);
    repository_keep_stats(&fresh->repository, &old->repository);
    fresh->older = old;
    if (old->users == 0) {
        fresh->older = old->older;
        serving_free(old);
    }
}

void servings_shed(struct servings *servings)
{
    must(servings->current->users == 0);
    servings->ops->leave_pool(servings->owner);
    serving_shed(servings->current);
}
