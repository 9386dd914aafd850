/* SPDX-License-Identifier: MIT */
/*
 * Writes FlatBuffers front to back, for tests: a parent first, then its children. Each child is
 * linked to a field of a table or to an element of a vector that exists already. Positions are byte
 * offsets, so that a test can damage a chosen byte.
 */
#ifndef PTED_TESTS_FLATBUF_WRITER_H
#define PTED_TESTS_FLATBUF_WRITER_H

#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define WRITER_BYTES_MAX 16384

struct writer {
    uint8_t bytes[WRITER_BYTES_MAX];
    size_t len;
};

static inline void writer_pad(struct writer *writer, size_t align)
{
    size_t len = align_up(writer->len, align);
    must(len <= sizeof(writer->bytes));
    memset(writer->bytes + writer->len, 0, len - writer->len);
    writer->len = len;
}

static inline size_t writer_add(struct writer *writer, const void *bytes, size_t len)
{
    size_t at = writer->len;
    must(in_range(at, len, sizeof(writer->bytes)));
    if (len) {
        memcpy(writer->bytes + at, bytes, len);
    }
    writer->len += len;
    return at;
}

static inline void writer_put(struct writer *writer, size_t at, uint64_t value, size_t width)
{
    must(in_range(at, width, writer->len));
    for (size_t i = 0; i < width; i++) {
        writer->bytes[at + i] = (uint8_t)(value >> 8 * i);
    }
}

static inline size_t writer_add_int(struct writer *writer, uint64_t value, size_t width)
{
    static const uint8_t zeros[8];
    size_t at = writer_add(writer, zeros, width);
    writer_put(writer, at, value, width);
    return at;
}

/*
 * A table. Each digit of |widths| is the width of a field; 0 leaves the field out. The vtable is
 * written before the table, and all fields are zero.
 */
static inline size_t writer_table(struct writer *writer, const char *widths)
{
    static const uint8_t zeros[256];
    size_t count = strlen(widths), size = 4;
    writer_pad(writer, 4);
    size_t vtable = writer_add_int(writer, 4 + 2 * count, 2);
    size_t size_at = writer_add_int(writer, 0, 2);
    for (size_t i = 0; i < count; i++) {
        size_t width = (size_t)(widths[i] - '0');
        writer_add_int(writer, width ? size : 0, 2);
        size += width;
    }
    writer_put(writer, size_at, size, 2);
    writer_pad(writer, 4);
    size_t table = writer_add(writer, zeros, size);
    writer_put(writer, table, table - vtable, 4);
    return table;
}

/* The position of the field in the buffer. */
static inline size_t writer_field(const struct writer *writer, size_t table, size_t id)
{
    size_t vtable = table - load_le32(writer->bytes + table);
    size_t offset = load_le16(writer->bytes + vtable + 4 + 2 * id);
    must(offset != 0);
    return table + offset;
}

/* Makes the offset at |at| point to |target|, which must be a later position. */
static inline void writer_link(struct writer *writer, size_t at, size_t target)
{
    must(target > at);
    writer_put(writer, at, target - at, 4);
}

/* Links a vector of |count| zeros to the offset at |at|. Returns the position of the elements. */
static inline size_t writer_vector(struct writer *writer, size_t at, size_t count, size_t width)
{
    writer_pad(writer, 4);
    writer_link(writer, at, writer_add_int(writer, count, 4));
    for (size_t i = 0; i < count; i++) {
        writer_add_int(writer, 0, width);
    }
    return writer->len - count * width;
}

/* Links a vector of numbers. */
static inline size_t writer_numbers(struct writer *writer, size_t at, const int64_t *numbers,
                                    size_t count, size_t width)
{
    size_t elements = writer_vector(writer, at, count, width);
    for (size_t i = 0; i < count; i++) {
        writer_put(writer, elements + i * width, (uint64_t)numbers[i], width);
    }
    return elements;
}

static inline size_t writer_string(struct writer *writer, size_t at, const char *text)
{
    writer_pad(writer, 4);
    writer_link(writer, at, writer_add_int(writer, strlen(text), 4));
    return writer_add(writer, text, strlen(text) + 1);
}

/* Links a table to the offset at |at|. */
static inline size_t writer_child(struct writer *writer, size_t at, const char *widths)
{
    size_t table = writer_table(writer, widths);
    writer_link(writer, at, table);
    return table;
}

#endif
