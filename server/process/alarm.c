/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/process/alarm.h"

#include <sys/timerfd.h>
#include <unistd.h>

#include "base/check.h"

#define NS_PER_S 1000000000u

void alarm_init(struct alarm *alarm)
{
    *alarm = (struct alarm){.fd = -1, .due_ns = ALARM_NEVER};
}

int alarm_open(struct alarm *alarm)
{
    must(alarm->fd < 0);
    alarm->fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    return alarm->fd;
}

void alarm_close(struct alarm *alarm)
{
    if (alarm->fd >= 0) {
        close(alarm->fd);
        alarm->fd = -1;
    }
}

void alarm_set(struct alarm *alarm, uint64_t due_ns)
{
    if (due_ns >= alarm->due_ns) {
        return;
    }
    const struct itimerspec when = {
        .it_value = {.tv_sec = (time_t)(due_ns / NS_PER_S),
                     .tv_nsec = (long)(due_ns % NS_PER_S) + (due_ns == 0)}};
    alarm->due_ns = due_ns;
    int rc = timerfd_settime(alarm->fd, TFD_TIMER_ABSTIME, &when, NULL);
    must(rc == 0);
}

/* The timer may have been set again since it went off. */
bool alarm_take(struct alarm *alarm)
{
    uint64_t count;
    if (read(alarm->fd, &count, sizeof(count)) != sizeof(count)) {
        return false;
    }
    alarm->due_ns = ALARM_NEVER;
    return true;
}

void alarm_stop(struct alarm *alarm)
{
    alarm->due_ns = 0;
}
