/* SPDX-License-Identifier: MIT */
/*
 * Proxies whose word about a client's address is believed, as --proxy names them. The word of any
 * other peer counts for nothing. Immutable once it is read; any thread.
 */
#ifndef PTED_SERVER_HTTP_PROXIES_H
#define PTED_SERVER_HTTP_PROXIES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "server/http/address.h"
#include "server/process/options.h"

/* The network of an address. */
struct proxies_network {
    sa_family_t family; /* of IPv4 also for an IPv4 address in IPv6 form */
    uint8_t bits;       /* that an address in it begins with ... */
    uint8_t bytes[16];  /* ... here; the others are 0 */
};

struct proxies {
    struct proxies_network networks[OPTIONS_TEXTS_MAX];
    uint32_t network_count;
    bool has_unix; /* whoever opens a socket in the file system is a proxy */
};

/* Reads "192.0.2.1", "10.0.0.0/8", "2001:db8::/32" and "unix". ST_INVALID says what is wrong with
 * one of |texts|. */
MUST_CHECK enum status proxies_read(struct proxies *proxies, const struct option_texts *texts,
                                    struct error *err);

/* Is |text| one of these forms? ST_INVALID. */
MUST_CHECK enum status proxies_verify(const char *text, struct error *err);

/* Is |address| that of a proxy? */
bool proxies_have(const struct proxies *proxies, const struct address *address);

#endif
