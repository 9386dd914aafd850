/* SPDX-License-Identifier: MIT */
/*
 * A head is assembled from known pieces without snprintf(), because each answer needs one; each
 * piece has a bound, which is checked at the end.
 */
#include "config.h"

#include "server/http/http1.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"

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

static char *put_length(char *at, const struct http_answer *answer, unsigned flags)
{
    if (!answer->is_stream) {
        return put_number(put(at, "\r\nContent-Length: "), answer->content_length);
    }
    return flags & HTTP1_CHUNKED ? put(at, "\r\nTransfer-Encoding: chunked") : at;
}

/* A field, unless |value| is empty. */
static char *put_field(char *at, const char *name, struct span value, size_t max)
{
    must(value.len <= max);
    if (value.len) {
        at = put(at, name);
        memcpy(at, value.ptr, value.len);
    }
    return at + value.len;
}

/* Fields that tell a browser what pages of other origins may read and send (the Fetch standard,
 * section 3.2). */
static char *put_cors(char *at, const struct http_answer *answer)
{
    if (answer->varies_by_origin) {
        at = put(at, "\r\nVary: Origin");
    }
    if (!answer->allow_origin.len) {
        return at;
    }
    at = put_field(at, "\r\nAccess-Control-Allow-Origin: ", answer->allow_origin, HTTP_ORIGIN_MAX);
    if (answer->is_preflight) {
        return put(at, "\r\nAccess-Control-Allow-Methods: GET, HEAD, POST"
                       "\r\nAccess-Control-Allow-Headers: anthropic-version, Authorization, "
                       "Content-Encoding, Content-Type, Inference-Header-Content-Length, "
                       "traceparent, X-Api-Key, X-Request-Id, "
                       "X-Request-Timeout-Ms\r\nAccess-Control-Max-Age: 600");
    }
    return put(at, "\r\nAccess-Control-Expose-Headers: Inference-Header-Content-Length, "
                   "Retry-After, traceparent, X-Request-Id, X-Truncated-Texts");
}

/* Fields that tell a browser what a page of ours may do (W3C, Content Security Policy Level 3). */
static char *put_page(char *at)
{
    return put(at, "\r\nContent-Security-Policy: default-src 'none'; script-src 'self'; "
                   "style-src 'self'; connect-src 'self'; img-src 'self' blob: data:; "
                   "media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
                   "\r\nX-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer"
                   "\r\nCache-Control: no-cache");
}

size_t http1_print_head(const struct http_answer *answer, unsigned flags,
                        char out[HTTP1_HEAD_BYTES_MAX])
{
    char *at = put(out, "HTTP/1.1 ");
    at = put_number(at, (uint64_t)answer->status);
    *at++ = ' ';
    at = put(at, http_reason(answer->status));
    at = put(put(at, "\r\nContent-Type: "), answer->content_type);
    at = put_length(at, answer, flags);
    at = put(put(at, "\r\nDate: "), http_date());
    if (answer->json_bytes) {
        at = put_number(put(at, "\r\nInference-Header-Content-Length: "), answer->json_bytes);
    }
    if (answer->content_encoding) {
        at = put(put(at, "\r\nContent-Encoding: "), answer->content_encoding);
    }
    if (answer->message_encoding) {
        at = put(put(at, "\r\ngrpc-encoding: "), answer->message_encoding);
    }
    if (answer->message_accept) {
        at = put(put(at, "\r\ngrpc-accept-encoding: "), answer->message_accept);
    }
    if (answer->allow) {
        at = put(put(at, "\r\nAllow: "), answer->allow);
    }
    if (answer->accept_encoding) {
        at = put(put(at, "\r\nAccept-Encoding: "), answer->accept_encoding);
    }
    if (answer->retry_after_s) {
        at = put_number(put(at, "\r\nRetry-After: "), answer->retry_after_s);
    }
    if (answer->cut_texts) {
        at = put_number(put(at, "\r\nX-Truncated-Texts: "), answer->cut_texts);
    }
    at = put_field(at, "\r\nX-Request-Id: ", answer->request_id, HTTP_REQUEST_ID_MAX);
    at = put_field(at, "\r\ntraceparent: ", answer->traceparent, HTTP_TRACEPARENT_MAX);
    if (answer->challenge) {
        at = put(put(at, "\r\nWWW-Authenticate: "), answer->challenge);
    }
    at = put_cors(at, answer);
    at = answer->is_page ? put_page(at) : at;
    if (flags & HTTP1_CLOSE) {
        at = put(at, "\r\nConnection: close");
    } else if (flags & HTTP1_KEEP_ALIVE) {
        at = put(at, "\r\nConnection: keep-alive");
    }
    at = put(at, "\r\n\r\n");
    must((size_t)(at - out) <= HTTP1_HEAD_BYTES_MAX);
    return (size_t)(at - out);
}

size_t http1_print_chunk(size_t bytes, char out[HTTP1_CHUNK_BYTES_MAX])
{
    int len = snprintf(out, HTTP1_CHUNK_BYTES_MAX, "%zx\r\n", bytes);
    must(len > 0 && len < HTTP1_CHUNK_BYTES_MAX);
    return (size_t)len;
}

size_t http1_print_last_chunk(const struct http_trailer *trailers, unsigned count, bool is_first,
                              char out[HTTP1_LAST_CHUNK_BYTES_MAX])
{
    char *at = put(out, is_first ? "0\r\n" : "\r\n0\r\n");
    for (unsigned i = 0; i < count; i++) {
        struct span value = trailers[i].value;
        at = put(put(at, trailers[i].name), ": ");
        if (value.len) {
            memcpy(at, value.ptr, value.len);
        }
        at = put(at + value.len, "\r\n");
    }
    at = put(at, "\r\n");
    must((size_t)(at - out) <= HTTP1_LAST_CHUNK_BYTES_MAX);
    return (size_t)(at - out);
}
