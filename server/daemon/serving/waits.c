/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/serving/waits.h"

#include <stdio.h>

#include "base/check.h"
#include "base/resource.h"
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"

#define NS_PER_MS 1000000u

static struct waits *waits_of(struct server *server)
{
    OBJ_CHECK(&server->waits, WAITS_MAGIC);
    return &server->waits;
}

static struct request *request_at(struct list *link)
{
    struct request *request = LIST_ENTRY(link, struct request, wait_link);
    OBJ_CHECK(request, REQUEST_MAGIC);
    return request;
}

/* Of all its waits together. */
static uint64_t limit_ns(const struct request *request)
{
    return request->server->params->loading_timeout * NS_PER_MS;
}

static uint64_t due_ns(const struct request *request)
{
    uint64_t limit = limit_ns(request);
    uint64_t left = limit > request->infer.waited_ns ? limit - request->infer.waited_ns : 0;
    uint64_t ours = request->wait_began_ns + left, clients = infer_client_due_ns(&request->infer);
    return clients < ours ? clients : ours;
}

enum status waits_begin(struct request *request, struct error *err)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct waits *waits = waits_of(request->server);
    must(list_is_empty(&request->wait_link));
    enum share_taken taken = share_take(&waits->places, request->client.id, 1);
    if (taken != SHARE_TAKEN) {
        return resource_refuse(RESOURCE_LOADING, &waits->places, taken, request->client.id, err);
    }
    request->wait_began_ns = uv_hrtime();
    list_push_back(&waits->requests, &request->wait_link);
    uint64_t due = due_ns(request);
    waits->due_ns = due < waits->due_ns ? due : waits->due_ns;
    alarm_set(&request->server->alarm, due);
    return ST_OK;
}

void waits_end(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    if (!list_is_empty(&request->wait_link)) {
        list_remove(&request->wait_link);
        share_give(&waits_of(request->server)->places, request->client.id, 1);
        request->infer.waited_ns += uv_hrtime() - request->wait_began_ns;
    }
}

/* It has waited until |now_ns|. */
static void refuse(struct request *request, uint64_t now_ns)
{
    struct error err;
    bool is_clients = infer_client_due_ns(&request->infer) <= now_ns;
    uint64_t ns = request->infer.waited_ns;
    const char *name = request->infer.absent[0] ? request->infer.absent : request->match.model;
    char what[MODEL_NAME_MAX + 16] = "the models are"; /* at the start: the name is in a body */
    if (name[0]) {
        snprintf(what, sizeof(what), "model '%s' is", name);
    }
    if (is_clients) {
        error_set(&err, ST_TIMEOUT, "%s still loading after %.6g ms", what,
                  (double)(now_ns - request->infer.arrived_ns) / NS_PER_MS);
    } else {
        error_set(&err, ST_UNAVAILABLE, "%s still loading after %.6g ms (--loading-timeout)", what,
                  (double)ns / NS_PER_MS);
    }
    request_note_changed(request, err.code, &err);
}

uint64_t waits_expire(struct server *server, uint64_t now_ns)
{
    struct waits *waits = waits_of(server);
    struct list *next;
    if (now_ns < waits->due_ns) {
        return waits->due_ns;
    }
    waits->due_ns = RT_SCHED_NEVER;
    for (struct list *at = waits->requests.next; at != &waits->requests; at = next) {
        struct request *request = request_at(at);
        next = at->next;
        uint64_t due = due_ns(request);
        if (due <= now_ns) {
            changes_forget(request);
            refuse(request, now_ns);
        } else {
            waits->due_ns = due < waits->due_ns ? due : waits->due_ns;
        }
    }
    return waits->due_ns;
}

void waits_init(struct server *server)
{
    struct waits *waits = &server->waits;
    uint64_t count = server->params->loading_count_max;
    waits->magic = WAITS_MAGIC;
    waits->due_ns = RT_SCHED_NEVER;
    list_init(&waits->requests);
    share_init(&waits->places, count, resource_kept(RESOURCE_LOADING, count));
}

void waits_fini(struct server *server)
{
    struct waits *waits = &server->waits;
    if (waits->magic == WAITS_MAGIC) { /* else the start failed before */
        share_fini(&waits->places);
        waits->magic = 0;
    }
}
