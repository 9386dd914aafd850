/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer, between a connection and a call. The owner of an exchange speaks a
 * protocol and knows no models. The call (server/daemon/request/request.h) knows models and no
 * protocol. HTTP/1 (server/daemon/connection/conn.h) and HTTP/2 (http2.h beside it) are the
 * protocols. A further one fills in a struct exchange_ops and calls the functions for protocols;
 * calls do not change.
 *
 * An exchange has two halves. The protocol gives the fields of the head, then the body in pieces,
 * and says when the request is complete. The call answers with a status, fields and parts, in one
 * write or in several, and with trailers. It begins after the request. If the protocol is duplex,
 * the answer may begin as soon as the head is complete, and each half ends by itself; the calls of
 * request.c make no use of that yet. Either side can end the exchange early: the protocol calls
 * exchange_cancel() when the client goes, and the call refuses a request before it is complete.
 *
 * Where memory is short (server/daemon/request/transfers.h), each half has a pace, and it may have
 * to wait. The protocol owns the storage and uses it for one request after the other. HTTP/1 has
 * one exchange for each connection; a protocol with streams has one for each stream.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_EXCHANGE_H
#define PTED_SERVER_DAEMON_REQUEST_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "server/daemon/infer/habit.h"
#include "server/daemon/infer/query.h"
#include "server/daemon/request/route.h"
#include "server/daemon/request/tokens.h"
#include "server/daemon/request/transfers.h"
#include "server/http/http.h"

struct body;
struct exchange;
struct head;
struct request;
struct requests;

#define EXCHANGE_MAGIC 0x65786368u

/* The most parts of one write; the memory for a protocol's own text around them. */
#define EXCHANGE_PARTS_MAX 257
#define EXCHANGE_SCRATCH_BYTES 3136

/* The half that comes. */
enum exchange_incoming {
    EXCHANGE_NO_REQUEST, /* there is none, the call is over, or the client has gone */
    EXCHANGE_HEAD,       /* a request has begun */
    EXCHANGE_BODY,       /* its head is complete */
    EXCHANGE_RECEIVED,   /* it is complete, or refused */
};

/* The half that goes. */
enum exchange_outgoing {
    EXCHANGE_NO_ANSWER, /* nothing has been written yet */
    EXCHANGE_BEGUN,     /* the status is out */
    EXCHANGE_FLUSH,     /* the call is over, and the client has yet to take the rest */
};

/* The role of an address decides what its clients may ask for. */
enum listener_role {
    LISTENER_PUBLIC,
    LISTENER_ADMIN,  /* everything, also what changes the models; no token is needed */
    LISTENER_HEALTH, /* routes for probes alone; no token is needed */
    LISTENER_ROLE_COUNT,
};

/* The head of a request beside its target and its fields. */
struct exchange_head {
    enum route_method method;
    const char *method_name; /* a constant */
    bool has_body;
    uint64_t content_length; /* 0: not known, or no body */
    bool is_learnt; /* the protocol will know this head again: its bytes, but for values that mean
                       nothing for its route */
    bool is_known;  /* it is the one that was learnt last */
};

/* Where a head that was learnt led to. */
struct exchange_known {
    bool is_set; /* to a call */
    struct route_match match;
    struct query query;
};

enum exchange_written {
    EXCHANGE_WRITTEN, /* the parts are not needed any more, and the next write may come */
    EXCHANGE_WAITS, /* the parts stay where they are, and no write comes, until request_written() */
    EXCHANGE_BROKEN, /* nothing reaches the client any more */
};

/* One write of an answer. */
struct exchange_part {
    const struct http_answer *answer; /* of the first write; NULL later */
    const struct span *spans;
    unsigned count;
    bool is_last;
    /* Of the last write. A protocol drops them where its client takes none, or where the answer is
     * no stream. */
    const struct http_trailer *trailers;
    unsigned trailer_count;
};

/*
 * The functions of a protocol. Calls use the first two, the rules of memory use the others. None of
 * them frees the exchange: its caller still looks at it.
 */
struct exchange_ops {
    /* An answer may begin before the request is complete. */
    bool is_duplex;
    /*
     * Writes the next part of the answer. An answer in several writes is a stream
     * (answer->is_stream): its length is not known before its end.
     */
    enum exchange_written (*write)(struct exchange *exchange, const struct exchange_part *part);
    /* The call is over and has left the exchange. The last write has been made; what may still come
     * of the request is not wanted. */
    void (*end)(struct exchange *exchange);
    /* Reads on: there is memory for the body again. */
    void (*resume)(struct exchange *exchange);
    /* The request has been refused: reads no more of it, and calls exchange_run(). */
    void (*refuse)(struct exchange *exchange);
    /* Ends the exchange without a word to the client; calls exchange_cancel(). It is called while
     * others ask for memory, so no other exchange may be cancelled in it. */
    void (*abort)(struct exchange *exchange);
    /* Returns the exchange that the answer is a part of the answer of, or NULL: then it has a
     * client of its own. NULL itself: likewise, always. */
    struct exchange *(*outer)(struct exchange *exchange);
};

struct exchange {
    uint32_t magic;
    enum exchange_incoming incoming; /* set by exchange.c, like |outgoing| */
    enum exchange_outgoing outgoing;
    const struct exchange_ops *ops;
    struct requests *requests; /* borrowed; outlives it */
    struct request *request;   /* the call, until it is over; borrowed */
    struct request *writer;    /* its parts are being written, even if the client has gone */
    const char *remote;        /* the client's address for the log; the protocol's */
    const char *via;           /* of the proxy that has said who that is; NULL: none; likewise */
    uint64_t client;           /* who is charged, see server/http/client.h; the protocol's */
    struct list link;          /* in requests->transfers.exchanges */
    struct transfer upload;    /* the half that comes */
    struct transfer answer;    /* the half that goes, and what the call waits for */
    size_t kept_bytes;         /* heap memory that the protocol holds, set by exchange_keep() */
    size_t charged_bytes;      /* memory that is charged for it, see transfers_update() */
    uint64_t sent_bytes;       /* of the answer, including what the protocol has put around it */
    bool is_local;             /* it came by a way that --shared-memory names */
    bool is_proxy;             /* the head says who the client is, see request_begin() */
    bool is_for_grpc;          /* the client came to an address for gRPC alone */
    enum listener_role role;   /* of the address that the client came to */
    const char *tls_version;   /* "TLSv1.3"; NULL: without TLS; the protocol's */
    const char *tls_subject;   /* of the client's certificate; NULL: it has none; the protocol's */
    struct token_memory token_memory; /* of its connection; see server/daemon/request/access.h */
    struct habit habit;               /* of its client; the call has it while there is one */
    struct exchange_known known;      /* of the head that its protocol knows */
    bool is_head_only;                /* HEAD: the parts of the answer are not sent */
};

/* ---- for protocols --------------------------------------------------------------------------- */

void exchange_init(struct exchange *exchange, struct requests *requests,
                   const struct exchange_ops *ops, const char *remote);

/* Call when the exchange has no request and no waiting write; the protocol holds no more memory for
 * it. */
void exchange_fini(struct exchange *exchange);

/* Notes that the protocol holds |bytes| of heap memory for the client, such as bytes read ahead. */
void exchange_keep(struct exchange *exchange, size_t bytes);

/* Gives back what is known of the client's requests before; there is none now. */
void exchange_forget(struct exchange *exchange);

/* Call when a request begins; no write of one before it waits. False: there is no memory. */
MUST_CHECK bool exchange_begin(struct exchange *exchange);

/* Has it had a request before? */
static inline bool exchange_is_repeat(const struct exchange *exchange)
{
    return exchange->habit.request_count > 0;
}

/* Gives where the target and the fields go (server/http/head.h). */
struct head *exchange_fields(struct exchange *exchange);

/* Call when the head is complete: checks the route, its limits and its model. False: the request is
 * refused. */
MUST_CHECK bool exchange_end_head(struct exchange *exchange, const struct exchange_head *head);

/*
 * Adds to the body: |bytes| more have been announced, or have come. Both return 0, or the status to
 * refuse the request with; exchange_error() has the text then.
 */
MUST_CHECK int exchange_expect_body(struct exchange *exchange, uint64_t bytes);
MUST_CHECK int exchange_add_body(struct exchange *exchange, struct span bytes);

/*
 * Call before the protocol reads more of the body. False: others need the memory, so nothing may be
 * read now; the protocol stops reading and calls transfers_wait_for_memory() for |upload|.
 * |missing| is 0, or the number of bytes that are certain to come: then |*out_len| of them can be
 * read straight to |*out_ptr|. With 0 the protocol uses memory of its own, and |*out_len| is 0.
 */
MUST_CHECK bool exchange_room(struct exchange *exchange, size_t missing, uint8_t **out_ptr,
                              size_t *out_len);

/* What the client of a request that comes is expected to do. */
enum exchange_demand {
    EXCHANGE_SENDS,           /* to send more of it */
    EXCHANGE_WAITS_FOR_CALLS, /* to wait, as a call answers as the request comes, or cannot take
                                 more of it now */
    EXCHANGE_RESTS,           /* what it likes: it is between two messages of a stream */
};

enum exchange_demand exchange_demand(const struct exchange *exchange);

/* Does the body consist of messages, each of which is a call? */
bool exchange_has_calls(const struct exchange *exchange);

/* Does the call take no more of the body for now, though there is memory? It reads on later. */
bool exchange_is_held_back(const struct exchange *exchange);

/* Returns the bytes that the body will have, once that is known; else 0. */
uint64_t exchange_announced(const struct exchange *exchange);
/* Returns where the next of them may be read to, in memory that the body has already: nobody else
 * has to give any. |*out_len| is 0 if there is no such place. */
uint8_t *exchange_spare(const struct exchange *exchange, size_t *out_len);

/* Is an exchange giving its memory back at this moment? */
bool exchange_is_evicting(const struct exchange *exchange);

/* Has nothing of the body been taken yet? */
bool exchange_is_bodyless(const struct exchange *exchange);

/* Refuses the request. The text goes to exchange_error() before that. */
struct error *exchange_error(struct exchange *exchange);
void exchange_refuse(struct exchange *exchange, int http_status);
bool exchange_is_refused(const struct exchange *exchange);

/* Refuses the request unless it has been refused before, and reads no more of it. An answer of
 * gRPC that has begun says why in its trailers, unless a write of it waits. */
void exchange_give_up(struct exchange *exchange, enum status code, const char *why,
                      int http_status);

/* Call when the request is complete, or refused: calls request_run(). The call may have ended on
 * return. */
void exchange_run(struct exchange *exchange);

/* Call after EXCHANGE_WAITS: the parts are not needed any more. Called after a cancellation,
 * too. */
void exchange_note_written(struct exchange *exchange, bool is_ok);

/* Call when the client has gone. The call ends now or as soon as it can; end() will not be
 * called. */
void exchange_cancel(struct exchange *exchange);

/* Call after end(): the protocol still has a rest of the answer for the client. It has it no
 * more. */
void exchange_begin_flush(struct exchange *exchange);
void exchange_end_flush(struct exchange *exchange);

/* Have fewer bytes than --rate-min come of the body, or been taken of the answer? */
bool exchange_is_upload_slow(struct exchange *exchange, uint64_t now_ms);
bool exchange_is_answer_slow(struct exchange *exchange, uint64_t now_ms);

/* Call when the loop has stood still until |now_ms|: both halves begin their paces anew. */
void exchange_restart_paces(struct exchange *exchange, uint64_t now_ms);

/* Returns memory for the protocol's text around the parts of a write, until the write is done. */
char *exchange_scratch(struct exchange *exchange);

/* Is the answer on its way? Then only the client has something left to do. */
bool exchange_is_answering(const struct exchange *exchange);

/* ---- for calls ------------------------------------------------------------------------------- */

/* May the answer begin? Its first write comes not before. */
bool exchange_may_answer(const struct exchange *exchange);

/* Has an answer begun? */
static inline bool exchange_has_begun(const struct exchange *exchange)
{
    return exchange->outgoing != EXCHANGE_NO_ANSWER;
}

/* See struct exchange_ops. */
enum exchange_written exchange_write(struct exchange *exchange, const struct exchange_part *part);

/* Call when the call takes more of the body again, see exchange_is_held_back(). */
void exchange_read_on(struct exchange *exchange);

/* Call when the answer is over, its last write has been made; or nothing reaches the client any
 * more. */
void exchange_end(struct exchange *exchange);

/* Call when the call waits for memory, since |since_ms|: request_retry() will be called. */
void exchange_wait_for_memory(struct exchange *exchange, uint64_t since_ms);

/* ---- for the rules of memory (transfers.c) --------------------------------------------------- */

/* Returns the exchange that the client takes the answer from: itself, or that of the stream whose
 * call it belongs to. */
struct exchange *exchange_owner(struct exchange *exchange);

/* Does a complete body wait because its model's queue is full? */
bool exchange_is_parked(const struct exchange *exchange);

/* Returns the body that is being received, or NULL. */
struct body *exchange_upload(const struct exchange *exchange);

/* Returns memory that is held for the client: on the heap; on the heap and in the pool. Of the body
 * that is being received alone. */
size_t exchange_heap_bytes(const struct exchange *exchange);
size_t exchange_held_bytes(const struct exchange *exchange);
size_t exchange_upload_bytes(const struct exchange *exchange);

/* Takes the memory of an exchange that is parked, or that holds it at the pace of the client. */
void exchange_evict(struct exchange *exchange);

/* Tries again for a half that waits for memory, see transfers_wait_for_memory(). True: it waits no
 * more. */
bool exchange_retry(struct transfer *transfer);

#endif
