/* SPDX-License-Identifier: MIT */
/* pte: shows the content of a program and runs it, without a daemon; and talks to daemons. */
#ifndef PTED_SERVER_CLI_MAIN_H
#define PTED_SERVER_CLI_MAIN_H

/* Runs the command that the arguments of main() name. Returns the exit status of the process. */
int cli_main(int argc, char *argv[]);

#endif
