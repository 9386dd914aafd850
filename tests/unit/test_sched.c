/* SPDX-License-Identifier: MIT */
/*
 * The scheduler with a clock of the test and a device that does nothing. The test decides when time
 * passes and when a job ends, and checks the order in which jobs were started, cancelled and done.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "tests/unit/unit.h"

#define SECOND 1000000000u

static _Atomic uint64_t now_ns;

/* Called once after this thread has read the clock: the work of another thread. */
static void (*meanwhile)(void);

static uint64_t fake_clock(void)
{
    uint64_t now = atomic_load(&now_ns);
    void (*fn)(void) = meanwhile;
    if (fn) {
        meanwhile = NULL;
        fn();
    }
    return now;
}

struct job {
    struct rt_sched_job sched;
    char name;
    bool ends_in_start;
    bool leaves; /* the jobs that it runs with, when it is cancelled */
    bool was_cancelled;
    unsigned memory; /* bytes of |memory_left| that it needs to run */
    unsigned done_count;
    enum status status;
};

/* The events: "+a" started, "?a" not started for lack of memory, "-a" cancelled, "a=STATUS;" done.
 */
static char events[4096];

static void note(const char *before, char name, const char *after)
{
    size_t len = strlen(events);
    snprintf(events + len, sizeof(events) - len, "%s%c%s", before, name, after);
}

static struct job *job_of(struct rt_sched_job *sched)
{
    return LIST_ENTRY(sched, struct job, sched);
}

static unsigned memory_left;

static bool start(struct rt_sched_job *sched, bool may_run_inline)
{
    struct job *job = job_of(sched);
    bool is_started = job->memory <= memory_left;
    note(is_started ? "+" : "?", job->name, may_run_inline ? "!" : "");
    if (is_started) {
        memory_left -= job->memory;
    }
    if (is_started && job->ends_in_start) {
        rt_sched_finished(sched, ST_OK);
    }
    return is_started;
}

static bool cancel(struct rt_sched_job *sched)
{
    job_of(sched)->was_cancelled = true;
    note("-", job_of(sched)->name, "");
    return job_of(sched)->leaves;
}

static void done(struct rt_sched_job *sched, enum status status)
{
    struct job *job = job_of(sched);
    job->done_count++;
    job->status = status;
    const char after[] = {'=', (char)('0' + (int)status), ';', '\0'};
    note("", job->name, after);
}

/* "+[abc]": three that run as one. */
static bool start_batch(struct rt_sched_job *const *jobs, uint32_t count)
{
    unsigned memory = 0;
    for (uint32_t i = 0; i < count; i++) {
        memory += job_of(jobs[i])->memory;
    }
    bool is_started = memory <= memory_left;
    for (uint32_t i = 0; i < count; i++) {
        note(i > 0        ? ""
             : is_started ? "+["
                          : "?[",
             job_of(jobs[i])->name, i + 1 == count ? "]" : "");
    }
    memory_left -= is_started ? memory : 0;
    return is_started;
}

/* Jobs with capital letters do not join jobs with small letters. */
static bool fits(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return (job_of(a)->name & 0x20) == (job_of(b)->name & 0x20);
}

static const struct rt_sched_job_ops ops = {
    .start = start,
    .start_batch = start_batch,
    .fits = fits,
    .cancel = cancel,
    .done = done,
};

static void expect_events(const char *expected)
{
    assert_string_equal(events, expected);
    events[0] = '\0';
}

static struct rt_sched *new_sched(uint32_t depth)
{
    const struct rt_sched_options options = {.depth = depth, .clock = fake_clock};
    struct rt_sched *sched;
    struct error err;
    atomic_store(&now_ns, SECOND);
    events[0] = '\0';
    assert_int_equal(rt_sched_new(&options, &sched, &err), ST_OK);
    return sched;
}

static struct rt_sched_queue *new_queue_delayed(struct rt_sched *sched, uint32_t waiting_max,
                                                uint32_t running_max, uint32_t weight,
                                                uint64_t delay_ns)
{
    const struct rt_sched_queue_options options = {.waiting_max = waiting_max,
                                                   .waiting_bytes_max = 1000,
                                                   .running_max = running_max,
                                                   .rows_max = 6,
                                                   .delay_ns = delay_ns,
                                                   .weight = weight};
    struct rt_sched_queue *queue;
    struct error err;
    assert_int_equal(rt_sched_queue_new(sched, &options, &queue, &err), ST_OK);
    return queue;
}

static struct rt_sched_queue *new_queue(struct rt_sched *sched, uint32_t waiting_max,
                                        uint32_t running_max, uint32_t weight)
{
    return new_queue_delayed(sched, waiting_max, running_max, weight, 0);
}

static void init_jobs(struct job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (struct job){.name = (char)('a' + i)};
        jobs[i].sched.ops = &ops;
        jobs[i].sched.deadline_ns = RT_SCHED_NEVER;
        jobs[i].sched.bytes = 10;
    }
}

static enum status submit(struct rt_sched_queue *queue, struct job *job)
{
    struct error err;
    return rt_sched_submit(queue, &job->sched, false, &err);
}

static void submit_all(struct rt_sched_queue *queue, struct job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(submit(queue, &jobs[i]), ST_OK);
    }
}

static void finish(struct job *job)
{
    rt_sched_finished(&job->sched, job->was_cancelled ? ST_CANCELLED : ST_OK);
}

/* ---- places on a device ---------------------------------------------------------------------- */

static void test_alone_it_starts_at_once(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job job;
    struct error err;
    init_jobs(&job, 1);
    job.ends_in_start = true;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(rt_sched_submit(queue, &job.sched, true, &err), ST_OK);
        expect_events("+a!a=0;");
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_the_device_is_kept_shallow(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    submit_all(queue, jobs, 4);
    expect_events("+a+b");
    struct rt_sched_load load = rt_sched_load(queue);
    assert_true(load.waiting == 2 && load.running == 2 && load.waiting_bytes == 20);
    finish(&jobs[1]);
    expect_events("+cb=0;");
    finish(&jobs[0]);
    finish(&jobs[2]);
    finish(&jobs[3]);
    expect_events("+da=0;c=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_a_model_has_its_own_limit(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct job jobs[2];
    init_jobs(jobs, 2);
    submit_all(queue, jobs, 2);
    expect_events("+a");
    finish(&jobs[0]);
    finish(&jobs[1]);
    expect_events("+ba=0;b=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Jobs that end inside start() cause a loop and no recursion: these would not fit on a stack. */
static void test_a_row_that_ends_at_once(void **state)
{
    (void)state;
    enum { COUNT = 200000 };
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, COUNT, 0, 1);
    struct job *jobs = calloc(COUNT, sizeof(*jobs));
    assert_non_null(jobs);
    init_jobs(jobs, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        jobs[i].sched.bytes = 0;
        jobs[i].ends_in_start = i > 0;
    }
    submit_all(queue, jobs, COUNT);
    finish(&jobs[0]);
    for (unsigned i = 0; i < COUNT; i++) {
        assert_true(jobs[i].done_count == 1 && jobs[i].status == ST_OK);
    }
    free(jobs);
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- order ----------------------------------------------------------------------------------- */

static void test_priorities(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    static const uint32_t priorities[] = {0, 99, RT_SCHED_PRIORITY_DEFAULT, 1, 1, 5};
    struct job jobs[6];
    init_jobs(jobs, 6);
    for (unsigned i = 0; i < 6; i++) {
        jobs[i].sched.priority = priorities[i];
    }
    submit_all(queue, jobs, 6);
    static const unsigned order[] = {0, 3, 4, 2, 5, 1};
    for (unsigned i = 0; i < 6; i++) {
        finish(&jobs[order[i]]);
    }
    expect_events("+a+da=0;+ed=0;+ce=0;+fc=0;+bf=0;b=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A slow model has filled the device. The fast one still gets a place, and then its share. */
static void test_a_slow_model_does_not_keep_a_fast_one_out(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *slow = new_queue(sched, 10, 0, 1), *fast = new_queue(sched, 10, 0, 1);
    struct job jobs[8];
    init_jobs(jobs, 8);
    submit_all(slow, jobs, 4);
    expect_events("+a+b");
    submit_all(fast, jobs + 4, 4);
    expect_events("+e"); /* one too many, so that it need not wait for a slow one */
    atomic_fetch_add(&now_ns, 10);
    finish(&jobs[4]);
    finish(&jobs[5]);
    expect_events("+fe=0;+gf=0;");
    atomic_fetch_add(&now_ns, 10000);
    finish(&jobs[0]);
    finish(&jobs[1]); /* the slow model has had more */
    expect_events("a=0;+h+cb=0;");
    finish(&jobs[6]);
    finish(&jobs[7]);
    finish(&jobs[2]);
    finish(&jobs[3]);
    rt_sched_queue_unref(slow);
    rt_sched_queue_unref(fast);
    rt_sched_free(sched);
}

/* Two queues that are never empty, four places, jobs of equal length: places follow the weights. */
static void test_weights(void **state)
{
    (void)state;
    enum { COUNT = 800 };
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queues[2] = {new_queue(sched, COUNT, 0, 3),
                                        new_queue(sched, COUNT, 0, 1)};
    struct job *jobs = calloc(COUNT, sizeof(*jobs));
    unsigned counts[2] = {0, 0};
    assert_non_null(jobs);
    init_jobs(jobs, COUNT);
    for (unsigned i = 0; i < COUNT; i++) {
        jobs[i].sched.bytes = 0;
        assert_int_equal(submit(queues[i % 2], &jobs[i]), ST_OK);
    }
    for (unsigned over = 0; over < COUNT; over++) {
        struct job *oldest = NULL;
        for (unsigned i = 0; i < COUNT; i++) {
            if (jobs[i].sched.state == RT_SCHED_RUNNING &&
                (!oldest || jobs[i].sched.started_ns < oldest->sched.started_ns)) {
                oldest = &jobs[i];
            }
        }
        atomic_fetch_add(&now_ns, 1000);
        counts[(oldest - jobs) % 2] += over < COUNT / 2;
        finish(oldest);
    }
    assert_between(counts[0], 5 * counts[1] / 2, 7 * counts[1] / 2);
    free(jobs);
    rt_sched_queue_unref(queues[0]);
    rt_sched_queue_unref(queues[1]);
    rt_sched_free(sched);
}

/* Jobs that wait while the device is busy run as one batch: those that fit, up to six rows, by
 * priority. */
static void test_batches(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    static const int64_t rows[] = {2, 2, 0, 3, 2, 1, 1, 1};
    struct job jobs[8];
    init_jobs(jobs, 8);
    for (unsigned i = 0; i < 8; i++) {
        jobs[i].sched.rows = rows[i];
    }
    jobs[6].name = 'G';
    jobs[7].sched.priority = 1;
    submit_all(queue, jobs, 1);
    expect_events("+a"); /* alone: it does not wait for others */
    submit_all(queue, jobs + 1, 7);
    assert_int_equal(rt_sched_load(queue).waiting, 7);
    finish(&jobs[0]);
    expect_events("+[hbd]a=0;"); /* six rows; c has none, G does not fit */
    assert_int_equal(rt_sched_load(queue).running, 1);
    finish(&jobs[7]);
    finish(&jobs[1]);
    expect_events("h=0;b=0;"); /* the device is free when the last one is over */
    finish(&jobs[3]);
    expect_events("+cd=0;");
    assert_true(jobs[7].sched.batch_size == 3 && !jobs[7].sched.is_batch_end);
    assert_true(jobs[3].sched.batch_size == 3 && jobs[3].sched.is_batch_end);
    assert_int_equal(jobs[3].sched.batch_rows, 6);
    finish(&jobs[2]);
    expect_events("+[ef]c=0;");
    finish(&jobs[5]);
    finish(&jobs[4]);
    finish(&jobs[6]);
    expect_events("f=0;+Ge=0;G=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A job that would only wait on the device waits in the queue, where others may join it, until the
 * batch is full. */
static void test_the_last_place_is_not_for_few_rows(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    static const int64_t rows[] = {1, 2, 4, 1, 0};
    struct job jobs[5];
    init_jobs(jobs, 5);
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].sched.rows = rows[i];
    }
    submit_all(queue, jobs, 2);
    expect_events("+a");
    submit_all(queue, jobs + 2, 1);
    expect_events("+[bc]"); /* six rows are the most of a batch */
    submit_all(queue, jobs + 3, 1);
    finish(&jobs[0]);
    expect_events("a=0;");
    finish(&jobs[1]);
    finish(&jobs[2]);
    expect_events("b=0;+dc=0;");
    submit_all(queue, jobs + 4, 1);
    expect_events("+e"); /* which nothing joins */
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("d=0;e=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Jobs of a batch that are late or cancelled are answered at once, and the others run on. The place
 * on the device is free when the last one ends. */
static void test_leaving_a_batch(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    struct job jobs[6];
    init_jobs(jobs, 6);
    for (unsigned i = 0; i < 5; i++) {
        jobs[i].sched.rows = 1;
        jobs[i].leaves = i > 0;
    }
    jobs[1].sched.deadline_ns = jobs[2].sched.deadline_ns = SECOND + 10;
    submit_all(queue, jobs, 6);
    finish(&jobs[0]);
    expect_events("+a+[bcde]a=0;");
    atomic_store(&now_ns, SECOND + 10);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    expect_events("-b-cb=6;c=6;");
    assert_int_equal(rt_sched_load(queue).running, 1);
    rt_sched_cancel(&jobs[3].sched);
    rt_sched_cancel(&jobs[3].sched); /* over */
    expect_events("-dd=7;");
    jobs[4].leaves = false; /* as the last one it cannot */
    rt_sched_cancel(&jobs[4].sched);
    expect_events("-e");
    finish(&jobs[4]);
    expect_events("+fe=7;");
    assert_true(jobs[4].sched.is_batch_end && jobs[4].sched.batch_size == 4);
    finish(&jobs[5]);
    expect_events("f=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A thread reads the clock before it takes the lock. Meanwhile other threads queue and start jobs
 * at later times. Still, no job may start before it was queued, or end before it started. */
static struct rt_sched_queue *late_queue;
static struct job late_jobs[4];

static void queue_meanwhile(void)
{
    atomic_fetch_add(&now_ns, 5);
    submit_all(late_queue, late_jobs + 1, 3);
    atomic_fetch_add(&now_ns, 5);
}

static void start_meanwhile(void)
{
    atomic_fetch_add(&now_ns, 5);
    finish(&late_jobs[0]);
}

static void expect_in_order(const struct job *job)
{
    const struct rt_sched_job *sched = &job->sched;
    assert_true(sched->queued_ns <= sched->started_ns);
    assert_true(sched->started_ns <= sched->finished_ns);
    assert_true(sched->joining_ns <= sched->started_ns - sched->queued_ns);
}

static void test_times_are_in_order(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = late_queue = new_queue(sched, 20, 0, 1);
    init_jobs(late_jobs, 4);
    submit_all(queue, late_jobs, 1);
    meanwhile = queue_meanwhile;
    finish(&late_jobs[0]);
    expect_events("+a+ba=0;");
    finish(&late_jobs[1]);
    rt_sched_cancel(&late_jobs[2].sched);
    finish(&late_jobs[2]);
    finish(&late_jobs[3]);
    expect_events("+cb=0;-c+dc=7;d=0;");
    for (unsigned i = 0; i < 4; i++) {
        expect_in_order(&late_jobs[i]);
        late_jobs[i].sched.rows = 1;
        late_jobs[i].leaves = i == 1;
        late_jobs[i].was_cancelled = false;
    }
    submit_all(queue, late_jobs, 4);
    meanwhile = start_meanwhile;
    rt_sched_cancel(&late_jobs[1].sched);
    expect_events("+a+[bcd]a=0;-bb=7;");
    expect_in_order(&late_jobs[1]);
    finish(&late_jobs[2]);
    finish(&late_jobs[3]);
    expect_events("c=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A job that is done when its deadline passes is answered. */
static void test_late_but_done(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 20, 0, 1);
    struct job job;
    init_jobs(&job, 1);
    job.sched.deadline_ns = SECOND + 10;
    submit_all(queue, &job, 1);
    atomic_store(&now_ns, SECOND + 10);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    rt_sched_finished(&job.sched, ST_OK);
    expect_events("+a-aa=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* With a delay, a batch waits until it is full or its oldest job has waited for the delay. */
static void test_delay(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue_delayed(sched, 20, 0, 1, 100);
    struct job jobs[8];
    init_jobs(jobs, 8);
    for (unsigned i = 0; i < 8; i++) {
        jobs[i].sched.rows = i == 7 ? 0 : 2;
    }
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 30);
    submit_all(queue, jobs + 1, 1);
    assert_int_equal(rt_sched_due_ns(&jobs[0].sched), SECOND + 100);
    assert_int_equal(rt_sched_expire(sched), SECOND + 100);
    expect_events("");
    atomic_store(&now_ns, SECOND + 100);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    expect_events("+[ab]");
    assert_int_equal(jobs[0].sched.joining_ns, 100);
    assert_int_equal(jobs[1].sched.joining_ns, 70);
    submit_all(queue, jobs + 2, 2); /* at 100; the device is busy until 150 */
    atomic_fetch_add(&now_ns, 50);
    finish(&jobs[0]);
    finish(&jobs[1]);
    expect_events("a=0;b=0;");
    assert_int_equal(rt_sched_expire(sched), SECOND + 200);
    atomic_fetch_add(&now_ns, 20);
    submit_all(queue, jobs + 4, 1); /* six rows: full */
    expect_events("+[cde]");
    assert_int_equal(jobs[2].sched.joining_ns, 20); /* and 50 for the device */
    assert_int_equal(jobs[4].sched.joining_ns, 0);
    finish(&jobs[2]);
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("c=0;d=0;e=0;");
    submit_all(queue, jobs + 7, 1); /* it cannot be joined */
    expect_events("+h");
    submit_all(queue, jobs + 5, 1);
    atomic_fetch_add(&now_ns, 100);
    finish(&jobs[7]);
    expect_events("+fh=0;"); /* it has waited long enough */
    assert_int_equal(jobs[5].sched.joining_ns, 0);
    finish(&jobs[5]);
    submit_all(queue, jobs + 6, 1);
    rt_sched_cancel(&jobs[6].sched);
    expect_events("f=0;g=7;");
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Jobs of one lane run one after the other, in any queues and with any priorities. Other jobs
 * overtake them. */
/* A job of a sequence that brings a row, and whose next one follows. */
static void make_steps(struct job *jobs, struct rt_sched_ticket *tickets,
                       struct rt_sched_lane *lanes, unsigned count)
{
    init_jobs(jobs, count);
    for (unsigned i = 0; i < count; i++) {
        rt_sched_lane_init(&lanes[i]);
        tickets[i].lane = &lanes[i];
        jobs[i].sched.tickets = &tickets[i];
        jobs[i].sched.ticket_count = 1;
        jobs[i].sched.rows = 1;
        jobs[i].sched.returns = true;
    }
}

/* Steps that ran together wait for each other, but not for one that does not come back. */
static void test_steps_wait_for_each_other(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    make_steps(jobs, tickets, lanes, 3);
    submit_all(queue, jobs, 3);
    expect_events("+a");
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    expect_events("a=0;"); /* b and c wait for a */
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 900000);
    assert_int_equal(rt_sched_due_ns(&jobs[1].sched), SECOND + 900000);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    expect_events("+[bca]");
    assert_int_equal(rt_sched_held_ns(queue), RT_SCHED_NEVER);
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    finish(&jobs[1]);
    finish(&jobs[2]);
    assert_int_equal(submit(queue, &jobs[2]), ST_OK);
    assert_int_equal(submit(queue, &jobs[1]), ST_OK);
    expect_events("a=0;b=0;c=0;");
    assert_int_equal(rt_sched_expire(sched), SECOND + 1700000);
    atomic_fetch_add(&now_ns, 100000); /* a has ended */
    rt_sched_expire(sched);
    expect_events("+[cb]");
    rt_sched_cancel(&jobs[1].sched); /* it stays until the step is over */
    expect_events("-b");
    finish(&jobs[2]);
    finish(&jobs[1]);
    expect_events("c=0;b=7;");
    for (unsigned i = 0; i < 3; i++) {
        assert_true(list_is_empty(&lanes[i].tickets));
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* All steps come back late, because the thread that brings them was busy: the first one still waits
 * for the others, and no longer than for a late one. */
static void test_late_steps_wait_for_each_other(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[3];
    struct rt_sched_ticket tickets[3];
    struct job jobs[3];
    make_steps(jobs, tickets, lanes, 3);
    submit_all(queue, jobs, 3);
    atomic_fetch_add(&now_ns, 800000);
    finish(&jobs[0]);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    expect_events("+aa=0;+[bca]");
    atomic_fetch_add(&now_ns, 800000);
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[i]);
    }
    expect_events("a=0;b=0;c=0;");
    atomic_fetch_add(&now_ns, 700000);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 2400000);
    atomic_fetch_add(&now_ns, 50000);
    assert_int_equal(submit(queue, &jobs[1]), ST_OK);
    expect_events("");
    assert_int_equal(rt_sched_held_ns(queue), SECOND + 2400000);
    assert_int_equal(submit(queue, &jobs[2]), ST_OK);
    expect_events("+[abc]");
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[i]);
    }
    expect_events("a=0;b=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Between two jobs that run alone, the parts of long prompts, there is a turn for steps. */
static void test_steps_have_every_second_turn(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[6];
    struct rt_sched_ticket tickets[6];
    struct job jobs[6];
    make_steps(jobs, tickets, lanes, 6);
    for (unsigned i = 0; i < 4; i++) { /* a, b, c and d are parts of prompts */
        jobs[i].sched.rows = 0;
        jobs[i].sched.returns = false;
    }
    submit_all(queue, jobs, 6);
    expect_events("+a");
    finish(&jobs[0]);
    expect_events("+[ef]a=0;");
    finish(&jobs[4]);
    finish(&jobs[5]);
    expect_events("e=0;+bf=0;"); /* no step is ready: prompts go on at once */
    assert_int_equal(submit(queue, &jobs[5]), ST_OK);
    assert_int_equal(submit(queue, &jobs[4]), ST_OK);
    finish(&jobs[1]);
    expect_events("+[fe]b=0;");
    finish(&jobs[4]);
    finish(&jobs[5]);
    finish(&jobs[2]);
    finish(&jobs[3]);
    expect_events("e=0;+cf=0;+dc=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A prompt whose parts are short, for the sake of steps, goes on before prompts that came later. */
static void test_a_prompt_keeps_its_turn(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 1, 1);
    struct rt_sched_lane lanes[4];
    struct rt_sched_ticket tickets[4];
    struct job jobs[4];
    make_steps(jobs, tickets, lanes, 4);
    for (unsigned i = 0; i < 3; i++) { /* a, b and c are parts of prompts; d is a step */
        jobs[i].sched.rows = 0;
        jobs[i].sched.returns = false;
    }
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 10);
    submit_all(queue, jobs + 1, 3);
    jobs[0].sched.since_ns = SECOND;
    for (unsigned i = 0; i < 3; i++) {
        finish(&jobs[0]);
        assert_int_equal(submit(queue, &jobs[0]), ST_OK);
        finish(&jobs[3]);
        assert_int_equal(submit(queue, &jobs[3]), ST_OK);
    }
    expect_events("+a+da=0;+ad=0;+da=0;+ad=0;+da=0;+ad=0;");
    jobs[0].sched.since_ns = 0; /* its turn is over */
    finish(&jobs[0]);
    assert_int_equal(submit(queue, &jobs[0]), ST_OK);
    finish(&jobs[3]);
    for (unsigned i = 1; i < 4; i++) {
        finish(&jobs[i % 3]);
    }
    expect_events("+da=0;+bd=0;+cb=0;+ac=0;a=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_lanes(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *one = new_queue(sched, 10, 0, 1), *two = new_queue(sched, 10, 0, 1);
    struct rt_sched_lane lane;
    struct rt_sched_ticket tickets[6];
    struct job jobs[6];
    rt_sched_lane_init(&lane);
    init_jobs(jobs, 6);
    for (unsigned i = 0; i < 6; i++) {
        tickets[i].lane = &lane;
        jobs[i].sched.tickets = &tickets[i];
        jobs[i].sched.ticket_count = i != 3;
        jobs[i].sched.priority = i == 2 ? 1 : 0;
        assert_int_equal(submit(i % 2 ? two : one, &jobs[i]), ST_OK);
    }
    expect_events("+a+d");
    assert_int_equal(rt_sched_load(one).waiting, 2);
    assert_int_equal(rt_sched_load(two).waiting, 2);
    rt_sched_cancel(&jobs[2].sched); /* held */
    finish(&jobs[0]);
    expect_events("c=7;+ba=0;");
    rt_sched_cancel(&jobs[1].sched);
    finish(&jobs[1]);
    finish(&jobs[4]);
    finish(&jobs[5]);
    finish(&jobs[3]);
    expect_events("-b+eb=7;+fe=0;f=0;d=0;");
    assert_true(list_is_empty(&lane.tickets));
    rt_sched_queue_unref(one);
    rt_sched_queue_unref(two);
    rt_sched_free(sched);
}

/* A job of several lanes runs when it is the first in all of them. It keeps its place in each. */
static void test_jobs_of_several_lanes(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(4);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct rt_sched_lane lanes[3];
    static const unsigned of[][2] = {{0, 0}, {1, 1}, {0, 1}, {1, 2}, {2, 2}, {0, 2}};
    struct rt_sched_ticket tickets[6][2];
    struct job jobs[6];
    for (unsigned i = 0; i < 3; i++) {
        rt_sched_lane_init(&lanes[i]);
    }
    init_jobs(jobs, 6);
    for (unsigned i = 0; i < 6; i++) {
        tickets[i][0].lane = &lanes[of[i][0]];
        tickets[i][1].lane = &lanes[of[i][1]];
        jobs[i].sched.tickets = tickets[i];
        jobs[i].sched.ticket_count = of[i][0] == of[i][1] ? 1 : 2;
        jobs[i].sched.deadline_ns = i == 3 ? now_ns + 5 : RT_SCHED_NEVER;
        assert_int_equal(submit(queue, &jobs[i]), ST_OK);
    }
    expect_events("+a+b"); /* c is behind both, d behind c, e and f behind d */
    finish(&jobs[1]);
    expect_events("b=0;");
    now_ns += 5;
    rt_sched_expire(sched);
    expect_events("+ed=6;"); /* it was not the first of any lane, so nothing changes */
    finish(&jobs[0]);
    expect_events("+ca=0;");
    rt_sched_cancel(&jobs[5].sched);
    finish(&jobs[4]);
    finish(&jobs[2]);
    expect_events("f=7;e=0;c=0;");
    for (unsigned i = 0; i < 3; i++) {
        assert_true(list_is_empty(&lanes[i].tickets));
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- admission ------------------------------------------------------------------------------- */

static void test_full(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 2, 0, 1);
    struct job jobs[5];
    init_jobs(jobs, 5);
    submit_all(queue, jobs, 3);
    assert_int_equal(submit(queue, &jobs[3]), ST_EXHAUSTED);
    expect_events("+a");
    finish(&jobs[0]);
    jobs[3].sched.bytes = 991;
    assert_int_equal(submit(queue, &jobs[3]), ST_EXHAUSTED); /* 10 + 991 bytes */
    jobs[3].sched.bytes = 990;
    assert_int_equal(submit(queue, &jobs[3]), ST_OK);
    finish(&jobs[1]);
    finish(&jobs[2]);
    jobs[4].sched.bytes = 5000; /* alone it may wait */
    assert_int_equal(submit(queue, &jobs[4]), ST_OK);
    finish(&jobs[3]);
    finish(&jobs[4]);
    expect_events("+ba=0;+cb=0;+dc=0;+ed=0;e=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_drain_time(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 100, 0, 1);
    struct job jobs[20];
    init_jobs(jobs, 20);
    assert_int_equal(rt_sched_drain_ns(queue), 0);
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 3 * (uint64_t)SECOND);
    finish(&jobs[0]);
    submit_all(queue, jobs, 9);
    /* Nine and the new one, two at a time, three seconds each. */
    assert_int_equal(rt_sched_drain_ns(queue), 15 * (uint64_t)SECOND);
    for (unsigned i = 0; i < 9; i++) {
        finish(&jobs[i]);
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- leaving early --------------------------------------------------------------------------- */

static void test_deadlines(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[5];
    init_jobs(jobs, 5);
    jobs[0].sched.deadline_ns = SECOND + 300; /* runs */
    jobs[1].sched.deadline_ns = SECOND + 200; /* waits */
    jobs[2].sched.deadline_ns = SECOND + 400; /* is done in time */
    jobs[4].sched.deadline_ns = SECOND;       /* comes too late */
    submit_all(queue, jobs, 5);
    expect_events("+ae=6;");
    assert_int_equal(rt_sched_expire(sched), SECOND + 200);
    expect_events("");
    atomic_store(&now_ns, SECOND + 200);
    assert_int_equal(rt_sched_expire(sched), SECOND + 300);
    expect_events("b=6;");
    atomic_store(&now_ns, SECOND + 300);
    assert_int_equal(rt_sched_expire(sched), SECOND + 400);
    assert_int_equal(rt_sched_expire(sched), SECOND + 400); /* cancelled once */
    expect_events("-a");
    finish(&jobs[0]);
    expect_events("+da=6;"); /* c would probably be cut like a */
    finish(&jobs[3]);
    finish(&jobs[2]);
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    expect_events("+cd=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A run takes 100 ns here. Jobs that cannot be over in time let others go first: else all jobs of a
 * long queue would be started and cut. */
static void test_too_late_to_start(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[6];
    init_jobs(jobs, 6);
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 100);
    finish(&jobs[0]);
    expect_events("+aa=0;");
    jobs[2].sched.deadline_ns = SECOND + 320;
    jobs[3].sched.deadline_ns = SECOND + 220;
    jobs[3].sched.rows = jobs[4].sched.rows = jobs[5].sched.rows = 1;
    submit_all(queue, jobs + 1, 5); /* b runs */
    atomic_fetch_add(&now_ns, 100);
    finish(&jobs[1]); /* c has 120 ns, d has 20: both are too late */
    expect_events("+b+[ef]b=0;");
    atomic_fetch_add(&now_ns, 10);
    finish(&jobs[4]);
    finish(&jobs[5]); /* nobody else is there: it may be faster than usual */
    expect_events("e=0;+cf=0;");
    atomic_store(&now_ns, SECOND + 220);
    rt_sched_expire(sched);
    expect_events("d=6;");
    finish(&jobs[2]);
    expect_events("c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Long runs of others do not keep a job out for ever that only seems too late. */
static void test_too_late_but_not_forgotten(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 40, 0, 1);
    struct job jobs[24];
    init_jobs(jobs, 24);
    jobs[1].sched.deadline_ns = SECOND + 820000;
    submit_all(queue, jobs, 1);
    atomic_fetch_add(&now_ns, 800000);
    submit_all(queue, jobs + 1, 23);
    unsigned before = 0;
    for (finish(&jobs[0]); !strstr(events, "+b"); before++) {
        must(before < 22);
        finish(&jobs[before + 2]); /* they take no time, but the usual time falls slowly */
    }
    assert_in_range(before, 1, 16);
    finish(&jobs[1]);
    for (unsigned i = before + 2; i < 24; i++) {
        finish(&jobs[i]);
    }
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* Runs that are cut say how long a run takes at least. */
static void test_cut_runs_count(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    jobs[0].sched.deadline_ns = SECOND + 100;
    submit_all(queue, jobs, 1);
    atomic_store(&now_ns, SECOND + 100);
    rt_sched_expire(sched);
    finish(&jobs[0]);
    expect_events("+a-aa=6;");
    submit_all(queue, jobs + 1, 1);
    jobs[2].sched.deadline_ns = SECOND + 220; /* 120 ns, and a run may take 1.5 times the usual */
    submit_all(queue, jobs + 2, 2);
    finish(&jobs[1]);
    expect_events("+b+db=0;");
    finish(&jobs[3]);
    finish(&jobs[2]);
    expect_events("+cd=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_cancel(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[3];
    init_jobs(jobs, 3);
    submit_all(queue, jobs, 3);
    rt_sched_cancel(&jobs[1].sched);
    expect_events("+ab=7;");
    rt_sched_cancel(&jobs[0].sched);
    rt_sched_cancel(&jobs[0].sched);
    expect_events("-a");
    finish(&jobs[0]);
    rt_sched_cancel(&jobs[0].sched); /* over */
    expect_events("+ca=7;");
    finish(&jobs[2]);
    expect_events("c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Gives its memory back as a call does at its end, before the scheduler is notified. */
static void finish_and_free(struct job *job)
{
    memory_left += job->memory;
    finish(job);
}

static void test_a_job_waits_for_memory(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(3);
    struct rt_sched_queue *large = new_queue(sched, 10, 0, 1), *small = new_queue(sched, 10, 0, 1);
    struct job jobs[6];
    init_jobs(jobs, 6);
    memory_left = 10;
    jobs[0].memory = jobs[1].memory = jobs[2].memory = 6;
    submit_all(large, jobs, 3);
    expect_events("+a?b");
    jobs[3].memory = jobs[4].memory = 2;
    submit_all(small, &jobs[3], 2); /* no other job waits for the large one */
    expect_events("+d+e");
    assert_int_equal(rt_sched_load(large).waiting, 2);
    finish_and_free(&jobs[3]);
    expect_events("?bd=0;");
    finish_and_free(&jobs[0]);
    expect_events("+b?ca=0;");
    assert_true(jobs[1].sched.started_ns > 0 && jobs[2].sched.started_ns == 0);
    finish_and_free(&jobs[4]);
    expect_events("?ce=0;");
    finish_and_free(&jobs[1]);
    finish_and_free(&jobs[2]);
    expect_events("+cb=0;c=0;");
    assert_int_equal(memory_left, 10);
    rt_sched_queue_unref(large);
    rt_sched_queue_unref(small);
    rt_sched_free(sched);
}

/* No running job could give memory back. */
static void test_a_job_that_finds_no_memory_is_refused(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[3];
    init_jobs(jobs, 3);
    memory_left = 10;
    jobs[0].memory = 11;
    submit_all(queue, jobs, 1);
    const char exhausted[] = {'?', 'a', 'a', '=', (char)('0' + ST_EXHAUSTED), ';', '\0'};
    expect_events(exhausted);
    assert_int_equal(jobs[0].sched.started_ns, 0);
    jobs[1].memory = 10;
    submit_all(queue, &jobs[1], 2);
    finish_and_free(&jobs[1]);
    finish_and_free(&jobs[2]);
    expect_events("+b+cb=0;c=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* A finished job keeps its results until its owner releases them. */
static void test_a_job_waits_for_results_to_go(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[3];
    init_jobs(jobs, 3);
    memory_left = 10;
    jobs[0].memory = jobs[1].memory = jobs[2].memory = 6;
    submit_all(queue, jobs, 2);
    finish(&jobs[0]);
    expect_events("+a?b?ba=0;");
    memory_left += jobs[0].memory;
    rt_sched_released(sched);
    expect_events("+b");
    finish(&jobs[1]);
    expect_events("b=0;");
    submit_all(queue, &jobs[2], 1);
    expect_events("?c");
    rt_sched_released(sched); /* it was memory of a client */
    const char exhausted[] = {'?', 'c', 'c', '=', (char)('0' + ST_EXHAUSTED), ';', '\0'};
    expect_events(exhausted);
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_a_batch_without_memory_is_taken_apart(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(1);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    memory_left = 10;
    for (unsigned i = 0; i < 4; i++) {
        jobs[i].sched.rows = 1;
        jobs[i].memory = 4;
    }
    submit_all(queue, jobs, 4);
    expect_events("+a");
    finish_and_free(&jobs[0]);
    expect_events("?[bcd]+ba=0;");
    assert_int_equal(jobs[1].sched.batch_size, 1);
    assert_int_equal(rt_sched_load(queue).waiting, 2);
    finish_and_free(&jobs[1]);
    expect_events("+[cd]b=0;"); /* in their order */
    finish_and_free(&jobs[2]);
    finish_and_free(&jobs[3]);
    expect_events("c=0;d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

static void test_leaving_while_there_is_no_memory(void **state)
{
    (void)state;
    struct rt_sched *sched = new_sched(2);
    struct rt_sched_queue *queue = new_queue(sched, 10, 0, 1);
    struct job jobs[4];
    init_jobs(jobs, 4);
    memory_left = 10;
    for (unsigned i = 0; i < 4; i++) {
        jobs[i].memory = 6;
    }
    jobs[2].sched.deadline_ns = SECOND + 10;
    submit_all(queue, jobs, 4);
    expect_events("+a?b");
    rt_sched_cancel(&jobs[1].sched);
    assert_int_equal(jobs[1].status, ST_CANCELLED);
    assert_int_equal(jobs[1].sched.started_ns, 0);
    atomic_store(&now_ns, SECOND + 10);
    rt_sched_expire(sched);
    assert_int_equal(jobs[2].status, ST_TIMEOUT);
    events[0] = '\0';
    finish_and_free(&jobs[0]);
    expect_events("+da=0;");
    finish_and_free(&jobs[3]);
    expect_events("d=0;");
    rt_sched_queue_unref(queue);
    rt_sched_free(sched);
}

/* ---- the end of the scheduler ---------------------------------------------------------------- */

/* What the last job takes with it. */
static struct rt_sched *last_sched;
static struct rt_sched_queue *last_queue;

static void done_for_good(struct rt_sched_job *sched, enum status status)
{
    done(sched, status);
    rt_sched_queue_unref(last_queue);
    rt_sched_free(last_sched);
}

static void *finish_for_good(void *arg)
{
    finish(arg);
    return NULL;
}

static struct job *last_job;

/* The job ends on another thread while this one is about to look for the next job. */
static void finish_elsewhere(void)
{
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, finish_for_good, last_job), 0);
    pthread_join(thread, NULL);
}

static bool start_and_be_late(struct rt_sched_job *sched, bool may_run_inline)
{
    last_job = job_of(sched);
    meanwhile = finish_elsewhere;
    return start(sched, may_run_inline);
}

static void submit_last(const struct rt_sched_job_ops *last_ops, struct job *job)
{
    last_sched = new_sched(1);
    last_queue = new_queue(last_sched, 10, 0, 1);
    job->sched.ops = last_ops;
    assert_int_equal(submit(last_queue, job), ST_OK);
}

/* A thread that has started the last job still looks for more when the scheduler is freed. */
static void test_it_is_freed_while_a_thread_looks(void **state)
{
    (void)state;
    const struct rt_sched_job_ops late = {
        .start = start_and_be_late, .cancel = cancel, .done = done_for_good};
    struct job job;
    init_jobs(&job, 1);
    submit_last(&late, &job);
    expect_events("+aa=0;");
}

/* That thread itself frees it, in done() of a job that found no memory. */
static void test_it_is_freed_in_done(void **state)
{
    (void)state;
    const struct rt_sched_job_ops hopeless = {
        .start = start, .cancel = cancel, .done = done_for_good};
    struct job job;
    init_jobs(&job, 1);
    job.memory = 1;
    memory_left = 0;
    submit_last(&hopeless, &job);
    expect_events("?aa=5;");
}

/* ---- everything at once ---------------------------------------------------------------------- */

/*
 * Four threads submit to three queues, a device of two threads ends jobs in any order, one thread
 * cancels, another one lets time pass, and memory is short. Each accepted job ends exactly once.
 */
enum { STRESS_JOBS = 10000, SUBMITTERS = 4, RUNNERS = 2 };

struct stress_job {
    struct rt_sched_job sched;
    struct rt_sched_ticket tickets[3];
    /* Under device_lock. */
    struct stress_job *head; /* of the jobs that it runs with */
    unsigned here;           /* of the head: how many of them are on the device */
    bool is_on_device;
    bool has_left; /* the other jobs that it ran with */
    atomic_bool is_cancelled;
    atomic_uint done_count;
};

static struct stress_job stress_jobs[STRESS_JOBS];
static struct rt_sched_queue *stress_queues[3];
static struct rt_sched_lane stress_lanes[5];
static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct stress_job *device_jobs[64];
static unsigned device_count;
static atomic_uint stress_over;
static struct rt_sched *stress_sched;
static atomic_int stress_memory = 5; /* jobs may run or be unreleased at a time */

static bool take_memory(uint32_t count)
{
    bool has_room = atomic_fetch_sub(&stress_memory, (int)count) >= (int)count;
    if (!has_room) {
        atomic_fetch_add(&stress_memory, (int)count);
    }
    return has_room;
}

/* Some jobs give memory back when they end, others when they are released. */
static bool is_freed_early(const struct rt_sched_job *job)
{
    return job->bytes % 3 == 0;
}

static void stress_finish(struct rt_sched_job *job, enum status status)
{
    if (is_freed_early(job)) {
        atomic_fetch_add(&stress_memory, 1);
    }
    rt_sched_finished(job, status);
}

static struct stress_job *stress_job_of(struct rt_sched_job *job)
{
    return LIST_ENTRY(job, struct stress_job, sched);
}

/* With device_lock held. */
static void put_on_device(struct stress_job *job, struct stress_job *head)
{
    must(device_count < 64);
    device_jobs[device_count++] = job;
    job->is_on_device = true;
    job->head = head;
    head->here++;
}

static struct stress_job *take_off_device(unsigned at)
{
    struct stress_job *job = device_jobs[at];
    device_jobs[at] = device_jobs[--device_count];
    job->is_on_device = false;
    job->head->here--;
    return job;
}

static bool stress_start(struct rt_sched_job *job, bool may_run_inline)
{
    if (!take_memory(1)) {
        return false;
    }
    if (may_run_inline && job->bytes % 2) {
        stress_finish(job, ST_OK);
        return true;
    }
    pthread_mutex_lock(&device_lock);
    put_on_device(stress_job_of(job), stress_job_of(job));
    pthread_mutex_unlock(&device_lock);
    return true;
}

/* Some jobs leave the batch in which they run. */
static bool stress_cancel(struct rt_sched_job *sched)
{
    struct stress_job *job = stress_job_of(sched);
    pthread_mutex_lock(&device_lock);
    bool leaves = job->is_on_device && job->head->here > 1 && sched->bytes % 4;
    for (unsigned i = 0; leaves && i < device_count; i++) {
        if (device_jobs[i] == job) {
            take_off_device(i);
        }
    }
    job->has_left = leaves;
    pthread_mutex_unlock(&device_lock);
    atomic_store(&job->is_cancelled, true);
    return leaves;
}

static void stress_done(struct rt_sched_job *job, enum status status)
{
    (void)status;
    atomic_fetch_add(&stress_job_of(job)->done_count, 1);
    if (job->started_ns) {
        bool left_others = stress_job_of(job)->has_left;
        atomic_fetch_add(&stress_memory, left_others || !is_freed_early(job));
        rt_sched_released(stress_sched);
    }
    atomic_fetch_add(&stress_over, 1);
}

static bool stress_start_batch(struct rt_sched_job *const *jobs, uint32_t count)
{
    if (!take_memory(count)) {
        return false;
    }
    pthread_mutex_lock(&device_lock);
    for (uint32_t i = 0; i < count; i++) {
        put_on_device(stress_job_of(jobs[i]), stress_job_of(jobs[0]));
    }
    pthread_mutex_unlock(&device_lock);
    return true;
}

static bool stress_fits(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return (a->bytes ^ b->bytes) % 8 != 0;
}

static const struct rt_sched_job_ops stress_ops = {
    .start = stress_start,
    .start_batch = stress_start_batch,
    .fits = stress_fits,
    .cancel = stress_cancel,
    .done = stress_done,
};

static void *run_device(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    while (atomic_load(&stress_over) < STRESS_JOBS) {
        struct stress_job *job = NULL;
        pthread_mutex_lock(&device_lock);
        if (device_count) {
            job = take_off_device((unsigned)rand_r(&seed) % device_count);
        }
        pthread_mutex_unlock(&device_lock);
        if (job) {
            bool cancelled = atomic_load(&job->is_cancelled);
            stress_finish(&job->sched, cancelled ? ST_CANCELLED : ST_OK);
        }
    }
    return NULL;
}

/* None, or up to three different ones. */
static void take_lanes(struct stress_job *job, unsigned *seed)
{
    unsigned first = (unsigned)rand_r(seed) % 5, step = 1 + (unsigned)rand_r(seed) % 4;
    job->sched.tickets = job->tickets;
    job->sched.ticket_count = rand_r(seed) % 2 ? 1 + (unsigned)rand_r(seed) % 3 : 0;
    for (unsigned i = 0; i < job->sched.ticket_count; i++) {
        job->tickets[i].lane = &stress_lanes[(first + i * step) % 5];
    }
}

static void *submit_many(void *arg)
{
    unsigned number = (unsigned)(uintptr_t)arg, seed = number;
    for (unsigned i = number; i < STRESS_JOBS; i += SUBMITTERS) {
        struct stress_job *job = &stress_jobs[i];
        struct error err;
        job->sched.ops = &stress_ops;
        job->sched.bytes = (unsigned)rand_r(&seed) % 100;
        job->sched.priority = (unsigned)rand_r(&seed) % 10;
        job->sched.rows = rand_r(&seed) % 3;
        take_lanes(job, &seed);
        job->sched.deadline_ns =
            rand_r(&seed) % 3 ? RT_SCHED_NEVER : fake_clock() + (unsigned)rand_r(&seed) % 50;
        if (rt_sched_submit(stress_queues[rand_r(&seed) % 3], &job->sched, rand_r(&seed) % 2,
                            &err) != ST_OK) {
            atomic_fetch_add(&job->done_count, 1); /* refused: answered with a 429 */
            atomic_fetch_add(&stress_over, 1);
        } else if (rand_r(&seed) % 4 == 0) {
            rt_sched_cancel(&job->sched);
        }
    }
    return NULL;
}

static void *pass_time(void *arg)
{
    while (atomic_load(&stress_over) < STRESS_JOBS) {
        atomic_fetch_add(&now_ns, 1);
        rt_sched_expire(arg);
    }
    return NULL;
}

static void test_stress(void **state)
{
    (void)state;
    struct rt_sched *sched = stress_sched = new_sched(4);
    pthread_t threads[SUBMITTERS + RUNNERS + 1];
    for (unsigned i = 0; i < 3; i++) {
        stress_queues[i] = new_queue_delayed(sched, 50, i, 1 + i, i * 10);
    }
    for (unsigned i = 0; i < 5; i++) {
        rt_sched_lane_init(&stress_lanes[i]);
    }
    for (uintptr_t i = 0; i < SUBMITTERS; i++) {
        pthread_create(&threads[i], NULL, submit_many, (void *)i);
    }
    for (uintptr_t i = 0; i < RUNNERS; i++) {
        pthread_create(&threads[SUBMITTERS + i], NULL, run_device, (void *)(i + 100));
    }
    pthread_create(&threads[SUBMITTERS + RUNNERS], NULL, pass_time, sched);
    for (unsigned i = 0; i < SUBMITTERS + RUNNERS + 1; i++) {
        pthread_join(threads[i], NULL);
    }
    for (unsigned i = 0; i < STRESS_JOBS; i++) {
        assert_int_equal(atomic_load(&stress_jobs[i].done_count), 1);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct rt_sched_load load = rt_sched_load(stress_queues[i]);
        assert_true(load.waiting == 0 && load.running == 0 && load.waiting_bytes == 0);
        rt_sched_queue_unref(stress_queues[i]);
    }
    assert_int_equal(rt_sched_expire(sched), RT_SCHED_NEVER);
    rt_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alone_it_starts_at_once),
        cmocka_unit_test(test_the_device_is_kept_shallow),
        cmocka_unit_test(test_a_model_has_its_own_limit),
        cmocka_unit_test(test_a_row_that_ends_at_once),
        cmocka_unit_test(test_priorities),
        cmocka_unit_test(test_a_slow_model_does_not_keep_a_fast_one_out),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_the_last_place_is_not_for_few_rows),
        cmocka_unit_test(test_leaving_a_batch),
        cmocka_unit_test(test_times_are_in_order),
        cmocka_unit_test(test_late_but_done),
        cmocka_unit_test(test_delay),
        cmocka_unit_test(test_steps_wait_for_each_other),
        cmocka_unit_test(test_late_steps_wait_for_each_other),
        cmocka_unit_test(test_steps_have_every_second_turn),
        cmocka_unit_test(test_a_prompt_keeps_its_turn),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_jobs_of_several_lanes),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_drain_time),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_too_late_to_start),
        cmocka_unit_test(test_too_late_but_not_forgotten),
        cmocka_unit_test(test_cut_runs_count),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_a_job_waits_for_memory),
        cmocka_unit_test(test_a_job_that_finds_no_memory_is_refused),
        cmocka_unit_test(test_a_job_waits_for_results_to_go),
        cmocka_unit_test(test_a_batch_without_memory_is_taken_apart),
        cmocka_unit_test(test_leaving_while_there_is_no_memory),
        cmocka_unit_test(test_it_is_freed_while_a_thread_looks),
        cmocka_unit_test(test_it_is_freed_in_done),
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
