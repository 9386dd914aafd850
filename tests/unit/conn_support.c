/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/conn_support.h"

#include <stdlib.h>
#include <string.h>

#include "server/daemon/connection/opening.h"
#include "tests/unit/unit.h"

#define SENT_BYTES_MAX 65536

struct request *__wrap_request_take(struct requests *of, struct exchange *exchange);
bool __wrap_request_begin(struct request *request, const struct exchange_head *of);
void __wrap_request_run(struct request *request);
void __wrap_request_written(struct request *request, bool is_ok);
void __wrap_request_abandon(struct request *request);
uint64_t __wrap_uv_hrtime(void);

/* The clock stands still, so a turn of the loop never ends for lack of time. */
uint64_t __wrap_uv_hrtime(void)
{
    return 1;
}

/* ---- the transport --------------------------------------------------------------------------- */

struct wire wire;

static void do_read(struct transport *transport, bool is_on)
{
    (void)transport;
    wire.is_reading = is_on;
}

static ssize_t do_write(struct transport *transport, const struct span *spans, unsigned count,
                        struct transport_rest *rest)
{
    (void)transport;
    size_t done = 0;
    assert_false(wire.is_shut || wire.is_closing);
    for (unsigned i = 0; i < count && !wire.is_broken; i++) {
        size_t len = rest || spans[i].len < wire.room ? spans[i].len : wire.room;
        buf_add(rest ? &wire.queue : &wire.sent, spans[i].ptr, len);
        wire.room -= rest ? 0 : len;
        done += len;
    }
    wire.rest = rest && !wire.is_broken ? rest : wire.rest;
    return wire.is_broken ? -1 : rest ? 0 : (ssize_t)done;
}

static bool do_shutdown(struct transport *transport)
{
    (void)transport;
    wire.is_shut = !wire.is_unshuttable;
    return wire.is_shut;
}

static void do_close(struct transport *transport)
{
    (void)transport;
    assert_false(wire.is_closing);
    wire.is_closing = true;
}

static size_t do_pending(const struct transport *transport, enum transport_way way)
{
    (void)transport;
    return way == TRANSPORT_OUT ? wire.queue.len : wire.unread;
}

static const struct transport_ops wire_ops = {do_read, do_write, do_shutdown, do_close, do_pending};

/* The client takes the waiting bytes, or disconnects. */
void take_rest(bool is_ok)
{
    struct transport_rest *rest = wire.rest;
    assert_non_null(rest);
    if (is_ok) {
        buf_add(&wire.sent, wire.queue.ptr, wire.queue.len);
    }
    buf_reset(&wire.queue);
    wire.rest = NULL;
    rest->done(rest, is_ok);
}

void receive(const char *text)
{
    receive_bytes(span_str(text));
}

void receive_bytes(struct span bytes)
{
    while (bytes.len) {
        struct transport_room room = transport_tell_room(&wire.transport);
        size_t len = bytes.len < room.len ? bytes.len : room.len;
        assert_true(wire.is_reading && len > 0);
        memcpy(room.ptr, bytes.ptr, len);
        transport_tell(&wire.transport, TRANSPORT_BYTES, span_of(room.ptr, len));
        bytes = span_of(bytes.ptr + len, bytes.len - len);
    }
}

void lose_client(void)
{
    transport_tell(&wire.transport, TRANSPORT_BROKEN, (struct span){0});
}

/* ---- the call -------------------------------------------------------------------------------- */

struct request call;
struct exchange_head begun;
unsigned runs, writes_done, abandons;
bool was_ok, has_no_memory;
int refused_with;

struct request *__wrap_request_take(struct requests *of, struct exchange *exchange)
{
    assert_ptr_equal(of, &requests);
    assert_null(call.exchange);
    if (has_no_memory) {
        return NULL;
    }
    call.exchange = exchange;
    call.http_status = 0;
    head_reset(&call.head);
    body_reset(&call.body);
    return &call;
}

bool __wrap_request_begin(struct request *request, const struct exchange_head *of)
{
    assert_ptr_equal(request, &call);
    begun = *of;
    call.http_status = refused_with;
    return !refused_with;
}

void __wrap_request_run(struct request *request)
{
    assert_ptr_equal(request, &call);
    runs++;
}

void __wrap_request_written(struct request *request, bool is_ok)
{
    assert_ptr_equal(request, &call);
    writes_done++;
    was_ok = is_ok;
}

void __wrap_request_abandon(struct request *request)
{
    assert_ptr_equal(request, &call);
    abandons++;
    request->exchange = NULL;
}

const struct http_answer stream = {
    .status = 200, .content_type = "text/event-stream", .is_stream = true};
const struct http_answer whole = {.status = 200, .content_type = "text/plain", .content_length = 5};

enum exchange_written put(const struct http_answer *answer, struct span part, bool is_last)
{
    const struct exchange_part all = {
        .answer = answer, .spans = &part, .count = 1, .is_last = is_last};
    return exchange_write(call.exchange, &all);
}

void end_call(void)
{
    struct exchange *exchange = call.exchange;
    call.exchange = NULL;
    exchange_end(exchange);
}

/* ---- a server with one client ---------------------------------------------------------------- */

bool is_opening;
uint32_t place_count = 1;

int set_up(void **state)
{
    (void)state;
    open_conns(NULL, place_count);
    memset(&call, 0, sizeof(call));
    call.magic = REQUEST_MAGIC;
    head_init(&call.head, conns.params);
    body_init(&call.body, NULL, BODY_BYTES_MAX);
    runs = writes_done = abandons = 0;
    has_no_memory = false;
    refused_with = 0;
    memset(&wire, 0, sizeof(wire));
    buf_init(&wire.sent, SENT_BYTES_MAX);
    buf_init(&wire.queue, 2 * HELD_BYTES);
    wire.room = SIZE_MAX;
    transport_init(&wire.transport, &wire_ops);
    wire.transport.is_opening = is_opening;
    assert_true(opening_accept(&conns, &wire.transport, LISTENER_PUBLIC));
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    if (!wire.is_closing) {
        lose_client();
    }
    if (wire.rest) {
        take_rest(false);
    }
    transport_tell_closed(&wire.transport);
    head_fini(&call.head);
    body_fini(&call.body);
    buf_fini(&wire.sent);
    buf_fini(&wire.queue);
    close_conns();
    return 0;
}

const char *sent(void)
{
    buf_add_char(&wire.sent, '\0');
    wire.sent.len--;
    return (const char *)wire.sent.ptr;
}

const char *behind_head(void)
{
    const char *end = strstr(sent(), "\r\n\r\n");
    assert_non_null(end);
    return end + 4;
}

struct session *only_session(void)
{
    assert_int_equal(conns.count, 1);
    return LIST_ENTRY(conns.all.next, struct session, link);
}

void check_deadline(uint64_t now_ms)
{
    struct session *session = only_session();
    session->ops->check_deadline(session, now_ms);
}
