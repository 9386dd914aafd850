/* SPDX-License-Identifier: MIT */
/* The handshake: the client proves who it is, or it is told why it failed. */
#include "config.h"

#include <string.h>

#include "base/check.h"
#include "server/http/http1.h"
#include "server/http/transport_tls_priv.h"

/* A ClientHello is as long as it announces, and OpenSSL takes memory for all of it in advance, up
 * to 128 KiB. */
#define HELLO_BYTES_MAX (16 << 10)
#define RECORD_HANDSHAKE 22
#define MESSAGE_CLIENT_HELLO 1

const char *tls_failure_name(enum tls_failure failure)
{
    static const char *const names[TLS_FAILURE_COUNT] = {[TLS_FAILURE_HTTP] = "http",
                                                         [TLS_FAILURE_PROTOCOL] = "protocol",
                                                         [TLS_FAILURE_CERTIFICATE] = "certificate",
                                                         [TLS_FAILURE_ALERT] = "alert",
                                                         [TLS_FAILURE_LEFT] = "left",
                                                         [TLS_FAILURE_CUT] = "cut",
                                                         [TLS_FAILURE_MEMORY] = "memory"};
    must(failure < TLS_FAILURE_COUNT);
    return names[failure];
}

const char *tls_version_name(enum tls_version version)
{
    must(version < TLS_VERSION_COUNT);
    return version == TLS_VERSION_1_2 ? "TLSv1.2" : "TLSv1.3";
}

/* ---- the handshake --------------------------------------------------------------------------- */

void tls_note_failure(struct transport_tls *tls, enum tls_failure failure, const char *why)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    struct tls_hub *hub = tls->hub;
    counter_add(&hub->failures[failure], 1);
    hub->ops->failed(hub->user, &tls->transport, failure, why);
    tls->state = TLS_FAILED;
    tls->is_held = false;
    tls_drop_feed(tls);
}

static void refuse(struct transport_tls *tls, enum tls_failure failure, const char *why)
{
    tls_note_failure(tls, failure, why);
    tls_tell(tls, tls->is_broken ? TRANSPORT_BROKEN : TRANSPORT_REFUSED);
}

void tls_lose(struct transport_tls *tls, const char *why)
{
    OBJ_CHECK(tls, TLS_MAGIC);
    tls_note_failure(tls, TLS_FAILURE_LEFT, why);
    tls_tell(tls, TRANSPORT_BROKEN);
}

/* Tells a client of HTTP in its own language what is wrong. */
static void refuse_http(struct transport_tls *tls)
{
    static const char body[] = "{\"error\":\"this address speaks TLS: ask it by https://\"}";
    const struct http_answer answer = {
        .status = 400, .content_type = "application/json", .content_length = sizeof(body) - 1};
    char head[HTTP1_HEAD_BYTES_MAX];
    tls_send(tls, span_of(head, http1_print_head(&answer, HTTP1_CLOSE, head)));
    tls_send(tls, span_of(body, sizeof(body) - 1));
    refuse(tls, TLS_FAILURE_HTTP, "the client speaks HTTP without TLS");
}

/* A failure in OpenSSL, which has told the client by an alert. */
static void refuse_by_openssl(struct transport_tls *tls)
{
    unsigned long code = tls_openssl->ERR_peek_last_error();
    int reason = ERR_GET_REASON(code);
    const char *text = code ? tls_openssl->ERR_reason_error_string(code) : NULL;
    enum tls_failure failure = TLS_FAILURE_PROTOCOL;
    if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) {
        text = tls_openssl->X509_verify_cert_error_string(
            tls_openssl->SSL_get_verify_result(tls->ssl));
        failure = TLS_FAILURE_CERTIFICATE;
    } else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) {
        failure = TLS_FAILURE_CERTIFICATE;
    } else if (reason > SSL_AD_REASON_OFFSET) {
        failure = TLS_FAILURE_ALERT;
    } else if (reason == ERR_R_MALLOC_FAILURE) {
        failure = TLS_FAILURE_MEMORY;
    }
    refuse(tls, failure, text ? text : "unknown reason");
    tls_openssl->ERR_clear_error();
}

static bool make_ssl(struct transport_tls *tls)
{
    SSL *ssl = tls_openssl->SSL_new(tls->ctx);
    BIO *bio = ssl ? tls_openssl->BIO_new(tls->hub->method) : NULL;
    if (!bio) {
        tls_openssl->SSL_free(ssl);
        return false;
    }
    tls_openssl->BIO_set_data(bio, tls);
    tls_openssl->BIO_set_init(bio, 1);
    tls_openssl->SSL_set_bio(ssl, bio, bio); /* takes it over */
    tls_openssl->SSL_set_accept_state(ssl);
    tls_openssl->SSL_CTX_free(tls->ctx); /* |ssl| has its own reference */
    tls->ctx = NULL;
    tls->ssl = ssl;
    return true;
}

static void refuse_first_byte(struct transport_tls *tls)
{
    uint8_t first = tls->feed.ptr[0];
    if (first >= 'A' && first <= 'Z') { /* as methods of HTTP are */
        refuse_http(tls);
    } else {
        refuse(tls, TLS_FAILURE_PROTOCOL, "the first byte is not that of a handshake");
    }
}

/* May a record be a part of a ClientHello? Of TLS 1.2 only the first message is one. In TLS 1.3 all
 * else is encrypted, so that its records have another type. */
static bool may_be_hello(const struct transport_tls *tls)
{
    return !tls->ssl ||
           strcmp(tls_openssl->SSL_get_version(tls->ssl), tls_version_name(TLS_VERSION_1_3)) == 0;
}

/* The head of a record is complete, and so is the head of its message if it begins one. False:
 * malformed or too large. */
static bool take_record(struct tls_hello *hello, bool begins)
{
    const uint8_t *p = hello->head;
    size_t record = (size_t)p[3] << 8 | p[4], known = hello->head_len - RECORD_HEAD_BYTES;
    if (record < known) {
        return false;
    }
    if (begins) {
        hello->message_left = (size_t)p[6] << 16 | (size_t)p[7] << 8 | p[8];
        if (p[5] != MESSAGE_CLIENT_HELLO || hello->message_left > HELLO_BYTES_MAX) {
            return false;
        }
    }
    hello->record_left = record - known;
    hello->head_len = 0;
    if (p[0] == RECORD_HANDSHAKE) {
        size_t left = hello->message_left;
        hello->message_left -= hello->record_left < left ? hello->record_left : left;
    }
    return true;
}

/* Looks at the fed bytes before OpenSSL does. False: a ClientHello is malformed or too large. */
static bool check_hello(struct transport_tls *tls)
{
    struct tls_hello *hello = &tls->hello;
    bool may_be = may_be_hello(tls), is_good = true;
    for (size_t at = 0; is_good && at < tls->feed.len;) {
        size_t rest = tls->feed.len - at;
        size_t skipped = hello->record_left < rest ? hello->record_left : rest;
        hello->record_left -= skipped;
        at += skipped;
        if (at == tls->feed.len) {
            break;
        }
        hello->head[hello->head_len++] = tls->feed.ptr[at++];
        bool begins = may_be && hello->head[0] == RECORD_HANDSHAKE && hello->message_left == 0;
        /* More than needed: OpenSSL has chosen TLS 1.2 since the first of them came. */
        if (hello->head_len >= (begins ? HELLO_HEAD_BYTES : RECORD_HEAD_BYTES)) {
            is_good = take_record(hello, begins);
        }
    }
    return is_good;
}

/* The name of the client's certificate, if it was asked for one. */
static void note_subject(struct transport_tls *tls)
{
    X509 *certificate = tls_openssl->SSL_get1_peer_certificate(tls->ssl);
    if (certificate) {
        tls_context_print_subject(tls_openssl, certificate, tls->subject);
        tls->transport.subject = tls->subject;
        tls_openssl->X509_free(certificate);
    }
}

/* In memory of OpenSSL's that lives as long as the connection. */
static void note_protocol(struct transport_tls *tls)
{
    const unsigned char *name;
    unsigned len;
    tls_openssl->SSL_get0_alpn_selected(tls->ssl, &name, &len);
    tls->transport.protocol = span_of(name, len);
}

static void open_up(struct transport_tls *tls)
{
    const char *name = tls_openssl->SSL_get_version(tls->ssl);
    enum tls_version version =
        strcmp(name, tls_version_name(TLS_VERSION_1_3)) == 0 ? TLS_VERSION_1_3 : TLS_VERSION_1_2;
    bool is_resumed = tls_openssl->SSL_session_reused(tls->ssl) != 0;
    counter_add(&tls->hub->handshakes[version][is_resumed], 1);
    tls->state = TLS_OPEN;
    tls->transport.version = tls_version_name(version);
    tls->transport.is_opening = false;
    note_subject(tls);
    note_protocol(tls);
    tls_tell(tls, TRANSPORT_OPENED);
    if (!tls->is_closing && tls->leftover_count == 0) {
        tls_go_on_writing(tls); /* bytes that the user has written meanwhile */
    }
}

void tls_shake_hands(struct transport_tls *tls)
{
    size_t fed = tls->feed.len;
    if (fed == 0) {
        return;
    }
    if (!tls->ssl && tls->feed.ptr[0] != RECORD_HANDSHAKE) {
        refuse_first_byte(tls);
        return;
    }
    if (!check_hello(tls)) {
        refuse(tls, TLS_FAILURE_PROTOCOL, "expected a ClientHello of 16 KiB at most");
        return;
    }
    if (!tls->ssl && !make_ssl(tls)) {
        refuse(tls, TLS_FAILURE_MEMORY, "out of memory");
        return;
    }
    tls_openssl->ERR_clear_error();
    int rc = tls_openssl->SSL_do_handshake(tls->ssl);
    tls->handshake_bytes += fed - tls->feed.len;
    if (rc == 1 && !tls->is_broken) {
        open_up(tls);
    } else if (tls->is_broken) {
        tls_lose(tls, "it takes no bytes");
    } else if (tls_openssl->SSL_get_error(tls->ssl, rc) != SSL_ERROR_WANT_READ) {
        refuse_by_openssl(tls);
    } else if (tls->handshake_bytes > TLS_HANDSHAKE_BYTES_MAX) {
        refuse(tls, TLS_FAILURE_PROTOCOL, "more than 64 KiB of a handshake");
    }
}
