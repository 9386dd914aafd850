/* SPDX-License-Identifier: MIT */
/*
 * Faults: errors that a kernel finds in data. The kernel is a lookup, so that it is the data of a
 * submission that decides. Only a CPU's kernels can report.
 */
#include "config.h"

#include "tests/hal/cts.h"

#define TABLE 16
#define PLACES 4096

static const uint32_t table[TABLE] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3};
static atomic_uint tiles_run;

/* out[tile] = table[places[tile]]; places beyond the table are indices, 2^31 is a division. */
static void lookup_kernel(const struct hal_args *args, struct hal_tile tile)
{
    uint32_t *out = args->bindings[0];
    uint32_t place = ((const uint32_t *)args->bindings[1])[tile.x];
    atomic_fetch_add(&tiles_run, 1);
    if (place == 1u << 31) {
        hal_fault(args, HAL_FAULT_DIVISION, NULL);
    }
    if (place >= TABLE) {
        hal_fault(args, HAL_FAULT_INDEX,
                  &(struct hal_fault_number){(const uint32_t *)args->bindings[1] + tile.x, place, 0,
                                             TABLE - 1});
        place = 0;
    }
    out[tile.x] = table[place];
}

static const struct hal_kernel lookup = {.name = "lookup", .cpu = lookup_kernel};

/* A lookup, a barrier, and one increment for each result. */
struct scene {
    struct hal_command *command;
    struct hal_buffer *out, *places;
};

static void add_lookup(struct hal_command *command, const char *label, uint64_t cost)
{
    const struct hal_binding bindings[] = {cts_slot(0, 0, PLACES * 4), cts_slot(1, 0, PLACES * 4)};
    const struct hal_dispatch dispatch = {
        .kernel = &lookup,
        .label = label,
        .grid = {PLACES, 1, 1},
        .bindings = bindings,
        .binding_count = 2,
        .cost = cost,
    };
    cts_dispatch(command, &dispatch);
}

static struct scene scene_new(const char *label, uint64_t cost)
{
    const struct hal_binding out = cts_slot(0, 0, PLACES * 4);
    const struct hal_dispatch increment = {
        .kernel = &cts_increment, .grid = {PLACES, 1, 1}, .bindings = &out, .binding_count = 1};
    struct scene s = {.command = cts_command_new(2)};
    add_lookup(s.command, label, cost);
    cts_barrier(s.command);
    cts_dispatch(s.command, &increment);
    cts_command_end(s.command);
    s.out = cts_buffer_new(PLACES * 4);
    s.places = cts_buffer_new(PLACES * 4);
    return s;
}

static void scene_free(struct scene *s)
{
    hal_command_unref(s->command);
    hal_buffer_unref(s->out);
    hal_buffer_unref(s->places);
}

/* |wrong| at every |step|-th place from |first| on, good ones elsewhere. */
static void fill_places(struct scene *s, uint32_t first, uint32_t step, uint32_t wrong)
{
    uint32_t *places = hal_buffer_map(s->places), *out = hal_buffer_map(s->out);
    for (uint32_t i = 0; i < PLACES; i++) {
        places[i] = i >= first && (i - first) % step == 0 ? wrong : i % TABLE;
        out[i] = 0;
    }
}

static void submit(const struct scene *s, struct hal_semaphore *wait, struct hal_semaphore *done,
                   struct hal_fault_record *fault, enum hal_caller caller)
{
    const struct hal_binding slots[] = {cts_all_of(s->out), cts_all_of(s->places)};
    const struct hal_submission submission = {
        .command = s->command,
        .slots = slots,
        .slot_count = 2,
        .wait = {{wait, 1}},
        .wait_count = wait ? 1 : 0,
        .signal = {{done, 1}},
        .signal_count = 1,
        .caller = caller,
        .fault = fault,
    };
    cts_submit(&submission);
}

static enum status run(const struct scene *s, struct hal_fault_record *fault,
                       enum hal_caller caller)
{
    struct hal_semaphore *done = cts_semaphore_new();
    if (fault) {
        hal_fault_reset(fault);
    }
    atomic_store(&tiles_run, 0);
    submit(s, NULL, done, fault, caller);
    enum status status = hal_semaphore_wait(done, 1, UINT64_MAX);
    hal_semaphore_unref(done);
    return status;
}

static void check_results(const struct scene *s)
{
    const uint32_t *out = hal_buffer_map(s->out);
    for (uint32_t i = 0; i < PLACES; i++) {
        assert_int_equal(out[i], table[i % TABLE] + 1);
    }
}

static void check_text(const struct hal_fault_record *fault, const char *text)
{
    struct error err;
    assert_fails(err, hal_fault_error(fault, &err), ST_INVALID, text);
}

static void test_fault_fails_the_submission(void **state)
{
    (void)state;
    for (enum hal_caller caller = HAL_CALLER_BUSY; caller <= HAL_CALLER_WAITS; caller++) {
        struct scene s = scene_new("gather", caller == HAL_CALLER_QUICK ? 100 : 10000000);
        struct hal_fault_record fault;
        fill_places(&s, 100, PLACES, TABLE);
        assert_int_equal(run(&s, &fault, caller), ST_INVALID);
        check_text(&fault, "gather: an index is out of range: got 16, expected 0 to 15");
        assert_ptr_equal(fault.number.at, (uint32_t *)hal_buffer_map(s.places) + 100);
        assert_int_equal(run(&s, NULL, caller), ST_INVALID); /* nobody wants to know why */
        scene_free(&s);
    }
}

/* Neither the rest of the region nor the next one. */
static void test_what_has_not_begun_is_left_out(void **state)
{
    (void)state;
    struct scene s = scene_new(NULL, 100);
    struct hal_fault_record fault;
    fill_places(&s, 7, PLACES, TABLE);
    assert_int_equal(run(&s, &fault, HAL_CALLER_QUICK), ST_INVALID);
    check_text(&fault, "lookup: an index is out of range"); /* no label: the kernel's name */
    assert_int_equal(atomic_load(&tiles_run), 8);
    const uint32_t *out = hal_buffer_map(s.out);
    assert_int_equal(out[6], table[6]);
    assert_int_equal(out[7], table[0]);
    assert_int_equal(out[8], 0);
    scene_free(&s);
}

/* Many tiles at once, each with a fault: one of them is told, whole. */
static void test_first_of_many_faults_is_kept(void **state)
{
    (void)state;
    for (int round = 0; round < 200; round++) {
        bool divides = round % 2;
        struct scene s = scene_new("div", 10000000);
        struct hal_fault_record fault;
        fill_places(&s, 0, 1, divides ? 1u << 31 : TABLE);
        assert_int_equal(run(&s, &fault, HAL_CALLER_BUSY), ST_INVALID);
        check_text(&fault, divides ? "div: an integer is divided by zero"
                                   : "div: an index is out of range");
        assert_true(atomic_load(&tiles_run) < PLACES);
        scene_free(&s);
    }
}

static void test_replay_after_a_fault(void **state)
{
    (void)state;
    struct scene s = scene_new("gather", 10000000);
    struct hal_fault_record fault;
    for (int round = 0; round < 20; round++) {
        bool is_wrong = round % 2;
        fill_places(&s, is_wrong ? 5 : PLACES, 100, TABLE);
        assert_int_equal(run(&s, &fault, round / 2 % 3), is_wrong ? ST_INVALID : ST_OK);
        assert_int_equal(hal_fault_code_of(&fault), is_wrong ? HAL_FAULT_INDEX : HAL_FAULT_NONE);
        if (!is_wrong) {
            check_results(&s);
        }
    }
    scene_free(&s);
}

/* Submissions of one command buffer, some with a fault, in flight together. */
static void test_faults_stay_with_their_submission(void **state)
{
    enum { COUNT = 16 };
    (void)state;
    struct scene scenes[COUNT];
    struct hal_semaphore *done[COUNT];
    struct hal_fault_record faults[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        scenes[i] = scene_new("gather", 10000000);
        fill_places(&scenes[i], i % 3 ? PLACES : i, 64, TABLE);
        done[i] = cts_semaphore_new();
        hal_fault_reset(&faults[i]);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        struct scene s = scenes[i];
        s.command = scenes[0].command;
        submit(&s, NULL, done[i], &faults[i], HAL_CALLER_BUSY);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        assert_int_equal(hal_semaphore_wait(done[i], 1, UINT64_MAX), i % 3 ? ST_OK : ST_INVALID);
        if (i % 3) {
            assert_int_equal(hal_fault_code_of(&faults[i]), HAL_FAULT_NONE);
            check_results(&scenes[i]);
        } else {
            check_text(&faults[i], "gather: an index is out of range");
        }
        hal_semaphore_unref(done[i]);
        scene_free(&scenes[i]);
    }
}

/* A submission that waits for it fails with it, and has no text of its own. */
static void test_fault_propagates(void **state)
{
    (void)state;
    struct scene first = scene_new("gather", 10000000), second = scene_new("next", 100);
    struct hal_semaphore *middle = cts_semaphore_new(), *done = cts_semaphore_new();
    struct hal_fault_record faults[2] = {{0}, {0}};
    fill_places(&first, 3, 1000, TABLE);
    fill_places(&second, PLACES, 1, 0);
    submit(&first, NULL, middle, &faults[0], HAL_CALLER_BUSY);
    submit(&second, middle, done, &faults[1], HAL_CALLER_BUSY);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), ST_INVALID);
    check_text(&faults[0], "gather: an index is out of range");
    assert_int_equal(hal_fault_code_of(&faults[1]), HAL_FAULT_NONE);
    assert_int_equal(((uint32_t *)hal_buffer_map(second.out))[0], 0);
    hal_semaphore_unref(middle);
    hal_semaphore_unref(done);
    scene_free(&first);
    scene_free(&second);
}

int cts_fault(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fault_fails_the_submission),
        cmocka_unit_test(test_what_has_not_begun_is_left_out),
        cmocka_unit_test(test_first_of_many_faults_is_kept),
        cmocka_unit_test(test_replay_after_a_fault),
        cmocka_unit_test(test_faults_stay_with_their_submission),
        cmocka_unit_test(test_fault_propagates),
    };
    if (!cts.props->is_host) {
        return 0;
    }
    return cmocka_run_group_tests_name("fault", tests, NULL, NULL);
}
