/* SPDX-License-Identifier: MIT */
/*
 * One connection: bytes from the stream become one request at a time, and its answer goes back.
 * Bytes that a client sends ahead wait in a bounded buffer; when it is full, reading stops until
 * the answer before them is out. Answers are therefore always in order.
 *
 * A connection is in one state at a time, and each state has one deadline. It ends only in the
 * close callback of its transport, and a request that workers still use outlives it.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_CONN_H
#define PTED_SERVER_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <llhttp.h>

#include "base/buf.h"
#include "base/list.h"
#include "server/clients.h"
#include "server/framing.h"
#include "server/transport.h"

struct request;
struct server;

#define CONN_MAGIC 0x636f6e6eu

enum conn_state {
    CONN_IDLE,    /* between requests */
    CONN_HEAD,    /* a request has begun */
    CONN_BODY,    /* its head is complete */
    CONN_BUSY,    /* the request is complete and not answered; |deadline| is that of its step */
    CONN_FLUSH,   /* the request is over, and the client has yet to take |unsent| */
    CONN_LINGER,  /* the last answer is out and our side is shut; waits for the client to close */
    CONN_CLOSING, /* the transport is being closed */
};

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct server *server;               /* borrowed; outlives every connection */
    struct list link;                    /* in server->conns */
    struct list turn_link;               /* in server->turns.conns: a message waits for its turn */
    struct list want_link;               /* in server->clients.wanting */
    uint64_t want_ms;                    /* since when it waits */
    struct transport *transport;         /* owned, until closed() */
    struct transport_rest continue_rest; /* of "100 Continue" when the socket was full */
    struct framing framing;              /* of the message that is being read */
    llhttp_t parser;                     /* of its head alone */
    struct request *request;             /* the request, from HEAD to the end of BUSY */
    uint64_t deadline_ms;                /* deadline of the state, on the loop's clock */
    struct buf ahead;                    /* bytes read ahead of an unanswered request */
    size_t discarded_bytes; /* bytes discarded of an unwanted body, or while lingering */
    size_t queued_bytes;    /* bytes of the answer at the time of the last progress */
    uint8_t *unsent;        /* owned: the rest of an answer whose request is over, or NULL */
    size_t unsent_bytes;
    struct transport_rest flush; /* of |unsent| */
    struct pace pace;            /* progress of the body or the answer, see conn_is_paced() */
    size_t charged_bytes;        /* memory that it holds, see clients_update() */
    uint64_t read_turn;          /* when it was last read from */
    bool is_eof;                 /* the client sends nothing more */
    bool is_stopped;             /* reading waits for |ahead| to be used, or for memory */
    bool is_parsing;             /* inside conn_read(): an answer must not parse the next request */
    bool is_broken;              /* writing failed: close without lingering */
    bool is_keep_alive;          /* from the head; valid from BODY on */
    bool wants_continue;         /* the client waits for "100 Continue" */
};

/* Accepts the client behind |transport|, which then belongs to the connection. False: there is no
 * memory. */
MUST_CHECK bool conn_accept(struct server *server, struct transport *transport);

/*
 * Writes the answer of the current request. True: all of it is out, or the connection has copied
 * the rest, or the connection is broken and nothing more will get out. False: |rest->done| is
 * called later, and the memory that |spans| point to lives until then. Changes |spans|.
 */
bool conn_write(struct conn *conn, struct span *spans, unsigned count, struct transport_rest *rest);

/* The current request is over and leaves the connection. */
void conn_answered(struct conn *conn, bool is_keep_alive);

/* Ends the connection now: the request is cancelled in whatever step it is. */
void conn_abort(struct conn *conn);

/* Is memory held at the client's pace? The client sends a body or takes an answer; or a complete
 * body waits because its model's queue is full. */
bool conn_is_paced(const struct conn *conn);
bool conn_is_parked(const struct conn *conn);

/* Memory that is held for the client: on the heap; on the heap and in the pool. */
size_t conn_heap_bytes(const struct conn *conn);
size_t conn_held_bytes(const struct conn *conn);

/* Goes on with the bytes read ahead: the connection is idle and its turn has come. */
void conn_go_on(struct conn *conn);

/* Takes the memory of a paced or parked connection, which others need. */
void conn_evict(struct conn *conn);

/*
 * Tries again for a connection that waits for memory, see clients_want(). True: it waits no more.
 */
bool conn_retry(struct conn *conn);

/* Checks whether the deadline of the state has passed. */
void conn_check_deadline(struct conn *conn, uint64_t now_ms);

/* Draining: an idle connection closes; others close after their answer. */
void conn_drain(struct conn *conn);

#endif
