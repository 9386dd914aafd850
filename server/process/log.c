/* SPDX-License-Identifier: MIT */
/*
 * A line is formatted on the stack, cut at LOG_LINE_MAX, escaped and written at once, so that lines
 * of different threads do not mix. If a pipe is full the line is lost and the loop goes on; a pipe
 * that polls as writable has room for PIPE_BUF, which is more than a line.
 */
#include "config.h"

#include "server/process/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/check.h"
#include "base/utf8.h"
#include "server/process/line.h"

#define LOG_LINE_MAX 1024
#define LOG_FILE_MODE 0640

struct level_info {
    const char *name;
    int priority; /* of syslog(3) */
};

static const struct level_info levels[LOG_LEVEL_COUNT] = {
    [LOG_ERROR] = {"error", 3}, [LOG_WARNING] = {"warning", 4}, [LOG_NOTICE] = {"notice", 5},
    [LOG_INFO] = {"info", 6},   [LOG_DEBUG] = {"debug", 7},
};

static atomic_int level_max = LOG_INFO;
/* Set once by log_open(), before there are threads. */
static bool is_journal;
static const char *file_path; /* NULL: stderr */
static int log_fd = STDERR_FILENO;

/* ---- where lines go -------------------------------------------------------------------------- */

/*
 * JOURNAL_STREAM is "device:inode" of the stream that systemd made for us; stderr may be another.
 */
bool log_stderr_is_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && (unsigned long long)st.st_dev == device &&
           (unsigned long long)st.st_ino == inode;
}

/* Writes without waiting for the reader of a pipe. */
enum status log_open_file(const char *path, int *out_fd, struct error *err)
{
    *out_fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
                   LOG_FILE_MODE);
    return *out_fd < 0
               ? error_set(err, status_of_errno(errno), "log file %s: %s", path, strerror(errno))
               : ST_OK;
}

enum status log_open(const char *path, enum log_level level, struct error *err)
{
    must(level < LOG_LEVEL_COUNT);
    log_set_level(level);
    is_journal = !path && log_stderr_is_journal();
    file_path = path;
    return path ? log_open_file(path, &log_fd, err) : ST_OK;
}

/* Other threads write at the same time, so the descriptor keeps its number. */
enum status log_reopen_file(const char *path, int fd, struct error *err)
{
    int fresh;
    TRY(log_open_file(path, &fresh, err));
    int rc = dup3(fresh, fd, O_CLOEXEC);
    int number = errno;
    close(fresh);
    return rc < 0 ? error_set(err, ST_SYSTEM, "log file %s: %s", path, strerror(number)) : ST_OK;
}

enum status log_reopen(struct error *err)
{
    return file_path ? log_reopen_file(file_path, log_fd, err) : ST_OK;
}

const char *log_path(void)
{
    return file_path;
}

bool log_level_find(const char *name, enum log_level *out_level)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (strcmp(levels[i].name, name) == 0) {
            *out_level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

enum log_level log_level(void)
{
    return (enum log_level)atomic_load_explicit(&level_max, memory_order_relaxed);
}

void log_set_level(enum log_level level)
{
    must(level < LOG_LEVEL_COUNT);
    atomic_store_explicit(&level_max, (int)level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level)
{
    must(level < LOG_LEVEL_COUNT);
    return levels[level].name;
}

bool log_has_level(enum log_level level)
{
    return level <= log_level();
}

/* ---- text ------------------------------------------------------------------------------------ */

/*
 * The text shown for the |len| bytes at |p|, which form a sequence, or for one byte if |len| is 0.
 */
static size_t show(char *out, size_t size, const uint8_t *p, size_t len)
{
    bool is_plain =
        len == 1 ? *p >= 0x20 && *p != 0x7f : len > 1 && !utf8_is_disruptive(utf8_code(p, len));
    if (is_plain) {
        memcpy(out, p, len);
        return len;
    }
    int printed = len > 1 ? snprintf(out, size, "\\u{%x}", (unsigned)utf8_code(p, len))
                          : snprintf(out, size, "\\x%02x", *p);
    return (size_t)printed;
}

size_t log_escape(char *out, size_t size, struct span text)
{
    const uint8_t *p = text.ptr, *end = p + text.len;
    size_t used = 0;
    while (p < end) {
        for (; end - p >= 8 && size - used >= 8 && utf8_are_printable(load_le64(p)); p += 8) {
            memcpy(out + used, p, 8);
            used += 8;
        }
        if (p < end && *p >= 0x20 && *p < 0x7f && used < size) {
            out[used++] = (char)*p++;
            continue;
        }
        if (p == end) {
            break;
        }
        char shown[sizeof("\\u{10ffff}")];
        size_t len = *p < 0x80 ? 1 : utf8_sequence(p, end);
        size_t bytes = show(shown, sizeof(shown), p, len);
        must(bytes > 0 && bytes < sizeof(shown) && used <= size);
        if (bytes > size - used) {
            break;
        }
        memcpy(out + used, shown, bytes);
        used += bytes;
        p += len ? len : 1;
    }
    return used;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static char *put(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

/* Without printf(), because each request may have a line. */
static size_t print_prefix(char *line, enum log_level level)
{
    if (is_journal) {
        memcpy(line, (const char[]){'<', (char)('0' + levels[level].priority), '>'}, 3);
        return 3;
    }
    char *at = line_print_time(line);
    at = put(put(put(at, " "), levels[level].name), ": ");
    return (size_t)(at - line);
}

void log_line(enum log_level level, const char *fmt, ...)
{
    must(level < LOG_LEVEL_COUNT);
    if (!log_has_level(level)) {
        return;
    }
    char text[LOG_LINE_MAX];
    va_list args;
    va_start(args, fmt);
    int wanted = vsnprintf(text, sizeof(text), fmt, args);
    va_end(args);
    size_t len = wanted < 0 ? 0 : (size_t)wanted < sizeof(text) ? (size_t)wanted : sizeof(text) - 1;
    log_text(level, span_of(text, len));
}

void log_text(enum log_level level, struct span text)
{
    must(level < LOG_LEVEL_COUNT);
    if (!log_has_level(level)) {
        return;
    }
    char line[LOG_LINE_MAX];
    size_t used = print_prefix(line, level);
    used += log_escape(line + used, sizeof(line) - 1 - used, text);
    must(used < sizeof(line));
    line[used++] = '\n';
    struct pollfd room = {.fd = log_fd, .events = POLLOUT};
    if (poll(&room, 1, 0) == 1) {
        ssize_t written = write(log_fd, line, used);
        (void)written; /* there is nowhere to report this */
    }
}
