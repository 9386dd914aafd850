/* SPDX-License-Identifier: MIT */
/*
 * For tests of the scheduler: a clock of the test, and a device that does nothing. The test decides
 * when time passes and when a job ends, and checks the order in which jobs were started, cancelled
 * and done.
 */
#ifndef PTED_TESTS_UNIT_SCHED_SUPPORT_H
#define PTED_TESTS_UNIT_SCHED_SUPPORT_H

#include <stdatomic.h>

#include "runtime/sched/sched.h"

#define SECOND 1000000000u

extern _Atomic uint64_t now_ns;

/* Called once after this thread has read the clock: the work of another thread. */
extern void (*meanwhile)(void);

uint64_t fake_clock(void);

struct job {
    struct rt_sched_job sched;
    char name;
    bool ends_in_start;
    bool leaves; /* the jobs that it runs with, when it is cancelled */
    bool was_cancelled;
    unsigned memory; /* bytes of |memory_left| that it needs to run */
    unsigned done_count;
    enum status status;
    struct parent *parent; /* of a child, see test_children.c; NULL: it is none */
};

struct job *job_of(struct rt_sched_job *sched);

extern unsigned memory_left;

/* The functions of jobs. Jobs with capital letters do not join jobs with small letters. */
extern const struct rt_sched_job_ops job_ops;
bool start_job(struct rt_sched_job *sched, bool may_run_inline);
bool start_jobs(struct rt_sched_job *const *jobs, uint32_t count);
bool jobs_fit(struct rt_sched_job *a, struct rt_sched_job *b);
bool cancel_job(struct rt_sched_job *sched);
void job_done(struct rt_sched_job *sched, enum status status);

/* The events so far: "+a" started, "+[abc]" started as one, "?a" not started for lack of memory,
 * "-a" cancelled, "a=STATUS;" done. */
#define EVENTS_BYTES 8192
extern char events[EVENTS_BYTES];
void note_event(const char *before, char name, const char *after);

/* Compares the events, and forgets them. */
void expect_events(const char *expected);

/* A scheduler with the clock of the test, which shows a second, and without events. */
struct rt_sched *new_sched(uint32_t depth);

struct rt_sched_queue *new_queue_delayed(struct rt_sched *sched, uint32_t waiting_max,
                                         uint32_t running_max, uint32_t weight, uint64_t delay_ns);
struct rt_sched_queue *new_queue(struct rt_sched *sched, uint32_t waiting_max, uint32_t running_max,
                                 uint32_t weight);

/* Jobs a, b, c and so on, which run alone. */
void init_jobs(struct job *jobs, unsigned count);

enum status submit(struct rt_sched_queue *queue, struct job *job);
void submit_all(struct rt_sched_queue *queue, struct job *jobs, unsigned count);

/* The device ends |job|. */
void finish(struct job *job);

#endif
