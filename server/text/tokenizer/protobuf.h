/* SPDX-License-Identifier: MIT */
/* A bounded reader of protocol buffers' wire format: field by field, nothing is allocated. */
#ifndef PTED_SERVER_TEXT_TOKENIZER_PROTOBUF_H
#define PTED_SERVER_TEXT_TOKENIZER_PROTOBUF_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"

struct protobuf {
    const uint8_t *at, *end;
    bool is_wrong; /* the message is damaged; no field follows */
};

enum protobuf_type { PROTOBUF_VARINT = 0, PROTOBUF_I64 = 1, PROTOBUF_BYTES = 2, PROTOBUF_I32 = 5 };

struct protobuf_field {
    uint32_t number;
    enum protobuf_type type;
    uint64_t value;    /* of the numbers */
    struct span bytes; /* of PROTOBUF_BYTES */
};

void protobuf_init(struct protobuf *in, struct span message);

/* Finds the next field; false: this was the last one, or |is_wrong|. */
bool protobuf_next(struct protobuf *in, struct protobuf_field *out);

/* Returns the number of an I32 field as a float. */
float protobuf_float(const struct protobuf_field *field);

#endif
