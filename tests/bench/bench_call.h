/* SPDX-License-Identifier: MIT */
/* The default method of a file, called with inputs that nobody has to provide. */
#ifndef PTED_TESTS_BENCH_BENCH_CALL_H
#define PTED_TESTS_BENCH_BENCH_CALL_H

#include <stdint.h>

#include "hal/queue.h"
#include "runtime/call/invocation.h"

struct hal_device;
struct hal_pool;
struct rt_state;

struct bench_model {
    const char *name;           /* the path's last part */
    struct rt_program *program; /* owned, like |pool| */
    struct hal_pool *pool;
    struct rt_method *method;
};

MUST_CHECK enum status bench_model_open(const char *path, struct hal_device *device,
                                        struct bench_model *out_model, struct error *err);
void bench_model_close(struct bench_model *model);

/* Inputs are zeros. */
struct bench_call {
    int64_t dim;            /* of dims that vary, up to their bounds */
    int64_t number;         /* of ints, and of i64s of one element */
    struct rt_state *state; /* NULL: without one */
    enum hal_caller caller;
};

/* An invocation with its inputs; the caller frees it. */
MUST_CHECK enum status bench_call_new(const struct bench_model *model,
                                      const struct bench_call *call,
                                      struct rt_invocation **out_invocation, struct error *err);

/* All of a call. One that runs and fails ends the process. */
MUST_CHECK enum status bench_call_run(const struct bench_model *model,
                                      const struct bench_call *call, struct error *err);

#endif
