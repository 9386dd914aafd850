/* SPDX-License-Identifier: MIT */
/*
 * All requests, and what they share: who may ask, transfers, places of clients, what their calls
 * use, and idle requests to be used again. It knows no protocol, no connection and no daemon: who
 * makes it lends it the parts below requests (struct requests_uses), and is told what concerns the
 * parts above them (struct requests_ops). Loop thread, except for parts that say otherwise.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUESTS_H
#define PTED_SERVER_DAEMON_REQUEST_REQUESTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/list.h"
#include "base/share.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/infer/regions.h"
#include "server/daemon/infer/seats.h"
#include "server/daemon/request/access.h"
#include "server/daemon/request/request_watch.h"
#include "server/daemon/request/trace.h"
#include "server/daemon/request/transfers.h"

struct api;
struct changes;
struct loop;
struct options;
struct params;
struct proxies;
struct recovery;
struct request;
struct route;
struct servings;
struct trim;
struct waits;

#define REQUESTS_MAGIC 0x72717374u

/* What the parts above requests are told, or asked. */
struct requests_ops {
    /* |request| is over, or its client has gone; the exchange is still known. */
    void (*note_end)(void *owner, struct request *request);
    /* A request whose client has gone is over. */
    void (*note_gone)(void *owner);
    /* Does a trace begin with a call that names none? Then |*out_trace| is that trace. */
    bool (*begin_trace)(void *owner, struct trace *out_trace);
};

/* What requests use; all of it is borrowed. */
struct requests_uses {
    const struct options *options;
    const struct params *params; /* of |options| */
    struct loop *loop;
    struct servings *servings;
    struct changes *changes;
    struct waits *waits;
    struct recovery *recovery;
    struct trim *trim;
    const struct proxies *proxies;
    const struct route *routes; /* ROUTE_ROW_COUNT rows */
    const struct api *api;      /* for their handlers */
    const struct requests_ops *ops;
    void *owner; /* given to |ops| */
};

struct requests {
    uint32_t magic;
    struct requests_uses uses;
    struct access access;
    struct transfers transfers;
    struct share admitted;      /* requests that have been admitted, by client */
    struct trace_source traces; /* ids of spans */
    struct regions regions;     /* of shared memory; any thread */
    struct seats seats;         /* any thread */
    struct request_watches watches;
    struct infer_env calls;     /* what calls use */
    struct list idle;           /* to be used again */
    uint32_t idle_count;
    uint32_t busy_count; /* includes requests whose client has gone */
};

/* Begins with none; nobody is admitted yet. */
void requests_init(struct requests *requests, const struct requests_uses *uses);

/* Call once the loop is initialised, with its alarm and its threads. */
void requests_open(struct requests *requests);

/* None is busy any more, and there is no exchange. */
void requests_fini(struct requests *requests);

/* Admits so many at a time. */
void requests_resize(struct requests *requests, uint32_t count);

#endif
