/* SPDX-License-Identifier: MIT */
/* Functions for tests of calls: a device and a pool, programs and pipelines, a call's inputs, its
 * submission and its end. An unexpected failure ends the test. */
#ifndef PTED_TESTS_UNIT_CALL_SUPPORT_H
#define PTED_TESTS_UNIT_CALL_SUPPORT_H

#include <pthread.h>

#include "base/dtype.h"
#include "base/shape.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/pipeline/pipeline.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"

/* The program |model| of tests/models. */
struct rt_program *load_model(const char *model, const struct rt_load_options *options);

/* Sources of a step: an input of the pipeline, and a result of an earlier step. */
#define IN(n)                                                                                      \
    {                                                                                              \
        RT_SOURCE_INPUT, 0, n                                                                      \
    }
#define FROM(step, n)                                                                              \
    {                                                                                              \
        RT_SOURCE_STEP, step, n                                                                    \
    }

struct rt_program *make_pipeline(const struct rt_pipeline_desc *desc);

/* A CPU device of two workers and a small pool on it. */
void open_two_workers(struct hal_device **out_device, struct hal_pool **out_pool);
/* Closes both. No range of the pool may be in use. */
void close_two_workers(struct hal_device *device, struct hal_pool *pool);

/* Ranges of the pool that are in use. */
size_t reserved_count(struct hal_pool *pool);

struct input {
    enum dtype dtype;
    struct shape shape;
    const void *data;
};

/* Makes a call with |state|, which may be NULL, and its inputs. The caller prepares it. */
struct rt_invocation *begin_call(struct rt_method *method, struct hal_pool *pool,
                                 struct rt_state *state, const struct input *inputs,
                                 uint32_t count);

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

/* Submits to a worker and waits for the end; may cancel at once. */
enum status submit_and_wait(struct rt_invocation *invocation, bool is_cancelled);

#endif
