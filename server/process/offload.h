/* SPDX-License-Identifier: MIT */
/*
 * Work that is too long for the loop. It goes to the threads of libuv's pool and is counted, so
 * that the watchdog sees whether it progresses. Loop thread.
 *
 * A step of a request is heavy if it handles more than --light-bytes-max. Heavy steps run on at
 * most all threads but two, and on at least one; further ones wait here in a queue. So a few
 * clients with large pictures or bodies cannot take all threads from clients with small ones. The
 * oldest task of a client that has no thread and did not have the last one comes first, so one
 * client with many large pictures does not delay another one with few.
 */
#ifndef PTED_SERVER_PROCESS_OFFLOAD_H
#define PTED_SERVER_PROCESS_OFFLOAD_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/process/alarm.h"

enum offload_kind {
    OFFLOAD_REQUEST, /* light steps of a request */
    OFFLOAD_HEAVY,   /* heavy steps of a request, bounded by its limits */
    OFFLOAD_LONG,    /* loads and trials of models, which may take any time */
    OFFLOAD_KIND_COUNT,
};

#define OFFLOAD_MAGIC 0x6f66666cu

struct offload {
    uint32_t magic;
    uv_loop_t *loop;     /* borrowed */
    struct alarm *alarm; /* borrowed */
    uint32_t threads;
    uv_work_t first;                   /* starts the pool */
    uint32_t open[OFFLOAD_KIND_COUNT]; /* including waiting ones */
    uint64_t done[OFFLOAD_KIND_COUNT];
    uint32_t heavy_max, heavy_count; /* heavy tasks that threads have */
    struct list waiting;             /* the other heavy tasks, the oldest first */
    struct share heavy;              /* those that threads have, by client */
};

/* A task of a request, which owns it. */
struct offload_task {
    uv_work_t work; /* |data| is the owner's */
    uv_work_cb fn;
    uv_after_work_cb done;
    uint64_t due_ns; /* it does not wait longer */
    enum offload_kind kind;
    uint64_t client;  /* who is charged (base/share.h), set by the owner before it begins */
    bool is_charged;  /* to |client|, in offload->heavy */
    bool is_started;  /* it is heavy, and a thread has it */
    struct list link; /* in |waiting| */
};

/* Starts the pool with UV_THREADPOOL_SIZE threads, or 4. libuv would start it for the first work,
 * and abort if there are no threads. |alarm| goes off when offload_expire() is due. ST_SYSTEM:
 * there are none. */
MUST_CHECK enum status offload_start(struct offload *offload, uv_loop_t *loop, struct alarm *alarm,
                                     struct error *err);

/* Runs |fn| on a thread, then |done| on the loop; |done| calls offload_end() first. */
void offload_begin(struct offload *offload, enum offload_kind kind, uv_work_t *work, uv_work_cb fn,
                   uv_after_work_cb done);
void offload_end(struct offload *offload, enum offload_kind kind);

/* Call when all is over. Also if offload_start() was not called: zeroed. */
void offload_fini(struct offload *offload);

void offload_init_task(struct offload_task *task, void *owner);

/* Likewise; |done| calls offload_end_task() first. A task of kind HEAVY may have to wait: |done|
 * gets UV_ETIMEDOUT if no thread has taken it before |due_ns|. */
void offload_begin_task(struct offload *offload, enum offload_kind kind, struct offload_task *task,
                        uv_work_cb fn, uv_after_work_cb done, uint64_t due_ns);
void offload_end_task(struct offload *offload, struct offload_task *task);

/* Call when the client has gone. True: the task has waited and is forgotten, |done| will not be
 * called. */
bool offload_forget_task(struct offload *offload, struct offload_task *task);

/* Ends tasks that have waited for too long. Returns when it is to be called next, or
 * ALARM_NEVER. */
uint64_t offload_expire(struct offload *offload);

#endif
