/* SPDX-License-Identifier: MIT */
/* The threads of devices. */
#ifndef PTED_HAL_THREAD_H
#define PTED_HAL_THREAD_H

#include <pthread.h>

/*
 * Starts a thread that gets no signals except those that it causes itself (SIGSEGV and the like):
 * all others go to threads of the program that uses this library. Its stack has at least 2 MB, with
 * every C library. Returns 0, or an errno.
 */
int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg);

#endif
