/* SPDX-License-Identifier: MIT */
/* A socket of either family, as libuv's functions want to see it. */
#ifndef PTED_SERVER_STREAM_H
#define PTED_SERVER_STREAM_H

#include <uv.h>

union stream {
    uv_handle_t handle;
    uv_stream_t stream;
    uv_tcp_t tcp;
    uv_pipe_t pipe;
};

#endif
