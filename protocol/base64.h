/* SPDX-License-Identifier: MIT */
/* Base64 (RFC 4648, section 4), strict: padded, without line breaks, unused bits 0. Any thread. */
#ifndef PTED_PROTOCOL_BASE64_H
#define PTED_PROTOCOL_BASE64_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"

/* Returns how many characters encode |bytes| bytes. The caller guarantees that this cannot
 * overflow. */
static inline size_t base64_text_bytes(size_t bytes)
{
    return (bytes + 2) / 3 * 4;
}

/* Returns how many bytes |text| encodes if it is valid. */
size_t base64_bytes(struct span text);

/* Writes |bytes| bytes from the base64_text_bytes() characters of |text|. Errors begin with ": ".
 */
MUST_CHECK enum status base64_decode(struct span text, void *dst, size_t bytes, struct error *err);

/* Appends the characters that encode |bytes|. */
void base64_print(struct buf *out, struct span bytes);

#endif
