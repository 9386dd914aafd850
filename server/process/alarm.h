/* SPDX-License-Identifier: MIT */
/*
 * One timer for all that is due at some time, as a descriptor that a loop can watch. Timers of a
 * loop count in ms; this one counts in ns, because a batch can fill up a hundred times in one ms.
 * One thread.
 */
#ifndef PTED_SERVER_PROCESS_ALARM_H
#define PTED_SERVER_PROCESS_ALARM_H

#include <stdbool.h>
#include <stdint.h>

#define ALARM_NEVER UINT64_MAX

/* Zeroed: it cannot be set, and alarm_set() is ignored. */
struct alarm {
    int fd;          /* owned; readable when the time has come; -1: not open */
    uint64_t due_ns; /* on the clock of uv_hrtime(); ALARM_NEVER: nothing is due */
};

/* Begins closed. */
void alarm_init(struct alarm *alarm);

/* Returns the descriptor; -1 with errno. */
int alarm_open(struct alarm *alarm);

/* Call also if it is not open. */
void alarm_close(struct alarm *alarm);

/* Something is due at |due_ns|. Ignored if the alarm goes off before that. */
void alarm_set(struct alarm *alarm, uint64_t due_ns);

/* Has the time come? Then the alarm is not set any more. */
bool alarm_take(struct alarm *alarm);

/* Later calls of alarm_set() are ignored. */
void alarm_stop(struct alarm *alarm);

#endif
