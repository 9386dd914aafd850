/* SPDX-License-Identifier: MIT */
/*
 * Carries the bytes of a connection, in both directions. A kind of transport is one row of
 * functions (struct transport_ops): a plain socket (server/http/transport_socket.h), or one that
 * itself uses another: behind a proxy that names its client (server/http/transport_proxy.h), or TLS
 * (server/http/transport_tls.h). The connection above does not know which row it has.
 *
 * A transport belongs to one user, such as a connection, and tells it what happens.
 * transport_close() ends it: the transport calls done() of each write that waits, then closed(),
 * and frees itself.
 *
 * Loop thread.
 */
#ifndef PTED_SERVER_HTTP_TRANSPORT_H
#define PTED_SERVER_HTTP_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <uv.h>

#include "base/bytes.h"
#include "base/check.h"
#include "base/status.h"

struct transport;

#define TRANSPORT_MAGIC 0x7472616eu
#define TRANSPORT_REST_MAGIC 0x72657374u
#define TRANSPORT_REMOTE_MAX 64

/* The most spans that one write may have. */
#define TRANSPORT_SPANS_MAX 264

enum transport_event {
    TRANSPORT_BYTES,   /* some were received */
    TRANSPORT_NO_ROOM, /* there were some, but room() had no room for them */
    TRANSPORT_END,     /* the other side sends nothing more */
    TRANSPORT_BROKEN,  /* nothing more can be received or sent */
    TRANSPORT_NAMED,   /* only if it |is_unnamed|: |peer| is whom the other side, a proxy, means */
    TRANSPORT_OPENED,  /* only if it |is_opening|: the other side has proved who it is */
    TRANSPORT_REFUSED, /* likewise: it has not, and has been told so; only a shutdown is left */
};

/* Where received bytes are to be written; |len| 0: nowhere now. */
struct transport_room {
    uint8_t *ptr;
    size_t len;
};

/* The user of a transport, and the functions that tell it of events. */
struct transport_user {
    struct transport_room (*room)(void *user);
    /* |bytes| lie where room() said, and are none unless the event is TRANSPORT_BYTES. */
    void (*received)(void *user, enum transport_event event, struct span bytes);
    void (*shut)(void *user, bool is_ok); /* after transport_shutdown() */
    void (*closed)(void *user);           /* the last call */
};

/* A write that waits until the other side takes it. The storage is the user's, all zero before its
 * first use, and holds one write at a time. */
struct transport_rest {
    uint32_t magic;
    void *user; /* for |done| */
    void (*done)(struct transport_rest *rest, bool is_ok);
    uv_write_t request; /* the transport's own */
};

enum transport_way {
    TRANSPORT_IN,  /* bytes that have come and that nobody has seen yet */
    TRANSPORT_OUT, /* bytes that wait to be taken */
};

/* The functions of one kind of transport. The functions below call these. */
struct transport_ops {
    void (*read)(struct transport *transport, bool is_on);
    ssize_t (*write)(struct transport *transport, const struct span *spans, unsigned count,
                     struct transport_rest *rest);
    bool (*shutdown)(struct transport *transport);
    void (*close)(struct transport *transport);
    size_t (*pending)(const struct transport *transport, enum transport_way way);
};

/* The other side: set by the listener, and after the header of a proxy by
 * server/http/transport_proxy.h. */
struct transport_peer {
    bool is_for_grpc;                  /* it came to an address for gRPC alone */
    char remote[TRANSPORT_REMOTE_MAX]; /* its address, for the log; "": not known */
    char via[TRANSPORT_REMOTE_MAX];    /* of the proxy that has named |remote|; "": none has */
    uint64_t client;       /* who is charged for its requests, see server/http/client.h */
    uint64_t place_client; /* who is charged for the connection itself */
    bool is_proxy;         /* heads of its requests say who the client is */
    bool is_unnamed;       /* a proxy has yet to say who it is: until TRANSPORT_NAMED */
    bool is_local;         /* it may use memory of this machine */
};

/* The first member of each kind. */
struct transport {
    uint32_t magic;
    const struct transport_ops *ops;
    const struct transport_user *callbacks;
    void *user;
    struct transport_peer peer;
    bool is_opening;      /* the two sides have yet to agree; OPENED or REFUSED will say more */
    const char *version;  /* of TLS, a constant, once it is open; NULL: the bytes are plain */
    const char *subject;  /* of the client's certificate; the row's own; NULL: it has none */
    struct span protocol; /* that TLS has chosen (RFC 7301); the row's own; empty: none */
};

/* |ops| are the row's. There is no user yet: transport_set_user() comes before any event, and again
 * when another user takes the transport over. */
void transport_init(struct transport *transport, const struct transport_ops *ops);
void transport_set_user(struct transport *transport, const struct transport_user *callbacks,
                        void *user);

/* For rows: tells the user. */
struct transport_room transport_tell_room(struct transport *transport);
void transport_tell(struct transport *transport, enum transport_event event, struct span bytes);
void transport_tell_shut(struct transport *transport, bool is_ok);
/* Clears the magic number, then calls closed(). The row frees the transport after that. */
void transport_tell_closed(struct transport *transport);

/* Begins or stops reading. Events of reading come only while it is on, but OPENED, REFUSED and
 * BROKEN come while a transport is opening, once it was first on. */
static inline void transport_read(struct transport *transport, bool is_on)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    transport->ops->read(transport, is_on);
}

/*
 * Without |rest|: writes as much as can be taken now and returns how many bytes that is. With
 * |rest|: all of it will be written, in its turn; |rest| and the memory of |spans| live until its
 * done() is called, which is never within this call. Returns -1 if the transport is broken; then
 * done() is not called.
 */
static inline ssize_t transport_write(struct transport *transport, const struct span *spans,
                                      unsigned count, struct transport_rest *rest)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    must(count <= TRANSPORT_SPANS_MAX);
    return transport->ops->write(transport, spans, count, rest);
}

/* Says that nothing more will be written: the other side learns it behind the last byte; then
 * shut() is called. False: it cannot be done. */
MUST_CHECK static inline bool transport_shutdown(struct transport *transport)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    return transport->ops->shutdown(transport);
}

/* Once. closed() is not called within this call, but later by the loop. */
static inline void transport_close(struct transport *transport)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    transport->ops->close(transport);
}

/* While a transport is opening there is always something that nobody has seen. */
static inline size_t transport_pending(const struct transport *transport, enum transport_way way)
{
    OBJ_CHECK(transport, TRANSPORT_MAGIC);
    return transport->ops->pending(transport, way);
}

#endif
