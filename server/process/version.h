/* SPDX-License-Identifier: MIT */
/* The text of --version of pted and pte: the build, its libraries and the machine. */
#ifndef PTED_SERVER_PROCESS_VERSION_H
#define PTED_SERVER_PROCESS_VERSION_H

/*
 * Says which commit the program was built from; "": nobody knows. main() calls it before any thread
 * is there. So only main() is compiled anew for each commit. |commit| is borrowed for good.
 */
void version_set_commit(const char *commit);

/* Never NULL; "" is unknown. Any thread. */
const char *version_commit(void);

/* To stdout; |program| is the name of the command. */
void version_print(const char *program);

#endif
