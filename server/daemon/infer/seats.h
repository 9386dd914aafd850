/* SPDX-License-Identifier: MIT */
/*
 * Seats: a model answers so many requests of many calls at a time (generations, transcriptions). A
 * request takes a seat when its model is known, and leaves it when its last token is there.
 *
 * The seats of a model are shared by its clients (base/share.h). There are --generation-count-max,
 * and no more than states that fit into --sequence-bytes-max, of the least size that a state has
 * (rt_program_state_bytes_least()): it takes more as rows are written.
 *
 * A stream that its client does not read waits, with its seat and its state. It keeps both while
 * nobody needs them. If a request finds no seat, or no room for a sequence, it takes those of the
 * stream that has waited longest, of the same client or of a client that holds more than its own.
 * That stream ends with an error as soon as its client reads on.
 */
#ifndef PTED_SERVER_DAEMON_INFER_SEATS_H
#define PTED_SERVER_DAEMON_INFER_SEATS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/status.h"

struct model;
struct params;
struct infer;
struct rt_sequence;
struct rt_sequence_key;
struct share;

/* Of a request. While it is in the list of |struct seats|, under the lock there. */
struct seat {
    struct share *share; /* of its model; NULL: it has no seat */
    struct list link;
    uint64_t unread_ns; /* since when the client has not read */
    bool is_lost;       /* others have what it held */
};

/* One for the daemon. */
struct seats {
    pthread_mutex_t lock;
    struct list unread;       /* seats of streams that wait for their clients, longest first */
    struct counter displaced; /* streams that have lost their seats */
    struct counter refused;   /* requests that found none */
};

void seats_init(struct seats *seats);
/* Call when no request is left. Also if seats_init() was not called: zeroed. */
void seats_fini(struct seats *seats);

/* Returns how many seats a model has: at least one. */
uint64_t seats_count(const struct model *model, const struct params *params);

/*
 * Takes a seat for |request|, whose model is known, in |share|, which is the model's. |what| is for
 * the message: "generations". ST_EXHAUSTED. Any thread.
 */
MUST_CHECK enum status seats_take(struct infer *infer, struct share *share, const char *what,
                                  struct error *err);

/* Gives a seat back; the request may have none. Any thread, but not while the request waits for its
 * client. */
void seats_leave(struct infer *infer);

/* rt_sequences_open(), which finds room where streams are not read. Any thread. */
MUST_CHECK enum status seats_open_sequence(struct infer *infer, const struct rt_sequence_key *key,
                                           bool is_start, struct rt_sequence **out_sequence,
                                           struct error *err);

/* Loop thread: the stream waits until its client reads, and no longer. ST_EXHAUSTED: others have
 * its seat and its state. */
void seats_begin_unread(struct infer *infer);
MUST_CHECK enum status seats_end_unread(struct infer *infer, struct error *err);

#endif
