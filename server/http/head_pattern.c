/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/head_pattern.h"

#include <stdlib.h>

#include "base/check.h"

#define BYTES_MAX 2048
#define GAPS_MAX 4

/* Digits of a Content-Length in a gap: no number of so many is too large for 64 bits. */
#define DIGITS_MAX 18

/* A value, behind |at| bytes of the pattern's text. */
struct gap {
    size_t at;
    enum http_field field;
    struct head_range old; /* in the text of the head that the pattern was made of */
    struct span value;     /* of the head that was matched last; borrowed */
};

struct head_pattern {
    struct head head; /* its text is |values|: those that do not vary */
    uint64_t length;  /* Content-Length of the head that was matched last */
    size_t matched_bytes, text_bytes;
    unsigned gap_count;
    struct gap gaps[GAPS_MAX];
    uint8_t *text, *values; /* behind the struct */
};

void head_pattern_free(struct head_pattern *pattern)
{
    free(pattern);
}

/* A byte that means nothing but itself in each of these values. */
static bool is_visible(uint8_t byte)
{
    return byte > ' ' && byte < 0x7f;
}

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* The value at |at|: digits of a length, or else all that can be seen. */
static struct span value_at(enum http_field field, const uint8_t *at, const uint8_t *end)
{
    bool is_length = field == HTTP_CONTENT_LENGTH;
    const uint8_t *first = at;
    while (at < end && (is_length ? is_digit(*at) : is_visible(*at))) {
        at++;
    }
    return span_of(first, (size_t)(at - first));
}

static bool fits(enum http_field field, struct span value)
{
    return value.len > 0 && (field != HTTP_CONTENT_LENGTH || value.len <= DIGITS_MAX);
}

/* ---- making ---------------------------------------------------------------------------------- */

static bool varies(const struct head *head, enum http_field field)
{
    bool is_one = field == HTTP_CONTENT_LENGTH || field == HTTP_X_REQUEST_ID ||
                  field == HTTP_TRACEPARENT || field == HTTP_INFERENCE_HEADER_CONTENT_LENGTH;
    return is_one && head->counts[field] == 1;
}

static void add_text(struct head_pattern *pattern, const uint8_t *from, const uint8_t *to)
{
    memcpy(pattern->text + pattern->text_bytes, from, (size_t)(to - from));
    pattern->text_bytes += (size_t)(to - from);
}

/* The value of the field line [line, end), if it is one that varies and has no spaces inside. */
static bool find_value(const struct head *head, struct span line, enum http_field *out_field,
                       struct span *out_value)
{
    const uint8_t *colon = memchr(line.ptr, ':', line.len), *end = line.ptr + line.len;
    *out_field = colon ? http_field_find((const char *)line.ptr, (size_t)(colon - line.ptr))
                       : HTTP_FIELD_COUNT;
    if (*out_field == HTTP_FIELD_COUNT || !varies(head, *out_field)) {
        return false;
    }
    const uint8_t *at = colon + 1;
    while (at < end && *at == ' ') {
        at++;
    }
    *out_value = value_at(*out_field, at, end);
    at += out_value->len;
    return fits(*out_field, *out_value) && at < end && *at == '\r';
}

/* Copies the head line by line, without the values that vary. */
static void cut_text(struct head_pattern *pattern, struct span bytes)
{
    const uint8_t *at = bytes.ptr, *end = at + bytes.len, *from = at;
    while (at < end) {
        const uint8_t *feed = memchr(at, '\n', (size_t)(end - at));
        const uint8_t *next = feed ? feed + 1 : end;
        struct span value;
        enum http_field field;
        if (pattern->gap_count < GAPS_MAX && at > bytes.ptr && /* not the request line */
            find_value(&pattern->head, span_of(at, (size_t)(next - at)), &field, &value)) {
            add_text(pattern, from, value.ptr);
            from = value.ptr + value.len;
            pattern->gaps[pattern->gap_count++] = (struct gap){
                .at = pattern->text_bytes, .field = field, .old = pattern->head.values[field]};
        }
        at = next;
    }
    add_text(pattern, from, end);
}

/* Copies the values but those in gaps, which are in the order of the text. */
static void copy_values(struct head_pattern *pattern, struct span text)
{
    size_t from = 0, count = 0;
    for (unsigned i = 0; i <= pattern->gap_count; i++) {
        const struct gap *gap = i < pattern->gap_count ? &pattern->gaps[i] : NULL;
        size_t to = gap ? gap->old.off : text.len;
        must(from <= to && to <= text.len);
        if (to > from) {
            memcpy(pattern->values + count, text.ptr + from, to - from);
        }
        count += to - from;
        from = gap ? gap->old.off + gap->old.len : to;
    }
    pattern->head.text.ptr = pattern->values;
    pattern->head.text.len = count;
}

/* The place of a value in what copy_values() makes. */
static void move_range(const struct head_pattern *pattern, struct head_range *range)
{
    uint32_t off = range->off;
    for (unsigned i = 0; range->len && i < pattern->gap_count; i++) {
        const struct head_range *old = &pattern->gaps[i].old;
        range->off -= old->off < off ? old->len : 0;
    }
}

static void move_ranges(struct head_pattern *pattern)
{
    struct head *head = &pattern->head;
    move_range(pattern, &head->target);
    for (size_t i = 0; i < HTTP_FIELD_COUNT; i++) {
        move_range(pattern, &head->values[i]);
    }
    for (size_t i = 0; i < HEAD_LIST_COUNT; i++) {
        for (size_t k = 0; k < HEAD_LINES_MAX - 1; k++) {
            move_range(pattern, &head->lines[i][k]);
        }
    }
}

static bool has_gap(const struct head_pattern *pattern, enum http_field field)
{
    bool has = false;
    for (unsigned i = 0; i < pattern->gap_count; i++) {
        has |= pattern->gaps[i].field == field;
    }
    return has;
}

struct head_pattern *head_pattern_new(struct span bytes, const struct head *head)
{
    struct span values = buf_span(&head->text);
    struct head_pattern *pattern = bytes.len + values.len <= BYTES_MAX
                                       ? malloc(sizeof(*pattern) + bytes.len + values.len)
                                       : NULL;
    if (!pattern) {
        return NULL;
    }
    *pattern = (struct head_pattern){
        .head = *head,
        .text = (uint8_t *)(pattern + 1),
        .values = (uint8_t *)(pattern + 1) + bytes.len,
    };
    cut_text(pattern, bytes);
    if (head_has(head, HTTP_CONTENT_LENGTH) && !has_gap(pattern, HTTP_CONTENT_LENGTH)) {
        free(pattern); /* a length in an unusual form is read by the parser alone */
        return NULL;
    }
    copy_values(pattern, values);
    move_ranges(pattern);
    return pattern;
}

/* ---- matching -------------------------------------------------------------------------------- */

static bool fill_gap(struct head_pattern *pattern, struct gap *gap, const uint8_t *at,
                     const uint8_t *end)
{
    gap->value = value_at(gap->field, at, end);
    if (gap->field == HTTP_CONTENT_LENGTH) {
        pattern->length = 0;
        for (size_t i = 0; i < gap->value.len && i < DIGITS_MAX; i++) {
            pattern->length = pattern->length * 10 + (uint64_t)(at[i] - '0');
        }
    }
    return fits(gap->field, gap->value);
}

size_t head_pattern_match(struct head_pattern *pattern, struct span bytes, size_t bytes_max)
{
    const uint8_t *at = bytes.ptr, *end = at + (bytes.len < bytes_max ? bytes.len : bytes_max);
    size_t done = 0;
    for (unsigned i = 0; i <= pattern->gap_count; i++) {
        struct gap *gap = i < pattern->gap_count ? &pattern->gaps[i] : NULL;
        size_t count = (gap ? gap->at : pattern->text_bytes) - done;
        if ((size_t)(end - at) < count || memcmp(at, pattern->text + done, count) != 0) {
            return 0;
        }
        at += count;
        done += count;
        if (gap && !fill_gap(pattern, gap, at, end)) {
            return 0;
        }
        at += gap ? gap->value.len : 0;
    }
    pattern->matched_bytes = (size_t)(at - bytes.ptr);
    return pattern->matched_bytes;
}

bool head_pattern_fill(const struct head_pattern *pattern, struct head *out)
{
    must(out->text.len == 0);
    struct buf text = out->text;
    *out = pattern->head;
    out->text = text;
    buf_add(&out->text, pattern->values, pattern->head.text.len);
    for (unsigned i = 0; i < pattern->gap_count; i++) {
        const struct gap *gap = &pattern->gaps[i];
        out->values[gap->field] =
            (struct head_range){(uint32_t)out->text.len, (uint32_t)gap->value.len};
        buf_add(&out->text, gap->value.ptr, gap->value.len);
    }
    if (buf_failed(&out->text)) {
        head_reset(out); /* its values would lie behind the text */
        return false;
    }
    out->bytes = (uint32_t)pattern->matched_bytes;
    return true;
}

uint64_t head_pattern_length(const struct head_pattern *pattern)
{
    return pattern->length;
}
