/* SPDX-License-Identifier: MIT */
/*
 * Several calls of one method as one. The inputs are put behind each other along dim 0, the method
 * runs once, and each call gets its rows of the results.
 *
 * A method with mutable buffers is batched by step (runtime/call/steps.h): its smallest calls, each
 * with a state of its own, are rows of one graph. They are copied nowhere, and fail alone.
 *
 * Other methods must have no control flow. Each of their input
 * and result tensors must have the same dynamic size as dim 0; or the method was exported for one
 * row, and the operators' batch rules can make dim 0 dynamic. The method must also have been seen
 * to give the same bits either way: rt_batch_prove().
 */
#ifndef PTED_RUNTIME_CALL_BATCH_H
#define PTED_RUNTIME_CALL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/call/invocation.h"
#include "runtime/call/pace.h"

struct hal_pool;
struct rt_method;

#define RT_BATCH_CALLS_MAX 64

/*
 * Finds the rows that |method| takes by its form, more than 1, or ST_UNSUPPORTED. A method that was
 * exported for one row gets its form for several. To be called once, before the first call of the
 * method.
 */
MUST_CHECK enum status rt_batch_open(struct rt_method *method, int64_t *out_rows_max,
                                     struct error *err);

/* Do calls have states? Then a batch joins steps of several sequences. */
bool rt_batch_has_states(const struct rt_method *method);

/*
 * Runs samples apart and together, one row more than |*io_rows|, two more and so on up to
 * |rows_max|, at most the rows of the form, and compares the results bit for bit. |*io_rows| is the
 * number of rows that may be joined: at the beginning those of earlier tries, or 1. ST_OK:
 * |rows_max| rows may be joined. ST_TIMEOUT: this try is over, see |pace|; another one may prove
 * more. Any other status says why no more rows may be joined, and is final.
 *
 * Other callers may use the method meanwhile. Waits for the device, so it must not be called from a
 * callback. One thread at a time.
 */
MUST_CHECK enum status rt_batch_prove(struct rt_method *method, struct hal_pool *pool,
                                      const struct rt_pace *pace, int64_t rows_max,
                                      int64_t *io_rows, struct error *err);

/*
 * Finds how many of the |rows| proven rows are worth joining. It measures rows, rows / 2, ... and
 * takes the number of calls of one row that need less time as one than side by side, and the least
 * time for each row, unless a larger number needs hardly more. 1: none. ST_TIMEOUT: see |pace|;
 * nothing is known then. Waits for the device.
 */
MUST_CHECK enum status rt_batch_measure(struct rt_method *method, struct hal_pool *pool,
                                        const struct rt_pace *pace, int64_t rows, int64_t *out_rows,
                                        struct error *err);

/*
 * Returns the greatest number of rows of a call: the upper bound of dim 0, if it has the same
 * dynamic size in every input and result tensor and no other dim has that size; 0 for all other
 * methods.
 */
int64_t rt_batch_size_max(const struct rt_method *method);

/*
 * Returns the rows of a planned call. 0: the call cannot be joined, because its inputs have to be
 * converted, because it waits for another call or another call waits for it, or because its other
 * sizes are not the upper bounds, for which joining was proven.
 */
int64_t rt_batch_rows(const struct rt_invocation *invocation);

/* Can both be joined? They can if all their sizes except the rows are the same. */
bool rt_batch_fits(const struct rt_invocation *a, const struct rt_invocation *b);

/*
 * Submits |count| planned calls as one: at most RT_BATCH_CALLS_MAX, all with rows, which fit each
 * other. Each ends as if it had been submitted alone: |done| is called for each, with its entry of
 * |args|. If the joined call fails each call is run alone, so that none fails because of another's
 * data. ST_EXHAUSTED: there is no memory now for all of them as one; nothing was submitted, and
 * |done| is not called; calls that were prepared still are. Does not malloc after warm-up.
 */
MUST_CHECK enum status rt_batch_submit(struct rt_invocation *const *parts, void *const *args,
                                       uint32_t count, rt_invocation_done_f *done,
                                       struct error *err);

/*
 * Gives up |invocation|, which was submitted alone or with others. True: it has left the others,
 * which run on; it is over, done() is not called for it, and it may be freed. False: done() is
 * called soon, with ST_CANCELLED unless it was too late; the last call of a batch cuts the batch
 * short. Any thread, at any time from just before the submission until done() has returned; the
 * caller sees to it that done() does not return meanwhile.
 */
bool rt_batch_leave(struct rt_invocation *invocation);

/*
 * Gives up |invocation| and all that were submitted as one with it: done() is called soon for each,
 * with ST_CANCELLED unless it was too late. Like rt_batch_leave() otherwise.
 */
void rt_batch_cut(struct rt_invocation *invocation);

#endif
