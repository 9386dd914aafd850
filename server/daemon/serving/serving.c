/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/serving.h"

#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "base/check.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "runtime/sched/sched.h"
#include "runtime/sched/sequence.h"
#include "server/process/log.h"

#define NS_PER_MS 1000000u
/*
 * Jobs on the device beyond one a worker. The worker that ends a job starts the next one itself, so
 * the device would not wait without any; one more covers the clients of a small model, which send
 * the next request only when they have the answer.
 */
#define SPARE_JOBS 1

/* At most half of the device's memory: models need the rest. */
static size_t ring_bytes(const struct serving *serving, const struct params *params)
{
    must(serving->device != NULL);
    size_t half = hal_device_props(serving->device)->memory_bytes_max / 2;
    return params->ring_bytes < half ? params->ring_bytes : half;
}

/* The device and the memory that requests share there. */
static enum status open_device(struct serving *serving, const struct options *options,
                               const char *name, struct error *err)
{
    must(!serving->device && !serving->transfers);
    const struct hal_device_options device = {
        .workers = (uint32_t)options->workers,
        .nice = (uint32_t)options->params.worker_nice,
        .cpu_level = options->cpu_level,
        .cache_directory = getenv("CACHE_DIRECTORY"), /* systemd's */
    };
    TRY(hal_device_open(name, &device, &serving->device, err));
    const struct hal_device_props *props = hal_device_props(serving->device);
    size_t bytes = ring_bytes(serving, &options->params);
    enum status status = hal_pool_new(serving->device, bytes, &serving->transfers, err);
    if (status != ST_OK) {
        return error_prefix(err, "memory for requests (--ring-bytes): ");
    }
    TRY(hal_pool_share(serving->transfers, &serving->running, err));
    TRY(hal_pool_share(serving->transfers, &serving->lists, err));
    TRY(hal_pool_share(serving->transfers, &serving->answers, err));
    log_line(LOG_INFO, "device %s: %s", props->name, props->description);
    return ST_OK;
}

static void close_device(struct serving *serving)
{
    hal_pool_free(serving->answers);
    hal_pool_free(serving->lists);
    hal_pool_free(serving->running);
    hal_pool_free(serving->transfers);
    hal_device_unref(serving->device);
    serving->answers = serving->lists = serving->running = serving->transfers = NULL;
    serving->device = NULL;
}

/* A device that is not there, or that has not enough memory left to begin with, is done without. */
static enum status open_device_or_cpu(struct serving *serving, const struct options *options,
                                      const char *name, struct error *err)
{
    enum status status = open_device(serving, options, name, err);
    if (status != ST_UNSUPPORTED && status != ST_EXHAUSTED) {
        return status;
    }
    log_line(LOG_WARNING, "%s; the CPU computes", err->text);
    close_device(serving);
    return open_device(serving, options, "cpu", err);
}

static enum status init_memory(struct serving *serving, const struct options *options,
                               const char *device_name, bool or_cpu, struct error *err)
{
    const struct params *params = &options->params;
    TRY(or_cpu && strcmp(device_name, "cpu") != 0
            ? open_device_or_cpu(serving, options, device_name, err)
            : open_device(serving, options, device_name, err));
    const struct rt_sched_options sched = {
        .depth = hal_device_props(serving->device)->workers + SPARE_JOBS,
        .clock = uv_hrtime,
    };
    TRY(rt_sched_new(&sched, &serving->sched, err));
    const struct rt_sched_queue_options bundles = {
        .waiting_max = (uint32_t)params->queue_count_max,
        .waiting_bytes_max = (size_t)params->queue_bytes_max,
        .running_max = (uint32_t)params->running_count_max,
        .weight = (uint32_t)params->weight,
    };
    TRY(rt_sched_queue_new(serving->sched, &bundles, &serving->bundles, err));
    const struct rt_sequences_options sequences = {
        .count_max = (uint32_t)params->sequence_count_max,
        .bytes_max = (size_t)params->sequence_bytes_max,
        .prefix_bytes_max = (size_t)params->prefix_bytes_max,
        .idle_ns = params->sequence_timeout * NS_PER_MS,
        .clock = uv_hrtime,
    };
    return rt_sequences_new(&sequences, &serving->sequences, err);
}

enum status serving_new(const struct options *options, const char *device_name, bool or_cpu,
                        struct serving **out_serving, struct error *err)
{
    struct serving *serving = calloc(1, sizeof(*serving));
    if (!serving) {
        return error_set(err, ST_EXHAUSTED, "no memory to serve models");
    }
    serving->magic = SERVING_MAGIC;
    enum status status = init_memory(serving, options, device_name, or_cpu, err);
    if (status == ST_OK) {
        status = repository_init(&serving->repository, serving->device, serving->transfers,
                                 serving->running, serving->sched, err);
    }
    if (status != ST_OK) {
        serving_free(serving);
        return status;
    }
    *out_serving = serving;
    return ST_OK;
}

/* Models have no queue any more. Every pointer is cleared, so that it can be done twice. */
static void close_all(struct serving *serving)
{
    rt_sched_queue_unref(serving->bundles);
    close_device(serving); /* its workers may be on their way out of the scheduler */
    rt_sched_free(serving->sched);
    serving->bundles = NULL;
    serving->sched = NULL;
}

static void close_sequences(struct serving *serving)
{
    OBJ_CHECK(serving, SERVING_MAGIC);
    must(serving->users == 0);
    rt_sequences_free(serving->sequences);
    serving->sequences = NULL;
}

void serving_shed(struct serving *serving)
{
    OBJ_CHECK(serving, SERVING_MAGIC);
    close_sequences(serving);
    repository_close(&serving->repository);
    close_all(serving);
}

void serving_free(struct serving *serving)
{
    if (serving) {
        OBJ_CHECK(serving, SERVING_MAGIC);
        close_sequences(serving);
        repository_fini(&serving->repository);
        close_all(serving);
        serving->magic = 0;
        free(serving);
    }
}

enum status serving_verify(const struct serving *serving, struct error *err)
{
    OBJ_CHECK(serving, SERVING_MAGIC);
    return serving->device ? ST_OK : error_set(err, ST_UNAVAILABLE, "the device was lost");
}
