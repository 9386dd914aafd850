/* SPDX-License-Identifier: MIT */
/* Shared by transport_tls.c, transport_tls_open.c and transport_tls_write.c. Loop thread. */
#ifndef PTED_SERVER_HTTP_TRANSPORT_TLS_PRIV_H
#define PTED_SERVER_HTTP_TRANSPORT_TLS_PRIV_H

#include "base/check.h"
#include "server/http/transport_tls.h"

#define TLS_MAGIC 0x746c7374u

enum tls_state {
    TLS_HANDSHAKE,
    TLS_OPEN,
    TLS_ENDED,  /* the other side sends nothing more */
    TLS_FAILED, /* there was no handshake: received bytes are discarded */
};

/* The head of a record, and the head of the message that begins in it (RFC 8446, sections 5.1, 4).
 */
#define RECORD_HEAD_BYTES 5
#define HELLO_HEAD_BYTES 9

/* More writes than that do not wait below. A client may have records answered, such as a KeyUpdate
 * (RFC 8446, section 4.6.3), without taking the answers: then no more of its records are read. */
#define TLS_LEFTOVERS_MAX 16

/* Where the bytes of a handshake are: in the head of a record, or so far before its end. */
struct tls_hello {
    uint8_t head[HELLO_HEAD_BYTES];
    unsigned head_len;
    size_t record_left, message_left;
};

struct transport_tls {
    struct transport transport; /* first: it has the address of the whole struct */
    uint32_t magic;
    enum tls_state state;
    struct tls_hub *hub;     /* borrowed; outlives it */
    struct transport *inner; /* owned */
    SSL_CTX *ctx;            /* owned, until there is |ssl| */
    SSL *ssl;                /* owned; NULL until the first bytes */
    struct list link;        /* in hub->waiting */
    struct list writes;      /* of the user, that wait */
    size_t write_bytes;      /* of them, not encrypted yet */
    unsigned leftover_count;
    struct span feed;           /* encrypted bytes for OpenSSL */
    uint8_t *kept;              /* owned: |feed| between two events, or NULL */
    struct transport_room room; /* that the user has promised; |len| 0: not asked yet */
    struct tls_hello hello;
    size_t handshake_bytes;
    bool wants_read;   /* the user does */
    bool is_begun;     /* it once did */
    bool is_reading;   /* from the transport below */
    bool is_held;      /* the handshake waits for its turn */
    bool is_shut;      /* the user writes nothing more */
    bool is_shut_told; /* close_notify is out */
    bool is_broken;    /* writing failed */
    bool is_closing;
    char subject[TLS_SUBJECT_MAX];
};

extern const struct openssl *tls_openssl; /* set by tls_hub_open() */

static inline struct transport_tls *tls_of_user(void *user)
{
    struct transport_tls *tls;
    OBJ_CAST(tls, user, TLS_MAGIC);
    return tls;
}

/* ---- transport_tls.c ------------------------------------------------------------------------- */

static inline bool tls_has_time(const struct transport_tls *tls)
{
    return tls->hub->ops->has_time(tls->hub->user);
}

/* Lets the transport go on in a later turn of the loop. */
void tls_wait_for_turn(struct transport_tls *tls);

static inline void tls_tell(struct transport_tls *tls, enum transport_event event)
{
    transport_tell(&tls->transport, event, (struct span){0});
}

/* Forgets the bytes that OpenSSL has not read. */
void tls_drop_feed(struct transport_tls *tls);

/* ---- transport_tls_open.c -------------------------------------------------------------------- */

/* Goes on with the handshake. It may be over then: the state says so, and the user has been told.
 */
void tls_shake_hands(struct transport_tls *tls);

/* Call when there will be no handshake: counts, logs, and discards what comes. */
void tls_note_failure(struct transport_tls *tls, enum tls_failure failure, const char *why);

/* Call when the client has gone before the handshake was over. */
void tls_lose(struct transport_tls *tls, const char *why);

/* ---- transport_tls_write.c ------------------------------------------------------------------- */

/* Makes hub->method, through which OpenSSL reads and writes. False: no memory. */
bool tls_make_method(struct tls_hub *hub);

/* Sends bytes below as they are; sets |is_broken| if that fails. */
void tls_send(struct transport_tls *tls, struct span bytes);

/* Returns the two forms of transport_write(). */
ssize_t tls_write_now(struct transport_tls *tls, const struct span *spans, unsigned count);
ssize_t tls_write_later(struct transport_tls *tls, const struct span *spans, unsigned count,
                        struct transport_rest *rest);

/* Goes on with writes that wait, and then with the shutdown. */
void tls_go_on_writing(struct transport_tls *tls);

/* Ends what is written: close_notify, and the end below. False: it cannot be done. */
bool tls_shut_down(struct transport_tls *tls);

/* Ends all writes that wait: they have failed. */
void tls_end_writes(struct transport_tls *tls);

#endif
