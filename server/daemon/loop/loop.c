/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/loop.h"

#include "base/check.h"

enum status loop_init(struct loop *loop, const struct turn_steps *steps, struct error *err)
{
    *loop = (struct loop){.thread = uv_thread_self()};
    log_gate_init(&loop->log);
    turn_watch_init(&loop->watch, steps, &loop->log);
    handback_init(&loop->handback, &loop->turns);
    int rc = uv_loop_init(&loop->uv);
    if (rc < 0) {
        return error_set(err, ST_SYSTEM, "event loop: %s", uv_strerror(rc));
    }
    loop->has_uv = true;
    return ST_OK;
}

void loop_fini(struct loop *loop)
{
    log_gate_fini(&loop->log);
    handback_fini(&loop->handback);
    if (loop->has_uv) {
        int rc = uv_loop_close(&loop->uv);
        must(rc == 0);
        loop->has_uv = false;
    }
}
