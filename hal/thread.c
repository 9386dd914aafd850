/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/thread.h"

#include <signal.h>
#include <stddef.h>

int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(out_thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
