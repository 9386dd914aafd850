/* SPDX-License-Identifier: MIT */
/* Waits for models without a daemon: places, limits and words of refusals. The clock is the test's,
 * and no alarm is open. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/serving/waits.h"
#include "server/process/options.h"

#define MS 1000000u
#define WAITERS 3

uint64_t __wrap_uv_hrtime(void);

static uint64_t clock_ns;
static struct alarm alarm_of_test; /* zeroed: it cannot be set */
static struct params params;
static struct waits waits;
static struct waiter waiters[WAITERS];
static struct error told;
static int told_count;

uint64_t __wrap_uv_hrtime(void)
{
    return clock_ns;
}

static void note_done(struct waiter *waiter, enum status status, const struct error *err)
{
    assert_true(list_is_empty(&waiter->wait_link) && list_is_empty(&waiter->change_link));
    assert_int_equal(status, err->code);
    told = *err;
    told_count++;
}

static int set_up(void **state)
{
    (void)state;
    params.loading_timeout = 100;
    params.loading_count_max = 2;
    clock_ns = 1000 * (uint64_t)MS;
    told_count = 0;
    waits_init(&waits, &alarm_of_test, &params);
    for (int i = 0; i < WAITERS; i++) {
        waiter_init(&waiters[i], note_done);
        waiters[i].client = SHARE_NOBODY;
        waiters[i].arrived_ns = clock_ns - 10 * MS;
        waiters[i].client_due_ns = ALARM_NEVER;
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (int i = 0; i < WAITERS; i++) {
        waits_end(&waits, &waiters[i]);
    }
    assert_int_equal(share_used(&waits.places), 0);
    waits_fini(&waits);
    waits_fini(&waits); /* as after a start that failed before */
    return 0;
}

static void begin(int i)
{
    struct error err;
    assert_int_equal(waits_begin(&waits, &waiters[i], &err), ST_OK);
}

static void a_wait_takes_a_place(void **state)
{
    struct error err;
    (void)state;
    begin(0);
    begin(1);
    assert_int_equal(waits_begin(&waits, &waiters[2], &err), ST_EXHAUSTED);
    waits_end(&waits, &waiters[0]);
    waits_end(&waits, &waiters[0]); /* which waits no more */
    assert_int_equal(share_used(&waits.places), 1);
    begin(2);
}

static void a_wait_is_refused_after_the_limit(void **state)
{
    (void)state;
    waiters[0].model = "m";
    begin(0);
    clock_ns += 40 * MS;
    begin(1);
    assert_true(waits_expire(&waits, clock_ns) == clock_ns + 60 * MS);
    clock_ns += 60 * MS;
    assert_true(waits_expire(&waits, clock_ns) == clock_ns + 40 * MS);
    assert_int_equal(told_count, 1);
    assert_int_equal(told.code, ST_UNAVAILABLE);
    assert_string_equal(told.text, "model 'm' is still loading after 100 ms (--loading-timeout)");
    clock_ns += 40 * MS;
    assert_true(waits_expire(&waits, clock_ns) == ALARM_NEVER);
    assert_string_equal(told.text, "the models are still loading after 100 ms (--loading-timeout)");
}

static void a_client_may_want_to_wait_less(void **state)
{
    (void)state;
    waiters[0].model = "m";
    waiters[0].client_due_ns = clock_ns + 20 * MS;
    begin(0);
    assert_true(waits_expire(&waits, clock_ns) == clock_ns + 20 * MS);
    clock_ns += 20 * MS;
    assert_true(waits_expire(&waits, clock_ns) == ALARM_NEVER);
    assert_int_equal(told.code, ST_TIMEOUT);
    assert_string_equal(told.text, "model 'm' is still loading after 30 ms");
}

/* A list of calls may wait for one model after the other. */
static void all_waits_together_have_one_limit(void **state)
{
    (void)state;
    begin(0);
    clock_ns += 70 * MS;
    waits_end(&waits, &waiters[0]);
    assert_int_equal(told_count, 0);
    clock_ns += 500 * MS;
    begin(0);
    clock_ns += 30 * MS;
    waits_expire(&waits, clock_ns);
    assert_int_equal(told_count, 1);
    assert_true(waiters[0].waited_ns == 100 * MS);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_wait_takes_a_place),
        TEST(a_wait_is_refused_after_the_limit),
        TEST(a_client_may_want_to_wait_less),
        TEST(all_waits_together_have_one_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
