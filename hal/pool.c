/* SPDX-License-Identifier: MIT */
/*
 * A ring is one buffer of the device; where the device has memory of its own there are two, of the
 * same size and under one lock. Reservations are kept in ring order, the oldest first;
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

struct ring {
    struct hal_buffer *memory; /* NULL: the other ring serves */
    struct list reservations;  /* in ring order; released ones wait for the older ones */
    size_t head;               /* where the next reservation begins, if it fits */
    size_t peak_bytes;
};

struct hal_pool {
    struct ring shared, transient;
    size_t align;
    pthread_mutex_t lock;
    struct list unused; /* objects to use again */
    size_t live;
};

struct reservation {
    struct hal_buffer base; /* first: a hal_buffer * is cast back */
    struct hal_pool *pool;
    struct ring *ring;
    struct list link;
    size_t begin;
    bool released;
};

static struct reservation *oldest(const struct ring *ring)
{
    return LIST_ENTRY(ring->reservations.next, struct reservation, link);
}

static enum status init_ring(struct ring *ring, struct hal_device *device, size_t size,
                             enum hal_memory memory, struct error *err)
{
    list_init(&ring->reservations);
    TRY(hal_buffer_new_in(device, size, memory, &ring->memory, err));
    hal_asan_poison(ring->memory->host, ring->memory->host ? size : 0);
    return ST_OK;
}

static void fini_ring(struct ring *ring)
{
    if (ring->memory) {
        must(list_is_empty(&ring->reservations));
        hal_asan_unpoison(ring->memory->host, ring->memory->host ? ring->memory->size : 0);
        hal_buffer_unref(ring->memory);
    }
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
    must(pthread_mutex_init(&pool->lock, NULL) == 0);
    list_init(&pool->unused);
    pool->align = align;
    enum status status = init_ring(&pool->shared, device, size, HAL_MEMORY_RAW, err);
    if (status == ST_OK && !device->props.host_visible) {
        status = init_ring(&pool->transient, device, size, HAL_MEMORY_TRANSIENT, err);
    }
    if (status != ST_OK) {
        hal_pool_free(pool);
        return status;
    }
    *out_pool = pool;
    return ST_OK;
}

void hal_pool_free(struct hal_pool *pool)
{
    if (!pool) {
        return;
    }
    must(pool->live == 0);
    while (!list_is_empty(&pool->unused)) {
        struct list *link = pool->unused.next;
        list_remove(link);
        free(LIST_ENTRY(link, struct reservation, link));
    }
    fini_ring(&pool->shared);
    fini_ring(&pool->transient);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

/* With gaps. */
static size_t used_bytes(const struct ring *ring)
{
    if (!ring->memory || list_is_empty(&ring->reservations)) {
        return 0;
    }
    size_t tail = oldest(ring)->begin;
    return ring->head > tail ? ring->head - tail : ring->memory->size - tail + ring->head;
}

/* Where |size| bytes, not 0, can begin. */
static bool find_room(const struct ring *ring, size_t size, size_t *out_begin)
{
    size_t end = ring->memory->size;
    *out_begin = ring->head;
    if (list_is_empty(&ring->reservations)) {
        *out_begin = 0;
        return size <= end;
    }
    size_t tail = oldest(ring)->begin;
    if (ring->head <= tail) {
        return size <= tail - ring->head;
    }
    if (size <= end - ring->head) {
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
    struct ring *ring = reservation->ring;
    while (!list_is_empty(&ring->reservations) && oldest(ring)->released) {
        struct list *link = ring->reservations.next;
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
static enum status reserve_locked(struct hal_pool *pool, struct ring *ring, size_t size,
                                  struct reservation **out_reservation, struct error *err)
{
    size_t begin = 0, padded = align_up(size, pool->align);
    if (size && !find_room(ring, padded, &begin)) {
        return error_set(err, ST_EXHAUSTED, "the ring has no %zu bytes free: %zu of %zu are in use",
                         size, used_bytes(ring), ring->memory->size);
    }
    struct reservation *reservation = take_object(pool);
    if (!reservation) {
        return error_set(err, ST_EXHAUSTED, "no memory for a reservation");
    }
    *reservation = (struct reservation){.pool = pool, .ring = ring, .begin = begin};
    list_init(&reservation->link);
    pool->live++;
    if (size) {
        list_push_back(&ring->reservations, &reservation->link);
        ring->head = begin + padded;
        size_t used = used_bytes(ring);
        ring->peak_bytes = used > ring->peak_bytes ? used : ring->peak_bytes;
    }
    *out_reservation = reservation;
    return ST_OK;
}

static enum status reserve(struct hal_pool *pool, struct ring *ring, size_t size,
                           struct hal_buffer **out_buffer, struct error *err)
{
    struct hal_buffer *memory = ring->memory;
    struct reservation *reservation = NULL;
    if (size > memory->size) {
        return error_set(err, ST_TOO_LARGE, "%zu bytes wanted, the whole ring has %zu", size,
                         memory->size);
    }
    pthread_mutex_lock(&pool->lock);
    enum status status = reserve_locked(pool, ring, size, &reservation, err);
    pthread_mutex_unlock(&pool->lock);
    if (status != ST_OK) {
        return status;
    }
    struct hal_buffer *buffer = &reservation->base;
    *buffer = (struct hal_buffer){
        .device = memory->device,
        .size = size,
        .host = size && memory->host ? (char *)memory->host + reservation->begin : NULL,
        .root = memory,
        .root_offset = reservation->begin,
        .recycle = recycle,
    };
    atomic_init(&buffer->refs, 1);
    hal_asan_unpoison(buffer->host, buffer->host ? size : 0);
    *out_buffer = buffer;
    return ST_OK;
}

enum status hal_pool_reserve(struct hal_pool *pool, size_t size, struct hal_buffer **out_buffer,
                             struct error *err)
{
    return reserve(pool, &pool->shared, size, out_buffer, err);
}

enum status hal_pool_reserve_transient(struct hal_pool *pool, size_t size,
                                       struct hal_buffer **out_buffer, struct error *err)
{
    return reserve(pool, pool->transient.memory ? &pool->transient : &pool->shared, size,
                   out_buffer, err);
}

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats)
{
    pthread_mutex_lock(&pool->lock);
    *out_stats = (struct hal_pool_stats){
        .size_bytes = pool->shared.memory->size,
        .used_bytes = used_bytes(&pool->shared),
        .peak_bytes = pool->shared.peak_bytes,
        .reserved_count = pool->live,
    };
    pthread_mutex_unlock(&pool->lock);
}
