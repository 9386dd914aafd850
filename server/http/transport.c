/* SPDX-License-Identifier: MIT */
/* Shared by all kinds of transports. */
#include "config.h"

#include "server/http/transport.h"

void transport_init(struct transport *transport, const struct transport_ops *ops)
{
    transport->magic = TRANSPORT_MAGIC;
    transport->ops = ops;
    transport->callbacks = NULL;
    transport->user = NULL;
    transport->peer = (struct transport_peer){.client = 0};
    transport->is_opening = false;
    transport->version = transport->subject = NULL;
    transport->protocol = (struct span){0};
}

void transport_set_user(struct transport *transport, const struct transport_user *callbacks,
                        void *user)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    must(callbacks);
    transport->callbacks = callbacks;
    transport->user = user;
}

struct transport_room transport_tell_room(struct transport *transport)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    return transport->callbacks->room(transport->user);
}

void transport_tell(struct transport *transport, enum transport_event event, struct span bytes)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    must((event == TRANSPORT_BYTES) == (bytes.len > 0));
    transport->callbacks->received(transport->user, event, bytes);
}

void transport_tell_shut(struct transport *transport, bool is_ok)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    transport->callbacks->shut(transport->user, is_ok);
}

void transport_tell_closed(struct transport *transport)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    transport->magic = 0;
    if (transport->callbacks) { /* otherwise nobody ever used it */
        transport->callbacks->closed(transport->user);
    }
}
