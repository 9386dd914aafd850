/* SPDX-License-Identifier: MIT */
/*
 * One message of a connection, from the parser to its request: the only user of llhttp. The parser
 * stops behind each message (HPE_PAUSED), so nothing of the next request is looked at before the
 * answer is out, and an error in it cannot overtake the answer.
 */
#include "config.h"

#include "base/check.h"
#include "server/conn_priv.h"
#include "server/http.h"
#include "server/request.h"
#include "server/server.h"

/* What a chunk has around its data: two line ends and a size of that many digits. Twice the data
 * may be extensions, as Go allows it (net/http/internal/chunked.go): some sign each chunk. */
#define CHUNK_FRAMING_BYTES (4 + 16)

/* Each callback gets the connection from the parser; a non-zero result stops the parser. */
static struct conn *conn_of(llhttp_t *parser)
{
    struct conn *conn;
    OBJ_CAST(conn, parser->data, CONN_MAGIC);
    return conn;
}

static int on_message_begin(llhttp_t *parser)
{
    struct conn *conn = conn_of(parser);
    must(!conn->request);
    conn->request = request_take(conn->server, conn);
    if (!conn->request) {
        return -1;
    }
    conn->is_complete = conn->wants_continue = false;
    conn->discarded_bytes = 0;
    conn_enter(conn, CONN_HEAD, conn_params(conn)->header_timeout);
    return 0;
}

/* |status| is 0 or that of a limit; the request keeps it for the answer. */
static int stop_at(struct conn *conn, int status)
{
    if (status == 0) {
        return 0;
    }
    request_refuse(conn->request, status);
    return -1;
}

static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    return stop_at(
        conn, head_add_target(&request->head, conn_params(conn), span_of(at, len), &request->err));
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    conn->counted = at + len;
    return stop_at(
        conn, head_add_name(&request->head, conn_params(conn), span_of(at, len), &request->err));
}

static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    if (conn->state != CONN_HEAD) {
        return 0; /* a trailer */
    }
    conn->counted = at + len;
    return stop_at(
        conn, head_add_value(&request->head, conn_params(conn), span_of(at, len), &request->err));
}

static int on_header_value_complete(llhttp_t *parser)
{
    head_end_field(&conn_of(parser)->request->head);
    return 0;
}

static enum route_method method_of(const llhttp_t *parser)
{
    switch (parser->method) {
    case HTTP_GET:
        return ROUTE_GET_ONLY;
    case HTTP_HEAD:
        return ROUTE_HEAD_ONLY;
    case HTTP_POST:
        return ROUTE_POST_ONLY;
    default:
        return ROUTE_OTHER;
    }
}

static bool is_version(const llhttp_t *parser, int major, int minor)
{
    return parser->http_major == major && parser->http_minor == minor;
}

/* A refused request keeps its connection when its body is short enough to be read past. */
static int refuse_or_discard(struct conn *conn, const struct request_framing *framing)
{
    bool is_short = framing->is_chunked || framing->content_length <= CONN_DISCARD_BYTES_MAX;
    return is_short && !head_has(&conn->request->head, HTTP_EXPECT) ? 0 : -1;
}

static int on_headers_complete(llhttp_t *parser)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    if (!is_version(parser, 1, 1) && !is_version(parser, 1, 0)) {
        error_set(&request->err, ST_UNSUPPORTED, "HTTP version: expected 1.0 or 1.1, got %d.%d",
                  parser->http_major, parser->http_minor);
        return stop_at(conn, 505);
    }
    struct request_framing framing = {
        .method = method_of(parser),
        .method_name = llhttp_method_name((llhttp_method_t)parser->method),
        .is_http_1_0 = parser->http_minor == 0,
        .is_chunked = head_has(&request->head, HTTP_TRANSFER_ENCODING),
        .content_length =
            head_has(&request->head, HTTP_CONTENT_LENGTH) ? parser->content_length : 0,
    };
    int status = head_verify(&request->head, framing.is_http_1_0, &request->err);
    if (status) {
        return stop_at(conn, status);
    }
    parser->upgrade = 0; /* an offer that we do not take up */
    conn->framing_bytes = 0;
    conn_enter(conn, CONN_BODY, conn_params(conn)->body_timeout);
    if (!request_begin(request, &framing)) {
        return refuse_or_discard(conn, &framing);
    }
    conn->wants_continue = head_has(&request->head, HTTP_EXPECT) && !framing.is_http_1_0;
    return 0;
}

/* What a chunk is going to have: nobody waits for more than may come. */
static int on_chunk_header(llhttp_t *parser)
{
    struct request *request = conn_of(parser)->request;
    if (request->http_status) {
        return 0;
    }
    enum status status = body_expect(&request->body, parser->content_length, &request->err);
    return stop_at(conn_of(parser), status == ST_OK ? 0 : http_status_of(status));
}

/* Sizes of chunks, extensions and trailers come without a length: what is up to |at| and no data
 * has been one of them. */
static void count_framing(struct conn *conn, const char *at)
{
    conn->framing_bytes += (size_t)(at - conn->counted);
    conn->counted = at;
}

static void count_data(struct conn *conn, const char *at, size_t len)
{
    count_framing(conn, at);
    size_t explained = CHUNK_FRAMING_BYTES + 2 * len;
    conn->framing_bytes -= conn->framing_bytes < explained ? conn->framing_bytes : explained;
    conn->counted = at + len;
}

static int verify_framing(struct conn *conn)
{
    struct request *request = conn->request;
    if (conn->framing_bytes <= conn_params(conn)->header_bytes_max) {
        return 0;
    }
    if (!request->http_status) {
        error_set(&request->err, ST_TOO_LARGE,
                  "chunked body: more than %llu bytes of extensions and trailers",
                  (unsigned long long)conn_params(conn)->header_bytes_max);
        request_refuse(request, 431);
    }
    return -1;
}

static int on_body(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    count_data(conn, at, len);
    if (verify_framing(conn)) {
        return -1;
    }
    if (request->http_status) {
        conn->discarded_bytes += len;
        return conn->discarded_bytes > CONN_DISCARD_BYTES_MAX ? -1 : 0;
    }
    enum status status = body_add(&request->body, span_of(at, len), &request->err);
    return stop_at(conn, status == ST_OK ? 0 : http_status_of(status));
}

static int on_message_complete(llhttp_t *parser)
{
    conn_of(parser)->is_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_message_begin = on_message_begin,
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
    .on_chunk_header = on_chunk_header,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void conn_message_init(struct conn *conn)
{
    llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
    conn->parser.data = conn;
}

void conn_message_refuse(struct conn *conn)
{
    struct request *request = conn->request;
    if (!request) {
        conn_abort(conn);
        return;
    }
    if (request->err.code == ST_OK) {
        enum llhttp_errno error = llhttp_get_errno(&conn->parser);
        const char *reason = llhttp_get_error_reason(&conn->parser);
        error_set(&request->err, ST_INVALID, "malformed request: %s",
                  reason && *reason ? reason : llhttp_errno_name(error));
        request_refuse(request,
                       error == HPE_INVALID_VERSION || error == HPE_PAUSED_H2_UPGRADE ? 505 : 400);
    }
    conn_enter(conn, CONN_BUSY, conn_params(conn)->request_timeout);
    request_run(request, false);
}

/* What has come ends within a message. */
static int on_part(struct conn *conn, const char *end)
{
    if (conn->state != CONN_BODY) {
        return 0;
    }
    conn_set_deadline(conn, conn_params(conn)->body_timeout);
    count_framing(conn, end);
    return verify_framing(conn);
}

size_t conn_message_feed(struct conn *conn, struct span bytes)
{
    conn->counted = (const char *)bytes.ptr;
    enum llhttp_errno error = llhttp_execute(&conn->parser, conn->counted, bytes.len);
    if (error == HPE_OK && on_part(conn, (const char *)bytes.ptr + bytes.len) == 0) {
        return bytes.len;
    }
    if (error != HPE_PAUSED || !conn->is_complete) {
        conn_message_refuse(conn);
        return bytes.len; /* nothing behind an error means anything */
    }
    size_t used = (size_t)((const uint8_t *)llhttp_get_error_pos(&conn->parser) - bytes.ptr);
    must(used <= bytes.len);
    bool is_keep_alive = llhttp_should_keep_alive(&conn->parser);
    llhttp_resume(&conn->parser);
    conn_enter(conn, CONN_BUSY, conn_params(conn)->request_timeout);
    request_run(conn->request, is_keep_alive);
    return used;
}
