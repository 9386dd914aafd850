/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a request body, bounded before they arrive. Small bodies stay in memory that the
 * request keeps from one use to the next. Larger ones are in the memory for requests (hal/pool.h),
 * of which they take what has arrived and not what was announced: at most BODY_STEP_BYTES more.
 * They can be bound as tensors where they lie: a body begins so that the first tensor behind the
 * JSON is aligned.
 *
 * One owner at a time: the loop while it arrives, then whoever has the request.
 */
#ifndef PTED_SERVER_BODY_H
#define PTED_SERVER_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

struct hal_buffer;
struct hal_pool;

struct body {
    struct hal_pool *pool;     /* borrowed; NULL: there is none now (ST_UNAVAILABLE) */
    uint8_t *small;            /* owned; BODY_SMALL_BYTES once it was needed */
    struct hal_buffer *buffer; /* owned; NULL while the bytes are in |small| */
    uint8_t *ptr;              /* first byte */
    size_t len, capacity;
    size_t announced; /* 0 when the length is not known */
    size_t pad;       /* bytes in |buffer| before the first */
    size_t promised;  /* by |pool|, of what is still to be reserved */
    size_t max_bytes;
};

#define BODY_SMALL_BYTES (64 << 10)
#define BODY_STEP_BYTES (256 << 10)
#define BODY_ALIGN 64

void body_init(struct body *body, struct hal_pool *pool, size_t max_bytes);
void body_fini(struct body *body);

/* Gives the memory in the pool back; keeps |small|. */
void body_reset(struct body *body);

/*
 * |len| bytes are going to come, |json_bytes| of them before the first tensor. No memory is taken
 * yet. ST_TOO_LARGE beyond the maximum, or beyond all the memory for requests.
 */
MUST_CHECK enum status body_announce(struct body *body, size_t len, size_t json_bytes,
                                     struct error *err);

/*
 * Of an announced body: memory for all of it, of which it takes more and more. |is_forced|: even
 * where the pool may not hold so much. False: it may not. Taking the promise back leaves the body
 * what it has.
 */
MUST_CHECK bool body_promise(struct body *body, bool is_forced);
void body_unpromise(struct body *body);

/* Refuses |bytes| more, as body_add() would, before they have come. */
MUST_CHECK enum status body_expect(const struct body *body, uint64_t bytes, struct error *err);

/* Appends. Bytes that are in place already stay there. ST_EXHAUSTED: there is no memory now, and
 * nothing was appended. */
MUST_CHECK enum status body_add(struct body *body, struct span bytes, struct error *err);

/* Where bytes of an announced body can be read to that body_add() gets next; NULL when there is no
 * memory. No more than are still to come. */
uint8_t *body_room(struct body *body, size_t *out_len);

/* It is complete: memory that it did not need goes back, and the rest is held by |pool| from now
 * on. ST_EXHAUSTED: that pool may not hold so much now. */
MUST_CHECK enum status body_settle(struct body *body, struct hal_pool *pool, struct error *err);

/* Bytes in the pool. */
size_t body_pool_bytes(const struct body *body);

static inline struct span body_span(const struct body *body)
{
    return span_of(body->ptr, body->len);
}

#endif
