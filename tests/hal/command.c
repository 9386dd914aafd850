/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <pthread.h>

#define BIG 200000 /* bytes: several tiles of every transfer */
#define EDGE 64

/* Copies of several tiles and of one byte; nothing around the target changes. */
static void test_copies(void **state)
{
    static const size_t lengths[] = {0, 1, 7, 65536, 65537, BIG - 1};
    uint64_t random = 7;
    (void)state;
    size_t at = align_up(3, cts.props->offset_align), to = align_up(5, cts.props->offset_align);
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        struct error err;
        struct hal_buffer *source = cts_buffer_new(BIG + EDGE);
        struct hal_buffer *target = cts_buffer_new(BIG + EDGE);
        struct hal_command *command = cts_command_new(2);
        const struct hal_binding slots[] = {cts_all_of(source), cts_all_of(target)};
        uint8_t *from = hal_buffer_map(source);
        for (size_t k = 0; k < BIG + EDGE; k++) {
            from[k] = (uint8_t)(cts_random(&random) | 1);
        }
        assert_ok(err, hal_command_copy(command, cts_slot(0, at, lengths[i]),
                                        cts_slot(1, to, lengths[i]), &err));
        cts_command_end(command);
        cts_run(command, slots, 2);
        const uint8_t *host = hal_buffer_map(target);
        assert_memory_equal(host + to, from + at, lengths[i]);
        for (size_t k = 0; k < BIG + EDGE; k++) {
            assert_true((k >= to && k < to + lengths[i]) || host[k] == 0);
        }
        hal_command_unref(command);
        hal_buffer_unref(source);
        hal_buffer_unref(target);
    }
}

static void dispatch_number(struct hal_command *command, struct hal_binding out, uint32_t factor,
                            uint32_t addend, const uint32_t grid[3])
{
    const struct hal_dispatch dispatch = {
        .kernel = &cts_number,
        .grid = {grid[0], grid[1], grid[2]},
        .constants = (const uint32_t[]){factor, addend},
        .constants_bytes = 8,
        .bindings = &out,
        .binding_count = 1,
        .cost = 100000,
    };
    cts_dispatch(command, &dispatch);
}

static void dispatch_increment(struct hal_command *command, struct hal_binding out, uint32_t tiles,
                               uint64_t cost)
{
    const struct hal_dispatch dispatch = {
        .kernel = &cts_increment,
        .grid = {tiles, 1, 1},
        .bindings = &out,
        .binding_count = 1,
        .cost = cost,
    };
    cts_dispatch(command, &dispatch);
}

/* Every tile of a three-dimensional grid once, with its constants, through an offset, both ways. */
static void test_grid_constants_and_bindings(void **state)
{
    static const uint32_t grid[3] = {7, 5, 3};
    enum { TILES = 7 * 5 * 3, OFFSET = 256 };
    (void)state;
    struct hal_buffer *direct = cts_buffer_new(OFFSET + TILES * 4);
    struct hal_buffer *by_slot = cts_buffer_new(2 * OFFSET + TILES * 4);
    struct hal_command *command = cts_command_new(2);
    struct hal_binding out = {.buffer = direct, .offset = OFFSET, .length = TILES * 4};
    dispatch_number(command, out, 3, 11, grid);
    dispatch_number(command, cts_slot(1, OFFSET, TILES * 4), 5, 13, grid);
    cts_command_end(command);
    struct hal_binding slots[2] = {{0}, cts_all_of(by_slot)};
    slots[1].offset = OFFSET;
    slots[1].length -= OFFSET;
    cts_run(command, slots, 2);
    const uint32_t *a = hal_buffer_map(direct), *b = hal_buffer_map(by_slot);
    assert_int_equal(a[OFFSET / 4 - 1], 0);
    assert_int_equal(b[2 * OFFSET / 4 - 1], 0);
    for (uint32_t i = 0; i < TILES; i++) {
        assert_int_equal(a[OFFSET / 4 + i], i * 3 + 11);
        assert_int_equal(b[2 * OFFSET / 4 + i], i * 5 + 13);
    }
    hal_command_unref(command);
    hal_buffer_unref(direct);
    hal_buffer_unref(by_slot);
}

/* More tiles in one dim than a device may take at once. */
static void test_long_grid(void **state)
{
    enum { TILES = 70001 };
    (void)state;
    for (int dim = 0; dim < 3; dim++) {
        uint32_t grid[3] = {1, 1, 1};
        grid[dim] = TILES;
        struct hal_buffer *buffer = cts_buffer_new(TILES * 4);
        struct hal_command *command = cts_command_new(0);
        dispatch_number(command, cts_all_of(buffer), 2, 1, grid);
        cts_command_end(command);
        cts_run(command, NULL, 0);
        const uint32_t *host = hal_buffer_map(buffer);
        for (uint32_t i = 0; i < TILES; i++) {
            assert_int_equal(host[i], i * 2 + 1);
        }
        hal_command_unref(command);
        hal_buffer_unref(buffer);
    }
}

static void test_empty_grids(void **state)
{
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(4);
    struct hal_command *command = cts_command_new(0);
    dispatch_number(command, cts_all_of(buffer), 0, 1, (const uint32_t[]){0, 1, 1});
    dispatch_number(command, cts_all_of(buffer), 0, 1, (const uint32_t[]){1, 0, 4});
    cts_barrier(command);
    cts_barrier(command);
    dispatch_number(command, cts_all_of(buffer), 0, 1, (const uint32_t[]){1, 1, 0});
    cts_command_end(command);
    cts_run(command, NULL, 0);
    assert_int_equal(*(uint32_t *)hal_buffer_map(buffer), 0);
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

/*
 * Each region reads what the one before wrote, with other tile boundaries. Costs differ so that
 * regions run on one worker and on many.
 */
static void test_barriers_order_regions(void **state)
{
    enum { TILES = 999, REGIONS = 60 };
    struct error err;
    (void)state;
    struct hal_buffer *a = cts_buffer_new(TILES * 4), *b = cts_buffer_new(TILES * 4);
    struct hal_command *command = cts_command_new(0);
    for (unsigned i = 0; i < REGIONS; i++) {
        dispatch_increment(command, cts_all_of(i % 2 ? b : a), TILES, i % 3 ? 1000000 : 10);
        cts_barrier(command);
        assert_ok(err, hal_command_copy(command, cts_all_of(i % 2 ? b : a),
                                        cts_all_of(i % 2 ? a : b), &err));
        cts_barrier(command);
    }
    cts_command_end(command);
    for (uint32_t turn = 1; turn <= 5; turn++) {
        cts_run(command, NULL, 0);
        const uint32_t *host = hal_buffer_map(turn % 2 ? a : b);
        for (uint32_t i = 0; i < TILES; i++) {
            assert_int_equal(host[i], turn * REGIONS);
        }
    }
    hal_command_unref(command);
    hal_buffer_unref(a);
    hal_buffer_unref(b);
}

/* Barriers that order nothing are not there: before everything, and behind another. */
static void test_idle_barriers(void **state)
{
    struct hal_command_stats stats = {0};
    (void)state;
    struct hal_buffer *a = cts_buffer_new(4);
    struct hal_command *command = cts_command_new(0);
    cts_barrier(command);
    for (unsigned i = 0; i < 2; i++) {
        cts_barrier(command);
        dispatch_increment(command, cts_all_of(a), 1, 10);
        cts_barrier(command);
    }
    cts_command_end(command);
    hal_command_add_stats(command, &stats);
    assert_int_equal(stats.barriers, 2);
    cts_run(command, NULL, 0);
    assert_int_equal(*(const uint32_t *)hal_buffer_map(a), 2);
    hal_command_unref(command);
    hal_buffer_unref(a);
}

/* As many slots as there may be, with a kernel that runs on the host. */
static void test_most_slots(void **state)
{
    static struct hal_binding slots[HAL_SLOTS_MAX];
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(HAL_SLOTS_MAX * 4);
    struct hal_command *command = cts_command_new(HAL_SLOTS_MAX);
    uint32_t *host = hal_buffer_map(buffer);
    for (uint16_t i = 0; i < HAL_SLOTS_MAX; i++) {
        const struct hal_binding number = cts_slot(i, 0, 4);
        slots[i] = (struct hal_binding){.buffer = buffer, .offset = i * 4u, .length = 4};
        host[i] = i;
        cts_dispatch(command, &(struct hal_dispatch){.kernel = &cts_twice,
                                                     .grid = {1, 1, 1},
                                                     .bindings = &number,
                                                     .binding_count = 1,
                                                     .cost = 100});
    }
    cts_command_end(command);
    cts_run(command, slots, HAL_SLOTS_MAX);
    for (uint32_t i = 0; i < HAL_SLOTS_MAX; i++) {
        assert_int_equal(host[i], 2 * i);
    }
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

/* Kernels of which some have a form for the CPU alone take turns on the same memory. */
static void test_mixed_forms(void **state)
{
    enum { TILES = 300, TURNS = 20 };
    struct error err;
    (void)state;
    struct hal_buffer *a = cts_buffer_new(TILES * 4), *b = cts_buffer_new(TILES * 4);
    struct hal_command *command = cts_command_new(2);
    const struct hal_binding slots[] = {cts_all_of(a), cts_all_of(b)};
    const struct hal_binding in_a = cts_slot(0, 0, TILES * 4), in_b = cts_slot(1, 0, TILES * 4);
    for (unsigned i = 0; i < TURNS; i++) {
        const struct hal_dispatch twice = {.kernel = &cts_twice,
                                           .grid = {TILES, 1, 1},
                                           .bindings = i % 2 ? &in_b : &in_a,
                                           .binding_count = 1,
                                           .cost = i % 3 ? 10 : 1000000};
        dispatch_increment(command, i % 2 ? in_a : in_b, TILES, 100); /* beside the other */
        cts_dispatch(command, &twice);
        cts_barrier(command);
        if (i % 5 == 4) {
            assert_ok(err, hal_command_copy(command, in_a, in_b, &err));
            cts_barrier(command);
        }
    }
    cts_command_end(command);
    uint32_t x = 0, y = 0;
    for (int turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < TURNS; i++) {
            x = i % 2 ? x + 1 : x * 2;
            y = i % 2 ? y * 2 : y + 1;
            y = i % 5 == 4 ? x : y;
        }
        cts_run(command, slots, 2);
        const uint32_t *host_a = hal_buffer_map(a), *host_b = hal_buffer_map(b);
        for (uint32_t i = 0; i < TILES; i++) {
            assert_int_equal(host_a[i], x);
            assert_int_equal(host_b[i], y);
        }
    }
    hal_command_unref(command);
    hal_buffer_unref(a);
    hal_buffer_unref(b);
}

/* Many dispatches of different sizes share a region. */
static void test_wide_region(void **state)
{
    enum { DISPATCHES = 200, TILES = DISPATCHES * (DISPATCHES + 1) / 2 };
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(TILES * 4);
    struct hal_command *command = cts_command_new(1);
    size_t offset = 0;
    for (uint32_t i = 1; i <= DISPATCHES; i++) {
        dispatch_increment(command, cts_slot(0, offset, i * 4), i, 5000);
        offset += i * 4;
    }
    cts_command_end(command);
    const struct hal_binding slot = cts_all_of(buffer);
    for (uint32_t turn = 1; turn <= 20; turn++) {
        cts_run(command, &slot, 1);
        const uint32_t *host = hal_buffer_map(buffer);
        for (uint32_t i = 0; i < TILES; i++) {
            assert_int_equal(host[i], turn);
        }
    }
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

static void test_scratch(void **state)
{
    enum { TILES = 500 };
    struct error err;
    (void)state;

    struct hal_buffer *buffer = cts_buffer_new(TILES * 4);
    struct hal_command *command = cts_command_new(0);
    const struct hal_binding out = cts_all_of(buffer);
    struct hal_dispatch dispatch = {
        .kernel = &cts_scratch,
        .grid = {TILES, 1, 1},
        .bindings = &out,
        .binding_count = 1,
        .scratch_bytes = CTS_SCRATCH_BYTES,
        .cost = 10000000,
    };
    cts_dispatch(command, &dispatch);
    dispatch.scratch_bytes = cts.props->scratch_bytes_max + 1;
    assert_fails(err, hal_command_dispatch(command, &dispatch, &err), ST_TOO_LARGE, "'scratch'");
    cts_command_end(command);
    cts_run(command, NULL, 0);
    const uint32_t *host = hal_buffer_map(buffer);
    for (uint32_t i = 0; i < TILES; i++) {
        assert_int_equal(host[i], 1);
    }
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

static void test_kernel_without_form(void **state)
{
    struct error err;
    (void)state;
    struct hal_command *command = cts_command_new(0);
    const struct hal_dispatch dispatch = {.kernel = &cts_formless, .grid = {1, 1, 1}};
    assert_fails(err, hal_command_dispatch(command, &dispatch, &err), ST_UNSUPPORTED, "'formless'");
    hal_command_unref(command); /* never ended */
}

static void test_print(void **state)
{
    struct error err;
    struct buf text;
    (void)state;
    struct hal_buffer *buffer = cts_buffer_new(4096);
    struct hal_command *command = cts_command_new(2);
    const struct hal_binding bindings[] = {cts_slot(0, 0, 64),
                                           {.buffer = buffer, .offset = 128, .length = 2048}};
    const struct hal_dispatch dispatch = {
        .kernel = &cts_number,
        .grid = {4, 2, 1},
        .constants = (const uint32_t[]){1, 2},
        .constants_bytes = 8,
        .bindings = bindings,
        .binding_count = 2,
        .scratch_bytes = 16,
    };
    assert_ok(err, hal_command_copy(command, cts_slot(1, 0, 6), cts_slot(0, 64, 6), &err));
    cts_barrier(command);
    cts_dispatch(command, &dispatch);
    assert_ok(err, hal_command_copy(command, bindings[0], cts_slot(1, 64, 64), &err));
    cts_command_end(command);
    buf_init(&text, 4096);
    hal_command_print(command, NULL, NULL, &text);
    buf_add_char(&text, '\0');
    assert_string_equal((char *)text.ptr,
                        "copy slot1+0:6 slot0+64:6\n"
                        "barrier\n"
                        "dispatch number grid 4x2x1 constants 8 scratch 16 bindings slot0+0:64 "
                        "buffer+128:2048\n"
                        "copy slot0+0:64 slot1+64:64\n");
    buf_fini(&text);
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

static struct hal_command *two_increments(void)
{
    enum { TILES = 64 };
    struct hal_command *command = cts_command_new(1);
    dispatch_increment(command, cts_slot(0, 0, TILES * 4), TILES, 50000);
    cts_barrier(command);
    dispatch_increment(command, cts_slot(0, 0, TILES * 4), TILES, 10);
    cts_command_end(command);
    return command;
}

struct replayer {
    struct hal_command *command;
    struct hal_buffer *buffer;
    struct hal_semaphore *done;
    uint64_t turns;
};

static void *replay(void *arg)
{
    struct replayer *r = arg;
    const struct hal_binding slot = cts_all_of(r->buffer);
    for (uint64_t i = 1; i <= r->turns; i++) {
        const struct hal_submission submission = {
            .command = r->command,
            .slots = &slot,
            .slot_count = 1,
            .wait = {{r->done, i - 1}},
            .wait_count = 1,
            .signal = {{r->done, i}},
            .signal_count = 1,
            .caller = i % 4 ? HAL_CALLER_BUSY : HAL_CALLER_QUICK,
        };
        must(hal_queue_submit(cts.device, &submission, NULL) == ST_OK);
        if (i % 8 == 0) {
            must(hal_semaphore_wait(r->done, i, UINT64_MAX) == ST_OK);
        }
    }
    must(hal_semaphore_wait(r->done, r->turns, UINT64_MAX) == ST_OK);
    return NULL;
}

static void test_replay(void **state)
{
    enum { THREADS = 4, TURNS = 1000 };
    pthread_t threads[THREADS];
    struct replayer replayers[THREADS];
    (void)state;
    struct hal_command *command = two_increments();
    for (int i = 0; i < THREADS; i++) {
        replayers[i] = (struct replayer){command, cts_buffer_new(256), cts_semaphore_new(), TURNS};
        assert_int_equal(pthread_create(&threads[i], NULL, replay, &replayers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        const uint32_t *host = hal_buffer_map(replayers[i].buffer);
        for (int k = 0; k < 64; k++) {
            assert_int_equal(host[k], 2 * TURNS);
        }
        hal_buffer_unref(replayers[i].buffer);
        hal_semaphore_unref(replayers[i].done);
    }
    hal_command_unref(command);
}

static void test_no_malloc_on_replay(void **state)
{
    (void)state;
    struct hal_command *command = two_increments();
    struct replayer r = {command, cts_buffer_new(256), cts_semaphore_new(), 100};
    replay(&r);
    hal_semaphore_unref(r.done);
    r.done = cts_semaphore_new();
    r.turns = 1000;
    size_t before = cts_mallocs();
    replay(&r);
    assert_int_equal(cts_mallocs() - before, 0);
    hal_command_unref(command);
    hal_buffer_unref(r.buffer);
    hal_semaphore_unref(r.done);
}

int cts_command(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_grid_constants_and_bindings),
        cmocka_unit_test(test_long_grid),
        cmocka_unit_test(test_empty_grids),
        cmocka_unit_test(test_barriers_order_regions),
        cmocka_unit_test(test_idle_barriers),
        cmocka_unit_test(test_mixed_forms),
        cmocka_unit_test(test_most_slots),
        cmocka_unit_test(test_wide_region),
        cmocka_unit_test(test_scratch),
        cmocka_unit_test(test_kernel_without_form),
        cmocka_unit_test(test_print),
        cmocka_unit_test(test_replay),
        cmocka_unit_test(test_no_malloc_on_replay),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
