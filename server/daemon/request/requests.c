/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/requests.h"

#include "base/check.h"
#include "base/resource.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request_log.h"
#include "server/daemon/request/request_priv.h"
#include "server/http/http.h"

/* ---- for calls ------------------------------------------------------------------------------- */

static struct request *request_of(struct infer *infer)
{
    struct request *request;
    OBJ_CAST(request, LIST_ENTRY(infer, struct request, infer), REQUEST_MAGIC);
    return request;
}

static void go_on(struct infer *infer)
{
    struct request *request = request_of(infer);
    turns_add(&request->requests->uses.loop->turns, &request->turn);
}

static void note_failure(struct infer *infer, const struct error *why, uint32_t index)
{
    request_log_error(request_of(infer), http_status_of(why->code), why, (int)index);
}

static void note_idle(void *owner, uint64_t due_ns)
{
    struct requests *requests;
    OBJ_CAST(requests, owner, REQUESTS_MAGIC);
    changes_watch_idle(requests->uses.changes, due_ns);
}

/* ---- life ------------------------------------------------------------------------------------ */

void requests_init(struct requests *requests, const struct requests_uses *uses)
{
    *requests = (struct requests){.magic = REQUESTS_MAGIC, .uses = *uses};
    share_init_for_one_thread(&requests->admitted, 0, 0);
    list_init(&requests->idle);
    trace_source_init(&requests->traces);
    regions_init(&requests->regions, uses->params);
    seats_init(&requests->seats);
}

void requests_open(struct requests *requests)
{
    OBJ_CHECK(requests, REQUESTS_MAGIC);
    const struct requests_uses *uses = &requests->uses;
    transfers_init(&requests->transfers, uses->loop, uses->servings);
    request_watches_init(&requests->watches, uses->loop);
    requests->calls = (struct infer_env){
        .options = uses->options,
        .params = uses->params,
        .offload = uses->loop->offload,
        .alarm = uses->loop->alarm,
        .regions = &requests->regions,
        .seats = &requests->seats,
        .owner = requests,
        .go_on = go_on,
        .note_failure = note_failure,
        .note_run = request_note_run,
        .note_left = request_note_left,
        .note_idle = note_idle,
    };
}

void requests_fini(struct requests *requests)
{
    OBJ_CHECK(requests, REQUESTS_MAGIC);
    must(requests->busy_count == 0);
    while (!list_is_empty(&requests->idle)) {
        request_free(LIST_ENTRY(requests->idle.next, struct request, link));
    }
    share_fini(&requests->admitted);
    transfers_fini(&requests->transfers);
    regions_fini(&requests->regions);
    seats_fini(&requests->seats);
    access_fini(&requests->access);
}

void requests_resize(struct requests *requests, uint32_t count)
{
    OBJ_CHECK(requests, REQUESTS_MAGIC);
    share_resize(&requests->admitted, count, resource_kept(RESOURCE_REQUESTS, count));
}
