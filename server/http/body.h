/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a request body, bounded before they arrive. Small bodies stay in memory that the
 * request keeps for its next use. Larger ones use the memory for requests (hal/pool.h): only as
 * much as has arrived, not as much as was announced, and at most BODY_STEP_BYTES more. A body can
 * be bound as tensors in place: its beginning is placed so that the first tensor after the JSON is
 * aligned.
 *
 * A body has one owner at a time: the loop while bytes arrive, then the thread that has the
 * request.
 */
#ifndef PTED_SERVER_HTTP_BODY_H
#define PTED_SERVER_HTTP_BODY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

struct hal_buffer;
struct hal_pool;

struct body {
    struct hal_pool *pool;     /* borrowed; NULL: there is no pool now (ST_UNAVAILABLE) */
    uint8_t *small;            /* owned; BODY_SMALL_BYTES from the first use on */
    struct hal_buffer *buffer; /* owned; NULL while the bytes are in |small| */
    uint8_t *ptr;              /* first byte */
    size_t len, capacity;
    size_t announced;  /* 0 when the length is not known */
    size_t pad;        /* bytes in |buffer| in front of the first */
    size_t precharged; /* charged to |pool|, of the part still to be reserved */
    size_t max_bytes;
};

#define BODY_SMALL_BYTES (64 << 10)
#define BODY_STEP_BYTES (256 << 10)
#define BODY_ALIGN 64

void body_init(struct body *body, struct hal_pool *pool, size_t max_bytes);
void body_fini(struct body *body);

/* Gives the memory in the pool back; keeps |small|. */
void body_reset(struct body *body);

/* Announces |len| bytes, of which |json_bytes| come before the first tensor. Takes no memory yet.
 * ST_TOO_LARGE beyond the maximum, or beyond all the memory for requests. */
MUST_CHECK enum status body_announce(struct body *body, size_t len, size_t json_bytes,
                                     struct error *err);

/*
 * Charges memory for the whole of an announced body, which then takes it bit by bit. |is_forced|:
 * even if the pool may not hold so much. False: it may not. Dropping the charge leaves the body the
 * memory that it has.
 */
MUST_CHECK bool body_precharge(struct body *body, bool is_forced);
void body_drop_precharge(struct body *body);

/* Refuses |bytes| more before they have come, as body_add() would. */
MUST_CHECK enum status body_expect(const struct body *body, uint64_t bytes, struct error *err);

/* Appends. Bytes that are already in place stay there. ST_EXHAUSTED: there is no memory now, and
 * nothing has been appended. */
MUST_CHECK enum status body_add(struct body *body, struct span bytes, struct error *err);

/* Returns where to read bytes of an announced body that body_add() gets next, for at most as many
 * bytes as are still to come; NULL if there is no memory. */
uint8_t *body_room(struct body *body, size_t *out_len);

/* Call when the body is complete. Gives back memory that it did not need; |pool| holds the rest
 * from now on. ST_EXHAUSTED: that pool may not hold so much now. */
MUST_CHECK enum status body_settle(struct body *body, struct hal_pool *pool, struct error *err);

/* Returns the bytes in the pool. */
size_t body_pool_bytes(const struct body *body);

static inline struct span body_span(const struct body *body)
{
    return span_of(body->ptr, body->len);
}

#endif
