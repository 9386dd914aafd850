/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "server/http/transport_proxy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/http/client.h"
#include "server/http/proxy_header.h"

#define PROXY_MAGIC 0x70727879u

struct transport_proxy {
    struct transport transport; /* first: it has the address of the whole struct */
    uint32_t magic;
    struct transport *inner; /* owned */
    transport_proxy_failed_f *failed;
    void *user; /* of |failed| */
    struct proxy_header header;
    bool is_refused; /* there was no whole header: what still comes counts for nothing */
    bool is_closing;
};

static struct transport_proxy *proxy_of(const struct transport *transport)
{
    struct transport_proxy *proxy;
    OBJ_CAST(proxy, (void *)(uintptr_t)transport, PROXY_MAGIC);
    return proxy;
}

static struct transport_proxy *proxy_of_user(void *user)
{
    return proxy_of(user);
}

/* ---- the header ------------------------------------------------------------------------------ */

static void refuse(struct transport_proxy *proxy, const struct error *why)
{
    proxy->is_refused = true;
    proxy->failed(proxy->user, proxy->transport.peer.remote, why);
}

/* The header ends in the middle. Nothing at all is no malformed header: proxies look in this way
 * whether a server is there. */
static void end_early(struct transport_proxy *proxy, const char *how)
{
    struct error why;
    if (proxy->transport.is_opening && !proxy->is_refused && proxy->header.len > 0) {
        error_set(&why, ST_INVALID, "PROXY header: %s after %u bytes", how, proxy->header.len);
        refuse(proxy, &why);
    }
}

/* From here on the client is the other side, for the log and for shares. */
static void name_client(struct transport_proxy *proxy)
{
    struct transport_peer *peer = &proxy->transport.peer;
    char text[ADDRESS_TEXT_MAX];
    address_print(&proxy->header.client, text);
    memcpy(peer->via, peer->remote, sizeof(peer->via));
    snprintf(peer->remote, sizeof(peer->remote), "%.*s", TRANSPORT_REMOTE_MAX - 1, text);
    peer->client = peer->place_client = client_of_address(&proxy->header.client);
}

static void take_header(struct transport_proxy *proxy, size_t len)
{
    struct error why;
    if (proxy_header_add(&proxy->header, len, &why) != ST_OK) {
        refuse(proxy, &why);
        transport_tell(&proxy->transport, TRANSPORT_BROKEN, (struct span){0});
    } else if (proxy->header.is_complete) {
        proxy->transport.is_opening = false;
        proxy->transport.peer.is_unnamed = false;
        if (proxy->header.is_named) {
            name_client(proxy);
        }
        transport_tell(&proxy->transport, TRANSPORT_NAMED, (struct span){0});
        if (!proxy->is_closing) {
            transport_tell(&proxy->transport, TRANSPORT_OPENED, (struct span){0});
        }
    }
}

/* ---- the user of the transport below --------------------------------------------------------- */

static struct transport_room on_room(void *user)
{
    struct transport_proxy *proxy = proxy_of_user(user);
    struct transport_room room;
    if (!proxy->transport.is_opening) {
        return transport_tell_room(&proxy->transport);
    }
    if (proxy->is_refused) {
        return (struct transport_room){proxy->header.bytes, sizeof(proxy->header.bytes)};
    }
    proxy_header_room(&proxy->header, &room.ptr, &room.len);
    return room;
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct transport_proxy *proxy = proxy_of_user(user);
    if (!proxy->transport.is_opening) {
        transport_tell(&proxy->transport, event, bytes);
    } else if (event != TRANSPORT_BYTES) {
        end_early(proxy, "the proxy closes the connection");
        transport_tell(&proxy->transport, TRANSPORT_BROKEN, bytes);
    } else if (!proxy->is_refused) {
        take_header(proxy, bytes.len);
    }
}

static void on_shut(void *user, bool is_ok)
{
    transport_tell_shut(&proxy_of_user(user)->transport, is_ok);
}

static void on_closed(void *user)
{
    struct transport_proxy *proxy = proxy_of_user(user);
    transport_tell_closed(&proxy->transport);
    proxy->magic = 0;
    free(proxy);
}

static const struct transport_user inner_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

/* ---- the row --------------------------------------------------------------------------------- */

static void do_read(struct transport *transport, bool is_on)
{
    transport_read(proxy_of(transport)->inner, is_on);
}

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    return transport_write(proxy_of(transport)->inner, spans, count, rest);
}

static bool do_shutdown(struct transport *transport)
{
    struct transport_proxy *proxy = proxy_of(transport);
    proxy->is_refused |= transport->is_opening; /* we end it: it is too late for a header */
    return transport_shutdown(proxy->inner);
}

static void do_close(struct transport *transport)
{
    struct transport_proxy *proxy = proxy_of(transport);
    end_early(proxy, "not complete in time");
    proxy->is_closing = true;
    transport_close(proxy->inner);
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    bool is_opening = way == TRANSPORT_IN && transport->is_opening;
    return transport_pending(proxy_of(transport)->inner, way) + is_opening;
}

static const struct transport_ops proxy_ops = {
    .read = do_read,
    .write = do_write,
    .shutdown = do_shutdown,
    .close = do_close,
    .pending = do_pending,
};

struct transport *transport_proxy_new(struct transport *inner, transport_proxy_failed_f *failed,
                                      void *user)
{
    struct transport_proxy *proxy = calloc(1, sizeof(*proxy));
    if (!proxy) {
        return NULL;
    }
    proxy->magic = PROXY_MAGIC;
    proxy->inner = inner;
    proxy->failed = failed;
    proxy->user = user;
    transport_init(&proxy->transport, &proxy_ops);
    proxy->transport.peer = inner->peer;
    proxy->transport.is_opening = proxy->transport.peer.is_unnamed = true;
    transport_set_user(inner, &inner_user, proxy);
    return &proxy->transport;
}
