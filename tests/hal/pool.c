/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define RING 65536 /* bytes; divided evenly by all alignments */
#define LIVE_MAX 64
#define ADDRESSES ((size_t)1 << (sizeof(size_t) > 4 ? 33 : 31))

static struct hal_pool *pool_new(size_t size)
{
    struct error err;
    struct hal_pool *pool = NULL;
    assert_ok(err, hal_pool_new(cts.device, size, &pool, &err));
    return pool;
}

static struct hal_buffer *reserve(struct hal_pool *pool, size_t size)
{
    struct error err;
    struct hal_buffer *buffer = NULL;
    assert_ok(err, hal_pool_reserve(pool, size, &buffer, &err));
    assert_int_equal(hal_buffer_size(buffer), size);
    return buffer;
}

static struct hal_pool_stats stats_of(struct hal_pool *pool)
{
    struct hal_pool_stats stats;
    hal_pool_stats(pool, &stats);
    return stats;
}

static void test_limits(void **state)
{
    struct error err;
    struct hal_buffer *buffer;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    assert_fails(err, hal_pool_reserve(pool, RING + 1, &buffer, &err), ST_TOO_LARGE, "65537");
    assert_fails(err, hal_pool_reserve(pool, SIZE_MAX, &buffer, &err), ST_TOO_LARGE, "wanted");
    struct hal_buffer *all = reserve(pool, RING);
    assert_fails(err, hal_pool_reserve(pool, 1, &buffer, &err), ST_EXHAUSTED, "in use");
    struct hal_buffer *nothing = reserve(pool, 0);
    assert_null(hal_buffer_map(nothing));
    assert_int_equal(stats_of(pool).used_bytes, RING);
    assert_int_equal(stats_of(pool).reserved_count, 2);
    hal_buffer_unref(nothing);
    hal_buffer_unref(all);
    assert_int_equal(stats_of(pool).used_bytes, 0);
    assert_int_equal(stats_of(pool).used_peak_bytes, RING);
    assert_int_equal(stats_of(pool).reserved_count, 0);
    hal_pool_free(pool);
    hal_pool_free(NULL);
}

static void test_odd_size(void **state)
{
    struct error err;
    struct hal_pool *none;
    (void)state;
    struct hal_pool *pool = pool_new(101);
    struct hal_buffer *all = reserve(pool, 101);
    memset(hal_buffer_map(all), 1, 101);
    assert_true(stats_of(pool).size_bytes >= 101);
    hal_buffer_unref(all);
    hal_pool_free(pool);
    assert_fails(err, hal_pool_new(cts.device, SIZE_MAX, &none, &err), ST_TOO_LARGE, "bytes");
}

/* Addresses that the process has in use. A sanitizer takes terabytes of them at its start. */
static size_t addresses_used(void)
{
    size_t pages = 0;
    FILE *statm = fopen("/proc/self/statm", "re");
    assert_non_null(statm);
    assert_int_equal(fscanf(statm, "%zu", &pages), 1);
    assert_int_equal(fclose(statm), 0);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* A pool that takes what it gets leaves half of the addresses under ulimit -v for models. */
static void test_half_of_the_addresses(void **state)
{
    struct error err;
    struct hal_pool *pool = NULL;
    struct rlimit before, limited, got;
    (void)state;
    /* Above the limit a sanitizer would end the process at the next call of malloc(). */
    if (!cts.props->is_host || addresses_used() > ADDRESSES / 4) {
        skip();
    }
    assert_int_equal(getrlimit(RLIMIT_AS, &before), 0);
    limited = before;
    limited.rlim_cur = before.rlim_cur < ADDRESSES ? before.rlim_cur : ADDRESSES;
    assert_int_equal(setrlimit(RLIMIT_AS, &limited), 0);
    assert_int_equal(getrlimit(RLIMIT_AS, &got), 0);
    if (got.rlim_cur != limited.rlim_cur) {
        skip(); /* an emulator of QEMU does not limit its programs */
    }
    enum status status = hal_pool_new_up_to(cts.device, ADDRESSES / 4 * 3, &pool, &err);
    assert_int_equal(setrlimit(RLIMIT_AS, &before), 0);
    assert_ok(err, status);
    assert_true(stats_of(pool).size_bytes <= limited.rlim_cur / 2);
    hal_pool_free(pool);
}

/* The order in which ranges are released does not matter: free ranges merge. */
static void test_places_are_used_again_in_any_order(void **state)
{
    struct error err;
    struct hal_buffer *none;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct hal_buffer *parts[8];
    for (int i = 0; i < 8; i++) {
        parts[i] = reserve(pool, RING / 8);
    }
    assert_fails(err, hal_pool_reserve(pool, 64, &none, &err), ST_EXHAUSTED, "in use");
    hal_buffer_unref(parts[4]);
    hal_buffer_unref(parts[2]);
    hal_buffer_unref(parts[3]);
    assert_int_equal(stats_of(pool).used_bytes, RING / 8 * 5);
    struct hal_buffer *middle = reserve(pool, RING / 8 * 3);
    assert_fails(err, hal_pool_reserve(pool, 64, &none, &err), ST_EXHAUSTED, "in use");
    hal_buffer_unref(parts[7]);
    hal_buffer_unref(middle);
    hal_buffer_unref(parts[0]);
    hal_buffer_unref(parts[5]);
    hal_buffer_unref(parts[1]);
    hal_buffer_unref(parts[6]);
    hal_buffer_unref(reserve(pool, RING));
    assert_int_equal(stats_of(pool).used_bytes, 0);
    hal_pool_free(pool);
}

/* An old reservation, such as that of a slow client, holds up nobody else. */
static void test_an_old_reservation_holds_up_nobody(void **state)
{
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct hal_buffer *first = reserve(pool, 1024), *old = reserve(pool, 1024);
    hal_buffer_unref(first);
    for (int i = 0; i < 1000; i++) {
        hal_buffer_unref(reserve(pool, RING / 2));
    }
    hal_buffer_unref(old);
    hal_pool_free(pool);
}

static void resize(struct hal_buffer *buffer, size_t size)
{
    struct error err;
    assert_ok(err, hal_pool_resize(buffer, size, 0, &err));
    assert_int_equal(hal_buffer_size(buffer), size);
}

static void test_grows_in_place(void **state)
{
    struct error err;
    struct hal_buffer *body, *other;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    assert_ok(err, hal_pool_reserve_growing(pool, 1024, RING / 2 - 1024, 0, &body, &err));
    other = reserve(pool, 4096); /* not in the way */
    uint8_t *host = hal_buffer_map(body);
    memset(host, 7, 1024);
    for (size_t size = 2048; size <= RING / 2; size *= 2) {
        resize(body, size);
        assert_ptr_equal(hal_buffer_map(body), host);
        assert_int_equal(stats_of(pool).used_bytes, size + 4096);
    }
    assert_int_equal(host[1023], 7);
    assert_fails(err, hal_pool_resize(body, RING / 2 + 1, 0, &err), ST_EXHAUSTED, "no room");
    assert_fails(err, hal_pool_resize(body, RING + 1, 0, &err), ST_TOO_LARGE, "wanted");
    assert_int_equal(hal_buffer_size(body), RING / 2);
    resize(body, 100);
    hal_buffer_unref(reserve(pool, RING / 2 - 8192));
    hal_buffer_unref(body);
    hal_buffer_unref(other);
    hal_buffer_unref(reserve(pool, RING));
    hal_pool_free(pool);
}

/* Memory that is kept for a growing reservation is given to others before they are refused. */
static void test_kept_room_is_no_reservation(void **state)
{
    struct error err;
    struct hal_buffer *body;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    assert_ok(err, hal_pool_reserve_growing(pool, 1024, RING - 1024, 0, &body, &err));
    struct hal_buffer *other = reserve(pool, RING / 2);
    resize(body, RING / 2); /* it was taken from the far end */
    assert_fails(err, hal_pool_resize(body, RING / 2 + 64, 0, &err), ST_EXHAUSTED, "no room");
    hal_buffer_unref(body);
    hal_buffer_unref(other);
    hal_buffer_unref(reserve(pool, RING));
    hal_pool_free(pool);
}

static struct hal_pool *share_of(struct hal_pool *pool)
{
    struct error err;
    struct hal_pool *share = NULL;
    assert_ok(err, hal_pool_share(pool, &share, &err));
    return share;
}

/* A party that others of |pool| see. */
static struct hal_pool *member_of(struct hal_pool *pool)
{
    struct error err;
    struct hal_pool *member = NULL;
    assert_ok(err, hal_pool_member_new(&member, &err));
    hal_pool_join(member, pool);
    return member;
}

static void part(struct hal_pool *member)
{
    hal_pool_leave(member);
    hal_pool_free(member);
}

/* A pool of two parties, of which one has enough for the rule to bind the other. */
struct crowd {
    struct hal_pool *pool, *first, *other;
    struct hal_buffer *some;
};

static struct crowd crowd_of(struct hal_pool *pool)
{
    struct crowd crowd = {pool, member_of(pool), member_of(pool), NULL};
    crowd.some = reserve(crowd.first, RING / 32);
    return crowd;
}

static void disperse(struct crowd *crowd)
{
    hal_buffer_unref(crowd->some);
    part(crowd->first);
    part(crowd->other);
    hal_pool_free(crowd->pool);
}

/* Takes pieces of 1/64 of the memory until it is refused; returns how many it got. */
static size_t take_all(struct hal_pool *pool, struct hal_buffer *pieces[64])
{
    struct error err;
    size_t count = 0;
    while (hal_pool_reserve(pool, RING / 64, &pieces[count], &err) == ST_OK) {
        count++;
        assert_true(count < 64);
    }
    assert_int_equal(err.code, ST_EXHAUSTED);
    assert_non_null(strstr(err.text, "share"));
    return count;
}

static void give_all(struct hal_buffer *pieces[64], size_t count)
{
    while (count > 0) {
        hal_buffer_unref(pieces[--count]);
    }
}

static void test_a_busy_pool_leaves_room_for_others(void **state)
{
    struct hal_buffer *a_pieces[64], *b_pieces[64], *c_pieces[64];
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct crowd a = crowd_of(pool), b = crowd_of(share_of(pool)), c = crowd_of(share_of(pool));
    size_t a_count = take_all(a.other, a_pieces);
    assert_int_equal(a_count, 28);
    size_t b_count = take_all(b.other, b_pieces);
    assert_int_equal(b_count, 14);
    size_t c_count = take_all(c.other, c_pieces);
    assert_int_equal(c_count, 7);
    assert_int_equal(stats_of(b.other).held_bytes, RING / 64 * 14);
    assert_int_equal(stats_of(b.pool).held_bytes, RING / 64 * 16);
    assert_int_equal(stats_of(b.pool).used_bytes, RING / 64 * 55);
    give_all(a_pieces, a_count);
    assert_int_equal(stats_of(a.pool).held_bytes, RING / 32);
    assert_int_equal(stats_of(a.pool).held_peak_bytes, RING / 64 * 30);
    give_all(b_pieces, b_count);
    give_all(c_pieces, c_count);
    disperse(&b);
    disperse(&a); /* the first one need not go last */
    disperse(&c);
}

static struct hal_pool *part_of(struct hal_pool *pool)
{
    struct error err;
    struct hal_pool *one = NULL;
    assert_ok(err, hal_pool_part(pool, &one, &err));
    return one;
}

/* The calls of one model hold what the rule gives them; the first call of another one runs. */
static void test_parts_have_shares_of_their_own(void **state)
{
    struct error err;
    struct hal_buffer *none, *pieces[64];
    (void)state;
    struct hal_pool *pool = pool_new(RING), *running = share_of(pool);
    struct crowd busy = crowd_of(part_of(running));
    struct hal_pool *quiet = part_of(running), *call = member_of(quiet);
    size_t count = take_all(busy.other, pieces);
    assert_fails(err, hal_pool_reserve(busy.other, RING / 16, &none, &err), ST_EXHAUSTED, "share");
    struct hal_buffer *little = reserve(call, 64);
    assert_int_equal(stats_of(quiet).held_bytes, 64);
    assert_int_equal(stats_of(running).held_bytes, RING / 32 + RING / 64 * count + 64);
    assert_int_equal(stats_of(running).held_bytes, stats_of(running).used_bytes);
    hal_pool_free(quiet); /* its model is gone, and a batch of its calls is not over */
    hal_buffer_unref(little);
    part(call);
    give_all(pieces, count);
    disperse(&busy);
    assert_int_equal(stats_of(running).held_bytes, 0);
    hal_pool_free(running);
    hal_pool_free(pool);
}

/* Else it could never have what it needs, on an idle machine either. */
static void test_a_party_that_is_alone_may_take_all(void **state)
{
    struct error err;
    struct hal_buffer *none, *large;
    (void)state;
    struct hal_pool *a = pool_new(RING), *one = member_of(a), *two = member_of(a);
    struct hal_buffer *little = reserve(two, RING / 64);
    struct hal_buffer *some = reserve(one, RING / 2);
    assert_ok(err, hal_pool_reserve_growing(one, RING / 4, RING / 8, 0, &large, &err));
    assert_fails(err, hal_pool_reserve(two, 64, &none, &err), ST_EXHAUSTED, "share");
    assert_true(hal_pool_is_over(a));
    assert_ok(err, hal_pool_resize(large, RING / 4 + 64, 0, &err));
    hal_buffer_unref(some);
    struct hal_buffer *more = reserve(two, RING / 64);
    assert_fails(err, hal_pool_resize(large, RING / 2, 0, &err), ST_EXHAUSTED, "share");
    assert_ok(err, hal_pool_reserve_growing(one, RING / 2, 0, RING / 2, &some, &err));
    hal_buffer_unref(more);
    hal_buffer_unref(some);
    hal_buffer_unref(large);
    hal_buffer_unref(little);
    part(one);
    part(two);
    hal_pool_free(a);
}

/* Parties that want more than half each: one of them gets through, whichever is the first. */
static void test_one_large_party_gets_through(void **state)
{
    struct error err;
    struct hal_buffer *none;
    (void)state;
    struct hal_pool *a = pool_new(RING), *one = member_of(a), *two = member_of(a);
    struct hal_buffer *first = reserve(one, RING / 4);
    assert_fails(err, hal_pool_reserve(two, RING / 2, &none, &err), ST_EXHAUSTED, "share");
    struct hal_buffer *second = reserve(one, RING / 2);
    hal_buffer_unref(first);
    hal_buffer_unref(second);
    hal_buffer_unref(reserve(two, RING));
    part(one);
    part(two);
    hal_pool_free(a);
}

/* Memory that has been promised is given, whatever the rule says by then. */
static void test_promises(void **state)
{
    struct error err;
    struct hal_buffer *some;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct crowd a = crowd_of(pool);
    struct hal_pool *b = share_of(pool);
    assert_true(hal_pool_try_charge(a.other, RING / 2 - RING / 32));
    assert_int_equal(stats_of(a.pool).held_bytes, RING / 2);
    assert_false(hal_pool_try_charge(a.other, 64));
    assert_false(hal_pool_try_charge(a.other, SIZE_MAX));
    struct hal_buffer *other = reserve(b, RING / 2);
    assert_fails(err, hal_pool_reserve_growing(a.other, RING / 4, RING / 8, 0, &some, &err),
                 ST_EXHAUSTED, "share");
    assert_ok(err, hal_pool_reserve_growing(a.other, RING / 4, RING / 8, RING / 4, &some, &err));
    hal_pool_discharge(a.other, RING / 4);
    assert_ok(err, hal_pool_resize(some, RING / 8 * 3, RING / 8, &err));
    hal_pool_discharge(a.other, RING / 4 - RING / 32);
    assert_int_equal(stats_of(a.other).held_bytes, RING / 8 * 3);
    hal_buffer_unref(some);
    hal_buffer_unref(other);
    assert_int_equal(stats_of(a.pool).used_bytes, RING / 32);
    disperse(&a);
    hal_pool_free(b);
}

/* Even if no other party holds memory, promises stay within the whole memory. */
static void test_promises_to_a_party_that_is_alone(void **state)
{
    (void)state;
    struct hal_pool *a = pool_new(RING), *one = member_of(a);
    assert_false(hal_pool_try_charge(one, RING + 1));
    assert_true(hal_pool_try_charge(one, RING / 4 * 3));
    assert_false(hal_pool_try_charge(one, RING / 4 + 1));
    assert_false(hal_pool_try_charge(one, SIZE_MAX));
    assert_true(hal_pool_try_charge(one, RING / 4));
    hal_pool_discharge(one, RING);
    part(one);
    hal_pool_free(a);
}

static void test_reservations_move_between_pools(void **state)
{
    struct error err;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct crowd a = crowd_of(pool), b = crowd_of(share_of(pool));
    struct hal_buffer *one = reserve(a.other, RING / 4), *two = reserve(b.other, RING / 8);
    assert_ok(err, hal_pool_move(one, b.other, &err));
    assert_int_equal(stats_of(a.pool).held_bytes, RING / 32);
    assert_int_equal(stats_of(b.pool).held_bytes, RING / 8 * 3 + RING / 32);
    struct hal_buffer *three = reserve(a.other, RING / 8);
    assert_fails(err, hal_pool_move(three, b.other, &err), ST_EXHAUSTED, "share");
    assert_int_equal(stats_of(a.other).held_bytes, RING / 8);
    hal_buffer_unref(one);
    hal_buffer_unref(two);
    hal_buffer_unref(three);
    disperse(&a);
    disperse(&b);
}

static void test_charges_count_for_one_pool(void **state)
{
    struct error err;
    struct hal_buffer *none;
    (void)state;
    struct hal_pool *a = pool_new(RING), *b = share_of(a), *party = member_of(a);
    hal_pool_charge(a, RING / 2);
    assert_false(hal_pool_is_over(a));
    hal_pool_charge(a, RING);
    assert_true(hal_pool_is_over(a));
    assert_int_equal(stats_of(a).used_bytes, RING / 2 * 3);
    assert_int_equal(stats_of(a).held_bytes, RING / 2 * 3);
    assert_fails(err, hal_pool_reserve(party, 64, &none, &err), ST_EXHAUSTED, "share");
    struct hal_buffer *some = reserve(b, RING / 2); /* others do not suffer */
    hal_pool_discharge(a, RING);
    assert_true(hal_pool_is_over(a));
    hal_buffer_unref(some);
    assert_false(hal_pool_is_over(a));
    hal_pool_discharge(a, RING / 2);
    assert_int_equal(stats_of(a).used_bytes, 0);
    part(party);
    hal_pool_free(a);
    hal_pool_free(b);
}

#define LARGE ((size_t)8 << 20)

/* Pages of [host, host + size) that are in memory. */
static size_t resident_pages(const uint8_t *host, size_t size)
{
    static unsigned char pages[LARGE / 4096];
    size_t count = 0, page = (size_t)sysconf(_SC_PAGESIZE);
    assert_int_equal(mincore((void *)(uintptr_t)host, size, pages), 0);
    for (size_t i = 0; i < size / page; i++) {
        count += pages[i] & 1;
    }
    return count;
}

static void test_idle_memory_goes_back(void **state)
{
    (void)state;
    struct hal_pool *pool = pool_new(LARGE);
    struct hal_buffer *all = reserve(pool, LARGE);
    uint8_t *host = hal_buffer_map(all);
    memset(host, 1, LARGE);
    hal_buffer_unref(all);
    struct hal_buffer *some = reserve(pool, LARGE / 4);
    assert_ptr_equal(hal_buffer_map(some), host);
    assert_false(hal_pool_trim(pool, 1000, 2000, LARGE)); /* not long enough yet */
    if (cts.props->is_host) {
        assert_true(resident_pages(host + LARGE / 4, LARGE / 4 * 3) > 0);
        assert_true(hal_pool_trim(pool, 3000, 2000, 1 << 20)); /* a granule at a time */
        assert_true(resident_pages(host + LARGE / 4, LARGE / 4 * 3) > 0);
        while (hal_pool_trim(pool, 3000, 2000, 1 << 20)) {
        }
        assert_int_equal(resident_pages(host + LARGE / 4, LARGE / 4 * 3), 0);
    }
    assert_false(hal_pool_trim(pool, 9000, 2000, LARGE));
    for (size_t i = 0; i < LARGE / 4; i += 4096) {
        assert_int_equal(host[i], 1);
    }
    hal_buffer_unref(some);
    some = reserve(pool, LARGE);
    memset(hal_buffer_map(some), 2, LARGE);
    hal_buffer_unref(some);
    hal_pool_free(pool);
}

struct live {
    struct hal_buffer *buffer;
    uint8_t mark;
};

static bool overlaps(struct hal_buffer *a, struct hal_buffer *b)
{
    uintptr_t a0 = (uintptr_t)hal_buffer_map(a), b0 = (uintptr_t)hal_buffer_map(b);
    return hal_buffer_size(a) && hal_buffer_size(b) && a0 < b0 + hal_buffer_size(b) &&
           b0 < a0 + hal_buffer_size(a);
}

static void release(struct live *live, size_t *count, size_t at)
{
    const uint8_t *host = hal_buffer_map(live[at].buffer);
    for (size_t i = 0; i < hal_buffer_size(live[at].buffer); i++) {
        assert_int_equal(host[i], live[at].mark);
    }
    hal_buffer_unref(live[at].buffer);
    live[at] = live[--*count];
}

static void test_never_hands_out_a_live_range(void **state)
{
    struct error err;
    struct live live[LIVE_MAX];
    size_t count = 0, bytes = 0;
    unsigned refused = 0, laps = 0;
    uint64_t random = 42;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    for (int step = 0; step < 20000; step++) {
        uint64_t r = cts_random(&random);
        if (count == LIVE_MAX || (count && r % 5 < 2)) {
            size_t at = (size_t)(r >> 8) % count;
            bytes -= hal_buffer_size(live[at].buffer);
            release(live, &count, at);
            continue;
        }
        size_t size = (size_t)(r >> 16) % (r % 7 == 0 ? RING + 1 : 3000);
        struct hal_buffer *buffer;
        if (hal_pool_reserve(pool, size, &buffer, &err) != ST_OK) {
            assert_int_equal(err.code, ST_EXHAUSTED);
            assert_true(count > 0);
            refused++;
            continue;
        }
        assert_int_equal((uintptr_t)hal_buffer_map(buffer) % cts.props->buffer_align, 0);
        for (size_t i = 0; i < count; i++) {
            assert_false(overlaps(buffer, live[i].buffer));
        }
        live[count] = (struct live){buffer, (uint8_t)step};
        if (size) {
            memset(hal_buffer_map(buffer), live[count].mark, size);
        }
        count++;
        bytes += size;
        laps += size > 0;
        assert_true(stats_of(pool).used_bytes >= bytes);
        assert_true(stats_of(pool).used_bytes <= RING);
    }
    while (count) {
        release(live, &count, 0);
    }
    assert_true(refused > 100 && laps > 1000); /* both happen, or nothing has been tested */
    assert_int_equal(stats_of(pool).used_bytes, 0);
    hal_pool_free(pool);
}

static void test_no_malloc_after_first_lap(void **state)
{
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    size_t before = 0;
    for (int lap = 0; lap < 100; lap++) {
        struct hal_buffer *parts[8];
        for (int i = 0; i < 8; i++) {
            parts[i] = reserve(pool, RING / 8 - 64);
        }
        for (int i = 0; i < 8; i++) {
            hal_buffer_unref(parts[(i * 3) % 8]);
        }
        if (lap == 0) {
            before = cts_mallocs();
        }
    }
    assert_int_equal(cts_mallocs() - before, 0);
    hal_pool_free(pool);
}

struct thief {
    struct hal_pool *pool;
    uint8_t mark;
    bool disturbed;
    unsigned served;
};

static void *steal(void *arg)
{
    struct thief *thief = arg;
    uint64_t random = thief->mark;
    while (thief->served < 1000) {
        struct hal_buffer *buffer;
        size_t size = (size_t)cts_random(&random) % (RING / 3);
        if (hal_pool_reserve(thief->pool, size, &buffer, NULL) != ST_OK) {
            sched_yield(); /* another thread has to give something back first */
            continue;
        }
        uint8_t *host = hal_buffer_map(buffer);
        for (size_t k = 0; k < size; k += 512) {
            host[k] = thief->mark;
        }
        for (size_t k = 0; k < size; k += 512) {
            thief->disturbed |= host[k] != thief->mark;
        }
        thief->served++;
        hal_buffer_unref(buffer);
    }
    return NULL;
}

static void test_many_threads(void **state)
{
    pthread_t threads[4];
    struct thief thieves[4];
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    for (int i = 0; i < 4; i++) {
        thieves[i] = (struct thief){.pool = pool, .mark = (uint8_t)(i + 1)};
        assert_int_equal(pthread_create(&threads[i], NULL, steal, &thieves[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        assert_false(thieves[i].disturbed);
    }
    assert_int_equal(stats_of(pool).reserved_count, 0);
    hal_pool_free(pool);
}

int cts_pool(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_odd_size),
        cmocka_unit_test(test_half_of_the_addresses),
        cmocka_unit_test(test_places_are_used_again_in_any_order),
        cmocka_unit_test(test_an_old_reservation_holds_up_nobody),
        cmocka_unit_test(test_grows_in_place),
        cmocka_unit_test(test_kept_room_is_no_reservation),
        cmocka_unit_test(test_a_busy_pool_leaves_room_for_others),
        cmocka_unit_test(test_parts_have_shares_of_their_own),
        cmocka_unit_test(test_a_party_that_is_alone_may_take_all),
        cmocka_unit_test(test_one_large_party_gets_through),
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_promises_to_a_party_that_is_alone),
        cmocka_unit_test(test_reservations_move_between_pools),
        cmocka_unit_test(test_charges_count_for_one_pool),
        cmocka_unit_test(test_idle_memory_goes_back),
        cmocka_unit_test(test_never_hands_out_a_live_range),
        cmocka_unit_test(test_no_malloc_after_first_lap),
        cmocka_unit_test(test_many_threads),
    };
    if (!cts.props->host_visible) {
        return 0; /* all of them look at the memory */
    }
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
