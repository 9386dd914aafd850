/* SPDX-License-Identifier: MIT */
/* Any bytes as the header of a proxy. Room is inside of the header and never none, no more is taken
 * than that, and pieces change nothing. A header that names a client names it again as a line of
 * version 1. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/check.h"
#include "server/http/proxy_header.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static size_t feed(struct proxy_header *header, struct span text, size_t piece,
                   enum status *out_status)
{
    struct error err = {0};
    size_t used = 0;
    *header = (struct proxy_header){.len = 0};
    *out_status = ST_OK;
    while (*out_status == ST_OK && !header->is_complete && used < text.len) {
        uint8_t *room;
        size_t len;
        proxy_header_room(header, &room, &len);
        must(len > 0 && room >= header->bytes &&
             room + len <= header->bytes + sizeof(header->bytes));
        len = len < piece ? len : piece;
        len = len < text.len - used ? len : text.len - used;
        memcpy(room, text.ptr + used, len);
        used += len;
        *out_status = proxy_header_add(header, len, &err);
        must(*out_status == err.code && (*out_status == ST_OK || err.text[0]));
    }
    return used;
}

/* "[::1]:80" as a line. */
static void check_again(const struct address *client)
{
    char text[ADDRESS_TEXT_MAX], line[ADDRESS_TEXT_MAX * 2], same[ADDRESS_TEXT_MAX];
    struct address ip = *client;
    struct proxy_header header;
    enum status status;
    bool is_v6 = client->storage.ss_family == AF_INET6;
    address_print(client, text);
    address_set_port(&ip, 0);
    address_print(&ip, same);
    int len = snprintf(line, sizeof(line), "PROXY TCP%c %s %s %u 1\r\n", is_v6 ? '6' : '4', same,
                       is_v6 ? "::" : "1.1.1.1", address_port(client));
    size_t used = feed(&header, span_of(line, (size_t)len), SIZE_MAX, &status);
    must(status == ST_OK && header.is_named && used == (size_t)len);
    address_print(&header.client, same);
    must(strcmp(text, same) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct proxy_header header, again;
    enum status status, other;
    struct span text = span_of(data, size);
    size_t used = feed(&header, text, SIZE_MAX, &status);
    size_t used_again = feed(&again, text, 1, &other);
    must(status == other && header.is_complete == again.is_complete &&
         header.is_named == again.is_named);
    must(status != ST_OK || used == used_again);
    if (header.is_named && status == ST_OK && header.is_complete) {
        check_again(&header.client);
    }
    return 0;
}
