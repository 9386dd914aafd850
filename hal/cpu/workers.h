/* SPDX-License-Identifier: MIT */
/*
 * The threads of a CPU device. They look for a submission that nobody serves yet, and otherwise
 * help with the oldest that has tiles left: many small requests take a core each, one large request
 * spreads over all. While there are more submissions than workers, they take turns: a small one
 * waits for some tiles of a large one and not for its end. Whose turn it is goes by shares: the one
 * whose work has had the least time, so that a party with short submissions does not get one of
 * them for each slice of another's long ones, nor wait for a slice before each of them. An idle
 * worker spins for some microseconds, then parks: to wake it and to be woken by it takes 40 us on a
 * virtual machine. A caller that waits for the end does neither: it works in the place of a worker.
 */
#ifndef PTED_HAL_CPU_WORKERS_H
#define PTED_HAL_CPU_WORKERS_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

#define HAL_CPU_WORKERS_MAX 1024
#define HAL_CPU_SCRATCH_BYTES ((size_t)16 << 20)

struct hal_cpu_submission;
struct hal_cpu_workers;

/* |nice| is added to the niceness of the caller, where the system has one for each thread. */
MUST_CHECK enum status hal_cpu_workers_new(uint32_t count, uint32_t nice,
                                           struct hal_cpu_workers **out_workers, struct error *err);
/* There is nothing left to run. Joins the threads. */
void hal_cpu_workers_free(struct hal_cpu_workers *workers);

/* Hands over a submission that waits for nothing more. Any thread. */
void hal_cpu_workers_add(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission);

/*
 * The same, and serves it on this thread, which has |scratch|, with the workers that are worth it.
 * Returns when it is complete, or when the thread has nothing more to take in it.
 */
void hal_cpu_workers_serve(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                           void *scratch);

/* A number that changes whenever tiles of a runnable submission are taken or run. Any thread. */
uint64_t hal_cpu_workers_mark(struct hal_cpu_workers *workers);

/*
 * HAL_CPU_SCRATCH_BYTES of address space for the scratch of one thread, page aligned and touched
 * only as used; NULL when there is none.
 */
void *hal_cpu_scratch_new(void);
void hal_cpu_scratch_free(void *scratch);

#endif
