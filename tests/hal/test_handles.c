/* SPDX-License-Identifier: MIT */
/*
 * A pointer that is no live object of its type stops the program at the first function that gets
 * it, and one reference too many given back does as well.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hal/buffer.h"
#include "hal/command.h"
#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "hal/semaphore.h"

/* As large as any object, and none: zeros, as memory that was cleared at the end of a life. */
static _Alignas(64) char nothing[4096];

static void use_device(void)
{
    hal_device_ref((struct hal_device *)nothing);
}

static void use_buffer(void)
{
    hal_buffer_map((struct hal_buffer *)nothing);
}

static void use_command(void)
{
    hal_command_unref((struct hal_command *)nothing);
}

static void use_semaphore(void)
{
    hal_semaphore_signal((struct hal_semaphore *)nothing, 1);
}

static void use_pool(void)
{
    hal_pool_size((struct hal_pool *)nothing);
}

static void submit_nothing(void)
{
    struct hal_device *device;
    struct hal_submission submission = {.command = (struct hal_command *)nothing};
    struct error err;
    if (hal_device_open("cpu", NULL, &device, &err) == ST_OK) {
        (void)!hal_queue_submit(device, &submission, &err);
    }
}

/* A buffer is no semaphore, although both are alive. */
static void mix_up(void)
{
    struct hal_device *device;
    struct hal_buffer *buffer;
    struct error err;
    if (hal_device_open("cpu", NULL, &device, &err) == ST_OK &&
        hal_buffer_new(device, 64, &buffer, &err) == ST_OK) {
        hal_semaphore_unref((struct hal_semaphore *)buffer);
    }
}

static void leave_a_buffer(void)
{
    struct hal_device *device;
    struct hal_buffer *buffer;
    struct error err;
    if (hal_device_open("cpu", NULL, &device, &err) == ST_OK &&
        hal_buffer_new(device, 64, &buffer, &err) == ST_OK) {
        hal_device_unref(device);
    }
}

/* In a process of its own, without a core; its text about the invariant is not shown. */
static void assert_aborts(void (*fn)(void))
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        signal(SIGABRT, SIG_DFL);
        close(STDERR_FILENO);
        fn();
        _exit(EXIT_SUCCESS);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

static void test_every_door(void **state)
{
    static void (*const doors[])(void) = {
        use_device, use_buffer,     use_command, use_semaphore,
        use_pool,   submit_nothing, mix_up,      leave_a_buffer,
    };
    (void)state;
    for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++) {
        assert_aborts(doors[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_door),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
