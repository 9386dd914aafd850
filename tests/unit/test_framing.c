/* SPDX-License-Identifier: MIT */
/*
 * Checks the table of server/http/framing.def as a whole. Then runs messages through it: the parts
 * are the same in every cut, and each limit acts at its byte.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "server/http/framing.h"

/* ---- the table ------------------------------------------------------------------------------- */

static bool is_counted(int state)
{
    return state == FRAMING_LENGTH || state == FRAMING_DATA;
}

/* States in which no byte may come: another event comes first, or the message has ended. */
static bool is_closed(int state)
{
    return is_counted(state) || state == FRAMING_REFUSED || state == FRAMING_HEAD_END ||
           state == FRAMING_END;
}

static struct framing_cell cell(int state, int class)
{
    return framing_cell((enum framing_state)state, (enum framing_class) class);
}

#define EACH_CELL(state, class)                                                                    \
    for (int state = 0; state < FRAMING_STATE_COUNT; state++)                                      \
        for (int class = 0; class < FRAMING_CLASS_COUNT; class ++)

static bool mark(bool *is_reached, int state)
{
    bool is_new = !is_reached[state];
    is_reached[state] = true;
    return is_new;
}

/* Changes of state without a byte: framing_begin_body(), the last byte of counted data, the size
 * 0. */
static bool mark_events(bool *is_reached)
{
    bool is_new = false;
    if (is_reached[FRAMING_HEAD_END]) {
        is_new |= mark(is_reached, FRAMING_LENGTH);
        is_new |= mark(is_reached, FRAMING_SIZE_FIRST);
    }
    if (is_reached[FRAMING_DATA]) {
        is_new |= mark(is_reached, FRAMING_DATA_CR);
    }
    if (is_reached[FRAMING_SIZE_LF]) {
        is_new |= mark(is_reached, FRAMING_TRAILER);
    }
    return is_new;
}

static void every_state_is_reached(void **context)
{
    bool is_reached[FRAMING_STATE_COUNT] = {[FRAMING_START] = true}, is_new = true;
    (void)context;
    while (is_new) {
        is_new = mark_events(is_reached);
        EACH_CELL(state, class)
        {
            is_new |= is_reached[state] && mark(is_reached, cell(state, class).next);
        }
    }
    for (int state = 0; state < FRAMING_STATE_COUNT; state++) {
        if (!is_reached[state]) {
            fail_msg("%s is not reached", framing_state_name((enum framing_state)state));
        }
    }
}

static bool refuses(enum framing_action action)
{
    return action == ACTION_REFUSE || action == ACTION_NO_VERSION || action == ACTION_OTHER_VERSION;
}

/* Every entry of the table is either refused with a reason or accepted with a next state. */
static void every_class_has_an_entry(void **context)
{
    int accepted[FRAMING_STATE_COUNT] = {0};
    (void)context;
    EACH_CELL(state, class)
    {
        struct framing_cell at = cell(state, class);
        assert_true(at.next < FRAMING_STATE_COUNT);
        assert_true(at.action < FRAMING_ACTION_COUNT);
        assert_int_equal(at.next == FRAMING_REFUSED, refuses((enum framing_action)at.action));
        accepted[state] += at.next != FRAMING_REFUSED;
    }
    for (int state = 0; state < FRAMING_STATE_COUNT; state++) {
        assert_int_equal(accepted[state] == 0, is_closed(state));
    }
}

/* All actions beside changes of state. No action can happen in a state that is not listed here. */
static void actions_happen_where_they_belong(void **context)
{
    static const struct {
        int state, action, next;
    } known[] = {
        {FRAMING_START, ACTION_BEGIN, FRAMING_METHOD},
        {FRAMING_TARGET, ACTION_NO_VERSION, FRAMING_REFUSED},
        {FRAMING_MAJOR, ACTION_MAJOR, FRAMING_MAJOR_DOT},
        {FRAMING_MAJOR_DOT, ACTION_OTHER_VERSION, FRAMING_REFUSED},
        {FRAMING_MINOR, ACTION_MINOR, FRAMING_LINE_CR},
        {FRAMING_LINE_CR, ACTION_OTHER_VERSION, FRAMING_REFUSED},
        {FRAMING_FIELD, ACTION_FIELD, FRAMING_NAME},
        {FRAMING_VALUE, ACTION_TAB, FRAMING_VALUE},
        {FRAMING_HEAD_LF, ACTION_HEAD_END, FRAMING_HEAD_END},
        {FRAMING_SIZE_FIRST, ACTION_SIZE, FRAMING_SIZE},
        {FRAMING_SIZE, ACTION_SIZE, FRAMING_SIZE},
        {FRAMING_SIZE_LF, ACTION_SIZE_END, FRAMING_DATA},
        {FRAMING_DATA_LF, ACTION_CHUNK, FRAMING_SIZE_FIRST},
        {FRAMING_TRAILER, ACTION_FIELD, FRAMING_TRAILER_NAME},
        {FRAMING_TRAILERS_LF, ACTION_END, FRAMING_END},
    };
    const size_t count = sizeof(known) / sizeof(known[0]);
    bool is_used[sizeof(known) / sizeof(known[0])] = {false};
    (void)context;
    EACH_CELL(state, class)
    {
        struct framing_cell at = cell(state, class);
        bool is_known = at.action == ACTION_NONE || at.action == ACTION_REFUSE;
        for (size_t i = 0; i < count; i++) {
            if (known[i].state == state && known[i].action == at.action) {
                assert_int_equal(at.next, known[i].next);
                is_known = is_used[i] = true;
            }
        }
        if (!is_known) {
            fail_msg("%s: action %d", framing_state_name((enum framing_state)state), at.action);
        }
    }
    for (size_t i = 0; i < count; i++) {
        assert_true(is_used[i]);
    }
}

/* Lines end with CR LF only: LF is accepted only after CR, and after CR only LF is accepted. */
static void lines_end_with_cr_lf(void **context)
{
    bool follows_cr[FRAMING_STATE_COUNT] = {false};
    (void)context;
    for (int state = 0; state < FRAMING_STATE_COUNT; state++) {
        follows_cr[cell(state, CLASS_CR).next] = true;
        assert_int_equal(cell(state, CLASS_CONTROL).next, FRAMING_REFUSED);
    }
    EACH_CELL(state, class)
    {
        if (!is_closed(state)) {
            bool is_accepted = cell(state, class).next != FRAMING_REFUSED;
            if (class == CLASS_LF || follows_cr[state]) {
                assert_int_equal(is_accepted, class == CLASS_LF && follows_cr[state]);
            }
        }
    }
}

/* A folded line would begin with white space; a value cannot hold a line end. */
static void nothing_is_folded(void **context)
{
    (void)context;
    for (int class = CLASS_SP; class <= CLASS_TAB; class ++) {
        assert_int_equal(cell(FRAMING_FIELD, class).next, FRAMING_REFUSED);
        assert_int_equal(cell(FRAMING_NAME, class).next, FRAMING_REFUSED);
        assert_int_equal(cell(FRAMING_TRAILER, class).next, FRAMING_REFUSED);
        assert_int_equal(cell(FRAMING_TRAILER_NAME, class).next, FRAMING_REFUSED);
    }
}

/* Bytes that are skipped without the table would not change the state. */
static void skipped_bytes_change_no_state(void **context)
{
    int skipping = 0;
    (void)context;
    for (int state = 0; state < FRAMING_STATE_COUNT; state++) {
        for (int byte = 0; byte < 256; byte++) {
            if (framing_skips((enum framing_state)state, (uint8_t)byte)) {
                struct framing_cell at = cell(state, (int)framing_class((uint8_t)byte));
                assert_int_equal(at.next, state);
                assert_int_equal(at.action, ACTION_NONE);
                skipping++;
            }
        }
    }
    assert_true(skipping > 500);
}

/* tchar of RFC 9110, 5.6.2; VCHAR and obs-text; all others are white space, line ends, controls. */
static void classes_of_bytes(void **context)
{
    static const char others[] = "!#$%&'*+-.^_`|~";
    (void)context;
    for (int byte = 0; byte < 256; byte++) {
        bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
        bool is_digit = byte >= '0' && byte <= '9';
        bool is_token = is_letter || is_digit || (byte && strchr(others, byte));
        bool is_hex = is_digit || (byte && strchr("abcdefABCDEF", byte));
        bool is_text = (byte >= ' ' && byte != 0x7f) || byte == '\t';
        int class = (int)framing_class((uint8_t)byte);
        assert_int_equal(cell(FRAMING_NAME, class).next == FRAMING_NAME, is_token);
        assert_int_equal(cell(FRAMING_SIZE, class).next == FRAMING_SIZE, is_hex);
        assert_int_equal(cell(FRAMING_VALUE, class).next == FRAMING_VALUE, is_text);
        assert_int_equal(cell(FRAMING_TRAILER_VALUE, class).next == FRAMING_TRAILER_VALUE, is_text);
        assert_int_equal(cell(FRAMING_ESCAPED, class).next == FRAMING_QUOTED, is_text);
        assert_int_equal(cell(FRAMING_TARGET, class).next == FRAMING_TARGET,
                         byte > ' ' && byte < 0x7f);
        assert_int_equal(cell(FRAMING_MAJOR, class).next == FRAMING_MAJOR_DOT, is_digit);
    }
}

/* ---- messages -------------------------------------------------------------------------------- */

static const struct params usual = {.header_bytes_max = 2048, .header_count_max = 20};

struct reader {
    struct framing framing;
    const struct params *params;
    struct buf log;     /* the bytes of heads and data, and <events> */
    size_t head_begins; /* in |log| */
    bool is_over;
};

static void begin(struct reader *reader, const struct params *params)
{
    *reader = (struct reader){.params = params};
    buf_init(&reader->log, 1 << 20);
    framing_begin(&reader->framing, params);
}

/* Frames the body as the fields say, without the checks of the server. */
static void begin_body(struct reader *reader)
{
    buf_add_char(&reader->log, '\0');
    const char *head = (const char *)reader->log.ptr + reader->head_begins;
    const char *length = strstr(head, "Length:");
    framing_begin_body(&reader->framing, strstr(head, "chunked") != NULL,
                       length ? strtoull(length + 7, NULL, 10) : 0);
    reader->log.len--;
    buf_add_str(&reader->log, "<body>");
}

static void note_refusal(struct reader *reader)
{
    struct error err = {0};
    int status = framing_explain(&reader->framing, &err);
    buf_printf(&reader->log, "<%d %s>", status, err.text);
    reader->is_over = true;
}

static void note(struct reader *reader, struct framing_part part)
{
    buf_add(&reader->log, part.bytes.ptr, part.bytes.len);
    switch (part.kind) {
    case FRAMING_PART_HEAD_END:
        begin_body(reader);
        break;
    case FRAMING_PART_CHUNK:
        assert_int_equal(part.bytes.len, 0);
        buf_printf(&reader->log, "<%llu>", (unsigned long long)reader->framing.left);
        break;
    case FRAMING_PART_END:
        buf_add_str(&reader->log, "<end>");
        reader->head_begins = reader->log.len;
        framing_begin(&reader->framing, reader->params);
        break;
    case FRAMING_PART_REFUSED:
        note_refusal(reader);
        break;
    default:
        assert_true(part.bytes.len > 0);
    }
}

/* The copy has exactly the size of the text, for AddressSanitizer. */
static void feed(struct reader *reader, const void *bytes, size_t len)
{
    uint8_t *copy = malloc(len + 1);
    assert_non_null(copy);
    struct span rest = span_of(memcpy(copy + 1, bytes, len), len);
    while (!reader->is_over) {
        size_t before = rest.len;
        struct framing_part part = framing_next(&reader->framing, &rest);
        assert_true(rest.len <= before);
        if (part.kind == FRAMING_PART_NONE) {
            assert_int_equal(rest.len, 0);
            break;
        }
        note(reader, part);
    }
    free(copy);
}

static void expect_log(struct reader *reader, const char *expected, const char *how)
{
    buf_add_char(&reader->log, '\0');
    assert_false(buf_failed(&reader->log));
    if (strcmp((const char *)reader->log.ptr, expected) != 0) {
        fail_msg("%s: got %s\nexpected %s", how, (const char *)reader->log.ptr, expected);
    }
    buf_fini(&reader->log);
}

static const struct {
    const char *bytes;
    const char *parts;
} messages[] = {
    {"\r\n\r\nGET / HTTP/1.1\r\nA: b\r\n\r\nGET /2 HTTP/1.0\r\n\r\n",
     "GET / HTTP/1.1\r\nA: b\r\n\r\n<body><end>GET /2 HTTP/1.0\r\n\r\n<body><end>"},
    {"POST / HTTP/1.1\r\nLength:\t5\t\r\nA:\t b \t c\t\r\n\r\n\r\n\r\n\nGET",
     "POST / HTTP/1.1\r\nLength: 5 \r\nA:  b   c \r\n\r\n<body>\r\n\r\n\n<end>GET"},
    {"P / HTTP/1.1\r\nTE: chunked\r\n\r\n3;a=\"\\\"\" ; b\r\nabc\r\n0A\r\n\r\n\r\n\r\n\r\n\r\n"
     "\r\n0;c\r\nLength: 7\r\nX:\r\n\r\nGET",
     "P / HTTP/1.1\r\nTE: chunked\r\n\r\n<body><3>abc<10>\r\n\r\n\r\n\r\n\r\n<end>GET"},
    {"GET /a  HTTP/1.1\r\n",
     "GET /a <400 request line: expected HTTP/1.1 behind one space, got a space>"},
    {"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "GET / HTTP/1.1\r\nA: b\r\n<400 field line 2: "
                                             "expected a name or the empty line, got a space>"},
    {"GET / HTTP/1.1\r\nA : b\r\n",
     "GET / HTTP/1.1\r\nA<400 field line 1: expected ':' behind the name, got a space>"},
    {"GET / HTTP/1.1\r\nA: b\tc\x7f",
     "GET / HTTP/1.1\r\nA: b c<400 field line 1: expected text and CR LF, got byte 0x7f>"},
    {"GET / HTTP/1.2\r\n", "GET / HTTP/1.<505 HTTP version: expected HTTP/1.0 or HTTP/1.1, got "
                           "HTTP/1.2>"},
    {"GET / HTTP/11.1\r\n", "GET / HTTP/1<505 HTTP version: expected HTTP/1.0 or HTTP/1.1, got "
                            "another>"},
    {"\r\n\nGET", "<400 request line: expected a method, got LF>"},
    {"P / HTTP/1.1\r\nTE: chunked\r\n\r\n1\r\naX",
     "P / HTTP/1.1\r\nTE: chunked\r\n\r\n<body><1>a<400 chunk 1: expected CR LF behind the data, "
     "got 'X'>"},
    {"P / HTTP/1.1\r\nTE: chunked\r\n\r\nffffffffffffffff\r\na",
     "P / HTTP/1.1\r\nTE: chunked\r\n\r\n<body><18446744073709551615>a"},
    {"P / HTTP/1.1\r\nTE: chunked\r\n\r\n1\r\na\r\n00010000000000000000\r\n",
     "P / HTTP/1.1\r\nTE: chunked\r\n\r\n<body><1>a<400 chunk 2: expected a size of at most 64 "
     "bits, got more>"},
    {"P / HTTP/1.1\r\nTE: chunked\r\n\r\n0\r\nA: b\r\n: c\r\n",
     "P / HTTP/1.1\r\nTE: chunked\r\n\r\n<body><400 trailer line 2: expected a name or the empty "
     "line, got ':'>"},
};

/* Feeds the message at once, in every cut into two and three pieces, and byte by byte. */
static void every_cut_gives_the_same_parts(void **context)
{
    (void)context;
    for (size_t i = 0; i < sizeof(messages) / sizeof(messages[0]); i++) {
        const char *bytes = messages[i].bytes;
        size_t len = strlen(bytes);
        struct reader reader;
        begin(&reader, &usual);
        for (size_t at = 0; at < len; at++) {
            feed(&reader, bytes + at, 1);
        }
        expect_log(&reader, messages[i].parts, "byte by byte");
        for (size_t first = 0; first <= len; first++) {
            for (size_t second = first; second <= len; second++) {
                begin(&reader, &usual);
                feed(&reader, bytes, first);
                feed(&reader, bytes + first, second - first);
                feed(&reader, bytes + second, len - second);
                expect_log(&reader, messages[i].parts, "in three pieces");
            }
        }
    }
}

static void read_run(const char *prefix, const uint8_t *bytes, size_t len, size_t step,
                     struct reader *reader)
{
    begin(reader, &usual);
    feed(reader, prefix, strlen(prefix));
    for (size_t at = 0; at < len; at += step) {
        feed(reader, bytes + at, len - at < step ? len - at : step);
    }
}

/* Targets, names and values are skipped several bytes at a time. The same bytes end them as in a
 * walk byte by byte. */
static void long_runs(void **context)
{
    static const char *const prefixes[] = {"GET /", "GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nA:",
                                           "P / HTTP/1.1\r\nTE: chunked\r\n\r\n1;"};
    static const uint8_t some[] = {'a',  ':', ' ',  '\t', '~',  0x7f, 0x80, '(',
                                   0xff, '=', 0x1f, 0x00, '\r', '\n', ';',  '"'};
    uint32_t random = 1;
    (void)context;
    for (int round = 0; round < 100000; round++) {
        const char *prefix = prefixes[round % 4];
        uint8_t bytes[40];
        struct reader whole, single;
        memset(bytes, 'x', sizeof(bytes));
        for (int i = 0; i < 3; i++) {
            random = random * 1664525 + 1013904223;
            bytes[(random >> 16) % sizeof(bytes)] = some[random >> 28];
        }
        read_run(prefix, bytes, sizeof(bytes), sizeof(bytes), &whole);
        read_run(prefix, bytes, sizeof(bytes), 1, &single);
        assert_true(span_equal(buf_span(&whole.log), buf_span(&single.log)));
        buf_fini(&whole.log);
        buf_fini(&single.log);
    }
}

/* ---- limits ---------------------------------------------------------------------------------- */

/* Feeds |prefix|, |count| times |unit| and |suffix|, at once and byte by byte. Returns the status
 * of a refusal, or 0. */
static int status_of(const struct params *params, const char *prefix, const char *unit,
                     size_t count, const char *suffix)
{
    int statuses[2];
    struct error err = {0};
    for (int i = 0; i < 2; i++) {
        struct buf bytes;
        struct reader reader;
        buf_init(&bytes, 1 << 20);
        buf_add_str(&bytes, prefix);
        for (size_t j = 0; j < count; j++) {
            buf_add_str(&bytes, unit);
        }
        buf_add_str(&bytes, suffix);
        begin(&reader, params);
        for (size_t at = 0, step = i ? 1 : bytes.len; at < bytes.len; at += step) {
            feed(&reader, bytes.ptr + at, step);
        }
        statuses[i] = reader.is_over ? framing_explain(&reader.framing, &err) : 0;
        buf_fini(&reader.log);
        buf_fini(&bytes);
    }
    assert_int_equal(statuses[0], statuses[1]);
    return statuses[0];
}

static void limits_of_heads(void **context)
{
    static const struct params params = {.header_bytes_max = 100, .header_count_max = 4};
    const char *line = "GET / HTTP/1.1\r\n"; /* 16 bytes */
    (void)context;
    assert_int_equal(status_of(&params, line, "A:\r\n", 4, "\r\n"), 0);
    assert_int_equal(status_of(&params, line, "A:\r\n", 5, "\r\n"), 431);
    assert_int_equal(status_of(&params, "GET / HTTP/1.1\r\nA:", "b", 78, "\r\n\r\n"), 0);
    assert_int_equal(status_of(&params, "GET / HTTP/1.1\r\nA:", "b", 79, "\r\n\r\n"), 431);
    assert_int_equal(status_of(&params, "GET / HTTP/1.1\r\nA:", "\t", 78, "\r\n\r\n"), 0);
    assert_int_equal(status_of(&params, "GET / HTTP/1.1\r\nA:", "\t ", 40, "\r\n\r\n"), 431);
    assert_int_equal(status_of(&params, "GET /", "b", 90, ""), 0);
    assert_int_equal(status_of(&params, "GET /", "b", 96, ""), 431);
    assert_int_equal(status_of(&params, "", "\r\n", 50, ""), 0);
    assert_int_equal(status_of(&params, "", "\r\n", 50, "G"), 431);
    assert_int_equal(status_of(&params, "GET / HTTP/1.1\r\nLength: 999\r\n\r\n", "b", 999, ""), 0);
}

#define CHUNKED "P / HTTP/1.1\r\nTE: chunked\r\n\r\n"

/* A body may have 100 bytes beside its data, and in addition 20 bytes a chunk and twice the bytes
 * of the data. */
static void limits_of_chunks(void **context)
{
    static const struct params params = {.header_bytes_max = 100, .header_count_max = 4};
    (void)context;
    assert_int_equal(status_of(&params, CHUNKED "1;", "e", 96, "\r\na"), 0);
    assert_int_equal(status_of(&params, CHUNKED "1;", "e", 97, "\r\na"), 431);
    assert_int_equal(status_of(&params, CHUNKED, "1;eeeeeeeeeeeeeeee\r\na\r\n", 100, ""), 0);
    assert_int_equal(status_of(&params, CHUNKED, "1;eeeeeeeeeeeeeeeee\r\na\r\n", 100, ""), 431);
    assert_int_equal(status_of(&params, CHUNKED, "4;eeeeeeeeeeeeeeeeeeeeee\r\nabcd\r\n", 100, ""),
                     0);
    assert_int_equal(status_of(&params, CHUNKED, "4;eeeeeeeeeeeeeeeeeeeeeee\r\nabcd\r\n", 100, ""),
                     431);
    assert_int_equal(status_of(&params, CHUNKED, "0", 98, "1\r\n"), 431);
    assert_int_equal(status_of(&params, CHUNKED, "0", 97, "1\r\na"), 0);
    assert_int_equal(status_of(&params, CHUNKED "0\r\n", "A:\r\n", 4, "\r\n"), 0);
    assert_int_equal(status_of(&params, CHUNKED "0\r\n", "A:\r\n", 5, "\r\n"), 431);
    assert_int_equal(status_of(&params, CHUNKED "0\r\nA:", "b", 91, "\r\n\r\n"), 0);
    assert_int_equal(status_of(&params, CHUNKED "0\r\nA:", "b", 92, "\r\n\r\n"), 431);
}

/* The number of missing bytes is known if the length of the body is known, and it is never too
 * large. */
static void missing_bytes(void **context)
{
    struct framing framing;
    struct span rest = span_str("P / HTTP/1.1\r\n\r\nabcdefg");
    (void)context;
    framing_begin(&framing, &usual);
    assert_int_equal(framing_missing(&framing), 0);
    assert_int_equal(framing_next(&framing, &rest).kind, FRAMING_PART_HEAD_END);
    assert_int_equal(framing_missing(&framing), 0);
    framing_begin_body(&framing, false, 5);
    assert_int_equal(framing_missing(&framing), 5);
    struct span two = span_of(rest.ptr, 2);
    assert_int_equal(framing_next(&framing, &two).kind, FRAMING_PART_DATA);
    assert_int_equal(framing_missing(&framing), 3);
    assert_int_equal(framing_next(&framing, &rest).bytes.len, 3);
    assert_int_equal(framing_missing(&framing), 0);
    assert_int_equal(framing_next(&framing, &rest).kind, FRAMING_PART_END);
    assert_int_equal(rest.len, 4);

    rest = span_str(CHUNKED "5\r\nab");
    framing_begin(&framing, &usual);
    assert_int_equal(framing_next(&framing, &rest).kind, FRAMING_PART_HEAD_END);
    framing_begin_body(&framing, true, 77);
    while (framing_next(&framing, &rest).kind != FRAMING_PART_NONE) {
        assert_int_equal(framing_missing(&framing), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_state_is_reached),
        cmocka_unit_test(every_class_has_an_entry),
        cmocka_unit_test(actions_happen_where_they_belong),
        cmocka_unit_test(lines_end_with_cr_lf),
        cmocka_unit_test(nothing_is_folded),
        cmocka_unit_test(skipped_bytes_change_no_state),
        cmocka_unit_test(classes_of_bytes),
        cmocka_unit_test(every_cut_gives_the_same_parts),
        cmocka_unit_test(long_runs),
        cmocka_unit_test(limits_of_heads),
        cmocka_unit_test(limits_of_chunks),
        cmocka_unit_test(missing_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
