/* SPDX-License-Identifier: MIT */
/* Limits are low, so that short inputs reach them. Bodies of 512 bytes or more are parsed on
 * another thread, so that clients can disconnect meanwhile. */
#include "config.h"

#include "tests/fuzz/conn_world.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/connection/http2.h"
#include "server/daemon/connection/listener.h"
#include "server/daemon/request/request.h"
#include "server/http/transport_socket.h"
#include "server/process/log.h"
#include "server/process/options.h"

#define RECEIVED_BYTES_MAX (8 << 20)
/* More turns than any input needs: beyond them the server waits for something that never comes. */
#define TURNS_MAX 200000
#define QUIET_TURNS 3

static struct world the_world;
static char folder[] = "/tmp/pted-fuzz-XXXXXX";
static struct sockaddr_un address = {.sun_family = AF_UNIX};

/* ---- the server ------------------------------------------------------------------------------ */

static void stop(void)
{
    server_fini(&the_world.server);
    unlink(address.sun_path);
    rmdir(folder);
}

static void start_server(struct server *server, const char *listen, const char *model)
{
    static struct options options;
    const char *argv[] = {
        "pted",
        "--workers=1",
        "--log-level=error",
        "--body-bytes-max=1M",
        "--header-bytes-max=4K",
        "--header-count-max=16",
        "--url-bytes-max=256",
        "--inline-bytes-max=512",
        "--pipeline-bytes-max=1K",
        "--connection-count-max=4",
        "--listen",
        listen,
        model,
    };
    struct error err = {0};
    int argc = sizeof(argv) / sizeof(argv[0]);
    options_init(&options);
    signal(SIGPIPE, SIG_IGN); /* as pted's main() does */
    if (options_add_arguments(&options, argc, (char *const *)(uintptr_t)argv, &err) != ST_OK ||
        log_open(NULL, options.log_level, &err) != ST_OK ||
        server_init(server, &options, &err) != ST_OK || server_start(server, &err) != ST_OK) {
        fprintf(stderr, "the server does not start: %s\n", err.text);
        exit(1);
    }
    while (server->loop.is_starting) {
        uv_run(&server->loop.uv, UV_RUN_ONCE);
    }
}

struct world *world_get(void)
{
    static bool has_started;
    char listen[sizeof(address.sun_path) + 8], model[4096];
    if (!has_started) {
        const char *top = getenv("top_srcdir");
        must(mkdtemp(folder));
        snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
        snprintf(listen, sizeof(listen), "unix:%s", address.sun_path);
        snprintf(model, sizeof(model), "%s/tests/models/add.pte", top ? top : "..");
        start_server(&the_world.server, strdup(listen), strdup(model));
        atexit(stop);
        has_started = true;
    }
    return &the_world;
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Shrinks the server's send buffer, so that few unread answers fill it. */
static void shrink_last(struct server *server)
{
    const int least = 1;
    struct session *last = LIST_ENTRY(server->conns.all.prev, struct session, link);
    must(!list_is_empty(&server->conns.all)); /* accepting takes one turn */
    int fd = transport_socket_fd(last->transport);
    if (fd >= 0) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &least, sizeof(least));
    }
}

struct client *world_connect(struct world *world)
{
    if (world->client_count == WORLD_CLIENTS_MAX) {
        return NULL;
    }
    struct client *client = &world->clients[world->client_count++];
    *client = (struct client){.is_reading = true};
    buf_init(&client->received, RECEIVED_BYTES_MAX);
    client->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc = connect(client->fd, (const struct sockaddr *)&address, sizeof(address));
    must(rc == 0);
    world_turn(world);
    shrink_last(&world->server);
    return client;
}

static bool receive(struct client *client)
{
    char bytes[16384];
    bool has_some = false;
    while (client->fd >= 0 && client->is_reading && !client->has_end) {
        ssize_t count = recv(client->fd, bytes, sizeof(bytes), 0);
        if (count < 0 && errno == EAGAIN) {
            break;
        }
        client->has_end = count <= 0;
        buf_add(&client->received, bytes, count > 0 ? (size_t)count : 0);
        has_some = true;
    }
    return has_some;
}

void world_send(struct world *world, struct client *client, struct span bytes)
{
    int refusals = 0;
    while (client->fd >= 0 && !client->is_shut_down && bytes.len) {
        ssize_t sent = send(client->fd, bytes.ptr, bytes.len, MSG_NOSIGNAL);
        if (sent > 0) {
            bytes = span_of(bytes.ptr + sent, bytes.len - (size_t)sent);
            refusals = 0;
        } else if (sent < 0 && errno == EAGAIN && refusals++ < QUIET_TURNS) {
            world_settle(world);
        } else {
            client->is_short = true;
            return;
        }
    }
}

void world_shut_down(struct client *client)
{
    if (client->fd >= 0) {
        shutdown(client->fd, SHUT_WR);
        client->is_shut_down = true;
    }
}

void world_close(struct client *client)
{
    if (client->fd >= 0) {
        close(client->fd);
        client->fd = -1;
    }
}

/* ---- the loop -------------------------------------------------------------------------------- */

#define EACH_SESSION(server, node, session)                                                        \
    for (struct list *node = (server)->conns.all.next, *next_;                                     \
         node != &(server)->conns.all && (next_ = node->next, true); node = next_)                 \
        for (struct session *session = LIST_ENTRY(node, struct session, link); session;            \
             session = NULL)

void world_turn(struct world *world)
{
    uv_run(&world->server.loop.uv, UV_RUN_NOWAIT);
    for (size_t i = 0; i < world->client_count; i++) {
        receive(&world->clients[i]);
    }
}

/* What all connections hold, and do. */
struct look {
    uint32_t held;
    bool is_waited_for;
    size_t sum; /* changes whenever something happens */
};

static void look_at_exchange(const struct exchange *exchange, struct look *look)
{
    look->held += exchange->request != NULL;
    look->is_waited_for |=
        exchange->incoming == EXCHANGE_RECEIVED && !exchange_is_answering(exchange);
    look->sum = look->sum * 31 + exchange->incoming + 4 * exchange->outgoing;
}

/* HTTP/2 alone has a word for the end of the daemon. */
static void look_at_session(const struct session *session, struct look *look)
{
    struct list *link = &((struct session *)(uintptr_t)session)->link;
    look->sum = look->sum * 31 + session->state;
    look->sum += transport_pending(session->transport, TRANSPORT_IN);
    if (!session->ops->warn) {
        const struct conn *conn = LIST_ENTRY(link, struct conn, session.link);
        look_at_exchange(&conn->exchange, look);
        look->sum = look->sum * 31 + conn->state + conn->ahead.len;
        return;
    }
    const struct http2 *http2 = LIST_ENTRY(link, struct http2, session.link);
    look->sum = look->sum * 31 + http2->ahead.len + http2->unsent_bytes;
    for (struct list *node = http2->streams.next; node != &http2->streams; node = node->next) {
        look_at_exchange(&LIST_ENTRY(node, struct http2_stream, link)->exchange, look);
    }
}

static struct look look_at_all(struct server *server)
{
    struct look look = {.sum = server->conns.count};
    EACH_SESSION(server, node, session)
    {
        look_at_session(session, &look);
    }
    return look;
}

/* Is something running on another thread that will end by itself? */
static bool is_working(struct server *server)
{
    struct look look = look_at_all(server);
    return look.is_waited_for || server->requests.busy_count > look.held;
}

/* A number that changes whenever something happens. */
static size_t progress(struct world *world)
{
    size_t sum = look_at_all(&world->server).sum;
    for (size_t i = 0; i < world->client_count; i++) {
        sum = sum * 31 + world->clients[i].received.len + world->clients[i].has_end;
    }
    return sum;
}

void world_settle(struct world *world)
{
    size_t before = progress(world);
    for (int quiet = 0, turns = 0; quiet < QUIET_TURNS; turns++) {
        must(turns < TURNS_MAX);
        if (is_working(&world->server)) {
            uv_run(&world->server.loop.uv, UV_RUN_ONCE);
        }
        world_turn(world);
        size_t now = progress(world);
        quiet = now == before && !is_working(&world->server) ? quiet + 1 : 0;
        before = now;
    }
}

/* Calls |fn| for all connections except the first client's, which is first in the list. */
static void do_to_others(struct world *world, void (*fn)(struct session *session))
{
    bool is_first = true;
    EACH_SESSION(&world->server, node, session)
    {
        if (!is_first) {
            fn(session);
        }
        is_first = false;
    }
}

static void time_out(struct session *session)
{
    session->ops->check_deadline(session, UINT64_MAX);
}

void world_time_out(struct world *world)
{
    do_to_others(world, time_out);
}

static void drain(struct session *session)
{
    session->ops->drain(session);
}

void world_drain(struct world *world)
{
    do_to_others(world, drain);
}

void world_end(struct world *world)
{
    struct server *server = &world->server;
    for (size_t i = 0; i < world->client_count; i++) {
        world_close(&world->clients[i]);
    }
    for (int turns = 0; server->conns.count || server->requests.busy_count; turns++) {
        must(turns < TURNS_MAX);
        uv_run(&server->loop.uv, UV_RUN_ONCE);
    }
    for (size_t i = 0; i < world->client_count; i++) {
        buf_fini(&world->clients[i].received);
    }
    world->client_count = 0;
}
