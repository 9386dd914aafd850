/* SPDX-License-Identifier: MIT */
/*
 * The daemon as one object: the loop, its addresses, its connections, its requests, its models.
 * Only server.c and main() know it; the parts borrow each other. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVER_H
#define PTED_SERVER_DAEMON_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/check.h"
#include "base/status.h"
#include "server/daemon/api/api.h"
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/drain.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/observe/access_log.h"
#include "server/daemon/observe/metrics.h"
#include "server/daemon/observe/observed.h"
#include "server/daemon/observe/spans.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/changes.h"
#include "server/daemon/serving/proving.h"
#include "server/daemon/serving/recovery.h"
#include "server/daemon/serving/reload.h"
#include "server/daemon/serving/servings.h"
#include "server/daemon/serving/trim.h"
#include "server/daemon/serving/waits.h"
#include "server/daemon/serving/watch.h"
#include "server/daemon/watchdog.h"
#include "server/http/proxies.h"
#include "server/process/alarm.h"
#include "server/process/notify.h"
#include "server/process/offload.h"
#include "server/process/options.h"

#define SERVER_MAGIC 0x73727672u

struct server {
    uint32_t magic;
    const struct options *options; /* borrowed; outlives the server */
    const struct params *params;   /* of |options| */
    struct loop loop;
    struct servings servings;
    struct reload reload;
    struct recovery recovery;
    struct changes changes;
    struct waits waits;
    struct watch watch;
    struct proving proving;
    struct trim trim;
    struct notify notify;
    struct offload offload;
    struct watchdog watchdog;
    struct drain drain;
    struct metrics metrics;
    struct observed observed; /* for operators */
    struct api api;           /* for handlers */
    struct proxies proxies;
    struct tls tls;
    struct access_log access_log;
    struct spans spans;
    struct listeners listeners;
    struct conns conns;
    struct requests requests;

    struct alarm alarm; /* ends jobs that are late and idle sequences, starts what has waited to
                           be joined */
    uv_poll_t deadline; /* of |alarm| */
    uv_signal_t sighup, sigusr1;
    struct error failure; /* of the start; its code is ST_OK if there is none */
};

/* Opens the device, takes or binds the sockets. Nothing is accepted before the start. The process
 * ignores SIGPIPE, which sockets of clients that have left raise. */
MUST_CHECK enum status server_init(struct server *server, const struct options *options,
                                   struct error *err);

/* Listens, and begins to load the first models; until they are loaded, only probes get answers. */
MUST_CHECK enum status server_start(struct server *server, struct error *err);

/* Starts, and serves until a signal has ended it and the last request is answered. Also returns an
 * error of a model that was to be loaded first. */
MUST_CHECK enum status server_run(struct server *server, struct error *err);

/* Call also after a failed server_init(). */
void server_fini(struct server *server);

#endif
