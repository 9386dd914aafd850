/* SPDX-License-Identifier: MIT */
/*
 * |head| and |tail| count bytes since the start; the bytes between them wait. The adding thread
 * moves |head|, the writing thread |tail|. The writing thread sleeps until it is woken by the first
 * line, and then waits a little for more.
 */
#include "config.h"

#include "server/process/line_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/counter.h"
#include "hal/thread.h"
#include "server/process/log.h"

#define CHUNK_BYTES (64 << 10) /* of a write to a file */
#define GATHER_NS 5000000      /* what comes within this time is written together */
#define STOP_S 2               /* for the last lines */
#define POLL_MS 100
#define POLLS_MAX 10 /* after the stop */

#define LINE_WRITER_MAGIC 0x6c77726du

struct line_writer {
    uint32_t magic;
    const char *path; /* borrowed; NULL: stderr */
    int fd;
    size_t chunk_bytes; /* of a write */
    size_t size;
    uint8_t *ring; /* owned */
    _Atomic size_t head, tail;
    atomic_bool is_woken, is_stopping;
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
    size_t limit = len < writer->chunk_bytes ? len : writer->chunk_bytes;
    const uint8_t *end = limit ? memrchr(writer->chunk, '\n', limit) : NULL;
    if (!end && len) {
        end = memchr(writer->chunk, '\n', len); /* one line that is longer */
    }
    must(!len || end);
    len = len ? (size_t)(end + 1 - writer->chunk) : 0;
    atomic_store_explicit(&writer->tail, tail + len, memory_order_release);
    return len;
}

/* A pipe is full. False: it has been for too long, and the daemon stops. */
static bool wait_for_room(struct line_writer *writer, int *polls)
{
    struct pollfd room = {.fd = writer->fd, .events = POLLOUT};
    poll(&room, 1, POLL_MS);
    *polls += atomic_load(&writer->is_stopping);
    return *polls < POLLS_MAX;
}

static void write_lines(struct line_writer *writer, size_t len)
{
    size_t done = 0;
    int polls = 0;
    while (done < len) {
        ssize_t written = write(writer->fd, writer->chunk + done, len - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (written == 0 || (errno != EINTR && errno != EAGAIN) ||
                   (errno == EAGAIN && !wait_for_room(writer, &polls))) {
            break;
        }
    }
    for (; done < len; done++) {
        counter_add(&writer->failed, writer->chunk[done] == '\n');
    }
}

static void *write_all(void *arg)
{
    struct line_writer *writer;
    OBJ_CAST(writer, arg, LINE_WRITER_MAGIC);
    bool is_last = false;
    while (!is_last) {
        const struct timespec pause = {.tv_nsec = GATHER_NS};
        while (sem_wait(&writer->wake) < 0) { /* only a signal ends it early */
        }
        if (!atomic_load(&writer->is_stopping)) {
            nanosleep(&pause, NULL);
        }
        atomic_exchange(&writer->is_woken, false); /* orders what was added before it, see wake() */
        is_last = atomic_load(&writer->is_stopping);
        for (size_t len = take_lines(writer); len; len = take_lines(writer)) {
            write_lines(writer, len);
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
    must(len > 0 && len <= LINE_WRITER_LINE_MAX && ((const uint8_t *)line)[len - 1] == '\n');
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

/* The descriptor keeps its number, because the thread may be writing. */
enum status line_writer_reopen(struct line_writer *writer, struct error *err)
{
    OBJ_CHECK(writer, LINE_WRITER_MAGIC);
    return writer->path ? log_reopen_file(writer->path, writer->fd, err) : ST_OK;
}

static enum status open_fd(struct line_writer *writer, struct error *err)
{
    struct stat st;
    if (writer->path) {
        TRY(log_open_file(writer->path, &writer->fd, err));
    }
    bool is_file = fstat(writer->fd, &st) == 0 && S_ISREG(st.st_mode);
    writer->chunk_bytes = is_file ? CHUNK_BYTES : PIPE_BUF;
    return ST_OK;
}

/* Frees what no thread uses any more. */
static void destroy(struct line_writer *writer)
{
    if (writer->path && writer->fd >= 0) {
        close(writer->fd);
    }
    sem_destroy(&writer->wake);
    sem_destroy(&writer->done);
    writer->magic = 0;
    free(writer->ring);
    free(writer);
}

static enum status start(struct line_writer *writer, struct error *err)
{
    TRY(open_fd(writer, err));
    int rc = hal_thread_start(&writer->thread, write_all, writer);
    return rc == 0 ? ST_OK
                   : error_set(err, ST_SYSTEM, "thread for the access log: %s", strerror(rc));
}

enum status line_writer_new(const char *path, size_t bytes, struct line_writer **out_writer,
                            struct error *err)
{
    must(bytes >= LINE_WRITER_LINE_MAX);
    struct line_writer *writer = calloc(1, sizeof(*writer));
    uint8_t *ring = malloc(bytes);
    if (!writer || !ring) {
        free(writer);
        free(ring);
        return error_set(err, ST_EXHAUSTED, "access log: out of memory");
    }
    writer->magic = LINE_WRITER_MAGIC;
    writer->path = path;
    writer->fd = path ? -1 : STDERR_FILENO;
    writer->size = bytes;
    writer->ring = ring;
    must(sem_init(&writer->wake, 0, 0) == 0 && sem_init(&writer->done, 0, 0) == 0);
    if (start(writer, err) != ST_OK) {
        destroy(writer);
        return err->code;
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
    atomic_store(&writer->is_stopping, true);
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
