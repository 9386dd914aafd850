/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/offload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "hal/thread.h"
#include "server/server.h"

/* The limits of libuv (threadpool.c, init_threads()). */
#define THREADS_PRESET 4
#define THREADS_MAX 1024

static uint32_t thread_count(void)
{
    const char *text = getenv("UV_THREADPOOL_SIZE");
    long count = text ? strtol(text, NULL, 10) : THREADS_PRESET;
    return count == 0 ? 1 : count < 0 || count > THREADS_MAX ? THREADS_MAX : (uint32_t)count;
}

/* A thread that lives as long as the caller holds the mutex. */
static void *live(void *mutex)
{
    pthread_mutex_lock(mutex);
    pthread_mutex_unlock(mutex);
    return NULL;
}

/* Can the process have this many threads? Starts them all at the same time and ends them again. */
static enum status try_threads(uint32_t count, struct error *err)
{
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_t threads[THREADS_MAX];
    uint32_t started = 0;
    int rc = 0;
    pthread_mutex_lock(&mutex);
    while (rc == 0 && started < count) {
        rc = hal_thread_start(&threads[started], live, &mutex);
        started += rc == 0;
    }
    pthread_mutex_unlock(&mutex);
    for (uint32_t i = 0; i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return rc == 0 ? ST_OK
                   : error_set(err, ST_SYSTEM, "thread %u of %u for large requests: %s",
                               started + 1, count, strerror(rc));
}

static void do_nothing(uv_work_t *work)
{
    (void)work;
}

enum status offload_start(struct server *server, struct error *err)
{
    struct offload *offload = &server->offload;
    must(offload->magic == 0);
    offload->threads = thread_count();
    must(offload->threads > 0 && offload->threads <= THREADS_MAX);
    TRY(try_threads(offload->threads, err));
    int rc = uv_queue_work(&server->loop, &offload->first, do_nothing, NULL);
    must(rc == 0);
    offload->magic = OFFLOAD_MAGIC;
    return ST_OK;
}

void offload_begin(struct server *server, enum offload_kind kind, uv_work_t *work, uv_work_cb fn,
                   uv_after_work_cb done)
{
    OBJ_CHECK(&server->offload, OFFLOAD_MAGIC);
    must(kind < OFFLOAD_KIND_COUNT);
    server->offload.open[kind]++;
    int rc = uv_queue_work(&server->loop, work, fn, done);
    must(rc == 0);
}

void offload_end(struct server *server, enum offload_kind kind)
{
    OBJ_CHECK(&server->offload, OFFLOAD_MAGIC);
    must(kind < OFFLOAD_KIND_COUNT && server->offload.open[kind] > 0);
    server->offload.open[kind]--;
    server->offload.done[kind]++;
}
