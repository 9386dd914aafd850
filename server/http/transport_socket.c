/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/transport_socket.h"

#include <limits.h>
#include <stdlib.h>
#include <sys/ioctl.h>

#include "base/check.h"
#include "server/http/address.h"

#define SOCKET_MAGIC 0x736f636bu

struct transport_socket {
    struct transport transport; /* first: it has the address of the whole struct */
    uint32_t magic;
    uv_shutdown_t shutdown;
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_tcp_t tcp;
        uv_pipe_t pipe;
    } io;
};

static struct transport_socket *socket_of(const struct transport *transport)
{
    struct transport_socket *socket;
    OBJ_CAST(socket, (void *)(uintptr_t)transport, SOCKET_MAGIC);
    return socket;
}

static struct transport_socket *socket_of_handle(const uv_handle_t *handle)
{
    struct transport_socket *socket;
    OBJ_CAST(socket, handle->data, SOCKET_MAGIC);
    return socket;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    (void)suggested;
    struct transport_room room = transport_tell_room(&socket_of_handle(handle)->transport);
    must(room.len <= UINT_MAX);
    *buf = uv_buf_init((char *)room.ptr, (unsigned)room.len);
}

static void on_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct transport *transport = &socket_of_handle((uv_handle_t *)stream)->transport;
    const struct span none = {0};
    if (count > 0) {
        transport_tell(transport, TRANSPORT_BYTES, span_of(buf->base, (size_t)count));
    } else if (count == UV_EOF) {
        transport_tell(transport, TRANSPORT_END, none);
    } else if (count == UV_ENOBUFS) { /* on_alloc() had no room */
        transport_tell(transport, TRANSPORT_NO_ROOM, none);
    } else if (count < 0) {
        transport_tell(transport, TRANSPORT_BROKEN, none);
    }
}

static void do_read(struct transport *transport, bool is_on)
{
    uv_stream_t *stream = &socket_of(transport)->io.stream;
    if (is_on) {
        int rc = uv_read_start(stream, on_alloc, on_read);
        must(rc == 0);
    } else {
        uv_read_stop(stream);
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

static void on_written(uv_write_t *request, int uv_status)
{
    struct transport_rest *rest;
    OBJ_CAST(rest, request->data, TRANSPORT_REST_MAGIC);
    rest->magic = 0;
    rest->done(rest, uv_status == 0);
}

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    uv_stream_t *stream = &socket_of(transport)->io.stream;
    uv_buf_t bufs[TRANSPORT_SPANS_MAX];
    for (unsigned i = 0; i < count; i++) {
        bufs[i] = (uv_buf_t){.base = (char *)(uintptr_t)spans[i].ptr, .len = spans[i].len};
    }
    if (!rest) {
        int rc = uv_try_write(stream, bufs, count);
        return rc >= 0 ? rc : rc == UV_EAGAIN ? 0 : -1;
    }
    must(rest->magic != TRANSPORT_REST_MAGIC); /* it waits already */
    rest->magic = TRANSPORT_REST_MAGIC;
    rest->request.data = rest;
    if (uv_write(&rest->request, stream, bufs, count, on_written) < 0) {
        rest->magic = 0;
        return -1;
    }
    return 0;
}

static void on_shutdown(uv_shutdown_t *shutdown, int uv_status)
{
    transport_tell_shut(&socket_of_handle((uv_handle_t *)shutdown->handle)->transport,
                        uv_status == 0);
}

static bool do_shutdown(struct transport *transport)
{
    struct transport_socket *socket = socket_of(transport);
    return uv_shutdown(&socket->shutdown, &socket->io.stream, on_shutdown) == 0;
}

/* ---- opening, closing ------------------------------------------------------------------------ */

static void on_close(uv_handle_t *handle)
{
    struct transport_socket *socket = socket_of_handle(handle);
    socket->magic = 0;
    transport_tell_closed(&socket->transport);
    free(socket);
}

static void do_close(struct transport *transport)
{
    uv_close(&socket_of(transport)->io.handle, on_close);
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    const struct transport_socket *socket = socket_of(transport);
    int fd, bytes = 0;
    if (way == TRANSPORT_OUT) {
        return socket->io.stream.write_queue_size;
    }
    bool is_known =
        uv_fileno(&socket->io.handle, &fd) == 0 && ioctl(fd, FIONREAD, &bytes) == 0 && bytes > 0;
    return is_known ? (size_t)bytes : 0;
}

static const struct transport_ops socket_ops = {
    .read = do_read,
    .write = do_write,
    .shutdown = do_shutdown,
    .close = do_close,
    .pending = do_pending,
};

/* Initialising cannot fail, because no socket is made; from here on the handle has to be closed. */
static int open_stream(struct transport_socket *socket, uv_loop_t *loop, int fd, bool is_unix)
{
    if (is_unix) {
        uv_pipe_init(loop, &socket->io.pipe, 0);
        return uv_pipe_open(&socket->io.pipe, fd);
    }
    uv_tcp_init(loop, &socket->io.tcp);
    int rc = uv_tcp_open(&socket->io.tcp, fd);
    if (rc == 0) {
        uv_tcp_nodelay(&socket->io.tcp, 1);
    }
    return rc;
}

struct transport *transport_socket_new(uv_loop_t *loop, int fd, bool is_unix, int *out_uv_code)
{
    struct transport_socket *socket = calloc(1, sizeof(*socket));
    if (!socket) {
        *out_uv_code = UV_ENOMEM;
        return NULL;
    }
    socket->magic = SOCKET_MAGIC;
    transport_init(&socket->transport, &socket_ops);
    *out_uv_code = open_stream(socket, loop, fd, is_unix);
    socket->io.handle.data = socket;
    if (*out_uv_code < 0) {
        do_close(&socket->transport);
        return NULL;
    }
    return &socket->transport;
}

void transport_socket_peer(const struct transport *transport, struct address *out)
{
    *out = (struct address){.len = sizeof(out->storage)};
    if (getpeername(transport_socket_fd(transport), (struct sockaddr *)&out->storage, &out->len) <
        0) {
        *out = (struct address){.len = 0};
    }
}

int transport_socket_fd(const struct transport *transport)
{
    int fd;
    return uv_fileno(&socket_of(transport)->io.handle, &fd) == 0 ? fd : -1;
}
