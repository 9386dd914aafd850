/* SPDX-License-Identifier: MIT */
/* The plain transport: a connected stream socket of either family. Loop thread. */
#ifndef PTED_SERVER_HTTP_TRANSPORT_SOCKET_H
#define PTED_SERVER_HTTP_TRANSPORT_SOCKET_H

#include <stdbool.h>

#include <uv.h>

#include "server/http/transport.h"

/*
 * Takes over |fd|, a connected socket in the file system (|is_unix|) or of the network. NULL: there
 * is no memory or no place for it; |*out_uv_code| has libuv's reason and |fd| is still the
 * caller's.
 */
struct transport *transport_socket_new(uv_loop_t *loop, int fd, bool is_unix, int *out_uv_code);

/* Asks the system for the address of the other side. Its family is 0 if that is not known. */
struct address;
void transport_socket_peer(const struct transport *transport, struct address *out);

/* Returns the descriptor, or -1. For tests that change the socket's buffers. */
int transport_socket_fd(const struct transport *transport);

#endif
