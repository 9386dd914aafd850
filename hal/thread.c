/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/thread.h"

#include <signal.h>
#include <stddef.h>

int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg)
{
    static const int of_the_thread_itself[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(of_the_thread_itself) / sizeof(of_the_thread_itself[0]); i++) {
        sigdelset(&all, of_the_thread_itself[i]); /* no other thread can take them */
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(out_thread, NULL, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return rc;
}
