/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/turn_watch.h"

#include <uv.h>

#include "base/check.h"
#include "base/ticks.h"
#include "server/daemon/loop/log_gate.h"
#include "server/process/log.h"

#define NS_PER_MS 1e6

const char *turn_part_name(const struct turn_steps *steps, enum turn_part part)
{
    static const char *const names[TURN_PART_COUNT] = {
#define TURN_PART(id, name) [TURN_##id] = name,
#include "server/daemon/loop/turn_part.def"
#undef TURN_PART
    };
    must(part < TURN_PART_COUNT && steps->count <= TURN_STEPS_MAX);
    return (unsigned)part < steps->count ? steps->names[part] : names[part];
}

void turn_watch_init(struct turn_watch *watch, const struct turn_steps *steps, struct log_gate *log)
{
    *watch = (struct turn_watch){.steps = steps, .log = log};
}

static void end_part(struct turn_watch *watch, uint64_t now)
{
    uint64_t ticks = ticks_between(watch->part_begin_ticks, now);
    if (ticks >= watch->longest_part_ticks) {
        watch->longest_part_ticks = ticks;
        watch->longest_part = watch->part;
    }
}

void turn_watch_enter(struct turn_watch *watch, enum turn_part part)
{
    uint64_t now = ticks_now();
    if (watch->begin_ns == 0) {
        watch->begin_ns = uv_hrtime();
        watch->begin_ticks = now;
        watch->longest_part_ticks = 0;
    } else {
        end_part(watch, now);
    }
    watch->part = part;
    watch->part_begin_ticks = now;
}

void turn_watch_note_bytes(struct turn_watch *watch, enum turn_part step, uint64_t bytes)
{
    must(step < TURN_STEPS_MAX);
    uint64_t *most = &watch->records.step_bytes[step];
    *most = bytes > *most ? bytes : *most;
}

/* Returns the share of the longest part in a turn of |ticks|, which a processor counted that may be
 * behind another one's. */
static double longest_share(const struct turn_watch *watch, uint64_t ticks)
{
    return watch->longest_part_ticks < ticks ? (double)watch->longest_part_ticks / (double)ticks
                                             : 1;
}

static void warn(struct turn_watch *watch, uint64_t ns, double share)
{
    if (log_gate_admits(watch->log, LOG_KIND_SLOW, SHARE_NOBODY)) {
        log_line(LOG_WARNING,
                 "the loop has served nobody else for %.1f ms, %.1f ms of them in step %s",
                 (double)ns / NS_PER_MS, share * (double)ns / NS_PER_MS,
                 turn_part_name(watch->steps, watch->longest_part));
    }
}

uint64_t turn_watch_end(struct turn_watch *watch)
{
    if (watch->begin_ns == 0) {
        return 0;
    }
    uint64_t ns = uv_hrtime() - watch->begin_ns, now = ticks_now();
    uint64_t ticks = ticks_between(watch->begin_ticks, now);
    end_part(watch, now);
    watch->begin_ns = 0;
    uint64_t *longest = &watch->records.longest_ns[watch->longest_part];
    *longest = ns > *longest ? ns : *longest;
    if (ns > TURN_WATCH_SLOW_NS) {
        warn(watch, ns, longest_share(watch, ticks));
    }
    return ns;
}
