/* SPDX-License-Identifier: MIT */
/*
 * A transport whose other side, a proxy, says first who the client is (server/http/proxy_header.h).
 * It lies between a socket and its user, which may be TLS. Until the header is complete it is
 * opening; then it tells TRANSPORT_NAMED and TRANSPORT_OPENED, and from there on passes everything
 * on. If the header names no client, the peer stays the proxy itself. After a malformed header it
 * tells TRANSPORT_BROKEN.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_HTTP_TRANSPORT_PROXY_H
#define PTED_SERVER_HTTP_TRANSPORT_PROXY_H

#include "base/status.h"
#include "server/http/transport.h"

/* Logs that there is no whole header. |remote|: the proxy. */
typedef void transport_proxy_failed_f(void *user, const char *remote, const struct error *why);

/* Takes over |inner|. NULL without memory: |inner| is still the caller's. |failed| gets |user|. */
struct transport *transport_proxy_new(struct transport *inner, transport_proxy_failed_f *failed,
                                      void *user);

#endif
