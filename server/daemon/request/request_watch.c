/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/request_watch.h"

#include "base/check.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"

#define LOOK_MS 200

/* Each looks in a turn of its own, but for those whose last answer is on its way. */
static void on_timer(uv_timer_t *timer)
{
    struct request_watches *watches = timer->data;
    if (list_is_empty(&watches->all)) {
        uv_timer_stop(timer);
    }
    for (struct list *node = watches->all.next; node != &watches->all; node = node->next) {
        struct request *request = LIST_ENTRY(node, struct request, grpc.watch_link);
        OBJ_CHECK(request, REQUEST_MAGIC);
        if (request->step == STEP_READ && !request_grpc_is_busy(request)) {
            request->grpc.is_in_turn = true;
            turns_put(&request->requests->uses.loop->turns, &request->turn);
        }
    }
}

void request_watches_init(struct request_watches *watches, struct loop *loop)
{
    list_init(&watches->all);
    uv_timer_init(&loop->uv, &watches->timer);
    watches->timer.data = watches;
}

void request_watch_begin(struct request *request)
{
    OBJ_CHECK(request, REQUEST_MAGIC);
    struct request_watches *watches = &request->requests->watches;
    if (list_is_empty(&request->grpc.watch_link)) {
        list_push_back(&watches->all, &request->grpc.watch_link);
    }
    if (!uv_is_active((const uv_handle_t *)&watches->timer)) {
        uv_timer_start(&watches->timer, on_timer, LOOK_MS, LOOK_MS);
    }
}
