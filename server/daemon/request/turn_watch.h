/* SPDX-License-Identifier: MIT */
/*
 * What takes long on the loop. A turn is named after the part that took most of its time: a step of
 * a request, or a row of turn_part.def. Kept are the longest turn of each name, and the most bytes
 * that each step has handled on the loop (server/daemon/request/work.h). A turn of more than
 * TURN_WATCH_SLOW_NS is a warning in the log.
 *
 * Whatever the loop calls says first which part begins. A turn begins with its first part.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_TURN_WATCH_H
#define PTED_SERVER_DAEMON_REQUEST_TURN_WATCH_H

#include <stdint.h>

struct server;

#define TURN_WATCH_SLOW_NS 20000000u

enum turn_part {
#define STEP(name, ...) TURN_STEP_##name, /* equals STEP_##name */
#include "server/daemon/request/request.def"
#undef STEP
#define TURN_PART(id, name) TURN_##id,
#include "server/daemon/request/turn_part.def"
#undef TURN_PART
    TURN_PART_COUNT
};

/* The loop's figures so far; 0: it has not been seen. */
struct turn_records {
    uint64_t longest_ns[TURN_PART_COUNT];
    uint64_t step_bytes[TURN_PART_COUNT]; /* of steps of requests */
};

struct turn_watch {
    struct turn_records records;
    uint64_t begin_ns;      /* of the turn; 0: nothing has begun */
    uint64_t part_begin_ns; /* of |part| */
    enum turn_part part, longest_part;
    uint64_t longest_part_ns; /* in this turn */
};

const char *turn_part_name(enum turn_part part);

/* From now on the loop does |part|. */
void turn_watch_enter(struct server *server, enum turn_part part);

/* A step has handled |bytes|. */
void turn_watch_note_bytes(struct server *server, enum turn_part step, uint64_t bytes);

/* The turn is over. Returns how long it was; 0: nothing has begun. */
uint64_t turn_watch_end(struct server *server);

#endif
