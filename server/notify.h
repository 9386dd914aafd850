/* SPDX-License-Identifier: MIT */
/*
 * What systemd wants to hear and what it hands over, by its documented protocols and without its
 * library: sd_notify(3) datagrams and the descriptors of sd_listen_fds(3). Without systemd all of
 * it does nothing. Loop thread.
 */
#ifndef PTED_SERVER_NOTIFY_H
#define PTED_SERVER_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOTIFY_LISTEN_FD 3 /* the first of the sockets that were handed over */

struct notify {
    int fd; /* owned; -1: nobody listens */
    struct sockaddr_un address;
    socklen_t address_len;
    uint64_t watchdog_ms; /* how often WATCHDOG=1 is due; 0: never */
    uint32_t listen_count;
};

/* Reads and removes the variables: no child and no second start sees them. */
void notify_init(struct notify *notify);
void notify_fini(struct notify *notify);

/* Sends "STATE" lines such as "READY=1"; failure is not interesting. */
void notify_send(const struct notify *notify, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
