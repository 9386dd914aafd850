/* SPDX-License-Identifier: MIT */
/* The vocabulary of HTTP, whatever its version: the fields that we read, the status of each
 * outcome, and the fields of an answer. server/http/http1.h writes them as HTTP/1 does. Loop
 * thread: the date is cached. */
#ifndef PTED_SERVER_HTTP_HTTP_H
#define PTED_SERVER_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

/* Request fields that mean something to us; all others are counted and dropped. */
enum http_field {
    HTTP_ACCEPT,
    HTTP_ACCEPT_ENCODING,
    HTTP_ACCESS_CONTROL_REQUEST_METHOD,
    HTTP_ANTHROPIC_VERSION,
    HTTP_AUTHORIZATION,
    HTTP_CONTENT_ENCODING,
    HTTP_CONTENT_LENGTH,
    HTTP_CONTENT_TYPE,
    HTTP_EXPECT,
    HTTP_FORWARDED, /* a list: see head_line() */
    HTTP_GRPC_ENCODING,
    HTTP_GRPC_TIMEOUT,
    HTTP_HOST,
    HTTP_INFERENCE_HEADER_CONTENT_LENGTH,
    HTTP_ORIGIN,
    HTTP_TE,
    HTTP_TRACEPARENT,
    HTTP_TRANSFER_ENCODING,
    HTTP_USER_AGENT,
    HTTP_X_API_KEY,
    HTTP_X_FORWARDED_FOR, /* likewise */
    HTTP_X_REQUEST_ID,
    HTTP_X_REQUEST_TIMEOUT_MS,
    HTTP_FIELD_COUNT, /* also: none of these fields */
};

#define HTTP_FIELD_NAME_MAX 31

/* Finds a field; the case of letters does not matter. */
enum http_field http_field_find(const char *name, size_t len);

/* In logs and counts: the client left before it had an answer. */
#define HTTP_GONE 499

/* Returns the only place where an outcome becomes an HTTP status. */
int http_status_of(enum status code);
const char *http_reason(int status);

/* The fields of an answer, in any version of HTTP. */
struct http_answer {
    int status;
    const char *content_type;
    uint64_t content_length;
    bool is_stream;               /* the length is not known before the end; there is none above */
    uint64_t json_bytes;          /* Inference-Header-Content-Length; 0: not sent */
    const char *content_encoding; /* NULL: identity */
    const char *message_encoding; /* grpc-encoding; NULL: not sent */
    const char *message_accept;   /* grpc-accept-encoding; NULL: not sent */
    const char *allow;            /* of a 405; NULL: not sent */
    const char *accept_encoding;  /* of a 415; NULL: not sent */
    uint32_t retry_after_s;       /* Retry-After; 0: not sent */
    uint32_t cut_texts;           /* X-Truncated-Texts; 0: not sent */
    struct span request_id;       /* X-Request-Id; empty: not sent */
    struct span traceparent;      /* likewise */
    const char *challenge;        /* WWW-Authenticate; NULL: not sent */
    struct span allow_origin;     /* the page that may read it, or "*"; empty: not sent */
    bool varies_by_origin;        /* another page may get another answer */
    bool is_preflight;            /* says what such a page may send */
    bool is_page;                 /* a file of the console: it may load files of ours alone */
};

/* Bytes of these fields. */
#define HTTP_REQUEST_ID_MAX 128
#define HTTP_TRACEPARENT_MAX 55
#define HTTP_ORIGIN_MAX 300

/* A field behind the last part of an answer (RFC 9110, section 6.5). |value|: printable ASCII; who
 * writes it has encoded all else. */
struct http_trailer {
    const char *name;
    struct span value;
};

/* The most trailers of an answer, and the bytes of their names and values. */
#define HTTP_TRAILERS_MAX 8
#define HTTP_TRAILER_BYTES_MAX 1024

#define HTTP_DATE_BYTES 29

/* Writes the time now as the Date field has it, terminated. */
const char *http_date(void);

#endif
