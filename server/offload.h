/* SPDX-License-Identifier: MIT */
/* Work that is too long for the loop. It goes to the threads of libuv's pool and is counted, so
 * that the watchdog sees whether it progresses. Loop thread. */
#ifndef PTED_SERVER_OFFLOAD_H
#define PTED_SERVER_OFFLOAD_H

#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct server;

enum offload_kind {
    OFFLOAD_REQUEST, /* steps of a request, bounded by its limits */
    OFFLOAD_LONG,    /* loads and trials of models, which may take any time */
    OFFLOAD_KIND_COUNT,
};

#define OFFLOAD_MAGIC 0x6f66666cu

struct offload {
    uint32_t magic;
    uint32_t threads;
    uv_work_t first; /* starts the pool */
    uint32_t open[OFFLOAD_KIND_COUNT];
    uint64_t done[OFFLOAD_KIND_COUNT];
};

/* Starts the pool with UV_THREADPOOL_SIZE threads, or 4. libuv would start it for the first work,
 * and abort if there are no threads. ST_SYSTEM: there are none. */
MUST_CHECK enum status offload_start(struct server *server, struct error *err);

/* Runs |fn| on a thread, then |done| on the loop; |done| calls offload_end() first. */
void offload_begin(struct server *server, enum offload_kind kind, uv_work_t *work, uv_work_cb fn,
                   uv_after_work_cb done);
void offload_end(struct server *server, enum offload_kind kind);

#endif
