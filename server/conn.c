/* SPDX-License-Identifier: MIT */
/*
 * Bytes reach the parser from on_read() or, when they were read ahead, from resume(); both go
 * through parse(). The parser stops behind each message (HPE_PAUSED), so nothing of the next
 * request is looked at before the answer is out, and an error in it cannot overtake the answer.
 *
 * Requests usually end inside the call that completed them. conn_answered() then only changes the
 * state and parse() goes on with the next message; it is a loop, never a recursion.
 */
#include "config.h"

#include "server/conn.h"

#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/check.h"
#include "server/http.h"
#include "server/log.h"
#include "server/request.h"
#include "server/server.h"

/* A body that nobody wants is read up to here to keep the connection; beyond, it is closed. */
#define DISCARD_BYTES_MAX (64 << 10)
/* What a chunk has around its data: two line ends and a size of that many digits. Twice the data
 * may be extensions, as Go allows it (net/http/internal/chunked.go): some sign each chunk. */
#define CHUNK_FRAMING_BYTES (4 + 16)
/* Read straight into a body that is at least this far from complete. */
#define DIRECT_BYTES_MIN 4096
#define DIRECT_BYTES_MAX (1 << 20)

static void on_close(uv_handle_t *handle)
{
    struct conn *conn;
    OBJ_CAST(conn, handle->data, CONN_MAGIC);
    struct server *server = conn->server;
    list_remove(&conn->link);
    server->conn_count--;
    buf_fini(&conn->ahead);
    conn->magic = 0;
    free(conn);
    server_check_drained(server);
}

static void close_now(struct conn *conn)
{
    if (conn->state != CONN_CLOSING) {
        conn->state = CONN_CLOSING;
        uv_close(&conn->io.handle, on_close);
    }
}

void conn_abort(struct conn *conn)
{
    struct request *request = conn->request;
    conn->request = NULL;
    close_now(conn);
    if (request) {
        request_abandon(request);
    }
}

/* The current state may last |ms| from now. */
static void set_deadline(struct conn *conn, uint64_t ms)
{
    conn->deadline_ms = uv_now(&conn->server->loop) + ms;
}

static void enter(struct conn *conn, enum conn_state state, uint64_t ms)
{
    must(conn->state != CONN_CLOSING);
    conn->state = state;
    set_deadline(conn, ms);
}

static const struct params *params_of(const struct conn *conn)
{
    return conn->server->params;
}

static void start_reading(struct conn *conn);

/* ---- closing after the last answer ----------------------------------------------------------- */

static void on_shutdown(uv_shutdown_t *shutdown, int uv_status)
{
    struct conn *conn;
    OBJ_CAST(conn, shutdown->data, CONN_MAGIC);
    if (uv_status < 0 || conn->is_eof) {
        close_now(conn);
    }
}

/*
 * Closing a socket with unread bytes resets it, and the reset may overtake the answer. So only our
 * side is closed, and what still comes is thrown away for a while.
 */
static void linger(struct conn *conn)
{
    enter(conn, CONN_LINGER, params_of(conn)->linger_timeout);
    conn->discarded_bytes = 0;
    if (conn->is_stopped && !conn->is_eof) {
        start_reading(conn);
    }
    buf_fini(&conn->ahead);
    conn->shutdown.data = conn;
    if (conn->is_broken || uv_shutdown(&conn->shutdown, &conn->io.stream, on_shutdown) < 0) {
        close_now(conn);
    }
}

/* ---- from the parser to the request ---------------------------------------------------------- */

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
    enter(conn, CONN_HEAD, params_of(conn)->header_timeout);
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
        conn, head_add_target(&request->head, params_of(conn), span_of(at, len), &request->err));
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    struct request *request = conn->request;
    conn->counted = at + len;
    return stop_at(conn,
                   head_add_name(&request->head, params_of(conn), span_of(at, len), &request->err));
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
        conn, head_add_value(&request->head, params_of(conn), span_of(at, len), &request->err));
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
    bool is_short = framing->is_chunked || framing->content_length <= DISCARD_BYTES_MAX;
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
    enter(conn, CONN_BODY, params_of(conn)->body_timeout);
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
    if (conn->framing_bytes <= params_of(conn)->header_bytes_max) {
        return 0;
    }
    if (!request->http_status) {
        error_set(&request->err, ST_TOO_LARGE,
                  "chunked body: more than %llu bytes of extensions and trailers",
                  (unsigned long long)params_of(conn)->header_bytes_max);
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
        return conn->discarded_bytes > DISCARD_BYTES_MAX ? -1 : 0;
    }
    enum status status = body_add(&request->body, span_of(at, len), &request->err);
    return stop_at(conn, status == ST_OK ? 0 : http_status_of(status));
}

static int on_message_complete(llhttp_t *parser)
{
    conn_of(parser)->is_complete = true;
    return HPE_PAUSED;
}

static const llhttp_settings_t parser_settings = {
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

/* ---- parsing --------------------------------------------------------------------------------- */

/* The message cannot be read to its end: its answer is the last one here. */
static void refuse(struct conn *conn)
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
    enter(conn, CONN_BUSY, params_of(conn)->request_timeout);
    request_run(request, false);
}

/* What has come ends within a message. */
static int on_part(struct conn *conn, const char *end)
{
    if (conn->state != CONN_BODY) {
        return 0;
    }
    set_deadline(conn, params_of(conn)->body_timeout);
    count_framing(conn, end);
    return verify_framing(conn);
}

/* Feeds the parser up to the end of one message; returns the bytes used. */
static size_t feed(struct conn *conn, struct span bytes)
{
    conn->counted = (const char *)bytes.ptr;
    enum llhttp_errno error = llhttp_execute(&conn->parser, conn->counted, bytes.len);
    if (error == HPE_OK && on_part(conn, (const char *)bytes.ptr + bytes.len) == 0) {
        return bytes.len;
    }
    if (error != HPE_PAUSED || !conn->is_complete) {
        refuse(conn);
        return bytes.len; /* nothing behind an error means anything */
    }
    size_t used = (size_t)((const uint8_t *)llhttp_get_error_pos(&conn->parser) - bytes.ptr);
    must(used <= bytes.len);
    bool is_keep_alive = llhttp_should_keep_alive(&conn->parser);
    llhttp_resume(&conn->parser);
    enter(conn, CONN_BUSY, params_of(conn)->request_timeout);
    request_run(conn->request, is_keep_alive);
    return used;
}

static bool is_reading_message(const struct conn *conn)
{
    return conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->state == CONN_BODY;
}

static void on_continue_written(uv_write_t *write, int uv_status)
{
    (void)write;
    (void)uv_status; /* the answer's own write meets the same error */
}

static void send_continue(struct conn *conn)
{
    static char text[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t buf = uv_buf_init(text, sizeof(text) - 1);
    conn->wants_continue = false;
    if (uv_try_write(&conn->io.stream, &buf, 1) == UV_EAGAIN) {
        uv_write(&conn->continue_write, &conn->io.stream, &buf, 1, on_continue_written);
    }
}

/* As many messages as |bytes| holds, until one has to be waited for; returns the bytes used. */
static size_t parse(struct conn *conn, struct span bytes)
{
    must(!conn->is_parsing);
    conn->is_parsing = true;
    size_t used = 0;
    while (used < bytes.len && is_reading_message(conn)) {
        used += feed(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
    conn->is_parsing = false;
    if (conn->state == CONN_BODY && conn->wants_continue && conn->request->body.len == 0) {
        send_continue(conn);
    }
    return used;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct conn *conn;
    OBJ_CAST(conn, handle->data, CONN_MAGIC);
    struct server *server = conn->server;
    *buf = uv_buf_init((char *)server->read_buffer, SERVER_READ_BYTES);
    if (conn->state == CONN_BODY && !conn->request->http_status &&
        head_has(&conn->request->head, HTTP_CONTENT_LENGTH)) {
        struct body *body = &conn->request->body;
        size_t missing = body->announced - body->len;
        if (missing >= DIRECT_BYTES_MIN) {
            *buf = uv_buf_init((char *)body->ptr + body->len,
                               missing > DIRECT_BYTES_MAX ? DIRECT_BYTES_MAX : (unsigned)missing);
        }
    }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);

static void start_reading(struct conn *conn)
{
    int rc = uv_read_start(&conn->io.stream, on_alloc, on_read);
    must(rc == 0);
    conn->is_stopped = false;
}

/* Bytes behind an unanswered request; when there are too many, the client has to wait. */
static void keep_ahead(struct conn *conn, struct span bytes)
{
    buf_add(&conn->ahead, bytes.ptr, bytes.len);
    if (buf_failed(&conn->ahead)) {
        conn_abort(conn);
    } else if (conn->ahead.len >= params_of(conn)->pipeline_bytes_max) {
        uv_read_stop(&conn->io.stream);
        conn->is_stopped = true;
    }
}

static void on_bytes(struct conn *conn, struct span bytes)
{
    if (conn->state == CONN_LINGER) {
        conn->discarded_bytes += bytes.len;
        if (conn->discarded_bytes > DISCARD_BYTES_MAX) {
            close_now(conn);
        }
        return;
    }
    size_t used = parse(conn, bytes);
    if (used < bytes.len && conn->state == CONN_BUSY) {
        keep_ahead(conn, span_of(bytes.ptr + used, bytes.len - used));
    }
}

/*
 * The client sends nothing more, and whether it still reads cannot be seen. An answer that is under
 * way goes out; work that has yet to be done is not begun for somebody who has probably gone.
 */
static void on_eof(struct conn *conn)
{
    conn->is_eof = true;
    if (conn->state != CONN_BUSY || request_is_waited_for(conn->request)) {
        conn_abort(conn);
    }
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct conn *conn;
    OBJ_CAST(conn, stream->data, CONN_MAGIC);
    if (count > 0) {
        on_bytes(conn, span_of(buf->base, (size_t)count));
    } else if (count == UV_EOF) {
        on_eof(conn);
    } else if (count < 0) {
        conn_abort(conn);
    }
}

/* ---- answering ------------------------------------------------------------------------------- */

bool conn_write(struct conn *conn, const uv_buf_t *bufs, unsigned count, uv_write_t *write,
                uv_write_cb on_write)
{
    uv_stream_t *stream = &conn->io.stream;
    int rc = uv_try_write(stream, bufs, count);
    size_t done = rc > 0 ? (size_t)rc : 0;
    if (rc < 0 && rc != UV_EAGAIN) {
        conn->is_broken = true;
        return true;
    }
    while (count && done >= bufs->len) {
        done -= bufs->len;
        bufs++;
        count--;
    }
    if (count == 0) {
        return true;
    }
    uv_buf_t rest[INFER_SPANS_MAX + 1];
    must(count <= INFER_SPANS_MAX + 1);
    memcpy(rest, bufs, count * sizeof(rest[0]));
    rest[0].base += done;
    rest[0].len -= done;
    if (uv_write(write, stream, rest, count, on_write) < 0) {
        conn->is_broken = true;
        return true;
    }
    conn->queued_bytes = stream->write_queue_size;
    set_deadline(conn, params_of(conn)->write_timeout);
    return false;
}

/* Goes on with what was read ahead, then with the socket. */
static void resume(struct conn *conn)
{
    size_t used = parse(conn, buf_span(&conn->ahead));
    if (conn->state == CONN_LINGER || conn->state == CONN_CLOSING) {
        return;
    }
    conn->ahead.len -= used;
    if (conn->ahead.len) {
        memmove(conn->ahead.ptr, conn->ahead.ptr + used, conn->ahead.len);
    } else {
        buf_fini(&conn->ahead); /* an idle connection is small */
    }
    if (conn->is_eof && conn->state != CONN_BUSY) {
        conn_abort(conn);
    } else if (conn->is_stopped && conn->ahead.len < params_of(conn)->pipeline_bytes_max) {
        start_reading(conn);
    }
}

void conn_answered(struct conn *conn, bool is_keep_alive)
{
    must(conn->request);
    conn->request = NULL;
    if (conn->state == CONN_CLOSING) {
        return;
    }
    if (!is_keep_alive || conn->is_broken) {
        linger(conn);
        return;
    }
    enter(conn, CONN_IDLE, params_of(conn)->idle_timeout);
    if (conn->is_parsing) {
        return;
    }
    if (conn->ahead.len || conn->is_eof) {
        resume(conn);
    } else if (conn->server->is_grace_over) {
        conn_drain(conn);
    }
}

/* ---- opening, time, draining ----------------------------------------------------------------- */

/* Over the limit a client gets a reason rather than a reset. */
static void turn_away(struct conn *conn)
{
    static const char body[] = "{\"error\":\"too many connections\"}";
    struct http_head head = {.status = 503,
                             .content_type = "application/json",
                             .content_length = sizeof(body) - 1,
                             .retry_after_s = 1,
                             .close = true};
    char text[HTTP_HEAD_BYTES_MAX];
    uv_buf_t bufs[] = {
        {.base = text, .len = http_print_head(&head, text)},
        {.base = (char *)(uintptr_t)body, .len = sizeof(body) - 1},
    };
    uv_try_write(&conn->io.stream, bufs, 2);
    linger(conn);
}

static int init_stream(struct conn *conn, uv_stream_t *listener)
{
    uv_loop_t *loop = &conn->server->loop;
    if (listener->type == UV_NAMED_PIPE) {
        return uv_pipe_init(loop, &conn->io.pipe, 0);
    }
    return uv_tcp_init(loop, &conn->io.tcp);
}

void conn_accept(struct server *server, uv_stream_t *listener)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        log_line(LOG_WARNING, "connection: out of memory");
        return; /* libuv stops accepting until the next attempt */
    }
    conn->magic = CONN_MAGIC;
    conn->server = server;
    if (init_stream(conn, listener) < 0) {
        free(conn);
        return;
    }
    conn->io.handle.data = conn;
    buf_init(&conn->ahead, server->params->pipeline_bytes_max + SERVER_READ_BYTES);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    enter(conn, CONN_IDLE, server->params->idle_timeout);
    if (uv_accept(listener, &conn->io.stream) < 0) {
        close_now(conn);
        return;
    }
    llhttp_init(&conn->parser, HTTP_REQUEST, &parser_settings);
    conn->parser.data = conn;
    if (listener->type == UV_TCP) {
        uv_tcp_nodelay(&conn->io.tcp, 1);
    }
    server_start_sweep(server);
    start_reading(conn);
    if (server->conn_count > server->connection_count_max) {
        turn_away(conn);
    }
}

/* The head or the body did not come in time. */
static void time_out_reading(struct conn *conn)
{
    struct request *request = conn->request;
    if (!request->http_status) {
        error_set(&request->err, ST_TIMEOUT, "request %s: not complete in time",
                  conn->state == CONN_HEAD ? "head" : "body");
        request_refuse(request, 408);
    }
    refuse(conn);
}

static void time_out_busy(struct conn *conn)
{
    size_t queued = conn->io.stream.write_queue_size;
    if (request_is_waited_for(conn->request)) {
        set_deadline(conn, params_of(conn)->request_timeout); /* the scheduler sees to it */
    } else if (queued < conn->queued_bytes) { /* the client takes its answer, if slowly */
        conn->queued_bytes = queued;
        set_deadline(conn, params_of(conn)->write_timeout);
    } else {
        conn_abort(conn);
    }
}

void conn_check_deadline(struct conn *conn, uint64_t now_ms)
{
    if (now_ms < conn->deadline_ms) {
        return;
    }
    switch (conn->state) {
    case CONN_HEAD:
    case CONN_BODY:
        time_out_reading(conn);
        break;
    case CONN_BUSY:
        time_out_busy(conn);
        break;
    case CONN_IDLE:
    case CONN_LINGER:
        close_now(conn);
        break;
    case CONN_CLOSING:
        break;
    }
}

/* Bytes have come that the loop has not seen yet. */
static bool has_unread(const struct conn *conn)
{
    int fd, bytes = 0;
    return uv_fileno(&conn->io.handle, &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
}

void conn_drain(struct conn *conn)
{
    if (conn->state == CONN_IDLE && !has_unread(conn)) {
        linger(conn);
    }
}
