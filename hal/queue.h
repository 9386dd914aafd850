/* SPDX-License-Identifier: MIT */
/*
 * Submissions: a command buffer with its slots filled, timepoints to wait for and timepoints to
 * signal. A submission may be made before anything it waits for has been submitted. When a wait
 * fails, the submission does not run and its signals fail with the same status.
 *
 * Submissions without an order between them run in any order and at the same time. If they have to
 * wait for the device, each share (below) gets time by its weight; within a share, the submission
 * that became runnable first starts first.
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

/* The number of shares that a device distinguishes: shares that are equal modulo this count as one.
 */
#define HAL_SHARES 256

/* How much of the work the submitting thread does before the call returns. */
enum hal_caller {
    HAL_CALLER_BUSY,  /* nothing: it has more to do */
    HAL_CALLER_QUICK, /* all of it if that is so little that waking a worker costs more */
    HAL_CALLER_WAITS, /* as much as a worker: it has nothing else to do until the work is done */
};

struct hal_submission {
    struct hal_command *command; /* the submission takes its own reference */
    const struct hal_binding
        *slots;          /* |slot_count| direct bindings, copied; buffers are retained */
    uint32_t slot_count; /* that of the command buffer */
    struct hal_timepoint wait[HAL_TIMEPOINTS_MAX];
    uint32_t wait_count;
    struct hal_timepoint signal[HAL_TIMEPOINTS_MAX]; /* all semaphores are retained */
    uint32_t signal_count;
    enum hal_caller caller; /* a hint; without effect while a wait is open */
    uint32_t share;  /* the party that submits: any number, the same for all its submissions */
    uint32_t weight; /* the share's part of the device's time, relative to others; 0 counts as 1 */
    /*
     * If not NULL, it is read between tiles: once it is true, the rest is not run, and the signals
     * fail with ST_CANCELLED. Lives until the signals have been given.
     */
    const atomic_bool *cancel;
    /*
     * Receives the first fault in the data (hal/fault.h); the signals then fail with ST_INVALID.
     * The caller resets it before. Lives until the signals have been given. NULL: there is only the
     * status.
     */
    struct hal_fault_record *fault;
    /* Transient slots lie in the buffers given, and not in memory of the device's own: for tests
     * that fill them before. */
    bool keeps_slots;
    /* Times what runs, where the device does so (hal/profile.h); NULL: nothing. Lives until the
     * signals have been given. */
    struct hal_profile *profile;
};

/*
 * Fails with ST_EXHAUSTED: no memory for a submission. After warm-up this does not malloc. The
 * references to the buffers in the slots are dropped before the signals are given, the one to the
 * command buffer soon after.
 */
MUST_CHECK enum status hal_queue_submit(struct hal_device *device,
                                        const struct hal_submission *submission, struct error *err);

/* Submits |submission|, which signals nothing, and waits for its end. A fault in the data is the
 * error, if the submission has a record for it. Not on a thread that runs submissions. */
MUST_CHECK enum status hal_queue_run(struct hal_device *device,
                                     const struct hal_submission *submission, struct error *err);

#endif
