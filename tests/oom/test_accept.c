/* SPDX-License-Identifier: MIT */
/*
 * A daemon in this process, whose accept() and whose memory fail in every way: nobody waits for
 * ever, and the next client is served. The linker sends the calls that fail here.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/check.h"
#include "server/log.h"
#include "server/options.h"
#include "server/server.h"

#define ALLOCATIONS_MAX 200
#define TIMEOUT_S 60

int __real_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags);
int __real_uv_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd);
int __wrap_uv_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd);
void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *old, size_t size);
void *__wrap_realloc(void *old, size_t size);

/* What fails, and how often; the client sets it while no client is connected. */
static atomic_int accept_errno, accept_failures, open_failures;
static atomic_long allocations_left = -1; /* negative: all succeed */

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *len, int flags)
{
    if (atomic_load(&accept_failures) > 0) {
        atomic_fetch_sub(&accept_failures, 1);
        errno = atomic_load(&accept_errno);
        return -1;
    }
    return __real_accept4(fd, address, len, flags);
}

int __wrap_uv_tcp_open(uv_tcp_t *tcp, uv_os_sock_t fd)
{
    if (atomic_load(&open_failures) > 0) {
        atomic_fetch_sub(&open_failures, 1);
        return UV_ENOMEM;
    }
    return __real_uv_tcp_open(tcp, fd);
}

/* Of an allocation that fails all that follow do, until somebody says otherwise. */
static bool may_allocate(void)
{
    return atomic_load(&allocations_left) < 0 || atomic_fetch_sub(&allocations_left, 1) > 0;
}

void *__wrap_malloc(size_t size)
{
    return may_allocate() ? __real_malloc(size) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return may_allocate() ? __real_calloc(count, size) : NULL;
}

void *__wrap_realloc(void *old, size_t size)
{
    return may_allocate() ? __real_realloc(old, size) : NULL;
}

/* ---- the client ------------------------------------------------------------------------------ */

static struct sockaddr_in server_address;

/* True: the request was answered by 200. False: the connection was closed, or the answer is no. */
static bool ask(void)
{
    static const char request[] = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n";
    static const struct timeval limit = {.tv_sec = TIMEOUT_S};
    char answer[1024] = "";
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0);
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    must(connect(fd, (const struct sockaddr *)&server_address, sizeof(server_address)) == 0);
    (void)send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    ssize_t len = recv(fd, answer, sizeof(answer) - 1, 0);
    must(len >= 0 || errno == ECONNRESET); /* and not EAGAIN: nobody waits for ever */
    close(fd);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

static void fail_accept(int number, int times)
{
    atomic_store(&accept_errno, number);
    atomic_store(&accept_failures, times);
}

/* Turned away by the descriptor that is kept for it. */
static void without_descriptors(void)
{
    static const int numbers[] = {EMFILE, ENFILE};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        fail_accept(numbers[i], 1);
        must(!ask());
        must(ask());
    }
}

/* What may end by itself: the same client is served then. */
static void with_errors_that_pass(void)
{
    static const int numbers[] = {ENOMEM, ENOBUFS, EPERM, ECONNABORTED, EINTR, EPROTO};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        fail_accept(numbers[i], 3);
        must(ask());
        must(atomic_load(&accept_failures) == 0);
    }
}

static void without_a_handle(void)
{
    atomic_store(&open_failures, 1);
    must(!ask());
    must(ask());
}

/*
 * Of all that a connection and its request need, the first is missing, then the second, ... Before
 * any other request, whose memory would be used again.
 */
static void without_memory(void)
{
    long count = 0;
    bool is_served = false;
    for (; !is_served; count++) {
        must(count < ALLOCATIONS_MAX);
        atomic_store(&allocations_left, count);
        is_served = ask();
        atomic_store(&allocations_left, -1);
    }
    must(ask());
    printf("a connection and a request take %ld allocations\n", count - 1);
    must(count > 2); /* the connection and the request, at the least */
}

static void *client(void *arg)
{
    (void)arg;
    without_memory();
    without_descriptors();
    with_errors_that_pass();
    without_a_handle();
    must(kill(getpid(), SIGTERM) == 0);
    return NULL;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

/* A listening socket as systemd hands it over, so that its port is known here. */
static void listen_for_server(void)
{
    char pid[16];
    socklen_t len = sizeof(server_address);
    server_address =
        (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0 && bind(fd, (const struct sockaddr *)&server_address, len) == 0);
    must(listen(fd, 16) == 0);
    must(getsockname(fd, (struct sockaddr *)&server_address, &len) == 0);
    if (fd != NOTIFY_LISTEN_FD) {
        must(dup2(fd, NOTIFY_LISTEN_FD) == NOTIFY_LISTEN_FD);
        close(fd);
    }
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "1", 1);
}

int main(void)
{
    static struct options options;
    static struct server server;
    char *argv[] = {(char[]){"pted"}, (char[]){"--workers=1"}, NULL};
    struct error err;
    pthread_t thread;
    must(options_parse(2, argv, &options, &err) == ST_OK);
    must(log_open(NULL, LOG_WARNING, &err) == ST_OK);
    listen_for_server();
    must(server_init(&server, &options, &err) == ST_OK);
    must(pthread_create(&thread, NULL, client, NULL) == 0);
    enum status status = server_run(&server, &err);
    must(pthread_join(thread, NULL) == 0);
    server_fini(&server);
    return status == ST_OK ? 0 : 1;
}
