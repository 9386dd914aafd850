/* SPDX-License-Identifier: MIT */
/* What a process needs before it reads or writes anything. */
#ifndef PTED_SERVER_PROCESS_STANDARD_H
#define PTED_SERVER_PROCESS_STANDARD_H

/*
 * First thing in main(). Opens /dev/null for each of the descriptors 0, 1 and 2 that is closed.
 * Otherwise a socket or a file could get its number, and text would go there. /dev/null is opened
 * the other way round, so reading from 0 and writing to 1 or 2 still fail.
 *
 * Ignores SIGXFSZ: a write to a file that has reached `ulimit -f` fails, as on a full disk, and its
 * caller says which file that was. The signal would end the process without a word.
 */
void standard_open(void);

#endif
