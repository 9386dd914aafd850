/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "server/http/body.h"

#define PLAIN_BYTES 3000000
#define POOL_BYTES (8u << 20)

static struct hal_device *device;
static struct hal_pool *pool, *other;
static uint8_t plain[PLAIN_BYTES];

static int open_pool(void **state)
{
    (void)state;
    struct error err;
    struct hal_device_options options = {.workers = 1};
    for (size_t i = 0; i < PLAIN_BYTES; i++) {
        plain[i] = (uint8_t)(i * i >> 7);
    }
    return hal_device_open("cpu", &options, &device, &err) != ST_OK ||
           hal_pool_new(device, POOL_BYTES, &pool, &err) != ST_OK ||
           hal_pool_share(pool, &other, &err) != ST_OK;
}

static int close_pool(void **state)
{
    (void)state;
    hal_pool_free(pool);
    hal_pool_free(other);
    hal_device_unref(device);
    return 0;
}

static size_t held_bytes(struct hal_pool *of)
{
    struct hal_pool_stats stats;
    hal_pool_stats(of, &stats);
    return stats.held_bytes;
}

static void add(struct body *body, size_t from, size_t len)
{
    struct error err;
    assert_ok(err, body_add(body, span_of(plain + from, len), &err));
}

static void bodies_are_aligned_behind_their_json(void **state)
{
    (void)state;
    for (size_t json = 0; json < 200; json++) {
        struct error err;
        struct body body;
        body_init(&body, pool, PLAIN_BYTES);
        assert_ok(err, body_announce(&body, 900000, json, &err));
        add(&body, 0, 1);
        add(&body, 1, 899999);
        assert_int_equal((uintptr_t)(body.ptr + json) % BODY_ALIGN, 0);
        assert_memory_equal(body.ptr, plain, 900000);
        body_fini(&body);
    }
}

static void bodies_grow_to_their_maximum(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    body_init(&body, pool, PLAIN_BYTES);
    for (size_t at = 0; at < PLAIN_BYTES; at += 1000) {
        add(&body, at, 1000);
    }
    assert_true(span_equal(body_span(&body), span_of(plain, PLAIN_BYTES)));
    assert_fails(err, body_add(&body, span_of(plain, 1), &err), ST_TOO_LARGE, "at most 3000000");
    assert_fails(err, body_expect(&body, UINT64_MAX, &err), ST_TOO_LARGE, "at most 3000000");
    body_reset(&body);
    assert_fails(err, body_announce(&body, PLAIN_BYTES + 1, 0, &err), ST_TOO_LARGE, "3000001");
    body_fini(&body);
}

/* An announced body takes no memory. A received one takes little more than its size. */
static void memory_grows_with_the_received_bytes(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    body_init(&body, pool, PLAIN_BYTES);
    assert_ok(err, body_announce(&body, PLAIN_BYTES, 0, &err));
    assert_int_equal(held_bytes(pool), 0);
    for (size_t at = 0; at < PLAIN_BYTES; at += 10000) {
        add(&body, at, 10000);
        assert_true(held_bytes(pool) <= body.len + BODY_STEP_BYTES + 2 * BODY_ALIGN);
        assert_true(body_pool_bytes(&body) <= held_bytes(pool));
    }
    assert_true(span_equal(body_span(&body), span_of(plain, PLAIN_BYTES)));
    assert_true(held_bytes(pool) < PLAIN_BYTES + 1000);
    body_fini(&body);
    assert_int_equal(held_bytes(pool), 0);
}

/* Bytes that are read in place are not copied. A read never takes more than the missing bytes. */
static void reading_in_place(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    size_t at = 0, len;
    body_init(&body, pool, PLAIN_BYTES);
    assert_ok(err, body_announce(&body, PLAIN_BYTES, 123, &err));
    while (at < PLAIN_BYTES) {
        uint8_t *room = body_room(&body, &len);
        assert_non_null(room);
        assert_true(len > 0 && len <= PLAIN_BYTES - at);
        len = len > 30000 ? 30000 : len;
        memcpy(room, plain + at, len);
        assert_ok(err, body_add(&body, span_of(room, len), &err));
        at += len;
    }
    assert_true(span_equal(body_span(&body), span_of(plain, PLAIN_BYTES)));
    body_fini(&body);
}

/* A body that cannot grow in place moves. */
static void growing_past_others(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    struct hal_buffer *after[64];
    size_t count = 0;
    body_init(&body, pool, PLAIN_BYTES);
    for (size_t at = 0; at < 1000000; at += 50000) {
        add(&body, at, 50000);
        if (hal_pool_reserve(other, 64, &after[count], &err) == ST_OK) {
            count++;
        }
    }
    assert_memory_equal(body.ptr, plain, 1000000);
    while (count > 0) {
        hal_buffer_unref(after[--count]);
    }
    body_fini(&body);
}

static void without_room(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    struct hal_buffer *most;
    size_t len;
    assert_ok(err, hal_pool_reserve(other, POOL_BYTES - (512 << 10), &most, &err));
    body_init(&body, pool, PLAIN_BYTES);
    assert_ok(err, body_announce(&body, PLAIN_BYTES, 0, &err));
    add(&body, 0, 300000);
    assert_fails(err, body_add(&body, span_of(plain + 300000, 600000), &err), ST_EXHAUSTED,
                 "request body: no room");
    assert_int_equal(body.len, 300000);
    while (body_room(&body, &len)) {
        add(&body, body.len, len);
    }
    assert_int_equal(len, 0);
    hal_buffer_unref(most);
    add(&body, body.len, PLAIN_BYTES - body.len);
    assert_true(span_equal(body_span(&body), span_of(plain, PLAIN_BYTES)));
    body_fini(&body);
    body.pool = NULL;
    assert_fails(err, body_add(&body, span_of(plain, 100000), &err), ST_UNAVAILABLE, "lost");
    body_fini(&body);
}

/* Memory that is charged in advance counts at once, and is there later. */
static void precharges(void **state)
{
    (void)state;
    struct error err;
    struct body body, late;
    struct hal_pool *one, *two;
    assert_ok(err, hal_pool_member_new(&one, &err));
    assert_ok(err, hal_pool_member_new(&two, &err));
    hal_pool_join(one, pool);
    hal_pool_join(two, pool);
    body_init(&body, one, PLAIN_BYTES);
    body_init(&late, two, PLAIN_BYTES);
    assert_ok(err, body_announce(&body, PLAIN_BYTES, 0, &err));
    assert_ok(err, body_announce(&late, PLAIN_BYTES, 0, &err));
    assert_true(body_precharge(&body, false));
    assert_int_equal(held_bytes(pool), PLAIN_BYTES);
    assert_false(body_precharge(&late, false));
    add(&body, 0, PLAIN_BYTES / 2);
    assert_true(held_bytes(pool) < PLAIN_BYTES + 2 * BODY_ALIGN);
    body_drop_precharge(&body);
    assert_true(held_bytes(pool) <= PLAIN_BYTES / 2 + BODY_STEP_BYTES + 2 * BODY_ALIGN);
    assert_true(
        body_precharge(&late, true)); /* more than its share, but nobody else holds memory */
    add(&late, 0, PLAIN_BYTES);
    assert_memory_equal(late.ptr, plain, PLAIN_BYTES);
    body_fini(&body);
    body_fini(&late);
    assert_int_equal(held_bytes(pool), 0);
    hal_pool_leave(one);
    hal_pool_leave(two);
    hal_pool_free(one);
    hal_pool_free(two);
}

static void settling(void **state)
{
    (void)state;
    struct error err;
    struct body body;
    body_init(&body, pool, PLAIN_BYTES);
    add(&body, 0, 200000); /* its length is unknown, so it has room for more */
    assert_true(held_bytes(pool) > 210000);
    assert_ok(err, body_settle(&body, other, &err));
    assert_int_equal(held_bytes(pool), 0);
    assert_true(held_bytes(other) >= 200000 && held_bytes(other) < 201000);
    assert_memory_equal(body.ptr, plain, 200000);
    body_reset(&body);
    add(&body, 0, 100); /* small bodies are not in a pool */
    assert_ok(err, body_settle(&body, other, &err));
    assert_int_equal(held_bytes(other), 0);
    body_fini(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bodies_are_aligned_behind_their_json),
        cmocka_unit_test(bodies_grow_to_their_maximum),
        cmocka_unit_test(memory_grows_with_the_received_bytes),
        cmocka_unit_test(reading_in_place),
        cmocka_unit_test(growing_past_others),
        cmocka_unit_test(without_room),
        cmocka_unit_test(precharges),
        cmocka_unit_test(settling),
    };
    return cmocka_run_group_tests(tests, open_pool, close_pool);
}
