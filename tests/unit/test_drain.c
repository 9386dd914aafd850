/* SPDX-License-Identifier: MIT */
/*
 * The order of a stop, without sockets and without waiting. The linker sends what a drain calls
 * here: each call becomes a word of |events|, and a timer is run when the test says so.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/drain.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/access_log.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/proving.h"
#include "server/process/fetch.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/options.h"

#define MS 1000000u

static struct options options;
static struct loop loop;
static struct listeners listeners;
static struct conns conns;
static struct requests requests;
static struct changes changes;
static struct proving proving;
static struct access_log access_log;
static struct notify notify;
static struct drain drain;
static struct list listener; /* in |listeners.all| */
static char events[1024];
static uv_timer_cb due;            /* of the drain's timer; NULL: it does not run */
static uv_signal_cb on_signals[2]; /* of SIGTERM and of SIGINT */
static unsigned waiting;           /* looks at the accept queues that find a client */
static uint64_t clock_ns;
static jmp_buf left; /* _exit() goes there */

static void note(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void note(const char *format, ...)
{
    size_t len = strlen(events);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(events + len, sizeof(events) - len, format, arguments);
    va_end(arguments);
    assert_true(strlen(events) + 1 < sizeof(events));
}

static void expect(const char *expected)
{
    assert_string_equal(events, expected);
    events[0] = '\0';
}

/* ---- what a drain calls ---------------------------------------------------------------------- */

uint64_t __wrap_uv_hrtime(void);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat);
int __wrap_uv_signal_start(uv_signal_t *signal, uv_signal_cb fn, int number);
bool __wrap_listeners_has_waiting(const struct listeners *all);
void __wrap_listeners_close_all(struct listeners *all);
void __wrap_conns_refuse_later(struct conns *all, uint64_t ms);
void __wrap_conns_drain(struct conns *all);
void __wrap_conns_abort(struct conns *all);
void __wrap_proving_stop(struct proving *one);
void __wrap_fetch_cancel(void);
void __wrap_changes_refuse_start(struct changes *one);
void __wrap_turns_end(struct turns *turns);
void __wrap_access_log_close(struct access_log *log);
void __wrap_notify_send(const struct notify *to, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void __wrap__exit(int status);

uint64_t __wrap_uv_hrtime(void)
{
    return clock_ns;
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat)
{
    assert_ptr_equal(timer, &drain.timer);
    assert_int_equal(repeat, 0);
    due = fn;
    note("timer(%u) ", (unsigned)ms);
    return 0;
}

int __wrap_uv_signal_start(uv_signal_t *handle, uv_signal_cb fn, int number)
{
    assert_ptr_equal(handle, number == SIGTERM ? &drain.sigterm : &drain.sigint);
    on_signals[number == SIGINT] = fn;
    return 0;
}

bool __wrap_listeners_has_waiting(const struct listeners *all)
{
    assert_ptr_equal(all, &listeners);
    waiting -= waiting > 0;
    return waiting > 0;
}

void __wrap_listeners_close_all(struct listeners *all)
{
    assert_ptr_equal(all, &listeners);
    list_init(&listeners.all);
    note("close ");
}

void __wrap_conns_refuse_later(struct conns *all, uint64_t ms)
{
    assert_ptr_equal(all, &conns);
    note("refuse(%u) ", (unsigned)ms);
}

void __wrap_conns_drain(struct conns *all)
{
    assert_ptr_equal(all, &conns);
    note("drain ");
}

void __wrap_conns_abort(struct conns *all)
{
    assert_ptr_equal(all, &conns);
    note("abort ");
}

void __wrap_proving_stop(struct proving *one)
{
    assert_ptr_equal(one, &proving);
    note("proving ");
}

void __wrap_fetch_cancel(void)
{
    note("fetch ");
}

void __wrap_changes_refuse_start(struct changes *one)
{
    assert_ptr_equal(one, &changes);
    note("refuse_start ");
}

void __wrap_turns_end(struct turns *turns)
{
    assert_ptr_equal(turns, &loop.turns);
    note("turns ");
}

void __wrap_access_log_close(struct access_log *log)
{
    assert_ptr_equal(log, &access_log);
    note("access_log ");
}

void __wrap_notify_send(const struct notify *to, const char *format, ...)
{
    char text[128];
    va_list arguments;
    assert_ptr_equal(to, &notify);
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    note("'%s' ", text);
}

void __wrap__exit(int status)
{
    note("exit(%d) ", status);
    longjmp(left, 1);
}

static void end(void *owner)
{
    assert_ptr_equal(owner, &loop);
    note("end ");
}

/* ---- a daemon -------------------------------------------------------------------------------- */

static int set_up(void **state)
{
    struct error err;
    const struct drain_uses uses = {
        .loop = &loop,
        .params = &options.params,
        .listeners = &listeners,
        .conns = &conns,
        .requests = &requests,
        .changes = &changes,
        .proving = &proving,
        .access_log = &access_log,
        .notify = &notify,
        .end = end,
        .owner = &loop,
    };
    (void)state;
    options_init(&options);
    assert_ok(err, log_open(NULL, LOG_ERROR, &err));
    loop = (struct loop){.is_starting = false};
    assert_int_equal(uv_loop_init(&loop.uv), 0);
    conns.count = 2;
    requests.busy_count = 1;
    list_init(&listeners.all);
    list_push_back(&listeners.all, &listener);
    drain_init(&drain, &uses);
    drain_watch_signals(&drain);
    events[0] = '\0';
    due = NULL;
    waiting = 0;
    clock_ns = 1000000000;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    uv_close((uv_handle_t *)&drain.timer, NULL);
    uv_close((uv_handle_t *)&drain.sigterm, NULL);
    uv_close((uv_handle_t *)&drain.sigint, NULL);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    return uv_loop_close(&loop.uv);
}

static void signal_comes(int number)
{
    on_signals[number == SIGINT](number == SIGINT ? &drain.sigint : &drain.sigterm, number);
}

static void timer_is_due(void)
{
    uv_timer_cb fn = due;
    assert_non_null(fn);
    due = NULL;
    fn(&drain.timer);
}

#define BEGINS "'STOPPING=1\nSTATUS=finishing 2 connections' proving fetch refuse(5000) timer(20) "

/* ---- tests ----------------------------------------------------------------------------------- */

static void sockets_close_then_idle_connections_then_all(void **state)
{
    (void)state;
    signal_comes(SIGTERM);
    assert_true(loop.is_draining);
    expect(BEGINS);
    timer_is_due();
    expect("close timer(60) ");
    timer_is_due();
    expect("drain timer(30000) ");
    timer_is_due();
    expect("abort ");
    assert_null(due);
}

static void clients_that_wait_are_accepted_first(void **state)
{
    (void)state;
    signal_comes(SIGINT);
    expect(BEGINS);
    waiting = 3;
    timer_is_due();
    expect("timer(0) ");
    timer_is_due();
    expect("timer(0) ");
    timer_is_due();
    expect("close timer(60) ");
}

/* A client that connects again and again cannot delay the stop. */
static void the_queue_is_looked_at_a_hundred_times(void **state)
{
    unsigned rounds = 0;
    (void)state;
    drain_begin(&drain);
    waiting = 1000;
    for (events[0] = '\0'; !strstr(events, "close"); rounds++) {
        events[0] = '\0';
        timer_is_due();
    }
    assert_int_equal(rounds, 101);
    expect("close timer(60) ");
}

static void the_end_is_the_last_of_all(void **state)
{
    (void)state;
    conns.count = requests.busy_count = 0;
    drain_check(&drain);
    expect(""); /* it does not stop */
    conns.count = 1;
    drain_begin(&drain);
    events[0] = '\0';
    conns.count = 0;
    drain_check(&drain);
    expect(""); /* a socket is open */
    timer_is_due();
    expect("close timer(60) end ");
    conns.count = 1;
    drain_check(&drain);
    expect(""); /* a connection is open */
    conns.count = 0;
    requests.busy_count = 1;
    drain_check(&drain);
    expect(""); /* a request whose client has gone is not over */
    requests.busy_count = 0;
    loop.is_closing = true;
    drain_check(&drain);
    expect(""); /* it has ended already */
    loop.is_closing = false;
    drain_check(&drain);
    expect("end ");
}

static void a_later_signal_ends_the_process(void **state)
{
    (void)state;
    signal_comes(SIGTERM);
    expect(BEGINS);
    clock_ns += 249 * (uint64_t)MS;
    signal_comes(SIGINT); /* means the same stop */
    expect("");
    clock_ns += MS;
    if (setjmp(left) == 0) {
        signal_comes(SIGINT);
        fail();
    }
    expect("exit(130) ");
    if (setjmp(left) == 0) {
        signal_comes(SIGTERM);
        fail();
    }
    expect("exit(143) ");
}

static void while_models_load_the_first_signal_ends_the_process(void **state)
{
    (void)state;
    loop.is_starting = true;
    if (setjmp(left) == 0) {
        signal_comes(SIGTERM);
        fail();
    }
    expect("refuse_start turns 'STOPPING=1' close access_log exit(0) ");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(sockets_close_then_idle_connections_then_all),
        TEST(clients_that_wait_are_accepted_first),
        TEST(the_queue_is_looked_at_a_hundred_times),
        TEST(the_end_is_the_last_of_all),
        TEST(a_later_signal_ends_the_process),
        TEST(while_models_load_the_first_signal_ends_the_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
