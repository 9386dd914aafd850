/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/conns_support.h"

#include <string.h>

#include "server/daemon/connection/session.h"
#include "server/daemon/serving/servings.h"
#include "tests/unit/unit.h"

struct loop loop;
struct options options;
struct requests requests;
struct conns conns;
static struct servings servings; /* there is none: no pool of transfers */

static void note_gone(void *owner)
{
    assert_ptr_equal(owner, &conns);
}

static void go_on(struct turn_job *job)
{
    (void)job;
    fail(); /* nothing is handed back */
}

void open_conns(const struct protocol *const *protocols, uint32_t place_count)
{
    static const struct turns_ops turns_ops = {go_on, session_go_on_reader};
    struct error err;
    options_init(&options);
    const struct requests_uses uses = {
        .options = &options, .params = &options.params, .loop = &loop, .servings = &servings};
    memset(&loop, 0, sizeof(loop));
    uv_loop_init(&loop.uv);
    log_gate_init(&loop.log);
    log_gate_open(&loop.log, &loop.uv);
    requests_init(&requests, &uses);
    requests_open(&requests);
    conns_init(&conns, &requests, note_gone, &conns);
    conns.protocols = protocols ? protocols : conns.protocols;
    places_resize(&conns.places, place_count);
    assert_int_equal(conns_open(&conns, &err), ST_OK);
    turns_init(&loop.turns, &loop.uv, &loop.watch, &turns_ops);
}

void close_conns(void)
{
    assert_int_equal(conns.count, 0);
    assert_int_equal(conns.places.used, 0);
    assert_true(list_is_empty(&requests.transfers.exchanges));
    assert_true(list_is_empty(&requests.transfers.waiting));
    assert_int_equal(requests.transfers.heap_bytes, 0);
    uv_handle_t *handles[] = {(uv_handle_t *)&conns.sweep, (uv_handle_t *)&requests.transfers.timer,
                              (uv_handle_t *)&requests.watches.timer,
                              (uv_handle_t *)&loop.turns.prepare, (uv_handle_t *)&loop.turns.idle};
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        uv_close(handles[i], NULL);
    }
    log_gate_close(&loop.log);
    uv_run(&loop.uv, UV_RUN_DEFAULT);
    log_gate_fini(&loop.log);
    conns_fini(&conns);
    requests_fini(&requests);
    assert_int_equal(uv_loop_close(&loop.uv), 0);
}
