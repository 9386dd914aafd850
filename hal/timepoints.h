/* SPDX-License-Identifier: MIT */
/*
 * The timepoints of a submission in flight: waits, which the signalling threads count down on the
 * host, and signals, which the submission gives at its end. Part of every driver's submission.
 */
#ifndef PTED_HAL_TIMEPOINTS_H
#define PTED_HAL_TIMEPOINTS_H

#include <stdatomic.h>

#include "hal/queue.h"
#include "hal/semaphore.h"

struct hal_timepoints;

/* Called when the last wait is over. Runs on the thread that signalled; the status has the first
 * failure. */
typedef void hal_waits_over_f(struct hal_timepoints *timepoints);

struct hal_wait {
    struct hal_semaphore_waiter waiter;
    struct hal_timepoints *owner;
    struct hal_semaphore *semaphore; /* ref held */
};

#define HAL_TIMEPOINTS_MAGIC 0x713e9055u

struct hal_timepoints {
    uint32_t magic; /* from hal_timepoints_init() to hal_timepoints_give() */
    hal_waits_over_f *over;
    atomic_int *status;     /* the submission's: the first failure */
    atomic_uint waits_left; /* one more while the submission is being made */
    uint32_t wait_count, signal_count;
    struct hal_wait waits[HAL_TIMEPOINTS_MAX];
    struct hal_timepoint signals[HAL_TIMEPOINTS_MAX]; /* refs held */
};

/* Copies the timepoints of |from|, with references. */
void hal_timepoints_init(struct hal_timepoints *timepoints, const struct hal_submission *from,
                         atomic_int *status, hal_waits_over_f *over);

/*
 * Begins to wait; the submission is complete by now. True: nothing is left to wait for, and the
 * caller passes the submission on; |over| is not called.
 */
MUST_CHECK bool hal_timepoints_wait(struct hal_timepoints *timepoints);

/* Drops the references of the waits, which are over. */
void hal_timepoints_forget_waits(struct hal_timepoints *timepoints);

/* Gives the signals, or fails them if the status is a failure. Once for each submission. */
void hal_timepoints_give(struct hal_timepoints *timepoints);

/* Gives one signal of a submission that ended with |status|. */
void hal_timepoint_give(const struct hal_timepoint *signal, enum status status);

/* Keeps the first failure; ST_OK is no failure. */
void hal_status_fail(atomic_int *submission_status, enum status status);

#endif
