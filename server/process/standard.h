/* SPDX-License-Identifier: MIT */
/* Descriptors 0, 1 and 2. */
#ifndef PTED_SERVER_PROCESS_STANDARD_H
#define PTED_SERVER_PROCESS_STANDARD_H

/*
 * Opens /dev/null for each of the three descriptors that is closed. Otherwise a socket or a file
 * could get its number, and text would go there. /dev/null is opened the other way round, so
 * reading from 0 and writing to 1 or 2 still fail. First thing in main().
 */
void standard_open(void);

#endif
