/* SPDX-License-Identifier: MIT */
/* The threads of devices. */
#ifndef PTED_HAL_THREAD_H
#define PTED_HAL_THREAD_H

#include <pthread.h>
#include <stdint.h>

/*
 * Starts a thread that gets no signals except those that it causes itself (SIGSEGV and the like):
 * all others go to threads of the program that uses this library. Its stack has at least 2 MB, with
 * every C library. Returns 0, or an errno.
 */
int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg);

/* On Linux each thread has a niceness: adds |more| to the caller's. If it cannot be set, it stays.
 */
#define HAL_THREAD_NICE_MAX 40 /* from -20 to 19; more is the same */
void hal_thread_be_nice(uint32_t more);

#endif
