/* SPDX-License-Identifier: MIT */
/*
 * One message of a connection, from its bytes to its request. framing_next() cuts the bytes into
 * parts, and it alone decides where anything ends. llhttp only reads the fields of heads: it stops
 * at the end of a head and starts anew with the next one. takers[] holds the function for each kind
 * of part.
 *
 * Nothing after a message is looked at before its answer is out, so an error there cannot overtake
 * the answer.
 */
#include "config.h"

#include "base/check.h"
#include "server/daemon/connection/conn_priv.h"
#include "server/http/head.h"
#include "server/http/http.h"

/* ---- llhttp: fields of a head ---------------------------------------------------------------- */

/* The parser passes the connection to each callback; a non-zero result stops the parser. Callbacks
 * run inside read_head() only. */
static struct conn *conn_of(llhttp_t *parser)
{
    struct conn *conn;
    OBJ_CAST(conn, parser->data, CONN_MAGIC);
    must(conn->state == CONN_HEAD);
    return conn;
}

/* |http_status| is 0, or the status of the answer; exchange_error() has its text. */
static bool settle(struct conn *conn, int http_status)
{
    if (http_status) {
        exchange_refuse(&conn->exchange, http_status);
    }
    return !http_status;
}

static struct head *fields_of(struct conn *conn)
{
    return exchange_fields(&conn->exchange);
}

/* llhttp 9 finds the second of the two fields wrong by itself, llhttp 8 both at the end. */
static bool has_two_lengths(const struct head *fields, enum llhttp_errno error)
{
    return (error == HPE_INVALID_CONTENT_LENGTH && head_has(fields, HTTP_TRANSFER_ENCODING)) ||
           (error == HPE_INVALID_TRANSFER_ENCODING && head_has(fields, HTTP_CONTENT_LENGTH));
}

/* llhttp's own messages say less. */
static const char *explain(const llhttp_t *parser, enum llhttp_errno error)
{
    switch (error) {
    case HPE_OK:
    case HPE_PAUSED:
        return "the end of the head is ambiguous";
    case HPE_INVALID_METHOD:
        return "expected a method such as GET or POST, got an unknown one";
    case HPE_INVALID_URL:
        return "expected a target such as /v2, got one that is no URL";
    case HPE_INVALID_CONTENT_LENGTH:
        return "Content-Length: expected digits, a number of at most 64 bits, got something else";
    case HPE_UNEXPECTED_CONTENT_LENGTH:
        return "expected one Content-Length and no Transfer-Encoding beside it";
    case HPE_INVALID_TRANSFER_ENCODING:
        return "Transfer-Encoding: expected chunked, once";
    default:
        return parser->reason ? parser->reason : llhttp_errno_name(error);
    }
}

static bool refuse_head(struct conn *conn, enum llhttp_errno error)
{
    struct error *err = exchange_error(&conn->exchange);
    uint32_t number = fields_of(conn)->field_count;
    if (has_two_lengths(fields_of(conn), error)) {
        error = HPE_UNEXPECTED_CONTENT_LENGTH;
    }
    const char *why = explain(&conn->parser, error);
    if (number) {
        error_set(err, ST_INVALID, "field line %u: %s", number, why);
    } else {
        error_set(err, ST_INVALID, "request line: %s", why);
    }
    return settle(conn, 400);
}

/* Versions of llhttp know other methods beyond those of 8.1: all refuse the same. */
static int on_url(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    if (parser->method > HTTP_FLUSH) {
        refuse_head(conn, HPE_INVALID_METHOD);
        return -1;
    }
    int status = head_add_target(fields_of(conn), conn_params(conn), span_of(at, len),
                                 exchange_error(&conn->exchange));
    return settle(conn, status) ? 0 : -1;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t len)
{
    head_add_name(fields_of(conn_of(parser)), span_of(at, len));
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t len)
{
    struct conn *conn = conn_of(parser);
    int status = head_add_value(fields_of(conn), span_of(at, len), exchange_error(&conn->exchange));
    return settle(conn, status) ? 0 : -1;
}

static int on_header_value_complete(llhttp_t *parser)
{
    head_end_field(fields_of(conn_of(parser)));
    return 0;
}

/* llhttp sees nothing of a body: it stays paused until the next head. */
static int on_headers_complete(llhttp_t *parser)
{
    (void)parser;
    return HPE_PAUSED;
}

static const llhttp_settings_t settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_header_value_complete = on_header_value_complete,
    .on_headers_complete = on_headers_complete,
};

/* Both readers must find the end of the head at the same byte; otherwise the meaning of the next
 * byte is unknown. */
static bool read_head(struct conn *conn, struct span bytes, bool is_end)
{
    llhttp_t *parser = &conn->parser;
    fields_of(conn)->bytes += (uint32_t)bytes.len;
    enum llhttp_errno error = llhttp_execute(parser, (const char *)bytes.ptr, bytes.len);
    const uint8_t *end = error == HPE_OK ? NULL : (const uint8_t *)llhttp_get_error_pos(parser);
    if (is_end ? error == HPE_PAUSED && end == bytes.ptr + bytes.len : error == HPE_OK) {
        return true;
    }
    bool is_refused = exchange_is_refused(&conn->exchange); /* by a callback */
    return is_refused ? false : refuse_head(conn, error);
}

/* ---- parts of a message ---------------------------------------------------------------------- */

/* Takes a part. False: the message is refused; its request, if there is one, has the status and the
 * text. */
typedef bool take_f(struct conn *conn, struct span bytes);

static bool begin_request(struct conn *conn)
{
    must(conn->state == CONN_IDLE);
    if (!exchange_begin(&conn->exchange)) {
        return false;
    }
    conn->takes_trailers = false;
    conn->wants_continue = conn->is_keep_alive = conn->is_http_1_0 = conn->is_chunked = false;
    conn->session.discarded_bytes = 0;
    return true;
}

/* The first part of a message begins it. */
static bool ensure_request(struct conn *conn)
{
    if (conn->exchange.request) {
        return true;
    }
    if (!begin_request(conn)) {
        return false;
    }
    llhttp_reset(&conn->parser);
    conn_enter(conn, CONN_HEAD, conn_params(conn)->header_timeout);
    return true;
}

static bool take_head(struct conn *conn, struct span bytes)
{
    return ensure_request(conn) && read_head(conn, bytes, false);
}

static enum route_method method_of(const llhttp_t *parser)
{
    switch (parser->method) {
    case HTTP_GET:
        return ROUTE_GET_ONLY;
    case HTTP_HEAD:
        return ROUTE_HEAD_ONLY;
    case HTTP_POST:
        return ROUTE_POST_ONLY;
    default:
        return ROUTE_OTHER;
    }
}

/* A refused request keeps its connection if its body is short enough to be skipped. */
static bool can_discard(struct conn *conn, bool is_chunked, uint64_t length)
{
    bool is_short = is_chunked || length <= SESSION_DISCARD_BYTES_MAX;
    return is_short && !head_has(fields_of(conn), HTTP_EXPECT);
}

/* The head is in order, and so is what it says about the connection. */
static bool begin_body(struct conn *conn, const struct exchange_head *head, bool is_chunked)
{
    framing_begin_body(&conn->framing, is_chunked, head->content_length);
    conn_enter(conn, CONN_BODY, conn_params(conn)->body_timeout);
    if (!exchange_end_head(&conn->exchange, head)) {
        return can_discard(conn, is_chunked, head->content_length);
    }
    conn->wants_continue = head_has(fields_of(conn), HTTP_EXPECT) && !conn->is_http_1_0;
    return true;
}

/* Heads that all differ are learnt so many times in a row, then one of so many. */
#define LEARN_MAX 4
#define LEARN_EACH 16

/* The head |bytes|, whole, is in order: knows it when it comes again. */
static void learn(struct conn *conn, struct span bytes, struct exchange_head *head)
{
    struct conn_known *known = &conn->known;
    const struct head *fields = fields_of(conn);
    bool is_usual = conn->is_keep_alive && !head_has(fields, HTTP_EXPECT) &&
                    !head_has(fields, HTTP_TRANSFER_ENCODING);
    if (!is_usual || (known->miss_count++ >= LEARN_MAX && known->miss_count % LEARN_EACH != 0)) {
        return;
    }
    head_pattern_free(known->pattern);
    known->pattern = head_pattern_new(bytes, fields);
    known->head = *head;
    known->is_http_1_0 = conn->is_http_1_0;
    known->takes_trailers = conn->takes_trailers;
    head->is_learnt = true;
}

/* Takes the fields about the connection, then those about the request. |is_whole|: |bytes| are all
 * of the head, and it is not the first one of the connection. */
static bool take_fields(struct conn *conn, struct span bytes, bool is_whole)
{
    const llhttp_t *parser = &conn->parser;
    const struct head *fields = fields_of(conn);
    bool is_chunked = head_has(fields, HTTP_TRANSFER_ENCODING);
    uint64_t length = head_has(fields, HTTP_CONTENT_LENGTH) ? parser->content_length : 0;
    struct exchange_head head = {
        .method = method_of(parser),
        .method_name = llhttp_method_name((llhttp_method_t)parser->method),
        .has_body = is_chunked || length > 0,
        .content_length = length,
    };
    conn->is_keep_alive = llhttp_should_keep_alive(parser);
    conn->takes_trailers = head_takes_trailers(fields);
    if (is_whole) {
        learn(conn, bytes, &head);
    }
    return begin_body(conn, &head, is_chunked);
}

static bool take_head_end(struct conn *conn, struct span bytes)
{
    bool is_whole = !conn->exchange.request && exchange_is_repeat(&conn->exchange);
    if (!ensure_request(conn) || !read_head(conn, bytes, true)) {
        return false;
    }
    const struct head *fields = fields_of(conn);
    conn->is_http_1_0 = conn->parser.http_minor == 0;
    return settle(conn, head_verify(fields, conn->is_http_1_0, exchange_error(&conn->exchange))) &&
           take_fields(conn, bytes, is_whole);
}

/* Returns the bytes of a known head with which a message begins; 0: it is another one. */
static size_t find_known_head(struct conn *conn, struct span bytes)
{
    bool may_be =
        conn->state == CONN_IDLE && conn->known.pattern && framing_is_at_start(&conn->framing);
    return may_be
               ? head_pattern_match(conn->known.pattern, bytes, conn_params(conn)->header_bytes_max)
               : 0;
}

/* Takes the head that find_known_head() has found. */
static bool take_known_head(struct conn *conn)
{
    struct conn_known *known = &conn->known;
    known->miss_count = 0;
    if (!begin_request(conn)) {
        return false;
    }
    if (!head_pattern_fill(known->pattern, fields_of(conn))) {
        conn_enter(conn, CONN_HEAD, conn_params(conn)->header_timeout);
        error_no_memory(exchange_error(&conn->exchange), "a request's head");
        return settle(conn, 503);
    }
    conn->is_keep_alive = true;
    conn->is_http_1_0 = known->is_http_1_0;
    conn->takes_trailers = known->takes_trailers;
    known->head.content_length = head_pattern_length(known->pattern);
    known->head.has_body = known->head.content_length > 0;
    known->head.is_known = true;
    framing_pass_head(&conn->framing);
    return begin_body(conn, &known->head, false);
}

/* The expected bytes of a chunk: no more are waited for than may come. */
static bool take_chunk(struct conn *conn, struct span bytes)
{
    (void)bytes;
    must(conn->state == CONN_BODY);
    if (exchange_is_refused(&conn->exchange)) {
        return true; /* discarded later */
    }
    return settle(conn, exchange_expect_body(&conn->exchange, conn->framing.left));
}

static bool take_data(struct conn *conn, struct span bytes)
{
    must(conn->state == CONN_BODY);
    if (exchange_is_refused(&conn->exchange)) {
        conn->session.discarded_bytes += bytes.len;
        return conn->session.discarded_bytes <= SESSION_DISCARD_BYTES_MAX;
    }
    return settle(conn, exchange_add_body(&conn->exchange, bytes));
}

static bool take_refusal(struct conn *conn, struct span bytes)
{
    (void)bytes;
    if (ensure_request(conn) && !exchange_is_refused(&conn->exchange)) {
        settle(conn, framing_explain(&conn->framing, exchange_error(&conn->exchange)));
    }
    return false;
}

static take_f *const takers[FRAMING_PART_COUNT] = {
    [FRAMING_PART_HEAD] = take_head,       [FRAMING_PART_HEAD_END] = take_head_end,
    [FRAMING_PART_CHUNK] = take_chunk,     [FRAMING_PART_DATA] = take_data,
    [FRAMING_PART_REFUSED] = take_refusal,
};

/* ---- what conn.c sees ------------------------------------------------------------------------ */

void conn_message_init(struct conn *conn)
{
    llhttp_init(&conn->parser, HTTP_REQUEST, &settings);
    must(conn->parser.lenient_flags == 0); /* each version has other ones; none is wanted */
    conn->parser.data = conn;
    framing_begin(&conn->framing, conn_params(conn));
}

void conn_message_refuse(struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    if (!conn->exchange.request) {
        conn_abort(conn); /* no memory for a request */
        return;
    }
    must(exchange_is_refused(&conn->exchange));
    must(conn->state == CONN_HEAD || conn->state == CONN_BODY);
    conn->is_keep_alive = false;
    conn_enter(conn, CONN_BUSY, conn_params(conn)->request_timeout);
    exchange_run(&conn->exchange);
}

size_t conn_message_missing(const struct conn *conn)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    bool is_wanted = conn->state == CONN_BODY && !exchange_is_refused(&conn->exchange);
    return is_wanted ? (size_t)framing_missing(&conn->framing) : 0;
}

static void run_message(struct conn *conn)
{
    must(conn->state == CONN_BODY); /* its head is in order */
    framing_begin(&conn->framing, conn_params(conn));
    conn_enter(conn, CONN_BUSY, conn_params(conn)->request_timeout);
    exchange_run(&conn->exchange);
}

size_t conn_message_feed(struct conn *conn, struct span bytes)
{
    OBJ_CHECK(conn, CONN_MAGIC);
    must(conn->state == CONN_IDLE || conn->state == CONN_HEAD || conn->state == CONN_BODY);
    size_t known = find_known_head(conn, bytes);
    if (known && !take_known_head(conn)) {
        conn_message_refuse(conn);
        return bytes.len;
    }
    struct span rest = span_of(bytes.ptr + known, bytes.len - known);
    for (;;) {
        struct framing_part part = framing_next(&conn->framing, &rest);
        if (part.kind == FRAMING_PART_NONE) {
            if (conn->state == CONN_BODY) {
                conn_set_deadline(conn, conn_params(conn)->body_timeout);
            }
            return bytes.len;
        }
        if (part.kind == FRAMING_PART_END) {
            run_message(conn);
            return bytes.len - rest.len;
        }
        if (!takers[part.kind](conn, part.bytes)) {
            conn_message_refuse(conn);
            return bytes.len; /* after an error nothing has a meaning */
        }
    }
}
