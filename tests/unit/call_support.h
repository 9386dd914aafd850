/* SPDX-License-Identifier: MIT */
/* What the tests of calls share: a device and a pool, a bundled program, submitting a call and
 * waiting for its end. */
#ifndef PTED_TESTS_UNIT_CALL_SUPPORT_H
#define PTED_TESTS_UNIT_CALL_SUPPORT_H

#include <pthread.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/invocation.h"
#include "runtime/program.h"

/* The program |model| of tests/models; the test ends in failure without it. */
struct rt_program *load_model(const char *model, const struct rt_program_options *options);

/* A CPU device of two workers and a small pool on it. */
void open_two_workers(struct hal_device **out_device, struct hal_pool **out_pool);
/* Nothing of the pool may be in use. */
void close_two_workers(struct hal_device *device, struct hal_pool *pool);

/* Ranges of the pool that are in use. */
size_t reserved_count(struct hal_pool *pool);

struct done {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done;
    enum status status;
};

#define DONE_INIT                                                                                  \
    {                                                                                              \
        .mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER                    \
    }

/* For rt_invocation_submit(), with a struct done. */
void on_done(struct rt_invocation *invocation, enum status status, void *arg);
enum status await_done(struct done *done);

/* From submit to done, on a worker; cancelled at once if so asked. */
enum status submit_and_wait(struct rt_invocation *invocation, bool is_cancelled);

#endif
