/* SPDX-License-Identifier: MIT */
/*
 * A store is the memory that pools share: one zone that the host can access and, if the device has
 * memory of its own, a second zone of the same size. A zone is one buffer of the device, divided by
 * hal/suballoc.h. One lock guards the store.
 *
 * If memory can go back to the system, a zone has more addresses than bytes. So a large reservation
 * nearly always finds a place, even beside small reservations that last long. Each granule records
 * when a reservation in it last began or ended, or that it takes no memory (CLEAN). Whole granules
 * inside free ranges go back to the system when they have been idle for long, or when the zone
 * would otherwise use more memory than its size.
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
#include "hal/suballoc.h"

#define ADDRESS_FACTOR 4
/* AddressSanitizer takes seconds to mark the many GiB of a large pool. So memory behind these bytes
 * is marked only when it is given back for the first time, see also |marked_bytes|. */
#define MARKED_BYTES_MAX ((size_t)32 << 20)
#define GRANULE_BYTES_MIN ((size_t)1 << 20)
#define GRANULES_MAX 4096
/* A reservation may begin and end inside a granule. */
#define GRANULES_SPARE 4

/* A member counts as alone in its pool while the others hold at most one part in so many of a zone.
 */
#define NEXT_TO_NOTHING 64

enum zone_index { SHARED, TRANSIENT, ZONE_COUNT };

struct zone {
    struct hal_buffer *memory; /* owned; NULL: SHARED is used instead */
    struct hal_suballoc suballoc;
    size_t size_bytes;      /* that may be reserved at a time */
    size_t used_bytes;      /* reserved */
    size_t charged_bytes;   /* by all pools */
    size_t used_peak_bytes; /* of both together */
    size_t granule_bytes;
    size_t resident_count; /* granules that are not CLEAN */
    uint64_t *touched_ms;  /* owned; by granule: when it was used last, or CLEAN */
    size_t marked_bytes;   /* of the beginning: behind them AddressSanitizer has nothing marked */
};

#define CLEAN UINT64_MAX

#define STORE_MAGIC 0x5704e056u
#define POOL_MAGIC 0x9001a057u

struct store {
    uint32_t magic;
    struct zone zones[ZONE_COUNT];
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
    struct zone *zone;
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

static size_t granule_count(const struct zone *zone)
{
    return (zone->memory->size + zone->granule_bytes - 1) / zone->granule_bytes;
}

static size_t address_bytes(const struct hal_device *device, size_t size)
{
    bool can_discard = device->ops->buffer_discard != NULL;
    return can_discard && size <= device->props.memory_bytes_max / ADDRESS_FACTOR
               ? size * ADDRESS_FACTOR
               : size;
}

static enum status init_zone(struct zone *zone, struct hal_device *device, size_t size,
                             enum hal_memory memory, struct error *err)
{
    size_t addresses = address_bytes(device, size);
    enum status status = hal_buffer_new_in(device, addresses, memory, &zone->memory, err);
    if (status == ST_EXHAUSTED && addresses > size) { /* ulimit -v, or no overcommit */
        addresses = size;
        status = hal_buffer_new_in(device, addresses, memory, &zone->memory, err);
    }
    TRY(status);
    zone->size_bytes = size;
    zone->granule_bytes = GRANULE_BYTES_MIN;
    while (granule_count(zone) > GRANULES_MAX) {
        zone->granule_bytes *= 2;
    }
    zone->touched_ms = malloc(granule_count(zone) * sizeof(zone->touched_ms[0]));
    if (!zone->touched_ms || (size && !hal_suballoc_init(&zone->suballoc, addresses))) {
        return error_no_memory(err, "a pool");
    }
    for (size_t i = 0; i < granule_count(zone); i++) {
        zone->touched_ms[i] = CLEAN;
    }
    zone->marked_bytes = addresses < MARKED_BYTES_MAX ? addresses : MARKED_BYTES_MAX;
    asan_poison(zone->memory->host, zone->memory->host ? zone->marked_bytes : 0);
    return ST_OK;
}

static void fini_zone(struct zone *zone)
{
    hal_suballoc_fini(&zone->suballoc);
    free(zone->touched_ms);
    if (zone->memory) {
        asan_unpoison(zone->memory->host, zone->memory->host ? zone->marked_bytes : 0);
        hal_buffer_unref(zone->memory);
    }
}

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
    fini_zone(&store->zones[SHARED]);
    fini_zone(&store->zones[TRANSIENT]);
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
    TRY(init_zone(&store->zones[SHARED], device, size, HAL_MEMORY_RAW, err));
    return device->props.host_visible
               ? ST_OK
               : init_zone(&store->zones[TRANSIENT], device, size, HAL_MEMORY_TRANSIENT, err);
}

static struct store *new_store(void)
{
    struct store *store = calloc(1, sizeof(*store));
    if (store) {
        store->magic = STORE_MAGIC;
        must(pthread_mutex_init(&store->lock, NULL) == 0);
        list_init(&store->unused);
        for (int i = 0; i < ZONE_COUNT; i++) { /* fini_zone() expects these lists */
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
    size_t most = device->props.memory_bytes_max, addresses = addresses_max();
    size_t half = (addresses < most ? addresses : most) / 2; /* models need the rest */
    size_t size = half < size_max ? half : size_max;
    enum status status = hal_pool_new(device, size, out_pool, err);
    while (status == ST_EXHAUSTED && size > GRANULE_BYTES_MIN) {
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

static enum zone_index index_of(const struct zone *zone, const struct hal_pool *pool)
{
    const struct zone *zones = pool->store->zones;
    must(zone == &zones[SHARED] || zone == &zones[TRANSIENT]); /* of the same store */
    return (enum zone_index)(zone - zones);
}

/* The free memory, less what |pool| holds outside of the store (its charges). */
static size_t left_bytes(const struct hal_pool *pool, const struct zone *zone)
{
    size_t left = zone->size_bytes - zone->used_bytes;
    size_t charged = index_of(zone, pool) == SHARED ? pool->share->charged_bytes : 0;
    return charged < left ? left - charged : 0;
}

/* May |pool| hold |more| bytes in addition to its own? */
static bool is_fair(const struct hal_pool *pool, const struct zone *zone, size_t more)
{
    enum zone_index index = index_of(zone, pool);
    size_t held = pool->share->held_bytes[index], left = left_bytes(pool, zone);
    must(held >= pool->held_bytes[index]); /* the members' bytes count */
    bool is_alone = held - pool->held_bytes[index] <= zone->size_bytes / NEXT_TO_NOTHING;
    return is_alone || (in_range(more, 0, left) && in_range(held, more, left - more));
}

static void note_peaks(struct hal_pool *pool, struct zone *zone)
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
static void count_held(struct hal_pool *pool, struct zone *zone, size_t bytes)
{
    enum zone_index index = index_of(zone, pool);
    for (; pool; pool = counts_too(pool)) {
        pool->held_bytes[index] += bytes;
        note_peaks(pool, zone);
    }
}

static void count_gone(struct hal_pool *pool, struct zone *zone, size_t bytes)
{
    enum zone_index index = index_of(zone, pool);
    for (; pool; pool = counts_too(pool)) {
        must(pool->held_bytes[index] >= bytes);
        pool->held_bytes[index] -= bytes;
    }
}

static void hold(struct hal_pool *pool, struct zone *zone, size_t bytes)
{
    must(bytes <= zone->size_bytes - zone->used_bytes); /* check_rule() has allowed it */
    zone->used_bytes += bytes;
    count_held(pool, zone, bytes);
}

static void let_go(struct hal_pool *pool, struct zone *zone, size_t bytes)
{
    must(zone->used_bytes >= bytes);
    zone->used_bytes -= bytes;
    count_gone(pool, zone, bytes);
}

static enum status refuse_full(const struct zone *zone, size_t size, struct error *err)
{
    return error_set(err, ST_EXHAUSTED,
                     "no room for %zu bytes: %zu of the %zu bytes for requests are in use", size,
                     zone->used_bytes, zone->size_bytes);
}

/* Fails unless |pool| may hold |more| bytes. The rule is not applied to |excused| of them. */
static enum status check_rule(const struct hal_pool *pool, const struct zone *zone, size_t more,
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

/* ---- granules; with the lock held ------------------------------------------------------------ */

/* [begin, begin + size) is about to be used, or was used until now. */
static void touch(struct zone *zone, size_t begin, size_t size, uint64_t now_ms)
{
    must(size > 0 && in_range(begin, size, zone->memory->size));
    size_t first = begin / zone->granule_bytes, last = (begin + size - 1) / zone->granule_bytes;
    for (size_t i = first; i <= last; i++) {
        zone->resident_count += zone->touched_ms[i] == CLEAN;
        zone->touched_ms[i] = now_ms;
    }
}

static void discard_granule(struct zone *zone, size_t i)
{
    struct hal_buffer *memory = zone->memory;
    size_t begin = i * zone->granule_bytes, left = memory->size - begin;
    must(begin < memory->size && zone->resident_count > 0);
    memory->device->ops->buffer_discard(memory, begin,
                                        left < zone->granule_bytes ? left : zone->granule_bytes);
    zone->touched_ms[i] = CLEAN;
    zone->resident_count--;
}

/* Discards the whole granules of the free |range| that were last used at |until_ms| or before. */
static size_t discard_range(struct zone *zone, const struct hal_range *range, uint64_t until_ms,
                            size_t count_max)
{
    size_t end = range->begin + range->size, granule = zone->granule_bytes, count = 0;
    size_t first = (range->begin + granule - 1) / granule;
    /* The last granule of all may be short. */
    size_t behind = end == zone->memory->size ? granule_count(zone) : end / granule;
    for (size_t i = first; i < behind && count < count_max; i++) {
        if (zone->touched_ms[i] != CLEAN && zone->touched_ms[i] <= until_ms) {
            discard_granule(zone, i);
            count++;
        }
    }
    return count;
}

/* Gives at most |count_max| granules back; returns how many. */
static size_t discard(struct zone *zone, uint64_t until_ms, size_t count_max)
{
    const struct hal_range *range = zone->suballoc.first;
    size_t count = 0;
    for (; range && count < count_max; range = range->behind) {
        if (range->state == HAL_RANGE_FREE) {
            count += discard_range(zone, range, until_ms, count_max - count);
        }
    }
    return count;
}

/* |range| is used from now on: if the zone now uses too many granules, free ones go back. */
static void take_granules(struct zone *zone, const struct hal_range *range, uint64_t now_ms)
{
    size_t most = zone->size_bytes / zone->granule_bytes + GRANULES_SPARE;
    size_t end = range->begin + range->size;
    zone->marked_bytes = end > zone->marked_bytes ? end : zone->marked_bytes;
    touch(zone, range->begin, range->size, now_ms);
    if (zone->resident_count > most && zone->memory->device->ops->buffer_discard) {
        discard(zone, UINT64_MAX - 1, zone->resident_count - most);
    }
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
static enum status reserve_locked(struct hal_pool *pool, struct zone *zone, size_t size,
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
        take_granules(zone, range, store->now_ms);
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
    struct zone *zone = reservation->zone;
    struct hal_range *range = reservation->range;

    asan_poison(buffer->host, buffer->host ? buffer->size : 0);
    hal_buffer_fini(buffer);
    pthread_mutex_lock(&store->lock);
    if (range) {
        let_go(reservation->pool, zone, range->size);
        touch(zone, range->begin, range->size, store->now_ms);
        hal_suballoc_free(&zone->suballoc, range);
    }
    must(store->live > 0);
    store->live--;
    list_push_front(&store->unused, &reservation->link);
    pthread_mutex_unlock(&store->lock);
}

enum status hal_pool_verify(const struct hal_pool *pool, size_t size, struct error *err)
{
    size_t all = hal_pool_size(pool); /* each zone has as many */
    return size <= all ? ST_OK
                       : error_set(err, ST_TOO_LARGE,
                                   "%zu bytes wanted: the memory for requests has %zu", size, all);
}

static enum status reserve(struct hal_pool *pool, struct zone *zone, size_t size,
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
    struct zone *zones = in_store(pool)->zones;
    return reserve(pool, &zones[zones[TRANSIENT].memory ? TRANSIENT : SHARED], size, &as_it_is,
                   out_buffer, err);
}

/* With the lock held; |size| is padded. */
static enum status resize_locked(struct reservation *reservation, size_t size, size_t excused,
                                 struct error *err)
{
    struct zone *zone = reservation->zone;
    struct hal_pool *pool = reservation->pool;
    size_t before = reservation->range->size;
    if (size > before) {
        TRY(check_rule(pool, zone, size - before, excused, err));
    } else if (size < before) {
        touch(zone, reservation->range->begin + size, before - size, pool->store->now_ms);
    }
    if (!hal_suballoc_resize(&zone->suballoc, reservation->range, size)) {
        return refuse_full(zone, size - before, err);
    }
    take_granules(zone, reservation->range, pool->store->now_ms);
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
    struct zone *zone = reservation->zone;
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
    struct zone *shared = &pool->store->zones[SHARED];
    shared->charged_bytes += bytes;
    pool->share->charged_bytes += bytes;
    count_held(pool, shared, bytes);
}

void hal_pool_charge(struct hal_pool *pool, size_t bytes)
{
    struct store *store = in_store(pool);
    pthread_mutex_lock(&store->lock);
    charge(pool, bytes);
    pthread_mutex_unlock(&store->lock);
}

bool hal_pool_try_charge(struct hal_pool *pool, size_t bytes)
{
    pthread_mutex_lock(&in_store(pool)->lock);
    const struct zone *shared = &pool->store->zones[SHARED];
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
    struct zone *shared = &in_store(pool)->zones[SHARED];
    pthread_mutex_lock(&pool->store->lock);
    must(pool->share->charged_bytes >= bytes && shared->charged_bytes >= bytes);
    shared->charged_bytes -= bytes;
    pool->share->charged_bytes -= bytes;
    count_gone(pool, shared, bytes);
    pthread_mutex_unlock(&pool->store->lock);
}

bool hal_pool_is_over(struct hal_pool *pool)
{
    const struct zone *shared = &in_store(pool)->zones[SHARED];
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
    return in_store(pool)->zones[SHARED].size_bytes;
}

void hal_pool_stats(struct hal_pool *pool, struct hal_pool_stats *out_stats)
{
    struct store *store = in_store(pool);
    const struct zone *shared = &store->zones[SHARED];
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
    struct store *store = in_store(pool);
    struct zone *shared = &store->zones[SHARED];
    size_t count = 0, count_max = bytes_max / shared->granule_bytes;
    pthread_mutex_lock(&store->lock);
    store->now_ms = now_ms;
    if (shared->memory->device->ops->buffer_discard && now_ms >= idle_ms) {
        count = discard(shared, now_ms - idle_ms, count_max ? count_max : 1);
    }
    pthread_mutex_unlock(&store->lock);
    return count > 0 && count >= count_max;
}
