/* SPDX-License-Identifier: MIT */
/* server/http/framing.c and llhttp have refused malformed heads. This file checks what fields mean
 * together: Content-Length beside Transfer-Encoding, codings before "chunked", Host and Expect. */
#include "config.h"

#include "server/http/head.h"

#include <string.h>

#include "base/check.h"

void head_init(struct head *head, const struct params *params)
{
    *head = (struct head){.field = HTTP_FIELD_COUNT};
    buf_init(&head->text, params->header_bytes_max);
}

void head_fini(struct head *head)
{
    buf_fini(&head->text);
}

void head_reset(struct head *head)
{
    struct buf text = head->text;
    buf_reset(&text);
    *head = (struct head){.text = text, .field = HTTP_FIELD_COUNT};
}

static int keep(struct head *head, struct head_range *range, struct span part, struct error *err)
{
    if (range->len == 0) {
        range->off = (uint32_t)head->text.len;
    }
    buf_add(&head->text, part.ptr, part.len);
    if (buf_failed(&head->text)) {
        error_no_memory(err, "a request's head");
        return 503;
    }
    range->len += (uint32_t)part.len;
    return 0;
}

int head_add_target(struct head *head, const struct params *params, struct span part,
                    struct error *err)
{
    if (!in_range(head->target.len, part.len, params->url_bytes_max)) {
        error_set(err, ST_TOO_LARGE, "request target: more than %llu bytes (--url-bytes-max)",
                  (unsigned long long)params->url_bytes_max);
        return 414;
    }
    return keep(head, &head->target, part, err);
}

void head_add_name(struct head *head, struct span part)
{
    head->field_count += head->name_len == 0;
    if (in_range(head->name_len, part.len, HTTP_FIELD_NAME_MAX)) {
        memcpy(head->name + head->name_len, part.ptr, part.len);
        head->name_len = (uint8_t)(head->name_len + part.len);
    } else {
        head->name_len = HTTP_FIELD_NAME_MAX + 1;
    }
}

/* HEAD_LIST_COUNT: the field is no list that is kept as one. */
static enum head_list list_of(enum http_field field)
{
    switch (field) {
    case HTTP_FORWARDED:
        return HEAD_FORWARDED;
    case HTTP_X_FORWARDED_FOR:
        return HEAD_X_FORWARDED_FOR;
    default:
        return HEAD_LIST_COUNT;
    }
}

/* Another line of |field| begins: the last one of a list is kept. */
static void keep_line(struct head *head, enum http_field field)
{
    enum head_list list = list_of(field);
    if (list != HEAD_LIST_COUNT) {
        struct head_range *lines = head->lines[list];
        memmove(lines + 1, lines, (HEAD_LINES_MAX - 2) * sizeof(*lines));
        lines[0] = head->values[field];
    }
}

/* The first fragment of a value, which may be empty, decides which field it belongs to. */
static void settle_field(struct head *head)
{
    if (head->name_len == 0) {
        return;
    }
    head->field = head->name_len <= HTTP_FIELD_NAME_MAX
                      ? http_field_find(head->name, head->name_len)
                      : HTTP_FIELD_COUNT;
    head->name_len = 0;
    if (head->field != HTTP_FIELD_COUNT) {
        uint8_t *count = &head->counts[head->field];
        *count = (uint8_t)(*count < UINT8_MAX ? *count + 1 : UINT8_MAX);
        keep_line(head, head->field);
        head->values[head->field] = (struct head_range){0};
    }
}

int head_add_value(struct head *head, struct span part, struct error *err)
{
    settle_field(head);
    return head->field == HTTP_FIELD_COUNT ? 0 : keep(head, &head->values[head->field], part, err);
}

void head_end_field(struct head *head)
{
    settle_field(head);
    head->field = HTTP_FIELD_COUNT;
}

uint32_t head_line_count(const struct head *head, enum http_field field)
{
    must(list_of(field) != HEAD_LIST_COUNT);
    return head->counts[field] < HEAD_LINES_MAX ? head->counts[field] : HEAD_LINES_MAX;
}

struct span head_line(const struct head *head, enum http_field field, uint32_t line)
{
    must(line < head_line_count(head, field));
    return line == 0 ? head_value(head, field)
                     : span_trim(head_span(head, head->lines[list_of(field)][line - 1]), " \t");
}

static bool host_is_valid(struct span host)
{
    for (size_t i = 0; i < host.len; i++) {
        uint8_t c = host.ptr[i];
        if (c <= ' ' || c == 0x7f || c == '@' || c == '/' || c == ',') {
            return false;
        }
    }
    return true;
}

struct span head_path_of(struct span target)
{
    const uint8_t *end = target.ptr + target.len, *at = target.ptr;
    const uint8_t *query = target.len ? memchr(target.ptr, '?', target.len) : NULL;
    end = query ? query : end;
    if (at == end || *at == '/') {
        return span_of(at, (size_t)(end - at));
    }
    while (at < end && *at != '/') {
        at++; /* the scheme */
    }
    at += end - at >= 2 && at[1] == '/' ? 2 : 0;
    while (at < end && *at != '/') {
        at++; /* the user, the host */
    }
    return at < end ? span_of(at, (size_t)(end - at)) : span_str("/");
}

bool head_takes_trailers(const struct head *head)
{
    struct span rest = head_value(head, HTTP_TE);
    while (rest.len) {
        const uint8_t *comma = memchr(rest.ptr, ',', rest.len);
        size_t len = comma ? (size_t)(comma - rest.ptr) : rest.len;
        if (span_is_word(span_trim(span_of(rest.ptr, len), " \t"), "trailers")) {
            return true;
        }
        len += comma != NULL;
        rest = span_of(rest.ptr + len, rest.len - len);
    }
    return false;
}

int head_verify(const struct head *head, bool is_http_1_0, struct error *err)
{
    if (head_has(head, HTTP_TRANSFER_ENCODING)) {
        if (head_has(head, HTTP_CONTENT_LENGTH)) {
            error_set(err, ST_INVALID, "Content-Length and Transfer-Encoding in one request");
            return 400;
        }
        if (is_http_1_0) {
            error_set(err, ST_INVALID, "Transfer-Encoding in an HTTP/1.0 request");
            return 400;
        }
        struct span coding = head_value(head, HTTP_TRANSFER_ENCODING);
        if (head->counts[HTTP_TRANSFER_ENCODING] > 1 || !span_is_word(coding, "chunked")) {
            error_set(err, ST_UNSUPPORTED, "Transfer-Encoding: expected chunked, got '%.*s'",
                      SPAN_FMT(coding));
            return 501;
        }
    }
    if (head->counts[HTTP_HOST] > 1 || (head->counts[HTTP_HOST] == 0 && !is_http_1_0)) {
        error_set(err, ST_INVALID, "Host: expected one field, got %d", head->counts[HTTP_HOST]);
        return 400;
    }
    if (!host_is_valid(head_value(head, HTTP_HOST))) {
        error_set(err, ST_INVALID, "Host: not a host name");
        return 400;
    }
    if (head_has(head, HTTP_EXPECT) &&
        !span_is_word(head_value(head, HTTP_EXPECT), "100-continue")) {
        error_set(err, ST_UNSUPPORTED, "Expect: expected 100-continue, got '%.*s'",
                  SPAN_FMT(head_value(head, HTTP_EXPECT)));
        return 417;
    }
    return 0;
}
