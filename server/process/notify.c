/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/notify.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"

#define LISTEN_FDS_MAX 64

/* The variable as a number of at most |max|; 0 if it is missing or not such a number. */
static uint64_t env_number(const char *name, uint64_t max)
{
    const char *text = getenv(name);
    if (!text || *text < '0' || *text > '9') {
        return 0;
    }
    char *end;
    errno = 0;
    unsigned long long value = strtoull(text, &end, 10);
    return errno == 0 && *end == '\0' && value <= max ? value : 0;
}

/* A PID variable that names another process was inherited by accident. */
static bool is_for_us(const char *pid_name, bool must_be_set)
{
    if (!getenv(pid_name)) {
        return !must_be_set;
    }
    return env_number(pid_name, INT32_MAX) == (uint64_t)getpid();
}

static void open_socket(struct notify *notify)
{
    must(notify->fd < 0);
    const char *path = getenv("NOTIFY_SOCKET");
    size_t len = path ? strlen(path) : 0;
    if (len < 2 || len > sizeof(notify->address.sun_path) || (path[0] != '/' && path[0] != '@')) {
        return;
    }
    notify->address.sun_family = AF_UNIX;
    memcpy(notify->address.sun_path, path, len);
    if (path[0] == '@') {
        notify->address.sun_path[0] = '\0'; /* an address in the abstract name space */
    }
    notify->address_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
    notify->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

/* "tls:health" becomes two terminated names. */
static void take_names(struct notify *notify)
{
    const char *text = getenv("LISTEN_FDNAMES");
    size_t len = text ? strlen(text) : 0;
    if (len + 2 > sizeof(notify->listen_names)) {
        return;
    }
    for (size_t i = 0; i < len; i++) {
        notify->listen_names[i] = (char)(text[i] == ':' ? '\0' : text[i]);
    }
}

const char *notify_listen_name(const struct notify *notify, uint32_t index)
{
    OBJ_CHECK(notify, NOTIFY_MAGIC);
    const char *name = notify->listen_names, *end = name + sizeof(notify->listen_names) - 1;
    for (; index > 0 && name < end; index--) {
        name += strlen(name) + 1;
    }
    return name < end ? name : "";
}

static void take_sockets(struct notify *notify)
{
    if (!is_for_us("LISTEN_PID", true)) {
        return;
    }
    uint32_t count = (uint32_t)env_number("LISTEN_FDS", LISTEN_FDS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        fcntl(NOTIFY_LISTEN_FD + (int)i, F_SETFD, FD_CLOEXEC);
    }
    notify->listen_count = count;
    take_names(notify);
}

void notify_init(struct notify *notify)
{
    *notify = (struct notify){.magic = NOTIFY_MAGIC, .fd = -1};
    open_socket(notify);
    take_sockets(notify);
    if (is_for_us("WATCHDOG_PID", false)) {
        /* Half the interval, so that one late turn of the loop does not kill the daemon. */
        notify->watchdog_ms = env_number("WATCHDOG_USEC", UINT64_MAX / 2) / 2000;
    }
    static const char *const names[] = {"NOTIFY_SOCKET",  "LISTEN_PID",   "LISTEN_FDS",
                                        "LISTEN_FDNAMES", "WATCHDOG_PID", "WATCHDOG_USEC"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        unsetenv(names[i]);
    }
}

void notify_fini(struct notify *notify)
{
    OBJ_CHECK(notify, NOTIFY_MAGIC);
    if (notify->fd >= 0) {
        close(notify->fd);
        notify->fd = -1;
    }
}

void notify_send(const struct notify *notify, const char *fmt, ...)
{
    OBJ_CHECK(notify, NOTIFY_MAGIC);
    if (notify->fd < 0) {
        return;
    }
    char text[256];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    if (len > 0 && (size_t)len < sizeof(text)) {
        sendto(notify->fd, text, (size_t)len, MSG_NOSIGNAL,
               (const struct sockaddr *)&notify->address, notify->address_len);
    }
}
