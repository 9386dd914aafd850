/* SPDX-License-Identifier: MIT */
/*
 * The smallest protocol with streams: two on one connection, each an exchange that is open in both
 * directions. Each line is a frame: a letter, the number of its stream, and text. The client sends
 * H (the target of a request), B (a piece of its body), E (its end) and C (it is cancelled); it
 * gets a (a status), p (a part), t (a trailer), e (the end) and r (a reset). Its clients are those
 * of a test: what they send is in order.
 */
#ifndef PTED_TESTS_UNIT_TINY_PROTOCOL_H
#define PTED_TESTS_UNIT_TINY_PROTOCOL_H

#include <stdbool.h>

#include "base/buf.h"
#include "server/daemon/connection/protocol.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/request/exchange.h"

#define TINY_STREAMS 2

struct tiny_stream {
    struct exchange exchange;
    struct tiny *tiny;
    struct transport_rest rest;
    unsigned number, resumes;
    bool is_open; /* its request or its answer is not over */
};

struct tiny {
    struct session session;
    struct exchange own; /* never begins: counts the memory that belongs to no stream */
    struct buf ahead;    /* lines before their turn */
    struct tiny_stream streams[TINY_STREAMS];
    bool is_draining;
};

struct tiny *tiny_of(struct session *session);
struct tiny_stream *tiny_stream_of(struct exchange *exchange);

extern const struct exchange_ops tiny_exchange_ops;
extern const struct protocol tiny_protocol;

#endif
