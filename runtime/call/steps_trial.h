/* SPDX-License-Identifier: MIT */
/*
 * Calls that find out whether steps give the same bits in another way, and how long that takes:
 * steps of several sequences (steps_proof.c), steps of one sequence (speculation_proof.c). Inputs
 * are numbers that every type can represent. Waits for the device; one thread.
 */
#ifndef PTED_RUNTIME_CALL_STEPS_TRIAL_H
#define PTED_RUNTIME_CALL_STEPS_TRIAL_H

#include "runtime/call/pace.h"
#include "runtime/call/steps.h"

uint64_t rt_trial_now_ns(void);

/* Fails with ST_TIMEOUT: the time for the trial was over. */
enum status rt_trial_fail_late(struct error *err);

/* May the next run begin? Otherwise ST_TIMEOUT. */
MUST_CHECK enum status rt_trial_check(const struct rt_pace *pace, struct error *err);

/* Does the same for the next number of rows, after |found| numbers that this try has proven since
 * |begin_ns|. */
MUST_CHECK enum status rt_trial_check_time(const struct rt_pace *pace, uint64_t begin_ns,
                                           int64_t found, struct error *err);

/* Gives the inputs of step |number| of sequence |row|, from input |first| of the call on:
 * positions, and whatever may be one, count the steps. */
MUST_CHECK enum status rt_trial_give_inputs(const struct rt_step *step, struct rt_invocation *inv,
                                            uint32_t first, uint32_t row, uint32_t number,
                                            struct error *err);

/* That step as a planned call; the caller frees it. */
MUST_CHECK enum status rt_trial_new_call(struct rt_method *method, struct hal_pool *pool,
                                         struct rt_state *state, uint32_t row, uint32_t number,
                                         struct rt_invocation **out_call, struct error *err);

/* Submits the planned calls, as one or side by side, and waits for all. */
MUST_CHECK enum status rt_trial_run(struct rt_invocation *const *calls, uint32_t count,
                                    bool is_joined, uint64_t *out_ns, struct error *err);

#endif
