/* SPDX-License-Identifier: MIT */
/*
 * |head| and |tail| count bytes since the start; the bytes between them wait. The adding thread
 * moves |head|, the writing thread |tail|. The writing thread sleeps until it is woken by the first
 * line, and then waits a little for more.
 */
#include "config.h"

#include "server/process/line_writer.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/check.h"
#include "base/counter.h"
#include "hal/thread.h"

#define CHUNK_BYTES (64 << 10) /* the most that a sink gets at once */
#define STOP_S 2               /* for the last lines */

#define LINE_WRITER_MAGIC 0x6c77726du

struct line_writer {
    uint32_t magic;
    struct line_sink *sink; /* owned */
    size_t size;
    uint8_t *ring; /* owned */
    _Atomic size_t head, tail;
    atomic_bool is_woken;
    sem_t wake, done;
    pthread_t thread;
    struct counter added, refused; /* the adding thread's */
    struct counter failed;         /* the writing thread's */
    uint8_t chunk[CHUNK_BYTES];    /* likewise */
};

/* ---- the writing thread ---------------------------------------------------------------------- */

static void copy_out(const struct line_writer *writer, size_t from, uint8_t *out, size_t len)
{
    size_t at = from % writer->size;
    size_t first = len < writer->size - at ? len : writer->size - at;
    memcpy(out, writer->ring + at, first);
    memcpy(out + first, writer->ring, len - first);
}

/* Copies lines to |chunk|; returns their bytes. */
static size_t take_lines(struct line_writer *writer)
{
    size_t tail = atomic_load_explicit(&writer->tail, memory_order_relaxed);
    size_t waiting = atomic_load_explicit(&writer->head, memory_order_acquire) - tail;
    size_t len = waiting < CHUNK_BYTES ? waiting : CHUNK_BYTES;
    copy_out(writer, tail, writer->chunk, len);
    size_t limit = len < writer->sink->write_bytes ? len : writer->sink->write_bytes;
    const uint8_t *end = limit ? memrchr(writer->chunk, '\n', limit) : NULL;
    if (!end && len) {
        end = memchr(writer->chunk, '\n', len); /* one line that is longer */
    }
    must(!len || end);
    len = len ? (size_t)(end + 1 - writer->chunk) : 0;
    atomic_store_explicit(&writer->tail, tail + len, memory_order_release);
    return len;
}

static void *write_all(void *arg)
{
    struct line_writer *writer;
    OBJ_CAST(writer, arg, LINE_WRITER_MAGIC);
    bool is_last = false;
    while (!is_last) {
        const struct timespec pause = {.tv_nsec = (long)writer->sink->ops->gather_ns};
        while (sem_wait(&writer->wake) < 0) { /* only a signal ends it early */
        }
        if (!atomic_load(&writer->sink->is_stopping)) {
            nanosleep(&pause, NULL);
        }
        atomic_exchange(&writer->is_woken, false); /* orders what was added before it, see wake() */
        is_last = atomic_load(&writer->sink->is_stopping);
        for (size_t len = take_lines(writer); len; len = take_lines(writer)) {
            counter_add(&writer->failed,
                        writer->sink->ops->write(writer->sink, writer->chunk, len));
        }
    }
    sem_post(&writer->done);
    return NULL;
}

/* ---- the adding thread ----------------------------------------------------------------------- */

/* Either this sees that the writing thread is about to look at the ring, or that thread sees the
 * new |head|: both exchange the flag. */
static void wake(struct line_writer *writer)
{
    if (!atomic_exchange(&writer->is_woken, true)) {
        sem_post(&writer->wake);
    }
}

void line_writer_add(struct line_writer *writer, const void *line, size_t len)
{
    OBJ_CHECK(writer, LINE_WRITER_MAGIC);
    must(len > 0 && len <= LINE_BYTES_MAX && ((const uint8_t *)line)[len - 1] == '\n');
    size_t head = atomic_load_explicit(&writer->head, memory_order_relaxed);
    size_t waiting = head - atomic_load_explicit(&writer->tail, memory_order_acquire);
    counter_add(&writer->added, 1);
    if (len > writer->size - waiting) {
        counter_add(&writer->refused, 1);
        return;
    }
    size_t at = head % writer->size;
    size_t first = len < writer->size - at ? len : writer->size - at;
    memcpy(writer->ring + at, line, first);
    memcpy(writer->ring, (const uint8_t *)line + first, len - first);
    atomic_store_explicit(&writer->head, head + len, memory_order_release);
    wake(writer);
}

struct line_writer_counts line_writer_counts(const struct line_writer *writer)
{
    OBJ_CHECK(writer, LINE_WRITER_MAGIC);
    return (struct line_writer_counts){
        .added = counter_get(&writer->added),
        .lost = counter_get(&writer->refused) + counter_get(&writer->failed),
    };
}

enum status line_writer_reopen(struct line_writer *writer, struct error *err)
{
    OBJ_CHECK(writer, LINE_WRITER_MAGIC);
    const struct line_sink_ops *ops = writer->sink->ops;
    return ops->reopen ? ops->reopen(writer->sink, err) : ST_OK;
}

/* Frees what no thread uses any more. */
static void destroy(struct line_writer *writer)
{
    writer->sink->ops->free(writer->sink);
    sem_destroy(&writer->wake);
    sem_destroy(&writer->done);
    writer->magic = 0;
    free(writer->ring);
    free(writer);
}

static enum status refuse(struct line_sink *sink, struct error *err)
{
    error_no_memory(err, "%s", sink->ops->what);
    sink->ops->free(sink);
    return ST_EXHAUSTED;
}

enum status line_writer_new(struct line_sink *sink, size_t bytes, struct line_writer **out_writer,
                            struct error *err)
{
    must(bytes >= LINE_BYTES_MAX);
    struct line_writer *writer = calloc(1, sizeof(*writer));
    uint8_t *ring = malloc(bytes);
    if (!writer || !ring) {
        free(writer);
        free(ring);
        return refuse(sink, err);
    }
    writer->magic = LINE_WRITER_MAGIC;
    writer->sink = sink;
    writer->size = bytes;
    writer->ring = ring;
    must(sem_init(&writer->wake, 0, 0) == 0 && sem_init(&writer->done, 0, 0) == 0);
    int rc = hal_thread_start(&writer->thread, write_all, writer);
    if (rc != 0) {
        error_set(err, ST_SYSTEM, "thread for %s: %s", sink->ops->what, strerror(rc));
        destroy(writer);
        return ST_SYSTEM;
    }
    *out_writer = writer;
    return ST_OK;
}

void line_writer_free(struct line_writer *writer)
{
    if (!writer) {
        return;
    }
    OBJ_CHECK(writer, LINE_WRITER_MAGIC);
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += STOP_S;
    atomic_store(&writer->sink->is_stopping, true);
    sem_post(&writer->wake);
    while (sem_timedwait(&writer->done, &end) < 0) {
        if (errno == ETIMEDOUT) {
            pthread_detach(writer->thread); /* it hangs in a write, and keeps its memory */
            return;
        }
    }
    pthread_join(writer->thread, NULL);
    destroy(writer);
}
