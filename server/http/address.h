/* SPDX-License-Identifier: MIT */
/*
 * Where to listen: converts the text of --listen to socket addresses, and socket addresses to URLs.
 */
#ifndef PTED_SERVER_HTTP_ADDRESS_H
#define PTED_SERVER_HTTP_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/bytes.h"
#include "base/status.h"

/* The most addresses that a name may have, and the longest URL with its explanation. */
#define ADDRESS_COUNT_MAX 16
#define ADDRESS_TEXT_MAX 512

struct address {
    struct sockaddr_storage storage;
    socklen_t len;
    bool is_tls;  /* clients of it speak TLS */
    bool is_grpc; /* it is for gRPC alone */
};

/*
 * "ADDR:PORT", "[ADDR6]:PORT" or "NAME:PORT", where a name may have several addresses, each given
 * once; "unix:PATH" is one address. With "tls:" in front of it, its clients speak TLS, and with
 * "grpc:" in front of all it is for gRPC alone. Asks the
 * resolver, so it blocks. ST_INVALID: |text| has none of these forms; ST_SYSTEM: the name has no
 * address.
 */
MUST_CHECK enum status address_resolve(const char *text,
                                       struct address out_addresses[ADDRESS_COUNT_MAX],
                                       uint32_t *out_count, struct error *err);

/* Does |text| say "tls:"? */
bool address_is_tls(const char *text);

/* Does it say "grpc:"? A host of that name is followed by its port alone. */
bool address_is_grpc(const char *text);

/* Has |text| one of these forms? Asks nobody. ST_INVALID. */
MUST_CHECK enum status address_verify(const char *text, struct error *err);

/* Reads an IPv4 or IPv6 address in digits, without brackets, as an address with port 0. False: it
 * is none. */
bool address_read_ip(struct span text, struct address *out);

/* Returns the path of a socket in the file system; NULL for any other address. */
const char *address_path(const struct address *address);

/* Returns the port, or 0 if the address has none; the same internet address with another port. */
uint16_t address_port(const struct address *address);
void address_set_port(struct address *address, uint16_t port);

/* 127.0.0.0/8, also as an address of IPv6, or ::1. */
bool address_is_loopback(const struct address *address);

/* Prints "http://[::1]:8000", or "unix:/run/s (curl --unix-socket /run/s http://localhost/v2)"; of
 * TLS with https, and "grpc://[::1]:8001", "grpcs://..." of those for gRPC alone. */
void address_print_url(const struct address *address, char text[ADDRESS_TEXT_MAX]);

/* Prints "127.0.0.1:40000", "[::1]:40000"; with port 0 "127.0.0.1", "::1"; "unix" for a client of a
 * socket in the file system. */
void address_print(const struct address *address, char text[ADDRESS_TEXT_MAX]);

#endif
