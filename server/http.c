/* SPDX-License-Identifier: MIT */
/*
 * Tables first, then the printing of a head. A head is assembled from known pieces without
 * snprintf(), because each answer needs one; each piece has a bound, which is checked at the end.
 */
#include "config.h"

#include "server/http.h"

#include <strings.h>
#include <time.h>

#include "base/check.h"

static const char *const field_names[HTTP_FIELD_COUNT] = {
    [HTTP_ACCEPT_ENCODING] = "accept-encoding",
    [HTTP_CONTENT_ENCODING] = "content-encoding",
    [HTTP_CONTENT_LENGTH] = "content-length",
    [HTTP_EXPECT] = "expect",
    [HTTP_HOST] = "host",
    [HTTP_INFERENCE_HEADER_CONTENT_LENGTH] = "inference-header-content-length",
    [HTTP_TRANSFER_ENCODING] = "transfer-encoding",
    [HTTP_X_REQUEST_TIMEOUT_MS] = "x-request-timeout-ms",
};

enum http_field http_field_find(const char *name, size_t len)
{
    for (int i = 0; i < HTTP_FIELD_COUNT; i++) {
        const char *field = field_names[i];
        if ((name[0] | 0x20) == field[0] && strncasecmp(name, field, len) == 0 && !field[len]) {
            return (enum http_field)i;
        }
    }
    return HTTP_FIELD_COUNT;
}

static const int statuses[STATUS_COUNT] = {
    [ST_OK] = 200,          [ST_INVALID] = 400,     [ST_NOT_FOUND] = 404, [ST_TOO_LARGE] = 413,
    [ST_UNSUPPORTED] = 501, [ST_EXHAUSTED] = 429,   [ST_TIMEOUT] = 504,   [ST_CANCELLED] = 503,
    [ST_CORRUPT] = 400,     [ST_UNAVAILABLE] = 503, [ST_SYSTEM] = 500,    [ST_UNWRITTEN] = 500,
    [ST_WOULD_PLAN] = 500,  [ST_INTERNAL] = 500,
};
_Static_assert(sizeof(statuses) / sizeof(statuses[0]) == ST_INTERNAL + 1, "a status for each code");

int http_status_of(enum status code)
{
    must(code < STATUS_COUNT);
    return statuses[code];
}

const char *http_reason(int status)
{
    switch (status) {
    case 100:
        return "Continue";
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 413:
        return "Content Too Large";
    case 414:
        return "URI Too Long";
    case 415:
        return "Unsupported Media Type";
    case 417:
        return "Expectation Failed";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 501:
        return "Not Implemented";
    case 503:
        return "Service Unavailable";
    case 504:
        return "Gateway Timeout";
    case 505:
        return "HTTP Version Not Supported";
    default:
        unreachable();
    }
}

/* "Sat, 21 Nov 2026 10:18:02 GMT", made once a second. */
#define DATE_BYTES 29
static const char *date_text(void)
{
    static char text[DATE_BYTES + 1];
    static time_t printed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != printed) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        size_t len = strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
        must(len == DATE_BYTES);
        printed = now.tv_sec;
    }
    return text;
}

static char *put(char *at, const char *text)
{
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

static char *put_number(char *at, uint64_t value)
{
    char digits[20];
    size_t len = 0;
    do {
        digits[len++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (len) {
        *at++ = digits[--len];
    }
    return at;
}

size_t http_print_head(const struct http_head *head, char out[HTTP_HEAD_BYTES_MAX])
{
    char *at = put(out, "HTTP/1.1 ");
    at = put_number(at, (uint64_t)head->status);
    *at++ = ' ';
    at = put(at, http_reason(head->status));
    if (head->content_type) {
        at = put(put(at, "\r\nContent-Type: "), head->content_type);
        at = put_number(put(at, "\r\nContent-Length: "), head->content_length);
        at = put(put(at, "\r\nDate: "), date_text());
    }
    if (head->json_bytes) {
        at = put_number(put(at, "\r\nInference-Header-Content-Length: "), head->json_bytes);
    }
    if (head->content_encoding) {
        at = put(put(at, "\r\nContent-Encoding: "), head->content_encoding);
    }
    if (head->allow) {
        at = put(put(at, "\r\nAllow: "), head->allow);
    }
    if (head->accept_encoding) {
        at = put(put(at, "\r\nAccept-Encoding: "), head->accept_encoding);
    }
    if (head->retry_after_s) {
        at = put_number(put(at, "\r\nRetry-After: "), head->retry_after_s);
    }
    if (head->close) {
        at = put(at, "\r\nConnection: close");
    } else if (head->keep_alive) {
        at = put(at, "\r\nConnection: keep-alive");
    }
    at = put(at, "\r\n\r\n");
    must((size_t)(at - out) <= HTTP_HEAD_BYTES_MAX);
    return (size_t)(at - out);
}
