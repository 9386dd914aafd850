/* SPDX-License-Identifier: MIT */
/* Bookkeeping of one model's jobs. Who may start when is decided in sched.c. */
#include "config.h"

#include "runtime/sched/queue.h"

#include "base/check.h"
#include "base/resource.h"

_Static_assert(RT_SCHED_PRIORITIES <= 32, "levels is a mask");

/* Jobs among which a step is looked for, or one that is in time. */
#define LOOKS_MAX 256

/* Steps wait for others for this part of the time that they ran, but not longer than that. */
#define HOLD_PART 8
#define HOLD_NS_MAX 5000000u
/* Steps that come back later than that are no longer expected together. */
#define LATE_NS_MAX 20000000u

/* The usual time is a moving average; each new measurement has a weight of an eighth. */
#define RUN_SHIFT 3

/* Runs may last longer than usual by this part of the usual time, and are still expected to. */
#define SPREAD_PART 2

/* A job that is too late is passed over by so many others at most. The usual time says little of a
 * small job whose model also gets large ones. */
#define PASSES_MAX 16

void rt_queue_init(struct rt_sched_queue *queue, struct rt_sched *sched,
                   const struct rt_sched_queue_options *options)
{
    must(options->weight > 0);
    *queue =
        (struct rt_sched_queue){.magic = RT_SCHED_QUEUE_MAGIC, .sched = sched, .options = *options};
    refs_init(&queue->refs);
    atomic_init(&queue->joins, options->rows_max > 1);
    rt_sizing_fix(&queue->sizing, options->rows_max);
    queue->joined_running_max = options->running_max;
    queue->own.queue_count = 1;
    atomic_init(&queue->own.due_ns, 0);
    atomic_init(&queue->group, &queue->own);
    share_init_for_one_thread(&queue->places, options->waiting_max,
                              resource_kept(RESOURCE_QUEUES, options->waiting_max));
    list_init(&queue->link);
    for (int i = 0; i < RT_SCHED_PRIORITIES; i++) {
        list_init(&queue->ready[i]);
    }
}

void rt_queue_fini(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    share_fini(&queue->places);
    queue->magic = 0;
}

static enum status check_room(const struct rt_sched_queue *queue, const struct rt_sched_job *job,
                              struct error *err)
{
    const struct rt_sched_queue_options *options = &queue->options;
    uint32_t waiting = queue->waiting_count - queue->child_count;
    if (waiting >= options->waiting_max) {
        return error_set(err, ST_EXHAUSTED, "%u requests wait already", waiting);
    }
    size_t room = options->waiting_bytes_max > queue->waiting_bytes
                      ? options->waiting_bytes_max - queue->waiting_bytes
                      : 0;
    if (waiting > 0 && job->bytes > room) {
        return error_set(err, ST_EXHAUSTED, "%u requests with %zu bytes wait already", waiting,
                         queue->waiting_bytes);
    }
    enum share_taken taken = share_look(&queue->places, job->client, 1);
    return taken == SHARE_CLIENT_IS_UP
               ? resource_refuse(RESOURCE_QUEUES, &queue->places, taken, job->client, err)
               : ST_OK;
}

enum status rt_queue_admit(struct rt_sched_queue *queue, const struct rt_sched_job *job,
                           struct error *err)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    return job->parent ? ST_OK : check_room(queue, job, err);
}

static uint32_t level_of(const struct rt_sched_job *job)
{
    uint32_t priority = job->priority ? job->priority : RT_SCHED_PRIORITY_DEFAULT;
    return (priority < RT_SCHED_PRIORITIES ? priority : RT_SCHED_PRIORITIES) - 1;
}

void rt_queue_add(struct rt_sched_queue *queue, struct rt_sched_job *job)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    must(job->queue == queue);
    queue->waiting_count++;
    queue->child_count += job->parent != NULL;
    queue->waiting_bytes += job->bytes;
    /* One that waits again, for memory or behind others, may find all places taken. It waits all
     * the same. */
    job->has_place = !job->parent && share_look(&queue->places, job->client, 1) == SHARE_TAKEN &&
                     share_take(&queue->places, job->client, 1) == SHARE_TAKEN;
}

static bool is_step(const struct rt_sched_job *job)
{
    return job->returns && job->rows > 0;
}

/* The thread that brings steps back may be late with all of them. So the first one that comes waits
 * for the others, too. */
static void note_first_step(struct rt_sched_queue *queue, const struct rt_sched_job *job)
{
    struct rt_sched_group *group = queue->group;
    uint64_t held_ns = job->queued_ns + group->hold_ns;
    bool is_expected = job->queued_ns < group->held_ns + LATE_NS_MAX;
    if (is_step(job) && is_expected && group->ready_steps == 0 && group->held_ns < held_ns) {
        group->held_ns = held_ns;
    }
}

static void count_ready(struct rt_sched_queue *queue, const struct rt_sched_job *job)
{
    struct rt_sched_group *group = queue->group;
    queue->levels |= 1u << level_of(job);
    queue->ready_steps += is_step(job);
    queue->ready_rows += job->rows;
    group->ready_steps += is_step(job);
    group->ready_rows += job->rows;
}

static uint64_t arrival(const struct rt_sched_job *job)
{
    return job->parent ? job->parent->queued_ns : job->since_ns ? job->since_ns : job->queued_ns;
}

void rt_queue_ready(struct rt_sched_queue *queue, struct rt_sched_job *job)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    must(job->queue == queue && job->behind_count == 0);
    bool is_later = !job->parent && !job->since_ns;
    struct list *level = &queue->ready[level_of(job)], *next = is_later ? level : level->next;
    while (next != level && arrival(LIST_ENTRY(next, struct rt_sched_job, link)) <= arrival(job)) {
        next = next->next;
    }
    list_push_back(next, &job->link); /* before |next| */
    note_first_step(queue, job);
    count_ready(queue, job);
}

void rt_queue_ready_again(struct rt_sched_queue *queue, struct rt_sched_job *job)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    list_push_front(&queue->ready[level_of(job)], &job->link);
    count_ready(queue, job);
}

void rt_queue_remove(struct rt_sched_queue *queue, struct rt_sched_job *job)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    uint32_t level = level_of(job);
    must(queue->waiting_count > 0 && queue->waiting_bytes >= job->bytes);
    list_remove(&job->link);
    if (list_is_empty(&queue->ready[level])) {
        queue->levels &= ~(1u << level);
        queue->open_ns = queue->levels ? queue->open_ns : 0;
    }
    if (!job->behind_count) {
        struct rt_sched_group *group = queue->group;
        queue->ready_rows -= job->rows;
        queue->ready_steps -= is_step(job);
        group->ready_rows -= job->rows;
        group->ready_steps -= is_step(job);
    }
    queue->waiting_count--;
    queue->child_count -= job->parent != NULL;
    queue->waiting_bytes -= job->bytes;
    if (job->has_place) {
        share_give(&queue->places, job->client, 1);
        job->has_place = false;
    }
}

/* Children pass requests that wait for memory: their parents may hold that memory. */
static struct rt_sched_job *first_child(const struct rt_sched_queue *queue)
{
    for (uint32_t levels = queue->levels; levels; levels &= levels - 1) {
        const struct list *level = &queue->ready[__builtin_ctz(levels)];
        for (struct list *l = level->next; l != level; l = l->next) {
            if (LIST_ENTRY(l, struct rt_sched_job, link)->parent) {
                return LIST_ENTRY(l, struct rt_sched_job, link);
            }
        }
    }
    return NULL;
}

/* The oldest ready job of the highest priority. If the job that ran last was not a step, a step
 * goes first. If the queue is starved, a child goes first: its parent may hold the memory that the
 * others wait for. NULL: no job is ready. */
static struct rt_sched_job *first_ready(const struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    if (!queue->levels) {
        return NULL;
    }
    if (queue->is_starved && queue->child_count > 0) {
        return first_child(queue);
    }
    const struct list *level = &queue->ready[__builtin_ctz(queue->levels)];
    unsigned looks = queue->was_alone && queue->ready_steps > 0 ? LOOKS_MAX : 0;
    for (struct list *l = level->next; l != level && looks > 0; l = l->next, looks--) {
        struct rt_sched_job *job = LIST_ENTRY(l, struct rt_sched_job, link);
        if (is_step(job)) {
            return job;
        }
    }
    return LIST_ENTRY(level->next, struct rt_sched_job, link);
}

bool rt_queue_may_run(const struct rt_sched_queue *queue, bool is_guest)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    uint32_t limit = rt_queue_running_max(queue);
    const struct rt_sched_group *group = queue->group;
    if (limit && queue->running_count + queue->yielded_count >= limit) {
        return false;
    }
    /* steps of the others come back soon, and then its own ones run with them */
    return is_guest || !group->steps_max || group->stepping_count < group->steps_max ||
           !is_step(first_ready(queue));
}

bool rt_queue_is_too_late(const struct rt_sched_queue *queue, const struct rt_sched_job *job,
                          uint64_t now_ns)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    uint64_t needed_ns = queue->lasts_ns + queue->lasts_ns / SPREAD_PART;
    return job->deadline_ns != RT_SCHED_NEVER &&
           (job->deadline_ns <= now_ns || job->deadline_ns - now_ns < needed_ns);
}

struct rt_sched_job *rt_queue_take_turn(struct rt_sched_queue *queue, uint64_t now_ns)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched_job *first = first_ready(queue);
    bool is_passed = first && rt_queue_is_too_late(queue, first, now_ns);
    queue->passes = is_passed && queue->passes < PASSES_MAX ? queue->passes + 1 : 0;
    if (queue->passes == 0) {
        return first;
    }
    unsigned looks = LOOKS_MAX;
    for (uint32_t levels = queue->levels; levels; levels &= levels - 1) {
        const struct list *level = &queue->ready[__builtin_ctz(levels)];
        for (struct list *l = level->next; l != level && looks > 0; l = l->next, looks--) {
            struct rt_sched_job *job = LIST_ENTRY(l, struct rt_sched_job, link);
            if (!rt_queue_is_too_late(queue, job, now_ns)) {
                return job;
            }
        }
    }
    return first;
}

static bool is_held(const struct rt_sched_queue *queue, const struct rt_sched_job *job)
{
    const struct rt_sched_group *group = queue->group;
    int64_t most = rt_sizing_rows(&queue->sizing);
    int64_t wanted = group->expected_rows < most ? group->expected_rows : most;
    return is_step(job) && group->ready_rows < wanted;
}

void rt_queue_await_steps(struct rt_sched_queue *queue, const struct rt_sched_run *run,
                          uint64_t now_ns)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    uint64_t hold_ns = (now_ns - run->started_ns) / HOLD_PART;
    if (run->returning == 0) {
        return;
    }
    struct rt_sched_group *group = queue->group;
    group->expected_rows = run->returning + group->ready_rows;
    group->hold_ns = hold_ns < HOLD_NS_MAX ? hold_ns : HOLD_NS_MAX;
    group->held_ns = now_ns + group->hold_ns;
}

uint64_t rt_queue_due_ns(const struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    const struct rt_sched_job *first = first_ready(queue);
    uint64_t oldest_ns = UINT64_MAX, due_ns;
    if (is_held(queue, first)) {
        return queue->group->held_ns;
    }
    if (queue->options.delay_ns == 0 || queue->ready_rows >= rt_sizing_rows(&queue->sizing) ||
        first->rows == 0 || first->returns || queue->child_count > 0) {
        return 0;
    }
    for (uint32_t levels = queue->levels; levels; levels &= levels - 1) {
        const struct list *level = &queue->ready[__builtin_ctz(levels)];
        const struct rt_sched_job *job = LIST_ENTRY(level->next, struct rt_sched_job, link);
        oldest_ns = job->queued_ns < oldest_ns ? job->queued_ns : oldest_ns;
    }
    return __builtin_add_overflow(oldest_ns, queue->options.delay_ns, &due_ns) ? RT_SCHED_NEVER
                                                                               : due_ns;
}

uint64_t rt_queue_tell_due(struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    struct rt_sched_group *group = queue->group;
    uint64_t due_ns = queue->levels ? rt_queue_due_ns(queue) : 0, told_ns = due_ns;
    bool others_wait = group->queue_count > 1 && group->ready_steps > 0 &&
                       group->ready_rows < group->expected_rows;
    if (others_wait && (due_ns == 0 || group->held_ns < due_ns)) {
        told_ns = group->held_ns;
    }
    atomic_store_explicit(&group->due_ns, told_ns, memory_order_relaxed);
    return due_ns;
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct rt_sched_part *rt_queue_find_part(struct rt_sched_run *run,
                                         const struct rt_sched_queue *queue)
{
    for (uint32_t i = 0; i < run->part_count; i++) {
        if (run->parts[i].queue == queue) {
            return &run->parts[i];
        }
    }
    return NULL;
}

void rt_queue_started(struct rt_sched_run *run)
{
    for (uint32_t i = 0; i < run->part_count; i++) {
        struct rt_sched_part *part = &run->parts[i];
        struct rt_sched_queue *queue = part->queue;
        OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
        queue->running_count++;
        part->charged_ns = queue->run_ns * part->size / queue->options.weight;
        queue->used_ns += part->charged_ns;
    }
    run->parts[0].queue->group->stepping_count += run->returning > 0;
}

static void take_back(const struct rt_sched_part *part)
{
    struct rt_sched_queue *queue = part->queue;
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    must(queue->running_count > 0 && queue->used_ns >= part->charged_ns);
    queue->running_count--;
    queue->used_ns -= part->charged_ns;
}

void rt_queue_drop_guests(struct rt_sched_run *run)
{
    must(run->part_count > 0);
    while (run->part_count > 1) {
        take_back(&run->parts[--run->part_count]);
    }
}

void rt_queue_unstarted(struct rt_sched_run *run)
{
    must(run->part_count == 1);
    take_back(&run->parts[0]);
    run->parts[0].queue->group->stepping_count -= run->returning > 0;
}

/* The mean after one more job or run, which took |took_ns|. */
static uint64_t with_one_more(uint64_t mean_ns, uint64_t took_ns)
{
    return mean_ns ? mean_ns - (mean_ns >> RUN_SHIFT) + (took_ns >> RUN_SHIFT) : took_ns;
}

void rt_queue_note_run(struct rt_sched_queue *queue, uint64_t took_ns)
{
    queue->run_ns = with_one_more(queue->run_ns, took_ns);
}

void rt_queue_end_part(const struct rt_sched_run *run, const struct rt_sched_part *part,
                       uint64_t now_ns, enum status status)
{
    must(part && part->size > 0 && run->size >= part->size);
    must(now_ns >= run->started_ns);
    struct rt_sched_queue *queue = part->queue;
    uint64_t took = now_ns - run->started_ns;
    take_back(part);
    queue->used_ns += took * part->size / run->size / queue->options.weight;
    if (status == ST_OK) {
        rt_queue_note_run(queue, took / run->size);
    }
    /* a job that was cut would have taken longer */
    if (status == ST_OK || took > queue->lasts_ns) {
        queue->lasts_ns = with_one_more(queue->lasts_ns, took);
    }
}

void rt_queue_finished(struct rt_sched_queue *queue, struct rt_sched_run *run, uint64_t now_ns,
                       enum status status)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    rt_queue_end_part(run, rt_queue_find_part(run, queue), now_ns, status);
    queue->group->stepping_count -= run->returning > 0;
}

uint32_t rt_queue_running_max(const struct rt_sched_queue *queue)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    bool is_joined = rt_sizing_rows(&queue->sizing) > 1;
    return is_joined ? queue->joined_running_max : queue->options.running_max;
}

uint64_t rt_queue_drain_ns(const struct rt_sched_queue *queue, uint32_t depth)
{
    OBJ_CHECK(queue, RT_SCHED_QUEUE_MAGIC);
    uint32_t limit = rt_queue_running_max(queue);
    uint32_t beside = limit && limit < depth ? limit : depth;
    uint64_t ahead =
        (uint64_t)queue->waiting_count + queue->running_count + queue->yielded_count + 1;
    uint64_t rounds = (ahead + beside - 1) / beside, ns;
    return __builtin_mul_overflow(rounds, queue->run_ns, &ns) ? RT_SCHED_NEVER : ns;
}
