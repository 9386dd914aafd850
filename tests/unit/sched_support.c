/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/sched_support.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/unit.h"

_Atomic uint64_t now_ns;
void (*meanwhile)(void);
unsigned memory_left;
char events[EVENTS_BYTES];

uint64_t fake_clock(void)
{
    uint64_t now = atomic_load(&now_ns);
    void (*fn)(void) = meanwhile;
    if (fn) {
        meanwhile = NULL;
        fn();
    }
    return now;
}

void note_event(const char *before, char name, const char *after)
{
    size_t len = strlen(events);
    snprintf(events + len, sizeof(events) - len, "%s%c%s", before, name, after);
}

struct job *job_of(struct rt_sched_job *sched)
{
    return LIST_ENTRY(sched, struct job, sched);
}

bool start_job(struct rt_sched_job *sched, bool may_run_inline)
{
    struct job *job = job_of(sched);
    bool is_started = job->memory <= memory_left;
    note_event(is_started ? "+" : "?", job->name, may_run_inline ? "!" : "");
    if (is_started) {
        memory_left -= job->memory;
    }
    if (is_started && job->ends_in_start) {
        rt_sched_finished(sched, ST_OK);
    }
    return is_started;
}

bool cancel_job(struct rt_sched_job *sched)
{
    job_of(sched)->was_cancelled = true;
    note_event("-", job_of(sched)->name, "");
    return job_of(sched)->leaves;
}

void job_done(struct rt_sched_job *sched, enum status status)
{
    struct job *job = job_of(sched);
    job->done_count++;
    job->status = status;
    const char after[] = {'=', (char)('0' + (int)status), ';', '\0'};
    note_event("", job->name, after);
}

/* "+[abc]": three that run as one. */
bool start_jobs(struct rt_sched_job *const *jobs, uint32_t count)
{
    unsigned memory = 0;
    for (uint32_t i = 0; i < count; i++) {
        memory += job_of(jobs[i])->memory;
    }
    bool is_started = memory <= memory_left;
    for (uint32_t i = 0; i < count; i++) {
        note_event(i > 0        ? ""
                   : is_started ? "+["
                                : "?[",
                   job_of(jobs[i])->name, i + 1 == count ? "]" : "");
    }
    memory_left -= is_started ? memory : 0;
    return is_started;
}

/* Jobs with capital letters do not join jobs with small letters. */
bool jobs_fit(struct rt_sched_job *a, struct rt_sched_job *b)
{
    return (job_of(a)->name & 0x20) == (job_of(b)->name & 0x20);
}

const struct rt_sched_job_ops job_ops = {
    .start = start_job,
    .start_batch = start_jobs,
    .fits = jobs_fit,
    .cancel = cancel_job,
    .done = job_done,
};

void expect_events(const char *expected)
{
    assert_string_equal(events, expected);
    events[0] = '\0';
}

struct rt_sched *new_sched(uint32_t depth)
{
    const struct rt_sched_options options = {.depth = depth, .clock = fake_clock};
    struct rt_sched *sched;
    struct error err;
    atomic_store(&now_ns, SECOND);
    events[0] = '\0';
    assert_int_equal(rt_sched_new(&options, &sched, &err), ST_OK);
    return sched;
}

struct rt_sched_queue *new_queue_delayed(struct rt_sched *sched, uint32_t waiting_max,
                                         uint32_t running_max, uint32_t weight, uint64_t delay_ns)
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

struct rt_sched_queue *new_queue(struct rt_sched *sched, uint32_t waiting_max, uint32_t running_max,
                                 uint32_t weight)
{
    return new_queue_delayed(sched, waiting_max, running_max, weight, 0);
}

void init_jobs(struct job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        jobs[i] = (struct job){.name = (char)('a' + i)};
        jobs[i].sched.ops = &job_ops;
        jobs[i].sched.deadline_ns = RT_SCHED_NEVER;
        jobs[i].sched.bytes = 10;
    }
}

enum status submit(struct rt_sched_queue *queue, struct job *job)
{
    struct error err;
    return rt_sched_submit(queue, &job->sched, false, &err);
}

void submit_all(struct rt_sched_queue *queue, struct job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        assert_int_equal(submit(queue, &jobs[i]), ST_OK);
    }
}

void finish(struct job *job)
{
    rt_sched_finished(&job->sched, job->was_cancelled ? ST_CANCELLED : ST_OK);
}
