/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/hal/cts.h"

static void test_open_refuses(void **state)
{
    struct error err;
    struct hal_device *device;
    (void)state;
    assert_fails(err, hal_device_open("toaster", NULL, &device, &err), ST_NOT_FOUND, "'toaster'");
    assert_fails(err, hal_device_open("cpux", NULL, &device, &err), ST_NOT_FOUND, "'cpux'");
    assert_fails(err, hal_device_open("cpu:1", NULL, &device, &err), ST_NOT_FOUND, "'cpu:1'");
    const struct hal_device_options many = {.workers = 100000};
    assert_fails(err, hal_device_open("cpu", &many, &device, &err), ST_INVALID, "100000 workers");
    const struct hal_device_options level = {.cpu_level = "mmx"};
    assert_fails(err, hal_device_open("cpu", &level, &device, &err), ST_INVALID, "'mmx'");
}

static void test_props(void **state)
{
    (void)state;
    assert_string_equal(cts.props->name, cts.name);
    assert_true(cts.props->workers >= 1);
    if (cts.options.workers) {
        assert_int_equal(cts.props->workers, cts.options.workers);
    }
    assert_int_equal(cts.props->buffer_align & (cts.props->buffer_align - 1), 0);
    assert_int_equal(cts.props->buffer_align % cts.props->offset_align, 0);
}

static void test_list_names_the_device(void **state)
{
    struct buf text;
    (void)state;
    buf_init(&text, 4096);
    hal_device_list(&text);
    buf_add_char(&text, '\0');
    assert_false(buf_failed(&text));
    assert_non_null(strstr((char *)text.ptr, cts.name));
    buf_fini(&text);
}

/* A submission completes, although nobody waits for it before the device goes. */
static void test_last_unref_waits(void **state)
{
    struct error err;
    struct hal_device *device;
    struct hal_command *command;
    struct hal_semaphore *start, *done;
    uint64_t value;
    (void)state;
    assert_ok(err, hal_device_open(cts.name, &cts.options, &device, &err));
    assert_ok(err, hal_command_new(device, 0, &command, &err));
    assert_ok(err, hal_command_end(command, &err));
    assert_ok(err, hal_semaphore_new(0, &start, &err));
    assert_ok(err, hal_semaphore_new(0, &done, &err));
    for (uint64_t i = 1; i <= 100; i++) {
        const struct hal_submission submission = {
            .command = command,
            .wait = {{i == 1 ? start : done, i == 1 ? 1 : i - 1}},
            .wait_count = 1,
            .signal = {{done, i}},
            .signal_count = 1,
        };
        assert_ok(err, hal_queue_submit(device, &submission, &err));
    }
    hal_semaphore_signal(start, 1);
    hal_command_unref(command);
    hal_device_unref(device);
    assert_int_equal(hal_semaphore_query(done, &value), ST_OK);
    assert_int_equal(value, 100);
    hal_semaphore_unref(start);
    hal_semaphore_unref(done);
}

int cts_device(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_refuses),
        cmocka_unit_test(test_props),
        cmocka_unit_test(test_list_names_the_device),
        cmocka_unit_test(test_last_unref_waits),
    };
    return cmocka_run_group_tests_name("device", tests, NULL, NULL);
}
