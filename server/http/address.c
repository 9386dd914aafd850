/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/bytes.h"
#include "base/check.h"

#define SCHEME_UNIX "unix:"
#define SCHEME_TLS "tls:"
#define SCHEME_GRPC "grpc:"
#define HOST_BYTES_MAX 253 /* of a name (RFC 1035) */
#define PORT_MAX 65535

/* ---- from text ------------------------------------------------------------------------------- */

static enum status of_path(const char *path, struct address *out, struct error *err)
{
    struct sockaddr_un *un = (struct sockaddr_un *)&out->storage;
    size_t len = strlen(path), max = sizeof(un->sun_path) - 1;
    if (len == 0 || len > max) {
        return error_set(err, ST_INVALID,
                         "unix:PATH: expected a path of 1 to %zu bytes, got %zu bytes: "
                         "'%s'",
                         max, len, path);
    }
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, path, len + 1);
    out->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len + 1);
    return ST_OK;
}

static bool is_port(const char *text)
{
    size_t len = strspn(text, "0123456789");
    return len >= 1 && len <= 5 && text[len] == '\0' && strtol(text, NULL, 10) <= PORT_MAX;
}

/* Splits "HOST:PORT"; a host in brackets is an IPv6 address. */
static bool split(const char *text, char host[HOST_BYTES_MAX + 1], const char **out_port,
                  bool *out_is_v6)
{
    const char *colon = strrchr(text, ':');
    size_t len = colon ? (size_t)(colon - text) : 0;
    *out_is_v6 = len > 2 && text[0] == '[' && text[len - 1] == ']';
    if (*out_is_v6) {
        text++;
        len -= 2;
    }
    if (len == 0 || len > HOST_BYTES_MAX || !is_port(colon + 1)) {
        return false;
    }
    memcpy(host, text, len);
    host[len] = '\0';
    *out_port = colon + 1;
    return strpbrk(host, "[]") == NULL && (*out_is_v6 || !strchr(host, ':'));
}

/* A name can have two lines in /etc/hosts. */
static void add_once(const struct addrinfo *info, struct address *addresses, uint32_t *count)
{
    struct address *added = &addresses[*count];
    if (*count == ADDRESS_COUNT_MAX || info->ai_addrlen > sizeof(added->storage)) {
        return;
    }
    memset(&added->storage, 0, sizeof(added->storage));
    memcpy(&added->storage, info->ai_addr, info->ai_addrlen);
    added->len = info->ai_addrlen;
    for (uint32_t i = 0; i < *count; i++) {
        if (memcmp(&addresses[i].storage, &added->storage, sizeof(added->storage)) == 0) {
            return;
        }
    }
    ++*count;
}

static enum status resolve(const char *text, const char *host, const char *port, bool is_v6,
                           struct address *addresses, uint32_t *out_count, struct error *err)
{
    const struct addrinfo hints = {
        .ai_family = is_v6 ? AF_INET6 : AF_UNSPEC,
        .ai_socktype = SOCK_STREAM,
        .ai_flags = AI_PASSIVE | AI_NUMERICSERV | (is_v6 ? AI_NUMERICHOST : 0),
    };
    struct addrinfo *infos;
    int rc = getaddrinfo(host, port, &hints, &infos);
    if (rc != 0) {
        return error_set(err, ST_SYSTEM, "listen on %s: %s", text,
                         rc == EAI_SYSTEM ? strerror(errno) : gai_strerror(rc));
    }
    *out_count = 0;
    for (const struct addrinfo *info = infos; info; info = info->ai_next) {
        add_once(info, addresses, out_count);
    }
    freeaddrinfo(infos);
    return ST_OK;
}

static bool is_unix(const char *text)
{
    return strncmp(text, SCHEME_UNIX, strlen(SCHEME_UNIX)) == 0;
}

bool address_is_grpc(const char *text)
{
    size_t len = strlen(SCHEME_GRPC);
    return strncmp(text, SCHEME_GRPC, len) == 0 && strchr(text + len, ':');
}

static const char *skip_grpc(const char *text)
{
    return address_is_grpc(text) ? text + strlen(SCHEME_GRPC) : text;
}

bool address_is_tls(const char *text)
{
    return strncmp(skip_grpc(text), SCHEME_TLS, strlen(SCHEME_TLS)) == 0;
}

/* The text behind "grpc:" and "tls:". */
static const char *skip_schemes(const char *text)
{
    const char *rest = skip_grpc(text);
    return address_is_tls(text) ? rest + strlen(SCHEME_TLS) : rest;
}

enum status address_verify(const char *text, struct error *err)
{
    char host[HOST_BYTES_MAX + 1];
    struct address path;
    const char *port;
    bool is_v6;
    const char *whole = text;
    text = skip_schemes(text);
    if (is_unix(text)) {
        return of_path(text + strlen(SCHEME_UNIX), &path, err);
    }
    return split(text, host, &port, &is_v6)
               ? ST_OK
               : error_set(
                     err, ST_INVALID,
                     "expected ADDR:PORT, [ADDR6]:PORT, NAME:PORT or unix:PATH, or tls:, "
                           "grpc: or grpc:tls: and one of these, got '%s'",
                     whole);
}

enum status address_resolve(const char *text, struct address out_addresses[ADDRESS_COUNT_MAX],
                            uint32_t *out_count, struct error *err)
{
    char host[HOST_BYTES_MAX + 1];
    const char *port;
    bool is_v6;
    if (address_verify(text, err) != ST_OK) {
        return error_prefix(err, "--listen: ");
    }
    const char *rest = skip_schemes(text);
    if (is_unix(rest)) {
        *out_count = 1;
        TRY(of_path(rest + strlen(SCHEME_UNIX), out_addresses, err));
    } else {
        bool has_parts = split(rest, host, &port, &is_v6);
        must(has_parts);
        TRY(resolve(text, host, port, is_v6, out_addresses, out_count, err));
    }
    for (uint32_t i = 0; i < *out_count; i++) {
        out_addresses[i].is_tls = address_is_tls(text);
        out_addresses[i].is_grpc = address_is_grpc(text);
    }
    return ST_OK;
}

bool address_read_ip(struct span text, struct address *out)
{
    char ip[INET6_ADDRSTRLEN];
    *out = (struct address){.len = 0};
    if (text.len == 0 || text.len >= sizeof(ip) || memchr(text.ptr, '\0', text.len)) {
        return false;
    }
    memcpy(ip, text.ptr, text.len);
    ip[text.len] = '\0';
    struct sockaddr_in *in = (struct sockaddr_in *)&out->storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&out->storage;
    bool is_v6 = strchr(ip, ':') != NULL;
    out->storage.ss_family = is_v6 ? AF_INET6 : AF_INET;
    out->len = is_v6 ? sizeof(*in6) : sizeof(*in);
    return inet_pton(out->storage.ss_family, ip,
                     is_v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr) == 1;
}

/* ---- to text --------------------------------------------------------------------------------- */

const char *address_path(const struct address *address)
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
    bool is_path = un->sun_family == AF_UNIX &&
                   address->len > offsetof(struct sockaddr_un, sun_path) && un->sun_path[0];
    return is_path ? un->sun_path : NULL;
}

uint16_t address_port(const struct address *address)
{
    switch (address->storage.ss_family) {
    case AF_INET:
        return ntohs(((const struct sockaddr_in *)&address->storage)->sin_port);
    case AF_INET6:
        return ntohs(((const struct sockaddr_in6 *)&address->storage)->sin6_port);
    default:
        return 0;
    }
}

void address_set_port(struct address *address, uint16_t port)
{
    if (address->storage.ss_family == AF_INET) {
        ((struct sockaddr_in *)&address->storage)->sin_port = htons(port);
    } else if (address->storage.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&address->storage)->sin6_port = htons(port);
    }
}

bool address_is_loopback(const struct address *address)
{
    const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)&address->storage;
    if (address->storage.ss_family == AF_INET) {
        const struct sockaddr_in *in = (const struct sockaddr_in *)&address->storage;
        return ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
    }
    return address->storage.ss_family == AF_INET6 &&
           (IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr) ||
            (IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr) &&
             in6->sin6_addr.s6_addr[12] == IN_LOOPBACKNET));
}

static const char *scheme_of(const struct address *address)
{
    static const char *const schemes[2][2] = {{"http", "https"}, {"grpc", "grpcs"}};
    return schemes[address->is_grpc][address->is_tls];
}

/* The kernel's path need not be terminated; in the abstract name space it begins with NUL. */
static void print_unix_url(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
    const struct sockaddr_un *un = (const struct sockaddr_un *)&address->storage;
    size_t len = address->len - offsetof(struct sockaddr_un, sun_path);
    const char *path = un->sun_path, *scheme = scheme_of(address);
    if (len > 0 && path[0] && address->is_grpc) {
        snprintf(text, ADDRESS_TEXT_MAX, "%s://unix:%.*s", scheme, (int)strnlen(path, len), path);
    } else if (len > 0 && path[0]) {
        int used = (int)strnlen(path, len);
        snprintf(text, ADDRESS_TEXT_MAX, "unix:%.*s (curl --unix-socket %.*s %s://localhost/v2)",
                 used, path, used, path, scheme);
    } else if (len > 1) {
        int used = (int)len - 1;
        snprintf(text, ADDRESS_TEXT_MAX,
                 "unix:@%.*s (curl --abstract-unix-socket %.*s %s://localhost/v2)", used, path + 1,
                 used, path + 1, scheme);
    } else {
        snprintf(text, ADDRESS_TEXT_MAX, "unix: (a socket without a name)");
    }
}

void address_print(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
    char host[NI_MAXHOST];
    const struct sockaddr *generic = (const struct sockaddr *)&address->storage;
    if (generic->sa_family != AF_INET && generic->sa_family != AF_INET6) {
        snprintf(text, ADDRESS_TEXT_MAX, "unix");
        return;
    }
    if (getnameinfo(generic, address->len, host, sizeof(host), NULL, 0, NI_NUMERICHOST) != 0) {
        snprintf(host, sizeof(host), "?");
    }
    uint16_t port = address_port(address);
    if (port) {
        snprintf(text, ADDRESS_TEXT_MAX, generic->sa_family == AF_INET6 ? "[%.*s]:%u" : "%.*s:%u",
                 (int)(ADDRESS_TEXT_MAX / 2), host, port);
    } else {
        snprintf(text, ADDRESS_TEXT_MAX, "%.*s", (int)(ADDRESS_TEXT_MAX / 2), host);
    }
}

void address_print_url(const struct address *address, char text[ADDRESS_TEXT_MAX])
{
    char plain[ADDRESS_TEXT_MAX];
    if (address->storage.ss_family == AF_UNIX) {
        print_unix_url(address, text);
        return;
    }
    address_print(address, plain);
    snprintf(text, ADDRESS_TEXT_MAX, "%s://%.*s", scheme_of(address), ADDRESS_TEXT_MAX - 9, plain);
}
