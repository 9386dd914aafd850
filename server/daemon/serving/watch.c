/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/watch.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/folder.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/reload.h"
#include "server/process/log.h"
#include "server/process/offload.h"
#include "server/process/options.h"

/* Quiet that is awaited after an event, and the longest wait. */
#define QUIET_MS 100
#define WAIT_MS_MAX 1000
/* Between two looks at which folders the names stand for. */
#define TICK_MS 2000
/* DIR/NAME/VERSION */
#define DEPTH 2
#define EVENTS_BYTES 4096
#define EVENTS                                                                                     \
    (IN_ATTRIB | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVED_FROM |         \
     IN_MOVED_TO | IN_MOVE_SELF | IN_ONLYDIR)

/* ---- folders --------------------------------------------------------------------------------- */

/* Adds |folder| and the folders in it; folders that are watched already stay so. False: there is no
 * room for more. Entries that are no folders are refused by IN_ONLYDIR. */
static bool add_folder(int fd, const char *folder, int depth)
{
    if (inotify_add_watch(fd, folder, EVENTS) < 0) {
        return errno != ENOSPC && errno != ENOMEM;
    }
    DIR *dir = depth > 0 ? folder_open(folder) : NULL;
    bool has_room = true;
    for (struct dirent *entry; dir && has_room && (entry = readdir(dir)) != NULL;) {
        char path[PATH_MAX];
        bool is_candidate =
            entry->d_name[0] != '.' &&
            (entry->d_type == DT_DIR || entry->d_type == DT_LNK || entry->d_type == DT_UNKNOWN);
        if (is_candidate &&
            snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) < PATH_MAX) {
            has_room = add_folder(fd, path, depth - 1);
        }
    }
    if (dir) {
        closedir(dir);
    }
    return has_room;
}

/* False: some folders are not watched. */
static bool add_folders(const struct watch *watch)
{
    bool has_room = true;
    const struct options *options = watch->reload->model_options;
    for (uint32_t i = 0; i < options->folder_count; i++) {
        has_room = add_folder(watch->fd, options->folders[i], DEPTH) && has_room;
    }
    return has_room;
}

/* Identifies the folders that the names stand for, as one number. */
static uint64_t identify_folders(const struct watch *watch)
{
    const struct options *options = watch->reload->model_options;
    uint64_t id = 0;
    for (uint32_t i = 0; i < options->folder_count; i++) {
        struct stat stat_of = {0};
        (void)!stat(options->folders[i], &stat_of); /* 0: there is none */
        id = (id * 31 + stat_of.st_dev) * 31 + stat_of.st_ino;
    }
    return id;
}

static void report_room(struct watch *watch)
{
    if (!watch->has_room && !watch->is_short) {
        log_line(LOG_WARNING, "--watch: the system has no room to watch all folders (sysctl "
                              "fs.inotify.max_user_watches); SIGHUP looks at all of them");
    }
    watch->is_short = !watch->has_room;
}

/* ---- events ---------------------------------------------------------------------------------- */

/* A thread: a folder may be large, or far away. */
static void add_new(uv_work_t *work)
{
    struct watch *watch;
    OBJ_CAST(watch, work->data, WATCH_MAGIC);
    watch->seen = identify_folders(watch);
    watch->has_room = add_folders(watch);
}

static void on_timer(uv_timer_t *timer);

/* Looks at the folders soon. */
static void look(struct watch *watch)
{
    watch->since_ms = uv_now(&watch->loop->uv);
    uv_timer_start(&watch->timer, on_timer, 0, 0);
}

static void on_added(uv_work_t *work, int uv_status)
{
    struct watch *watch;
    OBJ_CAST(watch, work->data, WATCH_MAGIC);
    must(uv_status == 0 && watch->is_working);
    offload_end(watch->loop->offload, OFFLOAD_LONG);
    watch->is_working = false;
    report_room(watch);
    if (watch->loop->is_closing) {
        return;
    }
    changes_scan(watch->changes, false); /* also what has waited for this look */
    changes_release(watch->changes);
    if (watch->since_ms && watch->is_on) {
        uv_timer_start(&watch->timer, on_timer, QUIET_MS, 0);
    }
}

static void on_timer(uv_timer_t *timer)
{
    struct watch *watch;
    OBJ_CAST(watch, timer->data, WATCH_MAGIC);
    if (watch->is_working) {
        return; /* on_added() starts the timer again */
    }
    if (changes_is_busy(watch->changes)) { /* it may bring other folders */
        uv_timer_start(timer, on_timer, QUIET_MS, 0);
        return;
    }
    watch->since_ms = 0;
    watch->is_working = true;
    changes_hold(watch->changes);
    watch->work.data = watch;
    offload_begin(watch->loop->offload, OFFLOAD_LONG, &watch->work, add_new, on_added);
}

static void ask(uv_work_t *work)
{
    struct watch *watch;
    OBJ_CAST(watch, work->data, WATCH_MAGIC);
    watch->now = identify_folders(watch);
}

static void on_asked(uv_work_t *work, int uv_status)
{
    struct watch *watch;
    OBJ_CAST(watch, work->data, WATCH_MAGIC);
    must(uv_status == 0 && watch->is_working);
    offload_end(watch->loop->offload, OFFLOAD_LONG);
    watch->is_working = false;
    if (watch->loop->is_closing) {
        return;
    }
    if (watch->now != watch->seen && watch->is_on) {
        look(watch);
    }
    changes_release(watch->changes); /* changes have waited for this question */
}

static void on_tick(uv_timer_t *ticker)
{
    struct watch *watch;
    OBJ_CAST(watch, ticker->data, WATCH_MAGIC);
    if (watch->is_working || changes_is_busy(watch->changes) || watch->loop->is_draining) {
        return; /* the next tick will do */
    }
    watch->is_working = true;
    changes_hold(watch->changes);
    watch->work.data = watch;
    offload_begin(watch->loop->offload, OFFLOAD_LONG, &watch->work, ask, on_asked);
}

/* The kind of event does not matter: the scan looks at everything. */
static void on_events(uv_poll_t *poll, int uv_status, int events)
{
    struct watch *watch;
    OBJ_CAST(watch, poll->data, WATCH_MAGIC);
    char bytes[EVENTS_BYTES];
    (void)uv_status;
    (void)events;
    if (read(watch->fd, bytes, sizeof(bytes)) <= 0) {
        return;
    }
    uint64_t now = uv_now(&watch->loop->uv);
    watch->since_ms = watch->since_ms ? watch->since_ms : now;
    uint64_t waited = now - watch->since_ms;
    uint64_t left = waited < WAIT_MS_MAX ? WAIT_MS_MAX - waited : 0;
    uv_timer_start(&watch->timer, on_timer, left < QUIET_MS ? left : QUIET_MS, 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

void watch_init(struct watch *watch, struct loop *loop, struct changes *changes,
                const struct reload *reload)
{
    *watch = (struct watch){
        .magic = WATCH_MAGIC, .loop = loop, .changes = changes, .reload = reload, .fd = -1};
}

enum status watch_prepare(struct watch *watch, const struct options *options, struct error *err)
{
    OBJ_CHECK(watch, WATCH_MAGIC);
    if (!options->watches || watch->fd >= 0) {
        return ST_OK;
    }
    int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    int rc =
        fd < 0 ? uv_translate_sys_error(errno) : uv_poll_init(&watch->loop->uv, &watch->poll, fd);
    if (rc < 0) {
        if (fd >= 0) {
            close(fd);
        }
        return error_set(err, ST_SYSTEM, "--watch: %s", uv_strerror(rc));
    }
    watch->fd = fd;
    uv_timer_init(&watch->loop->uv, &watch->timer);
    uv_timer_init(&watch->loop->uv, &watch->ticker);
    watch->poll.data = watch->timer.data = watch->ticker.data = watch;
    return ST_OK;
}

static void turn_on(struct watch *watch)
{
    watch->is_on = true;
    uv_poll_start(&watch->poll, UV_READABLE, on_events);
    uv_timer_start(&watch->ticker, on_tick, TICK_MS, TICK_MS);
}

/* The folders stay known to the system, which drops what nobody reads. */
static void turn_off(struct watch *watch)
{
    watch->is_on = false;
    uv_poll_stop(&watch->poll);
    uv_timer_stop(&watch->timer);
    uv_timer_stop(&watch->ticker);
}

void watch_turn(struct watch *watch, const struct options *options)
{
    OBJ_CHECK(watch, WATCH_MAGIC);
    must(!options->watches || watch->fd >= 0);
    if (options->watches && !watch->is_on) {
        turn_on(watch);
    } else if (!options->watches && watch->is_on) {
        turn_off(watch);
    }
    if (watch->is_on) {
        look(watch);
    }
}

enum status watch_open(struct watch *watch, struct error *err)
{
    OBJ_CHECK(watch, WATCH_MAGIC);
    const struct options *options = watch->reload->options;
    TRY(watch_prepare(watch, options, err));
    if (options->watches) {
        turn_on(watch);
        watch->seen = identify_folders(watch);
        watch->has_room = add_folders(watch);
        report_room(watch);
    }
    return ST_OK;
}

void watch_fini(struct watch *watch)
{
    if (watch->magic && watch->fd >= 0) {
        close(watch->fd);
        watch->fd = -1;
    }
}
