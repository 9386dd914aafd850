/* SPDX-License-Identifier: MIT */
/*
 * A server with one client, without a socket and without calls. The transport is
 * an array, and the linker replaces the functions of calls by those of conn_support.c. So the test
 * chooses each write of an answer, and how much the client takes and when.
 */
#ifndef PTED_TESTS_UNIT_CONN_SUPPORT_H
#define PTED_TESTS_UNIT_CONN_SUPPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/daemon/connection/conn.h"
#include "server/daemon/request/request.h"
#include "server/http/head.h"
#include "tests/unit/conns_support.h"

#define BODY_BYTES_MAX 100
#define HELD_BYTES 100000 /* more than a connection copies */

#define GET_1_1 "GET /v2 HTTP/1.1\r\nHost: a\r\n\r\n"
#define GET_1_0 "GET /v2 HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
#define POST_1_1 "POST /v2 HTTP/1.1\r\nHost: a\r\n"

/* The transport. */
struct wire {
    struct transport transport;
    struct buf sent;             /* bytes that the client has taken */
    size_t room;                 /* bytes that it takes before it waits */
    struct buf queue;            /* the bytes of |rest| that it has not taken yet */
    struct transport_rest *rest; /* NULL: nothing waits */
    size_t unread;               /* bytes that have come and that nobody has seen */
    bool is_reading, is_shut, is_closing, is_broken;
    bool is_unshuttable; /* a shutdown fails */
};

extern struct wire wire;
extern struct request call;        /* the only one; its |exchange| is NULL: there is none */
extern struct exchange_head begun; /* of the last request that has begun */
extern unsigned runs, writes_done, abandons;
extern bool was_ok; /* the last write that is done */

/* What comes next; set_up() clears the last two. */
extern bool is_opening;      /* the transport of the next client */
extern uint32_t place_count; /* of the next server: 1 if the test does not say more */
extern bool has_no_memory;   /* for a request */
extern int refused_with;     /* a status: calls are refused once their head is complete; 0: not */

extern const struct http_answer stream, whole; /* the latter of 5 bytes */

/* Around each test. */
int set_up(void **state);
int tear_down(void **state);

/* The client sends |text| or |bytes|, takes the bytes that wait or is gone before it has, and is
 * gone. */
void receive(const char *text);
void receive_bytes(struct span bytes);
void take_rest(bool is_ok);
void lose_client(void);

/* All that the client has taken, and what of it is behind the first head. */
const char *sent(void);
const char *behind_head(void);

/* The call writes a part of its answer; then its answer is whole. */
enum exchange_written put(const struct http_answer *answer, struct span part, bool is_last);
void end_call(void);

/* That of the client. */
struct session *only_session(void);

/* The sweep comes at |now_ms|. */
void check_deadline(uint64_t now_ms);

#endif
