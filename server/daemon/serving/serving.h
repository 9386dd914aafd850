/* SPDX-License-Identifier: MIT */
/*
 * Calls run on a serving: a device with its memory, the scheduler, and the models that were loaded
 * for that device. The daemon has one serving, which is replaced as a whole when its device is lost
 * (server/daemon/serving/recovery.h); a request holds the serving that it began with until it is
 * over.
 *
 * Loop thread only, but serving_new(), which any thread may call.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_SERVING_H
#define PTED_SERVER_DAEMON_SERVING_SERVING_H

#include <stdint.h>

#include "base/status.h"
#include "server/model/repository.h"
#include "server/process/options.h"

struct hal_device;
struct hal_pool;
struct rt_sched;
struct rt_sched_queue;
struct rt_sequences;

#define SERVING_MAGIC 0x73727667u

struct serving {
    uint32_t magic;
    uint32_t users;             /* requests that hold it */
    struct serving *older;      /* that requests still hold; NULL: there is none */
    struct hal_device *device;  /* shared: ref held; NULL once shed, like the next seven */
    struct hal_pool *transfers; /* owned: of bodies that come and answers that go; all share
                                  one memory, --ring-bytes */
    struct hal_pool *running;   /* owned: of calls on the device, and of their results; each model
                                   has a part of it */
    struct hal_pool *lists;     /* owned: of lists of calls, from their bodies to their answers */
    struct hal_pool *answers;   /* owned: of answers that grow from call to call */
    struct rt_sched *sched;     /* owned */
    struct rt_sched_queue *bundles; /* owned: where lists of calls wait */
    struct rt_sequences *sequences; /* owned */
    struct repository repository;   /* of models that are compiled for the device */
};

/*
 * Opens |device_name|; there are no models yet. With |or_cpu| a machine without that device, or
 * without memory on it for requests, serves all the same, on the CPU; otherwise that is an error,
 * ST_UNSUPPORTED or ST_EXHAUSTED.
 */
MUST_CHECK enum status serving_new(const struct options *options, const char *device_name,
                                   bool or_cpu, struct serving **out_serving, struct error *err);

/* Call when no request holds it. NULL is fine. */
void serving_free(struct serving *serving);

/* Call when no request holds it, and all models have failed: gives up everything but the names of
 * the models. */
void serving_shed(struct serving *serving);

/* Checks that it has a device and memory; ST_UNAVAILABLE: it was shed, because the device was
 * lost. */
MUST_CHECK enum status serving_verify(const struct serving *serving, struct error *err);

#endif
