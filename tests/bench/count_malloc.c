/* SPDX-License-Identifier: MIT */
/*
 * Calls of the allocator that runtime and hal make for a request once the same request has been
 * served before: the linker leads malloc, calloc and realloc through the counters here. They count
 * all threads, so what a worker does is seen.
 *
 * usage: count_malloc FILE.pte...; prints "allocations FILE: N" for CALLS calls of each file's
 * default method, inputs of zeros at the largest shapes; fails when one of them is not 0.
 */
#include "config.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/invocation.h"
#include "runtime/program.h"

#define CALLS 100
#define WARM_UPS 4
#define RING_BYTES ((size_t)1 << 30)

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *ptr, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *ptr, size_t size);

static atomic_uint allocations;

void *__wrap_malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_calloc(count, size);
}

void *__wrap_realloc(void *ptr, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __real_realloc(ptr, size);
}

static void on_done(struct rt_invocation *invocation, enum status status, void *arg)
{
    (void)invocation;
    must(status == ST_OK);
    must(sem_post(arg) == 0);
}

static enum status give_inputs(struct rt_invocation *invocation, struct rt_method *method,
                               struct error *err)
{
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        size_t bytes;
        void *ptr;
        if (io->kind != RT_IO_TENSOR) {
            continue; /* a fixed scalar may be missing */
        }
        TRY(shape_bytes(&io->shape, io->dtype, &bytes, err));
        TRY(rt_invocation_input(invocation, i, io->dtype, &io->shape, &ptr, err));
        memset(ptr, 0, bytes);
    }
    return ST_OK;
}

static enum status call(struct rt_method *method, struct hal_pool *pool, enum hal_caller caller,
                        struct error *err)
{
    struct rt_invocation *invocation;
    sem_t done;
    TRY(rt_invocation_new(method, pool, &invocation, err));
    enum status status = give_inputs(invocation, method, err);
    if (status == ST_OK) {
        status = rt_invocation_prepare(invocation, err);
    }
    if (status == ST_OK) {
        must(sem_init(&done, 0, 0) == 0);
        rt_invocation_submit(invocation, caller, on_done, &done);
        while (sem_wait(&done) != 0) {
        }
        sem_destroy(&done);
    }
    rt_invocation_free(invocation);
    return status;
}

/* In turns handed to the workers whatever its size, if it is not small, and run here as well. */
static enum status count_calls(struct rt_method *method, struct hal_pool *pool,
                               unsigned *out_allocations, struct error *err)
{
    for (int i = 0; i < WARM_UPS; i++) {
        TRY(call(method, pool, i % 3, err));
    }
    unsigned before = atomic_load(&allocations);
    for (int i = 0; i < CALLS; i++) {
        TRY(call(method, pool, i % 3, err));
    }
    *out_allocations = atomic_load(&allocations) - before;
    return ST_OK;
}

static enum status count_file(const char *path, struct hal_device *device, unsigned *out_count,
                              struct error *err)
{
    const struct rt_program_options options = {.device = device};
    struct rt_program *program;
    struct hal_pool *pool;
    TRY(rt_program_load(path, &options, &program, err));
    must(hal_pool_new(device, RING_BYTES, &pool, NULL) == ST_OK);
    struct rt_method *method = rt_program_default_method(program);
    enum status status = !method ? error_set(err, ST_NOT_FOUND, "no default method")
                         : rt_method_failure(method)
                             ? error_set(err, ST_UNSUPPORTED, "%s", rt_method_failure(method)->text)
                             : count_calls(method, pool, out_count, err);
    hal_pool_free(pool);
    rt_program_unref(program);
    return status;
}

int main(int argc, char *argv[])
{
    const struct hal_device_options options = {.workers = 2};
    struct hal_device *device;
    struct error err;
    unsigned sum = 0;
    must(hal_device_open("cpu", &options, &device, NULL) == ST_OK);
    must(atomic_load(&allocations) > 0); /* the counters are reached */
    for (int i = 1; i < argc; i++) {
        unsigned count = 0;
        if (count_file(argv[i], device, &count, &err) != ST_OK) {
            fprintf(stderr, "count_malloc: %s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
        const char *slash = strrchr(argv[i], '/');
        printf("allocations %s: %u\n", slash ? slash + 1 : argv[i], count);
        sum += count;
    }
    hal_device_unref(device);
    return sum ? EXIT_FAILURE : EXIT_SUCCESS;
}
