/* SPDX-License-Identifier: MIT */
/* The last references are dropped in the callback at the end of a call. A device must not wait for
 * its own callback. */
#include "config.h"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

#include "hal/device.h"
#include "hal/pool.h"
#include "hal/queue.h"
#include "runtime/call/invocation.h"
#include "runtime/load/load.h"
#include "runtime/program/program.h"
#include "tests/unit/call_support.h"
#include "tests/unit/unit.h"

#define ROUNDS 30

struct world {
    struct hal_pool *pool;
    struct rt_program *program; /* the only one that holds the device */
    struct done done;
};

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

/* Counted after a device was opened and closed: from then on a sanitizer may have its own
 * thread. */
static unsigned count_other_threads(void)
{
    struct hal_device *device;
    struct error err;
    assert_ok(err, hal_device_open("cpu", NULL, &device, &err));
    hal_device_unref(device);
    return count_threads();
}

static void let_go(struct rt_invocation *invocation, enum status status, void *arg)
{
    struct world *w = arg;
    rt_invocation_free(invocation);
    hal_pool_free(w->pool);
    rt_program_unref(w->program);
    on_done(NULL, status, &w->done);
}

static struct rt_invocation *open_world(struct world *w, const char *model, const char *name)
{
    static const struct hal_device_options two = {.workers = 2};
    struct hal_device *device;
    struct rt_invocation *inv;
    struct error err;
    *w = (struct world){.done = DONE_INIT};
    assert_ok(err, hal_device_open(name, &two, &device, &err));
    const struct rt_load_options options = {.device = device};
    w->program = load_model(model, &options);
    assert_ok(err, hal_pool_new(device, (size_t)1 << 20, &w->pool, &err));
    hal_device_unref(device);
    struct rt_method *method = rt_program_default_method(w->program);
    assert_ok(err, rt_invocation_new(method, w->pool, &inv, &err));
    for (uint32_t i = 0; i < rt_method_input_count(method); i++) {
        const struct rt_io *io = rt_method_input(method, i);
        size_t bytes = 0;
        void *ptr;
        assert_ok(err, shape_bytes(&io->shape, io->dtype, &bytes, &err));
        assert_ok(err, rt_invocation_input(inv, i, io->dtype, &io->shape, &ptr, &err));
        memset(ptr, 0, bytes);
    }
    assert_ok(err, rt_invocation_prepare(inv, RT_PREPARE_ALL, &err));
    return inv;
}

/* Any thread may run the call. At the end no thread of the device is left. */
static void end_in_callback(const char *model, const char *name)
{
    static const enum hal_caller callers[] = {HAL_CALLER_BUSY, HAL_CALLER_QUICK, HAL_CALLER_WAITS};
    unsigned before = count_other_threads();
    for (int round = 0; round < ROUNDS; round++) {
        struct world w;
        struct rt_invocation *inv = open_world(&w, model, name);
        rt_invocation_submit(inv, callers[round % 3], let_go, &w);
        assert_int_equal(await_done(&w.done), ST_OK);
    }
    while (count_threads() > before) {
        sched_yield();
    }
}

static void test_small(void **state)
{
    (void)state;
    end_in_callback("add", "cpu");
}

static void test_large(void **state)
{
    (void)state;
    end_in_callback("unet", "cpu");
}

/* A call that walks blocks, and ends in the last of them. */
static void test_of_many_steps(void **state)
{
    (void)state;
    end_in_callback("tally", "cpu");
}

static void test_cancelled(void **state)
{
    unsigned before = count_other_threads();
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        struct world w;
        struct rt_invocation *inv = open_world(&w, "unet", "cpu");
        struct hal_semaphore *gate;
        struct error err;
        assert_ok(err, hal_semaphore_new(0, &gate, &err));
        rt_invocation_after(inv, &(struct hal_timepoint){gate, 1});
        rt_invocation_submit(inv, HAL_CALLER_QUICK, let_go, &w);
        hal_semaphore_fail(gate, ST_CANCELLED);
        assert_int_equal(await_done(&w.done), ST_CANCELLED);
        hal_semaphore_unref(gate);
    }
    while (count_threads() > before) {
        sched_yield();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_of_many_steps),
        cmocka_unit_test(test_cancelled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
