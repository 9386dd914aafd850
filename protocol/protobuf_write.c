/* SPDX-License-Identifier: MIT */
/* The writer. Numbers take as few bytes as they can, so messages are those that other writers make.
 * The length of a message is known behind it: its bytes move by the bytes of a long length. */
#include "config.h"

#include "protocol/protobuf.h"

#include "base/check.h"

size_t protobuf_varint_bytes(uint64_t value)
{
    size_t bytes = 1;
    for (; value >= 0x80; value >>= 7) {
        bytes++;
    }
    return bytes;
}

size_t protobuf_print_varint(uint8_t *out, uint64_t value)
{
    size_t len = 0;
    for (; value >= 0x80; value >>= 7) {
        out[len++] = (uint8_t)(value | 0x80);
    }
    out[len++] = (uint8_t)value;
    return len;
}

void protobuf_put_varint(struct buf *out, uint64_t value)
{
    uint8_t bytes[PROTOBUF_VARINT_BYTES_MAX];
    buf_add(out, bytes, protobuf_print_varint(bytes, value));
}

static size_t print_key(uint8_t *out, uint32_t number, enum protobuf_type type)
{
    must(number >= 1 && number <= PROTOBUF_NUMBER_MAX);
    return protobuf_print_varint(out, (uint64_t)number << 3 | (uint64_t)type);
}

/* A key, and the number behind it. */
static void put_pair(struct buf *out, uint32_t number, enum protobuf_type type, uint64_t value)
{
    uint8_t bytes[2 * PROTOBUF_VARINT_BYTES_MAX];
    size_t len = print_key(bytes, number, type);
    buf_add(out, bytes, len + protobuf_print_varint(bytes + len, value));
}

static void put_fixed(struct buf *out, uint32_t number, enum protobuf_type type, uint64_t bits,
                      size_t bits_len)
{
    uint8_t bytes[PROTOBUF_VARINT_BYTES_MAX + sizeof(bits)];
    size_t len = print_key(bytes, number, type);
    for (size_t i = 0; i < bits_len; i++) {
        bytes[len + i] = (uint8_t)(bits >> 8 * i);
    }
    buf_add(out, bytes, len + bits_len);
}

void protobuf_put_number(struct buf *out, uint32_t number, uint64_t value)
{
    put_pair(out, number, PROTOBUF_VARINT, value);
}

void protobuf_put_double(struct buf *out, uint32_t number, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_fixed(out, number, PROTOBUF_I64, bits, sizeof(bits));
}

void protobuf_put_float(struct buf *out, uint32_t number, float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    put_fixed(out, number, PROTOBUF_I32, bits, sizeof(bits));
}

void protobuf_put_head(struct buf *out, uint32_t number, size_t len)
{
    put_pair(out, number, PROTOBUF_BYTES, len);
}

void protobuf_put_bytes(struct buf *out, uint32_t number, struct span bytes)
{
    protobuf_put_head(out, number, bytes.len);
    if (bytes.len > 0) {
        buf_add(out, bytes.ptr, bytes.len);
    }
}

void protobuf_put_text(struct buf *out, uint32_t number, const char *text)
{
    protobuf_put_bytes(out, number, span_str(text));
}

size_t protobuf_begin(struct buf *out, uint32_t number)
{
    put_pair(out, number, PROTOBUF_BYTES, 0);
    return out->len;
}

void protobuf_end(struct buf *out, size_t begun)
{
    uint8_t length[PROTOBUF_VARINT_BYTES_MAX];
    if (buf_failed(out)) {
        return;
    }
    must(begun > 0 && begun <= out->len);
    size_t len = out->len - begun, more = protobuf_print_varint(length, len) - 1;
    if (more > 0) {
        if (!buf_reserve(out, more)) {
            return;
        }
        memmove(out->ptr + begun + more, out->ptr + begun, len);
        buf_commit(out, more);
    }
    memcpy(out->ptr + begun - 1, length, more + 1);
}
