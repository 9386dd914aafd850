/* SPDX-License-Identifier: MIT */
/*
 * The daemon's parts that serve models, without a daemon: no socket and no thread but the device's.
 * The clock, the timers of the loop and the work for threads are the test's. The link wraps the
 * functions that SERVING_WRAPS of local.mk names. An unexpected failure ends the test.
 */
#ifndef PTED_TESTS_UNIT_SERVING_SUPPORT_H
#define PTED_TESTS_UNIT_SERVING_SUPPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/proving.h"
#include "server/daemon/serving/recovery.h"
#include "server/daemon/serving/reload.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/daemon/serving/waits.h"
#include "server/daemon/serving/watch.h"
#include "server/model/model.h"
#include "server/process/alarm.h"
#include "server/process/notify.h"
#include "server/process/offload.h"
#include "server/process/options.h"

struct serving_world {
    struct options options;
    struct alarm alarm; /* zeroed: it cannot be set */
    struct offload offload;
    struct loop loop;
    struct servings servings;
    struct waits waits;
    struct trim trim;
    struct proving proving;
    struct reload reload;
    struct notify notify;
    struct changes changes;
    struct watch watch;
    struct recovery recovery;
    char folder[64]; /* of models */
    /* ---- what the parts have told ---- */
    struct buf log;     /* lines of the log, and of messages to the service manager */
    unsigned ends;      /* changes that have ended */
    unsigned starts;    /* of changes_ops.end_start */
    struct error start; /* of the last one */
    int leaves, enters; /* of servings_ops */
    struct error err;
};

/* A call that waits for a change. */
struct serving_waiter {
    struct waiter waiter;
    unsigned told;
    struct error why;
};

/* The folder is empty; there is a loop, and nothing is served. */
void open_serving_world(struct serving_world *w);

/* Serves nothing yet, for |options|, to which the folder is added as --models. */
void begin_serving(struct serving_world *w, int argc, char *const argv[]);

/* Likewise, and then serves the models of the folder. Their trials are not begun. */
void serve_folder(struct serving_world *w, int argc, char *const argv[]);

void close_serving_world(struct serving_world *w);

/* ---- files ---- */

void path_in_folder(const struct serving_world *w, const char *name, char path[256]);
/* Links to files of tests/models. */
void put_test_file(const struct serving_world *w, const char *name, const char *file);
void put_model_file(const struct serving_world *w, const char *name, const char *model);
void put_damaged_file(const struct serving_world *w, const char *name);
void put_text_file(const struct serving_world *w, const char *name, const char *text);
void drop_file(const struct serving_world *w, const char *name);

/* ---- work for threads, in the order in which it was given ---- */

uint32_t works_waiting(void);
bool is_work_waiting(const uv_work_t *work);
/* Runs |work| as a thread would do, and ends it on the loop. */
void run_work(uv_work_t *work);
/* The first half of it, and the second one. */
void do_work(uv_work_t *work);
void end_work(uv_work_t *work);

/* ---- time ---- */

/* A timer is set; it goes off in |*out_ms|. */
bool is_timer_set(const uv_timer_t *timer, uint64_t *out_ms);
/* Time passes, and timers go off in their order. */
void pass_ms(uint64_t ms);
uint64_t serving_now_ns(void);

/* ---- words ---- */

/* The log since the last call has |text|, or lines that have nothing of it. */
void expect_log(struct serving_world *w, const char *text);
void expect_silence(struct serving_world *w);
void forget_log(struct serving_world *w);

/* ---- models and calls ---- */

/* Owned by the caller. */
struct model *model_of(struct serving_world *w, const char *name);
void expect_ready(struct serving_world *w, const char *name, bool is_ready);

void init_waiter(struct serving_waiter *waiter, const char *model);
void expect_told(const struct serving_waiter *waiter, enum status status, const char *text);

#endif
