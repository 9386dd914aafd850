/* SPDX-License-Identifier: MIT */
/* Failures that hardware rarely has, made by hal/vulkan/inject.def: no memory, a lost device. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/profile.h"
#include "hal/queue.h"
#include "hal/semaphore.h"

#define SKIP 77
#define LARGE ((size_t)8 << 20) /* so that it is an allocation of its own */

static struct hal_device *open_device(void)
{
    struct error err;
    struct hal_device *device = NULL;
    assert_ok(err, hal_device_open("vulkan", NULL, &device, &err));
    return device;
}

static void test_no_memory(void **state)
{
    struct error err;
    struct hal_buffer *buffers[2] = {NULL}, *refused;
    struct hal_device *device = open_device();
    (void)state;
    assert_ok(err, hal_buffer_new(device, LARGE, &buffers[0], &err));
    assert_fails(err, hal_buffer_new(device, LARGE, &refused, &err), ST_EXHAUSTED,
                 "VK_ERROR_OUT_OF_DEVICE_MEMORY");
    assert_ok(err, hal_buffer_new(device, LARGE, &buffers[1], &err));
    hal_buffer_unref(buffers[0]);
    hal_buffer_unref(buffers[1]);
    hal_device_unref(device);
}

/* A command buffer that copies within a buffer of its own. */
static struct hal_command *record_copy(struct hal_device *device)
{
    struct error err;
    struct hal_command *command;
    struct hal_buffer *buffer;
    assert_ok(err, hal_buffer_new(device, 4096, &buffer, &err));
    assert_ok(err, hal_command_new(device, 0, &command, &err));
    const struct hal_binding from = {.buffer = buffer, .length = 2048};
    const struct hal_binding to = {.buffer = buffer, .offset = 2048, .length = 2048};
    assert_ok(err, hal_command_copy(command, from, to, &err));
    assert_ok(err, hal_command_end(command, &err));
    hal_buffer_unref(buffer);
    return command;
}

/* Behind |wait|; it and |profile| may be NULL. */
static struct hal_semaphore *submit_profiled(struct hal_device *device, struct hal_command *command,
                                             struct hal_semaphore *wait,
                                             struct hal_profile *profile)
{
    struct error err;
    struct hal_semaphore *done;
    assert_ok(err, hal_semaphore_new(0, &done, &err));
    const struct hal_submission submission = {
        .command = command,
        .wait = {{wait, 1}},
        .wait_count = wait != NULL,
        .signal = {{done, 1}},
        .signal_count = 1,
        .profile = profile,
    };
    assert_ok(err, hal_queue_submit(device, &submission, &err));
    return done;
}

static struct hal_semaphore *submit(struct hal_device *device, struct hal_command *command,
                                    struct hal_semaphore *wait)
{
    return submit_profiled(device, command, wait, NULL);
}

static enum status run(struct hal_device *device, struct hal_command *command)
{
    struct hal_semaphore *done = submit(device, command, NULL);
    enum status status = hal_semaphore_wait(done, 1, UINT64_MAX);
    hal_semaphore_unref(done);
    return status;
}

/* Runs once; then the device is lost, with a submission on it and one that waits for that. */
static void lose(void)
{
    struct error err;
    struct hal_device *device = open_device();
    struct hal_command *command = record_copy(device);
    struct hal_semaphore *gate;
    assert_int_equal(run(device, command), ST_OK);
    assert_false(hal_device_is_lost(device));
    assert_ok(err, hal_semaphore_new(0, &gate, &err));
    struct hal_semaphore *first = submit(device, command, gate);
    struct hal_semaphore *second = submit(device, command, first);
    hal_semaphore_signal(gate, 1);
    assert_int_equal(hal_semaphore_wait(second, 1, UINT64_MAX), ST_UNAVAILABLE);
    assert_int_equal(hal_semaphore_wait(first, 1, UINT64_MAX), ST_UNAVAILABLE);
    assert_true(hal_device_is_lost(device));
    assert_int_equal(run(device, command), ST_UNAVAILABLE);
    hal_semaphore_unref(gate);
    hal_semaphore_unref(first);
    hal_semaphore_unref(second);
    hal_command_unref(command);
    hal_device_unref(device);
}

/* Another device is another chance. */
static void test_lost(void **state)
{
    (void)state;
    lose();
    lose();
    struct hal_device *device = open_device();
    struct hal_command *command = record_copy(device);
    assert_int_equal(run(device, command), ST_OK);
    assert_false(hal_device_is_lost(device));
    hal_command_unref(command);
    hal_device_unref(device);
}

/* Runs a copy with a profile; returns how many spans came of it. */
static size_t run_profiled(struct hal_device *device, struct hal_command *command,
                           enum status expected)
{
    struct error err;
    struct hal_profile *profile;
    size_t count;
    assert_ok(err, hal_profile_new(100, &profile, &err));
    struct hal_semaphore *done = submit_profiled(device, command, NULL, profile);
    assert_int_equal(hal_semaphore_wait(done, 1, UINT64_MAX), expected);
    (void)hal_profile_spans(profile, &count);
    hal_semaphore_unref(done);
    hal_profile_free(profile);
    return count;
}

/* No memory for timestamps: calls without a profile go on. Then a device without timestamps. */
static void test_profiles(void **state)
{
    (void)state;
    struct hal_device *device = open_device();
    struct hal_command *command = record_copy(device);
    if (hal_device_props(device)->has_profile) {
        assert_int_equal(run_profiled(device, command, ST_EXHAUSTED), 0);
        assert_int_equal(run(device, command), ST_OK);
        assert_int_equal(run_profiled(device, command, ST_OK), 1);
    }
    hal_command_unref(command);
    hal_device_unref(device);
    device = open_device();
    command = record_copy(device);
    assert_false(hal_device_props(device)->has_profile);
    assert_int_equal(run_profiled(device, command, ST_OK), 0);
    hal_command_unref(command);
    hal_device_unref(device);
}

/* The numbers count the calls of all tests, in their order. */
int main(void)
{
    struct error err;
    struct hal_device *device;
    if (setenv("PTED_VULKAN_FAULTS",
               "nonsense,memory=2,submit=2,x=,wait=3,submit=,queries=1,timestamps=7", 1) != 0) {
        return 1;
    }
    if (hal_device_open("vulkan", NULL, &device, &err) != ST_OK) {
        fprintf(stderr, "%s\n", err.text);
        return SKIP;
    }
    hal_device_unref(device);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_profiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
