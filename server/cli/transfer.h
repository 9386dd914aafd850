/* SPDX-License-Identifier: MIT */
/*
 * One request and its answer. A transfer owns a handle of libcurl and is used again and again; its
 * connection stays open in between. Answers are bounded; their content is not trusted.
 *
 *     transfer_init()
 *     transfer_run()          a request, from its beginning to its end
 *     transfer_fini()
 *
 * or, for many at a time with libcurl's multi interface:
 *
 *     transfer_prepare()      once for a request
 *     transfer_rewind()       before each time that it goes; not before the first
 *     multi_add_handle(transfer->easy), ... CURLINFO_PRIVATE of a message is the transfer
 *     transfer_end()          has an answer come?
 *     transfer_check()        has the server done what it was asked?
 *
 * One thread at a time uses a transfer. It must not move while it is in use.
 */
#ifndef PTED_SERVER_CLI_TRANSFER_H
#define PTED_SERVER_CLI_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/bytes.h"
#include "base/status.h"
#include "server/cli/client.h"

#define TRANSFER_HEADERS_MAX 8
#define TRANSFER_HEAD_BYTES_MAX ((size_t)256 << 10) /* of the heads of an answer */
#define TRANSFER_FIELD_MAX 256
#define TRANSFER_TEXT_BYTES_MAX ((size_t)64 << 20) /* of an answer that is a document */

/* Borrowed from prepare to the end of the last transfer, the pieces of the body too. */
struct transfer_request {
    const char *path;         /* behind the target's base: "/v2/models/mlp/infer" */
    const char *content_type; /* of the body; NULL: application/json */
    bool is_post;             /* else GET */
    const char *headers[TRANSFER_HEADERS_MAX]; /* "Name: value"; as many as are not NULL */
    const struct span *body;                   /* pieces that make the body */
    uint32_t body_count;
    size_t answer_bytes_max;
};

struct transfer {
    const struct client *client; /* borrowed */
    CURL *easy;                  /* owned */
    struct curl_slist *headers;  /* owned */
    const struct transfer_request *request;
    size_t body_bytes;
    uint32_t piece; /* the next byte of the body: its piece, and the byte in it */
    size_t offset;

    /* The answer. */
    long status;                           /* 200 to 599 */
    char content_type[TRANSFER_FIELD_MAX]; /* as sent; "": none, or a longer one */
    char location[TRANSFER_FIELD_MAX];
    char json_bytes[TRANSFER_FIELD_MAX]; /* Inference-Header-Content-Length as sent */
    struct buf body;
    size_t head_bytes;
    bool is_head_over;
    char problem[CURL_ERROR_SIZE]; /* libcurl's words */
};

/* On failure there is nothing to free. */
MUST_CHECK enum status transfer_init(struct transfer *transfer, const struct client *client,
                                     struct error *err);
void transfer_fini(struct transfer *transfer);

MUST_CHECK enum status transfer_prepare(struct transfer *transfer,
                                        const struct transfer_request *request, struct error *err);

/* Forgets the answer, and puts the body at its beginning. */
void transfer_rewind(struct transfer *transfer);

/* |code| is libcurl's outcome of the transfer. ST_OK: an answer has come, whatever it says.
 * ST_UNAVAILABLE: no server there, or the connection broke; ST_TIMEOUT; ST_TOO_LARGE;
 * ST_CORRUPT: no answer in HTTP. */
MUST_CHECK enum status transfer_end(struct transfer *transfer, CURLcode code, struct error *err);

/* Returns ST_OK: the answer has a status from 200 to 299. Else the error has the server's text, and
 * says what the status means for the exit status of a command: ST_NOT_FOUND for 404 and so on. */
MUST_CHECK enum status transfer_check(const struct transfer *transfer, struct error *err);

/* Prepares, performs, ends and checks. */
MUST_CHECK enum status transfer_run(struct transfer *transfer,
                                    const struct transfer_request *request, struct error *err);

/* Divides the body of the answer into a JSON document and the bytes behind it. Without
 * Inference-Header-Content-Length all of it is the document. ST_CORRUPT: the header is no number,
 * or is larger than the body. */
MUST_CHECK enum status transfer_split(const struct transfer *transfer, struct span *out_json,
                                      struct span *out_rest, struct error *err);

/* |err| says what is wrong in an answer: ST_INVALID and ST_NOT_FOUND become ST_CORRUPT, since the
 * server is to blame and not the command line. Puts the server and |path| in front of the text, and
 * escapes what it quotes. */
enum status transfer_blame(const struct transfer *transfer, const char *path, struct error *err);

/* |err| says why json_read_members() failed with |status| on an event of a stream. What is wrong in
 * the JSON becomes ST_CORRUPT, with a word that the server sent it; other errors stay. */
enum status transfer_blame_event(enum status status, struct error *err);

/* Appends the first |max| bytes of a text of the server's: controls, bytes that are not UTF-8 and
 * characters that disturb a line are escaped, since it goes to a terminal. */
void transfer_show(struct span text, size_t max, struct buf *out);

#endif
