/* SPDX-License-Identifier: MIT */
/* Shared by the reader of JSON and the files that read on with it. */
#ifndef PTED_PROTOCOL_JSON_PRIV_H
#define PTED_PROTOCOL_JSON_PRIV_H

#include "protocol/json.h"

/* Names the next value, such as "an array", for "expected ..., got ...". */
#define JSON_NEXT_TEXT_MAX 24
const char *json_next_text(struct json *in, char text[JSON_NEXT_TEXT_MAX]);

/* Returns the first byte at |at| or behind it that is no white space (RFC 8259, section 2), or
 * |end|. */
const uint8_t *json_pass_space(const uint8_t *at, const uint8_t *end);

/* Is |key|, spelled without escapes, the first member of the object that begins at |at|? */
bool json_begins_with(const uint8_t *at, const uint8_t *end, const char *key);

/* Returns the number token at |at|, shortened, for error texts. */
struct span json_number_text(const uint8_t *at, const uint8_t *end);

#endif
