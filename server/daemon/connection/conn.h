/* SPDX-License-Identifier: MIT */
/*
 * One connection that speaks HTTP/1: the bytes of its transport become one request at a time, and
 * the answer goes back. It is a protocol (server/daemon/request/exchange.h) and owns one exchange,
 * which it uses again for each request. Bytes that a client sends ahead wait in a bounded buffer;
 * when it is full, reading stops until the answer before them is out. Answers are therefore always
 * in order.
 *
 * A connection is in one state at a time, and each state has one deadline. It ends only when its
 * transport says that it is closed, and a request that workers still use outlives it.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_CONN_H
#define PTED_SERVER_DAEMON_CONNECTION_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <llhttp.h>

#include "base/buf.h"
#include "base/list.h"
#include "server/daemon/loop/turns.h"
#include "server/daemon/request/exchange.h"
#include "server/http/framing.h"
#include "server/http/transport.h"

struct conns;

#define CONN_MAGIC 0x636f6e6eu

enum conn_state {
    CONN_IDLE,    /* between requests */
    CONN_HEAD,    /* a request has begun */
    CONN_BODY,    /* its head is complete */
    CONN_BUSY,    /* the request is complete and not answered; its step sets |deadline| */
    CONN_FLUSH,   /* the request is over, and the client has yet to take |unsent| */
    CONN_LINGER,  /* the last answer is out and our side is shut; waits for the client to close */
    CONN_CLOSING, /* the transport is being closed */
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct conns *conns;         /* borrowed; outlives every connection */
    struct transport *transport; /* owned, until it says that it is closed */
    struct exchange exchange;    /* the only one at a time; its phase follows from |state| */
    struct list link;            /* in conns->all */
    struct list quiet_link;      /* in conns->places, by its state */
    struct turn_reader turn;     /* while a message waits for its turn */
    struct framing framing;      /* of the message that is being read */
    llhttp_t parser;             /* of its head alone */
    uint64_t place_client;       /* who is charged for its place, or would be */
    uint64_t deadline_ms;        /* deadline of the state, on the loop's clock */
    struct buf ahead;            /* bytes read ahead of an unanswered request */
    size_t discarded_bytes;      /* bytes discarded of an unwanted body, or while lingering */
    size_t queued_bytes;         /* bytes of the answer at the time of the last progress */
    uint8_t *unsent;             /* owned: the rest of an answer whose request is over, or NULL */
    size_t unsent_bytes;
    struct transport_rest answer_rest;   /* of the answer: |unsent|, or the request's own memory */
    struct transport_rest continue_rest; /* of "100 Continue" when the socket was full */
    uint64_t read_turn;                  /* when it was last read from */
    bool is_unnamed;                     /* a proxy has yet to say who the client is */
    bool has_place;                      /* one of conns->places is its own */
    bool is_eof;                         /* the client sends nothing more */
    bool is_stopped;                     /* reading waits for |ahead| to be used, or for memory */
    bool is_parsing;     /* inside parse(): an answer must not parse the next request */
    bool is_broken;      /* writing failed: close without lingering */
    bool is_keep_alive;  /* from the head; valid from BODY on */
    bool is_http_1_0;    /* likewise */
    bool is_chunked;     /* the answer that is being written is a stream, in chunks */
    bool wants_continue; /* the client waits for "100 Continue" */
};

/* Accepts the client behind |transport|, which then belongs to the connection. |role|: of the
 * address that the client came to. False: there is no memory. */
MUST_CHECK bool conn_accept(struct conns *conns, struct transport *transport,
                            enum listener_role role);

/* Ends the connection now: the request is cancelled in whatever step it is. */
void conn_abort(struct conn *conn);

/* Is it without a whole head of a request, and has the client sent nothing that the loop has not
 * seen? */
bool conn_is_quiet(const struct conn *conn);

/* Others need the place of a quiet connection. */
void conn_displace(struct conn *conn);

/* Goes on with the bytes read ahead: the connection is idle and its turn has come. |turn| is its
 * own. */
void conn_go_on_reader(struct turn_reader *turn);

/* Checks whether the deadline of the state has passed. */
void conn_check_deadline(struct conn *conn, uint64_t now_ms);

/* The loop has stood still for |pause_ms|, in which nothing of the client was read. */
void conn_postpone(struct conn *conn, uint64_t pause_ms, uint64_t now_ms);

/* Draining: an idle connection closes; others close after their answer. */
void conn_drain(struct conn *conn);

#endif
