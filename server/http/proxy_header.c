/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/proxy_header.h"

#include <netinet/in.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"

#define FIRST_BYTES 12 /* no header is shorter, and so long is the signature of version 2 */
#define FIXED_BYTES 16 /* of version 2, before the addresses */
#define PORT_MAX 65535

static const char line_begin[] = "PROXY ";
static const uint8_t signature[FIRST_BYTES] = "\r\n\r\n\0\r\nQUIT\n";

enum command { COMMAND_LOCAL, COMMAND_PROXY };

static bool is_line(const struct proxy_header *header)
{
    return header->bytes[0] == (uint8_t)line_begin[0];
}

/* Of version 2, once its fixed part has come. */
static uint32_t whole_len(const struct proxy_header *header)
{
    return FIXED_BYTES + ((uint32_t)header->bytes[14] << 8 | header->bytes[15]);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* A line ends with CR LF: behind another byte there are two more. */
static size_t left_of_line(const struct proxy_header *header)
{
    return header->bytes[header->len - 1] == '\r' || header->len + 1 == PROXY_HEADER_LINE_MAX ? 1
                                                                                              : 2;
}

void proxy_header_room(struct proxy_header *header, uint8_t **out_ptr, size_t *out_len)
{
    must(!header->is_complete);
    bool is_kept = is_line(header) || header->len < PROXY_HEADER_BLOCK_MAX;
    *out_ptr = header->bytes + (is_kept ? header->len : PROXY_HEADER_BLOCK_MAX);
    if (header->len < FIRST_BYTES) {
        *out_len = FIRST_BYTES - header->len;
    } else if (is_line(header)) {
        *out_len = left_of_line(header);
    } else if (header->len < FIXED_BYTES) {
        *out_len = FIXED_BYTES - header->len;
    } else {
        size_t left = whole_len(header) - header->len;
        size_t most = is_kept ? PROXY_HEADER_BLOCK_MAX - header->len : PROXY_HEADER_SKIP_MAX;
        *out_len = left < most ? left : most;
    }
}

/* ---- version 1 ------------------------------------------------------------------------------- */

static enum status fail_line(struct span line, const char *expected, struct error *err)
{
    return error_set(err, ST_INVALID, "PROXY header: expected %s, got '%.*s'", expected,
                     (int)line.len, (const char *)line.ptr);
}

/* The text before the next blank, which is taken off |*rest|. */
static struct span take_word(struct span *rest)
{
    const uint8_t *blank = rest->len ? memchr(rest->ptr, ' ', rest->len) : NULL;
    size_t len = blank ? (size_t)(blank - rest->ptr) : rest->len;
    struct span word = span_of(rest->ptr, len);
    *rest = span_of(rest->ptr + len + (blank != NULL), rest->len - len - (blank != NULL));
    return word;
}

static bool read_port(struct span word, uint16_t *out)
{
    uint32_t port = 0;
    bool is_good = word.len >= 1 && word.len <= 5 && (word.ptr[0] != '0' || word.len == 1);
    for (size_t i = 0; is_good && i < word.len; i++) {
        is_good = word.ptr[i] >= '0' && word.ptr[i] <= '9';
        port = port * 10 + (uint32_t)(word.ptr[i] - '0');
    }
    *out = (uint16_t)port;
    return is_good && port <= PORT_MAX;
}

/* The two addresses and ports behind "PROXY TCP4 ". */
static bool read_words(struct span rest, sa_family_t family, struct address *out_client)
{
    struct address to;
    uint16_t port, to_port;
    struct span words[4];
    for (unsigned i = 0; i < 4; i++) {
        words[i] = take_word(&rest);
    }
    bool has_more = rest.len > 0 || rest.ptr[-1] == ' ';
    bool is_good = address_read_ip(words[0], out_client) && address_read_ip(words[1], &to) &&
                   read_port(words[2], &port) && read_port(words[3], &to_port) && !has_more &&
                   out_client->storage.ss_family == family && to.storage.ss_family == family;
    if (is_good) {
        address_set_port(out_client, port);
    }
    return is_good;
}

/* |line| without its end. */
static enum status read_line(struct proxy_header *header, struct span line, struct error *err)
{
    struct span rest = span_of(line.ptr + strlen(line_begin), line.len - strlen(line_begin));
    struct span protocol = take_word(&rest);
    header->is_complete = span_is(protocol, "UNKNOWN");
    if (header->is_complete) {
        return ST_OK;
    }
    bool is_v4 = span_is(protocol, "TCP4"), is_v6 = span_is(protocol, "TCP6");
    if (!is_v4 && !is_v6) {
        return fail_line(line, "PROXY TCP4, TCP6 or UNKNOWN", err);
    }
    header->is_named = read_words(rest, is_v4 ? AF_INET : AF_INET6, &header->client);
    header->is_complete = header->is_named;
    return header->is_named ? ST_OK
                            : fail_line(line,
                                        is_v4 ? "PROXY TCP4 FROM TO PORT PORT, addresses of IPv4"
                                              : "PROXY TCP6 FROM TO PORT PORT, addresses of IPv6",
                                        err);
}

static enum status check_line(struct proxy_header *header, struct error *err)
{
    struct span text = span_of(header->bytes, header->len);
    size_t begin = text.len < strlen(line_begin) ? text.len : strlen(line_begin);
    if (memcmp(text.ptr, line_begin, begin) != 0) {
        return fail_line(text, "PROXY at its beginning, or the signature of version 2", err);
    }
    const uint8_t *end = memchr(text.ptr, '\r', text.len);
    const uint8_t *feed = memchr(text.ptr, '\n', text.len);
    const uint8_t *last = text.ptr + text.len - 1;
    if (feed ? feed != last || end != last - 1 : end && end != last) {
        return fail_line(text, "one line that ends with CR LF", err);
    }
    if (feed) {
        return read_line(header, span_of(text.ptr, text.len - 2), err);
    }
    return text.len < PROXY_HEADER_LINE_MAX
               ? ST_OK
               : fail_line(text, "at most 107 bytes with CR LF at their end", err);
}

/* ---- version 2 ------------------------------------------------------------------------------- */

/* The bytes of both addresses and ports of a family of sockets, by its number in byte 13. */
static int block_bytes(uint8_t family)
{
    switch (family) {
    case 0x00: /* unspecified */
        return 0;
    case 0x11: /* TCP over IPv4 */
    case 0x12: /* UDP: the client speaks HTTP/3 to the proxy */
        return 12;
    case 0x21: /* the same over IPv6 */
    case 0x22:
        return 36;
    case 0x31: /* sockets in the file system */
    case 0x32:
        return 216;
    default:
        return -1;
    }
}

static enum status check_fixed(const struct proxy_header *header, struct error *err)
{
    unsigned version = header->bytes[12] >> 4, command = header->bytes[12] & 0xf;
    int needed = block_bytes(header->bytes[13]);
    uint32_t len = whole_len(header) - FIXED_BYTES;
    if (version != 2 || command > COMMAND_PROXY) {
        return error_set(err, ST_INVALID,
                         "PROXY header, byte 12: expected version 2 and command 0 or 1, got 0x%02x",
                         header->bytes[12]);
    }
    if (command == COMMAND_LOCAL) {
        return ST_OK; /* the rest means nothing */
    }
    if (needed < 0) {
        return error_set(err, ST_INVALID,
                         "PROXY header, byte 13: expected a family and protocol such as 0x11, got "
                         "0x%02x",
                         header->bytes[13]);
    }
    return len >= (uint32_t)needed
               ? ST_OK
               : error_set(err, ST_INVALID,
                           "PROXY header, byte 14: expected a length of %d or more, got %u", needed,
                           len);
}

/* The first of the two addresses. */
static void read_block(struct proxy_header *header)
{
    struct sockaddr_in *in = (struct sockaddr_in *)&header->client.storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&header->client.storage;
    const uint8_t *block = header->bytes + FIXED_BYTES;
    int bytes = block_bytes(header->bytes[13]);
    if ((header->bytes[12] & 0xf) == COMMAND_LOCAL) {
        return;
    }
    if (bytes == 12) {
        in->sin_family = AF_INET;
        memcpy(&in->sin_addr, block, 4);
        memcpy(&in->sin_port, block + 8, 2);
        header->client.len = sizeof(*in);
    } else if (bytes == 36) {
        in6->sin6_family = AF_INET6;
        memcpy(&in6->sin6_addr, block, 16);
        memcpy(&in6->sin6_port, block + 32, 2);
        header->client.len = sizeof(*in6);
    }
    header->is_named = header->client.len > 0;
}

/* |before|: the length before these bytes. */
static enum status check_binary(struct proxy_header *header, uint32_t before, struct error *err)
{
    uint32_t begin = header->len < FIRST_BYTES ? header->len : FIRST_BYTES;
    if (before < FIRST_BYTES && memcmp(header->bytes, signature, begin) != 0) {
        return fail_line(span_of(header->bytes, begin),
                         "PROXY at its beginning, or the signature of version 2", err);
    }
    if (before < FIXED_BYTES && header->len >= FIXED_BYTES) {
        TRY(check_fixed(header, err));
    }
    header->is_complete = header->len >= FIXED_BYTES && header->len == whole_len(header);
    if (header->is_complete) {
        read_block(header);
    }
    return ST_OK;
}

enum status proxy_header_add(struct proxy_header *header, size_t len, struct error *err)
{
    uint32_t before = header->len;
    must(len > 0 && !header->is_complete);
    header->len += (uint32_t)len;
    return is_line(header) ? check_line(header, err) : check_binary(header, before, err);
}
