/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/client.h"

#include <netinet/in.h>

#include "base/share.h"
#include "server/http/address.h"

#define NUMBER_BITS 48

enum kind {
    KIND_IPV4 = 0xff01,
    KIND_CONNECTION,
    KIND_PATH,
    KIND_TOKEN,
    KIND_NO_SENDER, /* ::/64 and ff00::/8: nobody sends from there, but a proxy may say so */
};

static uint64_t make(enum kind kind, uint64_t number)
{
    return (uint64_t)kind << NUMBER_BITS | (number & ((UINT64_C(1) << NUMBER_BITS) - 1));
}

static uint64_t big_endian(const uint8_t *bytes, unsigned count)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < count; i++) {
        number = number << 8 | bytes[i];
    }
    return number;
}

/* ::1 is the host that 127.0.0.1 is, and an IPv4 address in IPv6 form is that address. */
static uint64_t of_ipv6(const struct in6_addr *in6)
{
    if (IN6_IS_ADDR_LOOPBACK(in6)) {
        return make(KIND_IPV4, INADDR_LOOPBACK);
    }
    if (IN6_IS_ADDR_V4MAPPED(in6)) {
        return make(KIND_IPV4, big_endian(in6->s6_addr + 12, 4));
    }
    uint64_t network = big_endian(in6->s6_addr, 8);
    return network == 0 || in6->s6_addr[0] == 0xff ? make(KIND_NO_SENDER, 0) : network;
}

uint64_t client_of_address(const struct address *address)
{
    const struct sockaddr_storage *storage = &address->storage;
    switch (storage->ss_family) {
    case AF_INET:
        return make(KIND_IPV4, ntohl(((const struct sockaddr_in *)storage)->sin_addr.s_addr));
    case AF_INET6:
        return of_ipv6(&((const struct sockaddr_in6 *)storage)->sin6_addr);
    default:
        return SHARE_NOBODY;
    }
}

uint64_t client_that_lasts(uint64_t client)
{
    return client >> NUMBER_BITS == KIND_CONNECTION ? client_of_path() : client;
}

uint64_t client_of_path(void)
{
    return make(KIND_PATH, 0);
}

uint64_t client_of_connection(uint64_t number)
{
    return make(KIND_CONNECTION, number);
}

uint64_t client_of_token(uint64_t number)
{
    return make(KIND_TOKEN, number);
}
