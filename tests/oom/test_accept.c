/* SPDX-License-Identifier: MIT */
/*
 * A daemon in this process, whose accept() and whose memory fail in every way: nobody waits for
 * ever, the next client is served, and the watchdog knows whether anybody is accepted. The linker
 * sends the calls that fail here.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "server/daemon/server.h"
#include "server/process/log.h"
#include "server/process/options.h"

#define ALLOCATIONS_MAX 200
#define TIMEOUT_S 60
#define WATCHDOG_US "40000"
#define FOR_EVER 1000000000

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

/* The call that fails, and how often; the client sets it while no client is connected. */
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

static int connect_client(void)
{
    static const struct timeval limit = {.tv_sec = TIMEOUT_S};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    must(fd >= 0);
    must(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    must(connect(fd, (const struct sockaddr *)&server_address, sizeof(server_address)) == 0);
    return fd;
}

static int begin_request(void)
{
    static const char request[] = "GET /v2/health/live HTTP/1.1\r\nHost: a\r\n\r\n";
    int fd = connect_client();
    (void)send(fd, request, sizeof(request) - 1, MSG_NOSIGNAL);
    return fd;
}

/* True: the request was answered by 200. False: the connection was closed, or the answer is no. */
static bool end_request(int fd)
{
    char answer[1024] = "";
    ssize_t len = recv(fd, answer, sizeof(answer) - 1, 0);
    must(len >= 0 || errno == ECONNRESET); /* and not EAGAIN: nobody waits for ever */
    close(fd);
    return strncmp(answer, "HTTP/1.1 200 ", 13) == 0;
}

static bool ask(void)
{
    return end_request(begin_request());
}

static void fail_accept(int number, int times)
{
    atomic_store(&accept_errno, number);
    atomic_store(&accept_failures, times);
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

static int notify_fd, log_fd;

/* Until the daemon sends |text|; bytes that it has sent before are read, too. */
static void wait_for_notice(const char *text)
{
    char notice[256];
    ssize_t len;
    do {
        len = recv(notify_fd, notice, sizeof(notice) - 1, 0);
        must(len > 0);
        notice[len] = '\0';
    } while (strcmp(notice, text) != 0);
}

/* Until the log has |count| lines with |text| behind |from|. */
static void wait_for_lines(const char *text, unsigned count, off_t from)
{
    static char log[1 << 16];
    unsigned found = 0;
    while (found < count) {
        ssize_t len = pread(log_fd, log, sizeof(log) - 1, from);
        must(len >= 0);
        log[len] = '\0';
        found = 0;
        for (const char *at = log; (at = strstr(at, text)); at++) {
            found++;
        }
        usleep(1000);
    }
}

/* Nobody is accepted: no sign of life. Turning clients away is one. */
static void with_a_watchdog(void)
{
    static const char stuck[] = "watchdog: clients wait to be accepted";
    char notice[256];
    wait_for_notice("WATCHDOG=1");
    off_t from = lseek(log_fd, 0, SEEK_END);
    fail_accept(ENOMEM, FOR_EVER);
    int fd = begin_request();
    wait_for_lines(stuck, 1, from);
    while (recv(notify_fd, notice, sizeof(notice), MSG_DONTWAIT) > 0) {
    }
    wait_for_lines(stuck, 3, from);
    must(recv(notify_fd, notice, sizeof(notice), MSG_DONTWAIT) < 0);
    fail_accept(ENOMEM, 0);
    must(end_request(fd));
    wait_for_notice("WATCHDOG=1");
    wait_for_lines("watchdog: all parts make progress again", 1, from);
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

/* Errors that may pass by themselves: the same client is served then. */
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

/* A head like that of the request before, but longer than the memory for it. */
static void with_a_known_head(void)
{
    int fd = connect_client();
    for (int digits = 1; digits <= 8000; digits += digits < 4 ? 1 : 7996) {
        char request[8200], answer[1024];
        bool is_long = digits > 4;
        int len = snprintf(request, sizeof(request),
                           "GET /v2/health/live HTTP/1.1\r\nHost: a\r\nX-Request-Id: %0*d\r\n\r\n",
                           digits, 0);
        atomic_store(&allocations_left, is_long ? 0 : -1);
        must(send(fd, request, (size_t)len, MSG_NOSIGNAL) == len);
        ssize_t got = recv(fd, answer, sizeof(answer), 0);
        must(got > 12 && strncmp(answer, is_long ? "HTTP/1.1 503" : "HTTP/1.1 200", 12) == 0);
    }
    atomic_store(&allocations_left, -1);
    close(fd);
    must(ask());
}

static void *client(void *arg)
{
    (void)arg;
    wait_for_notice("READY=1\nSTATUS=serving 0 of 0 models");
    without_memory();
    with_a_known_head();
    without_descriptors();
    with_errors_that_pass();
    without_a_handle();
    with_a_watchdog();
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

/* Systemd's end of the notify protocol, and a log that can be read. */
static void watch_server(char *log_path)
{
    static const struct timeval limit = {.tv_sec = TIMEOUT_S};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct error err;
    int len = snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1, "pted-test-accept-%d",
                       (int)getpid());
    notify_fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    must(notify_fd >= 0);
    must(bind(notify_fd, (const struct sockaddr *)&address,
              (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) == 0);
    must(setsockopt(notify_fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0);
    address.sun_path[0] = '@';
    setenv("NOTIFY_SOCKET", address.sun_path, 1);
    setenv("WATCHDOG_USEC", WATCHDOG_US, 1);
    log_fd = mkstemp(log_path);
    must(log_fd >= 0);
    must(log_open(log_path, LOG_NOTICE, &err) == ST_OK);
}

int main(void)
{
    static char log_path[] = "/tmp/pted-test-accept-XXXXXX";
    static struct options options;
    static struct server server;
    char *argv[] = {(char[]){"pted"}, (char[]){"--workers=1"}, NULL};
    struct error err;
    pthread_t thread;
    options_init(&options);
    must(options_add_arguments(&options, 2, argv, &err) == ST_OK);
    signal(SIGPIPE, SIG_IGN); /* as pted's main() does */
    listen_for_server();
    watch_server(log_path);
    must(server_init(&server, &options, &err) == ST_OK);
    must(pthread_create(&thread, NULL, client, NULL) == 0);
    enum status status = server_run(&server, &err);
    must(pthread_join(thread, NULL) == 0);
    server_fini(&server);
    unlink(log_path);
    return status == ST_OK ? 0 : 1;
}
