/* SPDX-License-Identifier: MIT */
/*
 * The overhead of the CPU device: a submission of one empty dispatch that the submitting thread
 * runs, one that it shares with workers because it waits anyway, one that a worker runs while the
 * thread waits, and each further region of a submission, run by one worker and by all of them.
 *
 * usage: bench_hal [workers]
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"
#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/queue.h"

#define REGIONS 1000
#define ROUNDS 7 /* the best one counts */

static struct hal_device *device;

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void nothing(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
}

static const struct hal_kernel kernel = {.name = "nothing", .cpu = nothing};

static struct hal_command *record(unsigned regions, uint32_t tiles, uint64_t cost,
                                  struct hal_buffer *buffer)
{
    struct hal_command *command;
    const struct hal_binding bindings[] = {{.slot = 0, .length = 64},
                                           {.buffer = buffer, .length = 64}};
    const struct hal_dispatch dispatch = {
        .kernel = &kernel,
        .grid = {tiles, 1, 1},
        .bindings = bindings,
        .binding_count = 2,
        .cost = cost,
    };
    must(hal_command_new(device, 1, &command, NULL) == ST_OK);
    for (unsigned i = 0; i < regions; i++) {
        must(hal_command_dispatch(command, &dispatch, NULL) == ST_OK);
        must(hal_command_barrier(command, NULL) == ST_OK);
    }
    must(hal_command_end(command, NULL) == ST_OK);
    return command;
}

/* ns for a submission and waiting for it. */
static double measure(struct hal_command *command, struct hal_buffer *buffer,
                      enum hal_caller caller, unsigned turns)
{
    struct hal_semaphore *done;
    const struct hal_binding slot = {.buffer = buffer, .length = 64};
    double best = 1e18;
    uint64_t value = 0;
    must(hal_semaphore_new(0, &done, NULL) == ST_OK);
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_ns();
        for (unsigned i = 0; i < turns; i++) {
            const struct hal_submission submission = {
                .command = command,
                .slots = &slot,
                .slot_count = 1,
                .signal = {{done, ++value}},
                .signal_count = 1,
                .caller = caller,
            };
            must(hal_queue_submit(device, &submission, NULL) == ST_OK);
            must(hal_semaphore_wait(done, value, UINT64_MAX) == ST_OK);
        }
        double each = (now_ns() - start) / turns;
        best = each < best ? each : best;
    }
    hal_semaphore_unref(done);
    return best;
}

int main(int argc, char **argv)
{
    struct error err;
    struct hal_buffer *buffer;
    struct hal_device_options options = {0};
    options.workers = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    if (hal_device_open("cpu", &options, &device, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    const struct hal_device_props *props = hal_device_props(device);
    must(hal_buffer_new(device, 64, &buffer, NULL) == ST_OK);
    struct hal_command *one = record(1, 1, 0, buffer);
    struct hal_command *shared = record(1, props->workers * 4, 1000000, buffer);
    struct hal_command *alone = record(REGIONS, 1, 0, buffer);
    struct hal_command *spread = record(REGIONS, props->workers * 4, 1000000, buffer);

    printf("%s\n", props->description);
    printf("inline, one dispatch              %8.0f ns\n",
           measure(one, buffer, HAL_CALLER_QUICK, 100000));
    printf("by who waits, with a worker       %8.0f ns\n",
           measure(shared, buffer, HAL_CALLER_WAITS, 2000));
    double handed = measure(one, buffer, HAL_CALLER_BUSY, 2000);
    printf("through a worker, one dispatch    %8.0f ns\n", handed);
    printf("a further region, inline          %8.0f ns\n",
           measure(alone, buffer, HAL_CALLER_QUICK, 100) / REGIONS);
    printf("a further region, one worker      %8.0f ns\n",
           measure(alone, buffer, HAL_CALLER_BUSY, 20) / REGIONS);
    printf("a further region, all workers     %8.0f ns\n",
           measure(spread, buffer, HAL_CALLER_BUSY, 5) / REGIONS);
    hal_command_unref(one);
    hal_command_unref(shared);
    hal_command_unref(alone);
    hal_command_unref(spread);
    hal_buffer_unref(buffer);
    hal_device_unref(device);
    return 0;
}
