/* SPDX-License-Identifier: MIT */
/*
 * Why a worker cannot miss work: |epoch| is incremented after work has become available. A worker
 * reads it, looks for work, then sleeps only while it is unchanged, which the kernel checks. If a
 * thread increments it and sees no parked worker, then this happened before the kernel's check.
 *
 * Why a submission cannot be forgotten: as long as tiles of its region are left, a worker is
 * inside, or one has been woken and has not looked yet, or all are busy and will look before they
 * sleep. The worker that finishes a region begins the next one, so waking others affects speed
 * only.
 */
#include "config.h"

#include "hal/cpu/workers.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "hal/command_priv.h"
#include "hal/cpu/cpus.h"
#include "hal/cpu/submission.h"
#include "hal/cpu/thread_memory.h"
#include "hal/thread.h"

#define SPINS 512  /* pauses of 15 to 50 ns */
#define PATIENCE 8 /* times SPINS: for a region that another worker is about to finish */

/*
 * After this time a worker may leave its submission for one that has no worker, if both belong to
 * one share or if the other share has had less time. The time is in proportion to the cost of the
 * submission that waits: a client that waits for a long answer hardly notices it. So submissions of
 * about the same cost follow each other, each with the caches to itself.
 */
#define PATIENCE_TIMES 2
#define PATIENCE_NS_MIN 200000u
#define PATIENCE_NS_MAX 10000000u /* if it is of another share */

struct worker {
    struct hal_cpu_workers *workers;
    pthread_t thread;
    uint32_t number; /* from 1 on; 0: a caller that helps */
    struct hal_cpu_thread_memory *memory;
};

/* Start-time fair queueing: a share that was idle begins with the time that the others have had. */
struct share {
    uint64_t used_ns;  /* of the workers' time, divided by the weight */
    uint32_t runnable; /* submissions */
};

#define WORKERS_MAGIC 0x304ce25au

struct hal_cpu_workers {
    uint32_t magic;
    pthread_mutex_t lock;
    struct list runnable; /* oldest first, under the lock, as are the shares */
    struct share shares[HAL_SHARES];
    uint64_t floor_ns; /* used_ns of the share that was served last */
    unsigned spins;    /* 0 where a spinning thread would only keep another from running */
    uint32_t count, nice;

    _Alignas(64) _Atomic uint32_t epoch;
    atomic_uint spinning; /* idle and looking at |epoch| */
    atomic_uint parked;
    atomic_uint callers; /* threads that serve their own submission in a worker's place */
    /* Written under the lock: */
    atomic_uint unserved; /* runnable submissions without a worker; of the next one of them: */
    _Atomic uint64_t next_ns, next_cost; /* the used_ns of its share, and its cost */
    atomic_uint next_share;
    atomic_bool stop;

    struct hal_cpu_thread_memory *memories; /* owned; one a worker */
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

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void futex(_Atomic uint32_t *word, int op, uint32_t value)
{
    /* Woken, changed before, interrupted: the caller looks again in each case. */
    syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

static struct hal_cpu_submission *entry(struct list *link)
{
    struct hal_cpu_submission *submission = LIST_ENTRY(link, struct hal_cpu_submission, link);
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    return submission;
}

/* ---- what waits for a worker; with the lock held --------------------------------------------- */

static bool is_unserved(const struct hal_cpu_submission *submission)
{
    return atomic_load_explicit(&submission->visitors, memory_order_relaxed) == 0;
}

/* The unserved submission to serve next: the oldest of the share that has had the least time; NULL:
 * there is none. With the lock held. */
static struct hal_cpu_submission *next_unserved(struct hal_cpu_workers *workers)
{
    struct hal_cpu_submission *next = NULL;
    for (struct list *l = workers->runnable.next; l != &workers->runnable; l = l->next) {
        struct hal_cpu_submission *s = entry(l);
        if (is_unserved(s) &&
            (!next || workers->shares[s->share].used_ns < workers->shares[next->share].used_ns)) {
            next = s;
        }
    }
    return next;
}

/* One that is not wanted any more takes no time. */
static uint64_t cost_of(const struct hal_cpu_submission *submission)
{
    bool is_wanted =
        !submission->nothing_to_run &&
        !(submission->cancel && atomic_load_explicit(submission->cancel, memory_order_relaxed));
    return is_wanted ? submission->command->cost : 0;
}

/* Tells busy workers what waits for a worker. With the lock held, after every change. */
static void look_ahead(struct hal_cpu_workers *workers)
{
    bool has_next = atomic_load_explicit(&workers->unserved, memory_order_relaxed) > 0;
    const struct hal_cpu_submission *next = has_next ? next_unserved(workers) : NULL;
    uint64_t used_ns = next ? workers->shares[next->share].used_ns : UINT64_MAX;
    atomic_store_explicit(&workers->next_share, next ? next->share : 0, memory_order_relaxed);
    atomic_store_explicit(&workers->next_cost, next ? cost_of(next) : 0, memory_order_relaxed);
    atomic_store_explicit(&workers->next_ns, used_ns, memory_order_relaxed);
}

/* With the lock held. */
static void enlist(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    must(submission->share < HAL_SHARES && submission->weight > 0);
    must(list_is_empty(&submission->link) && !submission->finished);
    struct share *share = &workers->shares[submission->share];
    if (share->runnable++ == 0 && share->used_ns < workers->floor_ns) {
        share->used_ns = workers->floor_ns;
    }
    list_push_back(&workers->runnable, &submission->link);
}

/* Does another submission of its share wait whose turn it is, or that is small beside it? With the
 * lock held. */
static bool has_to_line_up(struct hal_cpu_workers *workers,
                           const struct hal_cpu_submission *submission)
{
    const struct hal_cpu_submission *next = next_unserved(workers);
    bool has_to = next && next->share == submission->share;
    for (struct list *l = workers->runnable.next; !has_to && l != &workers->runnable; l = l->next) {
        has_to = is_unserved(entry(l)) && entry(l)->share == submission->share &&
                 cost_of(entry(l)) <= submission->command->cost / PATIENCE_TIMES;
    }
    return has_to;
}

/* The answer may be out of date at once; the addition to the cursor tells for certain. */
static bool has_work(struct hal_cpu_submission *submission, uint64_t cursor)
{
    const struct hal_cpu_routine *routine = submission->routine;
    uint32_t region = hal_cpu_cursor_region(cursor);
    return region < routine->region_count &&
           hal_cpu_cursor_front(cursor) + hal_cpu_cursor_back(cursor) <
               routine->regions[region].batches;
}

/* Does it have tiles left, and fewer workers than these are worth? */
static bool wants_help(struct hal_cpu_submission *submission)
{
    uint64_t cursor = atomic_load(&submission->cursor);
    return has_work(submission, cursor) &&
           atomic_load_explicit(&submission->visitors, memory_order_relaxed) <=
               submission->routine->regions[hal_cpu_cursor_region(cursor)].helpers;
}

/* The submission to serve next: one without a worker; if all have one, the oldest that wants help.
 * NULL: nothing to do. With the lock held. */
static struct hal_cpu_submission *choose(struct hal_cpu_workers *workers)
{
    struct hal_cpu_submission *next = next_unserved(workers);
    for (struct list *l = workers->runnable.next; !next && l != &workers->runnable; l = l->next) {
        next = wants_help(entry(l)) ? entry(l) : NULL;
    }
    return next;
}

/* ---- waking ---------------------------------------------------------------------------------- */

/* Work for |wanted| workers has become available. */
static void wake(struct hal_cpu_workers *workers, uint32_t wanted)
{
    atomic_fetch_add(&workers->epoch, 1);
    unsigned spinning = atomic_load(&workers->spinning);
    unsigned parked = atomic_load(&workers->parked);
    if (parked && wanted > spinning) {
        futex(&workers->epoch, FUTEX_WAKE, wanted - spinning);
    }
}

/* ---- visits ---------------------------------------------------------------------------------- */

/* A worker's stay in a submission. */
struct visit {
    uint64_t began_ns;  /* or until when its time has been counted */
    uint64_t used_ns;   /* of the share, at that time */
    uint64_t others_ns; /* when unserved submissions were first seen; 0: not yet */
    bool is_helper;     /* others were here before */
    bool from_end;      /* where it takes tiles */
};

/* Begins a visit. With the lock held. */
static void enter(struct worker *worker, struct hal_cpu_submission *submission, struct visit *visit)
{
    struct hal_cpu_workers *workers = worker->workers;
    uint64_t used_ns = workers->shares[submission->share].used_ns;
    uint32_t here = atomic_fetch_add_explicit(&submission->visitors, 1, memory_order_relaxed);
    if (here == 0) {
        workers->floor_ns = used_ns > workers->floor_ns ? used_ns : workers->floor_ns;
        hal_cpu_submission_place(submission, worker->memory);
    }
    *visit = (struct visit){
        .began_ns = now_ns(), .used_ns = used_ns, .is_helper = here > 0, .from_end = here % 2};
}

/* Enters a submission, or NULL. |*out_more|: another one has no worker yet. */
static struct hal_cpu_submission *pick(struct worker *worker, bool *out_more, struct visit *visit)
{
    struct hal_cpu_workers *workers = worker->workers;
    pthread_mutex_lock(&workers->lock);
    struct hal_cpu_submission *best = choose(workers);
    bool is_first = best && is_unserved(best);
    if (best) {
        enter(worker, best, visit);
    }
    if (is_first) {
        must(atomic_fetch_sub_explicit(&workers->unserved, 1, memory_order_relaxed) > 0);
        look_ahead(workers);
    }
    *out_more = atomic_load_explicit(&workers->unserved, memory_order_relaxed) > 0;
    pthread_mutex_unlock(&workers->lock);
    return best;
}

/* Ends a visit of |served_ns|. True: the submission is not complete, and no worker serves it now.
 */
static bool leave(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                  uint64_t served_ns)
{
    pthread_mutex_lock(&workers->lock);
    workers->shares[submission->share].used_ns += served_ns / submission->weight;
    bool lines_up = !submission->finished && has_to_line_up(workers, submission);
    uint32_t here = atomic_fetch_sub_explicit(&submission->visitors, 1, memory_order_relaxed);
    bool last = here == 1;
    must(here > 0);
    bool finished = submission->finished;
    if (last && !finished) { /* its turn is over, or it only lets another share pass */
        if (lines_up) {
            list_remove(&submission->link);
            list_push_back(&workers->runnable, &submission->link);
        }
        atomic_fetch_add_explicit(&workers->unserved, 1, memory_order_relaxed);
    }
    look_ahead(workers);
    pthread_mutex_unlock(&workers->lock);
    if (last && finished) {
        hal_cpu_submission_recycle(submission);
    }
    return last && !finished;
}

/* Does |visit| last while another submission waits that should not have to? It is |now|. */
static bool is_too_long(const struct hal_cpu_workers *workers,
                        const struct hal_cpu_submission *submission, const struct visit *visit,
                        uint64_t now)
{
    uint64_t cost = atomic_load_explicit(&workers->next_cost, memory_order_relaxed);
    uint64_t patience_ns = PATIENCE_NS_MIN;
    if (cost > PATIENCE_NS_MIN / PATIENCE_TIMES) {
        patience_ns = cost < UINT64_MAX / PATIENCE_TIMES ? PATIENCE_TIMES * cost : UINT64_MAX;
    }
    if (atomic_load_explicit(&workers->next_share, memory_order_relaxed) == submission->share) {
        return now - visit->others_ns >= patience_ns;
    }
    bool is_behind = atomic_load_explicit(&workers->next_ns, memory_order_relaxed) <
                     visit->used_ns + (now - visit->began_ns) / submission->weight;
    bool is_small = patience_ns <= submission->command->cost;
    patience_ns = patience_ns < PATIENCE_NS_MAX ? patience_ns : PATIENCE_NS_MAX;
    return is_behind && (is_small || now - visit->others_ns >= patience_ns);
}

/* Counts the time of |visit| until |now|. Otherwise a submission of the same share would seem to be
 * the next one all the time, and hide the submissions of other shares. */
static void count_time(struct hal_cpu_workers *workers, const struct hal_cpu_submission *submission,
                       struct visit *visit, uint64_t now)
{
    pthread_mutex_lock(&workers->lock);
    workers->shares[submission->share].used_ns += (now - visit->began_ns) / submission->weight;
    visit->began_ns = now;
    visit->used_ns = workers->shares[submission->share].used_ns;
    look_ahead(workers);
    pthread_mutex_unlock(&workers->lock);
}

/*
 * Should the visit end, because another submission waits for a worker? It has a helper at once.
 * Otherwise it waits for some time. But it does not wait at all if it is small beside this one and
 * its share has had less time; otherwise a party with short submissions would wait before each of
 * them.
 */
static bool is_over(struct hal_cpu_workers *workers, const struct hal_cpu_submission *submission,
                    struct visit *visit)
{
    if (atomic_load_explicit(&workers->unserved, memory_order_relaxed) == 0) {
        visit->others_ns = 0;
        return false;
    }
    if (visit->is_helper && atomic_load_explicit(&submission->visitors, memory_order_relaxed) > 1) {
        return true;
    }
    uint64_t now = now_ns();
    visit->others_ns = visit->others_ns ? visit->others_ns : now;
    if (now - visit->began_ns >= PATIENCE_NS_MIN) {
        count_time(workers, submission, visit, now);
    }
    return is_too_long(workers, submission, visit, now);
}

/* ---- regions and their tiles ----------------------------------------------------------------- */

/* Begins the first region. Returns how many workers are worth waking for it besides the first. */
static uint32_t begin(struct hal_cpu_submission *submission)
{
    const struct hal_cpu_routine *routine = submission->routine;
    uint64_t region = submission->nothing_to_run ? routine->region_count : 0;
    atomic_store_explicit(&submission->cursor, region * HAL_CPU_CURSOR_REGION,
                          memory_order_relaxed);
    if (submission->nothing_to_run) {
        return 0;
    }
    atomic_store_explicit(&submission->unfinished, routine->regions[0].tiles, memory_order_relaxed);
    return routine->regions[0].wake;
}

static void finish(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    pthread_mutex_lock(&workers->lock);
    must(!submission->finished && workers->shares[submission->share].runnable > 0);
    list_remove(&submission->link);
    workers->shares[submission->share].runnable--;
    submission->finished = true;
    pthread_mutex_unlock(&workers->lock);
    hal_cpu_submission_complete(submission);
    atomic_store_explicit(&submission->is_complete, true, memory_order_release);
}

/* Region |done| is complete. Called by the worker that ran its last tile; begins the next region.
 */
static void begin_next_region(struct hal_cpu_workers *workers,
                              struct hal_cpu_submission *submission, uint32_t done)
{
    const struct hal_cpu_routine *routine = submission->routine;
    uint32_t next = done + 1;
    if (atomic_load_explicit(&submission->status, memory_order_relaxed) != ST_OK) {
        next = routine->region_count;
    }
    if (next < routine->region_count) {
        atomic_store_explicit(&submission->unfinished, routine->regions[next].tiles,
                              memory_order_relaxed);
    }
    atomic_store_explicit(&submission->cursor, next * HAL_CPU_CURSOR_REGION, memory_order_release);
    if (next == routine->region_count) {
        finish(workers, submission);
        return;
    }
    uint32_t helpers = routine->regions[next].wake;
    uint32_t here = atomic_load_explicit(&submission->visitors, memory_order_relaxed) - 1;
    if (helpers > here) {
        wake(workers, helpers - here);
    }
}

static bool is_beyond(const struct hal_cpu_submission *submission, uint64_t seen)
{
    uint64_t cursor = atomic_load(&submission->cursor);
    return hal_cpu_cursor_region(cursor) != hal_cpu_cursor_region(seen);
}

/*
 * True: the cursor has moved on from |seen|. False: it is better to look elsewhere. The cursor
 * moves before the epoch changes, so a changed epoch may mean a new region of this submission: the
 * cursor is read once more at the end.
 */
static bool wait_for_region(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                            uint64_t seen)
{
    uint32_t epoch = atomic_load(&workers->epoch);
    for (unsigned i = 0; i < workers->spins * PATIENCE && !is_beyond(submission, seen); i++) {
        if (atomic_load(&workers->epoch) != epoch) {
            break;
        }
        pause_cpu();
    }
    return is_beyond(submission, seen);
}

/*
 * Runs the batch of tiles that was taken when the cursor was |taken|, and begins the next region if
 * they were the last of this one.
 */
static void run_batch(struct worker *worker, struct hal_cpu_submission *submission, uint64_t taken,
                      bool from_end)
{
    uint32_t number = hal_cpu_cursor_region(taken);
    const struct hal_cpu_region *region = &submission->routine->regions[number];
    uint32_t batch =
        from_end ? region->batches - 1 - hal_cpu_cursor_back(taken) : hal_cpu_cursor_front(taken);
    must(batch < region->batches);
    uint32_t first = batch * region->batch, left = region->tiles - first;
    uint32_t count = left < region->batch ? left : region->batch;
    /* Once it has failed, tiles are counted but no longer run. */
    if (atomic_load_explicit(&submission->status, memory_order_relaxed) == ST_OK) {
        const struct hal_cpu_run run = {
            .slots = submission->slots,
            .cancel = submission->cancel,
            .fault = submission->fault,
            .scratch = worker->memory->scratch,
            .profile = submission->profile,
            .command = submission->command,
            .thread = worker->number,
        };
        hal_status_fail(&submission->status, hal_cpu_run_tiles(region, first, count, &run));
    }
    uint32_t unfinished =
        atomic_fetch_sub_explicit(&submission->unfinished, count, memory_order_acq_rel);
    must(unfinished >= count);
    if (unfinished == count) {
        begin_next_region(worker->workers, submission, number);
    }
}

/* Works on |submission| until nothing is left to take in it, or it is the turn of another one. */
static void serve(struct worker *worker, struct hal_cpu_submission *submission, struct visit *visit)
{
    const struct hal_cpu_routine *routine = submission->routine;
    if (submission->nothing_to_run) {
        finish(worker->workers, submission);
        return;
    }
    for (;;) {
        uint64_t cursor = atomic_load_explicit(&submission->cursor, memory_order_acquire);
        if (hal_cpu_cursor_region(cursor) == routine->region_count) {
            return;
        }
        if (!has_work(submission, cursor)) {
            if (!wait_for_region(worker->workers, submission, cursor)) {
                return;
            }
            continue;
        }
        /* The submission may be in a later region by now, so only the addition's result counts. */
        cursor = atomic_fetch_add_explicit(
            &submission->cursor, visit->from_end ? HAL_CPU_CURSOR_BACK : HAL_CPU_CURSOR_FRONT,
            memory_order_acq_rel);
        if (has_work(submission, cursor)) {
            run_batch(worker, submission, cursor, visit->from_end);
            if (is_over(worker->workers, submission, visit)) {
                return;
            }
        }
    }
}

/* ---- threads --------------------------------------------------------------------------------- */

/*
 * Spins for a while, until the epoch changes. Stops when callers work in the place of workers, so
 * that never more threads are busy than there are workers: they would have to share processors.
 */
static void spin(struct hal_cpu_workers *workers, uint32_t epoch)
{
    atomic_fetch_add(&workers->spinning, 1);
    for (unsigned i = 0; i < workers->spins && atomic_load(&workers->epoch) == epoch; i++) {
        if (atomic_load_explicit(&workers->callers, memory_order_relaxed) >
            atomic_load_explicit(&workers->parked, memory_order_relaxed)) {
            break;
        }
        pause_cpu();
    }
    atomic_fetch_sub(&workers->spinning, 1);
}

/* The next submission to serve; NULL: the device is being freed. */
static struct hal_cpu_submission *next_submission(struct worker *worker, struct visit *visit)
{
    struct hal_cpu_workers *workers = worker->workers;
    for (;;) {
        bool more;
        uint32_t epoch = atomic_load(&workers->epoch);
        struct hal_cpu_submission *submission = pick(worker, &more, visit);
        if (submission) {
            if (more) {
                wake(workers, 1);
            }
            return submission;
        }
        if (atomic_load(&workers->stop)) {
            return NULL;
        }
        spin(workers, epoch);
        atomic_fetch_add(&workers->parked, 1);
        futex(&workers->epoch, FUTEX_WAIT, epoch);
        atomic_fetch_sub(&workers->parked, 1);
    }
}

static void *worker_main(void *arg)
{
    struct worker *worker = arg;
    OBJ_CHECK(worker->workers, WORKERS_MAGIC);
    struct hal_cpu_submission *submission;
    struct visit visit;
    hal_thread_be_nice(worker->workers->nice);
    while ((submission = next_submission(worker, &visit)) != NULL) {
        serve(worker, submission, &visit);
        leave(worker->workers, submission, now_ns() - visit.began_ns);
    }
    return NULL;
}

/* ---- handing over ---------------------------------------------------------------------------- */

void hal_cpu_workers_add(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission)
{
    OBJ_CHECK(workers, WORKERS_MAGIC);
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    uint32_t helpers = begin(submission);
    pthread_mutex_lock(&workers->lock);
    enlist(workers, submission);
    atomic_fetch_add_explicit(&workers->unserved, 1, memory_order_relaxed);
    look_ahead(workers);
    pthread_mutex_unlock(&workers->lock);
    wake(workers, helpers + 1);
}

/* Has everything been run, and are the signals still to be given? */
static bool is_ending(const struct hal_cpu_submission *submission)
{
    uint64_t cursor = atomic_load_explicit(&submission->cursor, memory_order_relaxed);
    return hal_cpu_cursor_region(cursor) == submission->routine->region_count &&
           !atomic_load_explicit(&submission->is_complete, memory_order_acquire);
}

void hal_cpu_workers_serve(struct hal_cpu_workers *workers, struct hal_cpu_submission *submission,
                           struct hal_cpu_thread_memory *memory)
{
    OBJ_CHECK(workers, WORKERS_MAGIC);
    OBJ_CHECK(submission, HAL_CPU_SUBMISSION_MAGIC);
    must(memory);
    struct worker self = {.workers = workers, .memory = memory};
    struct visit visit;
    uint32_t helpers = begin(submission);
    atomic_fetch_add(&workers->callers, 1);
    pthread_mutex_lock(&workers->lock);
    enlist(workers, submission);
    enter(&self, submission, &visit);
    pthread_mutex_unlock(&workers->lock);
    if (helpers) {
        wake(workers, helpers);
    }
    serve(&self, submission, &visit);
    for (unsigned i = 0; i < workers->spins && is_ending(submission); i++) {
        pause_cpu();
    }
    atomic_fetch_sub(&workers->callers, 1);
    if (leave(workers, submission, now_ns() - visit.began_ns)) {
        wake(workers, 1);
    }
}

/* ---- looking --------------------------------------------------------------------------------- */

struct hal_cpu_thread_memory *hal_cpu_worker_memory(struct hal_cpu_workers *workers, uint32_t index)
{
    OBJ_CHECK(workers, WORKERS_MAGIC);
    must(index < workers->count);
    return &workers->memories[index];
}

/* The mark does not depend on the order of the list. The multiplier comes from the 64-bit FNV hash.
 */
uint64_t hal_cpu_workers_mark(struct hal_cpu_workers *workers)
{
    OBJ_CHECK(workers, WORKERS_MAGIC);
    const uint64_t prime = 0x100000001b3;
    uint64_t mark = 0;
    pthread_mutex_lock(&workers->lock);
    for (struct list *l = workers->runnable.next; l != &workers->runnable; l = l->next) {
        uint64_t one = (uintptr_t)entry(l) * prime;
        one = (one ^ atomic_load_explicit(&entry(l)->cursor, memory_order_relaxed)) * prime;
        one = (one ^ atomic_load_explicit(&entry(l)->unfinished, memory_order_relaxed)) * prime;
        mark += one;
    }
    pthread_mutex_unlock(&workers->lock);
    return mark;
}

/* ---- life ------------------------------------------------------------------------------------ */

static enum status start_worker(struct worker *worker, uint32_t number, struct error *err)
{
    char name[sizeof("worker-4294967295")];
    if (!hal_cpu_thread_memory_init(worker->memory)) {
        return error_set(err, ST_EXHAUSTED, "no address space for the memory of worker %u", number);
    }
    int rc = hal_thread_start(&worker->thread, worker_main, worker);
    if (rc != 0) {
        hal_cpu_thread_memory_fini(worker->memory);
        return error_set(err, ST_SYSTEM, "worker %u: %s", number, strerror(rc));
    }
    snprintf(name, sizeof(name), "worker-%u", number);
    pthread_setname_np(worker->thread, name);
    return ST_OK;
}

enum status hal_cpu_workers_new(uint32_t count, uint32_t nice, struct hal_cpu_workers **out_workers,
                                struct error *err)
{
    must(count > 0 && count <= HAL_CPU_WORKERS_MAX);
    size_t size = sizeof(struct hal_cpu_workers) + count * sizeof(struct worker);
    struct hal_cpu_workers *workers = aligned_alloc(64, align_up(size, 64));
    struct hal_cpu_thread_memory *memories = calloc(count, sizeof(*memories));
    if (!workers || !memories) {
        free(workers);
        free(memories);
        return error_no_memory(err, "%u workers", count);
    }
    memset(workers, 0, size);
    workers->magic = WORKERS_MAGIC;
    workers->memories = memories;
    must(pthread_mutex_init(&workers->lock, NULL) == 0);
    list_init(&workers->runnable);
    workers->nice = nice;
    workers->spins = hal_cpu_count() > 1 && count <= hal_cpu_count() ? SPINS : 0;
    for (; workers->count < count; workers->count++) {
        struct worker *worker = &workers->threads[workers->count];
        worker->workers = workers;
        worker->memory = &memories[workers->count];
        worker->number = workers->count + 1;
        enum status status = start_worker(worker, workers->count, err);
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
    OBJ_CHECK(workers, WORKERS_MAGIC);
    must(list_is_empty(&workers->runnable) && atomic_load(&workers->callers) == 0);
    must(atomic_load(&workers->unserved) == 0);
    atomic_store(&workers->stop, true);
    atomic_fetch_add(&workers->epoch, 1);
    futex(&workers->epoch, FUTEX_WAKE, INT_MAX);
    for (uint32_t i = 0; i < workers->count; i++) {
        pthread_join(workers->threads[i].thread, NULL);
        hal_cpu_thread_memory_fini(&workers->memories[i]);
    }
    pthread_mutex_destroy(&workers->lock);
    workers->magic = 0;
    free(workers->memories);
    free(workers);
}
