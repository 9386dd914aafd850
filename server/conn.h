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
#include "server/clients.h"
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
    CONN_FLUSH,   /* it is over, and the client has yet to take |unsent| */
    CONN_LINGER,  /* the last answer is out and our side is shut; waits for the client's close */
    CONN_CLOSING, /* uv_close() was called */
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct server *server; /* borrowed; outlives every connection */
    struct list link;      /* in server->conns */
    struct list turn_link; /* in server->turns.conns: a message waits to be begun */
    struct list want_link; /* in server->clients.wanting */
    uint64_t want_ms;      /* since when */
    union stream io;
    uv_shutdown_t shutdown;
    uv_write_t continue_write; /* of "100 Continue" when the socket was full */
    struct framing framing;    /* of the message that is being read */
    llhttp_t parser;           /* of its head alone */
    struct request *request;   /* from HEAD to the end of BUSY */
    uint64_t deadline_ms;      /* on the loop's clock */
    struct buf ahead;          /* bytes read behind an unanswered request */
    size_t discarded_bytes;    /* of a body that nobody wants, or while lingering */
    size_t queued_bytes;       /* of the answer, when progress was last seen */
    uint8_t *unsent;           /* owned: the end of an answer whose request is over, or NULL */
    size_t unsent_bytes;
    uv_write_t flush;             /* of |unsent| */
    struct pace pace;             /* of the body or the answer, see conn_is_paced() */
    size_t charged_bytes;         /* see clients_update() */
    char remote[CONN_REMOTE_MAX]; /* whose; with --log-requests all, else "" */
    uint64_t read_turn;           /* when it was read from last */
    bool is_eof;                  /* the client sends nothing more */
    bool is_stopped;              /* reading waits for |ahead| to be used, or for memory */
    bool is_parsing;              /* below conn_read: an answer must not parse the next request */
    bool is_broken;               /* writing failed: close without lingering */
    bool is_keep_alive;           /* as the head says; from BODY on */
    bool wants_continue;          /* the client waits for "100 Continue" */
};

/* A client on the socket |fd|, which is the connection's; without memory for one it is closed. */
void conn_accept(struct server *server, int fd, bool is_unix);

/*
 * The answer of the current request. True: all of it is out, or the connection has a copy of the
 * rest, or it is broken and nothing will ever get out. False: |on_write| is called later; what
 * |bufs| point to lives until then. |bufs| themselves change.
 */
bool conn_write(struct conn *conn, uv_buf_t *bufs, unsigned count, uv_write_t *write,
                uv_write_cb on_write);

/* The current request is over and no longer the connection's. */
void conn_answered(struct conn *conn, bool is_keep_alive);

/* Ends it now: the request is cancelled from whatever step it is in. */
void conn_abort(struct conn *conn);

/*
 * Memory of clients is held as long as the client likes, which sends a body or takes an answer; or
 * as long as the queue of a model is full, for a complete body that waits to be taken there.
 */
bool conn_is_paced(const struct conn *conn);
bool conn_is_parked(const struct conn *conn);

/* Memory that is held for the client: on the heap; there and in the pool. */
size_t conn_heap_bytes(const struct conn *conn);
size_t conn_held_bytes(const struct conn *conn);

/* Goes on with what was read ahead: it is idle and its turn has come. */
void conn_go_on(struct conn *conn);

/* Of a paced or parked connection: others need its memory. */
void conn_evict(struct conn *conn);

/* One that waits for memory, see clients_want(). True: it does not any more. */
bool conn_retry(struct conn *conn);

/* Looks whether the state's time is up. */
void conn_check_deadline(struct conn *conn, uint64_t now_ms);

/* Draining: an idle connection closes; others close after their answer. */
void conn_drain(struct conn *conn);

#endif
