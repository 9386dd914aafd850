/* SPDX-License-Identifier: MIT */
/* The speed of a client, computed from the times of its bytes. */
#include "config.h"

#include "tests/unit/unit.h"

#include "server/daemon/request/transfers.h"

#define BURST ((size_t)1 << 20)

/* Moves |bytes| every |step_ms|, |count| times. Returns the time of the last move. */
static uint64_t move(struct pace *pace, uint64_t now_ms, size_t bytes, uint64_t step_ms, int count)
{
    for (int i = 0; i < count; i++) {
        now_ms += step_ms;
        pace_move(pace, bytes, now_ms);
    }
    return now_ms;
}

static void a_burst_is_forgotten_however_often_bytes_come(void **state)
{
    (void)state;
    static const uint64_t steps_ms[] = {1, 7, 50, 99, 100, 101, 250};
    for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
        struct pace pace;
        pace_begin(&pace, 1000);
        pace_move(&pace, BURST, 1000);
        move(&pace, 1000, 1, steps_ms[i], (int)(3000 / steps_ms[i]));
        assert_in_range(pace.recent_bytes, 1, 200);
    }
}

static void a_steady_rate_is_seen_as_the_same_whatever_its_steps(void **state)
{
    (void)state;
    static const uint64_t steps_ms[] = {1, 5, 20, 50, 100};
    for (size_t i = 0; i < sizeof(steps_ms) / sizeof(steps_ms[0]); i++) {
        struct pace pace;
        pace_begin(&pace, 0);
        move(&pace, 0, 100 * steps_ms[i], steps_ms[i], (int)(5000 / steps_ms[i]));
        assert_in_range(pace.recent_bytes, 10000, 20000); /* 100 to 200 ms of it */
    }
}

static void time_in_which_nothing_could_move_does_not_count(void **state)
{
    (void)state;
    struct pace pace;
    pace_begin(&pace, 0);
    pace_move(&pace, BURST, 10);
    pace_resume(&pace, 20, 5020);
    pace_move(&pace, 1, 5030);
    assert_int_equal(pace.recent_bytes, BURST + 1);
    move(&pace, 5030, 1, 50, 60);
    assert_in_range(pace.recent_bytes, 1, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_forgotten_however_often_bytes_come),
        cmocka_unit_test(a_steady_rate_is_seen_as_the_same_whatever_its_steps),
        cmocka_unit_test(time_in_which_nothing_could_move_does_not_count),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
