/* SPDX-License-Identifier: MIT */
/* Calls the default method of a file with inputs made up here. */
#ifndef PTED_TESTS_BENCH_BENCH_CALL_H
#define PTED_TESTS_BENCH_BENCH_CALL_H

#include <stdint.h>

#include "hal/queue.h"
#include "runtime/call/invocation.h"

struct hal_device;
struct hal_pool;
struct rt_profile;
struct rt_state;

struct bench_model {
    const char *name;           /* the last part of the path */
    struct rt_program *program; /* owned, like |pool| */
    struct hal_pool *pool;
    struct rt_method *method;
};

MUST_CHECK enum status bench_model_open(const char *path, struct hal_device *device,
                                        struct bench_model *out_model, struct error *err);
void bench_model_close(struct bench_model *model);

/* Inputs are zeros. */
struct bench_call {
    int64_t dim;            /* for dims that vary, up to their bounds */
    int64_t number;         /* for ints, and for i64s with one element */
    struct rt_state *state; /* NULL: without one */
    enum hal_caller caller;
    struct rt_profile *profile; /* that the call is a part of; NULL: of none */
};

/* Makes an invocation with its inputs; the caller frees it. */
MUST_CHECK enum status bench_call_new(const struct bench_model *model,
                                      const struct bench_call *call,
                                      struct rt_invocation **out_invocation, struct error *err);

/* Runs a whole call. A call that fails ends the process. */
MUST_CHECK enum status bench_call_run(const struct bench_model *model,
                                      const struct bench_call *call, struct error *err);

#endif
