/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/sched/group.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/sched/choose.h"
#include "runtime/sched/queue.h"

static bool is_alone(const struct rt_sched_queue *queue)
{
    return queue->group == &queue->own;
}

void rt_group_bound(const struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched_group *group = queue->group;
    uint32_t bound = rt_queue_running_max(queue);
    if (!is_alone(queue) && bound && (!group->steps_max || bound < group->steps_max)) {
        group->steps_max = bound;
    }
}

static void enter(struct rt_sched_queue *queue, struct rt_sched_group *group)
{
    must(is_alone(queue));
    group->queue_count++;
    group->stepping_count += queue->own.stepping_count;
    group->ready_rows += queue->ready_rows;
    group->ready_steps += queue->ready_steps;
    queue->group = group;
    rt_group_bound(queue);
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
    if (queue->group == other->group) {
        return ST_OK;
    }
    if (!is_alone(queue) && !is_alone(other)) {
        return error_set(err, ST_UNSUPPORTED, "both run with others already");
    }
    struct rt_sched_group *group = is_alone(other) ? queue->group : other->group;
    if (is_alone(queue) && is_alone(other)) {
        group = calloc(1, sizeof(*group));
        if (!group) {
            return error_no_memory(err, "queues whose jobs run as one");
        }
    }
    if (is_alone(other)) {
        enter(other, group);
    }
    if (is_alone(queue)) {
        enter(queue, group);
    }
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
