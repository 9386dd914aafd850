/* SPDX-License-Identifier: MIT */
/*
 * Work that is too long for the loop: it goes to the threads of libuv's pool, and is counted, so
 * that the watchdog sees whether they get on. Loop thread.
 */
#ifndef PTED_SERVER_OFFLOAD_H
#define PTED_SERVER_OFFLOAD_H

#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct server;

enum offload_kind {
    OFFLOAD_REQUEST, /* steps of a request: bounded by its limits */
    OFFLOAD_LONG,    /* loads and trials of models: as long as they take */
    OFFLOAD_KIND_COUNT,
};

struct offload {
    uint32_t threads;
    uv_work_t first; /* what the pool is started with */
    uint32_t open[OFFLOAD_KIND_COUNT];
    uint64_t done[OFFLOAD_KIND_COUNT];
};

/*
 * Starts the pool, of UV_THREADPOOL_SIZE threads or 4: libuv would do so for the first work, and
 * abort where threads cannot be had. ST_SYSTEM: they cannot.
 */
MUST_CHECK enum status offload_start(struct server *server, struct error *err);

/* |fn| on a thread, then |done| on the loop, which calls offload_end() first. */
void offload_begin(struct server *server, enum offload_kind kind, uv_work_t *work, uv_work_cb fn,
                   uv_after_work_cb done);
void offload_end(struct server *server, enum offload_kind kind);

#endif
