/* SPDX-License-Identifier: MIT */
/*
 * Speculative steps of one sequence: a call with the inputs of several steps that follow each
 * other, for a caller that has guessed the inputs of all but the first. The products read the
 * weights once for all steps, and each step gives the bits that it gives alone. Afterwards the
 * caller keeps as many steps as it has guessed right. The rows that the other steps have written
 * stay behind the position of the next call. Nobody reads them, and they are written again.
 *
 * That is right only for mutable buffers with a row for each position (rt_method_is_positional()),
 * and only if the rows are written at the position itself: not for rings, windows and recurrent
 * states. Other methods are refused with the reason. Whether the bits are the same is found out by
 * running the steps both ways, as for steps of several sequences (runtime/call/steps.h).
 */
#ifndef PTED_RUNTIME_CALL_SPECULATION_H
#define PTED_RUNTIME_CALL_SPECULATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct hal_pool;
struct rt_invocation;
struct rt_method;
struct rt_pace;

/* Steps of a call, at most. */
#define RT_SPECULATION_STEPS_MAX 8

/*
 * Call after rt_batch_prove() of |method|, which has states: how many steps, up to |steps_max|,
 * give the same bits as one by one. |*io_steps| and the status are like those of rt_batch_prove().
 * Waits for the device.
 */
MUST_CHECK enum status rt_speculation_prove(struct rt_method *method, struct hal_pool *pool,
                                            const struct rt_pace *pace, int64_t steps_max,
                                            int64_t *io_steps, struct error *err);

/* Returns the last position that a call of several proven steps may have; later ones run alone. */
int64_t rt_speculation_position_max(const struct rt_method *method);

/* Measures the time of a call with 1, 2, ... |steps| steps, which are proven: |out_ns| by steps.
 * After an error the times are not known. ST_TIMEOUT: see |pace|. */
MUST_CHECK enum status rt_speculation_measure(struct rt_method *method, struct hal_pool *pool,
                                              const struct rt_pace *pace, uint32_t steps,
                                              uint64_t *out_ns, struct error *err);

/*
 * Makes a call of |steps| proven steps, at least 2. Its input i * inputs + j is input j of step i,
 * and its result i * results + j is result j, where the method has so many. The caller gives all
 * inputs and the state, and calls rt_speculation_ready() before the call is planned. Otherwise it
 * is a call like any other; but it is not joined with others. Any thread.
 */
MUST_CHECK enum status rt_speculation_new(struct rt_method *method, struct hal_pool *pool,
                                          uint32_t steps, struct rt_invocation **out_invocation,
                                          struct error *err);

/* Call when all inputs are there. ST_UNSUPPORTED: the last step is behind the last position at
 * which steps can be joined. The positions follow each other (asserted). */
MUST_CHECK enum status rt_speculation_ready(struct rt_method *method,
                                            struct rt_invocation *invocation, struct error *err);

#endif
