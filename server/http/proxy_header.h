/* SPDX-License-Identifier: MIT */
/*
 * What a proxy sends before the first byte of its client: the header of the PROXY protocol, version
 * 1 (a line of text) or 2 (binary), as doc/proxy-protocol.txt of haproxy describes them. It says
 * between which addresses the client has made its connection to the proxy.
 *
 * The header comes in pieces, and no byte behind it is taken. Lengths are checked before they are
 * used, and memory is bounded: the parts of version 2 behind the addresses are skipped.
 *
 * One thread.
 */
#ifndef PTED_SERVER_HTTP_PROXY_HEADER_H
#define PTED_SERVER_HTTP_PROXY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "server/http/address.h"

#define PROXY_HEADER_LINE_MAX 107 /* bytes of version 1 */
#define PROXY_HEADER_BLOCK_MAX 52 /* bytes of version 2 up to the addresses of IPv6 */
#define PROXY_HEADER_SKIP_MAX 256 /* bytes behind them that are skipped at a time */

/* Zeroed at first. */
struct proxy_header {
    uint32_t len;     /* bytes that have come */
    bool is_complete; /* nothing more belongs to it */
    bool is_named;    /* |client| is known; else the proxy speaks for itself */
    struct address client;
    uint8_t bytes[PROXY_HEADER_LINE_MAX + PROXY_HEADER_SKIP_MAX];
};

/* Says where the next bytes are to be written while it is not complete: |*out_len|, at least 1,
 * certainly belong to it. */
void proxy_header_room(struct proxy_header *header, uint8_t **out_ptr, size_t *out_len);

/* |len| bytes, at least 1, have been written there. ST_INVALID says what is malformed. */
MUST_CHECK enum status proxy_header_add(struct proxy_header *header, size_t len, struct error *err);

#endif
