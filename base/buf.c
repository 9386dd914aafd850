/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/buf.h"

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

void buf_reset(struct buf *buf)
{
    buf->len = 0;
    buf->failed = false;
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
        while (capacity < need) {
            capacity = capacity > buf->max_bytes / 2 ? buf->max_bytes : capacity * 2;
        }
        uint8_t *ptr = realloc(buf->ptr, capacity);
        if (!ptr) {
            buf->failed = true;
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
    uint8_t *room = len ? buf_reserve(buf, len) : NULL;
    if (room) {
        memcpy(room, bytes, len);
        buf->len += len;
    }
}

void buf_add_str(struct buf *buf, const char *text)
{
    buf_add(buf, text, strlen(text));
}

void buf_add_char(struct buf *buf, char c)
{
    buf_add(buf, &c, 1);
}

void buf_vprintf(struct buf *buf, const char *fmt, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = vsnprintf(NULL, 0, fmt, args);
    uint8_t *room = len < 0 ? NULL : buf_reserve(buf, (size_t)len + 1);
    if (room) {
        vsnprintf((char *)room, (size_t)len + 1, fmt, again);
        buf->len += (size_t)len;
    }
    va_end(again);
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    buf_vprintf(buf, fmt, args);
    va_end(args);
}
