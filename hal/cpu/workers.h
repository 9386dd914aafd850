/* SPDX-License-Identifier: MIT */
/*
 * The threads of a CPU device. A worker first looks for a submission that no worker serves, and
 * otherwise helps with the oldest submission that has tiles left: many small requests take a core
 * each, and one large request spreads over all cores.
 *
 * If there are more submissions than workers, submissions of about the same cost follow each other,
 * so that each has the caches to itself. A small one does not wait for the end of a large one, and
 * the next turn goes to the share that has had the least time. So a party with short submissions
 * gets as much time as a party with long ones, and does not wait before each submission.
 *
 * An idle worker spins for some microseconds, then parks: on a virtual machine it takes 40 us to
 * wake it. A caller that waits for the end neither spins nor parks: it works in the place of a
 * worker.
 */
#ifndef PTED_HAL_CPU_WORKERS_H
#define PTED_HAL_CPU_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define HAL_CPU_WORKERS_MAX 1024

struct hal_cpu_submission;
struct hal_cpu_thread_memory;
struct hal_cpu_workers;

/* |nice| is added to the niceness of the caller, where the system has one for each thread. */
MUST_CHECK enum status hal_cpu_workers_new(uint32_t count, uint32_t nice,
                                           struct hal_cpu_workers **out_workers, struct error *err);
/* Joins the threads. The caller guarantees that no submission is left. */
void hal_cpu_workers_free(struct hal_cpu_workers *workers);

/* Hands over a submission that has no open wait. Any thread. */
void hal_cpu_workers_add(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission);

/*
 * Does the same, but this thread serves it too, with |memory|, beside the workers that are worth
 * waking. Returns when the submission is complete, or when this thread finds no more tiles in it:
 * another thread may then still use the workspace of |memory|, which lives as long as the device.
 */
void hal_cpu_workers_serve(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                           struct hal_cpu_thread_memory *memory);

/* Returns the memory of worker |index|, below their number. */
struct hal_cpu_thread_memory *hal_cpu_worker_memory(struct hal_cpu_workers *workers,
                                                    uint32_t index);

/* Returns a number that changes whenever tiles of a runnable submission are taken or run. Any
 * thread. */
uint64_t hal_cpu_workers_mark(struct hal_cpu_workers *workers);

#endif
