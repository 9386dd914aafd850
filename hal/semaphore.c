/* SPDX-License-Identifier: MIT */
/*
 * The value and the failure are written under the lock and may be read without it, so that waiting
 * for a point that has been reached takes no lock. The list of waiters is sorted by value: a signal
 * takes a prefix of the list, chained by link.next, and calls each waiter in it.
 */
#include "config.h"

#include "base/refs.h"
#include "hal/semaphore.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "base/check.h"

#define SEMAPHORE_MAGIC 0x5e3a4054u

struct hal_semaphore {
    uint32_t magic;
    struct refs refs;
    atomic_int failure; /* an enum status */
    _Atomic uint64_t value;
    pthread_mutex_t lock;
    pthread_cond_t changed; /* for hal_semaphore_wait() */
    unsigned sleepers;
    struct list waiters;
};

enum status hal_semaphore_new(uint64_t value, struct hal_semaphore **out_semaphore,
                              struct error *err)
{
    pthread_condattr_t attr;
    struct hal_semaphore *semaphore = calloc(1, sizeof(*semaphore));
    if (!semaphore) {
        return error_no_memory(err, "a semaphore");
    }
    semaphore->magic = SEMAPHORE_MAGIC;
    refs_init(&semaphore->refs);
    atomic_init(&semaphore->failure, ST_OK);
    atomic_init(&semaphore->value, value);
    list_init(&semaphore->waiters);
    must(pthread_mutex_init(&semaphore->lock, NULL) == 0);
    must(pthread_condattr_init(&attr) == 0);
    must(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    must(pthread_cond_init(&semaphore->changed, &attr) == 0);
    pthread_condattr_destroy(&attr);
    *out_semaphore = semaphore;
    return ST_OK;
}

struct hal_semaphore *hal_semaphore_ref(struct hal_semaphore *semaphore)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    refs_take(&semaphore->refs);
    return semaphore;
}

void hal_semaphore_unref(struct hal_semaphore *semaphore)
{
    if (!semaphore) {
        return;
    }
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    if (!refs_drop(&semaphore->refs)) {
        return;
    }
    must(list_is_empty(&semaphore->waiters) && semaphore->sleepers == 0);
    semaphore->magic = 0;
    pthread_cond_destroy(&semaphore->changed);
    pthread_mutex_destroy(&semaphore->lock);
    free(semaphore);
}

static enum status failure_of(struct hal_semaphore *semaphore)
{
    return (enum status)atomic_load_explicit(&semaphore->failure, memory_order_acquire);
}

enum status hal_semaphore_query(struct hal_semaphore *semaphore, uint64_t *out_value)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    enum status status = failure_of(semaphore);
    *out_value = atomic_load_explicit(&semaphore->value, memory_order_acquire);
    return status;
}

/*
 * True when |value| is reached or can no longer be reached; |*out_status| says which. The failure
 * is read first: after a failure the value no longer changes.
 */
static bool settled(struct hal_semaphore *semaphore, uint64_t value, enum status *out_status)
{
    *out_status = failure_of(semaphore);
    if (atomic_load_explicit(&semaphore->value, memory_order_acquire) >= value) {
        *out_status = ST_OK;
        return true;
    }
    return *out_status != ST_OK;
}

/* Takes the waiters for points up to |value| off the list, as a chain. With the lock held. */
static struct list *take_waiters(struct hal_semaphore *semaphore, uint64_t value)
{
    struct list *first = NULL, **last = &first;
    while (!list_is_empty(&semaphore->waiters)) {
        struct list *link = semaphore->waiters.next;
        if (LIST_ENTRY(link, struct hal_semaphore_waiter, link)->value > value) {
            break;
        }
        list_remove(link);
        link->next = NULL;
        *last = link;
        last = &link->next;
    }
    return first;
}

/* Callbacks that this thread is in: one may call the next. */
static _Thread_local unsigned calls;

bool hal_semaphore_is_calling(void)
{
    return calls > 0;
}

static void call(struct hal_semaphore_waiter *waiter, enum status status)
{
    calls++;
    waiter->fn(waiter, status);
    calls--;
}

/*
 * Wakes the sleepers, releases the lock and calls the waiters of the chain from take_waiters(). A
 * thread that sees the new value without the lock may drop the last reference of others at once, so
 * the semaphore is held until the lock is released.
 */
static void tell_and_unlock(struct hal_semaphore *semaphore, struct list *chain, enum status status)
{
    if (semaphore->sleepers) {
        pthread_cond_broadcast(&semaphore->changed);
    }
    pthread_mutex_unlock(&semaphore->lock);
    hal_semaphore_unref(semaphore);
    while (chain) {
        struct hal_semaphore_waiter *waiter = LIST_ENTRY(chain, struct hal_semaphore_waiter, link);
        chain = chain->next;
        call(waiter, status);
    }
}

void hal_semaphore_signal(struct hal_semaphore *semaphore, uint64_t value)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    pthread_mutex_lock(&semaphore->lock);
    if (failure_of(semaphore) != ST_OK) {
        pthread_mutex_unlock(&semaphore->lock);
        return;
    }
    must(value > atomic_load_explicit(&semaphore->value, memory_order_relaxed));
    hal_semaphore_ref(semaphore);
    atomic_store_explicit(&semaphore->value, value, memory_order_release);
    tell_and_unlock(semaphore, take_waiters(semaphore, value), ST_OK);
}

void hal_semaphore_fail(struct hal_semaphore *semaphore, enum status status)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    must(status != ST_OK);
    pthread_mutex_lock(&semaphore->lock);
    if (failure_of(semaphore) != ST_OK) {
        pthread_mutex_unlock(&semaphore->lock);
        return;
    }
    hal_semaphore_ref(semaphore);
    atomic_store_explicit(&semaphore->failure, (int)status, memory_order_release);
    tell_and_unlock(semaphore, take_waiters(semaphore, UINT64_MAX), status);
}

static struct timespec deadline_after(uint64_t timeout_ns)
{
    struct timespec t;
    must(clock_gettime(CLOCK_MONOTONIC, &t) == 0);
    uint64_t ns = (uint64_t)t.tv_nsec + timeout_ns % 1000000000;
    t.tv_sec += (time_t)(timeout_ns / 1000000000 + ns / 1000000000);
    t.tv_nsec = (long)(ns % 1000000000);
    return t;
}

enum status hal_semaphore_wait(struct hal_semaphore *semaphore, uint64_t value, uint64_t timeout_ns)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    enum status status;
    if (settled(semaphore, value, &status)) {
        return status;
    }
    struct timespec deadline = {0};
    bool for_ever = timeout_ns == UINT64_MAX;
    if (!for_ever) {
        deadline = deadline_after(timeout_ns);
    }
    int rc = 0;
    pthread_mutex_lock(&semaphore->lock);
    semaphore->sleepers++;
    while (!settled(semaphore, value, &status) && rc == 0) {
        rc = for_ever ? pthread_cond_wait(&semaphore->changed, &semaphore->lock)
                      : pthread_cond_timedwait(&semaphore->changed, &semaphore->lock, &deadline);
    }
    semaphore->sleepers--;
    if (!settled(semaphore, value, &status)) {
        must(rc == ETIMEDOUT);
        status = ST_TIMEOUT;
    }
    pthread_mutex_unlock(&semaphore->lock);
    return status;
}

/*
 * Inserts behind the last waiter with the same or a smaller value. The search begins at the end,
 * because most waiters arrive in order. With the lock held.
 */
static void insert_waiter(struct hal_semaphore *semaphore, struct hal_semaphore_waiter *waiter)
{
    struct list *at = &semaphore->waiters;
    while (at->prev != &semaphore->waiters &&
           LIST_ENTRY(at->prev, struct hal_semaphore_waiter, link)->value > waiter->value) {
        at = at->prev;
    }
    list_push_back(at, &waiter->link);
}

void hal_semaphore_on(struct hal_semaphore *semaphore, struct hal_semaphore_waiter *waiter)
{
    OBJ_CHECK(semaphore, SEMAPHORE_MAGIC);
    must(waiter->fn);
    enum status status;
    if (settled(semaphore, waiter->value, &status)) {
        call(waiter, status); /* usual for a submission that its own thread has run */
        return;
    }
    pthread_mutex_lock(&semaphore->lock);
    if (!settled(semaphore, waiter->value, &status)) {
        insert_waiter(semaphore, waiter);
        pthread_mutex_unlock(&semaphore->lock);
        return;
    }
    pthread_mutex_unlock(&semaphore->lock);
    call(waiter, status);
}
