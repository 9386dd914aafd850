/* SPDX-License-Identifier: MIT */
/*
 * Several calls of one method as one: the inputs are put behind each other along dim 0, the method
 * runs once, and each call gets its rows of the results. Only for methods without mutable buffers
 * and control flow of which every tensor that goes in or comes out has the same dynamic size as its
 * dim 0, or, where they were exported for one row, has one that the operators' batch rules can make
 * dynamic; and that have been seen to give the same bits either way: rt_batch_prove().
 */
#ifndef PTED_RUNTIME_CALL_BATCH_H
#define PTED_RUNTIME_CALL_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "runtime/call/invocation.h"

struct hal_pool;
struct rt_method;

#define RT_BATCH_CALLS_MAX 64

/*
 * The rows that |method| takes by its form, more than 1, or ST_UNSUPPORTED; a method exported for
 * one row gets its form for several. Once, before anybody calls the method.
 */
MUST_CHECK enum status rt_batch_open(struct rt_method *method, int64_t *out_rows_max,
                                     struct error *err);

/*
 * Runs samples apart and together, 2 rows, 3 rows and so on up to |rows_max|, which is at most what
 * the form takes, and compares bit for bit; returns how many may go in together. Stops early after
 * |budget_ns|, with what it has seen. 1 when that is none: |why_not| says why. Others may call the
 * method meanwhile. Waits for the device: not from a callback.
 */
int64_t rt_batch_prove(struct rt_method *method, struct hal_pool *pool, int64_t rows_max,
                       uint64_t budget_ns, struct error *why_not);

/*
 * How many of the |rows| that were proven are worth joining: of rows, rows / 2, ... the number of
 * calls of one row that take less time as one than side by side, and the least for each row, unless
 * a larger number takes hardly more; 1: none, |why_not| says what was measured. Waits for the
 * device.
 */
int64_t rt_batch_measure(struct rt_method *method, struct hal_pool *pool, int64_t rows,
                         struct error *why_not);

/*
 * Rows that a call may have: the upper bound of dim 0 where it has the same dynamic size in every
 * tensor that goes in or comes out, and nothing else has that size; 0 of all other methods.
 */
int64_t rt_batch_size_max(const struct rt_method *method);

/*
 * The rows of a planned call; 0: it cannot be joined, because its inputs have to be converted, it
 * waits for another one or another one waits for it, or its other sizes are not the upper bounds,
 * which are those that were proven.
 */
int64_t rt_batch_rows(const struct rt_invocation *invocation);

/* Both can be joined: are all their sizes but the rows the same? */
bool rt_batch_fits(const struct rt_invocation *a, const struct rt_invocation *b);

/*
 * Submits |count| planned calls, at most RT_BATCH_CALLS_MAX, that fit each other and all have rows,
 * as one. Each ends as if it had been submitted alone: |done| is called for each, with its argument
 * of |args|. When the joined call fails, each is run alone, so that none fails for another's data.
 * ST_EXHAUSTED: there is no memory now for all of them as one, nothing was submitted, and |done| is
 * not called. After warm-up this does not malloc.
 */
MUST_CHECK enum status rt_batch_submit(struct rt_invocation *const *parts, void *const *args,
                                       uint32_t count, rt_invocation_done_f *done,
                                       struct error *err);

/*
 * |invocation|, submitted alone or with others, is not wanted any more. True: it has left those,
 * which run on; it is over, done() is not called for it, and it may be freed. False: done() is
 * called soon, with ST_CANCELLED unless it was too late; the last of a batch cuts the batch. Any
 * thread, any time from just before the submission until done() has returned, which the caller
 * holds up meanwhile.
 */
bool rt_batch_leave(struct rt_invocation *invocation);

#endif
