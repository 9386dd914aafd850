/* SPDX-License-Identifier: MIT */
/* The profile of a request with ?profile=1. */
#ifndef PTED_SERVER_DAEMON_INFER_INFER_PROFILE_H
#define PTED_SERVER_DAEMON_INFER_INFER_PROFILE_H

#include "base/status.h"

struct infer;

/*
 * Prepares to measure the call of the request. One call at a time, because a profile takes memory;
 * ST_EXHAUSTED: another one is under way. ST_UNSUPPORTED: the device, or the kind of the method,
 * has no profiles.
 */
MUST_CHECK enum status infer_profile_begin(struct infer *infer, struct error *err);

/* Appends the member "profile" to the answer, if the call was measured. */
MUST_CHECK enum status infer_profile_print(struct infer *infer, struct error *err);

/* Call when the call is over, and its invocation is freed. */
void infer_profile_end(struct infer *infer);

#endif
