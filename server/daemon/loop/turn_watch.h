/* SPDX-License-Identifier: MIT */
/*
 * What takes long on the loop. A turn is named after the part that took most of its time: a step of
 * a request, or a row of turn_part.def. Kept are the longest turn of each name, and the most bytes
 * that each step has handled on the loop (server/daemon/infer/work.h). A turn of more than
 * TURN_WATCH_SLOW_NS is a warning in the log.
 *
 * Whatever the loop calls says first which part begins. A turn begins with its first part. The
 * parts of a turn share its time by ticks, so that to enter one costs next to nothing.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_LOOP_TURN_WATCH_H
#define PTED_SERVER_DAEMON_LOOP_TURN_WATCH_H

#include <stdint.h>

struct log_gate;

#define TURN_WATCH_SLOW_NS 20000000u

/* The first parts are the steps of requests, by their own numbers. */
#define TURN_STEPS_MAX 16

enum turn_part {
    TURN_STEP_LAST = TURN_STEPS_MAX - 1,
#define TURN_PART(id, name) TURN_##id,
#include "server/daemon/loop/turn_part.def"
#undef TURN_PART
    TURN_PART_COUNT
};

/* The steps of requests: their names, by number. */
struct turn_steps {
    unsigned count;
    const char *names[TURN_STEPS_MAX];
};

/* The loop's figures so far; 0: it has not been seen. */
struct turn_records {
    uint64_t longest_ns[TURN_PART_COUNT];
    uint64_t step_bytes[TURN_STEPS_MAX]; /* of steps of requests */
};

struct turn_watch {
    const struct turn_steps *steps; /* borrowed */
    struct log_gate *log;           /* borrowed */
    struct turn_records records;
    uint64_t begin_ns;           /* of the turn; 0: nothing has begun */
    uint64_t begin_ticks;        /* likewise, by base/ticks.h */
    uint64_t part_begin_ticks;   /* of |part| */
    uint64_t longest_part_ticks; /* in this turn */
    enum turn_part part, longest_part;
};

/* Returns NULL: there is no such part. */
const char *turn_part_name(const struct turn_steps *steps, enum turn_part part);

/* Begins with nothing begun. */
void turn_watch_init(struct turn_watch *watch, const struct turn_steps *steps,
                     struct log_gate *log);

/* Notes that the loop does |part| from now on. */
void turn_watch_enter(struct turn_watch *watch, enum turn_part part);

/* Call when a step has handled |bytes|. */
void turn_watch_note_bytes(struct turn_watch *watch, enum turn_part step, uint64_t bytes);

/* Call when the turn is over. Returns how long it was; 0: nothing has begun. */
uint64_t turn_watch_end(struct turn_watch *watch);

#endif
