/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

/* ---- kernels that only a CPU can run: they look at the time and at each other ---------------- */

static atomic_uint tiles_run;
static atomic_bool cancel;

/* Asks for the end in its hundredth tile. */
static void cancel_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    if (atomic_fetch_add(&tiles_run, 1) == 99) {
        atomic_store(&cancel, true);
    }
}

static atomic_uint met[2];

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Tile (or constant) k waits until the other one is running too, for at most ten seconds. */
static void meet_kernel(const struct hal_args *args, struct hal_tile tile)
{
    uint32_t me = args->constants ? *(const uint32_t *)args->constants : tile.x;
    double until = seconds() + 10;
    atomic_store(&met[me], 1);
    while (!atomic_load(&met[!me]) && seconds() < until) {
        sched_yield();
    }
    if (!atomic_load(&met[!me])) {
        atomic_store(&met[me], 0);
    }
}

static atomic_bool has_slow;

/* The first tile lasts until all others have been run, at most ten seconds. */
static void lagging_kernel(const struct hal_args *args, struct hal_tile tile)
{
    double until = seconds() + 10;
    (void)tile;
    if (!atomic_exchange(&has_slow, true)) {
        while (atomic_load(&tiles_run) + 1 < args->grid[0] && seconds() < until) {
            usleep(1000);
        }
    }
    if (seconds() < until) {
        atomic_fetch_add(&tiles_run, 1);
    }
}

static pthread_t waiting;
static atomic_uint tiles_by_waiting;

/* Two tiles meet; counts those of the thread that waits for them. */
static void company_kernel(const struct hal_args *args, struct hal_tile tile)
{
    if (args->grid[0] > 1) {
        meet_kernel(args, tile);
    }
    if (pthread_equal(pthread_self(), waiting)) {
        atomic_fetch_add(&tiles_by_waiting, 1);
    }
}

static atomic_bool overtaken;

/* Takes its time until somebody else has had a turn. */
static void patient_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    if (!atomic_load(&overtaken)) {
        atomic_fetch_add(&tiles_run, 1);
        usleep(1000);
    }
}

static void overtaking_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    atomic_store(&overtaken, true);
}

static atomic_uint short_count, tiles_at_first, tiles_at_last;
#define SHORT_ONES 40

/* Notes how far the long ones are when the first and the last of the short ones run. */
static void short_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    uint32_t number = atomic_fetch_add(&short_count, 1);
    if (number == 0) {
        atomic_store(&tiles_at_first, atomic_load(&tiles_run));
    } else if (number == SHORT_ONES - 1) {
        atomic_store(&tiles_at_last, atomic_load(&tiles_run));
        atomic_store(&overtaken, true);
    }
}

/* One of a row of tiles submits something for another share, which notes how far the row is. */
#define CALLING_TILE 20
static struct hal_command *called_command;
static struct hal_semaphore *called_done;

static void calling_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    if (atomic_fetch_add(&tiles_run, 1) == CALLING_TILE) {
        cts_submit(&(struct hal_submission){.command = called_command,
                                            .signal = {{called_done, 1}},
                                            .signal_count = 1,
                                            .share = 2});
    }
}

static void called_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    atomic_store(&tiles_at_first, atomic_load(&tiles_run));
}

/* Tiles of several submissions note the order in which they run. */
#define HOURS_NS UINT64_C(10000000000000) /* a cost */
#define FOLLOWING 3
#define FOLLOWING_TILES 6
static atomic_uint following_count;
static uint32_t following_order[FOLLOWING * FOLLOWING_TILES];

static void following_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)tile;
    following_order[atomic_fetch_add(&following_count, 1)] = *(const uint32_t *)args->constants;
    usleep(1000);
}

/* Two rows of tiles; the light one notes how far it is when the heavy one has had so many. */
#define HEAVY_TILES 60
static atomic_uint light_tiles, heavy_tiles, light_at_last;

static void light_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    if (atomic_load(&heavy_tiles) < HEAVY_TILES) {
        usleep(500);
        atomic_fetch_add(&light_tiles, 1);
    }
}

static void heavy_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    usleep(500);
    if (atomic_fetch_add(&heavy_tiles, 1) + 1 == HEAVY_TILES) {
        atomic_store(&light_at_last, atomic_load(&light_tiles));
    }
}

/* Each tile waits until as many have been let through as have come before it, and one more. */
#define GATE_TILES 8
static atomic_uint let_through;

static void gated_kernel(const struct hal_args *args, struct hal_tile tile)
{
    (void)args;
    (void)tile;
    uint32_t number = atomic_fetch_add(&tiles_run, 1);
    while (atomic_load(&let_through) <= number) {
        usleep(100);
    }
}

static const struct hal_kernel gated = {.name = "gated", .cpu = gated_kernel};
static const struct hal_kernel light = {.name = "light", .cpu = light_kernel};
static const struct hal_kernel heavy = {.name = "heavy", .cpu = heavy_kernel};
static const struct hal_kernel calling = {.name = "calling", .cpu = calling_kernel};
static const struct hal_kernel called = {.name = "called", .cpu = called_kernel};
static const struct hal_kernel brief = {.name = "brief", .cpu = short_kernel};
static const struct hal_kernel patient = {.name = "patient", .cpu = patient_kernel};
static const struct hal_kernel following = {.name = "following", .cpu = following_kernel};
static const struct hal_kernel overtaking = {.name = "overtaking", .cpu = overtaking_kernel};
static const struct hal_kernel cancelling = {.name = "cancelling", .cpu = cancel_kernel};
static const struct hal_kernel company = {.name = "company", .cpu = company_kernel};
static const struct hal_kernel meeting = {.name = "meeting", .cpu = meet_kernel};
static const struct hal_kernel lagging = {.name = "lagging", .cpu = lagging_kernel};

static struct hal_command *command_of(const struct hal_kernel *kernel, uint32_t tiles,
                                      uint64_t cost)
{
    struct hal_command *command = cts_command_new(0);
    const struct hal_dispatch dispatch = {.kernel = kernel, .grid = {tiles, 1, 1}, .cost = cost};
    cts_dispatch(command, &dispatch);
    cts_command_end(command);
    return command;
}

static void cpu_only(void)
{
    if (!cts.props->is_host) {
        skip();
    }
}

static void test_cancel_while_running(void **state)
{
    (void)state;
    cpu_only();
    for (enum hal_caller caller = HAL_CALLER_BUSY; caller <= HAL_CALLER_WAITS; caller++) {
        struct hal_semaphore *done = cts_semaphore_new();
        uint64_t cost = caller == HAL_CALLER_QUICK ? 100 : 100000000;
        struct hal_command *command = command_of(&cancelling, 100000, cost);
        atomic_store(&tiles_run, 0);
        atomic_store(&cancel, false);
        const struct hal_submission submission = {
            .command = command,
            .signal = {{done, 1}},
            .signal_count = 1,
            .caller = caller,
            .cancel = &cancel,
        };
        cts_submit(&submission);
        assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_CANCELLED);
        assert_between(atomic_load(&tiles_run), 100, 99999);
        atomic_store(&tiles_run, 200); /* cancelled before it begins: nothing runs */
        hal_semaphore_unref(done);
        done = cts_semaphore_new();
        struct hal_submission again = submission;
        again.signal[0].semaphore = done;
        cts_submit(&again);
        assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_CANCELLED);
        assert_int_equal(atomic_load(&tiles_run), 200);
        hal_command_unref(command);
        hal_semaphore_unref(done);
    }
}

/* The mark once it does not change any more: all tiles that can be taken have been. */
static uint64_t settled_mark(void)
{
    struct hal_progress before, now = hal_device_progress(cts.device);
    do {
        before = now;
        usleep(20000);
        now = hal_device_progress(cts.device);
    } while (atomic_load(&tiles_run) == 0 || now.mark != before.mark);
    assert_true(now.is_busy);
    return now.mark;
}

/* The mark stays as long as nothing is completed, and is another one with each tile that is. */
static void test_progress(void **state)
{
    (void)state;
    while (hal_device_progress(cts.device).is_busy) { /* with what the last test has left */
        usleep(100);
    }
    struct hal_command *command = command_of(&gated, GATE_TILES, GATE_TILES * 10000000u);
    struct hal_semaphore *done = cts_semaphore_new();
    atomic_store(&tiles_run, 0);
    atomic_store(&let_through, 0);
    cts_submit(
        &(struct hal_submission){.command = command, .signal = {{done, 1}}, .signal_count = 1});
    for (uint32_t i = 0; i < GATE_TILES - 1; i++) {
        uint64_t mark = settled_mark();
        atomic_store(&let_through, i + 1);
        while (hal_device_progress(cts.device).mark == mark) {
            usleep(100);
        }
    }
    atomic_store(&let_through, GATE_TILES);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
    while (hal_device_progress(cts.device).is_busy) {
        usleep(100);
    }
    hal_command_unref(command);
    hal_semaphore_unref(done);
}

/* The tiles of one submission spread over the workers. */
/* All workers are inside a large submission; a small one does not wait for its end. */
static void test_submissions_take_turns(void **state)
{
    (void)state;
    cpu_only();
    enum { TILES = 3000 };
    struct hal_command *large = command_of(&patient, TILES, TILES * 1000000u);
    struct hal_command *small = command_of(&overtaking, 1, 1000000);
    struct hal_semaphore *done[2] = {cts_semaphore_new(), cts_semaphore_new()};
    atomic_store(&tiles_run, 0);
    atomic_store(&overtaken, false);
    for (int i = 0; i < 2; i++) {
        const struct hal_submission submission = {
            .command = i ? small : large,
            .signal = {{done[i], 1}},
            .signal_count = 1,
        };
        cts_submit(&submission);
        while (atomic_load(&tiles_run) == 0) { /* the large one has begun */
            usleep(100);
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done[i]);
    }
    assert_between(atomic_load(&tiles_run), 1, TILES - 1);
    hal_command_unref(large);
    hal_command_unref(small);
}

/* As above, but the small one is declared so dear that it would wait for the large one for hours.
 * It does not need to: a worker that only helps leaves for it. */
static void test_helpers_leave_at_once(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers < 2) {
        skip();
    }
    enum { TILES = 3000 };
    struct hal_command *commands[] = {command_of(&patient, TILES, TILES * 1000000u),
                                      command_of(&overtaking, 1, HOURS_NS)};
    struct hal_semaphore *done[2];
    atomic_store(&tiles_run, 0);
    atomic_store(&overtaken, false);
    for (int i = 0; i < 2; i++) {
        done[i] = cts_semaphore_new();
        cts_submit(&(struct hal_submission){
            .command = commands[i], .signal = {{done[i], 1}}, .signal_count = 1});
        while (atomic_load(&tiles_run) < 2) { /* two workers are likely to be inside */
            usleep(100);
        }
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done[i]);
        hal_command_unref(commands[i]);
    }
    assert_between(atomic_load(&tiles_run), 1, TILES - 1);
}

/* One worker: submissions of the same share and cost do not take turns, they follow each other. */
static void test_equal_ones_follow_each_other(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers > 1) {
        skip();
    }
    struct hal_command *commands[FOLLOWING];
    struct hal_semaphore *done[FOLLOWING];
    atomic_store(&following_count, 0);
    for (uint32_t i = 0; i < FOLLOWING; i++) {
        const struct hal_dispatch dispatch = {.kernel = &following,
                                              .grid = {FOLLOWING_TILES, 1, 1},
                                              .cost = HOURS_NS,
                                              .constants = &i,
                                              .constants_bytes = sizeof(i)};
        commands[i] = cts_command_new(0);
        done[i] = cts_semaphore_new();
        cts_dispatch(commands[i], &dispatch);
        cts_command_end(commands[i]);
        cts_submit(&(struct hal_submission){
            .command = commands[i], .signal = {{done[i], 1}}, .signal_count = 1, .share = 1});
    }
    for (uint32_t i = 0; i < FOLLOWING; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done[i]);
        hal_command_unref(commands[i]);
    }
    for (uint32_t i = 0; i < FOLLOWING * FOLLOWING_TILES; i++) {
        assert_int_equal(following_order[i], i / FOLLOWING_TILES);
    }
}

/*
 * The short submissions of one party, one after the other, beside two long ones of another party:
 * they are not held to one for each slice of the long ones.
 */
static void test_shares_have_the_same_time(void **state)
{
    (void)state;
    if (strcmp(cts.name, "cpu") != 0) {
        skip();
    }
    struct hal_command *slow = command_of(&patient, 10000, 10000u * 1000000);
    struct hal_command *fast = command_of(&brief, 1, 100000);
    struct hal_semaphore *ends[2] = {cts_semaphore_new(), cts_semaphore_new()};
    struct hal_semaphore *chain = cts_semaphore_new();
    atomic_store(&overtaken, false);
    atomic_store(&tiles_run, 0);
    atomic_store(&short_count, 0);
    for (int i = 0; i < 2; i++) {
        cts_submit(&(struct hal_submission){
            .command = slow, .signal = {{ends[i], 1}}, .signal_count = 1, .share = 1});
    }
    for (uint64_t i = 0; i < SHORT_ONES; i++) {
        cts_submit(&(struct hal_submission){.command = fast,
                                            .wait = {{chain, i}},
                                            .wait_count = 1,
                                            .signal = {{chain, i + 1}},
                                            .signal_count = 1,
                                            .share = 2});
    }
    assert_int_equal(hal_semaphore_wait(chain, SHORT_ONES, UINT64_MAX), ST_OK);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hal_semaphore_wait(ends[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(ends[i]);
    }
    assert_true(atomic_load(&tiles_at_last) - atomic_load(&tiles_at_first) <= SHORT_ONES / 2);
    hal_semaphore_unref(chain);
    hal_command_unref(slow);
    hal_command_unref(fast);
}

/* A share of the weight 4 beside one of the weight 1: a quarter, with room for what else runs. */
static void test_weights(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers > 1) {
        skip();
    }
    struct hal_command *rows[] = {command_of(&light, 10000, 10000u * 1000000),
                                  command_of(&heavy, HEAVY_TILES, HEAVY_TILES * 1000000u)};
    struct hal_semaphore *done[] = {cts_semaphore_new(), cts_semaphore_new()};
    atomic_store(&light_tiles, 0);
    atomic_store(&heavy_tiles, 0);
    for (uint32_t i = 0; i < 2; i++) {
        cts_submit(&(struct hal_submission){.command = rows[i],
                                            .signal = {{done[i], 1}},
                                            .signal_count = 1,
                                            .share = i + 1,
                                            .weight = i ? 4 : 1});
    }
    for (uint32_t i = 0; i < 2; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        hal_semaphore_unref(done[i]);
        hal_command_unref(rows[i]);
    }
    assert_between(atomic_load(&light_at_last), 1, HEAVY_TILES / 2);
}

/* One worker: submissions of another share run after the tile, not after a slice. */
static void test_another_share_waits_for_a_tile(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers > 1) {
        skip();
    }
    struct hal_command *row = command_of(&calling, 1000, 1000u * 1000000);
    struct hal_semaphore *done = cts_semaphore_new();
    called_command = command_of(&called, 1, 1000000);
    called_done = cts_semaphore_new();
    atomic_store(&tiles_run, 0);
    cts_submit(&(struct hal_submission){
        .command = row, .signal = {{done, 1}}, .signal_count = 1, .share = 1});
    assert_int_equal(hal_semaphore_wait(called_done, 1, UINT64_MAX), ST_OK);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
    assert_int_equal(atomic_load(&tiles_at_first), CALLING_TILE + 1);
    hal_semaphore_unref(called_done);
    hal_semaphore_unref(done);
    hal_command_unref(called_command);
    hal_command_unref(row);
}

static void test_tiles_run_at_the_same_time(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers < 2) {
        skip();
    }
    struct hal_command *command = command_of(&meeting, 2, 1000000);
    atomic_store(&met[0], 0);
    atomic_store(&met[1], 0);
    cts_run(command, NULL, 0);
    assert_int_equal(atomic_load(&met[0]), 1);
    assert_int_equal(atomic_load(&met[1]), 1);
    hal_command_unref(command);
}

/* Processors have cores of several speeds. Tiles are taken and not dealt, so a worker that is still
 * in its first one keeps no other from being run. */
static void test_a_slow_worker_keeps_no_tiles(void **state)
{
    enum { TILES = 60 };
    (void)state;
    cpu_only();
    if (cts.props->workers < 2) {
        skip();
    }
    struct hal_command *command = command_of(&lagging, TILES, TILES * 1000000u);
    atomic_store(&tiles_run, 0);
    atomic_store(&has_slow, false);
    cts_run(command, NULL, 0);
    assert_int_equal(atomic_load(&tiles_run), TILES);
    hal_command_unref(command);
}

static void test_submissions_run_at_the_same_time(void **state)
{
    (void)state;
    cpu_only();
    if (cts.props->workers < 2) {
        skip();
    }
    struct hal_command *commands[2];
    struct hal_semaphore *done[2];
    atomic_store(&met[0], 0);
    atomic_store(&met[1], 0);
    for (uint32_t i = 0; i < 2; i++) {
        const struct hal_dispatch dispatch = {
            .kernel = &meeting, .grid = {1, 1, 1}, .constants = &i, .constants_bytes = sizeof(i)};
        commands[i] = cts_command_new(0);
        cts_dispatch(commands[i], &dispatch);
        cts_command_end(commands[i]);
        done[i] = cts_semaphore_new();
        const struct hal_submission submission = {
            .command = commands[i], .signal = {{done[i], 1}}, .signal_count = 1};
        cts_submit(&submission);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), ST_OK);
        assert_int_equal(atomic_load(&met[i]), 1);
        hal_semaphore_unref(done[i]);
        hal_command_unref(commands[i]);
    }
}

/* ---- what every device does ------------------------------------------------------------------ */

static void test_runs_inline(void **state)
{
    uint64_t value;
    (void)state;
    cpu_only();
    struct hal_buffer *buffer = cts_buffer_new(16);
    struct hal_command *command = cts_command_new(1);
    const struct hal_binding out = cts_slot(0, 0, 16), slot = cts_all_of(buffer);
    const struct hal_dispatch dispatch = {.kernel = &cts_increment,
                                          .grid = {4, 1, 1},
                                          .bindings = &out,
                                          .binding_count = 1,
                                          .scratch_bytes = 64,
                                          .cost = 10};
    cts_dispatch(command, &dispatch);
    cts_command_end(command);
    struct hal_semaphore *done = cts_semaphore_new();
    const struct hal_submission submission = {
        .command = command,
        .slots = &slot,
        .slot_count = 1,
        .signal = {{done, 1}},
        .signal_count = 1,
        .caller = HAL_CALLER_QUICK,
    };
    cts_submit(&submission);
    assert_int_equal(hal_semaphore_query(done, &value), ST_OK);
    assert_int_equal(value, 1);
    assert_int_equal(((uint32_t *)hal_buffer_map(buffer))[3], 1);
    hal_semaphore_unref(done);
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

/* A thread that waits runs what one thread can, and a worker's part of the rest. */
static void test_who_waits_takes_part(void **state)
{
    (void)state;
    cpu_only();
    uint32_t tiles = cts.props->workers > 1 ? 2 : 1;
    struct hal_command *command = command_of(&company, tiles, 1000000);
    struct hal_semaphore *done = cts_semaphore_new();
    waiting = pthread_self();
    for (uint64_t i = 1; i <= 100; i++) {
        const struct hal_submission submission = {.command = command,
                                                  .signal = {{done, i}},
                                                  .signal_count = 1,
                                                  .caller = HAL_CALLER_WAITS};
        atomic_store(&met[0], 0);
        atomic_store(&met[1], 0);
        atomic_store(&tiles_by_waiting, 0);
        cts_submit(&submission);
        assert_int_equal(hal_semaphore_wait(done, i, UINT64_MAX), ST_OK);
        assert_int_equal(atomic_load(&tiles_by_waiting), 1);
    }
    hal_semaphore_unref(done);
    hal_command_unref(command);
}

/* ... but does not wait for what others have to do first. */
static void test_who_waits_is_not_kept(void **state)
{
    uint64_t value;
    (void)state;
    struct hal_command *command = cts_command_new(0);
    cts_command_end(command);
    struct hal_semaphore *gate = cts_semaphore_new(), *done = cts_semaphore_new();
    const struct hal_submission submission = {.command = command,
                                              .wait = {{gate, 1}},
                                              .wait_count = 1,
                                              .signal = {{done, 1}},
                                              .signal_count = 1,
                                              .caller = HAL_CALLER_WAITS};
    cts_submit(&submission);
    assert_int_equal(hal_semaphore_query(done, &value), ST_OK);
    assert_int_equal(value, 0);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
    hal_semaphore_unref(gate);
    hal_semaphore_unref(done);
    hal_command_unref(command);
}

static void release_early(void *arg)
{
    atomic_store((atomic_bool *)arg, true);
}

/* When a wait for a submission ends, its slots have been let go. */
static void test_slots_are_let_go_before_the_signal(void **state)
{
    struct error err;
    _Alignas(4096) static uint8_t memory[4096];
    (void)state;
    struct hal_command *command = cts_command_new(1);
    assert_ok(err, hal_command_copy(command, cts_slot(0, 0, 2048), cts_slot(0, 2048, 2048), &err));
    cts_command_end(command);
    for (uint64_t i = 1; i <= 200; i++) {
        atomic_bool released = false;
        struct hal_buffer *buffer;
        if (hal_buffer_import(cts.device, memory, sizeof(memory), false, release_early, &released,
                              &buffer, &err) != ST_OK) {
            hal_command_unref(command);
            skip();
        }
        const struct hal_binding slot = cts_all_of(buffer);
        struct hal_semaphore *done = cts_semaphore_new();
        const struct hal_submission submission = {.command = command,
                                                  .slots = &slot,
                                                  .slot_count = 1,
                                                  .signal = {{done, 1}},
                                                  .signal_count = 1};
        cts_submit(&submission);
        hal_buffer_unref(buffer);
        assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_OK);
        assert_true(atomic_load(&released));
        hal_semaphore_unref(done);
    }
    hal_command_unref(command);
}

/* A chain submitted in reverse, long enough to overflow the stack of a recursion. */
static void run_chain(enum status how)
{
    enum { LINKS = 20000 };
    struct error err;
    struct hal_buffer *buffer = cts_buffer_new(4);
    struct hal_command *command = cts_command_new(1);
    const struct hal_binding out = cts_slot(0, 0, 4), slot = cts_all_of(buffer);
    const struct hal_dispatch dispatch = {
        .kernel = &cts_increment, .grid = {1, 1, 1}, .bindings = &out, .binding_count = 1};
    cts_dispatch(command, &dispatch);
    cts_command_end(command);
    static struct hal_semaphore *links[LINKS + 1];
    for (int i = 0; i <= LINKS; i++) {
        assert_ok(err, hal_semaphore_new(0, &links[i], &err));
    }
    for (int i = LINKS - 1; i >= 0; i--) {
        const struct hal_submission submission = {
            .command = command,
            .slots = &slot,
            .slot_count = 1,
            .wait = {{links[i], 1}},
            .wait_count = 1,
            .signal = {{links[i + 1], 1}},
            .signal_count = 1,
            .caller = HAL_CALLER_QUICK,
        };
        cts_submit(&submission);
    }
    if (how == ST_OK) {
        hal_semaphore_signal(links[0], 1);
    } else {
        hal_semaphore_fail(links[0], how);
    }
    assert_int_equal(hal_semaphore_wait(links[LINKS], 1, UINT64_MAX), how);
    assert_int_equal(*(uint32_t *)hal_buffer_map(buffer), how == ST_OK ? LINKS : 0);
    for (int i = 0; i <= LINKS; i++) {
        hal_semaphore_unref(links[i]);
    }
    hal_command_unref(command);
    hal_buffer_unref(buffer);
}

static void test_wait_before_signal(void **state)
{
    (void)state;
    run_chain(ST_OK);
}

static void test_failure_propagates(void **state)
{
    (void)state;
    run_chain(ST_CORRUPT);
}

static void test_empty_command(void **state)
{
    (void)state;
    struct hal_command *command = cts_command_new(0);
    cts_command_end(command);
    cts_run(command, NULL, 0);
    hal_command_unref(command);
}

/* ---- random graphs of submissions against a model -------------------------------------------- */

#define NODES 1000
#define ROUNDS 10
#define DEPS_MAX 4

struct node {
    struct hal_semaphore *done;
    uint64_t seed, expected;
    uint32_t dep_count, deps[DEPS_MAX];
    enum status status;
};

static void mix_dispatch(struct hal_command *command, uint32_t deps)
{
    struct hal_binding bindings[1 + DEPS_MAX];
    const uint64_t seed = 5;
    for (uint16_t i = 0; i <= DEPS_MAX; i++) {
        bindings[i] = cts_slot(i, 0, i <= deps ? 8 : 0);
    }
    const struct hal_dispatch dispatch = {
        .kernel = &cts_mix,
        .grid = {1, 1, 1},
        .constants = &seed,
        .constants_bytes = sizeof(seed),
        .bindings = bindings,
        .binding_count = 1 + DEPS_MAX,
        .cost = 100,
    };
    cts_dispatch(command, &dispatch);
}

/* The result of each node, or how it will fail, from the nodes that it depends on. */
static void make_graph(struct node nodes[NODES], uint64_t *random)
{
    for (uint32_t i = 0; i < NODES; i++) {
        struct node *node = &nodes[i];
        uint64_t r = cts_random(random), values[DEPS_MAX];
        *node = (struct node){.done = cts_semaphore_new(), .status = ST_OK};
        node->dep_count = i < 4 ? 0 : (uint32_t)(r % (DEPS_MAX + 1));
        for (uint32_t k = 0; k < node->dep_count; k++) {
            node->deps[k] = (uint32_t)(cts_random(random) % i);
            const struct node *dep = &nodes[node->deps[k]];
            values[k] = dep->expected;
            node->status = dep->status != ST_OK ? dep->status : node->status;
        }
        if (r >> 32 & 1 && r % 97 == 0) {
            node->status = ST_UNAVAILABLE; /* its root fails */
        }
        node->expected = node->status == ST_OK ? cts_mix_of(5, values, node->dep_count) : 0;
    }
}

static void submit_node(struct hal_command *const *commands, struct node *nodes, uint32_t i,
                        struct hal_buffer *values, struct hal_semaphore *root)
{
    struct node *node = &nodes[i];
    struct hal_binding slots[1 + DEPS_MAX] = {{.buffer = values, .offset = i * 64, .length = 8}};
    struct hal_submission submission = {
        .command = commands[node->dep_count],
        .slots = slots,
        .slot_count = 1 + DEPS_MAX,
        .wait = {{root, 1}},
        .wait_count = 1,
        .signal = {{node->done, 1}},
        .signal_count = 1,
        .caller = i % 3,
    };
    for (uint32_t k = 0; k < node->dep_count; k++) {
        slots[1 + k] =
            (struct hal_binding){.buffer = values, .offset = node->deps[k] * 64, .length = 8};
        submission.wait[submission.wait_count++] =
            (struct hal_timepoint){nodes[node->deps[k]].done, 1};
    }
    cts_submit(&submission);
}

static void shuffle(uint32_t *order, uint32_t count, uint64_t *random)
{
    for (uint32_t i = 0; i < count; i++) {
        order[i] = i;
    }
    for (uint32_t i = count - 1; i > 0; i--) {
        uint32_t k = (uint32_t)(cts_random(random) % (i + 1)), keep = order[i];
        order[i] = order[k];
        order[k] = keep;
    }
}

static void run_graph(struct hal_command *const *commands, uint64_t *random)
{
    static struct node nodes[NODES];
    static uint32_t order[NODES];
    struct hal_semaphore *good = cts_semaphore_new(), *bad = cts_semaphore_new();
    struct hal_buffer *values = cts_buffer_new(NODES * 64);
    make_graph(nodes, random);
    shuffle(order, NODES, random);
    for (uint32_t i = 0; i < NODES; i++) {
        if (i == NODES / 2) { /* half of them are submitted while others run */
            hal_semaphore_fail(bad, ST_UNAVAILABLE);
            hal_semaphore_signal(good, 1);
        }
        const struct node *node = &nodes[order[i]];
        bool own_failure = node->status != ST_OK;
        for (uint32_t k = 0; k < node->dep_count; k++) {
            own_failure &= nodes[node->deps[k]].status == ST_OK;
        }
        submit_node(commands, nodes, order[i], values, own_failure ? bad : good);
    }
    for (uint32_t i = 0; i < NODES; i++) {
        uint64_t value;
        assert_int_equal(hal_semaphore_wait(nodes[i].done, 1, UINT64_MAX), nodes[i].status);
        memcpy(&value, (uint8_t *)hal_buffer_map(values) + i * 64, sizeof(value));
        assert_true(value == nodes[i].expected);
        hal_semaphore_unref(nodes[i].done);
    }
    hal_semaphore_unref(good);
    hal_semaphore_unref(bad);
    hal_buffer_unref(values);
}

static void test_random_graphs(void **state)
{
    struct hal_command *commands[1 + DEPS_MAX];
    uint64_t random = 20261121;
    (void)state;
    for (uint32_t i = 0; i <= DEPS_MAX; i++) {
        commands[i] = cts_command_new(1 + DEPS_MAX);
        mix_dispatch(commands[i], i);
        cts_command_end(commands[i]);
    }
    for (int i = 0; i < ROUNDS; i++) {
        run_graph(commands, &random);
    }
    for (uint32_t i = 0; i <= DEPS_MAX; i++) {
        hal_command_unref(commands[i]);
    }
}

int cts_queue(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_while_running),
        cmocka_unit_test(test_progress),
        cmocka_unit_test(test_submissions_take_turns),
        cmocka_unit_test(test_helpers_leave_at_once),
        cmocka_unit_test(test_equal_ones_follow_each_other),
        cmocka_unit_test(test_shares_have_the_same_time),
        cmocka_unit_test(test_another_share_waits_for_a_tile),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_tiles_run_at_the_same_time),
        cmocka_unit_test(test_a_slow_worker_keeps_no_tiles),
        cmocka_unit_test(test_submissions_run_at_the_same_time),
        cmocka_unit_test(test_runs_inline),
        cmocka_unit_test(test_who_waits_takes_part),
        cmocka_unit_test(test_who_waits_is_not_kept),
        cmocka_unit_test(test_slots_are_let_go_before_the_signal),
        cmocka_unit_test(test_wait_before_signal),
        cmocka_unit_test(test_failure_propagates),
        cmocka_unit_test(test_empty_command),
        cmocka_unit_test(test_random_graphs),
    };
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
