/* SPDX-License-Identifier: MIT */
/* The sequence that a call belongs to (runtime/sched/sequence.h). */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_SEQUENCE_H
#define PTED_SERVER_DAEMON_INFER_INFER_SEQUENCE_H

#include <stdbool.h>

#include "base/status.h"

struct infer_call;
struct model;
struct infer;

/*
 * Opens the sequence that the call's parameters name, if the model has state: its invocation gets
 * the state. Called when the rest of the call is known to be right, so that a wrong call starts no
 * sequence.
 */
MUST_CHECK enum status infer_sequence_open(struct infer *infer, struct infer_call *call,
                                           struct error *err);

/*
 * Between parsing and decoding: a request that goes on with a sequence is for the generation of the
 * model in which the sequence is open. True: |call| had another generation, so it has to be parsed
 * again for this one. |out_newest| receives the reference to the model that the call had. Any
 * thread.
 */
MUST_CHECK bool infer_sequence_find_generation(struct infer *infer, struct infer_call *call,
                                               struct model **out_newest);

/* Call when the call has run; if it was the last of its sequence, the sequence ends. */
void infer_sequence_end(const struct infer_call *call);

/* Releases the sequence, if there is one. */
void infer_sequence_close(struct infer *infer, struct infer_call *call);

#endif
