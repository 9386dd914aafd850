/* SPDX-License-Identifier: MIT */
/*
 * How far the trial of a model's batches has come (server/daemon/serving/proving.h), and when it
 * goes on. A trial consists of tries. The first one runs as soon as the model has been loaded. If
 * it has not had the time to prove everything, later tries go on while the device is idle, at first
 * soon and then more and more rarely as long as they prove nothing. If many in a row have proven
 * nothing, the device may never be idle; then a try insists: it proves one number of rows beside
 * the calls.
 */
#ifndef PTED_SERVER_MODEL_MODEL_TRIAL_H
#define PTED_SERVER_MODEL_MODEL_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "runtime/program/proven.h"

/* Between two tries: after one that has proven something or before one that insists, and at most.
 */
#define MODEL_TRIAL_PAUSE_MS_MIN 250
#define MODEL_TRIAL_PAUSE_MS_MAX 32000
/* Tries in a row that have proven nothing, until one insists: 32 s. */
#define MODEL_TRIAL_VAIN_MAX 7

struct model_trial {
    bool is_open; /* there is something left to try */
    uint32_t tries;
    uint64_t late_count;     /* tries that have ended for want of time */
    uint32_t vain;           /* of these, the last ones that have proven nothing */
    uint64_t due_ms;         /* when the next one may begin, on the clock of the loop */
    struct rt_proven proven; /* so far, by this process or by earlier ones */
    uint64_t key;            /* where it is kept, see rt_proven_find(); with |is_kept| */
    bool is_kept;
    bool was_kept; /* an earlier start has proven all of it */
    /* What the settings allow of that: */
    int64_t rows;       /* that may run as one; at least 1 */
    int64_t first_rows; /* of these, the number to begin with */
    int64_t tokens;     /* of one answer that may run as one; at least 1 */
    int64_t mixed_rows; /* with rows of siblings (runtime/call/siblings.h) among them; at least 1 */
    bool are_mixed;     /* there is nothing left to try of that */
};

void model_trial_init(struct model_trial *trial, bool is_open);

/* May the next try run while calls want the device? */
bool model_trial_insists(const struct model_trial *trial);

/* Call when a try is over. |is_late|: for want of time. |has_proven|: it has proven something
 * new. */
void model_trial_note(struct model_trial *trial, bool is_late, bool has_proven, uint64_t now_ms);

#endif
