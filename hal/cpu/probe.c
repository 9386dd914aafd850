/* SPDX-License-Identifier: MIT */
/* The peaks of the device: loops that do one thing only, on all workers at once. */
#include "config.h"

#include "hal/cpu/device.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/cpus.h"
#include "hal/cpu/uk.h"
#include "hal/profile.h"
#include "hal/semaphore.h"

#define ROUNDS 6                /* the best one counts: something may disturb the others */
#define CALLS 256               /* of a probe of arithmetic, for each worker: some milliseconds */
#define COST_NS 10000000        /* more than enough to wake every worker */
#define READ_BYTES_MIN ((size_t)192 << 20)
#define READ_BYTES_MAX ((size_t)512 << 20)
#define LINE 64                 /* bytes between the results of two workers */
/* The loop that asks ahead reads blocks of so many bytes. Before each one it asks for as many, from
 * so far behind the block's start on. */
#define BLOCK_BYTES 2048
#define AHEAD_BYTES 512

static void run_f32(const struct hal_args *args, struct hal_tile tile)
{
    for (int i = 0; i < CALLS; i++) {
        (void)hal_cpu_uk()->probe_f32((float *)args->bindings[0] + tile.x * LINE / sizeof(float));
    }
}

static void run_u8(const struct hal_args *args, struct hal_tile tile)
{
    for (int i = 0; i < CALLS; i++) {
        (void)hal_cpu_uk()->probe_u8((int32_t *)args->bindings[0] +
                                     tile.x * LINE / sizeof(int32_t));
    }
}

static void run_bf16(const struct hal_args *args, struct hal_tile tile)
{
    for (int i = 0; i < CALLS; i++) {
        (void)hal_cpu_uk()->probe_bf16((float *)args->bindings[0] + tile.x * LINE / sizeof(float));
    }
}

/* Each tile reads a part of its own, whole blocks. */
struct part {
    const char *at;
    size_t bytes;
    float *result;
};

static struct part part_of(const struct hal_args *args, struct hal_tile tile)
{
    size_t bytes = args->lengths[1] / args->grid[0] / BLOCK_BYTES * BLOCK_BYTES;
    return (struct part){(const char *)args->bindings[1] + tile.x * bytes, bytes,
                         (float *)args->bindings[0] + tile.x * LINE / sizeof(float)};
}

static float read_bytes(const char *at, size_t bytes)
{
    return hal_cpu_uk()->max_f32((const float *)(const void *)at, bytes / sizeof(float));
}

static void run_read(const struct hal_args *args, struct hal_tile tile)
{
    struct part part = part_of(args, tile);
    *part.result = read_bytes(part.at, part.bytes);
}

/* The same for processors that do not read far enough ahead by themselves. */
static void run_read_ahead(const struct hal_args *args, struct hal_tile tile)
{
    struct part part = part_of(args, tile);
    for (size_t at = 0; at < part.bytes; at += BLOCK_BYTES) {
        const char *block = part.at + at;
        for (size_t i = 0; i < BLOCK_BYTES; i += LINE) {
            __builtin_prefetch(block + AHEAD_BYTES + i);
        }
        *part.result = read_bytes(block, BLOCK_BYTES);
    }
}

static const struct hal_kernel kernel_f32 = {.name = "probe_f32", .cpu = run_f32};
static const struct hal_kernel kernel_u8 = {.name = "probe_u8", .cpu = run_u8};
static const struct hal_kernel kernel_bf16 = {.name = "probe_bf16", .cpu = run_bf16};
static const struct hal_kernel kernel_read = {.name = "probe_read", .cpu = run_read};
static const struct hal_kernel kernel_read_ahead = {.name = "probe_read_ahead",
                                                    .cpu = run_read_ahead};

struct probe {
    size_t read_bytes; /* that a round reads */
    struct hal_device *device;
    struct hal_profile *profile;
    struct hal_semaphore *semaphore;
    uint64_t timepoint;
    struct hal_binding bindings[2]; /* the results, and what is read */
};

/* From the first begin to the last end, without the time that waking takes. */
static double span_ns(const struct hal_profile *profile)
{
    size_t count;
    const struct hal_span *spans = hal_profile_spans(profile, &count);
    uint64_t begin = UINT64_MAX, end = 0;
    must(count > 0);
    for (size_t i = 0; i < count; i++) {
        begin = spans[i].begin_ns < begin ? spans[i].begin_ns : begin;
        end = spans[i].end_ns > end ? spans[i].end_ns : end;
    }
    return (double)(end - begin);
}

static enum status run_round(struct probe *p, struct hal_command *command, double *out_ns,
                             struct error *err)
{
    const struct hal_submission submission = {
        .command = command,
        .signal = {{p->semaphore, ++p->timepoint}},
        .signal_count = 1,
        .caller = HAL_CALLER_BUSY,
        .profile = p->profile,
    };
    hal_profile_clear(p->profile);
    TRY(hal_queue_submit(p->device, &submission, err));
    if (hal_semaphore_wait(p->semaphore, p->timepoint, UINT64_MAX) != ST_OK) {
        return error_set(err, ST_INTERNAL, "a probe of the CPU failed");
    }
    *out_ns = span_ns(p->profile);
    return ST_OK;
}

static enum status record(struct probe *p, const struct hal_kernel *kernel,
                          struct hal_command **out_command, struct error *err)
{
    const struct hal_dispatch dispatch = {
        .kernel = kernel,
        .grid = {p->device->props.workers, 1, 1},
        .bindings = p->bindings,
        .binding_count = 2,
        .cost = (uint64_t)p->device->props.workers * COST_NS,
    };
    TRY(hal_command_new(p->device, 0, out_command, err));
    enum status status = hal_command_dispatch(*out_command, &dispatch, err);
    if (status == ST_OK) {
        status = hal_command_end(*out_command, err);
    }
    if (status != ST_OK) {
        hal_command_unref(*out_command);
    }
    return status;
}

/* |work| counts for all workers together; the rate is |work| a second. */
static enum status measure(struct probe *p, const struct hal_kernel *kernel, double work,
                           double *out_rate, struct error *err)
{
    struct hal_command *command;
    enum status status = ST_OK;
    double best = INFINITY, ns;
    TRY(record(p, kernel, &command, err));
    for (int i = 0; i < ROUNDS && status == ST_OK; i++) {
        status = run_round(p, command, &ns, err);
        best = status == ST_OK ? fmin(best, ns) : best;
    }
    hal_profile_clear(p->profile);
    hal_command_unref(command);
    *out_rate = work / best * 1e9;
    return status;
}

static enum status measure_all(struct probe *p, struct hal_peaks *peaks, struct error *err)
{
    float f32;
    int32_t i32;
    double calls = (double)p->device->props.workers * CALLS, plain, ahead;
    TRY(measure(p, &kernel_f32, calls * (double)hal_cpu_uk()->probe_f32(&f32), &peaks->f32_macs,
                err));
    if (hal_cpu_uk()->probe_bf16) {
        TRY(measure(p, &kernel_bf16, calls * (double)hal_cpu_uk()->probe_bf16(&f32),
                    &peaks->bf16_macs, err));
    }
    TRY(measure(p, &kernel_u8, calls * (double)hal_cpu_uk()->probe_u8(&i32), &peaks->u8_macs, err));
    TRY(measure(p, &kernel_read, (double)p->read_bytes, &plain, err));
    TRY(measure(p, &kernel_read_ahead, (double)p->read_bytes, &ahead, err));
    peaks->read_bytes = fmax(plain, ahead);
    return ST_OK;
}

/* Twice what the largest cache holds, so that each round reads memory. A virtual machine may name a
 * cache that it shares with others, or none. */
static size_t read_bytes_of_round(void)
{
    size_t twice = 2 * hal_cpu_cache_bytes();
    size_t most = twice < READ_BYTES_MAX ? twice : READ_BYTES_MAX;
    return most > READ_BYTES_MIN ? most : READ_BYTES_MIN;
}

enum status hal_cpu_probe(struct hal_device *device, struct hal_peaks *out_peaks, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    struct hal_buffer *results = NULL, *read = NULL;
    struct probe p = {.read_bytes = read_bytes_of_round(), .device = device};
    enum status status = hal_profile_new(HAL_CPU_WORKERS_MAX, &p.profile, err);
    if (status == ST_OK) {
        status = hal_semaphore_new(0, &p.semaphore, err);
    }
    if (status == ST_OK) {
        status = hal_buffer_new(device, (size_t)device->props.workers * LINE, &results, err);
    }
    if (status == ST_OK) {
        status = hal_buffer_new_constant(device, p.read_bytes, &read, err);
    }
    if (status == ST_OK) {
        /* Pages that nobody has written may all be the one page of zeros. */
        memset(hal_buffer_map(read), 1, p.read_bytes);
        p.bindings[0] = hal_binding_whole(results);
        p.bindings[1] = hal_binding_whole(read);
        status = measure_all(&p, out_peaks, err);
    }
    hal_buffer_unref(read);
    hal_buffer_unref(results);
    if (p.semaphore) {
        hal_semaphore_unref(p.semaphore);
    }
    hal_profile_free(p.profile);
    return status;
}
