/* SPDX-License-Identifier: MIT */
/*
 * Protocol buffers' wire format (protobuf.dev/programming-guides/encoding), as SentencePiece models
 * and gRPC's messages have it: a bounded reader that goes from field to field and allocates
 * nothing, and a writer that appends to a buffer. Neither knows schemas: whoever reads a message
 * knows the numbers of its fields, and passes those that it does not know.
 *
 * Any thread: no state is shared.
 */
#ifndef PTED_PROTOCOL_PROTOBUF_H
#define PTED_PROTOCOL_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"

/* Nesting of groups, an old form of messages: they are passed whole, and deeper ones are damage. */
#define PROTOBUF_GROUPS_MAX 32

/* The greatest number of a field. */
#define PROTOBUF_NUMBER_MAX 0x1fffffffu

struct protobuf {
    const uint8_t *at, *end;
    bool is_wrong; /* the message is damaged; no field follows */
};

enum protobuf_type { PROTOBUF_VARINT = 0, PROTOBUF_I64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_I32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_type type;
    uint64_t value;    /* of the numbers */
    struct span bytes; /* of PROTOBUF_BYTES; borrows from the message */
};

/* ---- reading --------------------------------------------------------------------------------- */

void protobuf_init(struct protobuf *in, struct span message);

/* Finds the next field that is no group; false: the one before was the last, or |is_wrong|. */
bool protobuf_next(struct protobuf *in, struct protobuf_field *out);

/* Reads the next number of a packed field, whose bytes protobuf_init() got: of type VARINT, I64 or
 * I32. False: the one before was the last, or |is_wrong|. */
bool protobuf_next_packed(struct protobuf *in, enum protobuf_type type, uint64_t *out);

/*
 * Numbers of a repeated field, which come packed or one by one, whatever the schema says. Gives
 * |in| the bytes of the numbers of |field|, for protobuf_next_packed(). False: the field is no list
 * of numbers of type |type|. A number that came alone is put into |alone|, which is 10 bytes.
 */
bool protobuf_numbers(const struct protobuf_field *field, enum protobuf_type type,
                      uint8_t alone[10], struct protobuf *in);

/* Returns the number of an I32 field as a float, of an I64 field as a double. */
float protobuf_float(const struct protobuf_field *field);
double protobuf_double(const struct protobuf_field *field);

/* Returns the number of a field whose schema has it as sint32 or sint64. */
static inline int64_t protobuf_zigzag(uint64_t value)
{
    return (int64_t)(value >> 1) ^ -(int64_t)(value & 1);
}

/* ---- writing (protobuf_write.c) -------------------------------------------------------------- */

/* The most bytes of a number, and of what stands in front of bytes. */
#define PROTOBUF_VARINT_BYTES_MAX 10
#define PROTOBUF_HEAD_BYTES_MAX 15

/* Returns the bytes that a number takes. */
size_t protobuf_varint_bytes(uint64_t value);

/* Writes a number into memory with room for all of its bytes, at most PROTOBUF_VARINT_BYTES_MAX.
 * Returns how many they are. */
size_t protobuf_print_varint(uint8_t *out, uint64_t value);

void protobuf_put_varint(struct buf *out, uint64_t value);

/* Appends a field, also one with the value that a missing field stands for. */
void protobuf_put_number(struct buf *out, uint32_t number, uint64_t value);
void protobuf_put_double(struct buf *out, uint32_t number, double value);
void protobuf_put_float(struct buf *out, uint32_t number, float value);
void protobuf_put_bytes(struct buf *out, uint32_t number, struct span bytes);
void protobuf_put_text(struct buf *out, uint32_t number, const char *text);

/* Appends what stands in front of |len| bytes that the caller appends, or sends behind the buffer.
 */
void protobuf_put_head(struct buf *out, uint32_t number, size_t len);

/* Begins a field that is a message, or packed numbers, of unknown length; the fields or numbers in
 * it follow; protobuf_end() gets what protobuf_begin() has returned. */
size_t protobuf_begin(struct buf *out, uint32_t number);
void protobuf_end(struct buf *out, size_t begun);

#endif
