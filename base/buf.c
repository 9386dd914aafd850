/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"

void buf_init(struct buf *buf, size_t max_bytes)
{
    *buf = (struct buf){.max_bytes = max_bytes};
}

void buf_fini(struct buf *buf)
{
    if (buf) {
        free(buf->ptr);
        buf_init(buf, buf->max_bytes);
    }
}

enum status buf_check(const struct buf *buf, const char *what, struct error *err)
{
    if (!buf->failed) {
        return ST_OK;
    }
    return buf->lacks_memory ? error_no_memory(err, "%s", what)
                             : error_set(err, ST_TOO_LARGE, "%s is too long", what);
}

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->failed = buf->lacks_memory = false;
}

uint8_t *buf_reserve(struct buf *buf, size_t len)
{
    if (buf->failed || !in_range(buf->len, len, buf->max_bytes)) {
        buf->failed = true;
        return NULL;
    }
    size_t need = buf->len + len;
    if (need > buf->capacity) {
        size_t capacity = buf->capacity < 64 ? 64 : buf->capacity;
        capacity = capacity < buf->max_bytes ? capacity : buf->max_bytes;
        while (capacity < need) {
            capacity = capacity > buf->max_bytes / 2 ? buf->max_bytes : capacity * 2;
        }
        uint8_t *ptr = realloc(buf->ptr, capacity);
        if (!ptr) {
            buf->failed = buf->lacks_memory = true;
            return NULL;
        }
        buf->ptr = ptr;
        buf->capacity = capacity;
    }
    return buf->ptr + buf->len;
}

void buf_commit(struct buf *buf, size_t len)
{
    must(len <= buf->capacity - buf->len);
    buf->len += len;
}

void buf_add(struct buf *buf, const void *bytes, size_t len)
{
    bool fits = !buf->failed && len <= buf->capacity - buf->len; /* nearly always */
    uint8_t *room = len == 0 ? NULL : fits ? buf->ptr + buf->len : buf_reserve(buf, len);
    if (room) {
        memcpy(room, bytes, len);
        buf->len += len;
    }
}

void buf_add_fill(struct buf *buf, char c, size_t count)
{
    uint8_t *room = count ? buf_reserve(buf, count) : NULL;
    if (room) {
        memset(room, c, count);
        buf->len += count;
    }
}

void buf_add_str(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    size_t room = buf->failed ? 0 : buf->capacity - buf->len;
    int printed = vsnprintf(room ? (char *)buf->ptr + buf->len : NULL, room, fmt, args);
    size_t len = printed < 0 ? 0 : (size_t)printed;
    if (len < room) {
        buf->len += len; /* the usual case: it was printed where it belongs */
    } else {
        uint8_t *more = buf_reserve(buf, len + 1);
        if (more) {
            vsnprintf((char *)more, len + 1, fmt, again);
            buf->len += len;
        }
    }
    va_end(again);
    va_end(args);
}
