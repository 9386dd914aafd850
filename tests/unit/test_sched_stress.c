/* SPDX-License-Identifier: MIT */
/*
 * Four threads submit to three queues, a device of two threads ends jobs in any order, one thread
 * cancels, another one lets time pass, and memory is short. Each accepted job ends exactly once.
 */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/check.h"
#include "runtime/sched/sched.h"
#include "tests/unit/sched_support.h"
#include "tests/unit/unit.h"

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
        cmocka_unit_test(test_stress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
