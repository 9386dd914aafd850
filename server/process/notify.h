/* SPDX-License-Identifier: MIT */
/*
 * The messages that systemd expects and the sockets that it hands over, by its documented protocols
 * and without its library: datagrams of sd_notify(3) and descriptors of sd_listen_fds(3). Without
 * systemd all of it does nothing. Loop thread.
 */
#ifndef PTED_SERVER_PROCESS_NOTIFY_H
#define PTED_SERVER_PROCESS_NOTIFY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NOTIFY_LISTEN_FD 3 /* the first of the sockets handed over */

#define NOTIFY_NAMES_MAX 1024 /* bytes of all names together; more are not kept */

#define NOTIFY_MAGIC 0x6e746679u

struct notify {
    uint32_t magic;
    int fd; /* owned; -1: no service manager listens */
    struct sockaddr_un address;
    socklen_t address_len;
    uint64_t watchdog_ms; /* interval at which WATCHDOG=1 is due; 0: never */
    uint32_t listen_count;
    char listen_names[NOTIFY_NAMES_MAX]; /* of the sockets handed over, each terminated */
};

/* Reads and removes the variables, so that neither a child nor a second start sees them. */
void notify_init(struct notify *notify);
void notify_fini(struct notify *notify);

/* Returns the name of a socket that was handed over (FileDescriptorName= in its unit), or "". */
const char *notify_listen_name(const struct notify *notify, uint32_t index);

/* Sends lines such as "READY=1"; a failure is ignored. */
void notify_send(const struct notify *notify, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

#endif
