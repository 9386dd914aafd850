/* SPDX-License-Identifier: MIT */
/* SIGUSR1: writes to the log everything that the daemon has to do at this moment. Loop thread. */
#ifndef PTED_SERVER_DAEMON_OBSERVE_DUMP_H
#define PTED_SERVER_DAEMON_OBSERVE_DUMP_H

struct observed;

/* Writes a line for the daemon, one for each model that has calls, and one for each request in
 * flight; so many of each, and then how many more there are. */
void dump_in_flight(const struct observed *observed);

#endif
