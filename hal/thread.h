/* SPDX-License-Identifier: MIT */
/* The threads of devices. */
#ifndef PTED_HAL_THREAD_H
#define PTED_HAL_THREAD_H

#include <pthread.h>

/*
 * It gets no signals but those of its own faults: all others are for the threads of whoever uses
 * the library. 0, or an errno.
 */
int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg);

#endif
