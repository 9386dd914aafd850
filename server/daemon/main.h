/* SPDX-License-Identifier: MIT */
/* pted: serves programs over HTTP. */
#ifndef PTED_SERVER_DAEMON_MAIN_H
#define PTED_SERVER_DAEMON_MAIN_H

/* Serves, or does what else the arguments of main() and the environment ask for. Returns the exit
 * status of the process. */
int daemon_main(int argc, char *argv[]);

#endif
