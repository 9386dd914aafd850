/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/import/payload.h"

#include <inttypes.h>
#include <string.h>

/* Offsets of the header's fields, unaligned. */
enum {
    AT_MAGIC = 4,
    AT_HEADER_BYTES = 8,
    AT_FLATBUFFER = 10,
    AT_FLATBUFFER_BYTES = 14,
    AT_CONSTANTS = 18,
    AT_CONSTANTS_BYTES = 22,
    HEADER_BYTES = 30,
};
#define MAGIC_BYTES 4
#define AT_IDENTIFIER 4
#define FLATBUFFER_BYTES_MIN 8

static enum status parse_header(struct span bytes, struct rt_payload *payload, struct error *err)
{
    uint64_t at = load_le32(bytes.ptr + AT_FLATBUFFER);
    uint64_t size = load_le32(bytes.ptr + AT_FLATBUFFER_BYTES);
    uint64_t constants = load_le32(bytes.ptr + AT_CONSTANTS);
    uint64_t constants_size = load_le64(bytes.ptr + AT_CONSTANTS_BYTES);
    uint16_t header = load_le16(bytes.ptr + AT_HEADER_BYTES);
    if (header < HEADER_BYTES || at < header || !in_range(at, size, bytes.len)) {
        return error_set(err, ST_CORRUPT,
                         "header of %u bytes: a flatbuffer of %" PRIu64 " bytes at byte %" PRIu64
                         " does not fit into %zu bytes",
                         header, size, at, bytes.len);
    }
    payload->flatbuffer = span_of(bytes.ptr + at, (size_t)size);
    bool is_behind = constants >= at + size && constants <= bytes.len;
    if (constants_size == 0 && is_behind) {
        constants_size =
            bytes.len - constants; /* some exporters write a size of 0 although constants follow */
    }
    if (constants_size > 0 && (!is_behind || constants_size > bytes.len - constants)) {
        return error_set(err, ST_CORRUPT,
                         "header: %" PRIu64 " bytes of constants at byte %" PRIu64
                         " do not fit into %zu bytes",
                         constants_size, constants, bytes.len);
    }
    if (constants_size > 0) {
        payload->behind = span_of(bytes.ptr + constants, (size_t)constants_size);
    }
    return ST_OK;
}

enum status rt_payload_parse(struct span bytes, const char *magic, struct rt_payload *out_payload,
                             struct error *err)
{
    struct rt_payload payload = {.flatbuffer = bytes, .behind = span_of(NULL, 0)};
    payload.has_header =
        bytes.len >= HEADER_BYTES && memcmp(bytes.ptr + AT_MAGIC, magic, MAGIC_BYTES) == 0;
    if (payload.has_header) {
        TRY(parse_header(bytes, &payload, err));
    }
    if (payload.flatbuffer.len < FLATBUFFER_BYTES_MIN) {
        return error_set(err, ST_CORRUPT, "a flatbuffer of %zu bytes, expected at least %d",
                         payload.flatbuffer.len, FLATBUFFER_BYTES_MIN);
    }
    *out_payload = payload;
    return ST_OK;
}

bool rt_payload_is(const struct rt_payload *payload, const char *identifier)
{
    return memcmp(payload->flatbuffer.ptr + AT_IDENTIFIER, identifier, MAGIC_BYTES) == 0;
}
