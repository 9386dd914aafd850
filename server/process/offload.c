/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/offload.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/resource.h"
#include "hal/thread.h"

/* The limits of libuv (threadpool.c, init_threads()). */
#define THREADS_PRESET 4
#define THREADS_MAX 1024

/* Threads that heavy tasks leave free. */
#define LIGHT_THREADS 2

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

enum status offload_start(struct offload *offload, uv_loop_t *loop, struct alarm *alarm,
                          struct error *err)
{
    must(offload->magic == 0);
    offload->loop = loop;
    offload->alarm = alarm;
    offload->threads = thread_count();
    must(offload->threads > 0 && offload->threads <= THREADS_MAX);
    TRY(try_threads(offload->threads, err));
    int rc = uv_queue_work(offload->loop, &offload->first, do_nothing, NULL);
    must(rc == 0);
    offload->heavy_max = offload->threads > LIGHT_THREADS ? offload->threads - LIGHT_THREADS : 1;
    list_init(&offload->waiting);
    share_init(&offload->heavy, offload->heavy_max,
               resource_kept(RESOURCE_THREADS, offload->heavy_max));
    offload->magic = OFFLOAD_MAGIC;
    return ST_OK;
}

void offload_begin(struct offload *offload, enum offload_kind kind, uv_work_t *work, uv_work_cb fn,
                   uv_after_work_cb done)
{
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    must(kind < OFFLOAD_KIND_COUNT);
    offload->open[kind]++;
    int rc = uv_queue_work(offload->loop, work, fn, done);
    must(rc == 0);
}

void offload_end(struct offload *offload, enum offload_kind kind)
{
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    must(kind < OFFLOAD_KIND_COUNT && offload->open[kind] > 0);
    offload->open[kind]--;
    offload->done[kind]++;
}

void offload_fini(struct offload *offload)
{
    if (offload->magic) {
        OBJ_CHECK(offload, OFFLOAD_MAGIC);
        share_fini(&offload->heavy);
        offload->magic = 0;
    }
}

/* ---- tasks of requests ----------------------------------------------------------------------- */

void offload_init_task(struct offload_task *task, void *owner)
{
    *task = (struct offload_task){.work = {.data = owner}};
    list_init(&task->link);
}

static void start(struct offload *offload, struct offload_task *task)
{
    int rc = uv_queue_work(offload->loop, &task->work, task->fn, task->done);
    must(rc == 0);
}

/* The oldest task of a client that has no thread, and is not |last|, which has just had one; if
 * there is none, the oldest task. */
static struct offload_task *choose_heavy(const struct offload *offload, uint64_t last)
{
    const struct list *waiting = &offload->waiting;
    uint64_t passed = last; /* a client that is not to be next; its tasks often stand together */
    for (struct list *link = waiting->next; link != waiting; link = link->next) {
        struct offload_task *task = LIST_ENTRY(link, struct offload_task, link);
        bool is_next =
            task->client == SHARE_NOBODY || (task->client != passed && task->client != last &&
                                             share_held(&offload->heavy, task->client) == 0);
        if (is_next) {
            return task;
        }
        passed = task->client;
    }
    return LIST_ENTRY(waiting->next, struct offload_task, link);
}

static void start_heavy(struct offload *offload, uint64_t last)
{
    while (offload->heavy_count < offload->heavy_max && !list_is_empty(&offload->waiting)) {
        struct offload_task *task = choose_heavy(offload, last);
        list_remove(&task->link);
        task->is_charged = share_take(&offload->heavy, task->client, 1) == SHARE_TAKEN;
        task->is_started = true;
        offload->heavy_count++;
        start(offload, task);
    }
}

void offload_begin_task(struct offload *offload, enum offload_kind kind, struct offload_task *task,
                        uv_work_cb fn, uv_after_work_cb done, uint64_t due_ns)
{
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    must(kind == OFFLOAD_REQUEST || kind == OFFLOAD_HEAVY);
    must(list_is_empty(&task->link) && !task->is_started);
    task->fn = fn;
    task->done = done;
    task->due_ns = due_ns;
    task->kind = kind;
    offload->open[kind]++;
    if (kind == OFFLOAD_REQUEST) {
        start(offload, task);
        return;
    }
    list_push_back(&offload->waiting, &task->link);
    start_heavy(offload, SHARE_NOBODY);
    if (!task->is_started) {
        alarm_set(offload->alarm, due_ns);
    }
}

void offload_end_task(struct offload *offload, struct offload_task *task)
{
    offload_end(offload, task->kind);
    if (task->is_started) {
        task->is_started = false;
        must(offload->heavy_count > 0);
        offload->heavy_count--;
        share_give(&offload->heavy, task->client, task->is_charged);
        start_heavy(offload, task->client);
    }
}

bool offload_forget_task(struct offload *offload, struct offload_task *task)
{
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    if (list_is_empty(&task->link)) {
        return false;
    }
    list_remove(&task->link);
    offload_end(offload, task->kind);
    return true;
}

/* A call of |done| may make others forget their tasks, so late tasks are moved to a list first. */
uint64_t offload_expire(struct offload *offload)
{
    OBJ_CHECK(offload, OFFLOAD_MAGIC);
    uint64_t now_ns = uv_hrtime(), next_ns = ALARM_NEVER;
    struct list late, *link = offload->waiting.next;
    list_init(&late);
    while (link != &offload->waiting) {
        struct offload_task *task = LIST_ENTRY(link, struct offload_task, link);
        link = link->next;
        if (task->due_ns <= now_ns) {
            list_remove(&task->link);
            list_push_back(&late, &task->link);
        } else {
            next_ns = task->due_ns < next_ns ? task->due_ns : next_ns;
        }
    }
    while (!list_is_empty(&late)) {
        struct offload_task *task = LIST_ENTRY(late.next, struct offload_task, link);
        list_remove(&task->link);
        task->done(&task->work, UV_ETIMEDOUT);
    }
    return next_ns;
}
