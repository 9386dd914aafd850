/* SPDX-License-Identifier: MIT */
/*
 * One call of a method, from its first input to its last result byte.
 *
 *     rt_invocation_new      take one (recycled by the method: no malloc after warm-up)
 *     rt_invocation_input    for each tensor: memory of the exact size to decode into
 *       or _bind_input       memory that exists already, in place where that is possible
 *     rt_invocation_int, _float, _bool, _string  for each scalar that the caller gives
 *     rt_invocation_bind_result  for results that are to be written into the caller's own memory
 *     rt_invocation_after    for each timepoint that it has to wait for on the device
 *     rt_invocation_plan     shapes, plan: every refusal but lack of memory happens here or before
 *     rt_invocation_prepare  memory for results and while it runs
 *     rt_invocation_submit   queued on the device; |done| is called once
 *     rt_invocation_error    after |done| with a failure: why
 *       and _culprit         which element of which input is to blame, if one is
 *     rt_invocation_result   after |done|, until the invocation is freed
 *     rt_invocation_free
 *
 * An invocation belongs to one thread at a time, which need not be the same for every step. Memory
 * comes from the caller's pool and goes back to it when the invocation is freed. ST_EXHAUSTED means
 * that the pool is full now and the caller may try again later.
 */
#ifndef PTED_RUNTIME_CALL_INVOCATION_H
#define PTED_RUNTIME_CALL_INVOCATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/shape.h"
#include "base/status.h"
#include "hal/queue.h"
#include "runtime/program/callable.h"

struct hal_buffer;
struct hal_pool;
struct hal_timepoint;
struct rt_buffer_desc;
struct rt_invocation;
struct rt_method;
struct rt_state;

/* A result. Tensors are packed; |bytes| is borrowed from the invocation. */
struct rt_result {
    struct shape shape;
    const uint8_t *order; /* of the dims in memory, outermost first; NULL: row-major */
    struct span bytes;    /* a tensor's or a string's content; a scalar's I64, F64 or BOOL */
};

/*
 * Called when the work has completed or failed: from a worker, or from inside
 * rt_invocation_submit() if its caller did the work. Must not block. It may free the invocation,
 * and with it the program and the device.
 */
typedef void rt_invocation_done_f(struct rt_invocation *invocation, enum status status, void *arg);

/* |method| has no failure; |pool| outlives the invocation. The invocation keeps
 * its program alive. */
MUST_CHECK enum status rt_invocation_new(struct rt_method *method, struct hal_pool *pool,
                                         struct rt_invocation **out_invocation, struct error *err);
void rt_invocation_free(struct rt_invocation *invocation); /* not while submitted; NULL is fine */

/* Call before prepare: memory for the rest of the call comes from |pool|, which uses the same
 * memory as the pool of its inputs. A pipeline uses the pool of its inputs for everything, except
 * that a step that runs as one with other calls does so in |pool|: they may outlive the
 * pipeline. */
void rt_invocation_run_in(struct rt_invocation *invocation, struct hal_pool *pool);

/* Does the same for a call that is counted by itself: small tensors need not be memory of a pool,
 * and where the last such call had tensors of the same shapes, they are found again with their
 * plan. On a device that is not the host nothing changes. */
MUST_CHECK enum status rt_invocation_new_small(struct rt_method *method, struct hal_pool *pool,
                                               struct rt_invocation **out_invocation,
                                               struct error *err);

/*
 * Makes the call read and advance |state|, which is of the method's program. Once, before prepare.
 * The invocation takes its own reference and gives it back when it is freed.
 */
void rt_invocation_set_state(struct rt_invocation *invocation, struct rt_state *state);

struct rt_method *rt_invocation_method(const struct rt_invocation *invocation);

/* Tells that the caller of |invocation| knows its inputs as arguments: messages use their paths,
 * such as kwargs["mask"], instead of their names. */
void rt_invocation_say_paths(struct rt_invocation *invocation);

/*
 * Checks |dtype| and |shape| against input |index| (ST_INVALID says what was expected and what was
 * given; the caller puts the input's name in front) and gives memory of that size: row-major,
 * aligned, uninitialised; NULL for 0 bytes. Once for each input.
 */
MUST_CHECK enum status rt_invocation_input(struct rt_invocation *invocation, uint32_t index,
                                           enum dtype dtype, const struct shape *shape,
                                           void **out_ptr, struct error *err);

/* Returns the shape of input |index|, a tensor that the call has had from its filling on and that
 * is no scalar; else NULL. */
const struct shape *rt_invocation_input_shape(const struct rt_invocation *invocation,
                                              uint32_t index);

/*
 * Does the same for a tensor that already is in memory: packed, permuted or strided, aligned or
 * not, of this device or of another. The oracle (runtime/program/oracle.h) decides: the tensor is
 * used in place, or the device converts it before the method runs, or ST_INVALID. The invocation
 * takes its own reference.
 */
MUST_CHECK enum status rt_invocation_bind_input(struct rt_invocation *invocation, uint32_t index,
                                                const struct rt_buffer_desc *given,
                                                struct error *err);

/*
 * Does the same for a tensor that is not in memory of a device yet: gives |bytes| of memory, which
 * the caller writes before submit. |given|, which has no buffer, describes the tensor within that
 * memory.
 */
MUST_CHECK enum status rt_invocation_stage_input(struct rt_invocation *invocation, uint32_t index,
                                                 const struct rt_buffer_desc *given, size_t bytes,
                                                 void **out_ptr, struct error *err);

/*
 * Has result |index|, a tensor, written to |buffer| from |offset| on. Its size is known after
 * prepare, which refuses too little room. The buffer is writable memory of the method's device,
 * aligned for the element type, and nothing else in the call uses it. The invocation takes its own
 * reference.
 */
MUST_CHECK enum status rt_invocation_bind_result(struct rt_invocation *invocation, uint32_t index,
                                                 struct hal_buffer *buffer, size_t offset,
                                                 struct error *err);

/* Has result |index| in the order of memory that its method prefers for it (struct rt_io), instead
 * of row-major. Before plan and prepare. */
void rt_invocation_prefer_order(struct rt_invocation *invocation, uint32_t index);

/* Takes that memory away from all results. Before prepare. */
void rt_invocation_unbind_results(struct rt_invocation *invocation);

/* Scalars. A fixed input takes only its own value; float compares within 1e-5 of it. */
MUST_CHECK enum status rt_invocation_int(struct rt_invocation *invocation, uint32_t index,
                                         int64_t value, struct error *err);
MUST_CHECK enum status rt_invocation_float(struct rt_invocation *invocation, uint32_t index,
                                           double value, struct error *err);
MUST_CHECK enum status rt_invocation_bool(struct rt_invocation *invocation, uint32_t index,
                                          bool value, struct error *err);
MUST_CHECK enum status rt_invocation_string(struct rt_invocation *invocation, uint32_t index,
                                            struct span value, struct error *err);

/*
 * Does the first half of prepare, for a call that waits before it gets its memory: all checks, and
 * the plan. Fixed scalars may be missing; a missing tensor is ST_INVALID by name. The steps of a
 * pipeline use each other's results in place, so a pipeline gets its memory here already.
 */
MUST_CHECK enum status rt_invocation_plan(struct rt_invocation *invocation,
                                          enum rt_prepare_mode mode, struct error *err);

/*
 * Does the second half, preceded by the first unless that has been called: memory for the results
 * and for the run. After rt_invocation_plan() it takes little time and fails only for lack of
 * memory. The caller may try again after a failure, but has to bind the memory of results again.
 */
MUST_CHECK enum status rt_invocation_prepare(struct rt_invocation *invocation,
                                             enum rt_prepare_mode mode, struct error *err);

/* Returns the bytes of pool memory that the invocation holds. */
size_t rt_invocation_bytes(const struct rt_invocation *invocation);

/*
 * Call before prepare, or after it has failed: the least number of bytes of the pool that the call
 * takes, including those that it holds, by the sizes that are known before it runs; exact once
 * there is a plan. A call whose demand exceeds the pool never fits.
 */
size_t rt_invocation_demand(const struct rt_invocation *invocation);

/* Does the same for the inputs alone: those that the invocation holds, and the last one that there
 * was no memory for. */
size_t rt_invocation_input_demand(const struct rt_invocation *invocation);

/* Starts the call once |timepoint| is reached; it fails with its status if that fails. Before
 * submit, at most HAL_TIMEPOINTS_MAX - 1 times. Keeps a reference to the semaphore until done. */
void rt_invocation_after(struct rt_invocation *invocation, const struct hal_timepoint *timepoint);

/*
 * For a prepared call: the timepoint that is reached when its results are there and that fails if
 * the call fails. Other calls may wait for it before either has been submitted. The semaphore is
 * borrowed: a call that waits takes a reference before submit.
 */
MUST_CHECK enum status rt_invocation_timepoint(struct rt_invocation *invocation,
                                               struct hal_timepoint *out_timepoint,
                                               struct error *err);

/* |caller|: how much of the work this thread does before the function returns. */
void rt_invocation_submit(struct rt_invocation *invocation, enum hal_caller caller,
                          rt_invocation_done_f *done, void *arg);

/*
 * Call on any thread, at any time between submit and done: the rest is not run, and done gets
 * ST_CANCELLED.
 */
void rt_invocation_cancel(struct rt_invocation *invocation);

/* Returns why |done| got a status other than ST_OK, with what a kernel reported about the data
 * ("gather: an index is out of range: got 5, expected 0 to 4"). Borrowed from the invocation. */
const struct error *rt_invocation_error(const struct rt_invocation *invocation);

/* Call after done: |pool| holds the memory of the results from now on. ST_EXHAUSTED: it may not
 * hold all of it, and holds only a part. */
MUST_CHECK enum status rt_invocation_move_results(struct rt_invocation *invocation,
                                                  struct hal_pool *pool, struct error *err);

/* The element of an input that such an error is about; the caller names it in its own terms. */
struct rt_culprit {
    bool is_known;        /* false: the error is not about an element that the caller gave */
    uint32_t input;       /* raw index */
    struct shape element; /* its indices */
};

const struct rt_culprit *rt_invocation_culprit(const struct rt_invocation *invocation);

/* "[0][2]"; nothing for a tensor of one element without dims. */
#define RT_CULPRIT_TEXT_MAX 160
const char *rt_culprit_print(const struct rt_culprit *culprit, char text[RT_CULPRIT_TEXT_MAX]);

/* Known after prepare (shape, and values that do not depend on tensors); bytes are
 * valid after done. */
const struct rt_result *rt_invocation_result(const struct rt_invocation *invocation,
                                             uint32_t index);

#endif
