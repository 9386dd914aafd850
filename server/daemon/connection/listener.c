/* SPDX-License-Identifier: MIT */
/*
 * Our own sockets instead of libuv's streams. libuv stops watching a socket when a connection
 * cannot be taken, and repeats accept() endlessly while it fails (uv__server_io()).
 *
 * A socket in the file system is created for its owner and group only, before a client can connect.
 * A socket that a dead process left behind is replaced; one with a listening process is not.
 */
#include "config.h"

#include "server/daemon/connection/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
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
#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/opening.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/loop/watched.h"
#include "server/daemon/request/exchange.h"
#include "server/http/address.h"
#include "server/http/client.h"
#include "server/http/proxies.h"
#include "server/http/transport_proxy.h"
#include "server/http/transport_socket.h"
#include "server/process/log.h"
#include "server/process/notify.h"
#include "server/process/options.h"

#define LISTENER_MAGIC 0x6c73746eu
#define ADMIN_ADDRESS_MAX 256
#define BACKLOG 4096
#define SOCKET_MASK 0117 /* rw for the owner and the group */
/* Connections of one listener in one turn of the loop; connected clients have their turn, too. */
#define ACCEPTS_MAX 64
/* Pause after an error that another attempt now would only repeat. */
#define RETRY_MS 100

/* The clients that a socket is for, and whether it speaks TLS. */
struct listener_kind {
    enum listener_role role;
    bool is_tls, is_grpc;
};

struct listener {
    uint32_t magic;
    struct listeners *listeners; /* borrowed */
    struct list link;            /* in listeners->all */
    int fd;                      /* owned */
    uv_poll_t poll;              /* of |fd| */
    struct address address;
    struct listener_kind kind;
    bool is_bound;       /* created by us ... */
    struct stat made;    /* ... with this file, if it has a path: that is removed at the end */
    uint64_t accepted;   /* clients that were turned away included */
    struct watched seen; /* set by the watchdog */
};

static void on_close(uv_handle_t *handle)
{
    struct listener *listener;
    OBJ_CAST(listener, handle->data, LISTENER_MAGIC);
    listener->magic = 0;
    free(listener);
}

/* Removes the file of the socket, unless another daemon has put its own into that place. */
static void remove_path(const struct listener *listener)
{
    const char *path = address_path(&listener->address);
    const struct stat *made = &listener->made;
    struct stat now;
    if (path && listener->is_bound && lstat(path, &now) == 0 && now.st_ino == made->st_ino &&
        now.st_dev == made->st_dev) {
        unlink(path);
    }
}

static void close_listener(struct listener *listener)
{
    OBJ_CHECK(listener, LISTENER_MAGIC);
    remove_path(listener);
    list_remove(&listener->link);
    uv_close((uv_handle_t *)&listener->poll, on_close);
    close(listener->fd);
}

/* Takes over |fd|, even if it fails. */
static enum status add_listener(struct listeners *listeners, int fd, struct listener **out_listener,
                                struct error *err)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    struct listener *listener = calloc(1, sizeof(*listener));
    int rc = listener ? uv_poll_init(&listeners->loop->uv, &listener->poll, fd) : UV_ENOMEM;
    if (rc < 0) {
        free(listener);
        close(fd);
        return error_set(err, ST_EXHAUSTED, "listener: %s", uv_strerror(rc));
    }
    listener->magic = LISTENER_MAGIC;
    listener->listeners = listeners;
    listener->fd = fd;
    listener->poll.data = listener;
    listener->address.len = sizeof(listener->address.storage);
    int named =
        getsockname(fd, (struct sockaddr *)&listener->address.storage, &listener->address.len);
    must(named == 0);
    list_push_back(&listeners->all, &listener->link);
    *out_listener = listener;
    return ST_OK;
}

/* ---- binding --------------------------------------------------------------------------------- */

/* The socket has no listening process: its owner has died. */
static bool is_stale(const struct address *address)
{
    struct stat st;
    if (lstat(address_path(address), &st) < 0 || !S_ISSOCK(st.st_mode)) {
        return false;
    }
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_refused = fd >= 0 &&
                      connect(fd, (const struct sockaddr *)&address->storage, address->len) < 0 &&
                      errno == ECONNREFUSED;
    if (fd >= 0) {
        close(fd);
    }
    return is_refused;
}

/* Returns 0 or an errno. */
static int bind_fd(int fd, const struct address *address)
{
    const int one = 1;
    const char *path = address_path(address);
    if (path && is_stale(address)) {
        unlink(path);
    }
    if (!path) {
        (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
    }
    mode_t mask = umask(SOCKET_MASK);
    int rc = bind(fd, (const struct sockaddr *)&address->storage, address->len);
    int number = errno;
    umask(mask);
    return rc < 0 ? number : 0;
}

/* |address| receives the port that the system has chosen; |out_errno| is the reason of a failure,
 * or 0. */
static enum status bind_address(struct listeners *listeners, const char *text,
                                enum listener_role role, struct address *address, int *out_errno,
                                struct error *err)
{
    bool is_tls = address->is_tls, is_grpc = address->is_grpc;
    int fd = socket(address->storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    *out_errno = fd < 0 ? errno : bind_fd(fd, address);
    if (*out_errno) {
        if (fd >= 0) {
            close(fd);
        }
        return error_set(err, status_of_errno(*out_errno), "listen on %s: %s", text,
                         strerror(*out_errno));
    }
    struct listener *listener;
    TRY(add_listener(listeners, fd, &listener, err));
    const char *path = address_path(&listener->address);
    listener->is_bound = true;
    if (path && lstat(path, &listener->made) < 0) {
        listener->made = (struct stat){0}; /* it is gone already */
    }
    listener->kind = (struct listener_kind){role, is_tls, is_grpc};
    places_add_role(&listeners->conns->places, role);
    listener->address.is_tls = is_tls;
    listener->address.is_grpc = is_grpc;
    *address = listener->address;
    return ST_OK;
}

/* The machine has no such address: no IPv6, or no network of that kind. */
static bool is_absent(int number)
{
    return number == EADDRNOTAVAIL || number == EAFNOSUPPORT;
}

/* Binds one --listen (server/http/address.h), without accepting yet. If a name has several
 * addresses all are bound, to one port. Addresses of a family that this machine lacks are left out
 * as long as one remains. */
static enum status bind_text(struct listeners *listeners, const char *text, enum listener_role role,
                             struct error *err)
{
    struct address addresses[ADDRESS_COUNT_MAX];
    uint32_t count, bound = 0;
    must(!address_is_tls(text) || listeners->tls->context); /* conf_read() has looked */
    TRY(address_resolve(text, addresses, &count, err));
    for (uint32_t i = 0; i < count; i++) {
        int number;
        if (bound) { /* port 0 is chosen only once */
            address_set_port(&addresses[i], address_port(&addresses[i - 1]));
        }
        enum status status = bind_address(listeners, text, role, &addresses[i], &number, err);
        bool is_last_chance = i + 1 == count && bound == 0;
        if (status != ST_OK && (!is_absent(number) || is_last_chance)) {
            return status;
        }
        bound += status == ST_OK;
    }
    return ST_OK;
}

static bool has_option(int fd, int option, int wanted)
{
    int value = 0;
    socklen_t len = sizeof(value);
    return getsockopt(fd, SOL_SOCKET, option, &value, &len) == 0 && value == wanted;
}

/* The kind of a socket that systemd hands over, by its name (FileDescriptorName=). */
static struct listener_kind find_kind(const char *name)
{
    static const struct {
        const char *name;
        struct listener_kind kind;
    } rows[] = {
        {"admin", {LISTENER_ADMIN, false, false}},   {"admin-tls", {LISTENER_ADMIN, true, false}},
        {"health", {LISTENER_HEALTH, false, false}}, {"health-tls", {LISTENER_HEALTH, true, false}},
        {"grpc", {LISTENER_PUBLIC, false, true}},    {"grpc-tls", {LISTENER_PUBLIC, true, true}},
        {"tls", {LISTENER_PUBLIC, true, false}},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return rows[i].kind;
        }
    }
    return (struct listener_kind){LISTENER_PUBLIC, false, false};
}

/* Takes over a bound stream socket. */
static enum status adopt(struct listeners *listeners, int fd, struct listener_kind kind,
                         struct error *err)
{
    struct listener *listener;
    if (!has_option(fd, SO_TYPE, SOCK_STREAM) || !has_option(fd, SO_ACCEPTCONN, 1)) {
        return error_set(err, ST_INVALID, "descriptor %d: not a listening stream socket", fd);
    }
    if (kind.is_tls && !listeners->tls->context) {
        return error_set(err, ST_INVALID, "descriptor %d: TLS needs --tls-cert FILE", fd);
    }
    TRY(add_listener(listeners, fd, &listener, err));
    listener->kind = kind;
    places_add_role(&listeners->conns->places, kind.role);
    listener->address.is_tls = kind.is_tls;
    listener->address.is_grpc = kind.is_grpc;
    return ST_OK;
}

/* systemd's folder for sockets: the first one, if there are several. */
static enum status bind_runtime_directory(struct listeners *listeners, struct error *err)
{
    const char *folder = getenv("RUNTIME_DIRECTORY");
    char text[ADMIN_ADDRESS_MAX];
    if (!folder || !*folder) {
        return ST_OK;
    }
    int len =
        snprintf(text, sizeof(text), "unix:%.*s/admin.sock", (int)strcspn(folder, ":"), folder);
    return len > 0 && (size_t)len < sizeof(text)
               ? bind_text(listeners, text, LISTENER_ADMIN, err)
               : error_set(err, ST_INVALID, "RUNTIME_DIRECTORY: the path is too long");
}

static enum status bind_list(struct listeners *listeners, const struct option_texts *list,
                             enum listener_role role, struct error *err)
{
    for (uint32_t i = 0; i < list->count; i++) {
        TRY(bind_text(listeners, list->items[i], role, err));
    }
    return ST_OK;
}

enum status listeners_bind_all(struct listeners *listeners, struct error *err)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    const struct options *options = listeners->options;
    bool has_public = options->listen.count > 0;
    for (uint32_t i = 0; i < listeners->notify->listen_count; i++) {
        struct listener_kind kind = find_kind(notify_listen_name(listeners->notify, i));
        has_public |= kind.role == LISTENER_PUBLIC;
        TRY(adopt(listeners, NOTIFY_LISTEN_FD + (int)i, kind, err));
    }
    TRY(bind_list(listeners, &options->listen, LISTENER_PUBLIC, err));
    TRY(has_public ? ST_OK : bind_text(listeners, OPTIONS_LISTEN, LISTENER_PUBLIC, err));
    TRY(bind_list(listeners, &options->admin_listen, LISTENER_ADMIN, err));
    TRY(bind_list(listeners, &options->health_listen, LISTENER_HEALTH, err));
    return options->admin_listen.count ? ST_OK : bind_runtime_directory(listeners, err);
}

/* ---- accepting ------------------------------------------------------------------------------- */

static void on_readable(uv_poll_t *poll, int uv_status, int events);

static struct listener *of_link(struct list *link)
{
    struct listener *listener;
    OBJ_CAST(listener, LIST_ENTRY(link, struct listener, link), LISTENER_MAGIC);
    return listener;
}

/* Clients of a socket that was handed over wait in its queue for the first models: they come before
 * the daemon starts, and while it is restarted. */
static bool awaits_models(const struct listener *listener)
{
    return listener->listeners->loop->is_starting && !listener->is_bound &&
           listener->kind.role != LISTENER_HEALTH;
}

static void start(struct listener *listener)
{
    if (awaits_models(listener)) {
        return;
    }
    int rc = uv_poll_start(&listener->poll, UV_READABLE, on_readable);
    must(rc == 0);
}

static void on_retry(uv_timer_t *timer)
{
    struct listeners *listeners;
    OBJ_CAST(listeners, timer->data, LISTENERS_MAGIC);
    for (struct list *l = listeners->all.next; l != &listeners->all; l = l->next) {
        start(of_link(l));
    }
}

/* The socket stays readable: without a pause the loop would do nothing but wake up for it. */
static void pause_accepting(struct listener *listener)
{
    OBJ_CHECK(listener, LISTENER_MAGIC);
    uv_poll_stop(&listener->poll);
    uv_timer_start(&listener->listeners->retry, on_retry, RETRY_MS, 0);
}

/* Errors of a connection that accept() reports (accept(2)), which are not errors of ours. */
static bool is_of_client(int number)
{
    static const int numbers[] = {EINTR,       ECONNABORTED, EPROTO,   ENETDOWN,
                                  ENOPROTOOPT, EHOSTDOWN,    ENONET,   EHOSTUNREACH,
                                  EOPNOTSUPP,  ENETUNREACH,  ETIMEDOUT};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (number == numbers[i]) {
            return true;
        }
    }
    return false;
}

static void count_accepted(struct listener *listener)
{
    listener->accepted++;
    counter_add(&listener->listeners->conns->counts.accepted, 1);
}

/* If no descriptor is left the spare one makes room, so that the client is told at once. */
static bool turn_away(struct listener *listener)
{
    struct listeners *listeners = listener->listeners;
    if (listeners->spare_fd < 0) {
        return false;
    }
    close(listeners->spare_fd);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0) {
        count_accepted(listener);
        counter_add(&listeners->conns->counts.turned_away, 1);
        close(fd);
    }
    listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return fd >= 0;
}

static void refuse_client(struct listeners *listeners, int uv_code)
{
    counter_add(&listeners->conns->counts.turned_away, 1);
    if (log_gate_admits(&listeners->loop->log, LOG_KIND_ACCEPT, SHARE_NOBODY)) {
        log_line(LOG_WARNING, "connection: %s", uv_strerror(uv_code));
    }
}

/* Is the client on this machine, as far as --shared-memory trusts its way? A forwarded connection
 * has another end of its own, so both ends have to be loopback addresses. */
static bool is_local(const struct listeners *listeners, int fd, bool is_unix)
{
    enum options_shared_memory mode = listeners->options->shared_memory;
    struct address ends[2] = {{.len = sizeof(ends[0].storage)}, {.len = sizeof(ends[0].storage)}};
    if (mode == OPTIONS_SHARED_OFF || is_unix) {
        return mode != OPTIONS_SHARED_OFF;
    }
    return mode == OPTIONS_SHARED_LOOPBACK &&
           getsockname(fd, (struct sockaddr *)&ends[0].storage, &ends[0].len) == 0 &&
           getpeername(fd, (struct sockaddr *)&ends[1].storage, &ends[1].len) == 0 &&
           address_is_loopback(&ends[0]) && address_is_loopback(&ends[1]);
}

/* Notes who is at the other end of |socket|. What a proxy passes on is of many clients: each of its
 * connections is charged as if it were a client, so that none is closed for the number of the
 * others. True: it is a proxy that begins with a header. */
static bool note_peer(const struct listener *listener, struct transport *socket)
{
    const struct listeners *listeners = listener->listeners;
    struct transport_peer *peer = &socket->peer;
    struct address address;
    char text[ADDRESS_TEXT_MAX] = "?";
    bool is_unix = listener->address.storage.ss_family == AF_UNIX;
    uint64_t connection = client_of_connection(counter_get(&listeners->conns->counts.accepted));
    transport_socket_peer(socket, &address);
    if (address.len > 0) {
        address_print(&address, text);
    }
    snprintf(peer->remote, sizeof(peer->remote), "%.*s", TRANSPORT_REMOTE_MAX - 1, text);
    peer->client = client_of_address(&address);
    if (peer->client == SHARE_NOBODY) {
        peer->client = listeners->options->unix_is_one_client ? client_of_path() : connection;
    }
    bool is_named =
        listener->kind.role == LISTENER_PUBLIC && proxies_have(listeners->proxies, &address);
    bool has_header = is_named && listeners->options->proxy_says == OPTIONS_PROXY_PROTOCOL;
    peer->is_proxy = is_named && !has_header;
    peer->is_for_grpc = listener->kind.is_grpc;
    peer->place_client = is_named ? connection : peer->client;
    peer->is_local = !is_named && is_local(listeners, transport_socket_fd(socket), is_unix);
    return has_header;
}

static void on_no_header(void *user, const char *remote, const struct error *why)
{
    struct loop *loop = user;
    if (log_gate_admits(&loop->log, LOG_KIND_PROXY, SHARE_NOBODY)) {
        log_line(LOG_WARNING, "proxy %s: %s", remote, why->text);
    }
}

/* Puts what the client speaks below HTTP above |*transport|: the header of a proxy, then TLS.
 * False: there is no memory for it. */
static bool add_layers(struct listener *listener, bool has_header, struct transport **transport)
{
    struct listeners *listeners = listener->listeners;
    struct transport *above = *transport;
    if (has_header) {
        above = transport_proxy_new(*transport, on_no_header, listeners->loop);
        *transport = above ? above : *transport;
    }
    if (above && listener->kind.is_tls) {
        above = transport_tls_new(&listeners->tls->hub, listeners->tls->context, *transport);
        *transport = above ? above : *transport;
    }
    return above != NULL;
}

/* Makes |fd| a connection. Without memory the client is turned away. */
static void begin_conn(struct listener *listener, int fd)
{
    struct listeners *listeners = listener->listeners;
    bool is_unix = listener->address.storage.ss_family == AF_UNIX;
    int uv_code;
    struct transport *transport = transport_socket_new(&listeners->loop->uv, fd, is_unix, &uv_code);
    if (!transport) {
        refuse_client(listeners, uv_code);
        close(fd);
        return;
    }
    bool has_header = note_peer(listener, transport);
    if (!add_layers(listener, has_header, &transport) ||
        !opening_accept(listeners->conns, transport, listener->kind.role)) {
        refuse_client(listeners, UV_ENOMEM);
        transport_close(transport);
    }
}

/* False: enough for this turn of the loop. */
static bool accept_one(struct listener *listener)
{
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) {
        count_accepted(listener);
        begin_conn(listener, fd);
        return true;
    }
    int number = errno;
    if (number == EAGAIN) {
        return false;
    }
    if (is_of_client(number)) {
        return true;
    }
    if (log_gate_admits(&listener->listeners->loop->log, LOG_KIND_ACCEPT, SHARE_NOBODY)) {
        log_line(LOG_WARNING, "accept: %s", strerror(number));
    }
    if ((number == EMFILE || number == ENFILE) && turn_away(listener)) {
        return true;
    }
    pause_accepting(listener);
    return false;
}

static void on_readable(uv_poll_t *poll, int uv_status, int events)
{
    struct listener *listener;
    OBJ_CAST(listener, poll->data, LISTENER_MAGIC);
    (void)events;
    turn_watch_enter(&listener->listeners->loop->watch, TURN_ACCEPT);
    if (uv_status < 0) {
        pause_accepting(listener);
        return;
    }
    unsigned i = 0;
    while (accept_one(listener) && ++i < ACCEPTS_MAX &&
           turns_has_time(&listener->listeners->loop->turns)) {
    }
}

static const char *purpose_of(enum listener_role role)
{
    static const char *const purposes[LISTENER_ROLE_COUNT] = {
        [LISTENER_PUBLIC] = "",
        [LISTENER_ADMIN] = " for administrators",
        [LISTENER_HEALTH] = " for probes and metrics",
    };
    return purposes[role];
}

enum status listeners_start_all(struct listeners *listeners, struct error *err)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    for (struct list *l = listeners->all.next; l != &listeners->all; l = l->next) {
        struct listener *listener = of_link(l);
        if (listen(listener->fd, BACKLOG) < 0) {
            char url[ADDRESS_TEXT_MAX];
            address_print_url(&listener->address, url);
            return error_set(err, status_of_errno(errno), "listen on %s: %s", url, strerror(errno));
        }
        start(listener);
    }
    return ST_OK;
}

/* Who is not on this machine can reach it, and is not asked who he is. */
static bool is_open_to_all(const struct listener *listener)
{
    const struct options *options = listener->listeners->options;
    bool asks_cert = listener->kind.is_tls && options->tls_client_ca;
    bool asks_token = listener->kind.role == LISTENER_PUBLIC && options->token_file;
    return !address_path(&listener->address) && !address_is_loopback(&listener->address) &&
           listener->kind.role != LISTENER_HEALTH && !asks_cert && !asks_token;
}

static void warn_if_open(const struct listener *listener, const char *url)
{
    if (is_open_to_all(listener)) {
        bool is_admin = listener->kind.role == LISTENER_ADMIN;
        log_line(LOG_WARNING, "%s: everyone who reaches it may %s: %s", url,
                 is_admin ? "change the models" : "call the models",
                 is_admin ? "let it be an address of this machine, such as unix:PATH"
                          : "--token-file FILE has clients show a token");
    }
}

void listeners_open_all(struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    must(!listeners->loop->is_starting);
    for (struct list *l = listeners->all.next; l != &listeners->all; l = l->next) {
        struct listener *listener = of_link(l);
        char url[ADDRESS_TEXT_MAX];
        address_print_url(&listener->address, url);
        start(listener);
        log_line(LOG_NOTICE, "listening on %s%s", url, purpose_of(listener->kind.role));
        warn_if_open(listener, url);
    }
}

static bool has_waiting(const struct listener *listener)
{
    struct pollfd poll_fd = {.fd = listener->fd, .events = POLLIN};
    return !awaits_models(listener) && poll(&poll_fd, 1, 0) > 0;
}

bool listeners_has_waiting(const struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    bool has = false;
    for (struct list *l = listeners->all.next; l != &listeners->all; l = l->next) {
        has |= has_waiting(of_link(l));
    }
    return has;
}

bool listeners_is_stuck(struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    bool is_stuck = false;
    for (struct list *l = listeners->all.next; l != &listeners->all; l = l->next) {
        struct listener *listener = of_link(l);
        struct watched now = {has_waiting(listener), listener->accepted};
        is_stuck |= watched_is_stuck(&listener->seen, now);
    }
    return is_stuck;
}

void listeners_close_all(struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    while (!list_is_empty(&listeners->all)) {
        close_listener(of_link(listeners->all.next));
    }
}

/* ---- life ------------------------------------------------------------------------------------ */

void listeners_init(struct listeners *listeners)
{
    *listeners = (struct listeners){.magic = LISTENERS_MAGIC, .spare_fd = -1};
    list_init(&listeners->all);
}

void listeners_open(struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    listeners->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    uv_timer_init(&listeners->loop->uv, &listeners->retry);
    listeners->retry.data = listeners;
}

void listeners_fini(struct listeners *listeners)
{
    OBJ_CHECK(listeners, LISTENERS_MAGIC);
    must(list_is_empty(&listeners->all));
    if (listeners->spare_fd >= 0) {
        close(listeners->spare_fd);
        listeners->spare_fd = -1;
    }
}
