/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/loop/log_gate.h"

#include "base/check.h"

#define FLUSH_MS (LOG_LIMIT_S * 1000 + 100) /* by then every open window has ended */

void log_gate_init(struct log_gate *gate)
{
    *gate = (struct log_gate){.is_open = false};
    log_limits_init(&gate->limits, uv_hrtime);
}

void log_gate_open(struct log_gate *gate, uv_loop_t *uv)
{
    must(!gate->is_open);
    uv_timer_init(uv, &gate->flush);
    gate->flush.data = gate;
    gate->is_open = true;
}

static void on_flush(uv_timer_t *timer)
{
    struct log_gate *gate = timer->data;
    if (log_limits_flush(&gate->limits, false)) {
        uv_timer_start(timer, on_flush, FLUSH_MS, 0);
    }
}

bool log_gate_admits(struct log_gate *gate, enum log_kind kind, uint64_t client)
{
    bool admits = log_limits_admit(&gate->limits, kind, client);
    if (!admits && gate->is_open && !uv_is_active((const uv_handle_t *)&gate->flush)) {
        uv_timer_start(&gate->flush, on_flush, FLUSH_MS, 0);
    }
    return admits;
}

void log_gate_close(struct log_gate *gate)
{
    if (gate->is_open) {
        gate->is_open = false;
        uv_close((uv_handle_t *)&gate->flush, NULL);
    }
}

void log_gate_fini(struct log_gate *gate)
{
    must(!gate->is_open);
    log_limits_flush(&gate->limits, true);
    log_limits_fini(&gate->limits);
}
