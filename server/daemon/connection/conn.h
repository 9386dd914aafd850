/* SPDX-License-Identifier: MIT */
/*
 * One connection that speaks HTTP/1: the bytes of its transport become one request at a time, and
 * the answer goes back. It is a session (server/daemon/connection/session.h) and owns one exchange,
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
#include "server/daemon/connection/protocol.h"
#include "server/daemon/connection/session.h"
#include "server/daemon/request/exchange.h"
#include "server/http/framing.h"
#include "server/http/head_pattern.h"
#include "server/http/transport.h"

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

/* The head of an earlier message, which another message may repeat: its connection goes on. */
struct conn_known {
    struct head_pattern *pattern; /* owned; NULL: none */
    struct exchange_head head;    /* with the length of the last message that has it */
    uint32_t miss_count;          /* heads in a row that were others */
    bool is_http_1_0, takes_trailers;
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct session session; /* its state follows from |state|; its deadline is that of the state */
    struct exchange exchange; /* the only one at a time */
    struct framing framing;   /* of the message that is being read */
    llhttp_t parser;          /* of its head alone */
    struct conn_known known;
    struct buf ahead;    /* bytes read ahead of an unanswered request */
    size_t queued_bytes; /* bytes of the answer at the time of the last progress */
    uint8_t *unsent;     /* owned: the rest of an answer whose request is over, or NULL */
    size_t unsent_bytes;
    struct transport_rest answer_rest;   /* of the answer: |unsent|, or the request's own memory */
    struct transport_rest continue_rest; /* of "100 Continue" when the socket was full */
    uint64_t read_turn;                  /* when it was last read from */
    const struct protocol *other;        /* that the client may speak instead; NULL: it does not */
    uint8_t preface_len;                 /* bytes of its preface that have come */
    bool is_stopped;                     /* reading waits for |ahead| to be used, or for memory */
    bool is_parsing;     /* inside parse(): an answer must not parse the next request */
    bool is_broken;      /* writing failed: close without lingering */
    bool is_keep_alive;  /* from the head; valid from BODY on */
    bool is_http_1_0;    /* likewise */
    bool is_chunked;     /* the answer that is being written is a stream, in chunks */
    bool takes_trailers; /* the client does, behind a stream */
    bool wants_continue; /* the client waits for "100 Continue" */
};

extern const struct protocol conn_protocol;

#endif
