/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <pthread.h>
#include <sched.h>

#define RING 65536
#define LIVE_MAX 64

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
    assert_fails(err, hal_pool_reserve(pool, SIZE_MAX, &buffer, &err), ST_TOO_LARGE, "ring");
    struct hal_buffer *all = reserve(pool, RING);
    assert_fails(err, hal_pool_reserve(pool, 1, &buffer, &err), ST_EXHAUSTED, "in use");
    struct hal_buffer *nothing = reserve(pool, 0);
    assert_null(hal_buffer_map(nothing));
    assert_int_equal(stats_of(pool).used_bytes, RING);
    assert_int_equal(stats_of(pool).reserved_count, 2);
    hal_buffer_unref(nothing);
    hal_buffer_unref(all);
    assert_int_equal(stats_of(pool).used_bytes, 0);
    assert_int_equal(stats_of(pool).peak_bytes, RING);
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

/* What is released early goes back only together with what is older. */
static void test_tail_moves_over_released_prefix(void **state)
{
    struct error err;
    struct hal_buffer *more;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct hal_buffer *parts[4];
    for (int i = 0; i < 4; i++) {
        parts[i] = reserve(pool, RING / 4);
    }
    hal_buffer_unref(parts[2]);
    hal_buffer_unref(parts[1]);
    assert_fails(err, hal_pool_reserve(pool, 64, &more, &err), ST_EXHAUSTED, "in use");
    hal_buffer_unref(parts[0]);
    assert_int_equal(stats_of(pool).used_bytes, RING / 4);
    more = reserve(pool, RING / 4 * 3);
    assert_int_equal(stats_of(pool).used_bytes, RING);
    hal_buffer_unref(parts[3]);
    hal_buffer_unref(more);
    assert_int_equal(stats_of(pool).used_bytes, 0);
    hal_pool_free(pool);
}

/* A range does not lie across the end of the ring: the rest there stays unused for that long. */
static void test_wraps_contiguously(void **state)
{
    struct error err;
    struct hal_buffer *none;
    (void)state;
    struct hal_pool *pool = pool_new(RING);
    struct hal_buffer *a = reserve(pool, RING / 2);
    struct hal_buffer *b = reserve(pool, RING / 4);
    hal_buffer_unref(a);
    struct hal_buffer *c = reserve(pool, RING / 2);
    assert_true((uint8_t *)hal_buffer_map(c) < (uint8_t *)hal_buffer_map(b));
    assert_int_equal(stats_of(pool).used_bytes, RING);
    assert_fails(err, hal_pool_reserve(pool, 64, &none, &err), ST_EXHAUSTED, "in use");
    hal_buffer_unref(b);
    assert_int_equal(stats_of(pool).used_bytes, RING / 2);
    hal_buffer_unref(c);
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
        cmocka_unit_test(test_tail_moves_over_released_prefix),
        cmocka_unit_test(test_wraps_contiguously),
        cmocka_unit_test(test_never_hands_out_a_live_range),
        cmocka_unit_test(test_no_malloc_after_first_lap),
        cmocka_unit_test(test_many_threads),
    };
    if (!cts.props->host_visible) {
        return 0; /* all of them look at the memory */
    }
    return cmocka_run_group_tests_name("pool", tests, NULL, NULL);
}
