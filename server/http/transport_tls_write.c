/* SPDX-License-Identifier: MIT */
/* From bytes of the user to records on the transport below. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "server/http/transport_tls_priv.h"

/* Bytes of a list of spans that have not been encrypted yet. */
struct cursor {
    const struct span *spans;
    unsigned count;
    size_t at; /* bytes of the first span that are done */
    size_t left;
};

/* A write that waits. */
struct waiting {
    struct list link; /* in tls->writes */
    struct transport_rest *rest;
    struct cursor cursor;
    struct span spans[];
};

/* Encrypted bytes that the transport below has not taken. */
struct leftover {
    struct transport_rest rest;
    uint8_t bytes[];
};

/* ---- records to the transport below ---------------------------------------------------------- */

static void on_leftover_taken(struct transport_rest *rest, bool is_ok)
{
    struct transport_tls *tls = tls_of_user(rest->user);
    free(LIST_ENTRY(rest, struct leftover, rest));
    must(tls->leftover_count > 0);
    tls->leftover_count--;
    tls->is_broken |= !is_ok;
    if (tls->is_closing || tls->leftover_count > 0) {
        return;
    }
    if (tls->kept) {
        tls_wait_for_turn(tls); /* bio_read() may have held it back */
    }
    tls_go_on_writing(tls);
}

static bool keep_leftover(struct transport_tls *tls, struct span bytes)
{
    struct leftover *leftover = calloc(1, sizeof(*leftover) + bytes.len);
    if (!leftover) {
        return false;
    }
    memcpy(leftover->bytes, bytes.ptr, bytes.len);
    leftover->rest.user = tls;
    leftover->rest.done = on_leftover_taken;
    const struct span span = span_of(leftover->bytes, bytes.len);
    if (transport_write(tls->inner, &span, 1, &leftover->rest) < 0) {
        free(leftover);
        return false;
    }
    tls->leftover_count++;
    return true;
}

/* All of it is taken: OpenSSL writes a record whenever it likes. */
void tls_send(struct transport_tls *tls, struct span bytes)
{
    if (tls->is_broken || tls->is_closing) {
        return;
    }
    ssize_t done = tls->leftover_count ? 0 : transport_write(tls->inner, &bytes, 1, NULL);
    size_t sent = done > 0 ? (size_t)done : 0;
    tls->is_broken = done < 0 || (sent < bytes.len &&
                                  !keep_leftover(tls, span_of(bytes.ptr + sent, bytes.len - sent)));
}

static int bio_write(BIO *bio, const char *bytes, size_t len, size_t *out_len)
{
    tls_send(tls_of_user(tls_openssl->BIO_get_data(bio)), span_of(bytes, len));
    *out_len = len;
    return 1;
}

static int bio_read(BIO *bio, char *out, size_t max, size_t *out_len)
{
    struct transport_tls *tls = tls_of_user(tls_openssl->BIO_get_data(bio));
    bool is_held = tls->state == TLS_OPEN && tls->leftover_count >= TLS_LEFTOVERS_MAX;
    size_t len = is_held ? 0 : tls->feed.len < max ? tls->feed.len : max;
    tls_openssl->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (len == 0) {
        tls_openssl->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return 0;
    }
    memcpy(out, tls->feed.ptr, len);
    tls->feed = span_of(tls->feed.ptr + len, tls->feed.len - len);
    *out_len = len;
    return 1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
    (void)bio;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH; /* nothing is ever held back */
}

bool tls_make_method(struct tls_hub *hub)
{
    hub->method = tls_openssl->BIO_meth_new(BIO_TYPE_SOURCE_SINK, "pted");
    return hub->method && tls_openssl->BIO_meth_set_read_ex(hub->method, bio_read) == 1 &&
           tls_openssl->BIO_meth_set_write_ex(hub->method, bio_write) == 1 &&
           tls_openssl->BIO_meth_set_ctrl(hub->method, bio_control) == 1;
}

/* ---- encrypting ------------------------------------------------------------------------------ */

/* The next bytes, at most a record of them: where they lie, or gathered from several spans. */
static struct span take_piece(struct transport_tls *tls, struct cursor *cursor)
{
    while (cursor->spans->len == cursor->at) {
        must(cursor->count > 1);
        cursor->spans++;
        cursor->count--;
        cursor->at = 0;
    }
    const struct span first = *cursor->spans;
    size_t len = first.len - cursor->at;
    if (len >= TLS_RECORD_BYTES || len == cursor->left) {
        len = len < TLS_RECORD_BYTES ? len : TLS_RECORD_BYTES;
        return span_of(first.ptr + cursor->at, len);
    }
    size_t used = 0;
    for (unsigned i = 0; i < cursor->count && used < TLS_RECORD_BYTES; i++) {
        size_t from = i == 0 ? cursor->at : 0, rest = cursor->spans[i].len - from;
        size_t part = rest < TLS_RECORD_BYTES - used ? rest : TLS_RECORD_BYTES - used;
        if (part > 0) {
            memcpy(tls->hub->gathered + used, cursor->spans[i].ptr + from, part);
        }
        used += part;
    }
    return span_of(tls->hub->gathered, used);
}

static void advance(struct cursor *cursor, size_t done)
{
    cursor->left -= done;
    while (done > 0) {
        size_t rest = cursor->spans->len - cursor->at;
        size_t part = done < rest ? done : rest;
        cursor->at += part;
        done -= part;
        if (cursor->at == cursor->spans->len && cursor->count > 1) {
            cursor->spans++;
            cursor->count--;
            cursor->at = 0;
        }
    }
}

/* Encrypts one record and sends it; returns the bytes in it. 0: the transport is broken. */
static size_t send_piece(struct transport_tls *tls, struct cursor *cursor)
{
    const struct span piece = take_piece(tls, cursor);
    size_t done = 0;
    tls_openssl->ERR_clear_error();
    if (tls_openssl->SSL_write_ex(tls->ssl, piece.ptr, piece.len, &done) != 1) {
        tls->is_broken = true;
    }
    if (tls->is_broken) {
        return 0;
    }
    advance(cursor, done);
    return done;
}

static size_t sum_of(const struct span *spans, unsigned count)
{
    size_t bytes = 0;
    for (unsigned i = 0; i < count; i++) {
        bytes += spans[i].len;
    }
    return bytes;
}

/* ---- writing --------------------------------------------------------------------------------- */

ssize_t tls_write_now(struct transport_tls *tls, const struct span *spans, unsigned count)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    struct cursor cursor = {.spans = spans, .count = count, .left = sum_of(spans, count)};
    size_t done = 0;
    if (tls->state == TLS_HANDSHAKE || tls->leftover_count || !list_is_empty(&tls->writes)) {
        return 0;
    }
    while (cursor.left > 0 && tls->leftover_count == 0 && (done == 0 || tls_has_time(tls))) {
        size_t sent = send_piece(tls, &cursor);
        if (sent == 0) {
            return -1;
        }
        done += sent;
    }
    return (ssize_t)done;
}

ssize_t tls_write_later(struct transport_tls *tls, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    struct waiting *waiting = malloc(sizeof(*waiting) + count * sizeof(spans[0]));
    must(rest->magic != TRANSPORT_REST_MAGIC); /* it waits already */
    if (!waiting) {
        return -1;
    }
    rest->magic = TRANSPORT_REST_MAGIC;
    memcpy(waiting->spans, spans, count * sizeof(spans[0]));
    waiting->rest = rest;
    waiting->cursor =
        (struct cursor){.spans = waiting->spans, .count = count, .left = sum_of(spans, count)};
    list_push_back(&tls->writes, &waiting->link);
    tls->write_bytes += waiting->cursor.left;
    if (tls->leftover_count == 0 && tls->state != TLS_HANDSHAKE) {
        tls_wait_for_turn(tls); /* done() is never called within this call */
    }
    return 0;
}

static void end_write(struct transport_tls *tls, struct waiting *waiting, bool is_ok)
{
    struct transport_rest *rest = waiting->rest;
    list_remove(&waiting->link);
    tls->write_bytes -= waiting->cursor.left;
    free(waiting);
    must(rest->magic == TRANSPORT_REST_MAGIC);
    rest->magic = 0;
    rest->done(rest, is_ok);
}

void tls_end_writes(struct transport_tls *tls)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    while (!list_is_empty(&tls->writes)) {
        end_write(tls, LIST_ENTRY(tls->writes.next, struct waiting, link), false);
    }
}

/* Behind the last byte: close_notify, then the end of the transport below. */
bool tls_shut_down(struct transport_tls *tls)
{
    tls->is_shut_told = true;
    if (tls->state != TLS_FAILED && tls->ssl) {
        tls_openssl->ERR_clear_error();
        tls_openssl->SSL_shutdown(tls->ssl);
    }
    return !tls->is_broken && transport_shutdown(tls->inner);
}

/* The transport below has taken all that was encrypted. */
void tls_go_on_writing(struct transport_tls *tls)
{
    bool is_first = true, has_failed = tls->is_broken || tls->state == TLS_FAILED;
    if (tls->state == TLS_HANDSHAKE) {
        return;
    }
    while (!list_is_empty(&tls->writes) && tls->leftover_count == 0) {
        struct waiting *waiting = LIST_ENTRY(tls->writes.next, struct waiting, link);
        if (has_failed || waiting->cursor.left == 0) {
            end_write(tls, waiting, !has_failed);
            if (tls->is_closing) {
                return;
            }
        } else if (!is_first && !tls_has_time(tls)) {
            tls_wait_for_turn(tls);
            return;
        } else {
            tls->write_bytes -= send_piece(tls, &waiting->cursor);
            has_failed = tls->is_broken;
            is_first = false;
        }
    }
    if (tls->is_shut && !tls->is_shut_told && list_is_empty(&tls->writes) && !tls_shut_down(tls)) {
        transport_tell_shut(&tls->transport, false);
    }
}
