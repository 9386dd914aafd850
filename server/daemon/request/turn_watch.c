/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/turn_watch.h"

#include "base/check.h"
#include "server/daemon/request/request.h"
#include "server/daemon/server.h"
#include "server/process/log.h"

#define NS_PER_MS 1e6

#define STEP(name, ...)                                                                            \
    _Static_assert((int)TURN_STEP_##name == (int)STEP_##name, "steps are the first parts");
#include "server/daemon/request/request.def"
#undef STEP

const char *turn_part_name(enum turn_part part)
{
    static const char *const names[TURN_PART_COUNT] = {
#define STEP(name, ...) [TURN_STEP_##name] = #name,
#include "server/daemon/request/request.def"
#undef STEP
#define TURN_PART(id, name) [TURN_##id] = name,
#include "server/daemon/request/turn_part.def"
#undef TURN_PART
    };
    must(part < TURN_PART_COUNT);
    return names[part];
}

static void end_part(struct turn_watch *watch, uint64_t now_ns)
{
    uint64_t ns = now_ns - watch->part_begin_ns;
    if (ns > watch->longest_part_ns) {
        watch->longest_part_ns = ns;
        watch->longest_part = watch->part;
    }
}

void turn_watch_enter(struct server *server, enum turn_part part)
{
    struct turn_watch *watch = &server->turns.watch;
    uint64_t now_ns = uv_hrtime();
    if (watch->begin_ns == 0) {
        watch->begin_ns = now_ns;
        watch->longest_part_ns = 0;
    } else {
        end_part(watch, now_ns);
    }
    watch->part = part;
    watch->part_begin_ns = now_ns;
}

void turn_watch_note_bytes(struct server *server, enum turn_part step, uint64_t bytes)
{
    must(step < TURN_PART_COUNT);
    uint64_t *most = &server->turns.watch.records.step_bytes[step];
    *most = bytes > *most ? bytes : *most;
}

static void warn(struct server *server, uint64_t ns)
{
    const struct turn_watch *watch = &server->turns.watch;
    if (server_may_log(server, LOG_KIND_SLOW, SHARE_NOBODY)) {
        log_line(LOG_WARNING,
                 "the loop has served nobody else for %.1f ms, %.1f ms of them in step %s",
                 (double)ns / NS_PER_MS, (double)watch->longest_part_ns / NS_PER_MS,
                 turn_part_name(watch->longest_part));
    }
}

uint64_t turn_watch_end(struct server *server)
{
    struct turn_watch *watch = &server->turns.watch;
    if (watch->begin_ns == 0) {
        return 0;
    }
    uint64_t now_ns = uv_hrtime(), ns = now_ns - watch->begin_ns;
    end_part(watch, now_ns);
    watch->begin_ns = 0;
    uint64_t *longest = &watch->records.longest_ns[watch->longest_part];
    *longest = ns > *longest ? ns : *longest;
    if (ns > TURN_WATCH_SLOW_NS) {
        warn(server, ns);
    }
    return ns;
}
