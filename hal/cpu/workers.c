/* SPDX-License-Identifier: MIT */
/*
 * How a worker cannot miss work: |epoch| is counted up after something has become available. A
 * worker reads it, then looks for work, then sleeps only as long as it is still the same, which the
 * kernel checks. Who counts it up and sees no parked worker did so before that check.
 *
 * How a submission cannot be forgotten: as long as tiles of its region are left, a worker is
 * inside, or one has been woken and not looked yet, or all are busy and will look before they
 * sleep. Who finishes a region goes on with the next one, so that waking others is a matter of
 * speed only.
 */
#include "config.h"

#include "hal/cpu/workers.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/asan.h"
#include "hal/cpu/cpus.h"
#include "hal/cpu/submission.h"

#define SPINS 512 /* pauses of 15 to 50 ns */

struct worker {
    struct hal_cpu_workers *workers;
    pthread_t thread;
    void *scratch;
};

struct hal_cpu_workers {
    pthread_mutex_t lock;
    struct list runnable; /* oldest first, under the lock */
    unsigned spins;       /* 0 where a spinning thread would only keep another from running */
    uint32_t count;

    _Alignas(64) _Atomic uint32_t epoch;
    atomic_uint spinning; /* idle and looking at |epoch| */
    atomic_uint parked;
    atomic_bool stop;

    struct worker threads[];
};

static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    /* Woken, changed before, interrupted: the caller looks again in each case. */
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

void *hal_cpu_scratch_new(void)
{
    void *scratch = mmap(NULL, HAL_CPU_SCRATCH_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (scratch == MAP_FAILED) {
        return NULL;
    }
    hal_asan_poison(scratch, HAL_CPU_SCRATCH_BYTES);
    return scratch;
}

void hal_cpu_scratch_free(void *scratch)
{
    if (scratch) {
        hal_asan_unpoison(scratch, HAL_CPU_SCRATCH_BYTES);
        munmap(scratch, HAL_CPU_SCRATCH_BYTES);
    }
}

/* Something has become available that |wanted| workers could serve. */
static void wake(struct hal_cpu_workers *workers, uint32_t wanted)
{
    atomic_fetch_add(&workers->epoch, 1);
    unsigned spinning = atomic_load(&workers->spinning);
    unsigned parked = atomic_load(&workers->parked);
    if (parked && wanted > spinning) {
        futex(&workers->epoch, FUTEX_WAKE, wanted - spinning);
    }
}

void hal_cpu_workers_add(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    const struct hal_cpu_program *program = submission->program;
    uint32_t wanted = 1;
    uint64_t region = submission->nothing_to_run ? program->region_count : 0;

    atomic_store_explicit(&submission->cursor, region << 32, memory_order_relaxed);
    if (!submission->nothing_to_run) {
        atomic_store_explicit(&submission->unfinished, program->regions[0].tiles,
                              memory_order_relaxed);
        wanted += program->regions[0].helpers;
    }
    pthread_mutex_lock(&workers->lock);
    list_push_back(&workers->runnable, &submission->link);
    pthread_mutex_unlock(&workers->lock);
    wake(workers, wanted);
}

/* May be out of date when it is read; whoever acts on it finds out. */
static bool has_work(struct hal_cpu_submission *submission, uint64_t cursor)
{
    const struct hal_cpu_program *program = submission->program;
    uint32_t region = (uint32_t)(cursor >> 32);
    return region < program->region_count && (uint32_t)cursor < program->regions[region].tiles;
}

static struct hal_cpu_submission *entry(struct list *link)
{
    return LIST_ENTRY(link, struct hal_cpu_submission, link);
}

/* Enters a submission, or NULL. |*out_more|: another one has no worker yet. */
static struct hal_cpu_submission *pick(struct hal_cpu_workers *workers, bool *out_more)
{
    struct hal_cpu_submission *best = NULL;
    bool best_visited = true;
    *out_more = false;

    pthread_mutex_lock(&workers->lock);
    for (struct list *l = workers->runnable.next; l != &workers->runnable; l = l->next) {
        struct hal_cpu_submission *s = entry(l);
        bool visited = atomic_load_explicit(&s->visitors, memory_order_relaxed) != 0;
        if (!visited && !best_visited) {
            *out_more = true;
            break;
        }
        if (!visited || (!best && has_work(s, atomic_load(&s->cursor)))) {
            best = s;
            best_visited = visited;
        }
    }
    if (best) {
        atomic_fetch_add_explicit(&best->visitors, 1, memory_order_relaxed);
    }
    pthread_mutex_unlock(&workers->lock);
    return best;
}

static void leave(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    pthread_mutex_lock(&workers->lock);
    bool last = atomic_fetch_sub_explicit(&submission->visitors, 1, memory_order_relaxed) == 1;
    bool finished = submission->finished;
    pthread_mutex_unlock(&workers->lock);
    if (last && finished) {
        hal_cpu_submission_recycle(submission);
    }
}

static void finish(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    pthread_mutex_lock(&workers->lock);
    list_remove(&submission->link);
    submission->finished = true;
    pthread_mutex_unlock(&workers->lock);
    hal_cpu_submission_complete(submission);
}

/* Region |done| has been run by all. By who ran its last tile, who goes on with the next. */
static void advance(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                    uint32_t done)
{
    const struct hal_cpu_program *program = submission->program;
    uint32_t next = done + 1;
    if (atomic_load_explicit(&submission->status, memory_order_relaxed) != ST_OK) {
        next = program->region_count;
    }
    if (next < program->region_count) {
        atomic_store_explicit(&submission->unfinished, program->regions[next].tiles,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&submission->cursor, (uint64_t)next << 32, memory_order_release);
    if (next == program->region_count) {
        finish(workers, submission);
        return;
    }
    uint32_t helpers = program->regions[next].helpers;
    uint32_t here = atomic_load_explicit(&submission->visitors, memory_order_relaxed) - 1;
    if (helpers > here) {
        wake(workers, helpers - here);
    }
}

/* True when the cursor moved on from |seen|; false when it is better to look elsewhere. */
static bool wait_for_region(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                            uint64_t seen)
{
    uint32_t epoch = atomic_load(&workers->epoch);
    for (unsigned i = 0; i < workers->spins; i++) {
        if (atomic_load_explicit(&submission->cursor, memory_order_relaxed) >> 32 != seen >> 32) {
            return true;
        }
        if (atomic_load_explicit(&workers->epoch, memory_order_relaxed) != epoch) {
            return false;
        }
        pause_cpu();
    }
    return false;
}

/* Runs tiles that nobody else has, and begins the next region if they were the last of this one. */
static void run_batch(struct worker *worker, struct hal_cpu_submission *submission,
                      const struct hal_cpu_region *region, uint32_t number, uint32_t first,
                      uint32_t count)
{
    const atomic_bool *cancel = submission->cancel;
    /* Once it has failed, tiles are counted but no longer run. */
    if (atomic_load_explicit(&submission->status, memory_order_relaxed) == ST_OK &&
        !hal_cpu_run_tiles(region, first, count, submission->slots, cancel, worker->scratch)) {
        hal_cpu_submission_fail(submission, ST_CANCELLED);
    }
    if (atomic_fetch_sub_explicit(&submission->unfinished, count, memory_order_acq_rel) == count) {
        advance(worker->workers, submission, number);
    }
}

/* Works on |submission| until nothing is left to take in it. */
static void serve(struct worker *worker, struct hal_cpu_submission *submission)
{
    const struct hal_cpu_program *program = submission->program;
    if (submission->nothing_to_run) {
        finish(worker->workers, submission);
        return;
    }
    for (;;) {
        uint64_t cursor = atomic_load_explicit(&submission->cursor, memory_order_acquire);
        uint32_t number = (uint32_t)(cursor >> 32);
        if (number == program->region_count) {
            return;
        }
        if (!has_work(submission, cursor)) {
            if (!wait_for_region(worker->workers, submission, cursor)) {
                return;
            }
            continue;
        }
        /* By now it may be in a later region: what counts is what the addition returns. */
        cursor = atomic_fetch_add_explicit(&submission->cursor, program->regions[number].batch,
                                           memory_order_acq_rel);
        uint32_t batch = program->regions[number].batch;
        number = (uint32_t)(cursor >> 32);
        if (has_work(submission, cursor)) {
            const struct hal_cpu_region *region = &program->regions[number];
            uint32_t first = (uint32_t)cursor;
            uint32_t left = region->tiles - first;
            run_batch(worker, submission, region, number, first, batch < left ? batch : left);
        }
    }
}

/* The next submission to serve; NULL when the device goes. */
static struct hal_cpu_submission *next_submission(struct hal_cpu_workers *workers)
{
    for (;;) {
        bool more;
        uint32_t epoch = atomic_load(&workers->epoch);
        struct hal_cpu_submission *submission = pick(workers, &more);
        if (submission) {
            if (more) {
                wake(workers, 1);
            }
            return submission;
        }
        if (atomic_load(&workers->stop)) {
            return NULL;
        }
        atomic_fetch_add(&workers->spinning, 1);
        for (unsigned i = 0; i < workers->spins && atomic_load(&workers->epoch) == epoch; i++) {
            pause_cpu();
        }
        atomic_fetch_sub(&workers->spinning, 1);
        atomic_fetch_add(&workers->parked, 1);
        futex(&workers->epoch, FUTEX_WAIT, epoch);
        atomic_fetch_sub(&workers->parked, 1);
    }
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    struct hal_cpu_submission *submission;
    while ((submission = next_submission(worker->workers)) != NULL) {
        serve(worker, submission);
        leave(worker->workers, submission);
    }
    return NULL;
}

/* Signals are for the threads of whoever uses the library. */
static enum status start(struct worker *worker, uint32_t number, struct error *err)
{
    char name[16];
    sigset_t all, before;
    worker->scratch = hal_cpu_scratch_new();
    if (!worker->scratch) {
        return error_set(err, ST_EXHAUSTED, "no address space for the scratch of worker %u",
                         number);
    }
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&worker->thread, NULL, worker_main, worker);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc != 0) {
        hal_cpu_scratch_free(worker->scratch);
        return error_set(err, ST_SYSTEM, "worker %u: %s", number, strerror(rc));
    }
    snprintf(name, sizeof(name), "worker-%u", number);
    pthread_setname_np(worker->thread, name);
    return ST_OK;
}

enum status hal_cpu_workers_new(uint32_t count, struct hal_cpu_workers **out_workers,
                                struct error *err)
{
    must(count > 0 && count <= HAL_CPU_WORKERS_MAX);
    size_t size = sizeof(struct hal_cpu_workers) + count * sizeof(struct worker);
    struct hal_cpu_workers *workers = aligned_alloc(64, align_up(size, 64));
    if (!workers) {
        return error_set(err, ST_EXHAUSTED, "no memory for %u workers", count);
    }
    memset(workers, 0, size);
    must(pthread_mutex_init(&workers->lock, NULL) == 0);
    list_init(&workers->runnable);
    workers->spins = hal_cpu_count() > 1 && count <= hal_cpu_count() ? SPINS : 0;
    for (; workers->count < count; workers->count++) {
        struct worker *worker = &workers->threads[workers->count];
        worker->workers = workers;
        enum status status = start(worker, workers->count, err);
        if (status != ST_OK) {
            hal_cpu_workers_free(workers);
            return status;
        }
    }
    *out_workers = workers;
    return ST_OK;
}

void hal_cpu_workers_free(struct hal_cpu_workers *workers)
{
    must(list_is_empty(&workers->runnable));
    atomic_store(&workers->stop, true);
    atomic_fetch_add(&workers->epoch, 1);
    futex(&workers->epoch, FUTEX_WAKE, INT_MAX);
    for (uint32_t i = 0; i < workers->count; i++) {
        pthread_join(workers->threads[i].thread, NULL);
        hal_cpu_scratch_free(workers->threads[i].scratch);
    }
    pthread_mutex_destroy(&workers->lock);
    free(workers);
}
