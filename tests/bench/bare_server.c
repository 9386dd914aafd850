/* SPDX-License-Identifier: MIT */
/*
 * The lower bound for pted: only libuv and llhttp. It answers each complete request with the same
 * bytes in one write, on one thread, and ignores what was requested.
 *
 * usage: bare_server BODY; prints "listening on http://127.0.0.1:PORT" and runs until it is killed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <llhttp.h>
#include <uv.h>

#include "base/check.h"

#define READ_BYTES (64 << 10)

struct peer {
    uv_tcp_t tcp;
    uv_write_t write;
    llhttp_t parser;
};

static char read_buffer[READ_BYTES];
static char answer[4096];
static size_t answer_bytes;

static void on_close(uv_handle_t *handle)
{
    free(handle->data);
}

static void on_write(uv_write_t *write, int status)
{
    (void)write;
    (void)status;
}

static int on_message_complete(llhttp_t *parser)
{
    struct peer *peer = parser->data;
    uv_buf_t buf = uv_buf_init(answer, (unsigned)answer_bytes);
    if (uv_try_write((uv_stream_t *)&peer->tcp, &buf, 1) == UV_EAGAIN) {
        uv_write(&peer->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_write);
    }
    return 0;
}

static void on_alloc(uv_handle_t *handle, size_t size, uv_buf_t *buf)
{
    (void)handle;
    (void)size;
    *buf = uv_buf_init(read_buffer, sizeof(read_buffer));
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct peer *peer = stream->data;
    if (count < 0 ||
        (count > 0 && llhttp_execute(&peer->parser, buf->base, (size_t)count) != HPE_OK)) {
        uv_close((uv_handle_t *)stream, on_close);
    }
}

static void on_connection(uv_stream_t *listener, int status)
{
    static llhttp_settings_t settings;
    settings.on_message_complete = on_message_complete;
    struct peer *peer = calloc(1, sizeof(*peer));
    must(status == 0 && peer);
    uv_tcp_init(listener->loop, &peer->tcp);
    peer->tcp.data = peer;
    llhttp_init(&peer->parser, HTTP_REQUEST, &settings);
    peer->parser.data = peer;
    int rc = uv_accept(listener, (uv_stream_t *)&peer->tcp);
    must(rc == 0);
    uv_tcp_nodelay(&peer->tcp, 1);
    uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read);
}

int main(int argc, char *argv[])
{
    const char *body = argc > 1 ? argv[1] : "{}";
    int len = snprintf(answer, sizeof(answer),
                       "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       strlen(body), body);
    must(len > 0 && (size_t)len < sizeof(answer));
    answer_bytes = (size_t)len;
    uv_tcp_t listener;
    struct sockaddr_in address;
    int address_bytes = sizeof(address);
    uv_tcp_init(uv_default_loop(), &listener);
    uv_ip4_addr("127.0.0.1", 0, &address);
    uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0);
    int rc = uv_listen((uv_stream_t *)&listener, 1024, on_connection);
    must(rc == 0);
    uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &address_bytes);
    fprintf(stderr, "listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}
