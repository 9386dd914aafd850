/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/handback.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/loop/turn_watch.h"

void handback_init(struct handback *handback, struct turns *turns)
{
    *handback = (struct handback){.turns = turns, .fd = -1};
}

static int open_eventfd(int fd_min)
{
    int fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    int high = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, fd_min);
    if (high < 0) {
        return fd; /* none, or the process may not have that many descriptors */
    }
    close(fd);
    return high;
}

/*
 * This replaces uv_async_send(). There the loop spins until the sender has finished. If the loop
 * has preempted that sender, on a busy machine it spins for about a ms, until the sender runs
 * again.
 */
static void wake_loop(struct handback *handback)
{
    const uint64_t one = 1;
    ssize_t written = write(handback->fd, &one, sizeof(one));
    must(written == sizeof(one)); /* the counter cannot overflow */
}

void handback_push(struct handback *handback, struct turn_job *job)
{
    struct turn_job *head = atomic_load_explicit(&handback->jobs, memory_order_relaxed);
    do {
        job->next = head;
    } while (!atomic_compare_exchange_weak_explicit(&handback->jobs, &head, job,
                                                    memory_order_release, memory_order_relaxed));
    if (!head) {
        wake_loop(handback); /* otherwise the pending wake-up covers this one too */
    }
}

static void on_wake(uv_poll_t *poll, int uv_status, int events)
{
    struct handback *handback = poll->data;
    uint64_t count;
    (void)uv_status;
    (void)events;
    turn_watch_enter(handback->turns->watch, TURN_COLLECT);
    if (read(handback->fd, &count, sizeof(count)) != sizeof(count)) {
        return;
    }
    struct turn_job *stack = atomic_exchange_explicit(&handback->jobs, NULL, memory_order_acquire);
    struct turn_job *oldest = NULL;
    while (stack) {
        struct turn_job *next = stack->next;
        stack->next = oldest;
        oldest = stack;
        stack = next;
    }
    if (oldest) {
        turns_add_all(handback->turns, oldest);
    }
}

enum status handback_open(struct handback *handback, uv_loop_t *uv, int fd_min, struct error *err)
{
    must(handback->fd < 0);
    handback->fd = open_eventfd(fd_min);
    return loop_watch(uv, &handback->wake, handback->fd, on_wake, handback, err);
}

void handback_fini(struct handback *handback)
{
    if (handback->fd >= 0) {
        close(handback->fd);
        handback->fd = -1;
    }
}
