/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/text/tokenizer/protobuf.h"

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

static bool read_varint(struct protobuf *in, uint64_t *out)
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

static bool read_fixed(struct protobuf *in, size_t len, uint64_t *out)
{
    if ((size_t)(in->end - in->at) < len) {
        return fail(in);
    }
    *out = len == 4 ? load_le32(in->at) : load_le64(in->at);
    in->at += len;
    return true;
}

bool protobuf_next(struct protobuf *in, struct protobuf_field *out)
{
    uint64_t key;
    if (in->at == in->end || !read_varint(in, &key)) {
        return false;
    }
    if (key >> 3 == 0 || key >> 3 > UINT32_MAX) {
        return fail(in);
    }
    *out = (struct protobuf_field){.number = (uint32_t)(key >> 3),
                                   .type = (enum protobuf_type)(key & 7)};
    switch (out->type) {
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

float protobuf_float(const struct protobuf_field *field)
{
    uint32_t bits = (uint32_t)field->value;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}
