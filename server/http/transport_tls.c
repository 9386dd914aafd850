/* SPDX-License-Identifier: MIT */
/*
 * OpenSSL reads from |feed|, the bytes that have just come or were kept, and writes records to the
 * transport below. It never sees a socket and never waits.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/http/transport_tls_priv.h"

const struct openssl *tls_openssl;

static struct transport_tls *tls_of(const struct transport *transport)
{
    struct transport_tls *tls;
    OBJ_CAST(tls, (void *)(uintptr_t)transport, TLS_MAGIC);
    return tls;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void on_idle(uv_idle_t *idle);

void tls_wait_for_turn(struct transport_tls *tls)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    if (list_is_empty(&tls->link)) {
        list_push_back(&tls->hub->waiting, &tls->link);
        uv_idle_start(&tls->hub->idle, on_idle);
    }
}

/* ---- what is fed ----------------------------------------------------------------------------- */

/* Reads from the transport below only while the bytes have a place to go. */
static void update_reading(struct transport_tls *tls)
{
    bool is_on = tls->is_begun && !tls->is_closing;
    if (tls->state == TLS_HANDSHAKE) {
        is_on = is_on && !tls->is_held;
    } else if (tls->state == TLS_OPEN) {
        is_on = is_on && tls->wants_read && !tls->kept && tls_openssl->SSL_pending(tls->ssl) == 0;
    } else if (tls->state == TLS_ENDED) {
        is_on = false;
    }
    if (is_on != tls->is_reading) {
        tls->is_reading = is_on;
        transport_read(tls->inner, is_on);
    }
}

void tls_drop_feed(struct transport_tls *tls)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    free(tls->kept);
    tls->kept = NULL;
    tls->feed = (struct span){0};
}

/* Keeps what OpenSSL has not read, until the next event. False: there is no memory. */
static bool keep_feed(struct transport_tls *tls)
{
    if (tls->feed.len == 0) {
        tls_drop_feed(tls);
        return true;
    }
    if (tls->kept) {
        return true; /* |feed| lies in it */
    }
    tls->kept = malloc(tls->feed.len);
    if (!tls->kept) {
        return false;
    }
    memcpy(tls->kept, tls->feed.ptr, tls->feed.len);
    tls->feed.ptr = tls->kept;
    return true;
}

static void break_off(struct transport_tls *tls)
{
    tls_drop_feed(tls);
    tls->state = TLS_ENDED;
    tls_tell(tls, TRANSPORT_BROKEN);
}

/* ---- decrypting ------------------------------------------------------------------------------ */

/* OpenSSL has given nothing. */
static void end_reading(struct transport_tls *tls)
{
    int why = tls_openssl->SSL_get_error(tls->ssl, 0);
    if (why == SSL_ERROR_ZERO_RETURN) {
        tls_drop_feed(tls);
        tls->state = TLS_ENDED;
        tls_tell(tls, TRANSPORT_END);
    } else if (why != SSL_ERROR_WANT_READ || tls->is_broken) {
        tls_openssl->ERR_clear_error();
        break_off(tls);
    }
}

/* Takes the promised room, or asks for some. False: there is none now. */
static bool take_room(struct transport_tls *tls, struct transport_room *out)
{
    *out = tls->room.len > 0 ? tls->room : transport_tell_room(&tls->transport);
    tls->room.len = 0;
    if (out->len > 0) {
        return true;
    }
    tls_tell(tls, TRANSPORT_NO_ROOM);
    if (!tls->is_closing && tls->wants_read) {
        tls_wait_for_turn(tls);
    }
    return false;
}

/* Gives the user what the fed bytes contain, as long as it takes them. */
static void decrypt(struct transport_tls *tls)
{
    while (tls->state == TLS_OPEN && tls->wants_read && !tls->is_closing) {
        struct transport_room room;
        size_t len = 0;
        if (tls->feed.len == 0 && tls_openssl->SSL_pending(tls->ssl) == 0) {
            return;
        }
        if (!take_room(tls, &room)) {
            return;
        }
        tls_openssl->ERR_clear_error();
        if (tls_openssl->SSL_read_ex(tls->ssl, room.ptr, room.len, &len) != 1) {
            end_reading(tls);
            return;
        }
        transport_tell(&tls->transport, TRANSPORT_BYTES, span_of(room.ptr, len));
    }
}

/* Uses |feed|. |has_turn|: this transport is next in the row of waiting ones. */
static void use_feed(struct transport_tls *tls, bool has_turn)
{
    if (tls->state == TLS_HANDSHAKE) {
        tls->is_held = !has_turn && (!list_is_empty(&tls->hub->waiting) || !tls_has_time(tls));
        if (tls->is_held) {
            tls_wait_for_turn(tls);
        } else {
            tls_shake_hands(tls);
        }
    }
    decrypt(tls);
    tls->room.len = 0;
    if (tls->is_closing || tls->state == TLS_ENDED || tls->state == TLS_FAILED) {
        tls_drop_feed(tls);
    } else if (!keep_feed(tls)) {
        break_off(tls);
    }
    update_reading(tls);
}

/* At least the first one, and each of them once. */
static void on_idle(uv_idle_t *idle)
{
    struct tls_hub *hub;
    OBJ_CAST(hub, idle->data, TLS_HUB_MAGIC);
    struct list now;
    list_init(&now);
    while (!list_is_empty(&hub->waiting)) {
        struct list *link = hub->waiting.next;
        list_remove(link);
        list_push_back(&now, link);
    }
    while (!list_is_empty(&now)) {
        struct transport_tls *tls = LIST_ENTRY(now.next, struct transport_tls, link);
        list_remove(&tls->link);
        OBJ_CHECK(tls, TLS_MAGIC);
        if (tls->leftover_count == 0 && tls->state != TLS_HANDSHAKE) {
            tls_go_on_writing(tls);
        }
        if (!tls->is_closing) {
            use_feed(tls, true);
        }
        if (!hub->ops->has_time(hub->user)) {
            break;
        }
    }
    while (!list_is_empty(&now)) { /* they stay before transports that have come meanwhile */
        struct list *link = now.prev;
        list_remove(link);
        list_push_front(&hub->waiting, link);
    }
    if (list_is_empty(&hub->waiting)) {
        uv_idle_stop(&hub->idle);
    }
}

/* ---- the user of the transport below --------------------------------------------------------- */

static struct transport_room on_room(void *user)
{
    struct transport_tls *tls = tls_of_user(user);
    if (tls->state == TLS_OPEN) {
        tls->room = transport_tell_room(&tls->transport);
        if (tls->room.len == 0) {
            return tls->room;
        }
    }
    return (struct transport_room){tls->hub->received, TLS_READ_BYTES};
}

static void on_bytes(struct transport_tls *tls, struct span bytes)
{
    if (tls->state == TLS_FAILED || tls->state == TLS_ENDED) {
        return;
    }
    must(!tls->kept); /* else nothing is read */
    tls->feed = bytes;
    use_feed(tls, false);
}

static void on_end(struct transport_tls *tls, enum transport_event event)
{
    if (tls->inner->is_opening) {
        tls->state = TLS_FAILED; /* a proxy has said nothing: no handshake has begun */
        tls_tell(tls, TRANSPORT_BROKEN);
    } else if (tls->state == TLS_HANDSHAKE) {
        tls_lose(tls, "the client has closed the connection");
    } else if (tls->state == TLS_OPEN) {
        break_off(tls); /* somebody may have cut it: there was no close_notify */
    } else {
        tls_tell(tls, event);
    }
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    struct transport_tls *tls = tls_of_user(user);
    if (event == TRANSPORT_BYTES) {
        on_bytes(tls, bytes);
    } else if (event == TRANSPORT_NO_ROOM) {
        tls_tell(tls, TRANSPORT_NO_ROOM);
        update_reading(tls);
    } else if (event == TRANSPORT_NAMED) {
        tls->transport.peer = tls->inner->peer;
        tls_tell(tls, TRANSPORT_NAMED);
    } else if (event != TRANSPORT_OPENED) { /* of the transport below */
        on_end(tls, event);
    }
}

static void on_shut(void *user, bool is_ok)
{
    transport_tell_shut(&tls_of_user(user)->transport, is_ok);
}

static void on_closed(void *user)
{
    struct transport_tls *tls = tls_of_user(user);
    tls_end_writes(tls);
    must(tls->leftover_count == 0);
    tls_drop_feed(tls);
    tls_openssl->SSL_free(tls->ssl);
    tls_openssl->SSL_CTX_free(tls->ctx);
    transport_tell_closed(&tls->transport);
    tls->magic = 0;
    free(tls);
}

static const struct transport_user inner_user = {
    .room = on_room,
    .received = on_received,
    .shut = on_shut,
    .closed = on_closed,
};

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    struct transport_tls *tls = tls_of(transport);
    must(!tls->is_shut || tls->state == TLS_FAILED);
    if (tls->is_broken || tls->is_closing || tls->state == TLS_FAILED) {
        return -1;
    }
    return rest ? tls_write_later(tls, spans, count, rest) : tls_write_now(tls, spans, count);
}

/* ---- the row --------------------------------------------------------------------------------- */

static void do_read(struct transport *transport, bool is_on)
{
    struct transport_tls *tls = tls_of(transport);
    tls->wants_read = is_on;
    tls->is_begun |= is_on;
    if (is_on && tls->state == TLS_OPEN && (tls->kept || tls_openssl->SSL_pending(tls->ssl) > 0)) {
        tls_wait_for_turn(tls);
    }
    update_reading(tls);
}

static bool do_shutdown(struct transport *transport)
{
    struct transport_tls *tls = tls_of(transport);
    tls->is_shut = true;
    if (tls->state == TLS_HANDSHAKE) {
        tls_note_failure(tls, TLS_FAILURE_CUT, "the daemon ends the connection");
    }
    update_reading(tls);
    return !list_is_empty(&tls->writes) || tls_shut_down(tls);
}

static void do_close(struct transport *transport)
{
    struct transport_tls *tls = tls_of(transport);
    must(!tls->is_closing);
    tls->is_closing = true;
    list_remove(&tls->link);
    if (tls->state == TLS_HANDSHAKE) {
        tls_note_failure(tls, TLS_FAILURE_CUT, "the handshake was not complete in time");
    }
    transport_close(tls->inner);
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    const struct transport_tls *tls = tls_of(transport);
    size_t below = transport_pending(tls->inner, way);
    if (way == TRANSPORT_OUT) {
        return tls->write_bytes + below;
    }
    if (tls->state == TLS_HANDSHAKE) {
        return below + 1;
    }
    return tls->state != TLS_OPEN ? 0
                                  : below + (tls->kept ? tls->feed.len : 0) +
                                        (size_t)(tls_openssl->SSL_has_pending(tls->ssl) > 0);
}

static const struct transport_ops tls_ops = {
    .read = do_read,
    .write = do_write,
    .shutdown = do_shutdown,
    .close = do_close,
    .pending = do_pending,
};

struct transport *transport_tls_new(struct tls_hub *hub, const struct tls_context *context,
                                    struct transport *inner)
{
    OBJ_CHECK(hub, TLS_HUB_MAGIC);
    OBJ_CHECK(context, TLS_CONTEXT_MAGIC);
    must(hub->method != NULL);
    struct transport_tls *tls = calloc(1, sizeof(*tls));
    if (!tls || tls_openssl->SSL_CTX_up_ref(context->ctx) != 1) {
        free(tls);
        return NULL;
    }
    tls->magic = TLS_MAGIC;
    tls->hub = hub;
    tls->inner = inner;
    tls->ctx = context->ctx;
    list_init(&tls->link);
    list_init(&tls->writes);
    transport_init(&tls->transport, &tls_ops);
    tls->transport.is_opening = true;
    tls->transport.peer = inner->peer;
    transport_set_user(inner, &inner_user, tls);
    return &tls->transport;
}

/* ---- the hub --------------------------------------------------------------------------------- */

void tls_hub_init(struct tls_hub *hub, uv_loop_t *loop, const struct tls_hub_ops *ops, void *user)
{
    *hub = (struct tls_hub){.magic = TLS_HUB_MAGIC, .ops = ops, .user = user};
    list_init(&hub->waiting);
    uv_idle_init(loop, &hub->idle);
    hub->idle.data = hub;
}

enum status tls_hub_open(struct tls_hub *hub, const struct openssl *library, struct error *err)
{
    OBJ_CHECK(hub, TLS_HUB_MAGIC);
    must(!hub->method);
    tls_openssl = library;
    hub->received = malloc(TLS_READ_BYTES);
    hub->gathered = malloc(TLS_RECORD_BYTES);
    if (!hub->received || !hub->gathered || !tls_make_method(hub)) {
        return error_no_memory(err, "TLS");
    }
    return ST_OK;
}

void tls_hub_fini(struct tls_hub *hub)
{
    if (hub->magic == 0) {
        return; /* the start failed before */
    }
    OBJ_CHECK(hub, TLS_HUB_MAGIC);
    must(list_is_empty(&hub->waiting));
    if (tls_openssl) {
        tls_openssl->BIO_meth_free(hub->method);
    }
    free(hub->received);
    free(hub->gathered);
    hub->magic = 0;
}
