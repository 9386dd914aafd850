/* SPDX-License-Identifier: MIT */
/*
 * A line is formatted on the stack, cut at LOG_LINE_MAX, cleaned of control characters and written
 * at once, so that lines of different threads do not mix. A full pipe loses the line rather than
 * stopping the loop: a pipe that polls as writable has room for PIPE_BUF, which is more than a
 * line.
 */
#include "config.h"

#include "server/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_LINE_MAX 1024

struct level_info {
    const char *name;
    int priority; /* of syslog(3) */
};

static const struct level_info levels[LOG_LEVEL_COUNT] = {
    [LOG_ERROR] = {"error", 3}, [LOG_WARNING] = {"warning", 4}, [LOG_NOTICE] = {"notice", 5},
    [LOG_INFO] = {"info", 6},   [LOG_DEBUG] = {"debug", 7},
};

/* Set once by log_init(), before there are threads. */
static enum log_level level_max = LOG_INFO;
static bool is_journal;

/* JOURNAL_STREAM is "device:inode" of the stream that systemd made for us; stderr may be another.
 */
static bool stderr_is_journal(void)
{
    const char *text = getenv("JOURNAL_STREAM");
    unsigned long long device, inode;
    struct stat st;
    return text && sscanf(text, "%llu:%llu", &device, &inode) == 2 &&
           fstat(STDERR_FILENO, &st) == 0 && (unsigned long long)st.st_dev == device &&
           (unsigned long long)st.st_ino == inode;
}

void log_init(enum log_level level)
{
    level_max = level;
    is_journal = stderr_is_journal();
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

static size_t print_prefix(char *line, size_t size, enum log_level level)
{
    int len;
    if (is_journal) {
        len = snprintf(line, size, "<%d>", levels[level].priority);
    } else {
        struct timespec now;
        struct tm utc;
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &utc);
        len = snprintf(line, size, "%04d-%02d-%02dT%02d:%02d:%02d.%06ldZ %s: ", utc.tm_year + 1900,
                       utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                       now.tv_nsec / 1000, levels[level].name);
    }
    return len < 0 ? 0 : (size_t)len;
}

void log_line(enum log_level level, const char *fmt, ...)
{
    if (level > level_max) {
        return;
    }
    char line[LOG_LINE_MAX + 1];
    size_t prefix = print_prefix(line, LOG_LINE_MAX, level);
    va_list args;
    va_start(args, fmt);
    int text = vsnprintf(line + prefix, LOG_LINE_MAX - prefix, fmt, args);
    va_end(args);
    size_t len = text < 0 ? prefix : prefix + (size_t)text;
    if (len >= LOG_LINE_MAX) {
        len = LOG_LINE_MAX - 1;
    }
    for (size_t i = prefix; i < len; i++) {
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f) {
            line[i] = '?';
        }
    }
    line[len++] = '\n';
    struct pollfd room = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&room, 1, 0) == 1) {
        ssize_t written = write(STDERR_FILENO, line, len);
        (void)written; /* nowhere to complain to */
    }
}
