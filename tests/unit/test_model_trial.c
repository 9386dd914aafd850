/* SPDX-License-Identifier: MIT */
/* When the tries of a trial begin, and which of them insist. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "server/model/model_trial.h"

/* The device is never idle: pauses grow, then a try insists at once, and others after the longest
 * pause. */
static void a_busy_device(void **state)
{
    (void)state;
    struct model_trial trial;
    uint64_t now_ms = 1000, pause_ms = MODEL_TRIAL_PAUSE_MS_MIN;
    model_trial_init(&trial, true);
    assert_true(trial.is_open);
    assert_true(model_trial_insists(&trial)); /* the first one */
    for (uint32_t i = 1; i <= 20; i++) {
        model_trial_note(&trial, true, false, now_ms);
        pause_ms = i < MODEL_TRIAL_VAIN_MAX    ? 2 * pause_ms
                   : i == MODEL_TRIAL_VAIN_MAX ? MODEL_TRIAL_PAUSE_MS_MIN
                                               : MODEL_TRIAL_PAUSE_MS_MAX;
        assert_int_equal(trial.due_ms, now_ms + pause_ms);
        assert_int_equal(trial.late_count, i);
        assert_int_equal(model_trial_insists(&trial), i >= MODEL_TRIAL_VAIN_MAX);
        now_ms = trial.due_ms;
    }
    assert_true(trial.is_open);
}

/* A try that has proven something is soon followed by another one, which gives way again. */
static void a_device_that_was_busy(void **state)
{
    (void)state;
    struct model_trial trial;
    model_trial_init(&trial, true);
    for (uint32_t i = 0; i < MODEL_TRIAL_VAIN_MAX; i++) {
        model_trial_note(&trial, true, false, 0);
    }
    assert_true(model_trial_insists(&trial));
    model_trial_note(&trial, true, true, 5000);
    assert_false(model_trial_insists(&trial));
    assert_int_equal(trial.due_ms, 5000 + MODEL_TRIAL_PAUSE_MS_MIN);
    model_trial_note(&trial, false, true, 6000);
    assert_false(trial.is_open);
    assert_int_equal(trial.late_count, MODEL_TRIAL_VAIN_MAX + 1);
}

static void nothing_to_try(void **state)
{
    (void)state;
    struct model_trial trial;
    model_trial_init(&trial, false);
    assert_false(trial.is_open);
    assert_int_equal(trial.rows, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_busy_device),
        cmocka_unit_test(a_device_that_was_busy),
        cmocka_unit_test(nothing_to_try),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
