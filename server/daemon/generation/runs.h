/* SPDX-License-Identifier: MIT */
/* Common to requests of many calls: the model of those that name none, the times of these calls,
 * and a sequence that no client can name. */
#ifndef PTED_SERVER_DAEMON_GENERATION_RUNS_H
#define PTED_SERVER_DAEMON_GENERATION_RUNS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/sched/sched.h"
#include "server/daemon/infer/infer.h"

struct infer_call;
struct model;
struct infer;

/*
 * Finds the model of a request that names none: the only one that |can_answer|, whose name goes to
 * |out_name|. ST_INVALID: there are several; ST_NOT_FOUND: none; |what|, such as "language
 * model", is for this message. Files that are only listed count if they were loaded once. Any
 * thread.
 */
MUST_CHECK enum status runs_find_only(struct infer *infer,
                                      bool (*can_answer)(const struct model *model),
                                      const char *what, char out_name[MODEL_NAME_MAX + 1],
                                      struct error *err);

/* Says that a request has to name one of several models. Returns ST_INVALID. */
enum status runs_fail_several(struct error *err);

/* parse() of struct infer_ops: the codec, which is a row of route.def, reads all. */
MUST_CHECK enum status runs_parse(struct infer *infer, const struct oip_body *parts,
                                  struct error *err);

/* Of all calls so far. The loop's. */
struct runs_times {
    uint64_t queued_ns; /* when the first one was submitted; 0: none has run */
    uint64_t waited_ns, computed_ns;
};

/* Call when a call is over, and |job| has its times. */
void runs_add_times(struct runs_times *times, const struct rt_sched_job *job);

/* Gives |job| the times of all calls as if there were only one, for statistics and logs. */
void runs_join_times(const struct runs_times *times, struct rt_sched_job *job);

/* Opens the sequence of the request, unless it is open or the model has no state. |kind| is
 * "generation" or "transcription". */
MUST_CHECK enum status runs_open_sequence(struct infer *infer, const char *kind, struct error *err);

/* Makes the call begin with the state of the sequence, if there is one. */
void runs_give_state(struct infer_call *call);

/* Call on any thread: the sequence, if there is one, is not left in the table. */
void runs_end_sequence(struct infer_call *call);

#endif
