/* SPDX-License-Identifier: MIT */
/*
 * Where a step runs follows from its work, which is counted in bytes that it reads or writes:
 *
 *     on the loop       up to --inline-bytes-max, nothing that may wait
 *     on a thread       up to --light-bytes-max
 *     in a heavy task   any number (server/process/offload.h)
 *
 * work_place() answers from what is known before the step begins. Nothing else decides, so it may
 * be asked again after any wait. A step that finds out more tells work_add() before it does it. It
 * fails then with ST_WOULD_BE_HEAVY, undoes what it has done, and begins again at the next place.
 *
 * Threads as in infer.h.
 */
#ifndef PTED_SERVER_DAEMON_INFER_WORK_H
#define PTED_SERVER_DAEMON_INFER_WORK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct params;

enum work_place { WORK_ON_LOOP, WORK_ON_THREAD, WORK_HEAVY };

struct work {
    const struct params *params; /* borrowed: the limits */
    enum work_place place;       /* where the present step runs: set by whoever runs it */
    uint64_t bytes;              /* that this run of it has handled, beside those known before */
    uint64_t reserved;           /* by this run, of memory that the device is going to write */
    uint64_t found;              /* that it handles at least, as a run of it has found out */
};

/* Chooses the place for the present step, which handles |known| bytes as far as that is known
 * before it. |is_long|: it may take long, whatever its bytes. */
enum work_place work_place(const struct work *work, uint64_t known, bool is_long);

/* Begins a run of the present step, at |place|. */
void work_begin(struct work *work, enum work_place place);

/* Tells that the present run of the step is about to handle |bytes| more. ST_WOULD_BE_HEAVY: not
 * here. */
MUST_CHECK enum status work_add(struct work *work, uint64_t bytes, struct error *err);

/* Call when what follows may take long, or wait for a disk. ST_WOULD_BE_HEAVY: the step runs on the
 * loop. */
MUST_CHECK enum status work_leave_loop(const struct work *work, struct error *err);

/* Returns the bytes of one piece of work, such as a file, in a run at |place|; 0: no limit. */
uint64_t work_piece_max(const struct work *work, enum work_place place);

/* Call when the present run of the step has ended with ST_WOULD_BE_HEAVY: work_place() is a later
 * one now, or still WORK_HEAVY. */
void work_move_on(struct work *work);

/* Call when another step is the present one. */
void work_reset(struct work *work);

#endif
