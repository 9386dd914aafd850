/* SPDX-License-Identifier: MIT */
/*
 * The ring is one buffer of the device. Reservations are kept in ring order, the oldest first;
 * between its end and the beginning of the oldest one the ring is free. A reservation that does not
 * fit before the end of the ring begins at 0: the gap stays unused until the older ones have gone.
 * The ring starts over at 0 whenever it is empty, which keeps the memory that is touched small.
 */
#include "config.h"

#include "hal/pool.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/list.h"
#include "hal/asan.h"
#include "hal/device_priv.h"

struct hal_pool {
    struct hal_buffer *ring;
    size_t align;
    pthread_mutex_t lock;
    struct list reservations; /* in ring order; released ones wait for the older ones */
    struct list unused;       /* objects to use again */
    size_t head;              /* where the next reservation begins, if it fits */
    size_t peak_bytes;
    size_t live;
};

struct reservation {
    struct hal_buffer base; /* first: a hal_buffer * is cast back */
    struct hal_pool *pool;
    struct list link;
    size_t begin;
    bool released;
};

static struct reservation *oldest(struct hal_pool *pool)
{
    return LIST_ENTRY(pool->reservations.next, struct reservation, link);
}

enum status hal_pool_new(struct hal_device *device, size_t size, struct hal_pool **out_pool,
                         struct error *err)
{
    struct hal_pool *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return error_set(err, ST_EXHAUSTED, "no memory for a pool");
    }
    size_t align = device->props.buffer_align;
    if (size <= SIZE_MAX - align) { /* so that a reservation of everything fits */
        size = align_up(size, align);
    }
    enum status status = hal_buffer_new(device, size, &pool->ring, err);
    if (status != ST_OK) {
        free(pool);
        return status;
    }
    must(pthread_mutex_init(&pool->lock, NULL) == 0);
    list_init(&pool->reservations);
    list_init(&pool->unused);
    pool->align = align;
    hal_asan_poison(pool->ring->host, pool->ring->host ? size : 0);
    *out_pool = pool;
    return ST_OK;
}

void hal_pool_free(struct hal_pool *pool)
{
    if (!pool) {
        return;
    }
    must(pool->live == 0 && list_is_empty(&pool->reservations));
    while (!list_is_empty(&pool->unused)) {
        struct list *link = pool->unused.next;
        list_remove(link);
        free(LIST_ENTRY(link, struct reservation, link));
    }
    hal_asan_unpoison(pool->ring->host, pool->ring->host ? pool->ring->size : 0);
    hal_buffer_unref(pool->ring);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* With gaps. */
static size_t used_bytes(struct hal_pool *pool)
{
    if (list_is_empty(&pool->reservations)) {
        return 0;
    }
    size_t tail = oldest(pool)->begin;
    return pool->head > tail ? pool->head - tail : pool->ring->size - tail + pool->head;
}

/* Where |size| bytes, not 0, can begin. */
static bool find_room(struct hal_pool *pool, size_t size, size_t *out_begin)
{
    size_t end = pool->ring->size;
    *out_begin = pool->head;
    if (list_is_empty(&pool->reservations)) {
        *out_begin = 0;
        return size <= end;
    }
    size_t tail = oldest(pool)->begin;
    if (pool->head <= tail) {
        return size <= tail - pool->head;
    }
    if (size <= end - pool->head) {
        return true;
    }
    *out_begin = 0;
    return size <= tail;
}

static void recycle(struct hal_buffer *buffer)
{
    struct reservation *reservation = (struct reservation *)buffer;
    struct hal_pool *pool = reservation->pool;

    hal_asan_poison(buffer->host, buffer->host ? buffer->size : 0);
    pthread_mutex_lock(&pool->lock);
    pool->live--;
    reservation->released = true;
    if (buffer->size == 0) {
        list_push_front(&pool->unused, &reservation->link);
    }
    while (!list_is_empty(&pool->reservations) && oldest(pool)->released) {
        struct list *link = pool->reservations.next;
        list_remove(link);
        list_push_front(&pool->unused, link);
    }
    pthread_mutex_unlock(&pool->lock);
}

/* An object that has been used before, or a new one. With the lock held. */
static struct reservation *take_object(struct hal_pool *pool)
{
    if (list_is_empty(&pool->unused)) {
        return malloc(sizeof(struct reservation));
    }
    struct list *link = pool->unused.next;
    list_remove(link);
    return LIST_ENTRY(link, struct reservation, link);
}

/* With the lock held. */
static enum status reserve_locked(struct hal_pool *pool, size_t size,
                                  struct reservation **out_reservation, struct error *err)
{
    size_t begin = 0, padded = align_up(size, pool->align);
    if (size && !find_room(pool, padded, &begin)) {
        return error_set(err, ST_EXHAUSTED, "the ring has no %zu bytes free: %zu of %zu are in use",
                         size, used_bytes(pool), pool->ring->size);
    }
    struct reservation *reservation = take_object(pool);
    if (!reservation) {
        return error_set(err, ST_EXHAUSTED, "no memory for a reservation");
    }
    *reservation = (struct reservation){.pool = pool, .begin = begin};
    list_init(&reservation->link);
    pool->live++;
    if (size) {
        list_push_back(&pool->reservations, &reservation->link);
        pool->head = begin + padded;
        size_t used = used_bytes(pool);
        pool->peak_bytes = used > pool->peak_bytes ? used : pool->peak_bytes;
    }
    *out_reservation = reservation;
    return ST_OK;
}

enum status hal_pool_reserve(struct hal_pool *pool, size_t size, struct hal_buffer **out_buffer,
                             struct error *err)
{
    struct hal_buffer *ring = pool->ring;
    struct reservation *reservation = NULL;
    if (size > ring->size) {
        return error_set(err, ST_TOO_LARGE, "%zu bytes wanted, the whole ring has %zu", size,
                         ring->size);
    }
    pthread_mutex_lock(&pool->lock);
    enum status status = reserve_locked(pool, size, &reservation, err);
    pthread_mutex_unlock(&pool->lock);
    if (status != ST_OK) {
        return status;
    }
    struct hal_buffer *buffer = &reservation->base;
    *buffer = (struct hal_buffer){
        .device = ring->device,
        .size = size,
        .host = size && ring->host ? (char *)ring->host + reservation->begin : NULL,
        .root = ring,
        .root_offset = reservation->begin,
        .recycle = recycle,
    };
    atomic_init(&buffer->refs, 1);
    hal_asan_unpoison(buffer->host, buffer->host ? size : 0);
    *out_buffer = buffer;
    return ST_OK;
}

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats)
{
    pthread_mutex_lock(&pool->lock);
    *out_stats = (struct hal_pool_stats){
        .size_bytes = pool->ring->size,
        .used_bytes = used_bytes(pool),
        .peak_bytes = pool->peak_bytes,
        .reserved_count = pool->live,
    };
    pthread_mutex_unlock(&pool->lock);
}
