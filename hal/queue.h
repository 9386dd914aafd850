/* SPDX-License-Identifier: MIT */
/*
 * Submissions: a command buffer with its slots filled, timepoints to wait for and timepoints to
 * signal. A submission may be made before anything it waits for has been submitted. When a wait
 * fails, the submission does not run and its signals fail with the same status.
 *
 * Submissions without an order between them run in any order and at the same time. Where they wait
 * for the device, it gives each share (below) time by its weight, and starts first what became
 * runnable first within one.
 */
#ifndef PTED_HAL_QUEUE_H
#define PTED_HAL_QUEUE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "hal/command.h"
#include "hal/fault.h"
#include "hal/semaphore.h"

struct hal_profile;

#define HAL_TIMEPOINTS_MAX 8

/* A device distinguishes so many shares; shares that are equal modulo this number count as one. */
#define HAL_SHARES 256

/* How much of the work the submitting thread does before the call returns. */
enum hal_caller {
    HAL_CALLER_BUSY,  /* nothing: it has more to do */
    HAL_CALLER_QUICK, /* command buffers so small that handing them to a worker costs more */
    HAL_CALLER_WAITS, /* what a worker would: it has nothing to do until the work is done */
};

struct hal_submission {
    struct hal_command *command; /* the submission takes its own reference */
    const struct hal_binding
        *slots;          /* |slot_count| direct bindings, copied; buffers are retained */
    uint32_t slot_count; /* as the command buffer was made with */
    struct hal_timepoint wait[HAL_TIMEPOINTS_MAX];
    uint32_t wait_count;
    struct hal_timepoint signal[HAL_TIMEPOINTS_MAX]; /* all semaphores are retained */
    uint32_t signal_count;
    enum hal_caller caller; /* a device need not use it, and none does as long as a wait is open */
    uint32_t share;  /* whose work it is: any number, the same for all submissions of one party */
    uint32_t weight; /* how many parts of the device's time that one gets beside others; 0 is 1 */
    /*
     * Polled between tiles when not NULL: once it is true the rest is not run and the signals fail
     * with ST_CANCELLED. Lives until the signals have been given.
     */
    const atomic_bool *cancel;
    /*
     * Where kernels report what is wrong with the data (hal/fault.h); the signals then fail with
     * ST_INVALID. Reset by the caller, lives until the signals have been given. NULL: only the
     * status tells.
     */
    struct hal_fault_record *fault;
    /* Times what runs, where the device does so (hal/profile.h); NULL: nothing. Lives until the
     * signals have been given. */
    struct hal_profile *profile;
};

/*
 * ST_EXHAUSTED when no submission object can be had. After warm-up this does not malloc.
 * The buffers in the slots are let go before the signals are given, the command buffer soon after.
 */
MUST_CHECK enum status hal_queue_submit(struct hal_device *device,
                                        const struct hal_submission *submission, struct error *err);

#endif
