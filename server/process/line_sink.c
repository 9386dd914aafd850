/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/line_sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/check.h"
#include "server/process/line.h"
#include "server/process/log.h"

#define FILE_BYTES (64 << 10) /* of a write to a file or of entries */
#define GATHER_NS 5000000
#define POLL_MS 100
#define POLLS_MAX 10 /* after the stop */

struct fd_sink {
    struct line_sink sink;
    const char *path; /* borrowed; NULL: stderr */
    int fd;           /* owned, unless it is stderr */
};

uint64_t line_sink_count(const uint8_t *lines, size_t len)
{
    uint64_t count = 0;
    for (size_t i = 0; i < len; i++) {
        count += lines[i] == '\n';
    }
    return count;
}

/* Waits until the non-blocking |fd| takes bytes. |*polls| is 0 at first. False: it has not for too
 * long, and the sink is to stop. */
static bool wait_for_room(struct line_sink *sink, int fd, int *polls)
{
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    poll(&room, 1, POLL_MS);
    *polls += atomic_load(&sink->is_stopping);
    return *polls < POLLS_MAX;
}

static void free_fd(struct line_sink *sink)
{
    struct fd_sink *self = (struct fd_sink *)sink;
    if (self->fd >= 0 && self->fd != STDERR_FILENO) {
        close(self->fd);
    }
    free(self);
}

/* NULL without memory. */
static struct fd_sink *make(const struct line_sink_ops *ops, const char *path, struct error *err)
{
    struct fd_sink *self = calloc(1, sizeof(*self));
    if (!self) {
        error_no_memory(err, "%s", ops->what);
        return NULL;
    }
    self->sink.ops = ops;
    self->sink.write_bytes = FILE_BYTES;
    self->path = path;
    self->fd = -1;
    return self;
}

/* ---- a file or a pipe ------------------------------------------------------------------------ */

static uint64_t write_file(struct line_sink *sink, const uint8_t *lines, size_t len)
{
    struct fd_sink *self = (struct fd_sink *)sink;
    size_t done = 0;
    int polls = 0;
    while (done < len) {
        ssize_t written = write(self->fd, lines + done, len - done);
        if (written > 0) {
            done += (size_t)written;
        } else if (written == 0 || (errno != EINTR && errno != EAGAIN) ||
                   (errno == EAGAIN && !wait_for_room(sink, self->fd, &polls))) {
            break;
        }
    }
    return line_sink_count(lines + done, len - done);
}

/* The descriptor keeps its number, because the writer's thread may be writing. */
static enum status reopen_file(struct line_sink *sink, struct error *err)
{
    struct fd_sink *self = (struct fd_sink *)sink;
    return self->path ? log_reopen_file(self->path, self->fd, err) : ST_OK;
}

static const struct line_sink_ops file_ops = {
    .what = "the access log",
    .gather_ns = GATHER_NS,
    .write = write_file,
    .reopen = reopen_file,
    .free = free_fd,
};

enum status line_sink_file(const char *path, struct line_sink **out_sink, struct error *err)
{
    struct fd_sink *self = make(&file_ops, path, err);
    struct stat st;
    if (!self) {
        return err->code;
    }
    self->fd = STDERR_FILENO;
    if (path && log_open_file(path, &self->fd, err) != ST_OK) {
        free(self);
        return err->code;
    }
    bool is_file = fstat(self->fd, &st) == 0 && S_ISREG(st.st_mode);
    self->sink.write_bytes = is_file ? FILE_BYTES : PIPE_BUF;
    *out_sink = &self->sink;
    return ST_OK;
}

/* ---- the journal ----------------------------------------------------------------------------- */

/* False: the entry is lost. */
static bool send_entry(struct fd_sink *self, const uint8_t *line, size_t len, int *polls)
{
    uint8_t entry[LINE_BYTES_MAX];
    must(len <= sizeof(entry));
    for (size_t i = 0; i < len; i++) {
        entry[i] = line[i] == LINE_SINK_FIELD_END ? '\n' : line[i];
    }
    while (send(self->fd, entry, len, MSG_NOSIGNAL) < 0) {
        if (errno != EINTR && (errno != EAGAIN || !wait_for_room(&self->sink, self->fd, polls))) {
            return false;
        }
    }
    return true;
}

static uint64_t write_journal(struct line_sink *sink, const uint8_t *lines, size_t len)
{
    struct fd_sink *self = (struct fd_sink *)sink;
    uint64_t lost = 0;
    int polls = 0;
    for (size_t done = 0; done < len;) {
        const uint8_t *end = memchr(lines + done, '\n', len - done);
        must(end != NULL);
        size_t line_len = (size_t)(end + 1 - (lines + done));
        lost += !send_entry(self, lines + done, line_len, &polls);
        done += line_len;
    }
    return lost;
}

static const struct line_sink_ops journal_ops = {
    .what = "the journal",
    .gather_ns = GATHER_NS,
    .write = write_journal,
    .free = free_fd,
};

enum status line_sink_journal(const char *path, struct line_sink **out_sink, struct error *err)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    must(strlen(path) < sizeof(address.sun_path));
    memcpy(address.sun_path, path, strlen(path));
    struct fd_sink *self = make(&journal_ops, path, err);
    if (!self) {
        return err->code;
    }
    self->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (self->fd < 0 || connect(self->fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
        int number = errno;
        free_fd(&self->sink);
        return error_set(err, status_of_errno(number), "the journal's socket %s: %s", path,
                         strerror(number));
    }
    *out_sink = &self->sink;
    return ST_OK;
}
