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
#include <unistd.h>

#include "base/check.h"
#include "base/refs.h"
#include "hal/thread.h"
#include "runtime/pte/file.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/seen.h"

/* Its owner and its thread have a reference each, so that the owner need not wait. */
struct rt_recheck {
    struct refs refs;
    char name[PATH_MAX], record[PATH_MAX];
    int fd; /* the thread's */
    size_t bytes;
    uint64_t digest[2];
    sem_t ended; /* posted when |is_right| and |is_wrong| are final */
    bool is_waited_for;
    atomic_bool stops, is_right, is_wrong;
};

static void unref(struct rt_recheck *recheck)
{
    if (refs_drop(&recheck->refs)) {
        sem_destroy(&recheck->ended);
        free(recheck);
    }
}

static void *recheck_main(void *arg)
{
    struct rt_recheck *recheck = arg;
    uint64_t digest[2];
    hal_thread_be_nice(HAL_THREAD_NICE_MAX); /* it gives way to all others */
    bool is_read = rt_file_digest_read(recheck->fd, recheck->bytes, &recheck->stops, digest);
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
    must(sem_init(&recheck->ended, 0, 0) == 0);
    recheck->bytes = file->bytes.len;
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
    while (!recheck->is_waited_for) {
        recheck->is_waited_for = sem_wait(&recheck->ended) == 0; /* else a signal came */
    }
    return atomic_load(&recheck->is_right);
}

void rt_recheck_free(struct rt_recheck *recheck)
{
    if (recheck) {
        atomic_store(&recheck->stops, true);
        unref(recheck);
    }
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
