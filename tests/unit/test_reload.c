/* SPDX-License-Identifier: MIT */
/* SIGHUP and --watch without signals and without waiting: settings that are read again, and folders
 * whose files come and go. */
#include "config.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/conf/conf.h"
#include "tests/unit/serving_support.h"

#define FILES_ERROR "certificate: it is gone"

static struct serving_world world;
static char program[] = "pted", option[] = "--config", document[256];
static int watches_left, inotify_error; /* of the system; an error of inotify_init1() */

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __real_inotify_add_watch(int fd, const char *path, uint32_t mask);
int __wrap_inotify_init1(int flags);
int __real_inotify_init1(int flags);

int __wrap_inotify_add_watch(int fd, const char *path, uint32_t mask)
{
    if (watches_left == 0) {
        errno = ENOSPC;
        return -1;
    }
    watches_left--;
    return __real_inotify_add_watch(fd, path, mask);
}

int __wrap_inotify_init1(int flags)
{
    if (inotify_error) {
        errno = inotify_error;
        return -1;
    }
    return __real_inotify_init1(flags);
}

/* ---- the world ------------------------------------------------------------------------------- */

static enum status files_status;
static unsigned files_read;

static enum status read_files(void *owner, const struct options *options, struct error *err)
{
    assert_ptr_equal(owner, &world);
    assert_non_null(options);
    files_read++;
    return files_status == ST_OK ? ST_OK : error_set(err, files_status, FILES_ERROR);
}

static int set_up(void **state)
{
    files_status = ST_OK;
    files_read = 0;
    watches_left = 100;
    inotify_error = 0;
    open_serving_world(&world);
    put_model_file(&world, "sum.pte", "add");
    *state = &world;
    return 0;
}

static int tear_down(void **state)
{
    close_serving_world(*state);
    return 0;
}

/* ---- settings -------------------------------------------------------------------------------- */

static void write_settings(struct serving_world *w, const char *members)
{
    char text[512];
    snprintf(text, sizeof(text), "{\"model_folders\": [\"%s\"]%s%s}", w->folder,
             *members ? ", " : "", members);
    put_text_file(w, "settings", text);
}

/* The settings are a document in the folder of models. */
static void serve_settings(struct serving_world *w, const char *members)
{
    static char *argv[] = {program, option, document, NULL};
    static char *none[] = {NULL};
    static const struct conf_sources sources = {3, argv, none};
    path_in_folder(w, "settings", document);
    write_settings(w, members);
    serve_folder(w, 0, NULL);
    reload_use_sources(&w->reload, &sources);
    w->reload.read_files = read_files;
    w->reload.owner = w;
}

static void a_reload_without_sources_looks_for_files(void **state)
{
    struct serving_world *w = *state;
    serve_folder(w, 0, NULL);
    put_model_file(w, "net.pte", "mlp");
    reload_begin(&w->reload);
    expect_log(w, "notify: RELOADING=1\nMONOTONIC_USEC=");
    assert_true(w->changes.current->update.retries_failed);
    run_work(&w->changes.work);
    expect_log(w, "notify: READY=1");
    expect_ready(w, "net", true);
    assert_ptr_equal(w->reload.model_options, &w->options);
}

static void new_settings_of_models_are_used(void **state)
{
    struct serving_world *w = *state;
    serve_settings(w, "");
    struct model *before = model_of(w, "sum");
    write_settings(w, "\"queue_count_max\": 5, \"header_count_max\": 9, \"log_level\": \"debug\"");
    reload_begin(&w->reload);
    assert_int_equal(files_read, 1);
    forget_log(w);
    run_work(&w->changes.work);
    struct model *after = model_of(w, "sum");
    assert_ptr_not_equal(after, before);
    assert_int_equal(after->params.queue_count_max, 5);
    assert_int_equal(w->reload.model_options->params.queue_count_max, 5);
    assert_int_equal(w->options.params.header_count_max, 100);
    assert_int_equal(counter_get(&w->changes.counts.made), 1);
    model_unref(before);
    model_unref(after);
    reload_begin(&w->reload); /* once more, with nothing new */
    run_work(&w->changes.work);
    expect_ready(w, "sum", true);
}

static void the_log_names_settings_for_the_next_start(void **state)
{
    struct serving_world *w = *state;
    serve_settings(w, "");
    write_settings(w, "\"header_count_max\": 9, \"queue_count_max\": 5, \"watch\": true");
    reload_begin(&w->reload);
    run_work(&w->changes.work);
    buf_add(&w->log, "", 1);
    const char *log = (const char *)w->log.ptr;
    assert_non_null(strstr(log, "warning: SIGHUP: header_count_max: what has changed takes effect "
                                "at the next start\n"));
    assert_non_null(strstr(log, "SIGHUP: workers: ")); /* the test gives them otherwise */
    assert_null(strstr(log, "SIGHUP: watch: "));
    assert_null(strstr(log, "SIGHUP: queue_count_max"));
    assert_null(strstr(log, "SIGHUP: listeners"));
    assert_null(strstr(log, "SIGHUP: device"));
}

static void settings_with_problems_are_refused(void **state)
{
    struct serving_world *w = *state;
    serve_settings(w, "");
    write_settings(w, "\"queue_count_max\": 0, \"no_such\": 1");
    put_model_file(w, "net.pte", "mlp");
    reload_begin(&w->reload);
    buf_add(&w->log, "", 1);
    const char *log = (const char *)w->log.ptr;
    assert_non_null(strstr(log, "queue_count_max: "));
    assert_non_null(strstr(log, "no_such: "));
    assert_non_null(strstr(log, "\nerror: SIGHUP: the settings are refused; the old ones stay in "
                                "use\n"));
    assert_int_equal(files_read, 0);
    run_work(&w->changes.work);
    expect_ready(w, "net", true); /* files are looked at all the same */
    assert_ptr_equal(w->reload.model_options, &w->options);
}

static void settings_whose_files_cannot_be_read_are_refused(void **state)
{
    struct serving_world *w = *state;
    serve_settings(w, "");
    write_settings(w, "\"queue_count_max\": 5");
    files_status = ST_NOT_FOUND;
    reload_begin(&w->reload);
    expect_log(w, "error: SIGHUP: " FILES_ERROR "\n"
                  "error: SIGHUP: the settings are refused; the old ones stay in use\n");
    run_work(&w->changes.work);
    assert_ptr_equal(w->reload.model_options, &w->options);
}

static void a_reload_whose_change_fails_keeps_the_old_settings(void **state)
{
    struct serving_world *w = *state;
    serve_settings(w, "");
    put_text_file(w, "settings", "{\"model_folders\": [\"/tmp/test_reload_has_no_such_folder\"]}");
    reload_begin(&w->reload);
    forget_log(w);
    run_work(&w->changes.work);
    assert_ptr_equal(w->reload.model_options, &w->options);
    assert_null(w->reload.config);
    assert_int_equal(counter_get(&w->changes.counts.refused), 1);
    expect_log(w, "notify: READY=1\nerror: looking for changed models: ");
    expect_ready(w, "sum", true);
}

static void the_last_of_two_reloads_counts(void **state)
{
    struct serving_world *w = *state;
    struct serving_waiter waiter;
    const struct changes_order order = {.kind = UPDATE_LOAD, .name = "sum"};
    serve_settings(w, "");
    init_waiter(&waiter, "sum");
    assert_ok(w->err, changes_begin(&w->changes, &waiter.waiter, &order, &w->err));
    write_settings(w, "\"queue_count_max\": 5");
    reload_begin(&w->reload);
    write_settings(w, "\"queue_count_max\": 6");
    reload_begin(&w->reload);
    assert_int_equal(w->changes.waiting_count, 1);
    run_work(&w->changes.work);
    run_work(&w->changes.work);
    assert_int_equal(w->reload.model_options->params.queue_count_max, 6);
    assert_int_equal(works_waiting(), 0);
}

/* ---- folders --------------------------------------------------------------------------------- */

static void serve_watched(struct serving_world *w)
{
    serve_folder(w, 1, (char *[]){(char[]){"--watch"}});
    assert_ok(w->err, watch_open(&w->watch, &w->err));
    forget_log(w);
}

/* The loop hears of what the system has told until now. */
static void hear_events(struct serving_world *w)
{
    uv_run(&w->loop.uv, UV_RUN_NOWAIT);
}

static void expect_due(const uv_timer_t *timer, uint64_t ms)
{
    uint64_t due_ms;
    assert_true(is_timer_set(timer, &due_ms));
    assert_int_equal(due_ms, ms);
}

static void nothing_is_watched_unless_asked_for(void **state)
{
    struct serving_world *w = *state;
    serve_folder(w, 0, NULL);
    assert_ok(w->err, watch_open(&w->watch, &w->err));
    assert_int_equal(w->watch.fd, -1);
    watch_turn(&w->watch, w->watch.reload->options);
    assert_int_equal(works_waiting(), 0);
}

static void a_system_without_descriptors_is_an_error(void **state)
{
    struct serving_world *w = *state;
    serve_folder(w, 1, (char *[]){(char[]){"--watch"}});
    inotify_error = EMFILE;
    assert_fails(w->err, watch_open(&w->watch, &w->err), ST_SYSTEM, "--watch: too many open files");
}

static void a_file_that_comes_is_served(void **state)
{
    struct serving_world *w = *state;
    serve_watched(w);
    put_model_file(w, "net.pte", "mlp");
    hear_events(w);
    expect_due(&w->watch.timer, 100);
    assert_int_equal(works_waiting(), 0); /* more files may come */
    pass_ms(100);
    assert_int_equal(w->changes.holds, 1);
    run_work(&w->watch.work);
    assert_int_equal(w->changes.holds, 0);
    run_work(&w->changes.work);
    expect_ready(w, "net", true);
    expect_log(w, "model files: 1 loaded, 0 failed, 0 gone, 1 unchanged");
}

static void files_that_keep_coming_wait_a_second_at_most(void **state)
{
    struct serving_world *w = *state;
    serve_watched(w);
    for (int i = 0; i < 12; i++) {
        put_text_file(w, "notes", "no model");
        hear_events(w);
        expect_due(&w->watch.timer, i < 11 ? 100 : 10);
        if (i < 11) {
            pass_ms(90);
        }
    }
    assert_int_equal(works_waiting(), 0);
    pass_ms(10);
    assert_true(is_work_waiting(&w->watch.work));
    put_text_file(w, "notes", "still none"); /* while a thread looks */
    hear_events(w);
    pass_ms(100);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_due(&w->watch.timer, 100);
    pass_ms(100);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_silence(w);
    assert_int_equal(works_waiting(), 0);
}

static void a_look_waits_for_the_change_under_way(void **state)
{
    struct serving_world *w = *state;
    serve_watched(w);
    changes_scan(&w->changes, false);
    put_model_file(w, "net.pte", "mlp");
    hear_events(w);
    pass_ms(100);
    assert_false(is_work_waiting(&w->watch.work));
    run_work(&w->changes.work);
    pass_ms(100);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_ready(w, "net", true);
}

static void new_folders_are_watched_too(void **state)
{
    struct serving_world *w = *state;
    char path[256];
    serve_watched(w);
    path_in_folder(w, "net", path);
    assert_int_equal(mkdir(path, 0700), 0);
    path_in_folder(w, "net/1", path);
    assert_int_equal(mkdir(path, 0700), 0);
    hear_events(w);
    pass_ms(100);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    hear_events(w); /* those of the folder before it was watched */
    put_model_file(w, "net/1/model.pte", "mlp");
    hear_events(w);
    pass_ms(100);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_ready(w, "net", true);
}

/* No event tells of it: the folder is another one. */
static void a_folder_that_is_replaced_is_seen_at_the_next_tick(void **state)
{
    struct serving_world *w = *state;
    char elsewhere[80];
    serve_watched(w);
    expect_due(&w->watch.ticker, 2000);
    pass_ms(2000);
    assert_int_equal(w->changes.holds, 1);
    run_work(&w->watch.work); /* it is the same one */
    assert_int_equal(w->changes.holds + works_waiting(), 0);
    snprintf(elsewhere, sizeof(elsewhere), "%s.old", w->folder);
    assert_int_equal(rename(w->folder, elsewhere), 0);
    assert_int_equal(mkdir(w->folder, 0700), 0);
    put_model_file(w, "net.pte", "mlp");
    pass_ms(2000);
    run_work(&w->watch.work);
    pass_ms(0);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_ready(w, "net", true);
    expect_log(w, "model files: 1 loaded, 0 failed, 1 gone, 0 unchanged");
    snprintf(elsewhere, sizeof(elsewhere), "rm -r %s.old", w->folder);
    assert_int_equal(system(elsewhere), 0);
}

static void a_system_without_room_is_told_of_once(void **state)
{
    struct serving_world *w = *state;
    serve_folder(w, 1, (char *[]){(char[]){"--watch"}});
    watches_left = 0;
    assert_ok(w->err, watch_open(&w->watch, &w->err));
    expect_log(w, "warning: --watch: the system has no room to watch all folders");
    watch_turn(&w->watch, w->watch.reload->options);
    pass_ms(0);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    expect_silence(w);
    watches_left = 100;
    watch_turn(&w->watch, w->watch.reload->options);
    pass_ms(0);
    run_work(&w->watch.work);
    run_work(&w->changes.work);
    assert_false(w->watch.is_short);
    put_model_file(w, "net.pte", "mlp");
    hear_events(w);
    expect_due(&w->watch.timer, 100);
}

static void a_daemon_that_ends_looks_at_nothing(void **state)
{
    struct serving_world *w = *state;
    serve_watched(w);
    watch_turn(&w->watch, w->watch.reload->options);
    pass_ms(0);
    do_work(&w->watch.work);
    w->loop.is_closing = true;
    end_work(&w->watch.work);
    assert_int_equal(works_waiting(), 0);
    assert_false(w->watch.is_working);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_reload_without_sources_looks_for_files),
        TEST(new_settings_of_models_are_used),
        TEST(the_log_names_settings_for_the_next_start),
        TEST(settings_with_problems_are_refused),
        TEST(settings_whose_files_cannot_be_read_are_refused),
        TEST(a_reload_whose_change_fails_keeps_the_old_settings),
        TEST(the_last_of_two_reloads_counts),
        TEST(nothing_is_watched_unless_asked_for),
        TEST(a_system_without_descriptors_is_an_error),
        TEST(a_file_that_comes_is_served),
        TEST(files_that_keep_coming_wait_a_second_at_most),
        TEST(a_look_waits_for_the_change_under_way),
        TEST(new_folders_are_watched_too),
        TEST(a_folder_that_is_replaced_is_seen_at_the_next_tick),
        TEST(a_system_without_room_is_told_of_once),
        TEST(a_daemon_that_ends_looks_at_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
