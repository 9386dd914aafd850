/* SPDX-License-Identifier: MIT */
/* The table of sequences, with two programs that have mutable buffers and with a clock of the
 * test. */
#include "config.h"

#include "runtime/load/load.h"
#include "runtime/sched/sequence.h"

#include <string.h>

#include "hal/device.h"
#include "runtime/program/program.h"
#include "runtime/program/state.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

static uint64_t now_ns;

static uint64_t fake_clock(void)
{
    return now_ns;
}

struct world {
    struct hal_device *device;
    struct rt_program *programs[2];
    struct rt_sequences *sequences;
    struct error err;
};

static int open_world(void **state)
{
    static struct world world;
    struct world *w = &world;
    const struct hal_device_options one = {.workers = 1};
    *w = (struct world){0};
    now_ns = 1000;
    assert_ok(w->err, hal_device_open("cpu", &one, &w->device, &w->err));
    const struct rt_load_options programs = {.device = w->device};
    w->programs[0] = load_model("ledger", &programs);
    w->programs[1] = load_model("running", &programs);
    const struct rt_sequences_options options = {
        .count_max = 3, .bytes_max = 1 << 20, .idle_ns = 100, .clock = fake_clock};
    assert_ok(w->err, rt_sequences_new(&options, &w->sequences, &w->err));
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    struct world *w = *state;
    rt_sequences_free(w->sequences);
    rt_program_unref(w->programs[0]);
    rt_program_unref(w->programs[1]);
    hal_device_unref(w->device);
    return 0;
}

static struct rt_sequence_key key_of(struct world *w, unsigned program, uint64_t number,
                                     const char *name)
{
    return (struct rt_sequence_key){
        .program = w->programs[program], .number = number, .name = span_str(name)};
}

static struct rt_sequence *open_key(struct world *w, struct rt_sequence_key key, bool is_start)
{
    struct rt_sequence *sequence = NULL;
    assert_ok(w->err, rt_sequences_open(w->sequences, &key, is_start, &sequence, &w->err));
    return sequence;
}

static void expect_unknown(struct world *w, struct rt_sequence_key key)
{
    struct rt_sequence *sequence;
    assert_fails(w->err, rt_sequences_open(w->sequences, &key, false, &sequence, &w->err),
                 ST_INVALID, "not open");
}

static void test_ids(void **state)
{
    struct world *w = *state;
    expect_unknown(w, key_of(w, 0, 7, ""));
    struct rt_sequence *seven = open_key(w, key_of(w, 0, 7, ""), true);
    expect_unknown(w, key_of(w, 1, 7, "")); /* of another program */
    expect_unknown(w, key_of(w, 0, 0, "7"));
    struct rt_sequence *named = open_key(w, key_of(w, 0, 0, "7"), true);
    struct rt_sequence *again = open_key(w, key_of(w, 0, 7, ""), false);
    assert_ptr_equal(seven, again);
    assert_ptr_not_equal(seven, named);
    assert_ptr_not_equal(rt_sequence_state(seven), rt_sequence_state(named));
    rt_sequence_close(seven);
    rt_sequence_close(again);
    rt_sequence_close(named);
}

static void test_starting_anew(void **state)
{
    struct world *w = *state;
    struct rt_sequence *old = open_key(w, key_of(w, 0, 7, ""), true);
    struct rt_sequence *fresh = open_key(w, key_of(w, 0, 7, ""), true);
    assert_ptr_not_equal(old, fresh);
    rt_sequence_end(old); /* not the sequence that has the id now */
    rt_sequence_close(old);
    struct rt_sequence *again = open_key(w, key_of(w, 0, 7, ""), false);
    assert_ptr_equal(fresh, again);
    rt_sequence_close(again);
    rt_sequence_end(fresh);
    expect_unknown(w, key_of(w, 0, 7, ""));
    rt_sequence_close(fresh);
}

static void test_limits(void **state)
{
    struct world *w = *state;
    char name[RT_SEQUENCE_NAME_MAX + 2];
    struct rt_sequence_key key;
    struct rt_sequence *sequence;
    for (uint64_t i = 1; i <= 3; i++) {
        rt_sequence_close(open_key(w, key_of(w, 0, i, ""), true));
        rt_sequence_close(open_key(w, key_of(w, 0, i, ""), false));
    }
    key = key_of(w, 0, 4, "");
    assert_fails(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err),
                 ST_EXHAUSTED, "3 sequences");
    memset(name, 'x', sizeof(name));
    name[sizeof(name) - 1] = '\0';
    key = key_of(w, 0, 0, name);
    assert_fails(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err),
                 ST_TOO_LARGE, "128 bytes");
}

/* A client that only starts sequences displaces its own ones, however many it starts. */
static void test_started_ones_give_way(void **state)
{
    struct world *w = *state;
    rt_sequence_close(open_key(w, key_of(w, 0, 1, ""), true));
    rt_sequence_close(open_key(w, key_of(w, 0, 1, ""), false));
    struct rt_sequence *held = open_key(w, key_of(w, 0, 2, ""), true);
    for (uint64_t i = 10; i < 30; i++) {
        rt_sequence_close(open_key(w, key_of(w, 1, i, ""), true));
    }
    expect_unknown(w, key_of(w, 1, 28, ""));
    rt_sequence_close(open_key(w, key_of(w, 1, 29, ""), false));
    rt_sequence_close(open_key(w, key_of(w, 0, 1, ""), false));
    struct rt_sequence_key key = key_of(w, 1, 30, "");
    struct rt_sequence *sequence;
    assert_fails(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err),
                 ST_EXHAUSTED, "3 sequences"); /* one is held, and two had later calls */
    rt_sequence_close(held);
    rt_sequence_close(open_key(w, key, true));
    expect_unknown(w, key_of(w, 0, 2, ""));
}

/* Opens a sequence of |client| for program 0 and goes on with it once. */
static void use(struct world *w, uint64_t client, uint64_t number)
{
    struct rt_sequence_key key = key_of(w, 0, number, "");
    key.client = client;
    rt_sequence_close(open_key(w, key, true));
    rt_sequence_close(open_key(w, key, false));
}

/* Clients that hold more give way, down to what the others hold. */
static void test_clients_share(void **state)
{
    struct world *w = *state;
    struct rt_sequence *sequence;
    for (uint64_t i = 1; i <= 3; i++) {
        use(w, 7, i);
    }
    uint64_t all = rt_sequences_held_bytes(w->sequences, 7);
    assert_true(all > 0 && rt_sequences_is_full_for(w->sequences, w->programs[0]));
    use(w, 8, 4);
    assert_int_equal(rt_sequences_held_bytes(w->sequences, 7), all / 3 * 2);
    assert_int_equal(rt_sequences_held_bytes(w->sequences, 8), all / 3);
    assert_int_equal(rt_sequences_held_bytes(w->sequences, 9), 0);
    expect_unknown(w, key_of(w, 0, 1, "")); /* the one that was idle longest */
    assert_int_equal(rt_sequences_load(w->sequences).displaced_count, 1);
    struct rt_sequence_key key = key_of(w, 0, 5, "");
    key.client = 8;
    assert_fails(w->err, rt_sequences_open(w->sequences, &key, true, &sequence, &w->err),
                 ST_EXHAUSTED, "3 sequences"); /* two and one: none holds more than it would */
    key.client = 9;
    rt_sequence_close(open_key(w, key, true));
    expect_unknown(w, key_of(w, 0, 2, ""));
    rt_sequence_close(open_key(w, key_of(w, 0, 4, ""), false));
}

/* So do models, and the sequences that clients name for those of single requests. */
static void test_models_share(void **state)
{
    struct world *w = *state;
    for (uint64_t i = 1; i <= 3; i++) {
        use(w, 7, i);
    }
    struct rt_sequence_key other = key_of(w, 1, 1, ""), single = key_of(w, 0, 1, "generation");
    other.client = single.client = 7;
    single.is_of_request = true;
    struct rt_sequence *held = open_key(w, single, true);
    expect_unknown(w, key_of(w, 0, 1, ""));
    rt_sequence_close(open_key(w, other, true));
    expect_unknown(w, key_of(w, 0, 2, ""));
    rt_sequence_close(open_key(w, key_of(w, 0, 3, ""), false));
    assert_int_equal(rt_sequences_load(w->sequences).displaced_count, 2);
    rt_sequence_end(held);
    rt_sequence_close(held);
}

static void test_idle_ones_are_forgotten(void **state)
{
    struct world *w = *state;
    assert_true(rt_sequences_expire(w->sequences) == RT_SCHED_NEVER);
    struct rt_sequence *held = open_key(w, key_of(w, 0, 1, ""), true);
    rt_sequence_close(open_key(w, key_of(w, 0, 2, ""), true));
    now_ns += 50;
    rt_sequence_close(open_key(w, key_of(w, 1, 3, ""), true));
    assert_int_equal(rt_sequences_expire(w->sequences), 1100);
    now_ns = 1100;
    assert_int_equal(rt_sequences_expire(w->sequences), 1150);
    expect_unknown(w, key_of(w, 0, 2, ""));
    now_ns = 1140;
    rt_sequence_close(open_key(w, key_of(w, 1, 3, ""), false)); /* used again */
    assert_int_equal(rt_sequences_expire(w->sequences), 1240);
    now_ns = 5000;
    expect_unknown(w, key_of(w, 1, 3, "")); /* also if no call has looked at it */
    rt_sequence_close(open_key(w, key_of(w, 0, 1, ""), false));
    rt_sequence_close(held);
    assert_int_equal(rt_sequences_expire(w->sequences), 5100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_ids, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_starting_anew, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_limits, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_started_ones_give_way, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_clients_share, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_models_share, open_world, close_world),
        cmocka_unit_test_setup_teardown(test_idle_ones_are_forgotten, open_world, close_world),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
