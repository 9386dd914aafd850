/* SPDX-License-Identifier: MIT */
/*
 * Lines that clients cause. A number of lines of each kind is written in a window of time; further
 * ones are counted, and the count is written when the window is over. The last of them are for
 * clients that have caused few (base/share.h). The caller gives the clock. One thread, but
 * log_limits_stats().
 */
#ifndef PTED_SERVER_PROCESS_LOG_LIMIT_H
#define PTED_SERVER_PROCESS_LOG_LIMIT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/share.h"

#define LOG_LIMIT_LINES 20 /* of a kind in a window */
#define LOG_LIMIT_S 10     /* a window */

enum log_kind {
    LOG_KIND_REFUSED, /* requests: 4xx */
    LOG_KIND_FAILED,  /* requests: 5xx */
    LOG_KIND_ACCEPT,  /* connections that could not be taken */
    LOG_KIND_ACCESS,  /* lines of the access log that were lost */
    LOG_KIND_TLS,     /* clients without a handshake */
    LOG_KIND_SLOW,    /* turns of the loop that took long */
    LOG_KIND_PROXY,   /* words of proxies that are malformed */
    LOG_KIND_MODELS,  /* models that calls load, and that go because nobody calls them */
    LOG_KIND_COUNT,
};

#define LOG_LIMITS_MAGIC 0x6c6c696du

struct log_limits {
    uint32_t magic;
    uint64_t (*clock)(void); /* ns */
    struct {
        uint64_t since_ns; /* when the window began */
        uint64_t suppressed;
        struct share lines; /* that were written, by client */
    } windows[LOG_KIND_COUNT];
};

void log_limits_init(struct log_limits *limits, uint64_t (*clock)(void));
void log_limits_fini(struct log_limits *limits);

/* May a line of |kind| be written now that |client| has caused (base/share.h)? False: the line is
 * counted. At level debug always true. */
bool log_limits_admit(struct log_limits *limits, enum log_kind kind, uint64_t client);

/* Writes the counts of windows that are over, or with |of_all| of all windows. True: a window that
 * is not over has counted lines. */
bool log_limits_flush(struct log_limits *limits, bool of_all);

/* Of all windows together; any thread. */
struct share_stats log_limits_stats(const struct log_limits *limits);

#endif
