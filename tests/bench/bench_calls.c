/* SPDX-License-Identifier: MIT */
/*
 * What a call costs beside its kernels: one step of a sequence, and the plan for dims that have not
 * been seen.
 *
 * usage: bench_calls FILE...; for each file's default method prints
 *   steps FILE: us of the fastest step, of all in the mean, plans; 100 steps of one sequence, dims
 *     that vary 1, an i64 of one element the step's number
 *   plans FILE: us of planning and of finding that plan again, the fastest of several; dims that
 *     vary 2, 3, ... for methods where one does
 */
#include "config.h"

#include <inttypes.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/invocation.h"
#include "runtime/method.h"
#include "runtime/program.h"
#include "runtime/state.h"

#define STEPS 100
#define NEW_DIMS 24
#define RING_BYTES ((size_t)1 << 30)

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    if (status != ST_OK) {
        fprintf(stderr, "bench_calls: %s\n", rt_invocation_error(invocation)->text);
        exit(EXIT_FAILURE);
    }
    must(sem_post(arg) == 0);
}

/* Inputs of zeros; dims that vary are |dim|, i64s of one element |number|. */
static enum status give_inputs(struct rt_invocation *invocation, struct rt_method *method,
                               int64_t dim, int64_t number, struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        struct shape shape = io->shape;
        size_t bytes;
        void *ptr;
        if (io->kind == RT_IO_INT && !io->is_fixed) {
            TRY(rt_invocation_int(invocation, i, number, err));
        }
        if (io->kind != RT_IO_TENSOR) {
            continue; /* a fixed scalar may be missing */
        }
        for (uint8_t d = 0; d < shape.rank; d++) {
            bool varies = io->dynamic_dims >> d & 1;
            shape.dims[d] = varies && dim < shape.dims[d] ? dim : shape.dims[d];
        }
        TRY(shape_bytes(&shape, io->dtype, &bytes, err));
        TRY(rt_invocation_input(invocation, i, io->dtype, &shape, &ptr, err));
        memset(ptr, 0, bytes);
        if (io->dtype == DT_I64 && bytes == sizeof(number) && !io->dynamic_dims) {
            memcpy(ptr, &number, sizeof(number));
        }
    }
    return ST_OK;
}

static enum status step(struct rt_method *method, struct hal_pool *pool, struct rt_state *state,
                        int64_t number, double *out_us, struct error *err)
{
    struct rt_invocation *invocation;
    sem_t done;
    double begin = now_us();
    TRY(rt_invocation_new(method, pool, &invocation, err));
    if (state) {
        rt_invocation_set_state(invocation, state);
    }
    enum status status = give_inputs(invocation, method, 1, number, err);
    if (status == ST_OK) {
        status = rt_invocation_prepare(invocation, err);
    }
    if (status == ST_OK) {
        must(sem_init(&done, 0, 0) == 0);
        rt_invocation_submit(invocation, HAL_CALLER_QUICK, on_done, &done);
        while (sem_wait(&done) != 0) {
        }
        sem_destroy(&done);
    }
    rt_invocation_free(invocation);
    *out_us = now_us() - begin;
    return status;
}

static enum status time_steps(struct rt_program *program, struct rt_method *method,
                              struct hal_pool *pool, const char *name, struct error *err)
{
    struct rt_state *state = NULL;
    double least = 1e12, sum = 0, us = 0;
    enum status status = ST_OK;
    if (rt_program_state_bytes(program) > 0) {
        TRY(rt_state_new(program, &state, err));
    }
    for (int64_t i = 0; status == ST_OK && i < STEPS; i++) {
        status = step(method, pool, state, i, &us, err);
        least = us < least ? us : least;
        sum += us;
    }
    rt_state_unref(state);
    TRY(status);
    printf("steps %s: %.0f us at least, %.0f us in the mean, %u plans\n", name, least, sum / STEPS,
           rt_method_plan_count(method));
    return ST_OK;
}

static bool has_dynamic_dims(const struct rt_method *method)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        if (rt_method_input(method, i)->dynamic_dims) {
            return true;
        }
    }
    return false;
}

static enum status time_plan(struct rt_method *method, struct hal_pool *pool, int64_t dim,
                             double *least, struct error *err)
{
    struct rt_invocation *invocation;
    TRY(rt_invocation_new(method, pool, &invocation, err));
    enum status status = give_inputs(invocation, method, dim, 0, err);
    double begin = now_us();
    if (status == ST_OK) {
        status = rt_invocation_plan(invocation, err);
    }
    double us = now_us() - begin;
    *least = us < *least ? us : *least;
    rt_invocation_free(invocation);
    return status;
}

static enum status time_plans(struct rt_method *method, struct hal_pool *pool, const char *name,
                              struct error *err)
{
    double fresh = 1e12, known = 1e12;
    if (!has_dynamic_dims(method)) {
        return ST_OK;
    }
    for (int64_t dim = 2; dim < 2 + NEW_DIMS; dim++) {
        TRY(time_plan(method, pool, dim, &fresh, err));
        for (int i = 0; i < 10; i++) {
            TRY(time_plan(method, pool, dim, &known, err));
        }
    }
    printf("plans %s: %.0f us new, %.1f us known\n", name, fresh, known);
    return ST_OK;
}

static enum status time_file(const char *path, struct hal_device *device, struct error *err)
{
    const struct rt_program_options options = {.device = device};
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    struct rt_program *program;
    struct hal_pool *pool;
    TRY(rt_program_load(path, &options, &program, err));
    must(hal_pool_new(device, RING_BYTES, &pool, NULL) == ST_OK);
    struct rt_method *method = rt_program_default_method(program);
    enum status status = !method ? error_set(err, ST_NOT_FOUND, "no default method")
                         : rt_method_failure(method)
                             ? error_set(err, ST_UNSUPPORTED, "%s", rt_method_failure(method)->text)
                             : time_steps(program, method, pool, name, err);
    if (status == ST_OK) {
        status = time_plans(method, pool, name, err);
    }
    hal_pool_free(pool);
    rt_program_unref(program);
    return status;
}

int main(int argc, char *argv[])
{
    const struct hal_device_options options = {.workers = 1};
    struct hal_device *device;
    struct error err;
    must(hal_device_open("cpu", &options, &device, NULL) == ST_OK);
    for (int i = 1; i < argc; i++) {
        if (time_file(argv[i], device, &err) != ST_OK) {
            fprintf(stderr, "bench_calls: %s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
    }
    hal_device_unref(device);
    return EXIT_SUCCESS;
}
