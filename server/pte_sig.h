/* SPDX-License-Identifier: MIT */
/* `pte sig`: reads a function signature, says what it means and how it is spelled. One thread. */
#ifndef PTED_SERVER_PTE_SIG_H
#define PTED_SERVER_PTE_SIG_H

/* The exit status: 0, 1 when the signature is refused (the reason is on standard error), or one of
 * sysexits.h for another reason. */
int pte_sig(int argc, char *const argv[]);

#endif
