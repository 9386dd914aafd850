/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/serving_support.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "server/process/log.h"
#include "tests/unit/unit.h"

#define MS 1000000u
#define TIMERS_MAX 16
#define WORKS_MAX 8
#define LOG_BYTES_MAX 65536
#define ARGUMENTS_MAX 16
#define BEGIN_NS 1000000000000u

struct timer {
    uv_timer_t *timer; /* NULL: free */
    uv_timer_cb fn;
    uint64_t due_ms, repeat_ms;
};

struct work {
    uv_work_t *work;
    uv_work_cb fn;
    uv_after_work_cb done;
    bool is_done; /* its first half */
};

static uint64_t clock_ns;
static struct timer timers[TIMERS_MAX];
static struct work works[WORKS_MAX];
static uint32_t work_count;
static struct buf *log_buf;

/* ---- in place of libuv ----------------------------------------------------------------------- */

uint64_t __wrap_uv_hrtime(void);
uint64_t __wrap_uv_now(const uv_loop_t *loop);
int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat_ms);
int __wrap_uv_timer_stop(uv_timer_t *timer);
int __wrap_uv_is_active(const uv_handle_t *handle);
int __real_uv_is_active(const uv_handle_t *handle);
void __wrap_offload_begin(struct offload *offload, enum offload_kind kind, uv_work_t *work,
                          uv_work_cb fn, uv_after_work_cb done);
void __wrap_offload_end(struct offload *offload, enum offload_kind kind);
void __wrap_log_line(enum log_level level, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));
void __wrap_notify_send(const struct notify *notify, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

uint64_t __wrap_uv_hrtime(void)
{
    return clock_ns;
}

uint64_t __wrap_uv_now(const uv_loop_t *loop)
{
    (void)loop;
    return clock_ns / MS;
}

static struct timer *find_timer(const uv_timer_t *timer)
{
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].timer == timer) {
            return &timers[i];
        }
    }
    return NULL;
}

int __wrap_uv_timer_start(uv_timer_t *timer, uv_timer_cb fn, uint64_t ms, uint64_t repeat_ms)
{
    struct timer *found = find_timer(timer);
    found = found ? found : find_timer(NULL);
    assert_non_null(found);
    *found = (struct timer){timer, fn, clock_ns / MS + ms, repeat_ms};
    return 0;
}

int __wrap_uv_timer_stop(uv_timer_t *timer)
{
    struct timer *found = find_timer(timer);
    if (found) {
        *found = (struct timer){0};
    }
    return 0;
}

int __wrap_uv_is_active(const uv_handle_t *handle)
{
    return handle->type == UV_TIMER ? find_timer((const uv_timer_t *)handle) != NULL
                                    : __real_uv_is_active(handle);
}

bool is_timer_set(const uv_timer_t *timer, uint64_t *out_ms)
{
    const struct timer *found = find_timer(timer);
    *out_ms = found ? found->due_ms - clock_ns / MS : 0;
    return found != NULL;
}

/* The timer that goes off first, until |end_ms|; or NULL. */
static struct timer *next_timer(uint64_t end_ms)
{
    struct timer *next = NULL;
    for (uint32_t i = 0; i < TIMERS_MAX; i++) {
        struct timer *timer = &timers[i];
        if (timer->timer && timer->due_ms <= end_ms && (!next || timer->due_ms < next->due_ms)) {
            next = timer;
        }
    }
    return next;
}

void pass_ms(uint64_t ms)
{
    uint64_t end_ns = clock_ns + ms * MS;
    struct timer *next;
    while ((next = next_timer(end_ns / MS)) != NULL) {
        const struct timer timer = *next;
        next->due_ms += timer.repeat_ms;
        if (timer.repeat_ms == 0) {
            *next = (struct timer){0};
        }
        clock_ns = timer.due_ms * MS > clock_ns ? timer.due_ms * MS : clock_ns;
        timer.fn(timer.timer);
    }
    clock_ns = end_ns;
}

uint64_t serving_now_ns(void)
{
    return clock_ns;
}

/* ---- in place of threads --------------------------------------------------------------------- */

void __wrap_offload_begin(struct offload *offload, enum offload_kind kind, uv_work_t *work,
                          uv_work_cb fn, uv_after_work_cb done)
{
    assert_true(work_count < WORKS_MAX && !is_work_waiting(work));
    offload->open[kind]++;
    works[work_count++] = (struct work){work, fn, done, false};
}

void __wrap_offload_end(struct offload *offload, enum offload_kind kind)
{
    assert_true(offload->open[kind] > 0);
    offload->open[kind]--;
}

static struct work *find_work(const uv_work_t *work)
{
    for (uint32_t i = 0; i < work_count; i++) {
        if (works[i].work == work) {
            return &works[i];
        }
    }
    return NULL;
}

uint32_t works_waiting(void)
{
    return work_count;
}

bool is_work_waiting(const uv_work_t *work)
{
    return find_work(work) != NULL;
}

void do_work(uv_work_t *work)
{
    struct work *found = find_work(work);
    assert_non_null(found);
    assert_false(found->is_done);
    found->is_done = true;
    found->fn(work);
}

void end_work(uv_work_t *work)
{
    struct work *found = find_work(work);
    assert_non_null(found);
    assert_true(found->is_done);
    uv_after_work_cb done = found->done;
    uint32_t index = (uint32_t)(found - works);
    memmove(found, found + 1, (--work_count - index) * sizeof(*found));
    done(work, 0);
}

void run_work(uv_work_t *work)
{
    do_work(work);
    end_work(work);
}

/* ---- words ----------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void add_line(const char *prefix, const char *fmt,
                                                           va_list args)
{
    char text[4096];
    vsnprintf(text, sizeof(text), fmt, args);
    if (log_buf) {
        buf_printf(log_buf, "%s%s\n", prefix, text);
    }
}

void __wrap_log_line(enum log_level level, const char *fmt, ...)
{
    char prefix[32];
    va_list args;
    snprintf(prefix, sizeof(prefix), "%s: ", log_level_name(level));
    va_start(args, fmt);
    add_line(prefix, fmt, args);
    va_end(args);
}

void __wrap_notify_send(const struct notify *notify, const char *fmt, ...)
{
    va_list args;
    (void)notify;
    va_start(args, fmt);
    add_line("notify: ", fmt, args);
    va_end(args);
}

void forget_log(struct serving_world *w)
{
    w->log.len = 0;
}

void expect_log(struct serving_world *w, const char *text)
{
    buf_add(&w->log, "", 1);
    if (!strstr((const char *)w->log.ptr, text)) {
        fail_msg("expected '%s' in the log, got:\n%s", text, (const char *)w->log.ptr);
    }
    forget_log(w);
}

void expect_silence(struct serving_world *w)
{
    if (w->log.len > 0) {
        fail_msg("expected no lines, got:\n%.*s", (int)w->log.len, (const char *)w->log.ptr);
    }
}

/* ---- files ----------------------------------------------------------------------------------- */

void path_in_folder(const struct serving_world *w, const char *name, char path[256])
{
    snprintf(path, 256, "%s/%s", w->folder, name);
}

void put_test_file(const struct serving_world *w, const char *name, const char *file)
{
    const char *top = getenv("top_srcdir");
    char path[256], relative[PATH_MAX], target[PATH_MAX];
    path_in_folder(w, name, path);
    snprintf(relative, sizeof(relative), "%s/tests/models/%s", top ? top : ".", file);
    assert_non_null(realpath(relative, target));
    unlink(path);
    assert_int_equal(symlink(target, path), 0);
}

void put_model_file(const struct serving_world *w, const char *name, const char *model)
{
    char file[256];
    snprintf(file, sizeof(file), "%s.pte", model);
    put_test_file(w, name, file);
}

void put_text_file(const struct serving_world *w, const char *name, const char *text)
{
    char path[256];
    path_in_folder(w, name, path);
    unlink(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

void put_damaged_file(const struct serving_world *w, const char *name)
{
    put_text_file(w, name, "this is no program, although it is long enough to be one");
}

void drop_file(const struct serving_world *w, const char *name)
{
    char path[256];
    path_in_folder(w, name, path);
    assert_int_equal(unlink(path), 0);
}

/* ---- the world ------------------------------------------------------------------------------- */

static void leave_pool(void *owner)
{
    ((struct serving_world *)owner)->leaves++;
}

static void enter_pool(void *owner)
{
    ((struct serving_world *)owner)->enters++;
}

static const struct servings_ops servings_ops = {leave_pool, enter_pool};

static void note_start(void *owner, enum status status, const struct error *err)
{
    struct serving_world *w = owner;
    w->starts++;
    w->start = (struct error){.code = status};
    if (status != ST_OK) {
        w->start = *err;
    }
    w->loop.is_starting = false;
}

static void note_end(void *owner)
{
    ((struct serving_world *)owner)->ends++;
}

static const struct changes_ops changes_ops = {note_start, note_end};
static const struct turn_steps no_steps = {0};

void open_serving_world(struct serving_world *w)
{
    *w = (struct serving_world){.folder = "/tmp/test_serving_XXXXXX"};
    clock_ns = BEGIN_NS;
    work_count = 0;
    memset(timers, 0, sizeof(timers));
    buf_init(&w->log, LOG_BYTES_MAX);
    log_buf = &w->log;
    assert_non_null(mkdtemp(w->folder));
    assert_ok(w->err, loop_init(&w->loop, &no_steps, &w->err));
    w->loop.alarm = &w->alarm;
    w->loop.offload = &w->offload;
    w->notify.fd = -1;
}

static void init_parts(struct serving_world *w)
{
    const struct proving_uses proving = {&w->loop, &w->servings, &w->trim, &w->options.params};
    const struct changes_uses changes = {&w->loop,   &w->servings, &w->reload,
                                         &w->waits,  &w->proving,  &w->trim,
                                         &w->notify, &changes_ops, w};
    const struct recovery_uses recovery = {&w->loop,    &w->servings, &w->changes,
                                           &w->proving, &w->reload,   &w->notify};
    servings_init(&w->servings, &servings_ops, w);
    trim_init(&w->trim, &w->loop, &w->servings);
    waits_init(&w->waits, &w->alarm, &w->options.params);
    reload_init(&w->reload, &w->options);
    w->reload.changes = &w->changes;
    w->reload.watch = &w->watch;
    w->reload.notify = &w->notify;
    proving_init(&w->proving, &proving);
    changes_init(&w->changes, &changes);
    watch_init(&w->watch, &w->loop, &w->changes, &w->reload);
    recovery_init(&w->recovery, &recovery, "cpu");
}

void begin_serving(struct serving_world *w, int argc, char *const argv[])
{
    char *all[ARGUMENTS_MAX] = {(char[]){"pted"}, (char[]){"--workers=1"},
                                (char[]){"--ring-bytes=16777216"}, (char[]){"--models"}, w->folder};
    int count = 5;
    for (int i = 0; i < argc; i++) {
        assert_true(count < ARGUMENTS_MAX);
        all[count++] = argv[i];
    }
    options_init(&w->options);
    assert_ok(w->err, options_add_arguments(&w->options, count, all, &w->err));
    init_parts(w);
    assert_ok(w->err, serving_new(&w->options, "cpu", false, &w->servings.current, &w->err));
    w->loop.is_starting = true;
    forget_log(w);
}

void serve_folder(struct serving_world *w, int argc, char *const argv[])
{
    begin_serving(w, argc, argv);
    atomic_store(&w->proving.is_stopped, true);
    assert_ok(w->err, changes_start(&w->changes, &w->err));
    run_work(&w->changes.work);
    assert_int_equal(w->start.code, ST_OK);
    w->ends = 0;
    forget_log(w);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

/* The scheduler asserts that no queue is left, and the device that no memory is left. So every
 * model has been freed. */
void close_serving_world(struct serving_world *w)
{
    char command[128];
    w->loop.is_closing = w->loop.is_draining = true;
    if (w->proving.magic) {
        proving_stop(&w->proving);
    }
    while (work_count > 0) {
        if (!works[0].is_done) {
            do_work(works[0].work);
        }
        end_work(works[0].work);
    }
    watch_fini(&w->watch);
    changes_fini(&w->changes);
    waits_fini(&w->waits);
    if (w->reload.magic) {
        reload_fini(&w->reload);
    }
    servings_fini(&w->servings);
    uv_walk(&w->loop.uv, close_handle, NULL);
    assert_int_equal(uv_run(&w->loop.uv, UV_RUN_DEFAULT), 0);
    loop_fini(&w->loop);
    log_buf = NULL;
    buf_fini(&w->log);
    snprintf(command, sizeof(command), "rm -r %s", w->folder);
    assert_int_equal(system(command), 0);
}

/* ---- models and calls ------------------------------------------------------------------------ */

struct model *model_of(struct serving_world *w, const char *name)
{
    struct model *model = NULL;
    struct repository *repository = &w->servings.current->repository;
    assert_ok(w->err, repository_find(repository, name, 0, &model, &w->err));
    return model;
}

void expect_ready(struct serving_world *w, const char *name, bool is_ready)
{
    struct model *model = model_of(w, name);
    assert_int_equal(model_is_ready(model), is_ready);
    model_unref(model);
}

static void note_done(struct waiter *waiter, enum status status, const struct error *err)
{
    struct serving_waiter *of = (struct serving_waiter *)waiter;
    assert_true(list_is_empty(&waiter->wait_link) && list_is_empty(&waiter->change_link));
    of->told++;
    of->why = (struct error){.code = status};
    if (status != ST_OK) {
        of->why = *err;
    }
}

void init_waiter(struct serving_waiter *waiter, const char *model)
{
    *waiter = (struct serving_waiter){0};
    waiter_init(&waiter->waiter, note_done);
    waiter->waiter.client = SHARE_NOBODY;
    waiter->waiter.model = model;
    waiter->waiter.arrived_ns = clock_ns;
    waiter->waiter.client_due_ns = ALARM_NEVER;
}

void expect_told(const struct serving_waiter *waiter, enum status status, const char *text)
{
    assert_int_equal(waiter->told, 1);
    assert_int_equal(waiter->why.code, status);
    if (!strstr(waiter->why.text, text)) {
        fail_msg("the waiter was told '%s', expected '%s' in it", waiter->why.text, text);
    }
}
