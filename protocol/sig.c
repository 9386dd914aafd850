/* SPDX-License-Identifier: MIT */
/*
 * Components of signatures. There is one spelling for writing. Reading looks at each byte once for
 * each level of nesting; an error leaves the reader where it was.
 */
#include "config.h"

#include "protocol/sig.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/check.h"
#include "protocol/number.h"

void sig_init(struct sig_reader *in, struct span text)
{
    /* The pointer of an empty text may be NULL, and arithmetic on NULL is undefined. */
    const uint8_t *end = text.len ? text.ptr + text.len : text.ptr;
    *in = (struct sig_reader){text.ptr, text.ptr, end};
}

enum status sig_fail(const struct sig_reader *in, const uint8_t *where, struct error *err,
                     const char *fmt, ...)
{
    char what[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof(what), fmt, args);
    va_end(args);
    return error_set(err, ST_INVALID, "byte %zu: %s", (size_t)(where - in->start), what);
}

/* "'x'", "byte 0x01" or "the end", for "expected ..., got ...". */
#define BYTE_TEXT_MAX 16
static const char *byte_text(const uint8_t *at, const uint8_t *end, char text[BYTE_TEXT_MAX])
{
    if (at == end) {
        snprintf(text, BYTE_TEXT_MAX, "the end");
    } else if (*at > 0x20 && *at < 0x7f) {
        snprintf(text, BYTE_TEXT_MAX, "'%c'", *at);
    } else {
        snprintf(text, BYTE_TEXT_MAX, "byte 0x%02x", *at);
    }
    return text;
}

static bool is_digit(const uint8_t *at, const uint8_t *end)
{
    return at < end && *at >= '0' && *at <= '9';
}

/* Reads the digits at |*at|. False: the value is above |max|. */
static bool pass_digits(const uint8_t **at, const uint8_t *end, uint64_t max, uint64_t *out)
{
    uint64_t value = 0;
    bool fits = true;
    for (; is_digit(*at, end); (*at)++) {
        fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
               !__builtin_add_overflow(value, (uint64_t)(**at - '0'), &value);
    }
    *out = value;
    return fits && value <= max;
}

static enum status read_integer(struct sig_reader *in, struct sig_item *out, struct error *err)
{
    const uint8_t *p = in->at + 1;
    char text[BYTE_TEXT_MAX];
    bool is_negative = p < in->end && *p == '-';
    uint64_t magnitude;
    p += is_negative;
    if (!is_digit(p, in->end)) {
        return sig_fail(in, p, err, "expected digits for '%c', got %s", *in->at,
                        byte_text(p, in->end, text));
    }
    if (!pass_digits(&p, in->end, (uint64_t)INT64_MAX + is_negative, &magnitude)) {
        return sig_fail(in, in->at, err, "the integer of '%c' does not fit 64 bits", *in->at);
    }
    *out = (struct sig_item){
        .text = span_of(in->at, (size_t)(p - in->at)),
        .tag = (char)*in->at,
        .value = (int64_t)(is_negative ? -magnitude : magnitude),
    };
    in->at = p;
    return ST_OK;
}

static enum status read_span(struct sig_reader *in, struct sig_item *out, struct error *err)
{
    const uint8_t *p = in->at + 1;
    char text[BYTE_TEXT_MAX];
    uint64_t length;
    if (!is_digit(p, in->end)) {
        return sig_fail(in, p, err, "expected the length of '%c', got %s", *in->at,
                        byte_text(p, in->end, text));
    }
    bool fits = pass_digits(&p, in->end, SIZE_MAX, &length);
    size_t left = (size_t)(in->end - p);
    if (fits && length == 0) {
        return sig_fail(in, in->at, err, "length 0 for '%c': a length counts the '!'", *in->at);
    }
    if (!fits || length > left) {
        return sig_fail(in, in->at, err, "'%c' is longer than the %zu bytes that are left", *in->at,
                        left);
    }
    if (*p != '!') {
        return sig_fail(in, p, err, "expected '!' behind the length of '%c', got %s", *in->at,
                        byte_text(p, in->end, text));
    }
    const uint8_t *end = p + length;
    *out = (struct sig_item){
        .text = span_of(in->at, (size_t)(end - in->at)),
        .tag = (char)*in->at,
        .content = span_of(p + 1, (size_t)(length - 1)),
    };
    in->at = end;
    return ST_OK;
}

enum status sig_next(struct sig_reader *in, struct sig_item *out, struct error *err)
{
    char text[BYTE_TEXT_MAX];
    uint8_t tag = in->at < in->end ? *in->at : 0;
    if (tag >= 'A' && tag <= 'Z') {
        return read_span(in, out, err);
    }
    if (tag == '_' || (tag >= 'a' && tag <= 'z')) {
        return read_integer(in, out, err);
    }
    return sig_fail(in, in->at, err, "expected a tag (_, a-z, A-Z), got %s",
                    byte_text(in->at, in->end, text));
}

enum status sig_expect_span(struct sig_reader *in, char tag, struct sig_item *out,
                            struct error *err)
{
    char text[BYTE_TEXT_MAX];
    if (sig_is_at_end(in) || *in->at != (uint8_t)tag) {
        return sig_fail(in, in->at, err, "expected '%c', got %s", tag,
                        byte_text(in->at, in->end, text));
    }
    return sig_next(in, out, err);
}

enum status sig_end(const struct sig_reader *in, struct error *err)
{
    char text[BYTE_TEXT_MAX];
    return sig_is_at_end(in) ? ST_OK
                             : sig_fail(in, in->at, err, "expected the end, got %s",
                                        byte_text(in->at, in->end, text));
}

struct sig_reader sig_inside(const struct sig_reader *in, const struct sig_item *span)
{
    const uint8_t *at = span->content.ptr;
    must(at >= in->start && at + span->content.len <= in->end);
    return (struct sig_reader){in->start, at, at + span->content.len};
}

enum status sig_split(struct span text, struct sig_reader *out_inputs,
                      struct sig_reader *out_results, struct error *err)
{
    struct sig_reader in;
    struct sig_item inputs, results;
    if (text.len > SIG_BYTES_MAX) {
        return error_set(err, ST_TOO_LARGE, "a signature of %zu bytes, at most %zu are read",
                         text.len, SIG_BYTES_MAX);
    }
    sig_init(&in, text);
    TRY(sig_expect_span(&in, 'I', &inputs, err));
    TRY(sig_expect_span(&in, 'R', &results, err));
    TRY(sig_end(&in, err));
    *out_inputs = sig_inside(&in, &inputs);
    *out_results = sig_inside(&in, &results);
    return ST_OK;
}

void sig_add_integer(struct buf *out, char tag, int64_t value)
{
    uint8_t text[1 + NUMBER_TEXT_MAX];
    text[0] = (uint8_t)tag;
    buf_add(out, text, 1 + number_print_i64(text + 1, value));
}

void sig_add_head(struct buf *out, char tag, size_t content_bytes)
{
    uint8_t text[2 + NUMBER_TEXT_MAX];
    text[0] = (uint8_t)tag;
    size_t digits = number_print_u64(text + 1, (uint64_t)content_bytes + 1);
    text[1 + digits] = '!';
    buf_add(out, text, digits + 2);
}

void sig_add_span(struct buf *out, char tag, struct span content)
{
    sig_add_head(out, tag, content.len);
    buf_add(out, content.ptr, content.len);
}

static size_t digit_count(uint64_t value)
{
    size_t digits = 1;
    for (; value >= 10; value /= 10) {
        digits++;
    }
    return digits;
}

size_t sig_integer_bytes(int64_t value)
{
    return value < 0 ? 2 + digit_count(-(uint64_t)value) : 1 + digit_count((uint64_t)value);
}

size_t sig_span_bytes(size_t content_bytes)
{
    return 1 + digit_count((uint64_t)content_bytes + 1) + 1 + content_bytes;
}
