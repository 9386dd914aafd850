/* SPDX-License-Identifier: MIT */
/*
 * The transport of TLS over a pair of sockets. The client is OpenSSL, linked with this program, and
 * the user of the transport is this file: it chooses its room, and says whether the turn of the
 * loop has time.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/buf.h"
#include "server/http/transport_socket.h"
#include "server/http/transport_tls.h"

#define BYTES_MAX (8u << 20)
#define ROOM_BYTES 5000 /* not a divisor of a record */
#define STEPS_MAX 100000
#define RECORD_OVERHEAD 64

/* ---- a certificate --------------------------------------------------------------------------- */

static char certificate_path[64];

/* Its key is in the same file. */
static void make_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_set_pubkey(certificate, key);
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    snprintf(certificate_path, sizeof(certificate_path), "/tmp/pted-test-XXXXXX");
    int fd = mkstemp(certificate_path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_int_equal(PEM_write_X509(file, certificate), 1);
    assert_int_equal(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL), 1);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
}

/* ---- both sides ------------------------------------------------------------------------------ */

static struct world {
    uv_loop_t loop;
    struct tls_hub hub;
    struct tls_context *context;
    struct transport *transport;
    SSL_CTX *client_ctx;
    SSL *client;
    int client_fd;
    bool has_time;
    /* events that the user was told */
    uint8_t room[ROOM_BYTES];
    size_t room_bytes;
    struct buf received;
    unsigned counts[TRANSPORT_REFUSED + 1], failures, shuts, done_count, failed_count;
    bool was_shut, is_closed, is_in_write;
    char why[128];
    /* bytes that the client was sent */
    struct buf taken;
} world;

static struct transport_room on_room(void *user)
{
    assert_ptr_equal(user, &world);
    return (struct transport_room){world.room, world.room_bytes};
}

static void on_received(void *user, enum transport_event event, struct span bytes)
{
    assert_ptr_equal(user, &world);
    world.counts[event]++;
    if (event == TRANSPORT_BYTES) {
        assert_true(bytes.len <= ROOM_BYTES);
        buf_add(&world.received, bytes.ptr, bytes.len);
    } else if (event == TRANSPORT_NO_ROOM) {
        transport_read(world.transport, false);
    }
}

static void on_shut(void *user, bool is_ok)
{
    assert_ptr_equal(user, &world);
    world.shuts++;
    world.was_shut = is_ok;
}

static void on_closed(void *user)
{
    assert_ptr_equal(user, &world);
    world.is_closed = true;
}

static const struct transport_user transport_user = {on_room, on_received, on_shut, on_closed};

static bool has_time(void *user)
{
    assert_ptr_equal(user, &world);
    return world.has_time;
}

static void on_failed(void *user, const struct transport *transport, enum tls_failure failure,
                      const char *why)
{
    assert_ptr_equal(user, &world);
    (void)transport;
    world.failures |= 1u << failure;
    snprintf(world.why, sizeof(world.why), "%s", why);
}

static const struct tls_hub_ops hub_ops = {has_time, on_failed};

static int set_up(void **state)
{
    const struct tls_files files = {.certificate = certificate_path,
                                    .protocols = (const uint8_t *)"\2h3\2h2\10http/1.1"};
    struct error err;
    int fds[2], uv_code;
    (void)state;
    memset(&world, 0, sizeof(world));
    world.has_time = true;
    world.room_bytes = ROOM_BYTES;
    buf_init(&world.received, BYTES_MAX);
    buf_init(&world.taken, BYTES_MAX);
    uv_loop_init(&world.loop);
    tls_hub_init(&world.hub, &world.loop, &hub_ops, &world);
    assert_ok(err, tls_context_new(&files, &world.context, &err));
    assert_ok(err, tls_hub_open(&world.hub, world.context->openssl, &err));
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    struct transport *inner = transport_socket_new(&world.loop, fds[0], true, &uv_code);
    world.transport = transport_tls_new(&world.hub, world.context, inner);
    assert_non_null(world.transport);
    transport_set_user(world.transport, &transport_user, &world);
    transport_read(world.transport, true);
    world.client_fd = fds[1];
    world.client_ctx = SSL_CTX_new(TLS_client_method());
    world.client = SSL_new(world.client_ctx);
    SSL_set_fd(world.client, fds[1]);
    SSL_set_connect_state(world.client);
    return 0;
}

static void turn(void)
{
    uv_run(&world.loop, UV_RUN_NOWAIT);
}

static int tear_down(void **state)
{
    (void)state;
    if (world.transport && !world.is_closed) {
        transport_close(world.transport);
    }
    for (int i = 0; i < STEPS_MAX && !world.is_closed; i++) {
        turn();
    }
    assert_true(world.is_closed);
    SSL_free(world.client);
    SSL_CTX_free(world.client_ctx);
    if (world.client_fd >= 0) {
        close(world.client_fd);
    }
    uv_close((uv_handle_t *)&world.hub.idle, NULL);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    tls_hub_fini(&world.hub);
    tls_context_free(world.context);
    buf_fini(&world.received);
    buf_fini(&world.taken);
    return uv_loop_close(&world.loop);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void shake_hands(void)
{
    for (int i = 0; i < STEPS_MAX && world.counts[TRANSPORT_OPENED] == 0; i++) {
        int rc = SSL_do_handshake(world.client);
        assert_true(rc == 1 || SSL_get_error(world.client, rc) == SSL_ERROR_WANT_READ);
        turn();
    }
    assert_int_equal(world.counts[TRANSPORT_OPENED], 1);
    assert_false(world.transport->is_opening);
    assert_string_equal(world.transport->version, "TLSv1.3");
    assert_null(world.transport->subject);
}

/* Reads what has come. True: there was something. */
static bool take(void)
{
    uint8_t bytes[4000];
    int len = SSL_read(world.client, bytes, sizeof(bytes));
    if (len > 0) {
        buf_add(&world.taken, bytes, (size_t)len);
    }
    return len > 0;
}

static void client_sends(const uint8_t *bytes, size_t len)
{
    size_t done = 0;
    for (int i = 0; i < STEPS_MAX && done < len; i++) {
        int rc = SSL_write(world.client, bytes + done, (int)(len - done));
        done += rc > 0 ? (size_t)rc : 0;
        turn();
    }
    assert_int_equal(done, len);
}

/* Turns until the user has |len| bytes. */
static void await_received(size_t len)
{
    for (int i = 0; i < STEPS_MAX && world.received.len < len; i++) {
        turn();
    }
    assert_int_equal(world.received.len, len);
}

static void await_event(enum transport_event event)
{
    for (int i = 0; i < STEPS_MAX && world.counts[event] == 0; i++) {
        turn();
    }
    assert_int_equal(world.counts[event], 1);
}

static uint8_t *make_bytes(size_t len)
{
    uint8_t *bytes = malloc(len + 1);
    for (size_t i = 0; i < len; i++) {
        bytes[i] = (uint8_t)(i * 7 + (i >> 11));
    }
    return bytes;
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void bytes_come_in_the_room_of_the_user(void **state)
{
    static const size_t sizes[] = {1, 4999, 5000, 5001, 16383, 16384, 16385, 300000};
    (void)state;
    shake_hands();
    assert_int_equal(world.hub.handshakes[TLS_VERSION_1_3][0].value, 1);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        uint8_t *bytes = make_bytes(sizes[i]);
        buf_reset(&world.received);
        client_sends(bytes, sizes[i]);
        await_received(sizes[i]);
        assert_memory_equal(world.received.ptr, bytes, sizes[i]);
        free(bytes);
    }
    assert_int_equal(transport_pending(world.transport, TRANSPORT_IN), 0);
}

static void a_user_without_room_gets_all_later(void **state)
{
    uint8_t *bytes = make_bytes(100000);
    (void)state;
    shake_hands();
    client_sends(bytes, 20000); /* four rooms */
    await_received(20000);
    world.room_bytes = 0;
    for (int i = 0; i < 100; i++) {
        SSL_write(world.client, bytes + 20000, 16000);
        turn();
    }
    assert_int_equal(world.received.len, 20000);
    assert_int_equal(world.counts[TRANSPORT_NO_ROOM], 1); /* it reads no more */
    assert_true(transport_pending(world.transport, TRANSPORT_IN) > 0);
    world.room_bytes = 100;
    unsigned told = world.counts[TRANSPORT_BYTES];
    transport_read(world.transport, true);
    assert_int_equal(world.counts[TRANSPORT_BYTES], told); /* never within the call */
    for (int i = 0; i < STEPS_MAX && world.received.len < 36000; i++) {
        turn();
    }
    assert_memory_equal(world.received.ptr, bytes, 36000);
    free(bytes);
}

static void a_user_may_stop_in_the_middle_of_a_record(void **state)
{
    uint8_t *bytes = make_bytes(16000);
    (void)state;
    shake_hands();
    world.room_bytes = 0;
    client_sends(bytes, 16000);
    for (int i = 0; i < 10; i++) {
        turn();
    }
    for (size_t got = 0; got < 16000; got += world.room_bytes) {
        world.room_bytes = got + 3000 <= 16000 ? 3000 : 16000 - got;
        transport_read(world.transport, true);
        for (int i = 0; i < STEPS_MAX && world.received.len == got; i++) {
            turn();
            transport_read(world.transport, world.received.len == got);
        }
        if (world.received.len != got + world.room_bytes) {
            break; /* the loop has given more in one turn, which is fine */
        }
    }
    transport_read(world.transport, true);
    world.room_bytes = ROOM_BYTES;
    await_received(16000);
    assert_memory_equal(world.received.ptr, bytes, 16000);
    free(bytes);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void on_done(struct transport_rest *rest, bool is_ok)
{
    assert_false(world.is_in_write);
    assert_ptr_equal(rest->user, (void *)(uintptr_t)(world.done_count + 1)); /* in order */
    world.done_count++;
    world.failed_count += !is_ok;
}

static ssize_t write_to_client(struct span *spans, unsigned count, struct transport_rest *rest)
{
    world.is_in_write = true;
    ssize_t done = transport_write(world.transport, spans, count, rest);
    world.is_in_write = false;
    return done;
}

static void a_write_is_taken_in_parts_and_in_order(void **state)
{
    enum { FIRST = 3000000, SECOND = 100, THIRD = 50000 };
    uint8_t *bytes = make_bytes(FIRST + SECOND + THIRD);
    struct transport_rest rests[3];
    (void)state;
    memset(rests, 0, sizeof(rests));
    for (size_t i = 0; i < 3; i++) {
        rests[i].user = (void *)(uintptr_t)(i + 1);
        rests[i].done = on_done;
    }
    shake_hands();
    struct span first[] = {span_of(bytes, 0), span_of(bytes, 10), span_of(bytes + 10, FIRST - 10)};
    ssize_t done = write_to_client(first, 3, NULL);
    assert_true(done > 10 && done < FIRST); /* as much as a socket's buffer takes */
    assert_int_equal(write_to_client(first, 3, NULL), 0);
    struct span rest = span_of(bytes + done, FIRST - (size_t)done);
    assert_int_equal(write_to_client(&rest, 1, &rests[0]), 0);
    struct span second[] = {span_of(bytes + FIRST, 1), span_of(bytes + FIRST + 1, SECOND - 1)};
    assert_int_equal(write_to_client(second, 2, &rests[1]), 0);
    struct span third = span_of(bytes + FIRST + SECOND, THIRD);
    assert_int_equal(write_to_client(&third, 1, &rests[2]), 0);
    size_t pending = transport_pending(world.transport, TRANSPORT_OUT);
    assert_true(pending >= FIRST + SECOND + THIRD - (size_t)done);
    for (int i = 0; i < STEPS_MAX && world.taken.len < FIRST + SECOND + THIRD; i++) {
        turn();
        take();
        size_t now = transport_pending(world.transport, TRANSPORT_OUT);
        assert_true(now <= pending + RECORD_OVERHEAD); /* else the client has no progress */
        pending = now;
    }
    for (int i = 0; i < 10; i++) {
        turn();
    }
    assert_int_equal(world.taken.len, FIRST + SECOND + THIRD);
    assert_memory_equal(world.taken.ptr, bytes, FIRST + SECOND + THIRD);
    assert_int_equal(world.done_count, 3);
    assert_int_equal(world.failed_count, 0);
    assert_int_equal(transport_pending(world.transport, TRANSPORT_OUT), 0);
    free(bytes);
}

static void closing_ends_the_writes_that_wait(void **state)
{
    uint8_t *bytes = make_bytes(4000000);
    struct transport_rest rests[2];
    struct span span = span_of(bytes, 4000000);
    (void)state;
    memset(rests, 0, sizeof(rests));
    for (size_t i = 0; i < 2; i++) {
        rests[i].user = (void *)(uintptr_t)(i + 1);
        rests[i].done = on_done;
    }
    shake_hands();
    assert_int_equal(write_to_client(&span, 1, &rests[0]), 0);
    turn();
    assert_int_equal(write_to_client(&span, 1, &rests[1]), 0);
    assert_int_equal(world.done_count, 0);
    transport_close(world.transport);
    assert_false(world.is_closed);
    for (int i = 0; i < 10; i++) {
        turn();
    }
    assert_true(world.is_closed && world.done_count == 2 && world.failed_count == 2);
    free(bytes);
}

/* Each new key has an answer. A client that does not take them is not read, until it does. */
static void answers_to_new_keys_do_not_pile_up(void **state)
{
    enum { KEYS = 30000, QUEUED_MAX = 2000 };
    unsigned keys = 0;
    (void)state;
    shake_hands();
    for (; keys < KEYS && transport_pending(world.transport, TRANSPORT_IN) == 0; keys++) {
        assert_int_equal(SSL_key_update(world.client, SSL_KEY_UPDATE_REQUESTED), 1);
        assert_int_equal(SSL_do_handshake(world.client), 1);
        turn();
        assert_true(transport_pending(world.transport, TRANSPORT_OUT) < QUEUED_MAX);
    }
    assert_true(keys < KEYS); /* the last one is not read: the socket's buffer is full of answers */
    for (int i = 0; i < STEPS_MAX && transport_pending(world.transport, TRANSPORT_IN) > 0; i++) {
        take();
        turn();
    }
    client_sends((const uint8_t *)"ask", 3);
    await_received(3);
}

/* ---- ends ------------------------------------------------------------------------------------ */

static void a_shutdown_comes_behind_the_last_byte(void **state)
{
    uint8_t *bytes = make_bytes(2000000);
    struct transport_rest rest = {.user = (void *)1, .done = on_done};
    struct span span = span_of(bytes, 2000000);
    (void)state;
    shake_hands();
    assert_int_equal(write_to_client(&span, 1, &rest), 0);
    assert_true(transport_shutdown(world.transport));
    for (int i = 0; i < STEPS_MAX && !(SSL_get_shutdown(world.client) & SSL_RECEIVED_SHUTDOWN);
         i++) {
        turn();
        take();
    }
    turn();
    assert_int_equal(world.taken.len, 2000000);
    assert_true(world.shuts == 1 && world.was_shut && world.done_count == 1);
    client_sends(bytes, 10); /* the other direction is open */
    await_received(10);
    free(bytes);
}

/* The first of ours that the client names, whatever the client prefers. */
static void a_protocol_is_chosen_by_name(void **state)
{
    static const struct {
        const char *names, *chosen;
    } rows[] = {
        {NULL, ""},
        {"\10http/1.1\2h2", "h2"},
        {"\10http/1.1", "http/1.1"},
        {"\1h\3h2c\10http/1.0\2h2", "h2"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const char *names = rows[i].names;
        if (i > 0) {
            tear_down(state);
            set_up(state);
        }
        if (names) {
            SSL_set_alpn_protos(world.client, (const uint8_t *)names, (unsigned)strlen(names));
        }
        shake_hands();
        assert_true(span_is(world.transport->protocol, rows[i].chosen));
    }
}

static void a_client_that_names_other_protocols_is_refused(void **state)
{
    (void)state;
    SSL_set_alpn_protos(world.client, (const uint8_t *)"\2h4\7http/1.", 11);
    for (int i = 0; i < STEPS_MAX && world.counts[TRANSPORT_REFUSED] == 0; i++) {
        SSL_do_handshake(world.client);
        turn();
    }
    assert_int_equal(world.counts[TRANSPORT_REFUSED], 1);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_PROTOCOL);
}

static void the_client_ends_its_side(void **state)
{
    struct span answer = span_str("answer");
    (void)state;
    shake_hands();
    client_sends((const uint8_t *)"ask", 3);
    SSL_shutdown(world.client);
    await_event(TRANSPORT_END);
    assert_int_equal(world.received.len, 3);
    assert_int_equal(write_to_client(&answer, 1, NULL), 6);
    turn();
    assert_true(take());
    assert_memory_equal(world.taken.ptr, "answer", 6);
}

static void an_end_without_notice_is_a_cut(void **state)
{
    (void)state;
    shake_hands();
    client_sends((const uint8_t *)"ask", 3);
    await_received(3);
    shutdown(world.client_fd, SHUT_WR);
    await_event(TRANSPORT_BROKEN);
    assert_int_equal(world.counts[TRANSPORT_END], 0);
}

/* ---- clients that do not shake hands --------------------------------------------------------- */

static void plain_http_is_answered_in_its_language(void **state)
{
    char text[1024] = {0};
    (void)state;
    assert_true(transport_pending(world.transport, TRANSPORT_IN) > 0); /* it is opening */
    assert_int_equal(send(world.client_fd, "GET / HTTP/1.1\r\n\r\n", 18, 0), 18);
    await_event(TRANSPORT_REFUSED);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_HTTP);
    assert_true(transport_shutdown(world.transport));
    turn();
    assert_true(recv(world.client_fd, text, sizeof(text) - 1, 0) > 0);
    assert_non_null(strstr(text, "HTTP/1.1 400 "));
    assert_non_null(strstr(text, "this address speaks TLS"));
}

static void a_large_hello_is_refused_before_it_takes_memory(void **state)
{
    static const uint8_t hello[] = {22, 3, 1, 2, 0, 1, 1, 255, 0, 3, 3};
    (void)state;
    for (size_t i = 0; i < 8; i++) { /* nothing is known yet */
        assert_int_equal(send(world.client_fd, hello + i, 1, 0), 1);
        turn();
        assert_int_equal(world.failures, 0);
    }
    assert_int_equal(send(world.client_fd, hello + 8, 3, 0), 3);
    await_event(TRANSPORT_REFUSED);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_PROTOCOL);
}

/* The group of the client's key is not ours, so it is asked for another ClientHello. */
static char groups[] = "P-384:X25519";

static void a_second_hello_is_measured_too(void **state)
{
    static const uint8_t large[] = {22, 3, 3, 2, 0, 1, 1, 255, 0, 3, 3};
    uint8_t bytes[4096];
    (void)state;
    assert_int_equal(SSL_set1_groups_list(world.client, groups), 1);
    SSL_do_handshake(world.client);
    for (int i = 0; i < STEPS_MAX && recv(world.client_fd, bytes, sizeof(bytes), MSG_PEEK) <= 0;
         i++) {
        turn();
    }
    assert_int_equal(bytes[0], 22);
    assert_int_equal(world.failures, 0);
    assert_int_equal(send(world.client_fd, large, sizeof(large), 0), sizeof(large));
    await_event(TRANSPORT_REFUSED);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_PROTOCOL);
}

/* The version is chosen while the head of the next record is coming. */
static void a_head_in_two_parts_is_no_hello(void **state)
{
    static const uint8_t next[] = {22, 3, 3, 0, 1, 16, 0, 0};
    uint8_t bytes[4096];
    BIO *out = BIO_new(BIO_s_mem());
    (void)state;
    BIO_up_ref(out);
    assert_int_equal(SSL_set_max_proto_version(world.client, TLS1_2_VERSION), 1);
    SSL_set0_wbio(world.client, out);
    SSL_do_handshake(world.client);
    int len = BIO_read(out, bytes, sizeof(bytes) - sizeof(next));
    assert_true(len > 0);
    memcpy(bytes + len, next, sizeof(next));
    len += (int)sizeof(next);
    assert_int_equal(send(world.client_fd, bytes, (size_t)len, 0), len);
    for (int i = 0; i < 10; i++) {
        turn();
        send(world.client_fd, "\0\0", 2, MSG_NOSIGNAL);
    }
    await_event(TRANSPORT_REFUSED);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_PROTOCOL);
    BIO_free(out);
}

static void a_second_hello_is_answered(void **state)
{
    (void)state;
    assert_int_equal(SSL_set1_groups_list(world.client, groups), 1);
    shake_hands();
    client_sends((const uint8_t *)"ask", 3);
    await_received(3);
}

static void a_client_that_leaves_or_is_cut_is_counted(void **state)
{
    (void)state;
    assert_int_equal(send(world.client_fd, "\x16\x03\x01", 3, 0), 3);
    turn();
    shutdown(world.client_fd, SHUT_WR);
    await_event(TRANSPORT_BROKEN);
    assert_int_equal(world.failures, 1u << TLS_FAILURE_LEFT);
}

static void a_handshake_waits_for_a_turn_with_time(void **state)
{
    struct transport *others[3];
    int fds[3][2], uv_code;
    (void)state;
    world.has_time = false;
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds[i]), 0);
        others[i] = transport_tls_new(&world.hub, world.context,
                                      transport_socket_new(&world.loop, fds[i][0], true, &uv_code));
        transport_set_user(others[i], &transport_user, &world);
        transport_read(others[i], true);
        assert_int_equal(send(fds[i][1], "nonsense", 8, 0), 8);
    }
    turn(); /* their bytes come, and wait */
    unsigned refused = world.counts[TRANSPORT_REFUSED];
    for (unsigned i = 0; i < 4 && world.counts[TRANSPORT_REFUSED] < 3; i++) {
        turn();
        assert_true(world.counts[TRANSPORT_REFUSED] <= refused + i + 1); /* one a turn */
    }
    assert_int_equal(world.counts[TRANSPORT_REFUSED], 3);
    for (size_t i = 0; i < 3; i++) {
        world.is_closed = false;
        transport_close(others[i]);
        for (int j = 0; j < 10 && !world.is_closed; j++) {
            turn();
        }
        close(fds[i][1]);
    }
    world.is_closed = false;
    memset(world.counts, 0, sizeof(world.counts));
    shake_hands(); /* the last one has its turns, too */
}

/* ---- damaged records ------------------------------------------------------------------------- */

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

/* The records of an honest client, taken from memory, with one change. */
static void damaged_records_end_the_connection(void **state)
{
    uint32_t seed = 3;
    for (unsigned round = 0; round < 400; round++) {
        uint8_t bytes[4096];
        BIO *out = BIO_new(BIO_s_mem());
        if (round > 0) {
            tear_down(state);
            set_up(state);
        }
        bool is_late = round % 2;
        if (is_late) {
            shake_hands();
        }
        BIO_up_ref(out);
        SSL_set0_wbio(world.client, out);
        if (is_late) {
            assert_int_equal(SSL_write(world.client, "0123456789abcdef", 16), 16);
        } else {
            SSL_do_handshake(world.client);
        }
        int len = BIO_read(out, bytes, sizeof(bytes));
        assert_true(len > 0);
        unsigned at = next_random(&seed) % (unsigned)len;
        bytes[at] ^= (uint8_t)(1u << next_random(&seed) % 8);
        assert_int_equal(send(world.client_fd, bytes, (size_t)len, MSG_NOSIGNAL), len);
        shutdown(world.client_fd, SHUT_WR);
        for (int i = 0; i < STEPS_MAX && world.counts[TRANSPORT_BROKEN] == 0 &&
                        world.counts[TRANSPORT_REFUSED] == 0;
             i++) {
            turn();
        }
        assert_int_equal(world.received.len, 0); /* nothing that was changed is taken for true */
        BIO_free(out);
    }
}

int main(void)
{
    make_certificate();
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_protocol_is_chosen_by_name),
        TEST(a_client_that_names_other_protocols_is_refused),
        TEST(bytes_come_in_the_room_of_the_user),
        TEST(a_user_without_room_gets_all_later),
        TEST(a_user_may_stop_in_the_middle_of_a_record),
        TEST(a_write_is_taken_in_parts_and_in_order),
        TEST(closing_ends_the_writes_that_wait),
        TEST(answers_to_new_keys_do_not_pile_up),
        TEST(a_shutdown_comes_behind_the_last_byte),
        TEST(the_client_ends_its_side),
        TEST(an_end_without_notice_is_a_cut),
        TEST(plain_http_is_answered_in_its_language),
        TEST(a_large_hello_is_refused_before_it_takes_memory),
        TEST(a_second_hello_is_measured_too),
        TEST(a_head_in_two_parts_is_no_hello),
        TEST(a_second_hello_is_answered),
        TEST(a_client_that_leaves_or_is_cut_is_counted),
        TEST(a_handshake_waits_for_a_turn_with_time),
        TEST(damaged_records_end_the_connection),
    };
#undef TEST
    int status = cmocka_run_group_tests(tests, NULL, NULL);
    unlink(certificate_path);
    return status;
}
