/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/daemon/request/transfers.h"

#include "base/check.h"
#include "hal/pool.h"
#include "server/daemon/loop/loop.h"
#include "server/daemon/request/exchange.h"
#include "server/daemon/request/request.h"
#include "server/daemon/request/requests.h"
#include "server/daemon/serving/serving.h"
#include "server/daemon/serving/servings.h"
#include "server/http/body.h"
#include "server/process/log.h"
#include "server/process/options.h"

/* Recently moved bytes count half after each period of this length. */
#define HALF_LIFE_MS 100
#define NEXT_TO_NOTHING 4096
#define LITTLE (16 << 10) /* about 100 KB a second */
/* A transfer counts as stopped if it has not moved a byte for this long while others wait. */
#define PAUSE_MS 300
/* An upload takes the memory of an upload that is this many times slower. */
#define FAR_SLOWER 4
#define RETRY_MS 20
#define MS_PER_S 1000
/* A transfer counts as alone if the others together hold less than this fraction of the memory. */
#define ALONE 64
/* The fraction of the memory that exchanges may hold outside the pool. */
#define SMALL 8

/* ---- how fast -------------------------------------------------------------------------------- */

void pace_begin(struct pace *pace, uint64_t now_ms)
{
    *pace = (struct pace){
        .begun_ms = now_ms, .moved_ms = now_ms, .halved_ms = now_ms, .window_ms = now_ms};
}

static uint64_t recent_bytes(const struct pace *pace, uint64_t now_ms)
{
    uint64_t halvings = (now_ms - pace->halved_ms) / HALF_LIFE_MS;
    return halvings < 64 ? pace->recent_bytes >> halvings : 0;
}

void pace_move(struct pace *pace, size_t bytes, uint64_t now_ms)
{
    pace->recent_bytes = recent_bytes(pace, now_ms) + bytes;
    pace->halved_ms = now_ms - (now_ms - pace->halved_ms) % HALF_LIFE_MS;
    pace->moved_ms = now_ms;
    pace->window_bytes += bytes;
}

void pace_resume(struct pace *pace, uint64_t since_ms, uint64_t now_ms)
{
    must(now_ms >= since_ms);
    pace->begun_ms = now_ms;
    pace->moved_ms += now_ms - since_ms;
    pace->halved_ms += now_ms - since_ms;
    pace->window_ms += now_ms - since_ms;
}

bool pace_is_too_slow(struct pace *pace, const struct params *params, uint64_t now_ms)
{
    uint64_t elapsed_ms = now_ms - pace->window_ms;
    if (params->rate_min == 0 || elapsed_ms < params->rate_window) {
        return false;
    }
    bool is_slow = pace->window_bytes * MS_PER_S < params->rate_min * elapsed_ms;
    pace->window_ms = now_ms;
    pace->window_bytes = 0;
    return is_slow;
}

void transfers_prepare(struct transfer *transfer, struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    *transfer = (struct transfer){.exchange = exchange};
    list_init(&transfer->wait_link);
}

/* ---- how much -------------------------------------------------------------------------------- */

static struct hal_pool *pool_of(const struct transfers *transfers)
{
    return transfers->servings->current ? transfers->servings->current->transfers : NULL;
}

static void charge(struct transfers *transfers, size_t before, size_t bytes)
{
    struct hal_pool *pool = pool_of(transfers);
    must(transfers->heap_bytes >= before); /* the sum of what all exchanges are charged */
    transfers->heap_bytes += bytes;
    transfers->heap_bytes -= before;
    if (pool && bytes > before) {
        hal_pool_charge(pool, bytes - before);
    } else if (pool && bytes < before) {
        hal_pool_discharge(pool, before - bytes);
    }
}

void transfers_update(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    size_t heap_bytes = exchange_heap_bytes(exchange);
    if (heap_bytes != exchange->charged_bytes) {
        charge(&exchange->requests->transfers, exchange->charged_bytes, heap_bytes);
        exchange->charged_bytes = heap_bytes;
    }
}

void transfers_leave_pool(struct transfers *transfers)
{
    OBJ_CHECK(transfers, TRANSFERS_MAGIC);
    if (pool_of(transfers)) {
        hal_pool_discharge(pool_of(transfers), transfers->heap_bytes);
    }
}

void transfers_enter_pool(struct transfers *transfers)
{
    OBJ_CHECK(transfers, TRANSFERS_MAGIC);
    if (pool_of(transfers)) {
        hal_pool_charge(pool_of(transfers), transfers->heap_bytes);
    }
}

/* ---- whose turn it is to give memory back ---------------------------------------------------- */

/* Lowers |*bytes| to those that moved recently in one half. False: it has just begun. */
static bool look_at_half(const struct transfer *transfer, uint64_t now_ms, uint64_t *bytes)
{
    const struct pace *pace = &transfer->pace;
    uint64_t recent = now_ms - pace->moved_ms >= PAUSE_MS ? 0 : recent_bytes(pace, now_ms);
    bool has_time = now_ms - pace->begun_ms >= HALF_LIFE_MS;
    *bytes = has_time && recent < *bytes ? recent : *bytes;
    return has_time;
}

/* An answer of a call of a stream goes at the pace of the stream, while that has one to take. */
static const struct transfer *answer_of(struct exchange *exchange)
{
    struct exchange *owner = exchange_owner(exchange);
    return exchange_is_answering(owner) ? &owner->answer : &exchange->answer;
}

/* The bytes that moved recently, in the slower half that holds memory; false: the exchange is not
 * to be evicted. An upload that waits for memory has sent more than we have read, so it is not
 * slow. */
static bool find_pace(struct exchange *exchange, uint64_t now_ms, uint64_t *out_bytes)
{
    bool is_answering = exchange_is_answering(exchange), is_found = false;
    bool is_uploading = exchange_upload(exchange) && !transfer_is_waiting(&exchange->upload) &&
                        (!is_answering || exchange_upload_bytes(exchange) > 0);
    *out_bytes = UINT64_MAX;
    if (exchange_is_parked(exchange)) {
        *out_bytes = 0;
        return true;
    }
    if (is_uploading) {
        is_found |= look_at_half(&exchange->upload, now_ms, out_bytes);
    }
    if (is_answering) {
        is_found |= look_at_half(answer_of(exchange), now_ms, out_bytes);
    }
    return is_found;
}

/* The slowest exchange that holds memory, other than |except| and its stream, with fewer than
 * |limit| recent bytes; among equally slow ones the exchange that holds most. NULL: there is none.
 */
static struct exchange *find_slowest(const struct transfers *transfers, struct exchange *except,
                                     uint64_t limit, uint64_t now_ms)
{
    const struct exchange *spared = except ? exchange_owner(except) : NULL;
    struct exchange *slowest = NULL;
    uint64_t lowest = limit;
    size_t most = 0;
    for (struct list *node = transfers->exchanges.next; node != &transfers->exchanges;
         node = node->next) {
        struct exchange *exchange = LIST_ENTRY(node, struct exchange, link);
        uint64_t pace;
        if (exchange_owner(exchange) == spared || !find_pace(exchange, now_ms, &pace)) {
            continue;
        }
        size_t held = exchange_held_bytes(exchange);
        if (held > 0 && (pace < lowest || (slowest && pace == lowest && held > most))) {
            slowest = exchange;
            lowest = pace;
            most = held;
        }
    }
    return slowest;
}

static void evict(struct exchange *exchange)
{
    struct transfers *transfers = &exchange->requests->transfers;
    if (log_gate_admits(&transfers->loop->log, LOG_KIND_REFUSED, exchange->client)) {
        log_line(LOG_INFO, "connection: %zu bytes are taken back, others need them",
                 exchange_held_bytes(exchange));
    }
    transfers->evicted_count++;
    transfers->is_evicting = true;
    exchange_evict(exchange);
    transfers->is_evicting = false;
}

static bool evict_below(struct transfers *transfers, struct exchange *except, uint64_t limit)
{
    if (transfers->is_evicting) {
        return false;
    }
    struct exchange *slowest = find_slowest(transfers, except, limit, uv_now(&transfers->loop->uv));
    if (slowest) {
        evict(slowest);
    }
    return slowest != NULL;
}

/* For the upload of |exchange|: a far slower exchange, or an exchange that hardly moves, gives way.
 */
static bool make_room(struct exchange *exchange)
{
    struct transfers *transfers = &exchange->requests->transfers;
    uint64_t far_slower =
        recent_bytes(&exchange->upload.pace, uv_now(&transfers->loop->uv)) / FAR_SLOWER;
    return evict_below(transfers, exchange,
                       far_slower > NEXT_TO_NOTHING ? far_slower : NEXT_TO_NOTHING);
}

bool transfers_evict_slowest(struct transfers *transfers, struct exchange *except, bool is_pressing)
{
    return evict_below(transfers, except, is_pressing ? LITTLE : NEXT_TO_NOTHING);
}

bool transfers_are_over(const struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    struct hal_pool *pool = pool_of(&exchange->requests->transfers);
    struct hal_pool_stats stats;
    if (!pool || !hal_pool_is_over(pool)) {
        return false;
    }
    hal_pool_stats(pool, &stats);
    return stats.held_bytes - exchange_held_bytes(exchange) > stats.size_bytes / ALONE;
}

/* ---- waiting for memory ---------------------------------------------------------------------- */

static struct transfer *transfer_of(struct list *wait_link)
{
    return LIST_ENTRY(wait_link, struct transfer, wait_link);
}

static bool is_upload(const struct transfer *transfer)
{
    return transfer == &transfer->exchange->upload;
}

static void move_all(struct list *from, struct list *to)
{
    while (!list_is_empty(from)) {
        struct list *link = from->next;
        list_remove(link);
        list_push_back(to, link);
    }
}

/* If no upload has a precharge, one goes on, however large it is. */
static bool is_only_upload(const struct transfers *transfers)
{
    for (struct list *node = transfers->exchanges.next; node != &transfers->exchanges;
         node = node->next) {
        const struct body *body = exchange_upload(LIST_ENTRY(node, struct exchange, link));
        if (body && body->precharged) {
            return false;
        }
    }
    return true;
}

static bool precharge(struct exchange *exchange)
{
    struct body *body = exchange_upload(exchange);
    for (int i = 0; i < TRANSFERS_EVICTIONS_MAX; i++) {
        if (body_precharge(body, false)) {
            return true;
        }
        if (!make_room(exchange)) {
            break;
        }
    }
    return is_only_upload(&exchange->requests->transfers) && body_precharge(body, true);
}

/* Memory that was precharged may still be in use, for example by an upload that has paused since.
 */
static bool has_room(struct exchange *exchange)
{
    struct body *body = exchange_upload(exchange);
    size_t len;
    for (int i = 0; i < TRANSFERS_EVICTIONS_MAX; i++) {
        if (body_room(body, &len)) {
            return true;
        }
        if (!make_room(exchange)) {
            return false;
        }
    }
    return false;
}

static bool may_send_large(struct exchange *exchange)
{
    const struct body *body = exchange_upload(exchange);
    if (body->len < body->capacity) {
        return true;
    }
    if (!body->precharged &&
        (exchange->requests->transfers.is_upload_waiting || !precharge(exchange))) {
        return false;
    }
    return has_room(exchange);
}

/* Small bodies have a part of the memory for transfers that large bodies cannot take. */
static bool may_send_small(struct exchange *exchange)
{
    const struct hal_pool *pool = pool_of(&exchange->requests->transfers);
    must(exchange->requests->transfers.heap_bytes >= exchange->charged_bytes);
    size_t of_others = exchange->requests->transfers.heap_bytes - exchange->charged_bytes;
    return !exchange_upload(exchange)->buffer && (!pool || of_others < hal_pool_size(pool) / SMALL);
}

bool transfers_may_send(struct exchange *exchange)
{
    OBJ_CHECK(exchange, EXCHANGE_MAGIC);
    if (exchange_upload(exchange)->announced > BODY_SMALL_BYTES) {
        return may_send_large(exchange);
    }
    if (may_send_small(exchange)) {
        return true;
    }
    for (int i = 0; i < TRANSFERS_EVICTIONS_MAX && transfers_are_over(exchange); i++) {
        if (!make_room(exchange)) {
            return false;
        }
    }
    return !transfers_are_over(exchange);
}

static void take_precharges_back(struct transfers *transfers)
{
    uint64_t now_ms = uv_now(&transfers->loop->uv);
    for (struct list *node = transfers->exchanges.next; node != &transfers->exchanges;
         node = node->next) {
        struct exchange *exchange = LIST_ENTRY(node, struct exchange, link);
        struct body *body = exchange_upload(exchange);
        if (body && !transfer_is_waiting(&exchange->upload) &&
            now_ms - exchange->upload.pace.moved_ms >= PAUSE_MS) {
            body_drop_precharge(body);
        }
    }
}

/* Who waits. */
static uint64_t client_of(const struct exchange *exchange)
{
    return exchange->request ? exchange->request->client.id : exchange->client;
}

/* Moves all that wait to |now|: first the oldest one of each client, then the others. So a client
 * with one request finds memory beside a client with hundreds. */
static void take_turns(struct transfers *transfers, struct list *now)
{
    struct list others;
    list_init(now);
    list_init(&others);
    while (!list_is_empty(&transfers->waiting)) {
        struct transfer *transfer = transfer_of(transfers->waiting.next);
        uint64_t client = client_of(transfer->exchange);
        bool is_first =
            client == SHARE_NOBODY || (share_held(&transfers->turn, client) == 0 &&
                                       share_take(&transfers->turn, client, 1) == SHARE_TAKEN);
        list_remove(&transfer->wait_link);
        list_push_back(is_first ? now : &others, &transfer->wait_link);
    }
    share_clear(&transfers->turn);
    move_all(&others, now);
}

void transfers_stats(struct transfers *transfers, struct share_stats *out_stats)
{
    OBJ_CHECK(transfers, TRANSFERS_MAGIC);
    bool has_memory = true;
    for (struct list *node = transfers->exchanges.next; has_memory && node != &transfers->exchanges;
         node = node->next) {
        const struct exchange *exchange = LIST_ENTRY(node, struct exchange, link);
        has_memory = share_take(&transfers->turn, client_of(exchange),
                                exchange_held_bytes(exchange)) == SHARE_TAKEN;
    }
    share_stats(&transfers->turn, out_stats);
    share_clear(&transfers->turn);
    out_stats->taken_back_count = transfers->evicted_count;
}

/*
 * Retries each waiting transfer once, as far as the turn has time, including those that begin to
 * wait again; the others come first in the next turn. A retry may evict others, which
 * then leave the list.
 */
static void on_retry(uv_timer_t *timer)
{
    struct transfers *transfers;
    OBJ_CAST(transfers, timer->data, TRANSFERS_MAGIC);
    struct list *waiting = &transfers->waiting, now;
    take_turns(transfers, &now);
    bool was_upload_waiting = transfers->is_upload_waiting;
    if (was_upload_waiting) {
        take_precharges_back(transfers);
    }
    transfers->is_upload_waiting = false;
    bool has_time = true;
    while (has_time && !list_is_empty(&now)) {
        struct transfer *transfer = transfer_of(now.next);
        list_remove(&transfer->wait_link);
        if (!exchange_retry(transfer)) {
            list_push_back(waiting, &transfer->wait_link);
            transfers->is_upload_waiting |= is_upload(transfer);
        }
        has_time = turns_has_time(&transfers->loop->turns);
    }
    if (!list_is_empty(&now)) {
        transfers->is_upload_waiting |= was_upload_waiting;
        move_all(waiting, &now);
        move_all(&now, waiting);
    }
    if (list_is_empty(waiting)) {
        uv_timer_stop(timer);
    }
}

void transfers_init(struct transfers *transfers, struct loop *loop, const struct servings *servings)
{
    *transfers = (struct transfers){.magic = TRANSFERS_MAGIC, .loop = loop, .servings = servings};
    list_init(&transfers->exchanges);
    list_init(&transfers->waiting);
    share_init_for_one_thread(&transfers->turn, UINT64_MAX, 0);
    uv_timer_init(&loop->uv, &transfers->timer);
    transfers->timer.data = transfers;
}

void transfers_fini(struct transfers *transfers)
{
    if (transfers->magic == 0) {
        return; /* the daemon has failed to start */
    }
    OBJ_CHECK(transfers, TRANSFERS_MAGIC);
    must(list_is_empty(&transfers->exchanges) && list_is_empty(&transfers->waiting));
    must(transfers->heap_bytes == 0 && !transfers->is_evicting);
    share_fini(&transfers->turn);
}

void transfers_wait_for_memory(struct transfer *transfer)
{
    OBJ_CHECK(transfer->exchange, EXCHANGE_MAGIC);
    struct transfers *transfers = &transfer->exchange->requests->transfers;
    must(!transfer_is_waiting(transfer));
    transfer->wait_since_ms = uv_now(&transfers->loop->uv);
    transfers->is_upload_waiting |= is_upload(transfer);
    list_push_back(&transfers->waiting, &transfer->wait_link);
    if (!uv_is_active((const uv_handle_t *)&transfers->timer)) {
        uv_timer_start(&transfers->timer, on_retry, RETRY_MS, RETRY_MS);
    }
}
