/* SPDX-License-Identifier: MIT */
/*
 * Bytes reach the parser (conn_message.c) from on_read() or, when they were read ahead, from
 * resume(); both go through parse().
 *
 * Requests usually end inside the call that completed them. conn_answered() then only changes the
 * state and parse() goes on with the next message; it is a loop, never a recursion.
 */
#include "config.h"

#include "server/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/check.h"
#include "server/address.h"
#include "server/conn_priv.h"
#include "server/http.h"
#include "server/log.h"
#include "server/request.h"
#include "server/server.h"

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

void conn_set_deadline(struct conn *conn, uint64_t ms)
{
    conn->deadline_ms = uv_now(&conn->server->loop) + ms;
}

void conn_enter(struct conn *conn, enum conn_state state, uint64_t ms)
{
    must(conn->state != CONN_CLOSING);
    conn->state = state;
    conn_set_deadline(conn, ms);
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
    conn_enter(conn, CONN_LINGER, conn_params(conn)->linger_timeout);
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

/* ---- parsing --------------------------------------------------------------------------------- */

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
    int rc = uv_try_write(&conn->io.stream, &buf, 1);
    size_t done = rc > 0 ? (size_t)rc : 0;
    if (done < buf.len && (rc >= 0 || rc == UV_EAGAIN)) {
        buf = uv_buf_init(text + done, (unsigned)(buf.len - done));
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
        used += conn_message_feed(conn, span_of(bytes.ptr + used, bytes.len - used));
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
    size_t len = conn_message_missing(conn);
    if (len >= DIRECT_BYTES_MIN) {
        struct body *body = &conn->request->body;
        must(in_range(body->len, len, body->capacity));
        *buf = uv_buf_init((char *)body->ptr + body->len,
                           len > DIRECT_BYTES_MAX ? DIRECT_BYTES_MAX : (unsigned)len);
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
    } else if (conn->ahead.len >= conn_params(conn)->pipeline_bytes_max) {
        uv_read_stop(&conn->io.stream);
        conn->is_stopped = true;
    }
}

static void on_bytes(struct conn *conn, struct span bytes)
{
    if (conn->state == CONN_LINGER) {
        conn->discarded_bytes += bytes.len;
        if (conn->discarded_bytes > CONN_DISCARD_BYTES_MAX) {
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
    conn_set_deadline(conn, conn_params(conn)->write_timeout);
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
    } else if (conn->is_stopped && conn->ahead.len < conn_params(conn)->pipeline_bytes_max) {
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
    conn_enter(conn, CONN_IDLE, conn_params(conn)->idle_timeout);
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

/* Initialising cannot fail without a socket to make; the handle has to be closed from then on. */
static int open_stream(struct conn *conn, int fd, bool is_unix)
{
    uv_loop_t *loop = &conn->server->loop;
    if (is_unix) {
        uv_pipe_init(loop, &conn->io.pipe, 0);
        return uv_pipe_open(&conn->io.pipe, fd);
    }
    uv_tcp_init(loop, &conn->io.tcp);
    int rc = uv_tcp_open(&conn->io.tcp, fd);
    if (rc == 0) {
        uv_tcp_nodelay(&conn->io.tcp, 1);
    }
    return rc;
}

/* Who has connected, for the log. */
static void name_remote(struct conn *conn, int fd)
{
    struct address address = {.len = sizeof(address.storage)};
    char text[ADDRESS_TEXT_MAX] = "?";
    if (getpeername(fd, (struct sockaddr *)&address.storage, &address.len) == 0) {
        address_print(&address, text);
    }
    snprintf(conn->remote, sizeof(conn->remote), "%.*s", CONN_REMOTE_MAX - 1, text);
}

static void refuse_fd(struct server *server, int fd, int uv_code)
{
    if (server_may_log(server, LOG_KIND_ACCEPT)) {
        log_line(LOG_WARNING, "connection: %s", uv_strerror(uv_code));
    }
    close(fd);
}

void conn_accept(struct server *server, int fd, bool is_unix)
{
    struct conn *conn = calloc(1, sizeof(*conn));
    if (!conn) {
        refuse_fd(server, fd, UV_ENOMEM);
        return;
    }
    conn->magic = CONN_MAGIC;
    conn->server = server;
    int rc = open_stream(conn, fd, is_unix);
    conn->io.handle.data = conn;
    buf_init(&conn->ahead, server->params->pipeline_bytes_max + SERVER_READ_BYTES);
    list_push_back(&server->conns, &conn->link);
    server->conn_count++;
    conn_enter(conn, CONN_IDLE, server->params->idle_timeout);
    if (rc < 0) {
        refuse_fd(server, fd, rc);
        close_now(conn);
        return;
    }
    if (server->options->log_requests == OPTIONS_LOG_ALL) {
        name_remote(conn, fd);
    }
    conn_message_init(conn);
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
    conn_message_refuse(conn);
}

static void time_out_busy(struct conn *conn)
{
    size_t queued = conn->io.stream.write_queue_size;
    if (request_is_waited_for(conn->request)) {
        conn_set_deadline(conn, conn_params(conn)->request_timeout); /* the scheduler sees to it */
    } else if (queued < conn->queued_bytes) { /* the client takes its answer, if slowly */
        conn->queued_bytes = queued;
        conn_set_deadline(conn, conn_params(conn)->write_timeout);
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
