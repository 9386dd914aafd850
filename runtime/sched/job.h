/* SPDX-License-Identifier: MIT */
/*
 * Calls as jobs of the scheduler. Shared by all kinds of jobs that bring one planned call each, so
 * that jobs of different kinds can run as one. job->call is the struct rt_invocation.
 */
#ifndef PTED_RUNTIME_SCHED_JOB_H
#define PTED_RUNTIME_SCHED_JOB_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct rt_invocation;
struct rt_sched_job;

/* Ends a call whose |arg| is its job: a function for rt_invocation_submit(). */
void rt_job_end(struct rt_invocation *invocation, enum status status, void *arg);

/* For struct rt_sched_job_ops. */
bool rt_job_start_batch(struct rt_sched_job *const *jobs, uint32_t count);
bool rt_job_fits(struct rt_sched_job *a, struct rt_sched_job *b);

#endif
