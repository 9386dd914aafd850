/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "protocol/grpc.h"

#include <string.h>
#include <strings.h>

#include "base/check.h"
#include "base/utf8.h"

static const char type_prefix[] = "application/grpc";

/* What stands behind the prefix, without parameters; false: the type has not the prefix. */
static bool take_suffix(struct span type, struct span *out)
{
    size_t len = sizeof(type_prefix) - 1;
    if (type.len < len || strncasecmp((const char *)type.ptr, type_prefix, len) != 0) {
        return false;
    }
    type = span_of(type.ptr + len, type.len - len);
    const uint8_t *stop = type.len ? memchr(type.ptr, ';', type.len) : NULL;
    *out = span_trim(span_of(type.ptr, stop ? (size_t)(stop - type.ptr) : type.len), " \t");
    return true;
}

bool grpc_is_type(struct span content_type)
{
    struct span suffix;
    return take_suffix(content_type, &suffix) &&
           (suffix.len == 0 || span_is_word(suffix, "+proto"));
}

bool grpc_is_foreign_type(struct span content_type, struct error *err)
{
    struct span suffix;
    if (grpc_is_type(content_type) || !take_suffix(content_type, &suffix)) {
        return false;
    }
    const char *what = suffix.ptr[0] == '-' ? "grpc-web needs a proxy that translates it"
                                            : "messages are protocol buffers";
    error_set(err, ST_UNSUPPORTED, "Content-Type: expected application/grpc, got '%.*s': %s",
              SPAN_SHORT(content_type), what);
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

bool grpc_is_partial(struct span rest)
{
    return rest.len < GRPC_PREFIX_BYTES || load_be32(rest.ptr + 1) > rest.len - GRPC_PREFIX_BYTES;
}

enum status grpc_refuse_prefix(uint8_t begin, struct error *err)
{
    return error_set(err, ST_INVALID, "the prefix of a message begins with %u, expected 0 or 1",
                     begin);
}

enum status grpc_take_next(struct span *rest, struct grpc_frame *out, struct error *err)
{
    if (rest->len < GRPC_PREFIX_BYTES) {
        return error_set(err, ST_INVALID, "expected a message with its prefix of %d bytes, got %zu",
                         GRPC_PREFIX_BYTES, rest->len);
    }
    size_t len = load_be32(rest->ptr + 1), left = rest->len - GRPC_PREFIX_BYTES;
    if (rest->ptr[0] > 1) {
        return grpc_refuse_prefix(rest->ptr[0], err);
    }
    if (len > left) {
        return error_set(err, ST_INVALID,
                         "expected a message of %zu bytes as its prefix says, got %zu", len, left);
    }
    *out = (struct grpc_frame){.message = span_of(rest->ptr + GRPC_PREFIX_BYTES, len),
                               .is_compressed = rest->ptr[0] == 1};
    *rest = span_of(out->message.ptr + len, left - len);
    return ST_OK;
}

enum status grpc_take_only(struct span body, struct grpc_frame *out, struct error *err)
{
    TRY(grpc_take_next(&body, out, err));
    return body.len == 0 ? ST_OK
                         : error_set(err, ST_INVALID,
                                     "expected one message, got %zu bytes behind it", body.len);
}

enum status grpc_print_prefix(uint8_t out[GRPC_PREFIX_BYTES], bool is_compressed, size_t bytes,
                              struct error *err)
{
    if (bytes > UINT32_MAX) {
        return error_set(err, ST_TOO_LARGE, "the answer has %zu bytes, a message at most %u", bytes,
                         UINT32_MAX);
    }
    out[0] = is_compressed;
    for (int i = 0; i < 4; i++) {
        out[1 + i] = (uint8_t)(bytes >> (24 - 8 * i));
    }
    return ST_OK;
}

/* ---- fields and trailers --------------------------------------------------------------------- */

/* In nanoseconds; 0: no unit. */
static uint64_t unit_ns(uint8_t unit)
{
    switch (unit) {
    case 'H':
        return 3600000000000u;
    case 'M':
        return 60000000000u;
    case 'S':
        return 1000000000u;
    case 'm':
        return 1000000u;
    case 'u':
        return 1000u;
    case 'n':
        return 1u;
    }
    return 0;
}

bool grpc_read_timeout(struct span text, uint64_t *out_us)
{
    uint64_t value = 0, ns = text.len > 1 ? unit_ns(text.ptr[text.len - 1]) : 0;
    if (ns == 0 || text.len > 9) {
        return false;
    }
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9') {
            return false;
        }
        value = value * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    /* eight digits of hours in ns do not fit */
    uint64_t us = ns >= 1000 ? value * (ns / 1000) : value / 1000;
    *out_us = us ? us : 1;
    return true;
}

unsigned grpc_status_of(int http_status)
{
    switch (http_status) {
#define GRPC_STATUS(http, name, number)                                                            \
    case http:                                                                                     \
        return number;
#include "protocol/grpc.def"
#undef GRPC_STATUS
    }
    return 2; /* UNKNOWN */
}

static bool is_plain(uint8_t c)
{
    return c >= ' ' && c <= '~' && c != '%';
}

size_t grpc_print_text(const char *text, char *out, size_t max)
{
    static const char digits[] = "0123456789ABCDEF";
    const uint8_t *at = (const uint8_t *)text, *end = at + strlen(text);
    size_t len = 0;
    while (at < end) {
        size_t sequence = utf8_sequence(at, end);
        sequence = sequence ? sequence : 1;
        if (len + (is_plain(*at) ? 1 : 3 * sequence) > max) {
            break;
        }
        for (; sequence > 0; sequence--, at++) {
            if (is_plain(*at)) {
                out[len++] = (char)*at;
            } else {
                out[len++] = '%';
                out[len++] = digits[*at >> 4];
                out[len++] = digits[*at & 15];
            }
        }
    }
    return len;
}
