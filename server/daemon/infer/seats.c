/* SPDX-License-Identifier: MIT */
/*
 * A request is in the list of those that wait for their clients only in step SEND, when nothing but
 * the loop uses it, and the loop does not touch its seat and its sequence before it has left the
 * list. So whoever has the lock may take both.
 */
#include "config.h"

#include "server/daemon/infer/seats.h"

#include <inttypes.h>

#include <uv.h>

#include "base/check.h"
#include "base/resource.h"
#include "base/share.h"
#include "runtime/program/state.h"
#include "runtime/sched/sequence.h"
#include "server/daemon/infer/infer.h"
#include "server/daemon/serving/serving.h"
#include "server/http/client.h"
#include "server/model/model.h"

#define NS_PER_S UINT64_C(1000000000)

/* A client that has not read for this long is not reading: its sockets are full, so it is behind by
 * hundreds of tokens already. */
#define UNREAD_NS NS_PER_S

/* Streams that one search looks at. */
#define SEARCH_MAX 4096

void seats_init(struct seats *seats)
{
    int rc = pthread_mutex_init(&seats->lock, NULL);
    must(rc == 0);
    list_init(&seats->unread);
}

void seats_fini(struct seats *seats)
{
    if (seats->unread.next) {
        must(list_is_empty(&seats->unread));
        pthread_mutex_destroy(&seats->lock);
    }
}

/* ---- streams that are not read --------------------------------------------------------------- */

static struct infer *infer_of(struct list *link)
{
    struct seat *seat = LIST_ENTRY(link, struct seat, link);
    struct infer *infer;
    OBJ_CAST(infer, LIST_ENTRY(seat, struct infer, seat), INFER_MAGIC);
    return infer;
}

/* Has it a state where |request| needs one? */
static bool has_sequence_beside(const struct infer *stream, const struct infer *infer)
{
    return stream->call.sequence && stream->serving == infer->serving;
}

/* Is a seat of |share| needed, or with NULL the state of a sequence? Then |stream| gives it up for
 * |request| if its client is the same, or has more. */
static bool gives_way(const struct infer *stream, const struct infer *infer,
                      const struct share *share)
{
    uint64_t holder = stream->client->id, taker = infer->client->id;
    if (holder == taker || holder == SHARE_NOBODY) {
        return share ? stream->seat.share == share : has_sequence_beside(stream, infer);
    }
    if (share) {
        return stream->seat.share == share && share_held(share, holder) > share_held(share, taker);
    }
    struct rt_sequences *sequences = infer->serving->sequences;
    return has_sequence_beside(stream, infer) &&
           rt_sequences_held_bytes(sequences, client_that_lasts(holder)) >
               rt_sequences_held_bytes(sequences, client_that_lasts(taker));
}

/* With the lock held: the stream that gives way, or NULL. */
static struct infer *find(const struct seats *seats, const struct infer *infer,
                          const struct share *share)
{
    uint64_t now_ns = uv_hrtime();
    uint32_t seen = 0;
    for (struct list *link = seats->unread.next; link != &seats->unread && seen < SEARCH_MAX;
         link = link->next, seen++) {
        struct infer *stream = infer_of(link);
        if (now_ns - stream->seat.unread_ns < UNREAD_NS) {
            return NULL; /* the others have waited for less */
        }
        if (gives_way(stream, infer, share)) {
            return stream;
        }
    }
    return NULL;
}

/* The seat goes to |request| if it is one of |share|. Else it is free. False: there is no memory to
 * note it. */
static bool move_seat(struct seat *seat, uint64_t holder, const struct infer *infer,
                      struct share *share)
{
    must(!seat->is_lost && !list_is_empty(&seat->link)); /* only a stream that waits gives way */
    if (share && !share_move(share, holder, infer->client->id, 1)) {
        return false;
    }
    if (!share && seat->share) {
        share_give(seat->share, holder, 1);
    }
    seat->share = NULL;
    seat->is_lost = true;
    list_remove(&seat->link);
    return true;
}

static bool displace(const struct infer *infer, struct share *share)
{
    struct seats *seats = infer->env->seats;
    struct rt_sequence *sequence = NULL;
    bool is_displaced = false;
    pthread_mutex_lock(&seats->lock);
    struct infer *stream = find(seats, infer, share);
    if (stream && move_seat(&stream->seat, stream->client->id, infer, share)) {
        is_displaced = true;
        sequence = stream->call.sequence;
        stream->call.sequence = NULL;
        counter_add(&seats->displaced, 1);
    }
    pthread_mutex_unlock(&seats->lock);
    if (sequence) { /* without the lock, because its state may be large */
        rt_sequence_end(sequence);
        rt_sequence_close(sequence);
    }
    return is_displaced;
}

void seats_begin_unread(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct seats *seats = infer->env->seats;
    struct seat *seat = &infer->seat;
    must(list_is_empty(&seat->link) && !seat->is_lost);
    pthread_mutex_lock(&seats->lock);
    seat->unread_ns = uv_hrtime();
    list_push_back(&seats->unread, &seat->link);
    pthread_mutex_unlock(&seats->lock);
}

enum status seats_end_unread(struct infer *infer, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct seats *seats = infer->env->seats;
    struct seat *seat = &infer->seat;
    pthread_mutex_lock(&seats->lock);
    list_remove(&seat->link);
    bool is_lost = seat->is_lost;
    pthread_mutex_unlock(&seats->lock);
    seat->is_lost = false;
    return !is_lost ? ST_OK
                    : error_set(err, ST_EXHAUSTED,
                                "the client had not read this stream for %" PRIu64
                                " s, and others needed its place",
                                (uv_hrtime() - seat->unread_ns) / NS_PER_S);
}

/* ---- seats ----------------------------------------------------------------------------------- */

/* A model whose states do not fit even once says so later. */
uint64_t seats_count(const struct model *model, const struct params *params)
{
    OBJ_CHECK(model, MODEL_MAGIC);
    size_t state_bytes = rt_program_state_bytes_least(model->program);
    uint64_t states = state_bytes > 0 ? params->sequence_bytes_max / state_bytes : UINT64_MAX;
    uint64_t count = model->params.generation_count_max;
    count = states < count ? states : count;
    return count > 0 ? count : 1;
}

static enum status refuse(struct infer *infer, const struct share *share, enum share_taken taken,
                          const char *what, struct error *err)
{
    const struct model *model = infer->call.model;
    struct seats *seats = infer->env->seats;
    pthread_mutex_lock(&seats->lock);
    counter_add(&seats->refused, 1);
    pthread_mutex_unlock(&seats->lock);
    if (taken == SHARE_CLIENT_IS_UP) {
        (void)resource_refuse(RESOURCE_GENERATIONS, share, taken, infer->client->id, err);
        return error_prefix(err, "model '%s': ", model->name);
    }
    uint64_t count = seats_count(model, infer->env->params);
    return error_set(
        err, ST_EXHAUSTED,
        "model '%s' has %" PRIu64 " %s under way, expected fewer than %" PRIu64 ", see --%s",
        model->name, share_used(share), what, count,
        count < model->params.generation_count_max ? "sequence-bytes-max" : "generation-count-max");
}

enum status seats_take(struct infer *infer, struct share *share, const char *what,
                       struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct seat *seat = &infer->seat;
    uint64_t count = seats_count(infer->call.model, infer->env->params);
    must(!seat->share && list_is_empty(&seat->link));
    share_resize(share, count, resource_kept(RESOURCE_GENERATIONS, count));
    enum share_taken taken = share_take(share, infer->client->id, 1);
    if (taken != SHARE_TAKEN && !displace(infer, share)) {
        return refuse(infer, share, taken, what, err);
    }
    seat->share = share;
    return ST_OK;
}

void seats_leave(struct infer *infer)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct seat *seat = &infer->seat;
    must(list_is_empty(&seat->link) && !seat->is_lost);
    if (seat->share) {
        share_give(seat->share, infer->client->id, 1);
        seat->share = NULL;
    }
}

enum status seats_open_sequence(struct infer *infer, const struct rt_sequence_key *key,
                                bool is_start, struct rt_sequence **out_sequence, struct error *err)
{
    OBJ_CHECK(infer, INFER_MAGIC);
    struct rt_sequences *sequences = infer->serving->sequences;
    enum status status = rt_sequences_open(sequences, key, is_start, out_sequence, err);
    while (status == ST_EXHAUSTED && rt_sequences_is_full_for(sequences, key->program) &&
           displace(infer, NULL)) {
        status = rt_sequences_open(sequences, key, is_start, out_sequence, err);
    }
    return status;
}
