/* SPDX-License-Identifier: MIT */
/*
 * The start of a daemon when threads run out: the first cannot be made, then the second, and so on
 * until it starts. Each time it says so and nothing is left. The linker sends pthread_create()
 * here; those of libuv itself are made when all of them could be had.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "base/check.h"
#include "server/daemon/server.h"
#include "server/process/exit_status.h"
#include "server/process/options.h"

#define THREADS_MAX 100

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*fn)(void *arg), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*fn)(void *arg), void *arg);

static int threads_left;

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes,
                          void *(*fn)(void *arg), void *arg)
{
    if (threads_left == 0) {
        return EAGAIN;
    }
    threads_left--;
    return __real_pthread_create(thread, attributes, fn, arg);
}

static enum status start_with(int threads, const struct options *options, struct error *err)
{
    static struct server server;
    threads_left = threads;
    enum status status = server_init(&server, options, err);
    server_fini(&server);
    return status;
}

int main(void)
{
    static struct options options;
    char *argv[] = {(char[]){"pted"}, (char[]){"--workers=2"}, (char[]){"--listen=127.0.0.1:0"},
                    NULL};
    struct error err = {0};
    int count = 0, of_pool = 0, of_device = 0;
    unsetenv("UV_THREADPOOL_SIZE");
    options_init(&options);
    must(options_add_arguments(&options, 3, argv, &err) == ST_OK);
    for (enum status status; (status = start_with(count, &options, &err)) != ST_OK; count++) {
        must(exit_status_of(status) == EX_OSERR);
        must(strstr(err.text, strerror(EAGAIN)) != NULL);
        of_pool += strstr(err.text, "for large requests") != NULL;
        of_device += strncmp(err.text, "worker ", 7) == 0;
        must(count < THREADS_MAX);
    }
    printf("a start takes %d threads\n", count);
    return of_pool == 4 && of_device == 2 && count == 6 ? 0 : 1;
}
