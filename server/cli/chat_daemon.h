/* SPDX-License-Identifier: MIT */
/*
 * A daemon of our own for a file: pted, from the folder of pte or the PATH, on a socket in a folder
 * that only this user can enter. It ends with this process, however that ends.
 */
#ifndef PTED_SERVER_CLI_CHAT_DAEMON_H
#define PTED_SERVER_CLI_CHAT_DAEMON_H

#include <sys/types.h>

#include "base/status.h"

#define CHAT_DAEMON_PATH_MAX 108

struct chat_daemon {
    char folder[CHAT_DAEMON_PATH_MAX], socket[CHAT_DAEMON_PATH_MAX];
    char notify[CHAT_DAEMON_PATH_MAX]; /* where it says that it serves, by sd_notify(3) */
    int notify_fd;                     /* owned; -1: none */
    pid_t pid;                         /* 0: none */
};

struct chat_daemon_options {
    const char *path;                         /* of the program */
    const char *name;                         /* of the model, for requests and errors */
    const char *tokenizer, *device, *workers; /* or NULL: as pted has it */
};

/* Starts it and waits until it serves, or until |*stop| becomes true. Its messages go to standard
 * error. ST_INVALID, ST_UNAVAILABLE: it has ended. |daemon| can be stopped in any case. */
MUST_CHECK enum status chat_daemon_start(const struct chat_daemon_options *options,
                                         const volatile int *stop, struct chat_daemon *daemon,
                                         struct error *err);
void chat_daemon_stop(struct chat_daemon *daemon);

#endif
