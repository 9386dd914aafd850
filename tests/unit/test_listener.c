/* SPDX-License-Identifier: MIT */
/*
 * Sockets that clients come to: those of a folder of the test's own, and those that a service
 * manager hands over. The clients do not become connections: the linker puts
 * the test in the place of what accepts them, and of accept4(), which can fail here.
 */
#include "config.h"

#include "server/daemon/connection/listener.h"

#include "tests/unit/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/daemon/connection/conns.h"
#include "server/daemon/connection/opening.h"
#include "server/daemon/connection/tls.h"
#include "server/daemon/loop/loop.h"
#include "server/http/address.h"
#include "server/http/client.h"
#include "server/http/proxies.h"
#include "server/process/notify.h"
#include "server/process/options.h"

#define CLIENTS_MAX 8
#define PATH_BYTES 64

bool __wrap_opening_accept(struct conns *conns, struct transport *transport,
                           enum listener_role role);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __real_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);

static struct loop loop;
static struct conns conns;
static struct options options;
static struct notify notify;
static struct proxies proxies;
static struct tls tls;
static struct listeners listeners;
static struct error err;
static char folder[PATH_BYTES / 2], path[PATH_BYTES], listen_text[PATH_BYTES + 8];

/* ---- clients --------------------------------------------------------------------------------- */

static struct transport *clients[CLIENTS_MAX];
static enum listener_role roles[CLIENTS_MAX];
static unsigned client_count, closed_count;
static bool is_full;                     /* there is no memory for a connection */
static int failures[4];                  /* of the next calls of accept4(); 0 ends the list */
static unsigned failure_count, accepted; /* calls that failed, or gave a client */

static void on_closed(void *user)
{
    (void)user;
    closed_count++;
}

static const struct transport_user transport_user = {.closed = on_closed};

bool __wrap_opening_accept(struct conns *of, struct transport *transport, enum listener_role role)
{
    assert_ptr_equal(of, &conns);
    transport_set_user(transport, &transport_user, NULL);
    if (is_full) {
        return false;
    }
    assert_true(client_count < CLIENTS_MAX);
    roles[client_count] = role;
    clients[client_count++] = transport;
    return true;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    int number = failures[failure_count];
    if (number) {
        failure_count++;
        errno = number;
        return -1;
    }
    int client = __real_accept4(fd, address, len, flags);
    accepted += client >= 0;
    return client;
}

static int connect_to(const char *text)
{
    struct address addresses[ADDRESS_COUNT_MAX];
    uint32_t count;
    assert_ok(err, address_resolve(text, addresses, &count, &err));
    int fd = socket(addresses[0].storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&addresses[0].storage, addresses[0].len),
                     0);
    return fd;
}

static bool is_gone(int client)
{
    struct pollfd fd = {.fd = client, .events = POLLIN};
    char byte;
    return poll(&fd, 1, 0) == 1 && read(client, &byte, 1) <= 0;
}

/* Turns the loop as long as it has something to do at once. */
static void turn(void)
{
    for (int i = 0; i < 4; i++) {
        uv_run(&loop.uv, UV_RUN_NOWAIT);
    }
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static void note_gone(void *owner)
{
    (void)owner;
    fail(); /* no client becomes a connection */
}

static void go_on_job(struct turn_job *job)
{
    (void)job;
    fail();
}

static void go_on_reader(struct turn_reader *reader)
{
    (void)reader;
    fail();
}

static const struct turns_ops turns_ops = {go_on_job, go_on_reader};

static void open_listeners(void)
{
    listeners_init(&listeners);
    listeners.loop = &loop;
    listeners.conns = &conns;
    listeners.options = &options;
    listeners.notify = &notify;
    listeners.proxies = &proxies;
    listeners.tls = &tls;
    listeners_open(&listeners);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/test_listener.XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/s", folder);
    snprintf(listen_text, sizeof(listen_text), "unix:%s", path);
    options_init(&options);
    options.listen.items[0] = listen_text;
    options.listen.count = 1;
    memset(&loop, 0, sizeof(loop));
    memset(&notify, 0, sizeof(notify));
    memset(&proxies, 0, sizeof(proxies));
    uv_loop_init(&loop.uv);
    log_gate_init(&loop.log);
    log_gate_open(&loop.log, &loop.uv);
    turns_init(&loop.turns, &loop.uv, &loop.watch, &turns_ops);
    memset(&conns, 0, sizeof(conns));
    conns.magic = CONNS_MAGIC;
    conns.loop = &loop;
    conns.note_gone = note_gone;
    list_init(&conns.all);
    places_init(&conns.places, 100);
    open_listeners();
    memset(failures, 0, sizeof(failures));
    client_count = closed_count = failure_count = accepted = 0;
    is_full = false;
    unsetenv("RUNTIME_DIRECTORY");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < client_count; i++) {
        transport_close(clients[i]);
    }
    listeners_close_all(&listeners);
    listeners_fini(&listeners);
    uv_close((uv_handle_t *)&listeners.retry, NULL);
    uv_close((uv_handle_t *)&loop.turns.prepare, NULL);
    uv_close((uv_handle_t *)&loop.turns.idle, NULL);
    log_gate_close(&loop.log);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    log_gate_fini(&loop.log);
    places_fini(&conns.places);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    return uv_loop_close(&loop.uv);
}

static void start(void)
{
    assert_ok(err, listeners_bind_all(&listeners, &err));
    assert_ok(err, listeners_start_all(&listeners, &err));
}

/* ---- sockets in the file system -------------------------------------------------------------- */

static void a_socket_is_for_its_owner_and_group(void **state)
{
    struct stat st;
    (void)state;
    start();
    assert_int_equal(lstat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0660);
    int client = connect_to(listen_text);
    assert_true(listeners_has_waiting(&listeners));
    turn();
    assert_int_equal(client_count, 1);
    assert_int_equal(roles[0], LISTENER_PUBLIC);
    assert_string_equal(clients[0]->peer.remote, "unix");
    assert_false(listeners_has_waiting(&listeners));
    assert_int_equal(counter_get(&conns.counts.accepted), 1);
    close(client);
    listeners_close_all(&listeners);
    assert_int_equal(lstat(path, &st), -1);
}

/* Another daemon has put its own socket into the place: that one stays. */
static void a_file_of_another_is_not_removed(void **state)
{
    struct stat st;
    (void)state;
    start();
    assert_int_equal(unlink(path), 0);
    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
    listeners_close_all(&listeners);
    assert_int_equal(lstat(path, &st), 0);
}

static void a_socket_of_the_dead_is_replaced_and_no_other(void **state)
{
    struct address addresses[ADDRESS_COUNT_MAX];
    uint32_t count;
    (void)state;
    assert_ok(err, address_resolve(listen_text, addresses, &count, &err));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&addresses[0].storage, addresses[0].len), 0);
    assert_int_equal(listen(fd, 1), 0);
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_SYSTEM, "Address already in use");
    close(fd); /* its file stays */
    start();
    assert_int_equal(unlink(path), 0);
    listeners_close_all(&listeners);

    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); /* no socket */
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_SYSTEM, "Address already in use");
}

static void systemds_folder_has_the_socket_of_administrators(void **state)
{
    char folders[2 * PATH_BYTES], admin[PATH_BYTES + 16];
    (void)state;
    snprintf(folders, sizeof(folders), "%s:/nowhere", folder);
    snprintf(admin, sizeof(admin), "unix:%s/admin.sock", folder);
    setenv("RUNTIME_DIRECTORY", folders, 1);
    start();
    int client = connect_to(admin);
    turn();
    assert_int_equal(roles[0], LISTENER_ADMIN);
    close(client);
    listeners_close_all(&listeners);
    options.admin_listen.items[0] = listen_text; /* one that is said is enough */
    options.admin_listen.count = 1;
    options.listen.items[0] = "127.0.0.1:0";
    assert_ok(err, listeners_bind_all(&listeners, &err));
    assert_int_equal(access(strchr(admin, '/'), F_OK), -1);
    listeners_close_all(&listeners);
    options.admin_listen.count = 0;
    char longer[512];
    memset(longer, 'x', sizeof(longer) - 1);
    longer[sizeof(longer) - 1] = '\0';
    setenv("RUNTIME_DIRECTORY", longer, 1);
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_INVALID, "the path is too long");
}

/* ---- who a client is ------------------------------------------------------------------------- */

static void shared_memory_may_be_off(void **state)
{
    (void)state;
    options.shared_memory = OPTIONS_SHARED_OFF;
    start();
    int client = connect_to(listen_text);
    turn();
    assert_false(clients[0]->peer.is_local);
    close(client);
}

/* A client of a socket in the file system has no address: each connection is one, or all are. */
static void clients_without_an_address_are_told_apart(void **state)
{
    (void)state;
    options.shared_memory = OPTIONS_SHARED_LOOPBACK;
    start();
    int fds[] = {connect_to(listen_text), connect_to(listen_text)};
    turn();
    assert_int_equal(client_count, 2);
    assert_true(clients[0]->peer.client != clients[1]->peer.client);
    assert_true(clients[0]->peer.client == clients[0]->peer.place_client);
    assert_true(clients[0]->peer.is_local);
    options.unix_is_one_client = true;
    int more[] = {connect_to(listen_text), connect_to(listen_text)};
    turn();
    assert_true(clients[2]->peer.client == clients[3]->peer.client);
    for (int i = 0; i < 2; i++) {
        close(fds[i]);
        close(more[i]);
    }
}

/* It speaks for many: each of its connections has a place of its own, and none is of this machine.
 */
static void a_proxy_is_known(void **state)
{
    (void)state;
    options.shared_memory = OPTIONS_SHARED_LOOPBACK;
    options.unix_is_one_client = true;
    proxies.has_unix = true;
    start();
    int fds[] = {connect_to(listen_text), connect_to(listen_text)};
    turn();
    assert_true(clients[0]->peer.is_proxy && !clients[0]->peer.is_local);
    assert_true(clients[0]->peer.client == clients[1]->peer.client);
    assert_true(clients[0]->peer.place_client != clients[1]->peer.place_client);
    options.proxy_says = OPTIONS_PROXY_PROTOCOL; /* its header has yet to come */
    int third = connect_to(listen_text);
    turn();
    assert_true(clients[2]->peer.is_unnamed && !clients[2]->peer.is_proxy);
    close(fds[0]);
    close(fds[1]);
    close(third);
}

/* ---- sockets that are handed over ------------------------------------------------------------ */

/* As the only descriptor of the service manager, under |name|. */
static void hand_over(const char *name, bool listens)
{
    struct address addresses[ADDRESS_COUNT_MAX];
    uint32_t count;
    assert_ok(err, address_resolve(listen_text, addresses, &count, &err));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&addresses[0].storage, addresses[0].len), 0);
    assert_true(!listens || listen(fd, 8) == 0);
    if (fd != NOTIFY_LISTEN_FD) {
        assert_int_equal(dup2(fd, NOTIFY_LISTEN_FD), NOTIFY_LISTEN_FD);
        close(fd);
    }
    snprintf(notify.listen_names, sizeof(notify.listen_names), "%s", name);
    notify.magic = NOTIFY_MAGIC;
    notify.listen_count = 1;
    options.listen.count = 0;
    loop.is_starting = true;
}

static int set_up_handed(void **state)
{
    /* So that the number is free: what set_up() opens comes behind it. */
    int held = open("/dev/null", O_RDONLY | O_CLOEXEC);
    while (held < NOTIFY_LISTEN_FD) {
        held = dup(held);
    }
    int rc = set_up(state);
    close(held);
    return rc;
}

/* Clients come before the daemon is ready: they wait for the models, but probes do not. */
static void clients_of_a_handed_socket_wait_for_models(void **state)
{
    (void)state;
    hand_over("", true);
    start();
    int client = connect_to(listen_text);
    turn();
    assert_int_equal(client_count, 0);
    assert_false(listeners_has_waiting(&listeners)); /* nobody is late */
    loop.is_starting = false;
    listeners_open_all(&listeners);
    turn();
    assert_int_equal(client_count, 1);
    assert_int_equal(roles[0], LISTENER_PUBLIC);
    close(client);
    listeners_close_all(&listeners);
    assert_int_equal(access(path, F_OK), 0); /* it is not ours */
}

static void a_probe_does_not_wait_for_models(void **state)
{
    (void)state;
    hand_over("health", true);
    options.listen.items[0] = "127.0.0.1:0";
    options.listen.count = 1;
    start();
    int client = connect_to(listen_text);
    turn();
    assert_int_equal(client_count, 1);
    assert_int_equal(roles[0], LISTENER_HEALTH);
    close(client);
}

static void a_handed_descriptor_must_fit(void **state)
{
    (void)state;
    hand_over("", false);
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_INVALID,
                 "descriptor 3: not a listening stream socket");
    close(NOTIFY_LISTEN_FD);
    assert_int_equal(unlink(path), 0);
    hand_over("admin-tls", true);
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_INVALID,
                 "descriptor 3: TLS needs --tls-cert FILE");
    close(NOTIFY_LISTEN_FD);
}

/* ---- what goes wrong ------------------------------------------------------------------------- */

/* With no descriptor left, the spare one makes room to tell a client so at once. */
static void a_client_without_a_descriptor_is_turned_away(void **state)
{
    (void)state;
    start();
    int clients_fds[] = {connect_to(listen_text), connect_to(listen_text)};
    failures[0] = EMFILE;
    turn();
    assert_int_equal(accepted, 2);
    assert_int_equal(client_count, 1);
    assert_true(is_gone(clients_fds[0]) && !is_gone(clients_fds[1]));
    assert_int_equal(counter_get(&conns.counts.turned_away), 1);
    assert_int_equal(counter_get(&conns.counts.accepted), 2);
    assert_true(listeners.spare_fd >= 0);
    close(clients_fds[0]);
    close(clients_fds[1]);
}

/* The error of one client says nothing of the next one. */
static void an_error_of_a_client_is_not_ours(void **state)
{
    (void)state;
    start();
    int client = connect_to(listen_text);
    failures[0] = ECONNABORTED;
    failures[1] = EPROTO;
    turn();
    assert_int_equal(failure_count, 2);
    assert_int_equal(client_count, 1);
    assert_false(uv_is_active((const uv_handle_t *)&listeners.retry));
    close(client);
}

/* Until then the loop does nothing but wait for others. */
static void an_error_of_ours_is_tried_again_later(void **state)
{
    (void)state;
    start();
    int client = connect_to(listen_text);
    failures[0] = ENOBUFS;
    turn();
    assert_int_equal(failure_count, 1);
    assert_int_equal(client_count, 0);
    assert_true(uv_is_active((const uv_handle_t *)&listeners.retry));
    assert_false(listeners_is_stuck(&listeners)); /* since the last look, which is the first */
    assert_true(listeners_is_stuck(&listeners));
    while (client_count == 0) {
        uv_run(&loop.uv, UV_RUN_ONCE);
    }
    assert_false(listeners_is_stuck(&listeners));
    close(client);
}

static void a_client_without_memory_is_turned_away(void **state)
{
    (void)state;
    start();
    is_full = true;
    int client = connect_to(listen_text);
    turn();
    assert_int_equal(closed_count, 1);
    assert_true(is_gone(client));
    assert_int_equal(counter_get(&conns.counts.turned_away), 1);
    close(client);
}

static void an_address_that_cannot_be_had_is_an_error(void **state)
{
    (void)state;
    options.listen.items[0] = "192.0.2.1:0"; /* of no machine */
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_SYSTEM,
                 "listen on 192.0.2.1:0: Cannot assign requested address");
    options.listen.items[0] = "unix:/nowhere/s";
    assert_fails(err, listeners_bind_all(&listeners, &err), ST_NOT_FOUND, "No such file");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define TEST_HANDED(name) cmocka_unit_test_setup_teardown(name, set_up_handed, tear_down)
    const struct CMUnitTest tests[] = {
        TEST_HANDED(clients_of_a_handed_socket_wait_for_models),
        TEST_HANDED(a_probe_does_not_wait_for_models),
        TEST_HANDED(a_handed_descriptor_must_fit),
        TEST(a_socket_is_for_its_owner_and_group),
        TEST(a_file_of_another_is_not_removed),
        TEST(a_socket_of_the_dead_is_replaced_and_no_other),
        TEST(systemds_folder_has_the_socket_of_administrators),
        TEST(shared_memory_may_be_off),
        TEST(clients_without_an_address_are_told_apart),
        TEST(a_proxy_is_known),
        TEST(a_client_without_a_descriptor_is_turned_away),
        TEST(an_error_of_a_client_is_not_ours),
        TEST(an_error_of_ours_is_tried_again_later),
        TEST(a_client_without_memory_is_turned_away),
        TEST(an_address_that_cannot_be_had_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
