/* SPDX-License-Identifier: MIT */
/* The text of --version of pted and pte: the build, its libraries and the machine. */
#ifndef PTED_SERVER_PROCESS_VERSION_H
#define PTED_SERVER_PROCESS_VERSION_H

/* To stdout; |program| is the name of the command. */
void version_print(const char *program);

#endif
