/* SPDX-License-Identifier: MIT */
/* The vocabulary of HTTP/1.1: the fields that we read, the status of each outcome, and the head of
 * an answer. No sockets. Loop thread: the date is cached. */
#ifndef PTED_SERVER_HTTP_H
#define PTED_SERVER_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

/* Request fields that mean something to us; all others are counted and dropped. */
enum http_field {
    HTTP_ACCEPT_ENCODING,
    HTTP_CONTENT_ENCODING,
    HTTP_CONTENT_LENGTH,
    HTTP_EXPECT,
    HTTP_HOST,
    HTTP_INFERENCE_HEADER_CONTENT_LENGTH,
    HTTP_TRANSFER_ENCODING,
    HTTP_X_REQUEST_TIMEOUT_MS,
    HTTP_FIELD_COUNT, /* also: none of these fields */
};

#define HTTP_FIELD_NAME_MAX 31

/* The case of letters does not matter. */
enum http_field http_field_find(const char *name, size_t len);

/* The only place where an outcome becomes an HTTP status. */
int http_status_of(enum status code);
const char *http_reason(int status);

/* The head of an answer. */
struct http_head {
    int status;
    const char *content_type; /* NULL: no body and no Content-Length (a 100) */
    uint64_t content_length;
    uint64_t json_bytes;          /* Inference-Header-Content-Length; 0: not sent */
    const char *content_encoding; /* NULL: identity */
    const char *allow;            /* of a 405; NULL: not sent */
    const char *accept_encoding;  /* of a 415; NULL: not sent */
    uint32_t retry_after_s;       /* Retry-After; 0: not sent */
    bool close;                   /* "Connection: close" */
    bool keep_alive;              /* "Connection: keep-alive", which HTTP/1.0 clients need to see */
};

#define HTTP_HEAD_BYTES_MAX 512

/* Writes the head with its empty line to |out|; returns its length. */
size_t http_print_head(const struct http_head *head, char out[HTTP_HEAD_BYTES_MAX]);

#endif
