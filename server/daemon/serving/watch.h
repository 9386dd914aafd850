/* SPDX-License-Identifier: MIT */
/*
 * --watch: the folders of --models, the folders in them and the folders of versions. When a file
 * has come, was replaced or is gone, models change a moment later
 * (server/daemon/serving/changes.h). A file that is still being written is not looked at before it
 * is closed; a file that is renamed into the folder is complete. A folder that is replaced as a
 * whole, such as a link to another one, is seen a little later: no event tells of it.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_WATCH_H
#define PTED_SERVER_DAEMON_SERVING_WATCH_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/status.h"

struct changes;
struct loop;
struct options;
struct reload;

#define WATCH_MAGIC 0x77617463u

struct watch {
    uint32_t magic;
    struct loop *loop; /* borrowed, like the next two */
    struct changes *changes;
    const struct reload *reload; /* has the settings of models: the folders */
    int fd;                      /* owned; of inotify(7); -1: none yet */
    bool is_on;                  /* events of |fd| are read */
    uv_poll_t poll;              /* of |fd| */
    uv_timer_t timer;            /* files that come together are one change */
    uv_timer_t ticker;           /* asks now and then whether the folders are still the same ones */
    uint64_t since_ms;           /* when the first of them came; 0: none has */
    uv_work_t work;              /* looks for folders that have come, or asks */
    bool is_working;
    uint64_t seen, now; /* which folders the last look has seen; which there are */
    bool has_room;      /* the result of that work: all folders are watched */
    bool is_short;      /* the system has no room for all folders; the log has said so */
};

/* Watches nothing yet. */
void watch_init(struct watch *watch, struct loop *loop, struct changes *changes,
                const struct reload *reload);

/* Watches, if the options say so. Files that come from now on are seen, whatever is loaded when.
 * ST_SYSTEM: the system has no more watches or descriptors. */
MUST_CHECK enum status watch_open(struct watch *watch, struct error *err);

/* Makes ready for watch_turn(), if |options|, which a reload has read, say so. ST_SYSTEM as above.
 */
MUST_CHECK enum status watch_prepare(struct watch *watch, const struct options *options,
                                     struct error *err);

/* Watches, or does not, as |options| say, which are in use now and were prepared for; their folders
 * may be others. */
void watch_turn(struct watch *watch, const struct options *options);

void watch_fini(struct watch *watch);

#endif
