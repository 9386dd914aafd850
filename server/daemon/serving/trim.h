/* SPDX-License-Identifier: MIT */
/*
 * Memory that has not been used for some seconds goes back to the system: memory for requests
 * little by little, and the C library's when the daemon is idle. Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_SERVING_TRIM_H
#define PTED_SERVER_DAEMON_SERVING_TRIM_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

struct loop;
struct servings;

#define TRIM_MAGIC 0x7472696du

struct trim {
    uint32_t magic;
    struct loop *loop; /* borrowed, like |servings| */
    const struct servings *servings;
    uv_timer_t timer; /* from the first use on until all has gone back */
    uv_work_t work;
    unsigned looks; /* since memory was used last, without those that only trimmed the pool */
    bool is_working;
};

void trim_init(struct trim *trim, struct loop *loop, const struct servings *servings);

/* Call when a request has ended, or models have been loaded or freed: memory may be idle from now
 * on. */
void trim_note_use(struct trim *trim);

#endif
