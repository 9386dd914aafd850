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

#include "base/counter.h"
#include "base/list.h"
#include "base/share.h"
#include "base/status.h"
#include "server/model/update.h"

struct conf;
struct loop;
struct notify;
struct proving;
struct reload;
struct serving;
struct servings;
struct trim;
struct waiter;
struct waits;

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
    struct list waiters; /* by change_link */
    uint64_t wait_ms;    /* since when it waits for room, on the loop's clock; 0: it does not */
    enum status status;
    struct error err;
};

/* A model that was replaced, and the serving that it runs on. */
struct changes_retired {
    struct model *model;     /* shared: ref held */
    struct serving *serving; /* held */
};

/* Why a model was unloaded. */
enum changes_unload {
    CHANGES_IDLE,      /* nobody needed it for --idle-unload */
    CHANGES_ASKED,     /* likewise, for the keep_alive of its last request */
    CHANGES_DISPLACED, /* others needed its memory */
    CHANGES_ORDERED,   /* by a request of an administrator */
    CHANGES_GONE,      /* its file has gone or does not load any more */
    CHANGES_UNLOADS
};

/* For metrics; any thread reads them. */
struct changes_counts {
    struct counter made, refused;
    struct counter unloads[CHANGES_UNLOADS]; /* models */
};

/* What the daemon as a whole is told. */
struct changes_ops {
    /* The first models are loaded, or |err| says why not. */
    void (*end_start)(void *owner, enum status status, const struct error *err);
    /* A change is over, and nobody waits for it any more. */
    void (*end)(void *owner);
};

/* What changes use; all of it is borrowed. */
struct changes_uses {
    struct loop *loop;
    struct servings *servings;
    struct reload *reload; /* has the settings of models */
    struct waits *waits;
    struct proving *proving;
    struct trim *trim;
    struct notify *notify;
    const struct changes_ops *ops;
    void *owner; /* given to |ops| */
};

struct changes {
    uint32_t magic;
    struct changes_uses uses;
    struct changes_counts counts;
    unsigned holds;      /* of changes_hold(): none begins */
    bool keeps_idle;     /* of changes_keep_idle() */
    struct list waiting; /* oldest first */
    uint32_t waiting_count;
    struct share loads;      /* by client, each until it is made */
    bool awaits_room;        /* the oldest one waits for models to become unused */
    struct change *current;  /* owned; a thread has it. NULL: none */
    struct serving *serving; /* held for |current| */
    uv_work_t work;
    uv_timer_t timer; /* looks whether retired models can go; runs while there are any */
    struct changes_retired *retired; /* owned */
    uint32_t retired_count;
    size_t retired_capacity;
    struct changes_retired *going; /* owned; a thread frees them. NULL: none */
    uint32_t going_count;
    uv_work_t going_work;
    uint64_t idle_due_ns; /* when to look for idle models, on the monotone clock */
};

void changes_init(struct changes *changes, const struct changes_uses *uses);

/* Call when all calls are over: frees retired models. The loop has ended. */
void changes_fini(struct changes *changes);

/* Starts the change that brings the first models, into the empty repository; end_start() is told of
 * the result. */
MUST_CHECK enum status changes_start(struct changes *changes, struct error *err);

/* Looks for files that have come, changed or gone. With |retries_failed| files that did not load
 * are tried again. Without memory for it the log says so. */
void changes_scan(struct changes *changes, bool retries_failed);

/* Does the same, also with files that did not load, for the settings |config|, which reload_adopt()
 * or reload_refuse() gets; NULL: for those in use. */
void changes_reload(struct changes *changes, struct conf *config);

/* A change that somebody wants. */
struct changes_order {
    enum update_kind kind; /* UPDATE_LOAD or UPDATE_UNLOAD */
    const char *name;
    bool with_dependents;
};

/*
 * |waiter| is for the file |name|, which is only listed: it is loaded. An empty |name|: it is for
 * one of the first models, which are loading. waiter->done() tells when the model can be looked for
 * again. Waiters for the same file wait for the same change (server/daemon/serving/waits.h).
 * Otherwise as changes_begin().
 */
MUST_CHECK enum status changes_need(struct changes *changes, struct waiter *waiter,
                                    const char *name, struct error *err);

/* Makes that change; waiter->done() tells when it is done. ST_EXHAUSTED, ST_UNAVAILABLE: nothing
 * has changed, and nothing will be told. */
MUST_CHECK enum status changes_begin(struct changes *changes, struct waiter *waiter,
                                     const struct changes_order *order, struct error *err);

/* Call when the daemon stops while the first models are loading: refuses those that wait for
 * them. */
void changes_refuse_start(struct changes *changes);

/* |waiter| waits no more; the change goes on. */
void changes_forget(struct changes *changes, struct waiter *waiter);

/* Unloads models that nobody has needed for long enough (--idle-unload), if it is time to look for
 * them. Returns when to call again; ALARM_NEVER: when changes_watch_idle() says so. */
uint64_t changes_unload_idle(struct changes *changes, uint64_t now_ns);

/* Tells that there may be such models at |due_ns|. */
void changes_watch_idle(struct changes *changes, uint64_t due_ns);

/* Lets no change begin between the two: a recovery is under way, or files are being looked at. A
 * change that a thread has prepared meanwhile is made again. */
void changes_hold(struct changes *changes);
void changes_release(struct changes *changes);

/* While |keeps|, models that nobody uses stay: a recovery loads them all again. */
void changes_keep_idle(struct changes *changes, bool keeps);

/* Has a thread a change? Then models may come and go in a moment. */
bool changes_is_busy(const struct changes *changes);

/* Call when the device is lost, and with it all sequences: frees the retired models that no call
 * holds. */
void changes_drop_retired(struct changes *changes);

#endif
