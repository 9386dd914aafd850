/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/cli/chat_daemon.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/check.h"

#define ARGS_MAX 16
#define WAIT_MS 20 /* between two looks whether it has ended */
#define NOTICE_BYTES_MAX 256

static enum status make_folder(struct chat_daemon *daemon, struct error *err)
{
    const char *base = getenv("XDG_RUNTIME_DIR");
    for (int i = 0; i < 2; i++) {
        int len = snprintf(daemon->folder, sizeof(daemon->folder), "%s/pte-chat-XXXXXX",
                           i == 0 && base && *base ? base : "/tmp");
        if (len > 0 && (size_t)len + sizeof("/socket") <= sizeof(daemon->socket) &&
            mkdtemp(daemon->folder)) {
            snprintf(daemon->socket, sizeof(daemon->socket), "%.90s/socket", daemon->folder);
            snprintf(daemon->notify, sizeof(daemon->notify), "%.90s/notify", daemon->folder);
            return ST_OK;
        }
    }
    daemon->folder[0] = '\0';
    return error_set(err, ST_SYSTEM, "no folder for a socket: %s", strerror(errno));
}

/* pte's own, which is pted, too; without /proc, pted of the PATH. */
static const char *find_program(char path[PATH_MAX])
{
    ssize_t len = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (len <= 0) {
        return "pted";
    }
    path[len] = '\0';
    return path;
}

static enum status listen_for_notices(struct chat_daemon *daemon, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    _Static_assert(sizeof(daemon->notify) <= sizeof(address.sun_path), "each path fits");
    memcpy(address.sun_path, daemon->notify, strlen(daemon->notify) + 1);
    daemon->notify_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    return daemon->notify_fd >= 0 &&
                   bind(daemon->notify_fd, (struct sockaddr *)&address, sizeof(address)) == 0
               ? ST_OK
               : error_set(err, ST_SYSTEM, "%s: %s", daemon->notify, strerror(errno));
}

/* In the child: SIGINT of the terminal is for the chat, not for the daemon. */
static void become(const char *program, const char *const *args, const char *notify, pid_t parent)
{
    const union {
        const char *const *ours;
        char *const *of_exec; /* which changes none of the texts */
    } both = {.ours = args};
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) {
        _exit(1); /* it ended before that was known */
    }
    setpgid(0, 0);
    dup2(STDERR_FILENO, STDOUT_FILENO);
    setenv("NOTIFY_SOCKET", notify, 1);
    execvp(program, both.of_exec);
    fprintf(stderr, "pte: %s: %s\n", program, strerror(errno));
    _exit(127);
}

static enum status start(const struct chat_daemon_options *options, struct chat_daemon *daemon,
                         struct error *err)
{
    char listen[CHAT_DAEMON_PATH_MAX + 8], model[PATH_MAX + 8], words[PATH_MAX + 8], path[PATH_MAX];
    const char *args[ARGS_MAX] = {"pted", "--log-level", "error", "--listen",
                                  listen, "--model",     model};
    size_t count = 7;
    snprintf(listen, sizeof(listen), "unix:%s", daemon->socket);
    int len = snprintf(model, sizeof(model), "%s=%s", options->name, options->path);
    if (len < 0 || (size_t)len >= sizeof(model)) {
        return error_set(err, ST_TOO_LARGE, "FILE: the path is too long");
    }
    if (options->tokenizer) {
        snprintf(words, sizeof(words), "%s=%s", options->name, options->tokenizer);
        args[count++] = "--tokenizer";
        args[count++] = words;
    }
    if (options->device) {
        args[count++] = "--device";
        args[count++] = options->device;
    }
    if (options->workers) {
        args[count++] = "--workers";
        args[count++] = options->workers;
    }
    must(count < ARGS_MAX);
    const char *program = find_program(path);
    pid_t parent = getpid();
    daemon->pid = fork();
    if (daemon->pid == 0) {
        become(program, args, daemon->notify, parent);
    }
    if (daemon->pid < 0) {
        daemon->pid = 0;
        return error_set(err, ST_SYSTEM, "fork: %s", strerror(errno));
    }
    return ST_OK;
}

/* Reads what the daemon has said: does it serve the model? */
static bool is_ready(const struct chat_daemon *daemon)
{
    static const char ready[] = "READY=1\n";
    char notice[NOTICE_BYTES_MAX];
    ssize_t len;
    while ((len = recv(daemon->notify_fd, notice, sizeof(notice), 0)) >= 0) {
        if ((size_t)len >= sizeof(ready) - 1 && memcmp(notice, ready, sizeof(ready) - 1) == 0) {
            return true;
        }
    }
    return false;
}

/* However long the model takes to load; the user can interrupt. */
static enum status wait_ready(struct chat_daemon *daemon, const volatile int *stop,
                              struct error *err)
{
    while (!is_ready(daemon)) {
        int status;
        if (*stop) {
            return error_set(err, ST_CANCELLED, "stopped while the model was loaded");
        }
        if (waitpid(daemon->pid, &status, WNOHANG) == daemon->pid) {
            daemon->pid = 0;
            return error_set(err, ST_UNAVAILABLE, "pted did not start");
        }
        struct pollfd notices = {.fd = daemon->notify_fd, .events = POLLIN};
        (void)poll(&notices, 1, WAIT_MS);
    }
    return ST_OK;
}

enum status chat_daemon_start(const struct chat_daemon_options *options, const volatile int *stop,
                              struct chat_daemon *daemon, struct error *err)
{
    *daemon = (struct chat_daemon){.notify_fd = -1};
    if (access(options->path, R_OK) != 0) {
        return error_set(err, ST_NOT_FOUND, "%.200s: %s", options->path, strerror(errno));
    }
    TRY(make_folder(daemon, err));
    TRY(listen_for_notices(daemon, err));
    TRY(start(options, daemon, err));
    return wait_ready(daemon, stop, err);
}

void chat_daemon_stop(struct chat_daemon *daemon)
{
    if (daemon->pid > 0) {
        kill(daemon->pid, SIGTERM);
        while (waitpid(daemon->pid, NULL, 0) < 0 && errno == EINTR) {
        }
        daemon->pid = 0;
    }
    if (daemon->folder[0]) {
        if (daemon->notify_fd >= 0) {
            close(daemon->notify_fd);
        }
        unlink(daemon->notify);
        unlink(daemon->socket);
        rmdir(daemon->folder);
        daemon->folder[0] = '\0';
    }
}
