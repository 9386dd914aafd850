/* SPDX-License-Identifier: MIT */
/*
 * The access log: a line of JSON for each request at its end, or for some of them (--access-log).
 * The loop only prints the line into memory; server/process/line_writer.h writes it. Text from a
 * client is quoted and bounded, so it can forge neither a line nor a member. Loop thread, but
 * access_log_counts().
 */
#ifndef PTED_SERVER_DAEMON_OBSERVE_ACCESS_LOG_H
#define PTED_SERVER_DAEMON_OBSERVE_ACCESS_LOG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/http/transport.h"
#include "server/process/line_writer.h"
#include "server/process/options.h"

struct loop;
struct request;

/* Bytes of a path whose text is worth keeping, and of that text; exchanges whose texts are kept. */
#define ACCESS_PATH_MAX 128
#define ACCESS_TEXT_MAX 320
#define ACCESS_ORIGINS 64

/* Where a request has come from and what it has asked for, and their members in a line: those of
 * the next request of an exchange are probably the same. */
struct access_origin {
    const char *method; /* a constant; NULL: nothing is kept here */
    char remote[TRANSPORT_REMOTE_MAX];
    size_t path_len, text_len;
    uint8_t path[ACCESS_PATH_MAX];
    char text[ACCESS_TEXT_MAX];
};

/* Zeroed at first. */
struct access_log {
    const struct options *options; /* borrowed, like |loop| */
    struct loop *loop;
    struct line_writer *writer; /* owned; NULL: there is no access log */
    bool is_journal;            /* lines are entries of the journal */
    uint64_t good_count;        /* successful requests, for the samples */
    uint64_t lost_count;        /* lost lines that the log has told of */
    struct access_origin origins[ACCESS_ORIGINS];
};

MUST_CHECK enum status access_log_open(struct access_log *log, struct loop *loop,
                                       const struct options *options, struct error *err);
void access_log_close(struct access_log *log);

/* Opens its file again, if it has one. */
MUST_CHECK enum status access_log_reopen(struct access_log *log, struct error *err);

/* |request| is over, or its client has gone; the exchange is still known. */
void access_log_request(struct access_log *log, struct request *request);

/* Zeros without an access log. Any thread. */
struct line_writer_counts access_log_counts(const struct access_log *log);

#endif
