/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/connection/turns.h"

#include "base/check.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"

static void on_prepare(uv_prepare_t *prepare)
{
    struct server *server = server_of(prepare->data);
    OBJ_CHECK(&server->turns, TURNS_MAGIC);
    server->turns.number++;
    uint64_t ns = turn_watch_end(&server->loop.watch);
    if (ns > 0) {
        histogram_add(&server->metrics.turns, &histogram_times, ns);
    }
}

bool turns_has_time(struct server *server)
{
    struct turns *turns = &server->turns;
    OBJ_CHECK(turns, TURNS_MAGIC);
    if (server->loop.watch.begin_ns == 0) {
        turn_watch_enter(&server->loop.watch, TURN_OTHER);
    }
    return uv_hrtime() - server->loop.watch.begin_ns < TURNS_NS;
}

static void run_requests(struct server *server)
{
    struct turns *turns = &server->turns;
    while (turns->requests) {
        struct request *request = turns->requests;
        turns->requests = request->next;
        if (!turns->requests) {
            turns->last = &turns->requests;
        }
        request_go_on(request);
        if (!turns_has_time(server)) {
            return;
        }
    }
}

static void run_conns(struct server *server)
{
    struct turns *turns = &server->turns;
    while (!list_is_empty(&turns->conns)) {
        struct conn *conn = LIST_ENTRY(turns->conns.next, struct conn, turn_link);
        list_remove(&conn->turn_link);
        turns->first = conn;
        conn_go_on(conn);
        if (!turns_has_time(server)) {
            return;
        }
    }
}

/* At least one of each, so that both rows move whatever else the turn has done. */
static void on_idle(uv_idle_t *idle)
{
    struct server *server = server_of(idle->data);
    struct turns *turns = &server->turns;
    turn_watch_enter(&server->loop.watch, TURN_COLLECT);
    run_requests(server);
    run_conns(server);
    turns->first = NULL;
    if (!turns->requests && list_is_empty(&turns->conns)) {
        uv_idle_stop(idle);
    }
}

void turns_init(struct server *server)
{
    struct turns *turns = &server->turns;
    turns->magic = TURNS_MAGIC;
    list_init(&turns->conns);
    turns->last = &turns->requests;
    uv_prepare_init(&server->loop.uv, &turns->prepare);
    uv_idle_init(&server->loop.uv, &turns->idle);
    uv_prepare_start(&turns->prepare, on_prepare);
}

bool turns_may_begin(struct conn *conn)
{
    struct turns *turns = &conn->server->turns;
    OBJ_CHECK(turns, TURNS_MAGIC);
    bool is_alone = !conn->server->transfers.is_evicting; /* else another message is being read */
    if (is_alone && turns->first == conn) {
        turns->first = NULL; /* with one message */
        return true;
    }
    if (is_alone && list_is_empty(&turns->conns) && turns_has_time(conn->server)) {
        return true;
    }
    if (list_is_empty(&conn->turn_link)) {
        list_push_back(&turns->conns, &conn->turn_link);
        uv_idle_start(&turns->idle, on_idle);
    }
    return false;
}

void turns_add(struct server *server, struct request *request)
{
    struct turns *turns = &server->turns;
    OBJ_CHECK(turns, TURNS_MAGIC);
    must(*turns->last == NULL); /* the end of the row */
    *turns->last = request;
    while (request) {
        turns->last = &request->next;
        request = request->next;
    }
    if (turns_has_time(server)) {
        run_requests(server);
    }
    if (turns->requests) {
        uv_idle_start(&turns->idle, on_idle);
    }
}

void turns_end(struct server *server)
{
    while (server->turns.requests) {
        run_requests(server);
    }
}
