/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/loop.h"

#include <errno.h>
#include <string.h>

#include "base/check.h"

static enum status fail(const char *why, struct error *err)
{
    return error_set(err, ST_SYSTEM, "event loop: %s", why);
}

enum status loop_init(struct loop *loop, const struct turn_steps *steps, struct error *err)
{
    *loop = (struct loop){.thread = uv_thread_self()};
    log_gate_init(&loop->log);
    turn_watch_init(&loop->watch, steps, &loop->log);
    handback_init(&loop->handback, &loop->turns);
    int rc = uv_loop_init(&loop->uv);
    if (rc < 0) {
        return fail(uv_strerror(rc), err);
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

enum status loop_watch(uv_loop_t *uv, uv_poll_t *poll, int fd, uv_poll_cb fn, void *data,
                       struct error *err)
{
    if (fd < 0) {
        return fail(strerror(errno), err);
    }
    int rc = uv_poll_init(uv, poll, fd);
    if (rc == 0) {
        poll->data = data;
        rc = uv_poll_start(poll, UV_READABLE, fn);
    }
    return rc == 0 ? ST_OK : fail(uv_strerror(rc), err);
}
