/* SPDX-License-Identifier: MIT */
/*
 * TLS as a transport, above another one, by OpenSSL without sockets of its own. Its user is told
 * TRANSPORT_OPENED after the handshake, or TRANSPORT_REFUSED if there is none. The other side ends
 * with close_notify (TRANSPORT_END). If the stream ends without it, somebody may have cut it:
 * TRANSPORT_BROKEN.
 *
 * Memory. Received bytes are decrypted straight into the user's room. While the user has none, one
 * read (TLS_READ_BYTES) is kept, and no more is read. One record that the socket did not take (16
 * KiB) is kept; later bytes stay with the user until that record is gone.
 *
 * Time. A handshake costs up to 1 ms of the loop's time (a signature by RSA of 2048 bits). Each of
 * its steps, and each record after the first of a write or a read, is done only while the turn of
 * the loop has time (tls_hub_ops.has_time()). Otherwise the transport waits in a row. Each turn
 * serves at least the first of that row.
 *
 * Loop thread; counters may be read by any.
 */
#ifndef PTED_SERVER_HTTP_TRANSPORT_TLS_H
#define PTED_SERVER_HTTP_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stdint.h>

#include <uv.h>

#include "base/counter.h"
#include "base/list.h"
#include "base/status.h"
#include "server/http/tls_context.h"
#include "server/http/transport.h"

#define TLS_READ_BYTES (32 << 10)
#define TLS_RECORD_BYTES (16 << 10) /* of plain text (RFC 8446, section 5.1) */

/* The most bytes of a handshake that a client may send. */
#define TLS_HANDSHAKE_BYTES_MAX (64 << 10)

/* Why there was no handshake. */
enum tls_failure {
    TLS_FAILURE_HTTP,        /* the client speaks HTTP without TLS */
    TLS_FAILURE_PROTOCOL,    /* malformed bytes, or no version or cipher in common */
    TLS_FAILURE_CERTIFICATE, /* of the client: missing, expired or not trusted */
    TLS_FAILURE_ALERT,       /* the client ended it, for example because it does not trust us */
    TLS_FAILURE_LEFT,        /* the client closed the connection */
    TLS_FAILURE_CUT,         /* we did: it took too long, or the daemon stops */
    TLS_FAILURE_MEMORY,
    TLS_FAILURE_COUNT,
};

enum tls_version { TLS_VERSION_1_2, TLS_VERSION_1_3, TLS_VERSION_COUNT };

struct tls_hub_ops {
    bool (*has_time)(void *user); /* the turn of the loop goes on */
    /* A handshake has failed, for the log. */
    void (*failed)(void *user, const struct transport *transport, enum tls_failure failure,
                   const char *why);
};

#define TLS_HUB_MAGIC 0x746c7368u

/* Shared by all transports of a loop. */
struct tls_hub {
    uint32_t magic;
    const struct tls_hub_ops *ops;
    void *user;
    BIO_METHOD *method;           /* owned; NULL: not open */
    uint8_t *received, *gathered; /* owned; for the current read and the current record */
    struct list waiting;          /* transports, until their turn */
    uv_idle_t idle;               /* runs while there are any */
    struct counter handshakes[TLS_VERSION_COUNT][2]; /* [1]: of a session that was resumed */
    struct counter failures[TLS_FAILURE_COUNT];
};

/* Makes the handle |idle|, which the caller closes. */
void tls_hub_init(struct tls_hub *hub, uv_loop_t *loop, const struct tls_hub_ops *ops, void *user);

/* Call before the first transport. */
MUST_CHECK enum status tls_hub_open(struct tls_hub *hub, const struct openssl *library,
                                    struct error *err);
/* Call when no transport is left. */
void tls_hub_fini(struct tls_hub *hub);

/* Returns "certificate"; "TLSv1.3" */
const char *tls_failure_name(enum tls_failure failure);
const char *tls_version_name(enum tls_version version);

/* Takes over |inner|, which has no user yet; its address becomes the address of the new transport.
 * NULL: there is no memory, and |inner| is still the caller's. */
struct transport *transport_tls_new(struct tls_hub *hub, const struct tls_context *context,
                                    struct transport *inner);

#endif
