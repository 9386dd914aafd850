/* SPDX-License-Identifier: MIT */
/*
 * The lower bound for gRPC: only libuv and nghttp2. It answers each complete request with the same
 * message, on one thread, and ignores what was requested.
 *
 * usage: bare_grpc FILE, which has the message with its prefix; prints "listening on
 * http://127.0.0.1:PORT" and runs until it is killed.
 */
#include "config.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <nghttp2/nghttp2.h>
#include <uv.h>

#include "base/check.h"

#define READ_BYTES (64 << 10)
#define MESSAGE_BYTES_MAX 4096
#define FIELD(name, value)                                                                         \
    {                                                                                              \
        (uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, sizeof(name) - 1,                 \
            sizeof(value) - 1, NGHTTP2_NV_FLAG_NONE                                                \
    }

struct peer {
    uv_tcp_t tcp;
    nghttp2_session *session;
};

struct write {
    uv_write_t write;
    uint8_t bytes[];
};

static char read_buffer[READ_BYTES];
static uint8_t message[MESSAGE_BYTES_MAX];
static size_t message_bytes;

static void on_close(uv_handle_t *handle)
{
    struct peer *peer = handle->data;
    nghttp2_session_del(peer->session);
    free(peer);
}

/* ---- answers --------------------------------------------------------------------------------- */

static ssize_t on_source(nghttp2_session *session, int32_t stream, uint8_t *out, size_t room,
                         uint32_t *flags, nghttp2_data_source *source, void *user)
{
    static const nghttp2_nv trailers[] = {FIELD("grpc-status", "0")};
    (void)source;
    (void)user;
    must(message_bytes <= room);
    memcpy(out, message, message_bytes);
    *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    must(nghttp2_submit_trailer(session, stream, trailers, 1) == 0);
    return (ssize_t)message_bytes;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *user)
{
    static const nghttp2_nv fields[] = {FIELD(":status", "200"),
                                        FIELD("content-type", "application/grpc")};
    const nghttp2_data_provider source = {.read_callback = on_source};
    (void)user;
    bool may_end = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (may_end && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        return nghttp2_submit_response(session, frame->hd.stream_id, fields,
                                       sizeof(fields) / sizeof(fields[0]), &source);
    }
    return 0;
}

/* ---- bytes ----------------------------------------------------------------------------------- */

static void on_write(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
}

static void write_bytes(struct peer *peer, const uint8_t *bytes, size_t len)
{
    uv_buf_t buf = uv_buf_init((char *)(uintptr_t)bytes, (unsigned)len);
    int done = uv_try_write((uv_stream_t *)&peer->tcp, &buf, 1);
    size_t taken = done > 0 ? (size_t)done : 0;
    if (taken < len) {
        struct write *write = malloc(sizeof(*write) + len - taken);
        must(write);
        memcpy(write->bytes, bytes + taken, len - taken);
        buf = uv_buf_init((char *)write->bytes, (unsigned)(len - taken));
        write->write.data = write;
        uv_write(&write->write, (uv_stream_t *)&peer->tcp, &buf, 1, on_write);
    }
}

static void flush(struct peer *peer)
{
    static uint8_t flight[READ_BYTES];
    size_t len = 0;
    const uint8_t *bytes;
    for (ssize_t count; (count = nghttp2_session_mem_send(peer->session, &bytes)) > 0;) {
        if (len + (size_t)count > sizeof(flight)) {
            write_bytes(peer, flight, len);
            len = 0;
        }
        must((size_t)count <= sizeof(flight));
        memcpy(flight + len, bytes, (size_t)count);
        len += (size_t)count;
    }
    if (len) {
        write_bytes(peer, flight, len);
    }
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
    const uint8_t *bytes = (const uint8_t *)buf->base;
    if (count < 0 || nghttp2_session_mem_recv(peer->session, bytes, (size_t)count) < 0) {
        uv_close((uv_handle_t *)stream, on_close);
        return;
    }
    flush(peer);
}

static nghttp2_session_callbacks *callbacks;

static void on_connection(uv_stream_t *listener, int status)
{
    struct peer *peer = calloc(1, sizeof(*peer));
    must(status == 0 && peer);
    peer->tcp.data = peer;
    must(nghttp2_session_server_new(&peer->session, callbacks, peer) == 0);
    must(nghttp2_submit_settings(peer->session, NGHTTP2_FLAG_NONE, NULL, 0) == 0);
    must(uv_tcp_init(listener->loop, &peer->tcp) == 0);
    must(uv_accept(listener, (uv_stream_t *)&peer->tcp) == 0);
    uv_tcp_nodelay(&peer->tcp, 1);
    must(uv_read_start((uv_stream_t *)&peer->tcp, on_alloc, on_read) == 0);
}

static void read_message(const char *path)
{
    FILE *file = fopen(path, "rb");
    must(file);
    message_bytes = fread(message, 1, sizeof(message), file);
    must(message_bytes > 0);
    fclose(file);
}

int main(int argc, char *argv[])
{
    uv_loop_t *loop = uv_default_loop();
    uv_tcp_t listener;
    struct sockaddr_in address;
    int len = sizeof(address);
    if (argc != 2) {
        fprintf(stderr, "usage: bare_grpc FILE\n");
        return 1;
    }
    read_message(argv[1]);
    must(nghttp2_session_callbacks_new(&callbacks) == 0);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    uv_ip4_addr("127.0.0.1", 0, &address);
    must(uv_tcp_init(loop, &listener) == 0);
    must(uv_tcp_bind(&listener, (const struct sockaddr *)&address, 0) == 0);
    must(uv_listen((uv_stream_t *)&listener, 1024, on_connection) == 0);
    must(uv_tcp_getsockname(&listener, (struct sockaddr *)&address, &len) == 0);
    fprintf(stderr, "listening on http://127.0.0.1:%d\n", ntohs(address.sin_port));
    return uv_run(loop, UV_RUN_DEFAULT);
}
