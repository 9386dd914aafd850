/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a request body, bounded before they arrive. Small bodies stay in memory that the
 * request keeps from one use to the next; larger ones live in the ring of requests in flight, so
 * that all bodies together have a maximum too. A body in the ring can be bound as a tensor where it
 * lies: its start is placed so that the first tensor behind the JSON is aligned.
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
    size_t announced; /* bytes that were reserved for; 0 when the length is not known */
    size_t max_bytes;
};

#define BODY_SMALL_BYTES (64 << 10)
#define BODY_ALIGN 64

void body_init(struct body *body, struct hal_pool *pool, size_t max_bytes);
void body_fini(struct body *body);

/* Gives the ring memory back; keeps |small|. */
void body_reset(struct body *body);

/*
 * Room for |len| bytes in all. |json_bytes| of them come before the first tensor. ST_TOO_LARGE
 * beyond the maximum; ST_EXHAUSTED when the ring is full now.
 */
MUST_CHECK enum status body_reserve(struct body *body, size_t len, size_t json_bytes,
                                    struct error *err);

/* Refuses |bytes| more, as body_add() would, before they have come. */
MUST_CHECK enum status body_expect(const struct body *body, uint64_t bytes, struct error *err);

/* Appends, growing when the length was not announced. Bytes that are in place already stay there.
 */
MUST_CHECK enum status body_add(struct body *body, struct span bytes, struct error *err);

static inline struct span body_span(const struct body *body)
{
    return span_of(body->ptr, body->len);
}

#endif
