/* SPDX-License-Identifier: MIT */
/*
 * Preloaded into a daemon, measures the longest turn of its event loop: the processor time from a
 * return of epoll to the next call, which does not include other processes. The figures are in the
 * file that LOOP_TURNS names; loop_turns.py sets them to 0 when a measurement begins.
 */
#include "config.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

struct turns {
    uint64_t longest_ns, count;
};

static struct turns *turns;
static int (*wait_masked)(int, struct epoll_event *, int, int, const sigset_t *);

__attribute__((constructor)) static void init(void)
{
    const char *path = getenv("LOOP_TURNS");
    int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    void *map =
        fd < 0 ? MAP_FAILED : mmap(NULL, sizeof(*turns), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map != MAP_FAILED) {
        turns = map;
    }
    close(fd);
    *(void **)&wait_masked = dlsym(RTLD_NEXT, "epoll_pwait");
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

int epoll_pwait(int fd, struct epoll_event *events, int count, int timeout, const sigset_t *mask)
{
    static uint64_t begin_ns;
    if (turns && begin_ns) {
        uint64_t ns = now_ns() - begin_ns;
        turns->longest_ns = ns > turns->longest_ns ? ns : turns->longest_ns;
        turns->count++;
    }
    (void)count;
    int ready = wait_masked(fd, events, 1, timeout, mask);
    begin_ns = now_ns();
    return ready;
}

int epoll_wait(int fd, struct epoll_event *events, int count, int timeout)
{
    return epoll_pwait(fd, events, count, timeout, NULL);
}
