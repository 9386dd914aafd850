/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/recheck.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "base/refs.h"
#include "hal/thread.h"
#include "runtime/pte/file.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/seen.h"

/* Its owners and its thread have a reference each, so that the owners need not wait. */
struct rt_recheck {
    struct refs refs, owners;
    char name[PATH_MAX], record[PATH_MAX];
    int fd; /* the thread's */
    size_t bytes;
    struct timespec modified;
    uint64_t digest[2];
    sem_t ended; /* above 0 when |is_right| and |is_wrong| are final */
    atomic_bool stops, is_right, is_wrong;
};

static void unref(struct rt_recheck *recheck)
{
    if (refs_drop(&recheck->refs)) {
        sem_destroy(&recheck->ended);
        free(recheck);
    }
}

/* Has nobody written to the file since it was mapped? */
static bool is_unwritten(const struct rt_recheck *recheck)
{
    struct stat st;
    return fstat(recheck->fd, &st) == 0 && (uintmax_t)st.st_size == recheck->bytes &&
           st.st_mtim.tv_sec == recheck->modified.tv_sec &&
           st.st_mtim.tv_nsec == recheck->modified.tv_nsec;
}

static void *recheck_main(void *arg)
{
    struct rt_recheck *recheck = arg;
    uint64_t digest[2];
    hal_thread_be_nice(HAL_THREAD_NICE_MAX); /* it gives way to all others */
    bool is_read = rt_file_digest_read(recheck->fd, recheck->bytes, &recheck->stops, digest) &&
                   is_unwritten(recheck);
    bool is_same = is_read && memcmp(digest, recheck->digest, sizeof(digest)) == 0;
    close(recheck->fd);
    if (is_read && !is_same) {
        rt_seen_forget(recheck->record);
    }
    atomic_store(&recheck->is_right, is_same);
    atomic_store(&recheck->is_wrong, is_read && !is_same);
    sem_post(&recheck->ended);
    unref(recheck);
    return NULL;
}

static bool start(struct rt_recheck *recheck, int fd)
{
    pthread_t thread;
    recheck->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (recheck->fd < 0) {
        return false;
    }
    refs_take(&recheck->refs);
    if (hal_thread_start(&thread, recheck_main, recheck) != 0) {
        close(recheck->fd);
        unref(recheck);
        return false;
    }
    must(pthread_detach(thread) == 0);
    return true;
}

struct rt_recheck *rt_recheck_start(const struct pte_file *file, const uint64_t digest[2],
                                    const char *record)
{
    struct rt_recheck *recheck = calloc(1, sizeof(*recheck));
    if (!recheck) {
        return NULL;
    }
    refs_init(&recheck->refs);
    refs_init(&recheck->owners);
    must(sem_init(&recheck->ended, 0, 0) == 0);
    recheck->bytes = file->bytes.len;
    recheck->modified = file->modified;
    memcpy(recheck->digest, digest, sizeof(recheck->digest));
    snprintf(recheck->name, sizeof(recheck->name), "%s", file->name);
    snprintf(recheck->record, sizeof(recheck->record), "%s", record);
    if (!start(recheck, file->fd)) {
        unref(recheck);
        return NULL;
    }
    return recheck;
}

bool rt_recheck_wait(struct rt_recheck *recheck)
{
    while (sem_wait(&recheck->ended) != 0) { /* a signal came */
    }
    sem_post(&recheck->ended); /* for whoever else waits */
    return atomic_load(&recheck->is_right);
}

struct rt_recheck *rt_recheck_ref(struct rt_recheck *recheck)
{
    if (recheck) {
        refs_take(&recheck->refs);
        refs_take(&recheck->owners);
    }
    return recheck;
}

void rt_recheck_free(struct rt_recheck *recheck)
{
    if (!recheck) {
        return;
    }
    if (refs_drop(&recheck->owners)) {
        atomic_store(&recheck->stops, true);
    }
    unref(recheck);
}

enum status rt_recheck_verify(const struct rt_recheck *recheck, struct error *err)
{
    if (!atomic_load_explicit(&recheck->is_wrong, memory_order_acquire)) {
        return ST_OK;
    }
    return error_set(err, ST_UNAVAILABLE,
                     "the file %s has other bytes than its packed weights were made from, but the "
                     "same size and times",
                     recheck->name);
}
