/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/http.h"

#include <strings.h>
#include <time.h>

#include "base/check.h"

#define NAME(text)                                                                                 \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }
static const struct {
    const char *text;
    size_t len;
} field_names[HTTP_FIELD_COUNT] = {
    [HTTP_ACCEPT] = NAME("accept"),
    [HTTP_ACCEPT_ENCODING] = NAME("accept-encoding"),
    [HTTP_ACCESS_CONTROL_REQUEST_METHOD] = NAME("access-control-request-method"),
    [HTTP_ANTHROPIC_VERSION] = NAME("anthropic-version"),
    [HTTP_AUTHORIZATION] = NAME("authorization"),
    [HTTP_CONTENT_ENCODING] = NAME("content-encoding"),
    [HTTP_CONTENT_LENGTH] = NAME("content-length"),
    [HTTP_CONTENT_TYPE] = NAME("content-type"),
    [HTTP_EXPECT] = NAME("expect"),
    [HTTP_FORWARDED] = NAME("forwarded"),
    [HTTP_GRPC_ENCODING] = NAME("grpc-encoding"),
    [HTTP_GRPC_TIMEOUT] = NAME("grpc-timeout"),
    [HTTP_HOST] = NAME("host"),
    [HTTP_INFERENCE_HEADER_CONTENT_LENGTH] = NAME("inference-header-content-length"),
    [HTTP_ORIGIN] = NAME("origin"),
    [HTTP_TE] = NAME("te"),
    [HTTP_TRACEPARENT] = NAME("traceparent"),
    [HTTP_TRANSFER_ENCODING] = NAME("transfer-encoding"),
    [HTTP_USER_AGENT] = NAME("user-agent"),
    [HTTP_X_API_KEY] = NAME("x-api-key"),
    [HTTP_X_FORWARDED_FOR] = NAME("x-forwarded-for"),
    [HTTP_X_REQUEST_ID] = NAME("x-request-id"),
    [HTTP_X_REQUEST_TIMEOUT_MS] = NAME("x-request-timeout-ms"),
};
#undef NAME

enum http_field http_field_find(const char *name, size_t len)
{
    for (int i = 0; i < HTTP_FIELD_COUNT; i++) {
        const char *field = field_names[i].text;
        if (len == field_names[i].len && (name[0] | 0x20) == field[0] &&
            strncasecmp(name, field, len) == 0) {
            return (enum http_field)i;
        }
    }
    return HTTP_FIELD_COUNT;
}

static const int statuses[STATUS_COUNT] = {
    [ST_OK] = 200,          [ST_INVALID] = 400,     [ST_NOT_FOUND] = 404,      [ST_TOO_LARGE] = 413,
    [ST_UNSUPPORTED] = 501, [ST_EXHAUSTED] = 429,   [ST_TIMEOUT] = 504,        [ST_CANCELLED] = 503,
    [ST_CORRUPT] = 400,     [ST_UNAVAILABLE] = 503, [ST_SYSTEM] = 500,         [ST_UNWRITTEN] = 500,
    [ST_WOULD_PLAN] = 500,  [ST_WOULD_LOAD] = 500,  [ST_WOULD_BE_HEAVY] = 500, [ST_INTERNAL] = 500,
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
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
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
const char *http_date(void)
{
    static char text[HTTP_DATE_BYTES + 1];
    static time_t printed;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != printed) {
        struct tm utc;
        gmtime_r(&now.tv_sec, &utc);
        size_t len = strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
        must(len == HTTP_DATE_BYTES);
        printed = now.tv_sec;
    }
    return text;
}
