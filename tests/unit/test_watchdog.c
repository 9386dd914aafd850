/* SPDX-License-Identifier: MIT */
/* The watchdog's looks at the parts. The linker sends here what it asks them, its timer, and what
 * it tells systemd. */
#include "config.h"

#include "tests/unit/log_lines.h"
#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "hal/device.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/loop/watched.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/watchdog.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/offload.h"

#define IDLE(mark) ((struct watched){false, mark})
#define BUSY(mark) ((struct watched){true, mark})
#define INTERVAL_MS 500

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

/* ---- the parts ------------------------------------------------------------------------------- */

static struct loop loop;
static struct offload offload = {.magic = OFFLOAD_MAGIC, .threads = 4};
static struct serving serving = {.magic = SERVING_MAGIC};
static struct servings servings = {.current = &serving};
static struct listeners listeners;
static struct notify notify;
static struct watchdog watchdog;
static struct hal_progress progress; /* of the device */
static bool are_clients_stuck;
static unsigned signs; /* of life */
static uv_timer_cb due;
static char log_file[64];
static struct error err;

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat);
bool __wrap_listeners_is_stuck(struct listeners *all);
struct hal_progress __wrap_hal_device_progress(struct hal_device *device);
void __wrap_notify_send(const struct notify *to, const char *format, ...);

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat)
{
    assert_ptr_equal(timer, &watchdog.timer);
    assert_int_equal(ms, INTERVAL_MS);
    assert_int_equal(repeat, INTERVAL_MS);
    due = fn;
    return 0;
}

bool __wrap_listeners_is_stuck(struct listeners *all)
{
    assert_ptr_equal(all, &listeners);
    return are_clients_stuck;
}

struct hal_progress __wrap_hal_device_progress(struct hal_device *device)
{
    assert_ptr_equal(device, serving.device);
    return progress;
}

void __wrap_notify_send(const struct notify *to, const char *format, ...)
{
    assert_ptr_equal(to, &notify);
    assert_string_equal(format, "WATCHDOG=1");
    signs++;
}

static int set_up(void **state)
{
    static char device; /* nobody looks into it */
    const struct watchdog_uses uses = {
        .loop = &loop, .servings = &servings, .listeners = &listeners, .notify = &notify};
    (void)state;
    assert_int_equal(uv_loop_init(&loop.uv), 0);
    loop.offload = &offload;
    memset(offload.open, 0, sizeof(offload.open));
    memset(offload.done, 0, sizeof(offload.done));
    serving.device = (struct hal_device *)(void *)&device;
    notify.watchdog_ms = INTERVAL_MS;
    progress = (struct hal_progress){false, 0};
    are_clients_stuck = false;
    signs = 0;
    due = NULL;
    snprintf(log_file, sizeof(log_file), "/tmp/test_watchdog_XXXXXX");
    int fd = mkstemp(log_file);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(err, log_open(log_file, LOG_NOTICE, &err));
    watchdog_init(&watchdog, &uses);
    watchdog_start(&watchdog);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    uv_close((uv_handle_t *)&watchdog.timer, NULL);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    unlink(log_file);
    return uv_loop_close(&loop.uv);
}

/* An interval is over: is there a sign of life? */
static bool is_alive(void)
{
    unsigned before = signs;
    assert_non_null(due);
    due(&watchdog.timer);
    return signs > before;
}

/* How often the log says |text|. */
static unsigned said(const char *text)
{
    return log_lines(log_file, text);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void an_idle_daemon_is_alive(void **state)
{
    (void)state;
    assert_true(is_alive());
    assert_true(is_alive());
    assert_int_equal(said(""), 0);
}

static void without_systemd_it_does_not_look(void **state)
{
    (void)state;
    due = NULL;
    notify.watchdog_ms = 0;
    watchdog_start(&watchdog);
    assert_null(due);
}

static void a_device_that_completes_nothing_is_named(void **state)
{
    (void)state;
    progress = (struct hal_progress){true, 7};
    assert_true(is_alive()); /* it may have come a moment ago */
    assert_false(is_alive());
    assert_int_equal(said("error: watchdog: the device has work, and nothing was completed in 500 "
                          "ms; systemd gets no sign of life until something is"),
                     1);
    assert_false(is_alive());
    progress.mark++;
    assert_true(is_alive());
    assert_int_equal(said("notice: watchdog: all parts make progress again"), 1);
    assert_false(is_alive());
    progress.is_busy = false;
    assert_true(is_alive());
}

/* The new one has had its work for less than an interval. */
static void another_serving_is_looked_at_anew(void **state)
{
    struct serving other = {.magic = SERVING_MAGIC, .device = serving.device};
    (void)state;
    progress = (struct hal_progress){true, 7};
    assert_true(is_alive());
    servings.current = &other;
    assert_true(is_alive());
    assert_false(is_alive());
    other.device = NULL; /* it is being opened anew */
    assert_true(is_alive());
    servings.current = &serving;
}

static void threads_that_complete_nothing_are_named(void **state)
{
    (void)state;
    offload.open[OFFLOAD_HEAVY] = 1;
    assert_true(is_alive());
    assert_false(is_alive());
    assert_int_equal(said("threads have steps of requests to run"), 1);
    offload.done[OFFLOAD_REQUEST]++;
    assert_true(is_alive());
}

static void loads_may_have_all_threads(void **state)
{
    (void)state;
    offload.open[OFFLOAD_REQUEST] = 3;
    offload.open[OFFLOAD_LONG] = 4;
    assert_true(is_alive());
    assert_true(is_alive());
    offload.open[OFFLOAD_LONG] = 3;
    assert_true(is_alive());
    assert_false(is_alive());
}

static void all_that_is_stuck_is_named(void **state)
{
    (void)state;
    progress = (struct hal_progress){true, 7};
    offload.open[OFFLOAD_REQUEST] = 1;
    assert_true(is_alive());
    are_clients_stuck = true;
    assert_false(is_alive());
    assert_int_equal(said("watchdog: clients wait to be accepted, and nothing"), 1);
    assert_int_equal(said("watchdog: the device has work"), 1);
    assert_int_equal(said("watchdog: threads have steps"), 1);
    are_clients_stuck = false;
    progress.mark++;
    assert_false(is_alive()); /* the threads still are */
    assert_int_equal(said("make progress again"), 0);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stuck_is_busy_twice_without_progress),
        TEST(an_idle_daemon_is_alive),
        TEST(without_systemd_it_does_not_look),
        TEST(a_device_that_completes_nothing_is_named),
        TEST(another_serving_is_looked_at_anew),
        TEST(threads_that_complete_nothing_are_named),
        TEST(loads_may_have_all_threads),
        TEST(all_that_is_stuck_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
