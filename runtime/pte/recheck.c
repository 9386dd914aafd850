/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/pte/recheck.h"

#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/thread.h"
#include "runtime/pte/file.h"
#include "runtime/pte/file_digest.h"
#include "runtime/pte/seen.h"

#define LEAST_NICE 19 /* the niceness of threads that give way to all others */

struct rt_recheck {
    struct pte_file file; /* a descriptor of its own, no bytes */
    uint64_t digest[2];
    char record[PATH_MAX];
    pthread_t thread;
    bool is_joined;
    atomic_bool stops, is_wrong;
};

static void be_least_urgent(void)
{
#ifdef __linux__
    (void)setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), LEAST_NICE);
#endif
}

static void *recheck_main(void *arg)
{
    struct rt_recheck *recheck = arg;
    uint64_t digest[2];
    be_least_urgent();
    bool is_read =
        rt_file_digest_read(recheck->file.fd, recheck->file.bytes.len, &recheck->stops, digest);
    if (is_read && memcmp(digest, recheck->digest, sizeof(digest)) != 0 &&
        pte_file_is_unchanged(&recheck->file)) {
        rt_seen_forget(recheck->record);
        atomic_store(&recheck->is_wrong, true);
    }
    return NULL;
}

struct rt_recheck *rt_recheck_start(const struct pte_file *file, const uint64_t digest[2],
                                    const char *record)
{
    struct rt_recheck *recheck = calloc(1, sizeof(*recheck));
    if (!recheck) {
        return NULL;
    }
    recheck->file = *file;
    recheck->file.fd = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    memcpy(recheck->digest, digest, sizeof(recheck->digest));
    snprintf(recheck->record, sizeof(recheck->record), "%s", record);
    if (recheck->file.fd >= 0 && hal_thread_start(&recheck->thread, recheck_main, recheck) == 0) {
        return recheck;
    }
    if (recheck->file.fd >= 0) {
        close(recheck->file.fd);
    }
    free(recheck);
    return NULL;
}

void rt_recheck_wait(struct rt_recheck *recheck)
{
    if (!recheck->is_joined) {
        must(pthread_join(recheck->thread, NULL) == 0);
        recheck->is_joined = true;
    }
}

void rt_recheck_free(struct rt_recheck *recheck)
{
    if (recheck) {
        atomic_store(&recheck->stops, true);
        rt_recheck_wait(recheck);
        close(recheck->file.fd);
        free(recheck);
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
                     recheck->file.name);
}
