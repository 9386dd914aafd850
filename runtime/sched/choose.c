/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/sched/choose.h"

#include "base/check.h"

/* Jobs that are looked at to make a batch. */
#define LOOKS_MAX 256

/* Parents of a queue that have yielded: enough for the largest batch of children. */
#define YIELDED_MAX RT_SCHED_BATCH_MAX

struct rt_sched_run *rt_choose_run(struct rt_sched *sched)
{
    must(!list_is_empty(&sched->free_runs));
    struct rt_sched_run *run = LIST_ENTRY(sched->free_runs.next, struct rt_sched_run, link);
    list_remove(&run->link);
    run->serial++;
    return run;
}

/* A queue gets no credit for the time when it was idle. */
static void credit_idle(const struct rt_sched *sched, struct rt_sched_queue *queue)
{
    if (queue->running_count == 0 && queue->used_ns < sched->used_ns) {
        queue->used_ns = sched->used_ns;
    }
}

/* |job| is the first in each of its lanes: it is ready for the device. */
static void make_ready(struct rt_sched *sched, struct rt_sched_job *job)
{
    struct rt_sched_queue *queue = job->queue;
    if (!queue->levels) {
        list_push_back(&sched->ready, &queue->link);
        credit_idle(sched, queue);
    }
    rt_queue_ready(queue, job);
}

static bool is_first(const struct rt_sched_ticket *ticket)
{
    return ticket->lane->tickets.next == &ticket->link;
}

/* In all of them before anybody else can be in one: see struct rt_sched_ticket. */
static void enter_lanes(struct rt_sched_job *job)
{
    job->behind_count = 0;
    for (uint32_t i = 0; i < job->ticket_count; i++) {
        struct rt_sched_ticket *ticket = &job->tickets[i];
        ticket->job = job;
        list_push_back(&ticket->lane->tickets, &ticket->link);
        job->behind_count += !is_first(ticket);
    }
}

void rt_choose_add(struct rt_sched *sched, struct rt_sched_job *job)
{
    must(job->state == RT_SCHED_IDLE);
    job->state = RT_SCHED_WAITING;
    rt_queue_add(job->queue, job);
    enter_lanes(job);
    if (job->behind_count == 0) {
        make_ready(sched, job);
    }
}

void rt_choose_starve(struct rt_sched *sched, struct rt_sched_queue *queue)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    if (!queue->is_starved) {
        queue->is_starved = true;
        atomic_fetch_add(&sched->starved_count, 1);
    }
}

void rt_choose_feed(struct rt_sched *sched, struct rt_sched_queue *queue)
{
    if (queue->is_starved) {
        must(atomic_load(&sched->starved_count) > 0);
        queue->is_starved = false;
        atomic_fetch_sub(&sched->starved_count, 1);
    }
}

void rt_choose_remove(struct rt_sched *sched, struct rt_sched_job *job)
{
    must(job->state == RT_SCHED_WAITING);
    rt_choose_feed(sched, job->queue);
    rt_queue_remove(job->queue, job);
    if (!job->queue->levels) {
        list_remove(&job->queue->link);
    }
}

void rt_choose_feed_all(struct rt_sched *sched)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    if (atomic_load(&sched->starved_count) == 0) {
        return;
    }
    for (struct list *l = sched->ready.next; l != &sched->ready; l = l->next) {
        rt_choose_feed(sched, LIST_ENTRY(l, struct rt_sched_queue, link));
    }
}

/* Ends the turn of a job that is over. If it was the first in its lane, the next one's turn begins.
 */
static void pass_ticket(struct rt_sched *sched, struct rt_sched_ticket *ticket)
{
    struct rt_sched_lane *lane = ticket->lane;
    bool was_first = is_first(ticket);
    list_remove(&ticket->link);
    if (!was_first || list_is_empty(&lane->tickets)) {
        return;
    }
    struct rt_sched_job *next = LIST_ENTRY(lane->tickets.next, struct rt_sched_ticket, link)->job;
    must(next->behind_count > 0);
    if (--next->behind_count == 0) {
        make_ready(sched, next);
    }
}

void rt_choose_leave_lanes(struct rt_sched *sched, const struct rt_sched_job *job)
{
    OBJ_CHECK(sched, RT_SCHED_MAGIC);
    for (uint32_t i = 0; i < job->ticket_count; i++) {
        pass_ticket(sched, &job->tickets[i]);
    }
}

/*
 * A queue that has nothing on the device may start a job even if that exceeds |depth|, but beyond
 * |depth| no queue has more than one. A job in the last place only waits on the device, so jobs
 * that others may still join in the queue do not get that place.
 */
static bool may_start(const struct rt_sched *sched, const struct rt_sched_queue *queue)
{
    bool may_grow = queue->ready_rows > 0 && queue->ready_rows < rt_sizing_rows(&queue->sizing);
    if (queue->yielded_count >= YIELDED_MAX || !rt_queue_may_run(queue, false)) {
        return false;
    }
    return queue->running_count == 0 || sched->running_count + may_grow < sched->options.depth;
}

/* The next queue of those that may start a job and have waited long enough for jobs to join it. */
static struct rt_sched_queue *choose(const struct rt_sched *sched, uint64_t now)
{
    struct rt_sched_queue *best = NULL;
    for (struct list *l = sched->ready.next; l != &sched->ready; l = l->next) {
        struct rt_sched_queue *queue = LIST_ENTRY(l, struct rt_sched_queue, link);
        uint64_t due_ns = rt_queue_tell_due(queue);
        bool is_starved = queue->is_starved && queue->child_count == 0;
        if (is_starved || !may_start(sched, queue)) {
            queue->open_ns = 0;
        } else if (due_ns > now) {
            queue->open_ns = queue->open_ns ? queue->open_ns : now;
        } else if (!best || queue->used_ns < best->used_ns) {
            best = queue;
        }
    }
    return best;
}

static struct rt_sched_part *open_part(struct rt_sched_run *run, struct rt_sched_queue *queue)
{
    struct rt_sched_part *part = rt_queue_find_part(run, queue);
    if (!part) {
        must(run->part_count < RT_SCHED_PARTS_MAX);
        part = &run->parts[run->part_count++];
        *part = (struct rt_sched_part){.queue = queue};
    }
    return part;
}

/* Begins a run of |queue|, without jobs yet. */
static void open_run(struct rt_sched *sched, struct rt_sched_start *start,
                     struct rt_sched_queue *queue)
{
    struct rt_sched_run *run = start->run = rt_choose_run(sched);
    must(run->size == 0 || list_is_empty(&run->jobs));
    run->returning = run->part_count = 0;
    run->has_yielded = false;
    start->count = 0;
    start->rows = 0;
    if (queue->yielded_count == 0) { /* parents use no time of their own: theirs stands still */
        sched->used_ns = queue->used_ns;
    }
    sched->running_count++;
}

/* |job|, which is in no list of its queue, is one of the run. */
static void enter_run(struct rt_sched_start *start, struct rt_sched_job *job)
{
    job->state = RT_SCHED_RUNNING;
    job->run = start->run;
    list_push_back(&start->run->jobs, &job->link);
    struct rt_sched_part *part = open_part(start->run, job->queue);
    part->size++;
    part->left++;
    part->counted += !job->is_uncounted;
    start->jobs[start->count++] = job;
    start->rows += job->rows;
    start->run->returning += job->returns ? job->rows : 0;
}

/* The run has all its jobs, and they run since |now|. */
static void close_run(struct rt_sched_start *start, struct rt_sched_queue *queue, uint64_t now)
{
    struct rt_sched_run *run = start->run;
    queue->open_ns = 0;
    for (uint32_t i = 0; i < start->count; i++) {
        start->jobs[i]->batch_size = start->count;
        start->jobs[i]->batch_rows = start->rows;
    }
    for (uint32_t i = 0; i < run->part_count; i++) {
        run->parts[i].queue->was_alone = run->returning == 0;
    }
    run->size = start->count;
    run->rows = start->rows;
    run->started_ns = now;
    run->in_start = &start->state;
    rt_queue_started(run);
    rt_queue_tell_due(queue);
    atomic_store_explicit(&start->state, RT_SCHED_STARTING, memory_order_relaxed);
}

static void set_running(struct rt_sched *sched, struct rt_sched_start *start,
                        struct rt_sched_job *job, uint64_t now)
{
    uint64_t open_ns = job->queue->open_ns;
    rt_choose_remove(sched, job);
    job->started_ns = rt_sched_not_before(job->queued_ns, now);
    if (open_ns) {
        uint64_t from_ns = rt_sched_not_before(job->queued_ns, open_ns);
        job->joining_ns = rt_sched_not_before(from_ns, job->started_ns) - from_ns;
    }
    enter_run(start, job);
}

/* How jobs are gathered for a run. */
struct gathering {
    struct rt_sched *sched;
    struct rt_sched_start *start;
    int64_t rows_max;   /* of all its jobs */
    int64_t mixed_rows; /* likewise, once they are of several queues */
    unsigned looks;     /* at further jobs */
    bool only_children; /* others wait for memory */
    bool only_steps;    /* another job could fail, and the rows of other queues run again */
    uint64_t now;
};

static bool may_gather(const struct gathering *g, const struct rt_sched_queue *queue,
                       struct rt_sched_job *job, int64_t rows_max)
{
    struct rt_sched_job *head = g->start->jobs[0];
    return job->rows > 0 && job->rows <= rows_max - g->start->rows &&
           (job->parent || !g->only_children) && (job->returns || !g->only_steps) &&
           !rt_queue_is_too_late(queue, job, g->now) && head->ops->fits(head, job);
}

/* Adds the jobs of the queue that may run together with those that are there already. */
static void gather_level(struct gathering *g, struct rt_sched_queue *queue, uint32_t level,
                         int64_t rows_max)
{
    struct list *ready = &queue->ready[level];
    for (struct list *l = ready->next, *next; l != ready && g->looks > 0; l = next, g->looks--) {
        struct rt_sched_job *job = LIST_ENTRY(l, struct rt_sched_job, link);
        next = l->next;
        if (g->start->count == RT_SCHED_BATCH_MAX || g->start->rows >= rows_max) {
            return;
        }
        if (may_gather(g, queue, job, rows_max)) {
            set_running(g->sched, g->start, job, g->now);
        }
    }
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The same for steps of another queue of the group. Each queue bounds the rows of the runs that it
 * takes part in, and one of them must have a form for rows of several. */
static void gather_guests(struct gathering *g, struct rt_sched_queue *queue, uint32_t level)
{
    const struct rt_sched_run *run = g->start->run;
    bool has_room =
        run->part_count < RT_SCHED_PARTS_MAX || rt_queue_find_part(g->start->run, queue) != NULL;
    int64_t mixed = queue->mixed_rows > g->mixed_rows ? queue->mixed_rows : g->mixed_rows;
    int64_t rows_max = least(least(g->rows_max, rt_sizing_rows(&queue->sizing)), mixed);
    uint32_t before = g->start->count;
    if (!has_room || queue->is_starved || !rt_queue_may_run(queue, true)) {
        return;
    }
    gather_level(g, queue, level, rows_max);
    if (g->start->count > before) {
        g->mixed_rows = mixed;
        g->rows_max = rows_max;
    }
}

static void gather(struct rt_sched *sched, struct rt_sched_start *start, bool only_children,
                   uint64_t now)
{
    struct rt_sched_queue *queue = start->jobs[0]->queue, *other;
    struct gathering g = {
        .sched = sched,
        .start = start,
        .rows_max = rt_sizing_rows(&queue->sizing),
        .mixed_rows = queue->mixed_rows,
        .looks = LOOKS_MAX,
        .only_children = only_children,
        .now = now,
    };
    for (uint32_t level = 0; level < RT_SCHED_PRIORITIES; level++) {
        gather_level(&g, queue, level, g.rows_max);
    }
    /* Priorities are those among jobs of one queue, so guests come behind all of its own. */
    g.only_steps =
        queue->group->queue_count > 1 && !only_children && start->run->returning == start->rows;
    for (uint32_t level = 0; g.only_steps && level < RT_SCHED_PRIORITIES; level++) {
        for (struct list *l = sched->ready.next, *next; l != &sched->ready; l = next) {
            other = LIST_ENTRY(l, struct rt_sched_queue, link);
            next = l->next;
            if (other != queue && other->group == queue->group) {
                gather_guests(&g, other, level);
            }
        }
    }
}

bool rt_choose_next(struct rt_sched *sched, uint64_t now, struct rt_sched_start *start)
{
    struct rt_sched_queue *queue = choose(sched, now);
    start->count = 0;
    start->rows = 0;
    if (!queue) {
        return false;
    }
    struct rt_sched_job *job = rt_queue_take_turn(queue, now);
    must(job && job->state == RT_SCHED_WAITING && job->behind_count == 0);
    bool was_starved = queue->is_starved; /* then |job| is a child */
    open_run(sched, start, queue);
    set_running(sched, start, job, now);
    if (rt_sizing_rows(&queue->sizing) > 1 && job->rows > 0) {
        gather(sched, start, was_starved, now);
        must(start->count > 0 && start->count <= RT_SCHED_BATCH_MAX);
    }
    if (was_starved) {
        rt_choose_starve(sched, queue);
    }
    close_run(start, queue, now);
    return true;
}

/* Nothing else waits or runs, and no lane, parent, batch or step holds it. */
static bool is_sole(const struct rt_sched *sched, const struct rt_sched_job *job)
{
    const struct rt_sched_queue *queue = job->queue;
    bool is_idle = list_is_empty(&sched->ready) && sched->running_count == 0 &&
                   sched->yielded_count == 0 && queue->waiting_count == 0;
    bool is_joined = job->returns || (job->rows > 0 && queue->options.delay_ns > 0);
    bool is_plain = job->ticket_count == 0 && !job->parent && !is_joined;
    return is_idle && is_plain;
}

bool rt_choose_sole(struct rt_sched *sched, struct rt_sched_job *job, struct rt_sched_start *start)
{
    struct rt_sched_queue *queue = job->queue;
    must(job->state == RT_SCHED_IDLE);
    if (!is_sole(sched, job)) {
        return false;
    }
    rt_choose_feed(sched, queue);
    credit_idle(sched, queue);
    queue->passes = 0;
    job->has_place = false;
    job->behind_count = 0;
    job->started_ns = job->queued_ns;
    open_run(sched, start, queue);
    enter_run(start, job);
    close_run(start, queue, job->queued_ns);
    return true;
}
