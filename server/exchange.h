/* SPDX-License-Identifier: MIT */
/*
 * What lies between a connection and a call: one request and its answer. The maker of an exchange
 * speaks a protocol and knows no models; the call (server/request.h) knows models and no protocol.
 * HTTP/1 is the only maker now (server/conn.h). Another one fills in a struct exchange_ops and
 * calls the functions for makers; calls stay as they are.
 *
 * The maker goes through the phases in their order. It gives the fields of the head, then the body
 * bit by bit, then says that the request is complete. The call answers with a status, fields and
 * parts, in one write or in several. Each side can end it early: the maker when the client goes
 * (exchange_cancel()), the call by an answer before the request is complete (exchange_refuse()).
 *
 * An exchange is also what others mean by "a client" where memory is short (server/clients.h): it
 * has a pace, and it may wait. Storage is the maker's, and is used for one request after the other:
 * by HTTP/1 one for each connection, by a protocol with streams one for each stream.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_EXCHANGE_H
#define PTED_SERVER_EXCHANGE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "base/status.h"
#include "server/clients.h"
#include "server/http.h"
#include "server/route.h"

struct body;
struct exchange;
struct head;
struct request;
struct server;

#define EXCHANGE_MAGIC 0x65786368u

/* The most parts that one write may have, and memory for what a maker puts around them. */
#define EXCHANGE_PARTS_MAX 257
#define EXCHANGE_SCRATCH_BYTES 560

enum exchange_phase {
    EXCHANGE_IDLE,  /* there is no request, or the client has gone */
    EXCHANGE_HEAD,  /* a request has begun */
    EXCHANGE_BODY,  /* its head is complete */
    EXCHANGE_CALL,  /* the request is complete or refused; the call works, or writes the answer */
    EXCHANGE_FLUSH, /* the call is over, and the client has yet to take the rest of the answer */
};

/* What a head says beside its target and its fields. */
struct exchange_head {
    enum route_method method;
    const char *method_name; /* a constant */
    bool has_body;
    uint64_t content_length; /* 0: not known, or no body */
};

enum exchange_written {
    EXCHANGE_WRITTEN, /* the parts are not needed any more, and the next write may come */
    EXCHANGE_WAITS, /* the parts stay where they are, and no write comes, until request_written() */
    EXCHANGE_BROKEN, /* nothing reaches the client any more */
};

/* What each maker can do. The call uses the first two, the rules of memory the others. */
struct exchange_ops {
    /*
     * Writes the next |parts| of the answer. The first write has its head, |answer|, later ones
     * NULL. An answer in several writes is a stream; its length is not known to anybody before its
     * end (answer->is_stream).
     */
    enum exchange_written (*write)(struct exchange *exchange, const struct http_answer *answer,
                                   const struct span *parts, unsigned count, bool is_last);
    /* The call is over and has left the exchange. The last write has been made. */
    void (*end)(struct exchange *exchange);
    /* The body may be read on: memory has been found for it. */
    void (*resume)(struct exchange *exchange);
    /* The request is not read to its end: it has been refused, and is run now. */
    void (*refuse)(struct exchange *exchange);
    /* Ends the exchange without a word to the client; calls exchange_cancel(). */
    void (*abort)(struct exchange *exchange);
};

struct exchange {
    uint32_t magic;
    enum exchange_phase phase; /* set by the maker */
    const struct exchange_ops *ops;
    struct server *server;   /* borrowed; outlives it */
    struct request *request; /* the call, from HEAD to the end of CALL; borrowed */
    struct request *writer;  /* whose parts are being written, also when the client has gone */
    const char *remote;      /* the client's address for the log; the maker's */
    struct list link;        /* in server->clients.exchanges */
    struct list want_link;   /* in server->clients.wanting */
    uint64_t want_ms;        /* since when it waits */
    struct pace pace;        /* of the body or of the answer */
    size_t kept_bytes;       /* heap memory that the maker holds, set by exchange_keep() */
    size_t charged_bytes;    /* memory that is charged for it, see clients_update() */
    uint64_t sent_bytes;     /* of the answer, what the maker has put around it included */
    bool is_head_only;       /* HEAD: the parts of the answer are not sent */
};

/* ---- for makers ------------------------------------------------------------------------------ */

void exchange_init(struct exchange *exchange, struct server *server, const struct exchange_ops *ops,
                   const char *remote);

/* No request and no write is left; memory that the maker has held is free. */
void exchange_fini(struct exchange *exchange);

/* The maker holds |bytes| of heap memory for the client, such as bytes read ahead. */
void exchange_keep(struct exchange *exchange, size_t bytes);

/* A request begins. False: there is no memory. */
MUST_CHECK bool exchange_begin(struct exchange *exchange);

/* The target and the fields go there (server/head.h). */
struct head *exchange_fields(struct exchange *exchange);

/* The head is complete: checks the route, its limits and its model. False: the request is refused.
 */
MUST_CHECK bool exchange_end_head(struct exchange *exchange, const struct exchange_head *head);

/*
 * The body. exchange_expect_body(): |bytes| more are announced. exchange_room(): where the next
 * bytes may be written at once, if at least |missing| bytes are certain to come; |*out_len| is 0 if
 * the maker's own memory does as well. False: none may be read now, as others need the memory; the
 * maker stops reading and calls clients_want(). exchange_add_body() takes the bytes themselves. The
 * two others return 0 or the status to refuse the request with, whose text is set.
 */
MUST_CHECK int exchange_expect_body(struct exchange *exchange, uint64_t bytes);
MUST_CHECK bool exchange_room(struct exchange *exchange, size_t missing, uint8_t **out_ptr,
                              size_t *out_len);
MUST_CHECK int exchange_add_body(struct exchange *exchange, struct span bytes);

/* Has nothing of the body been taken yet? */
bool exchange_is_bodyless(const struct exchange *exchange);

/* The request is refused; exchange_error() is the place for the text, which comes first. */
struct error *exchange_error(struct exchange *exchange);
void exchange_refuse(struct exchange *exchange, int http_status);
bool exchange_is_refused(const struct exchange *exchange);

/* The same, and the rest of the request is not read. An earlier refusal stays. */
void exchange_give_up(struct exchange *exchange, enum status code, const char *why,
                      int http_status);

/* The request is complete, or refused: the call begins. It may have ended on return. */
void exchange_run(struct exchange *exchange);

/* For a write that had to wait: the parts are not needed any more. Also after a cancellation. */
void exchange_note_written(struct exchange *exchange, bool is_ok);

/* The client has gone. The call ends now or as soon as it can; end() will not be called. */
void exchange_cancel(struct exchange *exchange);

/* Memory for the maker's text around the parts of a write, until the write is done. */
char *exchange_scratch(struct exchange *exchange);

/* The answer is on its way: only the client has something left to do. */
bool exchange_is_answering(const struct exchange *exchange);

/* ---- for calls ------------------------------------------------------------------------------- */

/* See struct exchange_ops. The first write of an answer, and the end of it all. */
enum exchange_written exchange_write(struct exchange *exchange, const struct http_answer *answer,
                                     const struct span *parts, unsigned count, bool is_last);
void exchange_end(struct exchange *exchange);

/* The call waits for memory, since |since_ms|: request_retry() will be called. */
void exchange_want(struct exchange *exchange, uint64_t since_ms);

/* ---- for the rules of memory (server/clients.c) ---------------------------------------------- */

/* Is memory held at the client's pace? The client sends a body or takes an answer; or a complete
 * body waits because its model's queue is full. */
bool exchange_is_paced(const struct exchange *exchange);
bool exchange_is_parked(const struct exchange *exchange);

/* The body that is being received, or NULL. */
struct body *exchange_upload(const struct exchange *exchange);

/* Memory that is held for the client: on the heap; on the heap and in the pool. */
size_t exchange_heap_bytes(const struct exchange *exchange);
size_t exchange_held_bytes(const struct exchange *exchange);

/* Takes the memory of a paced or parked exchange, which others need. */
void exchange_evict(struct exchange *exchange);

/*
 * Tries again for an exchange that waits for memory, see clients_want(). True: it waits no more.
 */
bool exchange_retry(struct exchange *exchange);

#endif
