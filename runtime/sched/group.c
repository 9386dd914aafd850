/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/sched/group.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/sched/choose.h"
#include "runtime/sched/queue.h"

static void enter(struct rt_sched_queue *queue, struct rt_sched_group *group)
{
    must(queue->group == &queue->own);
    group->queue_count++;
    group->stepping_count += queue->own.stepping_count;
    group->ready_rows += queue->ready_rows;
    group->ready_steps += queue->ready_steps;
    queue->group = group;
}

void rt_group_leave(struct rt_sched_queue *queue)
{
    struct rt_sched_group *group = queue->group;
    must(queue->running_count == 0 && queue->ready_rows == 0);
    queue->group = &queue->own;
    if (group != &queue->own && --group->queue_count == 0) {
        free(group);
    }
}

static enum status mix(struct rt_sched_queue *queue, struct rt_sched_queue *other,
                       struct error *err)
{
    struct rt_sched_group *group = other->group;
    if (queue->group == group) {
        return ST_OK;
    }
    if (group == &other->own) {
        group = calloc(1, sizeof(*group));
        if (!group) {
            return error_set(err, ST_EXHAUSTED, "no memory for queues whose jobs run as one");
        }
        enter(other, group);
    }
    enter(queue, group);
    return ST_OK;
}

enum status rt_sched_queue_mix(struct rt_sched_queue *queue, struct rt_sched_queue *other,
                               int64_t rows, struct error *err)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    OBJ_CHECK(other, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched *sched = queue->sched;
    must(queue != other && sched == other->sched);
    pthread_mutex_lock(&sched->lock);
    enum status status = mix(queue, other, err);
    if (status == ST_OK) {
        queue->mixed_rows = rows;
    }
    pthread_mutex_unlock(&sched->lock);
    return status;
}
