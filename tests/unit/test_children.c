/* SPDX-License-Identifier: MIT */
/*
 * Parents and their children in the scheduler, with a clock of the test and a device that does
 * nothing: when a parent yields, where its children stand, what joins them, and how they end. See
 * tests/unit/test_sched.c for jobs that are neither.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "tests/unit/sched_support.h"
#include "tests/unit/unit.h"

#define STEPS 3 /* of a parent, each of which follows the one before */

/* A row of steps: the end of one submits the next. */
struct parent {
    struct job job;
    struct rt_sched_queue *queue; /* of the steps */
    struct job steps[STEPS];
    bool has_yielded;
};

static unsigned starts, starts_max; /* nested */

static bool start_nested(struct rt_sched_job *sched, bool may_run_inline)
{
    starts_max = ++starts > starts_max ? starts : starts_max;
    bool is_started = start_job(sched, may_run_inline);
    starts--;
    return is_started;
}

static bool fits(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return a->call == b->call;
}

static void submit_step(struct parent *parent, unsigned index)
{
    struct error err;
    struct rt_sched_job *job = &parent->steps[index].sched;
    job->priority = parent->job.sched.priority;
    assert_int_equal(rt_sched_submit(parent->queue, job, false, &err), ST_OK);
}

static void step_done(struct rt_sched_job *sched, enum status status)
{
    struct job *step = job_of(sched);
    struct parent *parent = step->parent;
    unsigned index = (unsigned)(step - parent->steps);
    job_done(sched, status);
    if (status == ST_OK && index + 1 < STEPS) {
        submit_step(parent, index + 1);
    } else {
        rt_sched_finished(&parent->job.sched, status);
    }
}

static bool start_parent(struct rt_sched_job *sched, bool may_run_inline)
{
    struct parent *parent = LIST_ENTRY(sched, struct parent, job.sched);
    (void)may_run_inline;
    starts_max = ++starts > starts_max ? starts : starts_max;
    parent->has_yielded = rt_sched_yield(sched);
    note_event(parent->has_yielded ? "*" : "+", parent->job.name, "");
    if (parent->has_yielded) {
        submit_step(parent, 0);
    }
    starts--;
    return true;
}

static const struct rt_sched_job_ops ops = {.start = start_nested,
                                            .start_batch = start_jobs,
                                            .fits = fits,
                                            .cancel = cancel_job,
                                            .done = job_done};
static const struct rt_sched_job_ops step_ops = {.start = start_nested,
                                                 .start_batch = start_jobs,
                                                 .fits = fits,
                                                 .cancel = cancel_job,
                                                 .done = step_done};
static const struct rt_sched_job_ops parent_ops = {
    .start = start_parent, .cancel = cancel_job, .done = job_done};

static struct rt_sched *open_sched(uint32_t depth)
{
    memory_left = 1000;
    starts = starts_max = 0;
    return new_sched(depth);
}

static struct rt_sched_queue *open_queue(struct rt_sched *sched, uint32_t waiting_max,
                                         uint32_t running_max, int64_t rows_max)
{
    const struct rt_sched_queue_options options = {.waiting_max = waiting_max,
                                                   .waiting_bytes_max = 1000,
                                                   .running_max = running_max,
                                                   .rows_max = rows_max,
                                                   .weight = 1};
    struct rt_sched_queue *queue;
    struct error err;
    assert_int_equal(rt_sched_queue_new(sched, &options, &queue, &err), ST_OK);
    return queue;
}

static void close_all(struct rt_sched *sched, struct rt_sched_queue *one,
                      struct rt_sched_queue *two)
{
    struct rt_sched_queue *queues[] = {one, two};
    for (unsigned i = 0; i < 2; i++) {
        struct rt_sched_load load = rt_sched_load(queues[i]);
        assert_true(load.waiting == 0 && load.running == 0 && load.waiting_bytes == 0);
        rt_sched_queue_unref(queues[i]);
    }
    rt_sched_free(sched);
}

static void init_job(struct job *job, char name)
{
    *job = (struct job){.name = name};
    job->sched.ops = &ops;
    job->sched.deadline_ns = RT_SCHED_NEVER;
    job->sched.rows = 1;
}

/* |name| and, for its steps, |name| + 1 and so on. */
static void init_parent(struct parent *parent, char name, struct rt_sched_queue *queue)
{
    init_job(&parent->job, name);
    parent->job.sched.ops = &parent_ops;
    parent->job.sched.rows = 0;
    parent->queue = queue;
    for (unsigned i = 0; i < STEPS; i++) {
        struct job *step = &parent->steps[i];
        init_job(step, (char)(name + 1 + (char)i));
        step->parent = parent;
        step->sched.ops = &step_ops;
        step->sched.parent = &parent->job.sched;
        step->sched.is_uncounted = true;
    }
}

/* Some time later than the one before. */
static void submit_later(struct rt_sched_queue *queue, struct job *job)
{
    struct error err;
    atomic_fetch_add(&now_ns, 10);
    assert_int_equal(rt_sched_submit(queue, &job->sched, false, &err), ST_OK);
}

/* ---- places ---------------------------------------------------------------------------------- */

static void test_alone_it_does_not_step_aside(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(2);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 6),
                          *parents = open_queue(sched, 10, 0, 1);
    struct parent w;
    init_parent(&w, 'A', model);
    submit_later(parents, &w.job);
    expect_events("+A");
    assert_int_equal(rt_sched_load(parents).running, 1);
    finish(&w.job);
    expect_events("A=0;");
    assert_true(rt_sched_queue_joins(model) && !rt_sched_queue_joins(parents));
    close_all(sched, model, parents);
}

/* Children stand where their parent would stand, run as one with requests, and do not count. */
static void test_parts_join_requests(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(1);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 3),
                          *parents = open_queue(sched, 10, 0, 1);
    struct job jobs[5];
    struct parent w;
    for (unsigned i = 0; i < 5; i++) {
        init_job(&jobs[i], (char)('a' + (char)i));
    }
    init_parent(&w, 'P', model);
    submit_later(model, &jobs[0]);
    submit_later(model, &jobs[1]);
    submit_later(parents, &w.job);
    submit_later(model, &jobs[2]);
    submit_later(model, &jobs[3]);
    expect_events("+a*P"); /* a queue without anything on the device may start a job */
    assert_int_equal(rt_sched_load(model).waiting, 4);
    assert_int_equal(rt_sched_load(parents).running, 1);
    finish(&jobs[0]);
    expect_events("+[bQc]a=0;");
    finish(&w.steps[0]);
    expect_events("Q=0;"); /* the next step waits for the end of the batch */
    finish(&jobs[1]);
    submit_later(model, &jobs[4]);
    expect_events("b=0;");
    finish(&jobs[2]);
    expect_events("+[Rde]c=0;"); /* R came last, but its parent came first */
    assert_true(!jobs[1].sched.is_batch_end && jobs[2].sched.is_batch_end);
    assert_int_equal(w.steps[0].sched.batch_rows, 3);
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("d=0;e=0;");
    assert_true(jobs[4].sched.is_batch_end); /* the child that is over later never is */
    finish(&w.steps[1]);
    expect_events("R=0;+S");
    assert_true(!w.steps[1].sched.is_batch_end);
    finish(&w.steps[2]);
    expect_events("S=0;P=0;");
    rt_sched_released(sched);
    close_all(sched, model, parents);
}

/* Children that run as one go on as one, though they end one after the other. */
static void test_parents_go_together(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(2);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 6),
                          *parents = open_queue(sched, 10, 0, 1);
    struct parent w[3];
    struct job a;
    init_job(&a, 'a');
    a.sched.rows = 6;
    submit_later(model, &a);
    for (unsigned i = 0; i < 3; i++) {
        init_parent(&w[i], (char)('P' - (char)(i * 5)), model);
        submit_later(parents, &w[i].job);
    }
    expect_events("+a*P*K*F");
    finish(&a);
    expect_events("+[QLG]a=0;");
    for (unsigned step = 0; step < STEPS; step++) {
        for (unsigned i = 0; i < 3; i++) {
            finish(&w[i].steps[step]);
        }
    }
    expect_events("Q=0;L=0;G=0;+[RMH]R=0;M=0;H=0;+[SNI]S=0;P=0;N=0;K=0;I=0;F=0;");
    close_all(sched, model, parents);
}

/* The end of the last parent frees these. */
static struct rt_sched *last_sched;
static struct rt_sched_queue *last_queues[2];

static void done_for_good(struct rt_sched_job *sched, enum status status)
{
    job_done(sched, status);
    close_all(last_sched, last_queues[0], last_queues[1]);
}

/* The thread that ends the last child looks for more when the scheduler is freed. */
static void test_it_is_freed_with_the_last_part(void **state)
{
    (void)state;
    const struct rt_sched_job_ops last_ops = {
        .start = start_parent, .cancel = cancel_job, .done = done_for_good};
    struct job a;
    struct parent w;
    last_sched = open_sched(2);
    last_queues[0] = open_queue(last_sched, 10, 0, 6);
    last_queues[1] = open_queue(last_sched, 10, 0, 1);
    init_job(&a, 'a');
    init_parent(&w, 'P', last_queues[0]);
    w.job.sched.ops = &last_ops;
    submit_later(last_queues[0], &a);
    submit_later(last_queues[1], &w.job);
    assert_true(w.has_yielded);
    finish(&a);
    for (unsigned i = 0; i < STEPS; i++) {
        finish(&w.steps[i]);
    }
    assert_int_equal(w.job.done_count, 1);
}

/* Children take none of the places of requests; the limit of the parents is kept. */
static void test_limits(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(1);
    struct rt_sched_queue *model = open_queue(sched, 1, 0, 6),
                          *parents = open_queue(sched, 1, 2, 1);
    struct parent w[4];
    struct job jobs[3];
    struct error err;
    for (unsigned i = 0; i < 3; i++) {
        init_job(&jobs[i], (char)('a' + (char)i));
    }
    for (unsigned i = 0; i < 4; i++) {
        init_parent(&w[i], (char)('A' + (char)(i * 5)), model);
    }
    submit_later(model, &jobs[0]);
    submit_later(parents, &w[0].job);
    submit_later(parents, &w[1].job);
    submit_later(parents, &w[2].job); /* waits: two may run */
    expect_events("+a*A*F");
    assert_int_equal(rt_sched_submit(parents, &w[3].job.sched, false, &err), ST_EXHAUSTED);
    submit_later(model, &jobs[1]);
    assert_int_equal(rt_sched_submit(model, &jobs[2].sched, false, &err), ST_EXHAUSTED);
    assert_string_equal(err.text, "1 requests wait already");
    assert_int_equal(rt_sched_load(model).waiting, 3);
    finish(&jobs[0]);
    expect_events("+[BGb]a=0;");
    finish(&w[0].steps[0]);
    finish(&jobs[1]);
    finish(&w[1].steps[0]);
    expect_events("B=0;b=0;G=0;+[CH]");
    finish(&w[0].steps[1]);
    finish(&w[1].steps[1]);
    expect_events("C=0;H=0;+[DI]");
    finish(&w[0].steps[2]);
    expect_events("D=0;A=0;");
    finish(&w[1].steps[2]);
    expect_events("I=0;F=0;+K"); /* the device has nothing else to do */
    finish(&w[2].job);
    expect_events("K=0;");
    close_all(sched, model, parents);
}

/* However much ends at once, one end does not lie inside the other. */
static void test_ends_are_not_nested(void **state)
{
    (void)state;
    enum { COUNT = 200 };
    static struct parent w[COUNT];
    struct rt_sched *sched = open_sched(1);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 1);
    struct rt_sched_queue *parents = open_queue(sched, COUNT, 0, 1);
    struct job a;
    init_job(&a, 'a');
    submit_later(model, &a);
    for (unsigned i = 0; i < COUNT; i++) {
        init_parent(&w[i], 'A', model);
        for (unsigned k = 0; k < STEPS; k++) {
            w[i].steps[k].ends_in_start = true;
        }
        submit_later(parents, &w[i].job);
    }
    assert_int_equal(rt_sched_load(parents).running, RT_SCHED_BATCH_MAX);
    events[0] = '\0';
    finish(&a);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_int_equal(w[i].job.done_count, 1);
    }
    assert_int_equal(starts_max, 1);
    close_all(sched, model, parents);
}

/* ---- ends ------------------------------------------------------------------------------------ */

/* Of three parents one has a child that waits, one a child that leaves a batch, and one a child
 * that runs alone. */
static void cut(bool is_late)
{
    struct rt_sched *sched = open_sched(2);
    struct rt_sched_queue *model = open_queue(sched, 10, 1, 6),
                          *other = open_queue(sched, 10, 1, 1);
    struct rt_sched_queue *parents = open_queue(sched, 10, 0, 1);
    struct job a, b;
    struct parent w[3];
    init_job(&a, 'a');
    init_job(&b, 'b');
    submit_later(model, &a);
    submit_later(model, &b);
    init_parent(&w[0], 'P', model); /* in a batch with b */
    init_parent(&w[1], 'K', other); /* alone */
    init_parent(&w[2], 'F', other); /* waits */
    w[0].steps[0].leaves = true;
    for (unsigned i = 0; i < 3; i++) {
        w[i].job.sched.deadline_ns = is_late ? SECOND + SECOND : RT_SCHED_NEVER;
        submit_later(parents, &w[i].job);
    }
    finish(&a);
    expect_events("+a*P*K+L*F+[bQ]a=0;");
    assert_int_equal(rt_sched_load(other).waiting, 1);
    if (is_late) {
        atomic_store(&now_ns, SECOND + SECOND);
        rt_sched_expire(sched);
    } else {
        for (unsigned i = 0; i < 3; i++) {
            rt_sched_cancel(&w[i].job.sched);
            rt_sched_cancel(&w[i].job.sched);
        }
    }
    enum status ended = is_late ? ST_TIMEOUT : ST_CANCELLED;
    assert_int_equal(rt_sched_load(other).waiting, 0);
    assert_true(w[0].job.status == ended && w[0].job.done_count == 1);
    assert_true(w[0].steps[0].status == ST_CANCELLED && w[0].steps[0].done_count == 1);
    assert_true(w[2].job.status == ended && w[2].steps[0].status == ST_CANCELLED);
    assert_int_equal(w[2].steps[0].sched.started_ns, 0);
    assert_true(w[1].job.done_count == 0 && w[1].steps[0].was_cancelled);
    finish(&w[1].steps[0]);
    assert_true(w[1].job.status == ended && w[1].job.done_count == 1);
    events[0] = '\0';
    finish(&b);
    expect_events("b=0;");
    assert_true(b.sched.is_batch_end);
    rt_sched_queue_unref(other);
    close_all(sched, model, parents);
}

static void test_cancel(void **state)
{
    (void)state;
    cut(false);
}

static void test_deadlines(void **state)
{
    (void)state;
    cut(true);
}

/* The parent is cancelled before the end of a step is known: the next one does not begin. */
static void test_a_child_of_a_cancelled_parent(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(2);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 1),
                          *parents = open_queue(sched, 10, 0, 1);
    struct job a;
    struct parent w;
    init_job(&a, 'a');
    init_parent(&w, 'P', model);
    submit_later(model, &a);
    submit_later(parents, &w.job);
    expect_events("+a*P+Q");
    rt_sched_cancel(&w.job.sched);
    expect_events("-Q-P");
    rt_sched_finished(&w.steps[0].sched, ST_OK); /* it was too late for that */
    const char ends[] = {'Q',
                         '=',
                         '0',
                         ';',
                         'R',
                         '=',
                         (char)('0' + ST_CANCELLED),
                         ';',
                         'P',
                         '=',
                         (char)('0' + ST_CANCELLED),
                         ';',
                         '\0'};
    expect_events(ends);
    finish(&a);
    events[0] = '\0';
    close_all(sched, model, parents);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* A request waits for memory that a parent holds: the children of the parent pass it. */
static void test_parts_pass_what_waits_for_memory(void **state)
{
    (void)state;
    struct rt_sched *sched = open_sched(1);
    struct rt_sched_queue *model = open_queue(sched, 10, 0, 6),
                          *parents = open_queue(sched, 10, 0, 1);
    struct job jobs[3];
    struct parent w;
    for (unsigned i = 0; i < 3; i++) {
        init_job(&jobs[i], (char)('a' + (char)i));
    }
    init_parent(&w, 'P', model);
    memory_left = 10;
    jobs[0].memory = 4;
    jobs[1].memory = jobs[2].memory = 8;
    submit_later(model, &jobs[0]);
    submit_later(model, &jobs[1]);
    submit_later(parents, &w.job);
    submit_later(model, &jobs[2]);
    expect_events("+a*P");
    memory_left = 6;
    finish(&jobs[0]); /* its memory stays in use until it is released */
    expect_events("?[bQc]?b+Qa=0;");
    finish(&w.steps[0]);
    expect_events("Q=0;?[bRc]?b+R");
    memory_left = 10;
    rt_sched_released(sched);
    finish(&w.steps[1]);
    expect_events("R=0;?[bSc]+b");
    memory_left += 8;
    finish(&jobs[1]);
    rt_sched_released(sched);
    expect_events("+[Sc]b=0;");
    finish(&w.steps[2]);
    finish(&jobs[2]);
    rt_sched_released(sched);
    rt_sched_released(sched);
    expect_events("S=0;P=0;c=0;");
    close_all(sched, model, parents);
}

/* ---- everything at once ---------------------------------------------------------------------- */

/* Threads submit requests and parents, cancel them and let their time pass; others end what runs.
 */
enum { STRESS = 3000, SUBMITTERS = 3, RUNNERS = 2 };

struct stress {
    struct rt_sched_job job;
    struct stress *parent;   /* NULL: it is a request or a parent */
    struct stress *children; /* STEPS of them; NULL: a request or a child */
    unsigned index, here;    /* of the head of a batch: those that run */
    struct stress *head;
    bool is_on_device;
    atomic_bool is_cancelled;
    atomic_uint done_count;
};

static struct stress stress[STRESS], stress_children[STRESS][STEPS];
static struct rt_sched *stress_sched;
static struct rt_sched_queue *stress_queues[3];
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stress *device[256];
static unsigned device_count;
static atomic_uint over;

static struct stress *stress_of(struct rt_sched_job *job)
{
    return LIST_ENTRY(job, struct stress, job);
}

static bool stress_start_batch(struct rt_sched_job *const *jobs, uint32_t count)
{
    pthread_mutex_lock(&device_lock);
    for (uint32_t i = 0; i < count; i++) {
        struct stress *s = stress_of(jobs[i]);
        must(device_count < 256);
        device[device_count++] = s;
        s->head = stress_of(jobs[0]);
        s->head->here = count;
        s->is_on_device = true;
    }
    pthread_mutex_unlock(&device_lock);
    return true;
}

static bool stress_start(struct rt_sched_job *job, bool may_run_inline)
{
    (void)may_run_inline;
    if (job->bytes % 7 == 0) {
        rt_sched_finished(job, ST_OK);
        return true;
    }
    return stress_start_batch(&job, 1);
}

static void take_off(unsigned at)
{
    device[at]->is_on_device = false;
    device[at]->head->here--;
    device[at] = device[--device_count];
}

static bool stress_cancel(struct rt_sched_job *job)
{
    struct stress *s = stress_of(job);
    bool leaves = false;
    pthread_mutex_lock(&device_lock);
    for (unsigned i = 0; i < device_count && !leaves; i++) {
        leaves = device[i] == s && s->head->here > 1;
        if (leaves) {
            take_off(i);
        }
    }
    pthread_mutex_unlock(&device_lock);
    atomic_store(&s->is_cancelled, true);
    return leaves;
}

static bool stress_fits(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return (a->bytes ^ b->bytes) % 4 != 0;
}

static void stress_done(struct rt_sched_job *job, enum status status)
{
    (void)status;
    atomic_fetch_add(&stress_of(job)->done_count, 1);
    if (job->started_ns) {
        rt_sched_released(stress_sched);
    }
    atomic_fetch_add(&over, 1);
}

static void submit_stress_part(struct stress *parent, unsigned index);

static void stress_part_done(struct rt_sched_job *job, enum status status)
{
    struct stress *child = stress_of(job);
    atomic_fetch_add(&child->done_count, 1);
    if (status == ST_OK && child->index + 1 < STEPS && !atomic_load(&child->parent->is_cancelled)) {
        submit_stress_part(child->parent, child->index + 1);
    } else {
        rt_sched_finished(&child->parent->job, status);
    }
}

static const struct rt_sched_job_ops stress_part_ops = {.start = stress_start,
                                                        .start_batch = stress_start_batch,
                                                        .fits = stress_fits,
                                                        .cancel = stress_cancel,
                                                        .done = stress_part_done};

static void submit_stress_part(struct stress *parent, unsigned index)
{
    struct stress *child = &parent->children[index];
    struct error err;
    child->job.ops = &stress_part_ops;
    child->job.deadline_ns = RT_SCHED_NEVER;
    child->job.rows = parent->job.bytes % 3;
    child->job.bytes = parent->job.bytes + index;
    child->job.priority = parent->job.priority;
    child->job.parent = &parent->job;
    child->job.is_uncounted = parent->job.bytes % 2;
    child->parent = parent;
    child->index = index;
    must(rt_sched_submit(stress_queues[parent->job.bytes % 2], &child->job, false, &err) == ST_OK);
}

static bool stress_start_parent(struct rt_sched_job *job, bool may_run_inline)
{
    (void)may_run_inline;
    if (rt_sched_yield(job)) {
        submit_stress_part(stress_of(job), 0);
        return true;
    }
    return stress_start_batch(&job, 1);
}

static const struct rt_sched_job_ops stress_ops = {.start = stress_start,
                                                   .start_batch = stress_start_batch,
                                                   .fits = stress_fits,
                                                   .cancel = stress_cancel,
                                                   .done = stress_done};
static const struct rt_sched_job_ops stress_parent_ops = {
    .start = stress_start_parent, .cancel = stress_cancel, .done = stress_done};

static void *submit_many(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg, seed = number + 1;
    for (unsigned i = number; i < STRESS; i += SUBMITTERS) {
        struct rt_sched_job *job = &stress[i].job;
        struct error err;
        bool is_parent = rand_r(&seed) % 2;
        job->ops = is_parent ? &stress_parent_ops : &stress_ops;
        stress[i].children = is_parent ? stress_children[i] : NULL;
        job->bytes = 1 + (unsigned)rand_r(&seed) % 9;
        job->priority = (unsigned)rand_r(&seed) % 9;
        job->rows = is_parent ? 0 : rand_r(&seed) % 3;
        job->deadline_ns =
            rand_r(&seed) % 4 ? RT_SCHED_NEVER : fake_clock() + (unsigned)rand_r(&seed) % 100;
        unsigned at = is_parent ? 2 : (unsigned)rand_r(&seed) % 2;
        if (rt_sched_submit(stress_queues[at], job, false, &err) != ST_OK) {
            atomic_fetch_add(&stress[i].done_count, 1);
            atomic_fetch_add(&over, 1);
        } else if (rand_r(&seed) % 4 == 0) {
            rt_sched_cancel(job);
        }
    }
    return NULL;
}

static void *run_device(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (atomic_load(&over) < STRESS) {
        struct stress *s = NULL;
        pthread_mutex_lock(&device_lock);
        if (device_count) {
            unsigned at = (unsigned)rand_r(&seed) % device_count;
            s = device[at];
            take_off(at);
        }
        pthread_mutex_unlock(&device_lock);
        if (s) {
            bool is_cancelled = atomic_load(&s->is_cancelled);
            rt_sched_finished(&s->job, is_cancelled ? ST_CANCELLED : ST_OK);
        }
    }
    return NULL;
}

static void *pass_time(void *arg)
{
    while (atomic_load(&over) < STRESS) {
        atomic_fetch_add(&now_ns, 1);
        rt_sched_expire(arg);
    }
    return NULL;
}

static void test_stress(void **state)
{
    (void)state;
    struct rt_sched *sched = stress_sched = open_sched(3);
    pthread_t threads[SUBMITTERS + RUNNERS + 1];
    for (unsigned i = 0; i < 3; i++) {
        stress_queues[i] = open_queue(sched, 40, i, i < 2 ? 8 : 1);
    }
    for (uintptr_t i = 0; i < SUBMITTERS; i++) {
        pthread_create(&threads[i], NULL, submit_many, (void *)i);
    }
    for (uintptr_t i = 0; i < RUNNERS; i++) {
        pthread_create(&threads[SUBMITTERS + i], NULL, run_device, (void *)(i + 50));
    }
    pthread_create(&threads[SUBMITTERS + RUNNERS], NULL, pass_time, sched);
    for (unsigned i = 0; i < SUBMITTERS + RUNNERS + 1; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < STRESS; i++) {
        assert_int_equal(atomic_load(&stress[i].done_count), 1);
        for (unsigned k = 0; k < STEPS; k++) {
            assert_true(atomic_load(&stress_children[i][k].done_count) <= 1);
        }
    }
    rt_sched_queue_unref(rt_sched_queue_ref(stress_queues[0]));
    rt_sched_queue_unref(stress_queues[0]);
    close_all(sched, stress_queues[1], stress_queues[2]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_it_does_not_step_aside),
        cmocka_unit_test(test_parts_join_requests),
        cmocka_unit_test(test_parents_go_together),
        cmocka_unit_test(test_it_is_freed_with_the_last_part),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_ends_are_not_nested),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_a_child_of_a_cancelled_parent),
        cmocka_unit_test(test_parts_pass_what_waits_for_memory),
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
