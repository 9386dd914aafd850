/* SPDX-License-Identifier: MIT */
/*
 * Growable bytes with a mandatory maximum. Appending beyond it, or running out of memory, marks the
 * buffer failed: it stays readable, further appends do nothing, and one buf_failed() at the end of
 * a print replaces a check behind every append.
 */
#ifndef PTED_BASE_BUF_H
#define PTED_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

#include "base/bytes.h"

struct buf {
    uint8_t *ptr; /* owned */
    size_t len;
    size_t capacity;
    size_t max_bytes;
    bool failed;
};

void buf_init(struct buf *buf, size_t max_bytes);
void buf_fini(struct buf *buf);

/* Empties, keeps the memory and clears the failure. */
void buf_reset(struct buf *buf);

static inline bool buf_failed(const struct buf *buf)
{
    return buf->failed;
}

static inline struct span buf_span(const struct buf *buf)
{
    return span_of(buf->ptr, buf->len);
}

/* Room for |len| more bytes at the end, or NULL; commit what was written with buf_commit(). */
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

/* |count| times |c|. */
void buf_add_fill(struct buf *buf, char c, size_t count);
void buf_printf(struct buf *buf, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
