/* SPDX-License-Identifier: MIT */
/*
 * The cost of a call beside its kernels: one step of a sequence, and planning for new dims.
 *
 * usage: bench_calls [--workers N] [--processor] [--at POSITION | --prompt N] FILE...; for each
 * file's default method prints
 *
 *     steps FILE: us of the fastest step, the median, the mean, number of plans; 100 steps of one
 *         sequence, with 1 for dims that vary and the step's number for an i64 of one element
 *     plans FILE: us to make a plan and to find it again, the fastest of several; dims that vary
 *         are 2, 3, ..., for methods that have such dims
 *
 * With --at, all steps have POSITION as their number, and no plans are made for other dims. So a
 * language model is timed with so many tokens behind it, and without a copy of its caches. What the
 * first step leaves as caches is filled before: memory that nobody has written is one page of
 * zeros, and takes no time to read.
 *
 * With --prompt, N tokens are computed first, in calls of 512, and all steps follow them. It prints
 *
 *     prompt FILE: us of the first call, and of the last one, and of all
 *
 * With --processor, times are those of all threads of the program together: what other programs of
 * a busy machine do counts less.
 */
#include "config.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/device.h"
#include "runtime/program/method.h"
#include "runtime/program/state.h"
#include "runtime/program/state_cells.h"
#include "tests/bench/bench_call.h"

#define STEPS 100
#define FILLING 0x3c    /* four of them: 0.0115 */
#define CALL_TOKENS 512 /* of a prompt */
#define NEW_DIMS 24

struct options {
    int workers;
    long position; /* -1: the number of the step */
    long prompt;   /* tokens; 0: none */
    clockid_t clock;
};

static double now_us(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int compare(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static void print_steps(const struct bench_model *model, double *times)
{
    double sum = 0;
    for (int i = 0; i < STEPS; i++) {
        sum += times[i];
    }
    qsort(times, STEPS, sizeof(*times), compare);
    printf("steps %s: %.0f us at least, %.0f us in the median, %.0f us in the mean, %" PRIu64
           " plans\n",
           model->name, times[0], times[STEPS / 2], sum / STEPS,
           rt_method_plan_stats(model->method).count);
}

static enum status time_call(const struct bench_model *model, const struct options *options,
                             const struct bench_call *call, double *out_us, struct error *err)
{
    double begin = now_us(options->clock);
    enum status status = bench_call_run(model, call, err);
    *out_us = now_us(options->clock) - begin;
    return status;
}

/* Computes the tokens before the steps. */
static enum status time_prompt(const struct bench_model *model, const struct options *options,
                               struct rt_state *state, struct error *err)
{
    double first = 0, last = 0, all = 0;
    for (long at = 0; at < options->prompt; at += CALL_TOKENS) {
        long left = options->prompt - at;
        const struct bench_call call = {.dim = left < CALL_TOKENS ? left : CALL_TOKENS,
                                        .number = at,
                                        .state = state,
                                        .caller = HAL_CALLER_QUICK};
        TRY(time_call(model, options, &call, &last, err));
        if (at == 0) { /* the first time took memory and made a plan */
            TRY(time_call(model, options, &call, &last, err));
        }
        first = at == 0 ? last : first;
        all += last;
    }
    if (options->prompt > 0) {
        printf("prompt %s: %.0f us first, %.0f us last, %.0f us all\n", model->name, first, last,
               all);
    }
    return ST_OK;
}

/* Writes all of each buffer that calls have written. */
static void fill(const struct bench_model *model, struct rt_state *state)
{
    const struct rt_state_cells *cells = rt_program_state_cells(model->program);
    for (uint32_t i = 0; state && i < cells->count; i++) {
        struct hal_buffer *buffer = state->current[i];
        if (buffer != cells->items[i].initial) {
            size_t size = hal_buffer_size(buffer);
            memset(hal_buffer_map(buffer), FILLING, size);
            hal_buffer_compact(buffer, 0, size, 0); /* as when calls write it */
        }
    }
}

static enum status time_steps(const struct bench_model *model, const struct options *options,
                              struct error *err)
{
    struct bench_call call = {.dim = 1, .caller = HAL_CALLER_QUICK};
    double times[STEPS];
    if (rt_program_state_bytes(model->program) > 0) {
        TRY(rt_state_new(model->program, &call.state, err));
    }
    enum status status = time_prompt(model, options, call.state, err);
    for (int i = 0; status == ST_OK && i < STEPS; i++) {
        call.number = options->prompt > 0     ? options->prompt
                      : options->position < 0 ? i
                                              : options->position;
        status = time_call(model, options, &call, &times[i], err);
        if (i == 0 && options->position >= 0) {
            fill(model, call.state);
        }
    }
    rt_state_unref(call.state);
    TRY(status);
    print_steps(model, times);
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

static enum status time_plan(const struct bench_model *model, int64_t dim, double *least,
                             struct error *err)
{
    const struct bench_call call = {.dim = dim};
    struct rt_invocation *invocation;
    TRY(bench_call_new(model, &call, &invocation, err));
    double begin = now_us(CLOCK_MONOTONIC);
    enum status status = rt_invocation_plan(invocation, RT_PREPARE_ALL, err);
    double us = now_us(CLOCK_MONOTONIC) - begin;
    *least = us < *least ? us : *least;
    rt_invocation_free(invocation);
    return status;
}

static enum status time_plans(const struct bench_model *model, struct error *err)
{
    double fresh = 1e12, known = 1e12;
    if (!has_dynamic_dims(model->method)) {
        return ST_OK;
    }
    for (int64_t dim = 2; dim < 2 + NEW_DIMS; dim++) {
        TRY(time_plan(model, dim, &fresh, err));
        for (int i = 0; i < 10; i++) {
            TRY(time_plan(model, dim, &known, err));
        }
    }
    printf("plans %s: %.0f us new, %.1f us known\n", model->name, fresh, known);
    return ST_OK;
}

static enum status time_file(const char *path, struct hal_device *device,
                             const struct options *options, struct error *err)
{
    struct bench_model model;
    TRY(bench_model_open(path, device, &model, err));
    enum status status = time_steps(&model, options, err);
    if (status == ST_OK && options->position < 0 && options->prompt == 0) {
        status = time_plans(&model, err);
    }
    bench_model_close(&model);
    return status;
}

/* False: they are wrong. */
static bool read_options(int argc, char *argv[], struct options *out)
{
    static const struct option known[] = {{"workers", required_argument, NULL, 'w'},
                                          {"at", required_argument, NULL, 'a'},
                                          {"prompt", required_argument, NULL, 'n'},
                                          {"processor", no_argument, NULL, 'p'},
                                          {0}};
    *out = (struct options){.workers = 1, .position = -1, .clock = CLOCK_MONOTONIC};
    for (int option; (option = getopt_long(argc, argv, "", known, NULL)) != -1;) {
        if (option == 'w') {
            out->workers = (int)strtol(optarg, NULL, 10);
        } else if (option == 'a') {
            out->position = strtol(optarg, NULL, 10);
        } else if (option == 'n') {
            out->prompt = strtol(optarg, NULL, 10);
        } else if (option == 'p') {
            out->clock = CLOCK_PROCESS_CPUTIME_ID;
        } else {
            return false;
        }
    }
    return out->workers > 0;
}

int main(int argc, char *argv[])
{
    struct options options;
    struct hal_device *device;
    struct error err;
    if (!read_options(argc, argv, &options)) {
        fprintf(stderr, "usage: bench_calls [--workers N] [--processor] "
                        "[--at POSITION | --prompt N] FILE...\n");
        return EXIT_FAILURE;
    }
    const struct hal_device_options of_device = {.workers = (uint32_t)options.workers};
    must(hal_device_open("cpu", &of_device, &device, NULL) == ST_OK);
    for (int i = optind; i < argc; i++) {
        if (time_file(argv[i], device, &options, &err) != ST_OK) {
            fprintf(stderr, "bench_calls: %s: %s\n", argv[i], err.text);
            return EXIT_FAILURE;
        }
    }
    hal_device_unref(device);
    return EXIT_SUCCESS;
}
