/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "server/daemon/loop/watched.h"

#define IDLE(mark) ((struct watched){false, mark})
#define BUSY(mark) ((struct watched){true, mark})

static void stuck_is_busy_twice_without_progress(void **state)
{
    (void)state;
    struct watched seen = {false, 0};
    assert_false(watched_is_stuck(&seen, BUSY(0))); /* new work has come since */
    assert_true(watched_is_stuck(&seen, BUSY(0)));
    assert_true(watched_is_stuck(&seen, BUSY(0)));  /* it stays so ... */
    assert_false(watched_is_stuck(&seen, BUSY(1))); /* ... until something is done */
    assert_true(watched_is_stuck(&seen, BUSY(1)));
    assert_false(watched_is_stuck(&seen, IDLE(1))); /* or the work is no longer wanted */
    assert_false(watched_is_stuck(&seen, IDLE(1)));
    assert_false(watched_is_stuck(&seen, BUSY(1)));
    assert_false(watched_is_stuck(&seen, BUSY(0))); /* a mark may also decrease */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stuck_is_busy_twice_without_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
