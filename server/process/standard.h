/* SPDX-License-Identifier: MIT */
/* Descriptors 0, 1 and 2. */
#ifndef PTED_SERVER_PROCESS_STANDARD_H
#define PTED_SERVER_PROCESS_STANDARD_H

/*
 * Opens /dev/null for those of the three that are closed, so that no socket and no file ever gets
 * one of these numbers, where text would go into it. It is opened the other way round: reading from
 * 0 and writing to 1 or 2 fail as they do on a closed one. First thing in main().
 */
void standard_open(void);

#endif
