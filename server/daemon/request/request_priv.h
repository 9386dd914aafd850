/* SPDX-License-Identifier: MIT */
/* Shared by the files of this folder. Threads as in request.h. */
#ifndef PTED_SERVER_DAEMON_REQUEST_REQUEST_PRIV_H
#define PTED_SERVER_DAEMON_REQUEST_REQUEST_PRIV_H

#include <stddef.h>

#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/request/routes.h"

static inline const struct route *request_route(const struct request *request)
{
    const struct route_match *match = &request->match;
    return &request->requests->uses.routes[match->id == ROUTE_COUNT ? match->none : match->id];
}

/* ---- request_work.c -------------------------------------------------------------------------- */

/* Chooses the place for the present step (server/daemon/infer/work.h), which handles |*out_known|
 * bytes as far as that is known before it. */
enum work_place request_work_place(const struct request *request, uint64_t *out_known);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Call when the change that the request has begun is made, or cannot be, for the reason |err|; or
 * the file that it waits for is loaded. */
void request_note_changed(struct waiter *waiter, enum status status, const struct error *err);

/* Call when the run that infer_submit() began has ended with |status|. Any thread. */
void request_note_run(struct infer *infer, enum status status);

/* Call when the request is over and nothing of it runs any more: infer_leave(). Any thread. */
void request_note_left(struct infer *infer);

/* Goes on behind step READ, or ends now. The request may be over then. */
void request_proceed(struct request *request);
void request_leave(struct request *request);

/* ---- request_take.c -------------------------------------------------------------------------- */

/* Call when the results of the job are gone, or belong to the client. */
void request_release_job(struct request *request);

/* Lets the exchange go on without the request, which is over. */
void request_let_exchange_go(struct request *request);

/* Undoes request_take(): the request is over, and may be taken again. */
void request_give_back(struct request *request);

#endif
