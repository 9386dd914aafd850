/* SPDX-License-Identifier: MIT */
/*
 * A loop with a clock of the test: each connection and each request takes half a turn. A log shows
 * the order of work: a connection is a small letter, a request is a capital letter, the end of a
 * turn is "|".
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/loop/log_gate.h"
#include "server/daemon/loop/turn_watch.h"
#include "server/daemon/loop/turns.h"

#define CONNS 3
#define REQUESTS 4

uint64_t __wrap_uv_hrtime(void);

static uv_loop_t loop;
static struct log_gate gate;
static struct turn_watch watch;
static struct turns turns;
static struct turn_reader conns[CONNS];
static unsigned messages[CONNS]; /* messages that have come and have not begun */
static struct turn_job requests[REQUESTS];
static uint64_t clock_ns;
static char seen[64];

uint64_t __wrap_uv_hrtime(void)
{
    return clock_ns;
}

static void see(char what)
{
    size_t len = strlen(seen);
    assert_true(len + 1 < sizeof(seen));
    seen[len] = what;
}

/* The same as parse(). */
static void go_on_reader(struct turn_reader *reader)
{
    size_t i = (size_t)(reader - conns);
    while (messages[i] > 0 && turns_may_begin(&turns, reader, true)) {
        messages[i]--;
        see((char)('a' + i));
        clock_ns += TURNS_NS / 2;
    }
}

static void go_on_job(struct turn_job *job)
{
    see((char)('A' + (job - requests)));
    clock_ns += TURNS_NS / 2;
}

static const struct turns_ops ops = {go_on_job, go_on_reader};

static void receive(size_t i, unsigned count)
{
    messages[i] += count;
    go_on_reader(&conns[i]);
}

/* Ends |count| requests from |first| on at the same time. */
static void end_requests(size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++) {
        requests[i].next = i + 1 < first + count ? &requests[i + 1] : NULL;
    }
    turns_add_all(&turns, &requests[first]);
}

/* The loop does not sleep while something waits. */
static bool run_turn(void)
{
    see('|');
    uv_run(&loop, UV_RUN_NOWAIT);
    return uv_is_active((const uv_handle_t *)&turns.idle);
}

static int set_up(void **state)
{
    static const struct turn_steps steps = {.count = 0};
    (void)state;
    memset(seen, 0, sizeof(seen));
    clock_ns = 1;
    uv_loop_init(&loop);
    log_gate_init(&gate);
    turn_watch_init(&watch, &steps, &gate);
    turns_init(&turns, &loop, &watch, &ops);
    for (size_t i = 0; i < CONNS; i++) {
        list_init(&conns[i].link);
        messages[i] = 0;
    }
    uv_run(&loop, UV_RUN_NOWAIT);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    uv_close((uv_handle_t *)&turns.prepare, NULL);
    uv_close((uv_handle_t *)&turns.idle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    log_gate_fini(&gate);
    return uv_loop_close(&loop);
}

static void a_message_alone_is_begun_at_once(void **state)
{
    (void)state;
    receive(0, 1);
    receive(1, 1);
    assert_string_equal(seen, "ab");
    assert_false(run_turn());
    receive(0, 2);
    assert_string_equal(seen, "ab|aa");
    assert_false(run_turn());
}

static void many_messages_take_turns_with_others(void **state)
{
    (void)state;
    receive(0, 6);
    assert_string_equal(seen, "aa"); /* a turn is full */
    receive(1, 2);
    receive(2, 1);
    while (run_turn()) {
    }
    /* A turn ends when the loop polls its sockets. At "|" the first item finds no time left. */
    assert_string_equal(seen, "aa|a|bc|ab|aa");
    assert_int_equal(messages[0] + messages[1] + messages[2], 0);
}

static void a_new_message_does_not_overtake_waiting_ones(void **state)
{
    (void)state;
    receive(0, 5);
    receive(1, 1);
    assert_true(run_turn());
    receive(2, 1);
    while (run_turn()) {
    }
    assert_string_equal(seen, "aa|a|ba|ca");
}

static void requests_that_end_together_take_several_turns(void **state)
{
    (void)state;
    end_requests(0, 3);
    assert_string_equal(seen, "AB");
    end_requests(3, 1);
    assert_string_equal(seen, "AB");
    while (run_turn()) {
    }
    assert_string_equal(seen, "AB|C|D");
}

static void both_rows_move_in_each_turn(void **state)
{
    (void)state;
    end_requests(0, 4);
    receive(0, 3);
    while (run_turn()) {
    }
    assert_string_equal(seen, "AB|Ca|Da|a");
}

static void a_connection_that_closes_has_no_turn(void **state)
{
    (void)state;
    receive(0, 3);
    receive(1, 1);
    list_remove(&conns[0].link);
    while (run_turn()) {
    }
    assert_string_equal(seen, "aa|b");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_message_alone_is_begun_at_once, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_messages_take_turns_with_others, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_new_message_does_not_overtake_waiting_ones, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(requests_that_end_together_take_several_turns, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(both_rows_move_in_each_turn, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_closes_has_no_turn, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
