/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/proxies.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"

#define BITS_DIGITS_MAX 3

/* |address| as a network of its own. False: it is of another family. */
static bool of_address(const struct address *address, struct proxies_network *out)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
    *out = (struct proxies_network){.family = AF_INET, .bits = 32};
    if (address->storage.ss_family == AF_INET) {
        memcpy(out->bytes, &in->sin_addr, 4);
    } else if (address->storage.ss_family != AF_INET6) {
        return false;
    } else if (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr)) {
        memcpy(out->bytes, in6->sin6_addr.s6_addr + 12, 4);
    } else {
        *out = (struct proxies_network){.family = AF_INET6, .bits = 128};
        memcpy(out->bytes, &in6->sin6_addr, 16);
    }
    return true;
}

/* Clears what is behind the first |bits| of |bytes|. */
static void cut(uint8_t bytes[16], unsigned bits)
{
    for (unsigned i = 0; i < 16; i++) {
        unsigned kept = bits > 8 * i ? bits - 8 * i : 0;
        bytes[i] &= (uint8_t)(kept >= 8 ? 0xff : 0xff << (8 - kept));
    }
}

/* Up to three digits. False: something else. */
static bool read_bits(const char *text, unsigned *out)
{
    size_t len = strspn(text, "0123456789");
    *out = 0;
    for (size_t i = 0; i < len && i < BITS_DIGITS_MAX; i++) {
        *out = *out * 10 + (unsigned)(text[i] - '0');
    }
    return len >= 1 && len <= BITS_DIGITS_MAX && text[len] == '\0';
}

static enum status read_network(const char *text, struct proxies_network *out, struct error *err)
{
    struct address address;
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);
    unsigned bits = 0;
    bool is_ip = address_read_ip(span_of(text, len), &address) && of_address(&address, out);
    if (!is_ip || (slash && !read_bits(slash + 1, &bits))) {
        return error_set(err, ST_INVALID, "expected ADDR, ADDR/BITS or unix, got '%.64s'", text);
    }
    if (!slash) {
        return ST_OK;
    }
    if (bits > out->bits) {
        return error_set(err, ST_INVALID, "expected at most %u bits, got '%.64s'", out->bits, text);
    }
    uint8_t bytes[16];
    memcpy(bytes, out->bytes, sizeof(bytes));
    out->bits = (uint8_t)bits;
    cut(out->bytes, bits);
    return memcmp(bytes, out->bytes, sizeof(bytes)) == 0
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "expected an address whose bits behind the first %s are 0, got '%.64s'",
                           slash + 1, text);
}

static bool is_unix(const char *text)
{
    return strcmp(text, "unix") == 0;
}

enum status proxies_verify(const char *text, struct error *err)
{
    struct proxies_network network;
    return is_unix(text) ? ST_OK : read_network(text, &network, err);
}

enum status proxies_read(struct proxies *proxies, const struct option_texts *texts,
                         struct error *err)
{
    *proxies = (struct proxies){.network_count = 0};
    for (uint32_t i = 0; i < texts->count; i++) {
        if (is_unix(texts->items[i])) {
            proxies->has_unix = true;
        } else {
            struct proxies_network *network = &proxies->networks[proxies->network_count++];
            TRY(read_network(texts->items[i], network, err));
        }
    }
    return ST_OK;
}

bool proxies_have(const struct proxies *proxies, const struct address *address)
{
    struct proxies_network whole, cut_off;
    if (address->storage.ss_family == AF_UNIX) {
        return proxies->has_unix;
    }
    bool is_found = false, is_ip = proxies->network_count > 0 && of_address(address, &whole);
    for (uint32_t i = 0; is_ip && !is_found && i < proxies->network_count; i++) {
        const struct proxies_network *network = &proxies->networks[i];
        cut_off = whole;
        cut(cut_off.bytes, network->bits);
        is_found = network->family == whole.family &&
                   memcmp(cut_off.bytes, network->bytes, sizeof(cut_off.bytes)) == 0;
    }
    return is_found;
}
