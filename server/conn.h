/* SPDX-License-Identifier: MIT */
/*
 * One connection: bytes from the stream become one request at a time, and its answer goes back.
 * What a client sends ahead waits in a bounded buffer; then reading stops until the answer before
 * it is out, so answers are always in order.
 *
 * A connection is in one state at a time and each state has one deadline. It is gone only in the
 * close callback of its handle (libuv's rule), and a request that workers still have outlives it.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_CONN_H
#define PTED_SERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <llhttp.h>
#include <uv.h>

#include "base/buf.h"
#include "base/list.h"
#include "server/framing.h"
#include "server/stream.h"

struct request;
struct server;

#define CONN_MAGIC 0x636f6e6eu
#define CONN_REMOTE_MAX 64

enum conn_state {
    CONN_IDLE,    /* between requests */
    CONN_HEAD,    /* a request has begun */
    CONN_BODY,    /* its head is complete */
    CONN_BUSY,    /* it is complete and not answered; |deadline| is its step's */
    CONN_LINGER,  /* the last answer is out and our side is shut; waits for the client's close */
    CONN_CLOSING, /* uv_close() was called */
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct server *server; /* borrowed; outlives every connection */
    struct list link;      /* in server->conns */
    union stream io;
    uv_shutdown_t shutdown;
    uv_write_t continue_write;    /* of "100 Continue" when the socket was full */
    struct framing framing;       /* of the message that is being read */
    llhttp_t parser;              /* of its head alone */
    struct request *request;      /* from HEAD to the end of BUSY */
    uint64_t deadline_ms;         /* on the loop's clock */
    struct buf ahead;             /* bytes read behind an unanswered request */
    size_t discarded_bytes;       /* of a body that nobody wants, or while lingering */
    size_t queued_bytes;          /* of the answer, when progress was last seen */
    char remote[CONN_REMOTE_MAX]; /* whose; with --log-requests all, else "" */
    bool is_eof;                  /* the client sends nothing more */
    bool is_stopped;              /* reading waits for |ahead| to be used */
    bool is_parsing;              /* below conn_read: an answer must not parse the next request */
    bool is_broken;               /* writing failed: close without lingering */
    bool is_keep_alive;           /* as the head says; from BODY on */
    bool wants_continue;          /* the client waits for "100 Continue" */
};

/* A client on the socket |fd|, which is the connection's; without memory for one it is closed. */
void conn_accept(struct server *server, int fd, bool is_unix);

/*
 * The answer of the current request. True: all of it is out, or the connection is broken and
 * nothing will ever get out. False: |on_write| is called later; what |bufs| point to lives until
 * then.
 */
bool conn_write(struct conn *conn, const uv_buf_t *bufs, unsigned count, uv_write_t *write,
                uv_write_cb on_write);

/* The current request is over and no longer the connection's. */
void conn_answered(struct conn *conn, bool is_keep_alive);

/* Ends it now: the request is cancelled from whatever step it is in. */
void conn_abort(struct conn *conn);

/* Looks whether the state's time is up. */
void conn_check_deadline(struct conn *conn, uint64_t now_ms);

/* Draining: an idle connection closes; others close after their answer. */
void conn_drain(struct conn *conn);

#endif
