/* SPDX-License-Identifier: MIT */
/*
 * Counts the allocations that runtime and hal make for a request when the same request was served
 * before: the linker redirects malloc, calloc and realloc to the counters here. They count all
 * threads, including workers.
 *
 * usage: count_malloc FILE.pte...; prints "allocations FILE: N" for CALLS calls of each file's
 * default method, with zeros of the largest shapes as inputs; fails if N is not 0 for one of them.
 */
#include "config.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/device.h"
#include "tests/bench/bench_call.h"

#define CALLS 100
#define WARM_UPS 4

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

/* Every kind of caller in turn: this thread runs what usually a worker runs, and the reverse. */
static enum status run_call(const struct bench_model *model, int turn, struct error *err)
{
    static const enum hal_caller callers[] = {HAL_CALLER_BUSY, HAL_CALLER_QUICK, HAL_CALLER_WAITS};
    const struct bench_call call = {.dim = INT64_MAX, .caller = callers[turn % 3]};
    return bench_call_run(model, &call, err);
}

static enum status count_calls(const struct bench_model *model, unsigned *out_allocations,
                               struct error *err)
{
    for (int i = 0; i < WARM_UPS; i++) {
        TRY(run_call(model, i, err));
    }
    unsigned before = atomic_load(&allocations);
    for (int i = 0; i < CALLS; i++) {
        TRY(run_call(model, i, err));
    }
    *out_allocations = atomic_load(&allocations) - before;
    return ST_OK;
}

static enum status count_file(const char *path, struct hal_device *device, unsigned *out_count,
                              struct error *err)
{
    struct bench_model model;
    TRY(bench_model_open(path, device, &model, err));
    enum status status = count_calls(&model, out_count, err);
    bench_model_close(&model);
    return status;
}

int main(int argc, char *argv[])
{
    const struct hal_device_options options = {.workers = 2};
    struct hal_device *device;
    struct error err;
    unsigned sum = 0;
    must(hal_device_open("cpu", &options, &device, NULL) == ST_OK);
    must(atomic_load(&allocations) > 0); /* the counters work */
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
