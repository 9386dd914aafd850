/* SPDX-License-Identifier: MIT */
/*
 * The scheduler: places on a device, the order of jobs, lanes, admission, jobs that leave early,
 * and the end of the scheduler. Jobs that run as one are in test_sched_batch.c, memory is in
 * test_sched_memory.c, parents and their children are in test_children.c.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "tests/unit/sched_support.h"
#include "tests/unit/unit.h"

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

/* Jobs that end inside start_job() cause a loop and no recursion: these would not fit on a stack.
 */
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

/* Jobs of one lane run one after the other, in any queues and with any priorities. Other jobs
 * overtake them. */
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

/* ---- the end of the scheduler ---------------------------------------------------------------- */

/* The last job frees these. */
static struct rt_sched *last_sched;
static struct rt_sched_queue *last_queue;

static void done_for_good(struct rt_sched_job *sched, enum status status)
{
    job_done(sched, status);
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
    return start_job(sched, may_run_inline);
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
        .start = start_and_be_late, .cancel = cancel_job, .done = done_for_good};
    struct job job;
    init_jobs(&job, 1);
    submit_last(&late, &job);
    expect_events("+aa=0;");
}

/* That thread itself frees it, in job_done() of a job that found no memory. */
static void test_it_is_freed_in_done(void **state)
{
    (void)state;
    const struct rt_sched_job_ops hopeless = {
        .start = start_job, .cancel = cancel_job, .done = done_for_good};
    struct job job;
    init_jobs(&job, 1);
    job.memory = 1;
    memory_left = 0;
    submit_last(&hopeless, &job);
    expect_events("?aa=5;");
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
        cmocka_unit_test(test_times_are_in_order),
        cmocka_unit_test(test_late_but_done),
        cmocka_unit_test(test_lanes),
        cmocka_unit_test(test_jobs_of_several_lanes),
        cmocka_unit_test(test_full),
        cmocka_unit_test(test_drain_time),
        cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_too_late_to_start),
        cmocka_unit_test(test_too_late_but_not_forgotten),
        cmocka_unit_test(test_cut_runs_count),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_it_is_freed_while_a_thread_looks),
        cmocka_unit_test(test_it_is_freed_in_done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
