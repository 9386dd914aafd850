/* SPDX-License-Identifier: MIT */
/*
 * What clients do at their own pace: send a body, take an answer. Memory that is held meanwhile is
 * lent. Each connection has to move so many bytes a second, and all connections together hold no
 * more than the rule of hal/pool.h gives them. A large upload is read when memory for all of it has
 * been promised, of which it then takes what has come; the promise to one that pauses goes to the
 * next. When there is not enough, the slowest connections give theirs back: an upload is refused
 * (429), an answer is broken off. It takes some tenths of a second to see that a connection has
 * stopped. Until then others that need memory wait, for at most CLIENTS_WANT_MS_MAX: an upload that
 * goes on is not read, a complete request is not begun, and an answer that the client does not take
 * stays where it was computed. Small bodies do not wait for large ones.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_CLIENTS_H
#define PTED_SERVER_CLIENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"

struct conn;
struct params;
struct server;

/* So long a request waits for memory; then it is refused. */
#define CLIENTS_WANT_MS_MAX 5000

/* Connections that give their memory back in one turn of the loop: each time all are looked at. */
#define CLIENTS_EVICTIONS_MAX 8

/* Of one connection; from pace_begin() on. */
struct pace {
    uint64_t begun_ms;
    uint64_t moved_ms;     /* when bytes moved last */
    uint64_t recent_bytes; /* that have moved until then: those of long ago count less and less */
    uint64_t halved_ms; /* when they were halved last, or when that was due and there were none */
    uint64_t window_ms; /* when the window began in which the rate is measured now */
    uint64_t window_bytes;
};

void pace_begin(struct pace *pace, uint64_t now_ms);
void pace_move(struct pace *pace, size_t bytes, uint64_t now_ms);

/* It could not move since |since_ms|, and now can: the time between does not count. */
void pace_resume(struct pace *pace, uint64_t since_ms, uint64_t now_ms);

/* Fewer bytes a second have moved over the last whole window than --rate-min says. */
bool pace_is_too_slow(struct pace *pace, const struct params *params, uint64_t now_ms);

/* Of the daemon. The heap is charged to the pool of the serving that is in place. */
struct clients {
    size_t heap_bytes; /* that connections hold outside of the pool */
    uint64_t evicted_count;
    struct list wanting; /* connections that wait for memory, oldest first */
    bool is_upload_waiting;
    uv_timer_t timer; /* while there are any */
};

void clients_init(struct server *server);

/* What |conn| holds has changed. */
void clients_update(struct conn *conn);

/* Around the replacement of the serving, and before one gives up its memory. */
void clients_leave_pool(struct server *server);
void clients_enter_pool(struct server *server);

/* Clients together hold more than they may, and others than |conn| have some of it. */
bool clients_are_over(const struct conn *conn);

/* |conn| waits for memory: conn_retry() is called now and then until that says that it has it. */
void clients_want(struct conn *conn);

/*
 * May the upload of |conn| be read on? A large one is promised memory for all of it first. Uploads
 * wait in a row; those that move next to nothing, or are far slower, give their memory back.
 */
bool clients_may_send(struct conn *conn);

/*
 * Memory that others wait for: the slowest of all connections but |except| gives its own back if it
 * moves next to nothing, or little when |is_pressing|. False: there is none.
 */
bool clients_evict_slowest(struct server *server, const struct conn *except, bool is_pressing);

#endif
