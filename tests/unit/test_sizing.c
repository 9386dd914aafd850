/* SPDX-License-Identifier: MIT */
/* The number of rows that run as one follows what runs cost, on a device of this file. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/sched/sizing.h"

#define US 1000.0

/* A device: a run takes |fixed| us and |row| us for each row, and up to |noise| of that more. */
struct world {
    double fixed, row, noise;
    double drift; /* of the noise: the load of the machine, which comes and goes */
    uint64_t now_ns;
    uint32_t random;
};

static double random_part(struct world *world)
{
    world->random = world->random * 1664525u + 1013904223u;
    return (double)(world->random >> 8) / (1 << 24);
}

/* |runs| runs, each as large as the sizing says, but not larger than |waiting|. */
static void run(struct rt_sizing *sizing, struct world *world, unsigned runs, int64_t waiting)
{
    for (unsigned i = 0; i < runs; i++) {
        int64_t rows = rt_sizing_rows(sizing);
        rows = rows < waiting ? rows : waiting;
        double us = (world->fixed + world->row * (double)rows) *
                    (1 + world->noise * random_part(world)) * (1 + world->drift * ((i / 500) % 2));
        world->now_ns += (uint64_t)(us * US);
        rt_sizing_note(sizing, rows, 0, world->now_ns);
    }
}

static struct rt_sizing learning(int64_t rows_max, int64_t rows)
{
    struct rt_sizing sizing = {0};
    rt_sizing_learn(&sizing, rows_max, rows);
    return sizing;
}

static void test_sizes(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(18, 5);
    assert_int_equal(sizing.count, 6);
    assert_int_equal(sizing.sizes[4].rows, 16);
    assert_int_equal(sizing.sizes[5].rows, 18);
    assert_int_equal(rt_sizing_rows(&sizing), 4);
    sizing = learning(1, 1);
    assert_int_equal(sizing.count, 1);
    sizing = learning(INT64_MAX, INT64_MAX);
    assert_int_equal(sizing.count, RT_SCHED_SIZES_MAX);
    assert_int_equal(rt_sizing_rows(&sizing), 1 << (RT_SCHED_SIZES_MAX - 1));
    rt_sizing_fix(&sizing, 7);
    struct world world = {.fixed = 100, .row = 1, .random = 1};
    run(&sizing, &world, 5000, INT64_MAX);
    assert_int_equal(rt_sizing_rows(&sizing), 7);
}

/* More rows may be joined than before: what was measured stays, and larger sizes are tried. */
static void test_more_rows(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(5, 2);
    struct world world = {.fixed = 400, .row = 50, .noise = 0.1, .random = 3};
    run(&sizing, &world, 20000, INT64_MAX);
    assert_int_equal(rt_sizing_best(&sizing), 5);
    const struct rt_sizing before = sizing;
    rt_sizing_learn(&sizing, 32, 1);
    assert_int_equal(sizing.count, 6);
    assert_int_equal(rt_sizing_best(&sizing), 4);
    assert_true(sizing.sizes[2].epochs > 0);
    assert_int_equal(sizing.sizes[2].epochs, before.sizes[2].epochs);
    assert_int_equal(sizing.sizes[5].epochs, 0);
    run(&sizing, &world, 40000, INT64_MAX);
    assert_int_equal(rt_sizing_best(&sizing), 32);
    sizing = learning(2, 1);
    rt_sizing_learn(&sizing, 32, 16); /* nothing was measured */
    assert_int_equal(rt_sizing_best(&sizing), 16);
}

/* Joining saves most of the time: it grows from one row to the most, also with noise. */
static void test_growing(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct rt_sizing sizing = learning(16, 1);
        struct world world = {.fixed = 400, .row = 50, .noise = 0.3, .drift = 0.5, .random = seed};
        run(&sizing, &world, 40000, INT64_MAX);
        assert_int_equal(rt_sizing_best(&sizing), 16);
        assert_true(sizing.sizes[4].row_ns < sizing.sizes[0].row_ns);
    }
}

/* A batch costs no less than its rows: it shrinks to one row, whatever the first trial said. */
static void test_shrinking(void **state)
{
    (void)state;
    for (uint32_t seed = 1; seed <= 20; seed++) {
        struct rt_sizing sizing = learning(16, 16);
        struct world world = {.row = 300, .noise = 0.2, .random = seed};
        world.fixed = -100; /* a row alone costs less than a row of many */
        run(&sizing, &world, 60000, INT64_MAX);
        assert_int_equal(rt_sizing_best(&sizing), 1);
    }
}

/* Equal costs are no reason to grow, and trials become rare. */
static void test_no_difference(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(64, 4);
    struct world world = {.row = 300, .noise = 0.5, .random = 3};
    run(&sizing, &world, 100000, INT64_MAX);
    assert_true(rt_sizing_best(&sizing) <= 4);
    uint64_t epochs = 0;
    for (uint32_t i = 0; i < sizing.count; i++) {
        epochs += sizing.sizes[i].epochs;
    }
    assert_true(sizing.sizes[sizing.best].epochs > epochs / 2);
    assert_int_equal(sizing.sizes[6].epochs, 0);
}

/* Few wait: the runs are not full, so nothing larger is tried. */
static void test_runs_that_are_not_full(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(64, 16);
    struct world world = {.fixed = 400, .row = 50, .random = 3};
    run(&sizing, &world, 20000, 9);
    assert_int_equal(rt_sizing_best(&sizing), 16);
    assert_int_equal(sizing.sizes[5].epochs, 0);
    assert_true(sizing.sizes[4].epochs > 0);
}

/* A batch costs as much as its rows: it shrinks, since smaller batches end sooner. */
static void test_equal_costs(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(16, 16);
    struct world world = {.row = 300, .noise = 0.1, .random = 5};
    run(&sizing, &world, 60000, INT64_MAX);
    assert_int_equal(rt_sizing_best(&sizing), 1);
}

/* Runs have 9 rows where 16 may run as one: the 8 below are tried, and not the 32 above. */
static void test_shrinking_to_the_load(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(32, 16);
    struct world world = {.row = 300, .noise = 0.1, .random = 7};
    world.fixed = -100;
    run(&sizing, &world, 60000, 9);
    assert_int_equal(rt_sizing_best(&sizing), 1);
    assert_int_equal(sizing.sizes[5].epochs, 0);
}

/* The device idles again and again: that time does not count, and the size is found as without. */
static void test_pauses(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(16, 1);
    struct world world = {.fixed = 400, .row = 50, .noise = 0.3, .random = 3};
    for (unsigned i = 0; i < 5000; i++) {
        run(&sizing, &world, 8, INT64_MAX);
        rt_sizing_break(&sizing);
        rt_sizing_break(&sizing);
        world.now_ns += 3000000;
    }
    assert_int_equal(rt_sizing_best(&sizing), 16);
    assert_true(sizing.sizes[0].row_ns < 700000); /* 450 us with the noise, 830 with the pauses */
}

/* Ends of runs are noted out of order, also right before a pause: no time is taken for ages. */
static void test_ends_out_of_order(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(16, 1);
    struct world world = {.fixed = 400, .row = 50, .random = 3, .now_ns = 1000000000};
    for (unsigned i = 0; i < 2000; i++) {
        run(&sizing, &world, 1 + i % 12, INT64_MAX);
        rt_sizing_note(&sizing, rt_sizing_rows(&sizing), 0, world.now_ns - 900000000);
        if (i % 3 == 0) {
            rt_sizing_break(&sizing);
        }
    }
    assert_int_equal(rt_sizing_best(&sizing), 16);
    assert_true(sizing.sizes[0].row_ns > 100000 && sizing.sizes[0].row_ns < 700000);
}

/* A long pause ends a trial. */
static void test_a_long_pause(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(16, 1);
    struct world world = {.fixed = 400, .row = 50, .random = 3};
    while (sizing.epoch != RT_SIZING_TRIAL) {
        run(&sizing, &world, 1, INT64_MAX);
    }
    assert_int_equal(rt_sizing_rows(&sizing), 2);
    assert_int_equal(rt_sizing_best(&sizing), 1);
    rt_sizing_break(&sizing);
    assert_int_equal(rt_sizing_rows(&sizing), 1); /* a long pause has no trial's size either */
    world.now_ns += 300000000;
    run(&sizing, &world, 1, INT64_MAX);
    assert_int_equal(rt_sizing_rows(&sizing), 1);
}

/* The cost of runs changes while the daemon serves: the size follows. */
static void test_following(void **state)
{
    (void)state;
    struct rt_sizing sizing = learning(8, 8);
    struct world world = {.fixed = -100, .row = 300, .noise = 0.1, .random = 9};
    run(&sizing, &world, 60000, INT64_MAX);
    assert_int_equal(rt_sizing_best(&sizing), 1);
    world.fixed = 900;
    run(&sizing, &world, 60000, INT64_MAX);
    assert_int_equal(rt_sizing_best(&sizing), 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_more_rows),
        cmocka_unit_test(test_growing),       cmocka_unit_test(test_shrinking),
        cmocka_unit_test(test_no_difference), cmocka_unit_test(test_runs_that_are_not_full),
        cmocka_unit_test(test_equal_costs),   cmocka_unit_test(test_shrinking_to_the_load),
        cmocka_unit_test(test_pauses),        cmocka_unit_test(test_ends_out_of_order),
        cmocka_unit_test(test_a_long_pause),  cmocka_unit_test(test_following),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
