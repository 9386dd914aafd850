/* SPDX-License-Identifier: MIT */
/*
 * How long a turn of the event loop may be. A client can send many requests at once, and many calls
 * can end at the same moment. If the loop answered all of them before it looked at its sockets
 * again, everybody else would wait. So a turn begins nothing more after TURNS_NS. The rest waits in
 * two rows, oldest first: connections whose next message has come, which take turns with a message
 * each, and requests that a thread has given back or that do their work in pieces.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_LOOP_TURNS_H
#define PTED_SERVER_DAEMON_LOOP_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/histogram.h"
#include "base/list.h"

struct turn_watch;

#define TURNS_NS 1000000

#define TURNS_MAGIC 0x7475726eu

/* A member of what goes on in a turn: of a request; of a connection. */
struct turn_job {
    struct turn_job *next;
};
struct turn_reader {
    struct list link; /* in turns->readers, while a message waits for its turn */
};

/* It is their turn. */
struct turns_ops {
    void (*go_on_job)(struct turn_job *job);
    void (*go_on_reader)(struct turn_reader *reader);
};

struct turns {
    uint32_t magic;
    struct turn_watch *watch; /* borrowed: knows when the turn began */
    const struct turns_ops *ops;
    uv_prepare_t prepare;     /* a turn has ended: the loop is about to look at the sockets */
    uv_idle_t idle;           /* active while something waits: then the loop does not sleep */
    uint64_t number;          /* of this turn */
    struct histogram lengths; /* of turns, from their first work to their end; ns */
    struct list readers;      /* that wait for their turn */
    const struct turn_reader *first; /* whose turn it is, of them */
    struct turn_job *jobs, **last;   /* that wait to go on; where the next one is put */
};

void turns_init(struct turns *turns, uv_loop_t *uv, struct turn_watch *watch,
                const struct turns_ops *ops);

/* In this turn, more can be begun. */
bool turns_has_time(struct turns *turns);

/* May |reader| begin with a message? If not, it waits from now on, and go_on_reader() is called.
 * Without |may_now| it has to wait: another message is being read. */
bool turns_may_begin(struct turns *turns, struct turn_reader *reader, bool may_now);

/* Calls go_on_job() for |job|, whose call or work on a thread has ended; now if the turn has time.
 * turns_add_all(): also for the jobs behind it by |next|. */
void turns_add(struct turns *turns, struct turn_job *job);
void turns_add_all(struct turns *turns, struct turn_job *first);

/* Calls it later: never from in here. */
void turns_put(struct turns *turns, struct turn_job *job);

/* Call when the process ends: all jobs have their turn now. */
void turns_end(struct turns *turns);

#endif
