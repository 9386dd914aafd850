/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/thread.h"

#include <signal.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* glibc gives as much where the shell sets no limit. musl's 128 KB are too few for drivers. */
#define STACK_BYTES_MIN ((size_t)2 << 20)

/* The size that the system chooses, if it is enough. */
static void ask_for_stack(pthread_attr_t *attributes)
{
    size_t bytes;
    if (pthread_attr_getstacksize(attributes, &bytes) != 0 || bytes < STACK_BYTES_MIN) {
        pthread_attr_setstacksize(attributes, STACK_BYTES_MIN);
    }
}

int hal_thread_start(pthread_t *out_thread, void *(*fn)(void *arg), void *arg)
{
    static const int of_the_thread_itself[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP};
    sigset_t all, before;
    pthread_attr_t attributes;
    int rc = pthread_attr_init(&attributes);
    if (rc != 0) {
        return rc;
    }
    ask_for_stack(&attributes);
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(of_the_thread_itself) / sizeof(of_the_thread_itself[0]); i++) {
        sigdelset(&all, of_the_thread_itself[i]); /* no other thread can take them */
    }
    pthread_sigmask(SIG_SETMASK, &all, &before);
    rc = pthread_create(out_thread, &attributes, fn, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return rc;
}

void hal_thread_be_nice(uint32_t more)
{
#ifdef __linux__
    if (more) {
        id_t self = (id_t)syscall(SYS_gettid);
        int added = more < HAL_THREAD_NICE_MAX ? (int)more : HAL_THREAD_NICE_MAX;
        setpriority(PRIO_PROCESS, self, getpriority(PRIO_PROCESS, self) + added);
    }
#else
    (void)more;
#endif
}
