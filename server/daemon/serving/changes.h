/* SPDX-License-Identifier: MIT */
/*
 * Changes of the models (server/model/update.h): one after the other, loaded on a thread and put in
 * place on the loop. The first change is the start; others come from requests, from SIGHUP, or from
 * the watched folders. If the device is lost meanwhile, the change is made again for the new one.
 *
 * Models that a change has replaced are retired: when no call holds them and no sequence is open in
 * them, a thread frees them, so that the loop never waits for the memory of a large model.
 *
 * Models that nobody needs are unloaded between two changes, without one: their files are listed,
 * and the next call loads them.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_CHANGES_H
#define PTED_SERVER_DAEMON_SERVING_CHANGES_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/model/update.h"

struct conf;
struct request;
struct server;
struct serving;

#define CHANGES_MAGIC 0x63686e67u

/* Changes that may wait; the next request for one gets 429. Some of them may be loads because of a
 * call; the others are for administrators. */
#define CHANGES_WAITING_MAX 64
#define CHANGES_LOADS_MAX 48

struct change {
    struct list link; /* in changes->waiting */
    struct update update;
    struct conf *config; /* owned: the settings to load by; NULL: the settings in use */
    bool is_reload;      /* by SIGHUP */
    bool is_load;        /* one of changes->loads, of |client| */
    uint64_t client;
    struct list requests; /* that wait for it, by change_link */
    uint64_t wait_ms;     /* since when it waits for room, on the loop's clock; 0: it does not */
    enum status status;
    struct error err;
};

/* A model that was replaced, and the serving that it runs on. */
struct changes_retired {
    struct model *model;     /* shared: ref held */
    struct serving *serving; /* held */
};

struct changes {
    uint32_t magic;
    struct list waiting; /* oldest first */
    uint32_t waiting_count;
    struct share loads;      /* by client, each until it is made */
    bool awaits_room;        /* the oldest one waits for models to become unused */
    struct change *current;  /* owned; a thread has it. NULL: none */
    struct serving *serving; /* held for |current| */
    uv_work_t work;
    uv_timer_t timer; /* looks whether retired models can go; runs while there are any */
    struct changes_retired *retired; /* owned */
    uint32_t retired_count, retired_capacity;
    struct changes_retired *going; /* owned; a thread frees them. NULL: none */
    uint32_t going_count;
    uv_work_t going_work;
    uint64_t idle_due_ns; /* when to look for idle models, on the monotone clock */
};

void changes_init(struct server *server);

/* All calls are over: frees retired models. The loop has ended. */
void changes_fini(struct server *server);

/* The first models, into the empty repository; server_end_start() is told of the result. */
MUST_CHECK enum status changes_start(struct server *server, struct error *err);

/* Looks for files that have come, changed or gone. With |retries_failed| files that did not load
 * are tried again. Without memory for it the log says so. */
void changes_scan(struct server *server, bool retries_failed);

/* Likewise, also with files that did not load, for the settings |config|, which reload_adopt() or
 * reload_refuse() gets; NULL: for those in use. */
void changes_reload(struct server *server, struct conf *config);

/* A change that a request wants. */
struct changes_order {
    enum update_kind kind; /* UPDATE_LOAD or UPDATE_UNLOAD */
    const char *name;
    bool with_dependents;
};

/*
 * |request| is for the file |name|, which is only listed: it is loaded. An empty |name|: it is for
 * one of the first models, which are loading. request_note_changed() tells when the model can be
 * looked for again. Requests for the same file wait for the same change
 * (server/daemon/serving/waits.h). Otherwise as changes_begin().
 */
MUST_CHECK enum status changes_need(struct request *request, const char *name, struct error *err);

/* Makes that change; request_note_changed() tells the request when it is done. ST_EXHAUSTED,
 * ST_UNAVAILABLE: nothing has changed, and nothing will be told. */
MUST_CHECK enum status changes_begin(struct request *request, const struct changes_order *order,
                                     struct error *err);

/* The daemon stops while the first models are loading: refuses the requests that wait for them. */
void changes_refuse_start(struct server *server);

/* The request waits no more; the change goes on. */
void changes_forget(struct request *request);

/* Unloads models that nobody has needed for long enough (--idle-unload), if it is time to look for
 * them. Returns when to call again; RT_SCHED_NEVER: when changes_watch_idle() says so. */
uint64_t changes_unload_idle(struct server *server, uint64_t now_ns);

/* There may be such models at |due_ns|. */
void changes_watch_idle(struct server *server, uint64_t due_ns);

/* A recovery is over: changes that have waited for it begin. */
void changes_go_on(struct server *server);

/* The device is lost, and with it all sequences: frees the retired models that no call holds. */
void changes_drop_retired(struct server *server);

#endif
