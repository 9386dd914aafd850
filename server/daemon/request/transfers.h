/* SPDX-License-Identifier: MIT */
/*
 * Transfers: bodies that come and answers that go, at the pace of clients. Memory that is held
 * meanwhile counts as lent. Each half of an exchange (server/daemon/request/exchange.h) is a
 * transfer of its own: where a connection carries several exchanges at a time, or an answer goes
 * while the body still comes, each has its own pace and its own memory. Each one has to move a
 * minimum of bytes a second, and all together hold no more than the rule of hal/pool.h gives them.
 * A large upload is read once memory for all of it is charged (body_precharge()); it then takes
 * memory as bytes come. If an upload pauses, another one may be charged. If memory is short the
 * slowest give theirs back: an upload is refused (429), an answer is broken off. It takes some
 * tenths of a second to see that a client has stopped. Until then others that need memory wait, for
 * at most TRANSFERS_WAIT_MS_MAX: an upload in progress is not read, a complete request is not
 * begun, and an answer that the client does not take stays where it was computed. Of those that
 * wait the oldest one of each client comes first, so a client with one request finds memory beside
 * a client with hundreds. Small bodies do not wait for large ones.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_DAEMON_REQUEST_TRANSFERS_H
#define PTED_SERVER_DAEMON_REQUEST_TRANSFERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <uv.h>

#include "base/list.h"
#include "base/share.h"

struct exchange;
struct loop;
struct params;
struct servings;

#define TRANSFERS_MAGIC 0x74726673u

/* The longest time that a request waits for memory; then it is refused. */
#define TRANSFERS_WAIT_MS_MAX 5000

/* Exchanges that give their memory back in one turn of the loop; each choice looks at all of them.
 */
#define TRANSFERS_EVICTIONS_MAX 8

/* Progress of one transfer; valid from pace_begin() on. */
struct pace {
    uint64_t begun_ms;
    uint64_t moved_ms;     /* when bytes moved last */
    uint64_t recent_bytes; /* bytes moved until then; older ones count less and less */
    uint64_t
        halved_ms; /* when they were last halved, or when halving was due and there were none */
    uint64_t window_ms; /* when the current window of the rate began */
    uint64_t window_bytes;
};

void pace_begin(struct pace *pace, uint64_t now_ms);
void pace_move(struct pace *pace, size_t bytes, uint64_t now_ms);

/* Call when the client could not move since |since_ms| and now can: the time between does not
 * count. */
void pace_resume(struct pace *pace, uint64_t since_ms, uint64_t now_ms);

/* Have fewer bytes a second moved over the last whole window than --rate-min requires? */
bool pace_is_too_slow(struct pace *pace, const struct params *params, uint64_t now_ms);

/* One half of an exchange. */
struct transfer {
    struct exchange *exchange; /* that it is a part of */
    struct pace pace;
    struct list wait_link;  /* in transfers->waiting */
    uint64_t wait_since_ms; /* since when it waits */
};

void transfers_prepare(struct transfer *transfer, struct exchange *exchange);

/* Does it wait for memory? */
static inline bool transfer_is_waiting(const struct transfer *transfer)
{
    return !list_is_empty(&transfer->wait_link);
}

/* One for the daemon. Heap memory is charged to the pool of the current serving. */
struct transfers {
    uint32_t magic;
    struct loop *loop; /* borrowed, like |servings| */
    const struct servings *servings;
    struct list exchanges; /* all there are, by |link| */
    size_t heap_bytes;     /* bytes that they hold outside the pool */
    uint64_t evicted_count;
    struct list waiting; /* transfers that wait for memory, oldest first */
    struct share turn;   /* by client, while all are looked at; else nobody holds anything */
    bool is_upload_waiting;
    bool is_evicting; /* an exchange gives its memory back now */
    uv_timer_t timer; /* runs while there are any */
};

/* Call once the loop is initialised. */
void transfers_init(struct transfers *transfers, struct loop *loop,
                    const struct servings *servings);

/* Call when there is no exchange any more, or there never was one: zeroed. */
void transfers_fini(struct transfers *transfers);

/* Counts what transfers hold, by client; the size is not set. Looks at each exchange. */
void transfers_stats(struct transfers *transfers, struct share_stats *out_stats);

/* Call when the memory that |exchange| holds has changed. */
void transfers_update(struct exchange *exchange);

/* Around the replacement of the serving, and before a serving gives up its memory. */
void transfers_leave_pool(struct transfers *transfers);
void transfers_enter_pool(struct transfers *transfers);

/* Do all transfers together hold more than they may, and others than |exchange| some of it? */
bool transfers_are_over(const struct exchange *exchange);

/* |transfer| waits for memory: exchange_retry() is called now and then until it reports success. */
void transfers_wait_for_memory(struct transfer *transfer);

/*
 * May the upload of |exchange| be read on? A large upload is first charged for all of it. Uploads
 * wait in a row; uploads that hardly move, or are far slower, give their memory back.
 */
bool transfers_may_send(struct exchange *exchange);

/* Call when others wait for memory: the slowest of all other than |except| gives its own back if it
 * hardly moves, or, when |is_pressing|, if it moves little. With a call of a stream, all of the
 * stream is spared. False: there is none. An eviction makes no other: with its answer the client's
 * next request may begin, and the caller relies on |except|. */
bool transfers_evict_slowest(struct transfers *transfers, struct exchange *except,
                             bool is_pressing);

#endif
