/* SPDX-License-Identifier: MIT */
/*
 * A store is the memory that pools share: one zone (hal/zone_priv.h) that the host can access and,
 * if the device has memory of its own, a second zone of the same size. One lock guards the store.
 */
#include "config.h"

#include "hal/pool.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "base/asan.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/list.h"
#include "hal/device_priv.h"
#include "hal/zone_priv.h"

/* A member counts as alone in its pool while the others hold at most one part in so many of a zone.
 */
#define NEXT_TO_NOTHING 64

/* hal_pool_new_up_to() tries no smaller pool. */
#define SIZE_MIN ((size_t)1 << 20)

enum zone_index { SHARED, TRANSIENT, ZONE_COUNT };

#define STORE_MAGIC 0x5704e056u
#define POOL_MAGIC 0x9001a057u

struct store {
    uint32_t magic;
    struct hal_zone zones[ZONE_COUNT];
    size_t align;
    pthread_mutex_t lock;
    struct list unused; /* struct reservation, to be used again */
    size_t live;
    uint32_t pool_count;
    uint64_t now_ms; /* of the last hal_pool_trim() */
};

struct hal_pool {
    uint32_t magic;
    struct store *store;    /* NULL: a member of no pool */
    struct hal_pool *share; /* of a member: its pool; else the pool itself */
    /* Under the store's lock. For a pool with members it includes their bytes. */
    size_t held_bytes[ZONE_COUNT];
    size_t charged_bytes;      /* of those of SHARED */
    size_t held_peak_bytes;    /* of SHARED */
    struct hal_pool *whole;    /* of a part: the pool whose statistics count its bytes; else NULL */
    atomic_uint user_count;    /* members, parts, and the owner */
    atomic_size_t taken_bytes; /* by reservations so far */
};

struct reservation {
    struct hal_buffer base; /* first: a hal_buffer * is cast back */
    struct hal_pool *pool;
    struct hal_zone *zone;
    struct hal_range *range; /* NULL: no bytes */
    struct list link;
};

/* The store of |pool|, which has one: a member has joined a pool. */
static struct store *in_store(const struct hal_pool *pool)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    OBJ_CHECK(pool->store, STORE_MAGIC);
    return pool->store;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void free_store(struct store *store)
{
    OBJ_CHECK(store, STORE_MAGIC);
    must(store->live == 0 && store->pool_count == 0);
    store->magic = 0;
    while (!list_is_empty(&store->unused)) {
        struct list *link = store->unused.next;
        list_remove(link);
        free(LIST_ENTRY(link, struct reservation, link));
    }
    hal_zone_fini(&store->zones[SHARED]);
    hal_zone_fini(&store->zones[TRANSIENT]);
    pthread_mutex_destroy(&store->lock);
    free(store);
}

static enum status init_store(struct store *store, struct hal_device *device, size_t size,
                              struct error *err)
{
    store->align = device->props.buffer_align;
    if (size <= SIZE_MAX - store->align) { /* so that a reservation of everything fits */
        size = align_up(size, store->align);
    }
    TRY(hal_zone_init(&store->zones[SHARED], device, size, HAL_MEMORY_RAW, err));
    return device->props.host_visible
               ? ST_OK
               : hal_zone_init(&store->zones[TRANSIENT], device, size, HAL_MEMORY_TRANSIENT, err);
}

static struct store *new_store(void)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store) {
        store->magic = STORE_MAGIC;
        must(pthread_mutex_init(&store->lock, NULL) == 0);
        list_init(&store->unused);
        for (int i = 0; i < ZONE_COUNT; i++) { /* hal_zone_fini() expects these lists */
            list_init(&store->zones[i].suballoc.unused);
        }
    }
    return store;
}

static enum status new_pool(struct store *store, struct hal_pool **out_pool, struct error *err)
{
    struct hal_pool *pool = calloc(1, sizeof(*pool));
    if (!pool) {
        return error_no_memory(err, "a pool");
    }
    pool->magic = POOL_MAGIC;
    pool->store = store;
    pool->share = pool;
    atomic_init(&pool->user_count, 1);
    pthread_mutex_lock(&store->lock);
    store->pool_count++;
    pthread_mutex_unlock(&store->lock);
    *out_pool = pool;
    return ST_OK;
}

enum status hal_pool_new(struct hal_device *device, size_t size, struct hal_pool **out_pool,
                         struct error *err)
{
    struct store *store = new_store();
    if (!store) {
        return error_no_memory(err, "a pool");
    }
    enum status status = init_store(store, device, size, err);
    if (status == ST_OK) {
        status = new_pool(store, out_pool, err);
    }
    if (status != ST_OK) {
        free_store(store);
    }
    return status;
}

/* The addresses that the process may have (ulimit -v). */
static size_t addresses_max(void)
{
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    return is_limited ? (size_t)limit.rlim_cur : SIZE_MAX;
}

enum status hal_pool_new_up_to(struct hal_device *device, size_t size_max,
                               struct hal_pool **out_pool, struct error *err)
{
    OBJ_CHECK(device, HAL_DEVICE_MAGIC);
    size_t most = device->props.memory_bytes_max, addresses = addresses_max();
    size_t half = (addresses < most ? addresses : most) / 2; /* models need the rest */
    size_t size = half < size_max ? half : size_max;
    enum status status = hal_pool_new(device, size, out_pool, err);
    while (status == ST_EXHAUSTED && size > SIZE_MIN) {
        size /= 2;
        status = hal_pool_new(device, size, out_pool, err);
    }
    return status;
}

enum status hal_pool_share(struct hal_pool *pool, struct hal_pool **out_pool, struct error *err)
{
    return new_pool(in_store(pool), out_pool, err);
}

enum status hal_pool_part(struct hal_pool *pool, struct hal_pool **out_part, struct error *err)
{
    must(pool->share == pool && !pool->whole);
    TRY(new_pool(in_store(pool), out_part, err));
    (*out_part)->whole = pool;
    atomic_fetch_add_explicit(&pool->user_count, 1, memory_order_relaxed);
    return ST_OK;
}

enum status hal_pool_member_new(struct hal_pool **out_member, struct error *err)
{
    struct hal_pool *member = calloc(1, sizeof(*member));
    if (!member) {
        return error_no_memory(err, "a pool");
    }
    member->magic = POOL_MAGIC;
    *out_member = member;
    return ST_OK;
}

void hal_pool_join(struct hal_pool *member, struct hal_pool *pool)
{
    OBJ_CHECK(member, POOL_MAGIC);
    must(member != pool && !member->store && in_store(pool));
    member->store = pool->store;
    member->share = pool->share;
    member->charged_bytes = member->held_peak_bytes = 0;
    atomic_fetch_add_explicit(&member->share->user_count, 1, memory_order_relaxed);
}

/* Nobody else uses |pool| any more. */
static void drop_pool(struct hal_pool *pool)
{
    struct store *store = pool->store;
    must(pool->held_bytes[SHARED] == 0 && pool->held_bytes[TRANSIENT] == 0);
    if (pool->whole) {
        must(atomic_fetch_sub_explicit(&pool->whole->user_count, 1, memory_order_relaxed) > 1);
    }
    pool->magic = 0;
    free(pool);
    pthread_mutex_lock(&store->lock);
    must(store->pool_count > 0);
    bool is_last = --store->pool_count == 0;
    pthread_mutex_unlock(&store->lock);
    if (is_last) {
        free_store(store);
    }
}

static void leave_share(struct hal_pool *share)
{
    unsigned before = atomic_fetch_sub_explicit(&share->user_count, 1, memory_order_acq_rel);
    must(before > 1 || share->whole);
    if (before == 1) {
        drop_pool(share); /* its owner has gone before */
    }
}

void hal_pool_leave(struct hal_pool *member)
{
    OBJ_CHECK(member, POOL_MAGIC);
    must(member->store && member->share != member);
    must(member->held_bytes[SHARED] == 0 && member->held_bytes[TRANSIENT] == 0);
    leave_share(member->share);
    member->store = NULL;
}

void hal_pool_free(struct hal_pool *pool)
{
    if (!pool) {
        return;
    }
    OBJ_CHECK(pool, POOL_MAGIC);
    if (!pool->store) { /* a member */
        pool->magic = 0;
        free(pool);
        return;
    }
    must(pool->share == pool);
    unsigned before = atomic_fetch_sub_explicit(&pool->user_count, 1, memory_order_acq_rel);
    must(before == 1 || pool->whole);
    if (before == 1) {
        drop_pool(pool);
    }
}

/* ---- the rule; with the lock held ------------------------------------------------------------ */

static enum zone_index index_of(const struct hal_zone *zone, const struct hal_pool *pool)
{
    const struct hal_zone *zones = pool->store->zones;
    must(zone == &zones[SHARED] || zone == &zones[TRANSIENT]); /* of the same store */
    return (enum zone_index)(zone - zones);
}

/* The free memory, less what |pool| holds outside of the store (its charges). */
static size_t left_bytes(const struct hal_pool *pool, const struct hal_zone *zone)
{
    size_t left = zone->size_bytes - zone->used_bytes;
    size_t charged = index_of(zone, pool) == SHARED ? pool->share->charged_bytes : 0;
    return charged < left ? left - charged : 0;
}

/* May |pool| hold |more| bytes in addition to its own? */
static bool is_fair(const struct hal_pool *pool, const struct hal_zone *zone, size_t more)
{
    enum zone_index index = index_of(zone, pool);
    size_t held = pool->share->held_bytes[index], left = left_bytes(pool, zone);
    must(held >= pool->held_bytes[index]); /* the members' bytes count */
    bool is_alone = held - pool->held_bytes[index] <= zone->size_bytes / NEXT_TO_NOTHING;
    return is_alone || (in_range(more, 0, left) && in_range(held, more, left - more));
}

static void note_peaks(struct hal_pool *pool, struct hal_zone *zone)
{
    size_t used = zone->used_bytes + zone->charged_bytes;
    zone->used_peak_bytes = used > zone->used_peak_bytes ? used : zone->used_peak_bytes;
    if (pool->held_bytes[SHARED] > pool->held_peak_bytes) {
        pool->held_peak_bytes = pool->held_bytes[SHARED];
    }
}

/* The next pool that counts the bytes of |pool|, too; NULL: there is none. */
static struct hal_pool *counts_too(const struct hal_pool *pool)
{
    return pool->share != pool ? pool->share : pool->whole;
}

/* Count |bytes| as held by |pool|, or as no longer held. */
static void count_held(struct hal_pool *pool, struct hal_zone *zone, size_t bytes)
{
    enum zone_index index = index_of(zone, pool);
    for (; pool; pool = counts_too(pool)) {
        pool->held_bytes[index] += bytes;
        note_peaks(pool, zone);
    }
}

static void count_gone(struct hal_pool *pool, struct hal_zone *zone, size_t bytes)
{
    enum zone_index index = index_of(zone, pool);
    for (; pool; pool = counts_too(pool)) {
        must(pool->held_bytes[index] >= bytes);
        pool->held_bytes[index] -= bytes;
    }
}

static void hold(struct hal_pool *pool, struct hal_zone *zone, size_t bytes)
{
    must(bytes <= zone->size_bytes - zone->used_bytes); /* check_rule() has allowed it */
    zone->used_bytes += bytes;
    count_held(pool, zone, bytes);
}

static void let_go(struct hal_pool *pool, struct hal_zone *zone, size_t bytes)
{
    must(zone->used_bytes >= bytes);
    zone->used_bytes -= bytes;
    count_gone(pool, zone, bytes);
}

static enum status refuse_full(const struct hal_zone *zone, size_t size, struct error *err)
{
    return error_set(err, ST_EXHAUSTED,
                     "no room for %zu bytes: %zu of the %zu bytes for requests are in use", size,
                     zone->used_bytes, zone->size_bytes);
}

/* Fails unless |pool| may hold |more| bytes. The rule is not applied to |excused| of them. */
static enum status check_rule(const struct hal_pool *pool, const struct hal_zone *zone, size_t more,
                              size_t excused, struct error *err)
{
    if (more > zone->size_bytes - zone->used_bytes) {
        return refuse_full(zone, more, err);
    }
    if (more > excused && !is_fair(pool, zone, more - excused)) {
        return error_set(err, ST_EXHAUSTED,
                         "no share of %zu bytes beside %zu: %zu of the %zu bytes for requests are "
                         "in use",
                         more, pool->share->held_bytes[index_of(zone, pool)], zone->used_bytes,
                         zone->size_bytes);
    }
    return ST_OK;
}

/* ---- reserving ------------------------------------------------------------------------------- */

/* The bytes by which a reservation is going to grow, and its bytes that the rule does not apply to.
 */
struct growing {
    size_t growth, excused;
};

static const struct growing as_it_is;

/* An object to use again, or a new one; NULL: no memory. With the lock held. */
static struct reservation *take_object(struct store *store)
{
    if (list_is_empty(&store->unused)) {
        return malloc(sizeof(struct reservation));
    }
    struct list *link = store->unused.next;
    list_remove(link);
    return LIST_ENTRY(link, struct reservation, link);
}

/* Fills in a reservation except its |base|. |size| is padded. With the lock held. */
static enum status reserve_locked(struct hal_pool *pool, struct hal_zone *zone, size_t size,
                                  const struct growing *growing,
                                  struct reservation **out_reservation, struct error *err)
{
    struct store *store = pool->store;
    struct hal_range *range = NULL;
    struct reservation *reservation = take_object(store);
    if (!reservation) {
        return error_no_memory(err, "a reservation");
    }
    enum status status = size ? check_rule(pool, zone, size, growing->excused, err) : ST_OK;
    if (status == ST_OK && size) {
        range = hal_suballoc_alloc(&zone->suballoc, size, growing->growth);
        status = range ? ST_OK : refuse_full(zone, size, err);
    }
    if (range) {
        hal_zone_take(zone, range, store->now_ms);
    }
    list_init(&reservation->link);
    if (status != ST_OK) {
        list_push_front(&store->unused, &reservation->link);
        return status;
    }
    reservation->pool = pool;
    reservation->zone = zone;
    reservation->range = range;
    store->live++;
    hold(pool, zone, size);
    atomic_fetch_add_explicit(&pool->taken_bytes, size, memory_order_relaxed);
    *out_reservation = reservation;
    return ST_OK;
}

static void recycle(struct hal_buffer *buffer);

static struct reservation *reservation_of(struct hal_buffer *buffer)
{
    OBJ_CHECK(buffer, HAL_BUFFER_MAGIC);
    must(buffer->recycle == recycle);
    return (struct reservation *)buffer;
}

static void recycle(struct hal_buffer *buffer)
{
    struct reservation *reservation = reservation_of(buffer);
    struct store *store = in_store(reservation->pool);
    struct hal_zone *zone = reservation->zone;
    struct hal_range *range = reservation->range;

    asan_poison(buffer->host, buffer->host ? buffer->size : 0);
    hal_buffer_fini(buffer);
    pthread_mutex_lock(&store->lock);
    if (range) {
        let_go(reservation->pool, zone, range->size);
        hal_zone_touch(zone, range->begin, range->size, store->now_ms);
        hal_suballoc_free(&zone->suballoc, range);
    }
    must(store->live > 0);
    store->live--;
    list_push_front(&store->unused, &reservation->link);
    pthread_mutex_unlock(&store->lock);
}

enum status hal_pool_verify(const struct hal_pool *pool, size_t size, struct error *err)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    size_t all = hal_pool_size(pool); /* each zone has as many */
    return size <= all ? ST_OK
                       : error_set(err, ST_TOO_LARGE,
                                   "%zu bytes wanted: the memory for requests has %zu", size, all);
}

static enum status reserve(struct hal_pool *pool, struct hal_zone *zone, size_t size,
                           const struct growing *growing, struct hal_buffer **out_buffer,
                           struct error *err)
{
    struct store *store = pool->store;
    struct hal_buffer *memory = zone->memory;
    struct reservation *reservation = NULL;
    TRY(hal_pool_verify(pool, size, err));
    pthread_mutex_lock(&store->lock);
    enum status status =
        reserve_locked(pool, zone, align_up(size, store->align), growing, &reservation, err);
    pthread_mutex_unlock(&store->lock);
    if (status != ST_OK) {
        return status;
    }
    size_t begin = reservation->range ? reservation->range->begin : 0;
    struct hal_buffer *buffer = &reservation->base;
    *buffer = (struct hal_buffer){
        .magic = HAL_BUFFER_MAGIC,
        .device = memory->device,
        .size = size,
        .host = size && memory->host ? (char *)memory->host + begin : NULL,
        .root = memory,
        .root_offset = begin,
        .recycle = recycle,
    };
    refs_init(&buffer->refs);
    asan_unpoison(buffer->host, buffer->host ? size : 0);
    *out_buffer = buffer;
    return ST_OK;
}

enum status hal_pool_reserve(struct hal_pool *pool, size_t size, struct hal_buffer **out_buffer,
                             struct error *err)
{
    return reserve(pool, &in_store(pool)->zones[SHARED], size, &as_it_is, out_buffer, err);
}

enum status hal_pool_reserve_growing(struct hal_pool *pool, size_t size, size_t growth,
                                     size_t excused, struct hal_buffer **out_buffer,
                                     struct error *err)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    size_t align = in_store(pool)->align;
    const struct growing growing = {
        .growth = growth <= SIZE_MAX - align ? align_up(growth, align) : 0,
        .excused = excused == size ? align_up(size, align) : excused,
    };
    return reserve(pool, &pool->store->zones[SHARED], size, &growing, out_buffer, err);
}

enum status hal_pool_reserve_transient(struct hal_pool *pool, size_t size,
                                       struct hal_buffer **out_buffer, struct error *err)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    struct hal_zone *zones = in_store(pool)->zones;
    return reserve(pool, &zones[zones[TRANSIENT].memory ? TRANSIENT : SHARED], size, &as_it_is,
                   out_buffer, err);
}

/* With the lock held; |size| is padded. */
static enum status resize_locked(struct reservation *reservation, size_t size, size_t excused,
                                 struct error *err)
{
    struct hal_zone *zone = reservation->zone;
    struct hal_pool *pool = reservation->pool;
    size_t before = reservation->range->size;
    if (size > before) {
        TRY(check_rule(pool, zone, size - before, excused, err));
    } else if (size < before) {
        hal_zone_touch(zone, reservation->range->begin + size, before - size, pool->store->now_ms);
    }
    if (!hal_suballoc_resize(&zone->suballoc, reservation->range, size)) {
        return refuse_full(zone, size - before, err);
    }
    hal_zone_take(zone, reservation->range, pool->store->now_ms);
    let_go(pool, zone, before);
    hold(pool, zone, size);
    return ST_OK;
}

enum status hal_pool_resize(struct hal_buffer *buffer, size_t size, size_t excused,
                            struct error *err)
{
    struct reservation *reservation = reservation_of(buffer);
    struct store *store = in_store(reservation->pool);
    must(reservation->range && size > 0);
    TRY(hal_pool_verify(reservation->pool, size, err));
    pthread_mutex_lock(&store->lock);
    enum status status = resize_locked(reservation, align_up(size, store->align), excused, err);
    pthread_mutex_unlock(&store->lock);
    if (status == ST_OK) {
        asan_poison(buffer->host, buffer->host ? buffer->size : 0);
        buffer->size = size;
        asan_unpoison(buffer->host, buffer->host ? size : 0);
    }
    return status;
}

enum status hal_pool_move(struct hal_buffer *buffer, struct hal_pool *pool, struct error *err)
{
    if (buffer->recycle != recycle) {
        return ST_OK;
    }
    struct reservation *reservation = reservation_of(buffer);
    struct store *store = in_store(reservation->pool);
    struct hal_zone *zone = reservation->zone;
    size_t size = reservation->range ? reservation->range->size : 0;
    must(in_store(pool) == store);
    if (reservation->pool == pool) {
        return ST_OK;
    }
    pthread_mutex_lock(&store->lock);
    let_go(reservation->pool, zone, size);
    enum status status = size ? check_rule(pool, zone, size, 0, err) : ST_OK;
    if (status == ST_OK) {
        reservation->pool = pool;
    }
    hold(reservation->pool, zone, size);
    pthread_mutex_unlock(&store->lock);
    return status;
}

/* ---- charges --------------------------------------------------------------------------------- */

static void charge(struct hal_pool *pool, size_t bytes)
{
    struct hal_zone *shared = &pool->store->zones[SHARED];
    shared->charged_bytes += bytes;
    pool->share->charged_bytes += bytes;
    count_held(pool, shared, bytes);
}

void hal_pool_charge(struct hal_pool *pool, size_t bytes)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    struct store *store = in_store(pool);
    pthread_mutex_lock(&store->lock);
    charge(pool, bytes);
    pthread_mutex_unlock(&store->lock);
}

bool hal_pool_try_charge(struct hal_pool *pool, size_t bytes)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    pthread_mutex_lock(&in_store(pool)->lock);
    const struct hal_zone *shared = &pool->store->zones[SHARED];
    bool is_ok = in_range(pool->share->charged_bytes, bytes, shared->size_bytes) &&
                 is_fair(pool, shared, bytes);
    if (is_ok) {
        charge(pool, bytes);
    }
    pthread_mutex_unlock(&pool->store->lock);
    return is_ok;
}

void hal_pool_discharge(struct hal_pool *pool, size_t bytes)
{
    struct hal_zone *shared = &in_store(pool)->zones[SHARED];
    if (bytes == 0) {
        return; /* saves a lock in most requests */
    }
    pthread_mutex_lock(&pool->store->lock);
    must(pool->share->charged_bytes >= bytes && shared->charged_bytes >= bytes);
    shared->charged_bytes -= bytes;
    pool->share->charged_bytes -= bytes;
    count_gone(pool, shared, bytes);
    pthread_mutex_unlock(&pool->store->lock);
}

bool hal_pool_is_over(struct hal_pool *pool)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    const struct hal_zone *shared = &in_store(pool)->zones[SHARED];
    pthread_mutex_lock(&pool->store->lock);
    bool is_over = pool->share->held_bytes[SHARED] > left_bytes(pool, shared);
    pthread_mutex_unlock(&pool->store->lock);
    return is_over;
}

size_t hal_pool_taken(const struct hal_pool *pool)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    return atomic_load_explicit(&pool->taken_bytes, memory_order_relaxed);
}

size_t hal_pool_size(const struct hal_pool *pool)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    return in_store(pool)->zones[SHARED].size_bytes;
}

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    struct store *store = in_store(pool);
    const struct hal_zone *shared = &store->zones[SHARED];
    pthread_mutex_lock(&store->lock);
    *out_stats = (struct hal_pool_stats){
        .size_bytes = shared->size_bytes,
        .used_bytes = shared->used_bytes + shared->charged_bytes,
        .used_peak_bytes = shared->used_peak_bytes,
        .held_bytes = pool->held_bytes[SHARED],
        .held_peak_bytes = pool->held_peak_bytes,
        .reserved_count = store->live,
    };
    pthread_mutex_unlock(&store->lock);
}

/* ---- idle memory ----------------------------------------------------------------------------- */

bool hal_pool_trim(struct hal_pool *pool, uint64_t now_ms, uint64_t idle_ms, size_t bytes_max)
{
    OBJ_CHECK(pool, POOL_MAGIC);
    struct store *store = in_store(pool);
    struct hal_zone *shared = &store->zones[SHARED];
    size_t count = 0, count_max = bytes_max / shared->granule_bytes;
    pthread_mutex_lock(&store->lock);
    store->now_ms = now_ms;
    if (shared->memory->device->ops->buffer_discard && now_ms >= idle_ms) {
        count = hal_zone_discard(shared, now_ms - idle_ms, count_max ? count_max : 1);
    }
    pthread_mutex_unlock(&store->lock);
    return count > 0 && count >= count_max;
}
