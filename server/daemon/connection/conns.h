/* SPDX-License-Identifier: MIT */
/*
 * All connections, and what they share: their places, the memory that they read into, the check of
 * their deadlines. Loop thread; any thread reads the counts.
 */
#ifndef PTED_SERVER_DAEMON_CONNECTION_CONNS_H
#define PTED_SERVER_DAEMON_CONNECTION_CONNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/status.h"
#include "server/daemon/connection/http2_flood.h"
#include "server/daemon/connection/places.h"

struct loop;
struct params;
struct protocol;
struct requests;

#define CONNS_MAGIC 0x636e7373u

#define CONNS_READ_BYTES (64 << 10)

/* For metrics. */
struct conns_counts {
    struct counter accepted, turned_away; /* connections */
    struct counter received_bytes, sent_bytes;
    struct counter floods[HTTP2_FLOOD_COUNT]; /* connections that ended for them */
};

struct conns {
    uint32_t magic;
    struct loop *loop; /* borrowed, like |params|, |requests| and |owner| */
    const struct params *params;
    struct requests *requests;               /* that they carry */
    void *owner;                             /* of |note_gone| */
    void (*note_gone)(void *owner);          /* a connection is gone */
    const struct protocol *const *protocols; /* that clients may speak; see protocol.h */
    struct list all;                         /* sessions, by |link| */
    uint32_t count;                          /* those that are being closed included */
    struct places places;
    struct conns_counts counts;
    uint8_t *read_buffer;   /* owned; CONNS_READ_BYTES, for the current read */
    uv_timer_t sweep;       /* checks the deadlines of all; runs while there are any */
    uint64_t swept_ms;      /* when it did so last, on the clock of the loop */
    uint32_t age_spread;    /* of the last connection, see --connection-age */
    uint64_t refuses_at_ms; /* on that clock: requests that are incomplete then are refused */
    bool is_grace_over;     /* connections without a request close */
};

/* Begins with none, and no places. */
void conns_init(struct conns *conns, struct requests *requests, void (*note_gone)(void *owner),
                void *owner);

/* Call once the loop is initialised. ST_EXHAUSTED: there is no memory to read into. */
MUST_CHECK enum status conns_open(struct conns *conns, struct error *err);

/* Call when there are none any more. */
void conns_fini(struct conns *conns);

/* Call when a session was added: its deadline is looked at from now on. One is gone. */
void conns_note_new(struct conns *conns);
void conns_note_gone(struct conns *conns);

/* Call when the daemon stops: clients are warned; requests that are incomplete then are refused. */
void conns_refuse_later(struct conns *conns, uint64_t ms);

/* Those without a request close now, and others after their answer; all close now. */
void conns_drain(struct conns *conns);
void conns_abort(struct conns *conns);

#endif
