/* SPDX-License-Identifier: MIT */
/* What --version of pted and pte prints: how this build came about and what it runs on. */
#ifndef PTED_SERVER_PROCESS_VERSION_H
#define PTED_SERVER_PROCESS_VERSION_H

/* To stdout; |program| is the name of the command. */
void version_print(const char *program);

#endif
