/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <pthread.h>

struct note {
    struct hal_semaphore_waiter waiter;
    int calls;
    enum status status;
};

static void take_note(struct hal_semaphore_waiter *waiter, enum status status)
{
    struct note *note = (struct note *)waiter;
    note->calls++;
    note->status = status;
}

static struct note note_at(uint64_t value)
{
    return (struct note){.waiter = {.value = value, .fn = take_note}, .status = STATUS_COUNT};
}

static void test_value_grows(void **state)
{
    uint64_t value = 99;
    (void)state;
    struct hal_semaphore *semaphore = cts_semaphore_new();
    assert_int_equal(hal_semaphore_query(semaphore, &value), ST_OK);
    assert_int_equal(value, 0);
    hal_semaphore_signal(semaphore, 1);
    hal_semaphore_signal(semaphore, UINT64_MAX - 1);
    assert_int_equal(hal_semaphore_query(semaphore, &value), ST_OK);
    assert_true(value == UINT64_MAX - 1);
    assert_int_equal(hal_semaphore_wait(semaphore, 7, 0), ST_OK);
    hal_semaphore_unref(semaphore);
}

static void test_first_failure_wins(void **state)
{
    uint64_t value;
    (void)state;
    struct hal_semaphore *semaphore = cts_semaphore_new();
    hal_semaphore_signal(semaphore, 3);
    hal_semaphore_fail(semaphore, ST_CANCELLED);
    hal_semaphore_fail(semaphore, ST_CORRUPT);
    hal_semaphore_signal(semaphore, 5); /* no effect */
    assert_int_equal(hal_semaphore_query(semaphore, &value), ST_CANCELLED);
    assert_int_equal(value, 3);
    assert_int_equal(hal_semaphore_wait(semaphore, 3, UINT64_MAX), ST_OK);
    assert_int_equal(hal_semaphore_wait(semaphore, 4, UINT64_MAX), ST_CANCELLED);
    hal_semaphore_unref(semaphore);
}

static void test_wait_times_out(void **state)
{
    (void)state;
    struct hal_semaphore *semaphore = cts_semaphore_new();
    assert_int_equal(hal_semaphore_wait(semaphore, 1, 0), ST_TIMEOUT);
    assert_int_equal(hal_semaphore_wait(semaphore, 1, 2000000), ST_TIMEOUT);
    hal_semaphore_signal(semaphore, 1);
    assert_int_equal(hal_semaphore_wait(semaphore, 1, 0), ST_OK);
    hal_semaphore_unref(semaphore);
}

static void test_callbacks(void **state)
{
    (void)state;
    struct hal_semaphore *semaphore = cts_semaphore_new();
    struct note notes[4] = {note_at(5), note_at(2), note_at(2), note_at(9)};
    for (int i = 0; i < 4; i++) {
        hal_semaphore_on(semaphore, &notes[i].waiter);
    }
    hal_semaphore_signal(semaphore, 1);
    assert_int_equal(notes[1].calls, 0);
    hal_semaphore_signal(semaphore, 2);
    assert_int_equal(notes[0].calls, 0);
    assert_int_equal(notes[1].calls, 1);
    assert_int_equal(notes[1].status, ST_OK);
    assert_int_equal(notes[2].calls, 1);
    hal_semaphore_signal(semaphore, 6);
    assert_int_equal(notes[0].calls, 1);
    hal_semaphore_fail(semaphore, ST_TIMEOUT);
    assert_int_equal(notes[3].calls, 1);
    assert_int_equal(notes[3].status, ST_TIMEOUT);

    struct note reached = note_at(6), never = note_at(7);
    hal_semaphore_on(semaphore, &reached.waiter);
    hal_semaphore_on(semaphore, &never.waiter);
    assert_int_equal(reached.status, ST_OK);
    assert_int_equal(never.status, ST_TIMEOUT);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(notes[i].calls, 1);
    }
    hal_semaphore_unref(semaphore);
}

struct pingpong {
    struct hal_semaphore *mine, *theirs;
};

#define ROUNDS 2000

/* Ends early when the other side does not answer for ten seconds. */
static void *play(void *arg)
{
    struct pingpong *p = arg;
    for (uint64_t i = 1; i <= ROUNDS; i++) {
        hal_semaphore_signal(p->mine, i);
        if (hal_semaphore_wait(p->theirs, i, 10000000000) != ST_OK) {
            break;
        }
    }
    return NULL;
}

static void test_two_threads(void **state)
{
    pthread_t thread;
    uint64_t value;
    (void)state;
    struct hal_semaphore *a = cts_semaphore_new(), *b = cts_semaphore_new();
    struct pingpong here = {a, b}, there = {b, a};
    assert_int_equal(pthread_create(&thread, NULL, play, &there), 0);
    play(&here);
    pthread_join(thread, NULL);
    assert_int_equal(hal_semaphore_query(a, &value), ST_OK);
    assert_int_equal(value, ROUNDS);
    assert_int_equal(hal_semaphore_query(b, &value), ST_OK);
    assert_int_equal(value, ROUNDS);
    hal_semaphore_unref(a);
    hal_semaphore_unref(b);
}

int cts_semaphore(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_value_grows),    cmocka_unit_test(test_first_failure_wins),
        cmocka_unit_test(test_wait_times_out), cmocka_unit_test(test_callbacks),
        cmocka_unit_test(test_two_threads),
    };
    return cmocka_run_group_tests_name("semaphore", tests, NULL, NULL);
}
