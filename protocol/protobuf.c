/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/protobuf.h"

/* Types of the wire that frame a group. */
#define GROUP_BEGIN 3
#define GROUP_END 4

void protobuf_init(struct protobuf *in, struct span message)
{
    *in = (struct protobuf){message.ptr, message.ptr + message.len, false};
}

static bool fail(struct protobuf *in)
{
    in->is_wrong = true;
    in->at = in->end;
    return false;
}

/* The tenth byte has room for one bit; as other readers do, more of them are dropped. */
__attribute__((noinline)) static bool read_long_varint(struct protobuf *in, uint64_t *out)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
        uint8_t byte = *in->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (!(byte & 0x80)) {
            *out = value;
            return true;
        }
    }
    return fail(in);
}

/* Keys and most lengths have one byte. */
static inline bool read_varint(struct protobuf *in, uint64_t *out)
{
    if (in->at < in->end && *in->at < 0x80) {
        *out = *in->at++;
        return true;
    }
    return read_long_varint(in, out);
}

static bool read_fixed(struct protobuf *in, size_t len, uint64_t *out)
{
    if ((size_t)(in->end - in->at) < len) {
        return fail(in);
    }
    *out = len == 4 ? load_le32(in->at) : load_le64(in->at);
    in->at += len;
    return true;
}

static bool read_key(struct protobuf *in, uint32_t *out_number, unsigned *out_type)
{
    uint64_t key;
    if (!read_varint(in, &key) || key >> 3 == 0 || key >> 3 > PROTOBUF_NUMBER_MAX) {
        return fail(in);
    }
    *out_number = (uint32_t)(key >> 3);
    *out_type = (unsigned)(key & 7);
    return true;
}

static bool read_value(struct protobuf *in, unsigned type, struct protobuf_field *out)
{
    switch (type) {
    case PROTOBUF_VARINT:
        return read_varint(in, &out->value);
    case PROTOBUF_I64:
        return read_fixed(in, 8, &out->value);
    case PROTOBUF_I32:
        return read_fixed(in, 4, &out->value);
    case PROTOBUF_BYTES:
        if (!read_varint(in, &out->value) || out->value > (size_t)(in->end - in->at)) {
            return fail(in);
        }
        out->bytes = span_of(in->at, (size_t)out->value);
        in->at += out->value;
        return true;
    }
    return fail(in);
}

/* Passes the group that has begun with |number|, with all groups in it. */
static bool pass_group(struct protobuf *in, uint32_t number)
{
    uint32_t open[PROTOBUF_GROUPS_MAX] = {number};
    unsigned depth = 1;
    while (depth > 0) {
        struct protobuf_field passed;
        unsigned type;
        if (!read_key(in, &number, &type)) {
            return false;
        }
        if (type == GROUP_BEGIN && depth < PROTOBUF_GROUPS_MAX) {
            open[depth++] = number;
        } else if (type == GROUP_END && open[depth - 1] == number) {
            depth--;
        } else if (!read_value(in, type, &passed)) {
            return false;
        }
    }
    return true;
}

bool protobuf_next(struct protobuf *in, struct protobuf_field *out)
{
    uint32_t number;
    unsigned type;
    while (in->at != in->end) {
        if (!read_key(in, &number, &type)) {
            return false;
        }
        if (type != GROUP_BEGIN) {
            *out = (struct protobuf_field){.number = number, .type = (enum protobuf_type)type};
            return read_value(in, type, out);
        }
        if (!pass_group(in, number)) {
            return false;
        }
    }
    return false;
}

bool protobuf_next_packed(struct protobuf *in, enum protobuf_type type, uint64_t *out)
{
    if (in->at == in->end) {
        return false;
    }
    return type == PROTOBUF_VARINT ? read_varint(in, out)
                                   : read_fixed(in, type == PROTOBUF_I32 ? 4 : 8, out);
}

bool protobuf_numbers(const struct protobuf_field *field, enum protobuf_type type,
                      uint8_t alone[10], struct protobuf *in)
{
    uint64_t value = field->value;
    size_t len = 0;
    if (field->type == PROTOBUF_BYTES) {
        protobuf_init(in, field->bytes);
        return true;
    }
    if (field->type != type) {
        return false;
    }
    if (type == PROTOBUF_VARINT) {
        for (; value >= 0x80; value >>= 7) {
            alone[len++] = (uint8_t)(value | 0x80);
        }
        alone[len++] = (uint8_t)value;
    } else {
        for (; len < (type == PROTOBUF_I32 ? 4 : 8); value >>= 8) {
            alone[len++] = (uint8_t)value;
        }
    }
    protobuf_init(in, span_of(alone, len));
    return true;
}

float protobuf_float(const struct protobuf_field *field)
{
    uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

double protobuf_double(const struct protobuf_field *field)
{
    double value;
    memcpy(&value, &field->value, sizeof(value));
    return value;
}
