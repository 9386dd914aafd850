/* SPDX-License-Identifier: MIT */
/*
 * Who a client is, as a number for base/share.h: the token that it has sent, else its address. An
 * IPv6 address counts by its first 64 bits, because a host has all of those behind them to choose
 * from (RFC 4291, section 2.5.1). The system names no client of a socket in the file system, so
 * each connection there is a client, or all of them are one (--unix-clients).
 *
 * Numbers of different kinds never meet: the first 16 bits of a number that is no IPv6 network are
 * those of multicast networks (ff00::/8), from which nobody sends.
 *
 *     peer.place_client   of a transport, set by the listener: the other end of the connection,
 *                         charged for its place; of a proxy (--proxy) the connection itself
 *     peer.client         the other end of the connection
 *     exchange->client    the same
 *     request->client.id  the same, or who a proxy says that it is, or the token that the request
 *                         came with; SHARE_NOBODY for administrators and probes. This one is
 *                         charged for what requests take.
 */
#ifndef PTED_SERVER_HTTP_CLIENT_H
#define PTED_SERVER_HTTP_CLIENT_H

#include <stdbool.h>
#include <stdint.h>

struct address;

/* The client of a request. */
struct http_client {
    uint64_t id;            /* who is charged for what the request takes */
    const char *token_name; /* of the token that came with it; NULL: none; borrowed */
    bool is_local;          /* it came by a way that --shared-memory names */
    bool is_operator;       /* an administrator, by its address or by the scope of its token */
    unsigned scopes;        /* of enum token_scope: what it may ask for */
};

/* |address| of a family other than IPv4 and IPv6 is SHARE_NOBODY. */
uint64_t client_of_address(const struct address *address);

/* Returns all clients of sockets in the file system as one. */
uint64_t client_of_path(void);

/* |number|: of the connection, or of the token; it has at most 48 bits. */
uint64_t client_of_connection(uint64_t number);
uint64_t client_of_token(uint64_t number);

/* Returns who is charged for what outlives connections: those of sockets in the file system are
 * one. */
uint64_t client_that_lasts(uint64_t client);

#endif
