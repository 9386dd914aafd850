/* SPDX-License-Identifier: MIT */
/*
 * A growable byte buffer with a mandatory maximum. If an append exceeds the maximum, or the heap is
 * exhausted, the buffer is marked as failed: it stays readable and ignores further appends. So code
 * that prints calls buf_failed() once, at the end, and does not check each append.
 */
#ifndef PTED_BASE_BUF_H
#define PTED_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"
#include "base/status.h"

struct buf {
    uint8_t *ptr; /* owned */
    size_t len;
    size_t capacity;
    size_t max_bytes;
    bool failed;
    bool lacks_memory; /* failed because the heap is exhausted, not at the maximum */
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_fini(struct buf *buf);

/* Empties the buffer, keeps its memory and clears the failure. */
void buf_reset(struct buf *buf);

static inline bool buf_failed(const struct buf *buf)
{
    return buf->failed;
}

/* Fails if the buffer has failed: ST_EXHAUSTED for want of memory, ST_TOO_LARGE at the maximum.
 * |what| is in it: "the answer". */
MUST_CHECK enum status buf_check(const struct buf *buf, const char *what, struct error *err);

static inline struct span buf_span(const struct buf *buf)
{
    return span_of(buf->ptr, buf->len);
}

/* Returns room for |len| more bytes at the end, or NULL. Write there, then call buf_commit(). */
uint8_t *buf_reserve(struct buf *buf, size_t len);
void buf_commit(struct buf *buf, size_t len);

void buf_add(struct buf *buf, const void *bytes, size_t len);
void buf_add_str(struct buf *buf, const char *text);
static inline void buf_add_char(struct buf *buf, char c)
{
    if (!buf->failed && buf->len < buf->capacity) {
        buf->ptr[buf->len++] = (uint8_t)c;
    } else {
        buf_add(buf, &c, 1);
    }
}

/* Appends |c| |count| times. */
void buf_add_fill(struct buf *buf, char c, size_t count);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
