/* SPDX-License-Identifier: MIT */
/*
 * Addresses are numeric: no resolver runs in the daemon. A socket in the file system is created for
 * its owner and group only, before anybody can connect; one that a dead process left behind is
 * replaced, one that somebody listens on is not.
 */
#include "config.h"

#include "server/listener.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <uv.h>

#include "base/check.h"
#include "server/conn.h"
#include "server/log.h"
#include "server/server.h"
#include "server/stream.h"

#define LISTENER_MAGIC 0x6c697374u
#define BACKLOG 4096

struct listener {
    uint32_t magic;
    struct server *server; /* borrowed */
    struct list link;      /* in server->listeners */
    const char *name;      /* borrowed from the options; for messages */
    union stream io;
};

static void on_close(uv_handle_t *handle)
{
    struct listener *listener;
    OBJ_CAST(listener, handle->data, LISTENER_MAGIC);
    free(listener);
}

static void close_listener(struct listener *listener)
{
    list_remove(&listener->link);
    uv_close(&listener->io.handle, on_close);
}

static enum status fail(struct error *err, const char *what, int uv_code)
{
    return error_set(err, status_of_errno(-uv_code), "listen on %s: %s", what,
                     uv_strerror(uv_code));
}

static enum status new_listener(struct server *server, const char *name, bool is_pipe,
                                struct listener **out_listener, struct error *err)
{
    struct listener *listener = calloc(1, sizeof(*listener));
    if (!listener) {
        return error_set(err, ST_EXHAUSTED, "listener: out of memory");
    }
    listener->magic = LISTENER_MAGIC;
    listener->server = server;
    listener->name = name;
    int rc = is_pipe ? uv_pipe_init(&server->loop, &listener->io.pipe, 0)
                     : uv_tcp_init(&server->loop, &listener->io.tcp);
    if (rc < 0) {
        free(listener);
        return fail(err, name, rc);
    }
    listener->io.handle.data = listener;
    list_push_back(&server->listeners, &listener->link);
    *out_listener = listener;
    return ST_OK;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool parse_port(const char *text, int *out_port)
{
    char *end;
    if (*text < '0' || *text > '9') {
        return false;
    }
    long port = strtol(text, &end, 10);
    *out_port = (int)port;
    return *end == '\0' && port <= 65535 && end - text <= 5;
}

static enum status parse_tcp(const char *address, struct sockaddr_storage *out, struct error *err)
{
    const char *colon = strrchr(address, ':');
    char host[64];
    int port;
    bool is_ok = colon && (size_t)(colon - address) < sizeof(host) && parse_port(colon + 1, &port);
    if (is_ok) {
        size_t len = (size_t)(colon - address);
        if (address[0] == '[' && len >= 2 && address[len - 1] == ']') {
            memcpy(host, address + 1, len - 2);
            host[len - 2] = '\0';
            is_ok = uv_ip6_addr(host, port, (struct sockaddr_in6 *)out) == 0;
        } else {
            memcpy(host, address, len);
            host[len] = '\0';
            is_ok = uv_ip4_addr(host, port, (struct sockaddr_in *)out) == 0;
        }
    }
    if (!is_ok) {
        return error_set(err, ST_INVALID,
                         "--listen: expected ADDR:PORT, [ADDR6]:PORT or unix:PATH with a numeric "
                         "address, got '%s'",
                         address);
    }
    return ST_OK;
}

static enum status bind_tcp(struct server *server, const char *address, struct error *err)
{
    struct sockaddr_storage storage = {0};
    TRY(parse_tcp(address, &storage, err));
    struct listener *listener;
    TRY(new_listener(server, address, false, &listener, err));
    int rc = uv_tcp_bind(&listener->io.tcp, (const struct sockaddr *)&storage, 0);
    return rc < 0 ? fail(err, address, rc) : ST_OK;
}

/* Nobody answers at |path|, which is a socket: its owner has died. */
static bool is_stale(const char *path)
{
    struct stat st;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (lstat(path, &st) < 0 || !S_ISSOCK(st.st_mode) || strlen(path) >= sizeof(address.sun_path)) {
        return false;
    }
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_refused = fd >= 0 &&
                      connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0 &&
                      errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return is_refused;
}

/* libuv says "permission denied" where there is no such folder. */
static int explain_denied(const char *path)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    struct stat st;
    snprintf(folder, sizeof(folder), "%.*s", slash ? (int)(slash - path) + 1 : 1,
             slash ? path : ".");
    return stat(folder, &st) < 0 ? uv_translate_sys_error(errno) : UV_EACCES;
}

static enum status bind_unix(struct server *server, const char *path, struct error *err)
{
    struct listener *listener;
    TRY(new_listener(server, path, true, &listener, err));
    if (is_stale(path)) {
        unlink(path);
    }
    mode_t mask = umask(0117);
    int rc = uv_pipe_bind(&listener->io.pipe, path);
    umask(mask);
    return rc < 0 ? fail(err, path, rc == UV_EACCES ? explain_denied(path) : rc) : ST_OK;
}

enum status listener_bind(struct server *server, const char *address, struct error *err)
{
    static const char scheme[] = "unix:";
    if (strncmp(address, scheme, sizeof(scheme) - 1) == 0) {
        return bind_unix(server, address + sizeof(scheme) - 1, err);
    }
    return bind_tcp(server, address, err);
}

enum status listener_adopt(struct server *server, int fd, struct error *err)
{
    struct sockaddr_storage address;
    socklen_t len = sizeof(address);
    int accepts = 0;
    socklen_t accepts_len = sizeof(accepts);
    if (getsockname(fd, (struct sockaddr *)&address, &len) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &accepts, &accepts_len) < 0 || !accepts) {
        return error_set(err, ST_INVALID, "descriptor %d: not a listening stream socket", fd);
    }
    bool is_unix = address.ss_family == AF_UNIX;
    struct listener *listener;
    TRY(new_listener(server, "an inherited socket", is_unix, &listener, err));
    int rc = is_unix ? uv_pipe_open(&listener->io.pipe, fd) : uv_tcp_open(&listener->io.tcp, fd);
    return rc < 0 ? fail(err, listener->name, rc) : ST_OK;
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void on_connection(uv_stream_t *stream, int uv_status)
{
    struct listener *listener;
    OBJ_CAST(listener, stream->data, LISTENER_MAGIC);
    if (uv_status < 0) {
        log_line(LOG_WARNING, "accept: %s", uv_strerror(uv_status));
        return;
    }
    conn_accept(listener->server, stream);
}

static void log_address(struct listener *listener)
{
    char text[128] = "?";
    if (listener->io.handle.type == UV_NAMED_PIPE) {
        size_t len = sizeof(text) - 1;
        if (uv_pipe_getsockname(&listener->io.pipe, text, &len) == 0) {
            text[len < sizeof(text) ? len : sizeof(text) - 1] = '\0';
        }
        log_line(LOG_NOTICE, "listening on unix:%s", text);
        return;
    }
    struct sockaddr_storage address;
    int len = sizeof(address);
    if (uv_tcp_getsockname(&listener->io.tcp, (struct sockaddr *)&address, &len) < 0) {
        return;
    }
    if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address;
        uv_ip6_name(in6, text, sizeof(text));
        log_line(LOG_NOTICE, "listening on [%s]:%d", text, ntohs(in6->sin6_port));
    } else {
        const struct sockaddr_in *in4 = (const struct sockaddr_in *)&address;
        uv_ip4_name(in4, text, sizeof(text));
        log_line(LOG_NOTICE, "listening on %s:%d", text, ntohs(in4->sin_port));
    }
}

enum status listener_start_all(struct server *server, struct error *err)
{
    for (struct list *node = server->listeners.next; node != &server->listeners;
         node = node->next) {
        struct listener *listener = LIST_ENTRY(node, struct listener, link);
        int rc = uv_listen(&listener->io.stream, BACKLOG, on_connection);
        if (rc < 0) {
            return fail(err, listener->name, rc);
        }
        log_address(listener);
    }
    return ST_OK;
}

bool listener_has_waiting(const struct server *server)
{
    bool has_waiting = false;
    for (struct list *node = server->listeners.next; node != &server->listeners;
         node = node->next) {
        const struct listener *listener = LIST_ENTRY(node, struct listener, link);
        struct pollfd poll_fd = {.events = POLLIN};
        has_waiting |=
            uv_fileno(&listener->io.handle, &poll_fd.fd) == 0 && poll(&poll_fd, 1, 0) > 0;
    }
    return has_waiting;
}

void listener_close_all(struct server *server)
{
    while (!list_is_empty(&server->listeners)) {
        close_listener(LIST_ENTRY(server->listeners.next, struct listener, link));
    }
}
