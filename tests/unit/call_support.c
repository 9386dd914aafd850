/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/load/load.h"
#include "tests/unit/call_support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

#define POOL_BYTES ((size_t)4 << 20)

static void require(enum status status, const char *what, const struct error *err)
{
    if (status != ST_OK) {
        fprintf(stderr, "%s: %s\n", what, err->text);
        exit(EXIT_FAILURE);
    }
}

struct rt_program *load_model(const char *model, const struct rt_load_options *options)
{
    const char *top = getenv("top_srcdir");
    char path[1024];
    struct rt_program *program;
    struct error err;
    snprintf(path, sizeof(path), "%s/tests/models/%s.pte", top ? top : ".", model);
    require(rt_load_program(path, options, &program, &err), path, &err);
    return program;
}

struct rt_program *make_pipeline(const struct rt_pipeline_desc *desc)
{
    struct rt_program *program;
    struct error err;
    require(rt_pipeline_new(desc, &program, &err), desc->name, &err);
    return program;
}

void open_two_workers(struct hal_device **out_device, struct hal_pool **out_pool)
{
    static const struct hal_device_options two = {.workers = 2};
    struct error err;
    require(hal_device_open("cpu", &two, out_device, &err), "cpu", &err);
    require(hal_pool_new(*out_device, POOL_BYTES, out_pool, &err), "cpu", &err);
}

size_t reserved_count(struct hal_pool *pool)
{
    struct hal_pool_stats stats;
    hal_pool_stats(pool, &stats);
    return stats.reserved_count;
}

void close_two_workers(struct hal_device *device, struct hal_pool *pool)
{
    must(reserved_count(pool) == 0);
    hal_pool_free(pool);
    hal_device_unref(device);
}

struct rt_invocation *begin_call(struct rt_method *method, struct hal_pool *pool,
                                 struct rt_state *state, const struct input *inputs, uint32_t count)
{
    const char *name = rt_method_name(method);
    struct rt_invocation *call;
    struct error err;
    require(rt_invocation_new(method, pool, &call, &err), name, &err);
    if (state) {
        rt_invocation_set_state(call, state);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct input *input = &inputs[i];
        void *ptr;
        size_t bytes = 0;
        require(shape_bytes(&input->shape, input->dtype, &bytes, &err), name, &err);
        require(rt_invocation_input(call, i, input->dtype, &input->shape, &ptr, &err), name, &err);
        memcpy(ptr, input->data, bytes);
    }
    return call;
}

void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    struct done *done = arg;
    (void)invocation;
    pthread_mutex_lock(&done->mutex);
    done->is_done = true;
    done->status = status;
    pthread_cond_signal(&done->changed);
    pthread_mutex_unlock(&done->mutex);
}

enum status await_done(struct done *done)
{
    pthread_mutex_lock(&done->mutex);
    while (!done->is_done) {
        pthread_cond_wait(&done->changed, &done->mutex);
    }
    pthread_mutex_unlock(&done->mutex);
    return done->status;
}

enum status submit_and_wait(struct rt_invocation *invocation, bool is_cancelled)
{
    struct done done = DONE_INIT;
    rt_invocation_submit(invocation, HAL_CALLER_BUSY, on_done, &done);
    if (is_cancelled) {
        rt_invocation_cancel(invocation);
    }
    return await_done(&done);
}
