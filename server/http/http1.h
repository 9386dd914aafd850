/* SPDX-License-Identifier: MIT */
/* How HTTP/1 writes down the head of an answer, and the pieces of one whose length is not known. No
 * sockets. Loop thread. */
#ifndef PTED_SERVER_HTTP_HTTP1_H
#define PTED_SERVER_HTTP_HTTP1_H

#include <stdbool.h>
#include <stddef.h>

#include "server/http/http.h"

enum http1_flags {
    HTTP1_CLOSE = 1 << 0,      /* "Connection: close" */
    HTTP1_KEEP_ALIVE = 1 << 1, /* "Connection: keep-alive", which HTTP/1.0 clients need to see */
    HTTP1_CHUNKED = 1 << 2,    /* "Transfer-Encoding: chunked", of a stream */
};

#define HTTP1_HEAD_BYTES_MAX 2048
#define HTTP1_CHUNK_BYTES_MAX 20
#define HTTP1_LAST_CHUNK_BYTES_MAX (HTTP_TRAILER_BYTES_MAX + 4 * HTTP_TRAILERS_MAX + 8)

/* Writes the head with its empty line to |out|; returns its length. |flags| are of enum
 * http1_flags; of CLOSE and KEEP_ALIVE the first one wins. */
size_t http1_print_head(const struct http_answer *answer, unsigned flags,
                        char out[HTTP1_HEAD_BYTES_MAX]);

/* Returns the line in front of a chunk of |bytes| bytes; behind them there is one more line end. */
size_t http1_print_chunk(size_t bytes, char out[HTTP1_CHUNK_BYTES_MAX]);

/* Returns the last chunk, with its trailers (RFC 9112, section 7.1). |is_first|: there is no chunk
 * before it in this write, whose line end it would have to print. */
size_t http1_print_last_chunk(const struct http_trailer *trailers, unsigned count, bool is_first,
                              char out[HTTP1_LAST_CHUNK_BYTES_MAX]);

#endif
