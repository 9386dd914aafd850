/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "base/bytes.h"
#include "server/http/proxy_header.h"

#define REQUEST "GET / HTTP/1.1\r\n"
#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define FROM_V4 "\xcb\0\x71\x09\x0a\0\0\x01\x12\x67\x1f\x40"
#define V6 "\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0"
#define FROM_V6 V6 "\x01" V6 "\x02\x12\x67\x1f\x40"
#define TLV "\x04\0\x02xy"

/* Adds |text| in pieces of |piece| bytes at most, as far as the header asks for it. Returns the
 * status; |*out_used| is the number of bytes that were taken. */
static enum status feed(struct proxy_header *header, struct span text, size_t piece,
                        size_t *out_used, struct error *err)
{
    enum status status = ST_OK;
    *header = (struct proxy_header){.len = 0};
    *out_used = 0;
    while (status == ST_OK && !header->is_complete && *out_used < text.len) {
        uint8_t *room;
        size_t len, left = text.len - *out_used;
        proxy_header_room(header, &room, &len);
        assert_between(len, 1, sizeof(header->bytes));
        assert_in_range((uintptr_t)room, (uintptr_t)header->bytes,
                        (uintptr_t)header->bytes + sizeof(header->bytes) - len);
        len = len < piece ? len : piece;
        len = len < left ? len : left;
        memcpy(room, text.ptr + *out_used, len);
        *out_used += len;
        status = proxy_header_add(header, len, err);
    }
    return status;
}

/* The header |text| names |client| ("": nobody), and nothing of a request behind it is taken,
 * whatever the pieces are. */
static void check_good(const char *text, size_t len, const char *client)
{
    char whole[512 + sizeof(REQUEST)], name[ADDRESS_TEXT_MAX];
    struct proxy_header header;
    struct error err;
    size_t used;
    assert_between(len, 1, 512);
    memcpy(whole, text, len);
    memcpy(whole + len, REQUEST, sizeof(REQUEST));
    for (size_t piece = 1; piece <= len + 1; piece++) {
        assert_ok(err,
                  feed(&header, span_of(whole, len + sizeof(REQUEST) - 1), piece, &used, &err));
        assert_true(header.is_complete);
        assert_int_equal(used, len);
        assert_true(header.is_named == (client[0] != '\0'));
        if (header.is_named) {
            address_print(&header.client, name);
            assert_string_equal(name, client);
        }
    }
    for (size_t cut = 0; cut < len; cut++) {
        assert_ok(err, feed(&header, span_of(text, cut), len, &used, &err));
        assert_false(header.is_complete);
    }
}

#define GOOD(text, client) check_good(text, sizeof(text) - 1, client)

static void lines(void **state)
{
    (void)state;
    GOOD("PROXY TCP4 203.0.113.9 10.0.0.1 4711 8000\r\n", "203.0.113.9:4711");
    GOOD("PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n", "255.255.255.255:65535");
    GOOD("PROXY TCP4 0.0.0.0 0.0.0.0 0 0\r\n", "0.0.0.0");
    GOOD("PROXY TCP6 2001:db8::1 2001:db8::2 4711 8000\r\n", "[2001:db8::1]:4711");
    GOOD("PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535");
    GOOD("PROXY UNKNOWN\r\n", "");
    GOOD("PROXY UNKNOWN ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff "
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff 65535 65535\r\n",
         ""); /* 107 bytes */
}

static void binary(void **state)
{
    (void)state;
    GOOD(SIGNATURE "\x21\x11\0\x0c" FROM_V4, "203.0.113.9:4711");
    GOOD(SIGNATURE "\x21\x12\0\x0c" FROM_V4, "203.0.113.9:4711");
    GOOD(SIGNATURE "\x21\x21\0\x24" FROM_V6, "[2001:db8::1]:4711");
    GOOD(SIGNATURE "\x21\x11\0\x11" FROM_V4 TLV, "203.0.113.9:4711");
    GOOD(SIGNATURE "\x21\x21\0\x29" FROM_V6 TLV, "[2001:db8::1]:4711");
    GOOD(SIGNATURE "\x21\0\0\0", "");
    GOOD(SIGNATURE "\x21\0\0\x05" TLV, "");
    GOOD(SIGNATURE "\x20\0\0\0", "");
    GOOD(SIGNATURE "\x20\x11\0\x0c" FROM_V4, ""); /* LOCAL: its addresses mean nothing */
    GOOD(SIGNATURE "\x20\xff\0\x05" TLV, "");
}

static void parts_behind_the_addresses_are_skipped(void **state)
{
    static char text[16 + 65535];
    static const char begin[] = SIGNATURE "\x21\x11\xff\xff" FROM_V4;
    struct proxy_header header;
    struct error err;
    size_t used;
    (void)state;
    memset(text, 0xee, sizeof(text));
    memcpy(text, begin, sizeof(begin) - 1);
    assert_ok(err, feed(&header, span_of(text, sizeof(text)), sizeof(text), &used, &err));
    assert_true(header.is_complete && header.is_named && used == sizeof(text));
    assert_ok(err, feed(&header, span_of(text, sizeof(text) - 1), 1, &used, &err));
    assert_false(header.is_complete);
    char unix_text[16 + 216] = SIGNATURE "\x21\x31\0\xd8/run/s";
    check_good(unix_text, sizeof(unix_text), "");
}

/* The header is refused with |why| in the text, at the latest after |len| bytes. */
static void check_bad(const char *text, size_t len, const char *why)
{
    struct proxy_header header;
    struct error err;
    size_t used;
    for (size_t piece = 1; piece <= len; piece++) {
        enum status status = feed(&header, span_of(text, len), piece, &used, &err);
        assert_false(header.is_complete && status == ST_OK);
        assert_fails(err, status, ST_INVALID, "PROXY header");
        assert_fails(err, status, ST_INVALID, why);
    }
}

#define BAD(text, why) check_bad(text, sizeof(text) - 1, why)

static void malformed_lines(void **state)
{
    static const char *const rests[] = {
        "TCP4 203.0.113.9 10.0.0.1 4711",
        "TCP4 203.0.113.9 10.0.0.1 4711 8000 ",
        "TCP4 203.0.113.9 10.0.0.1 4711 8000 1",
        "TCP4  203.0.113.9 10.0.0.1 4711 8000",
        "TCP4 203.0.113.9 10.0.0.1  4711 8000",
        "TCP4 203.0.113.09 10.0.0.1 4711 8000",
        "TCP4 203.0.113.256 10.0.0.1 4711 8000",
        "TCP4 203.0.113.9 10.0.0 4711 8000",
        "TCP4 203.0.113.9 10.0.0.1 65536 8000",
        "TCP4 203.0.113.9 10.0.0.1 04711 8000",
        "TCP4 203.0.113.9 10.0.0.1 4711 -1",
        "TCP4 203.0.113.9 10.0.0.1 4711 ",
        "TCP4 2001:db8::1 2001:db8::2 4711 8000",
        "TCP6 203.0.113.9 10.0.0.1 4711 8000",
        "TCP6 2001:db8::1 10.0.0.1 4711 8000",
        "TCP4",
        "TCP4 ",
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rests) / sizeof(rests[0]); i++) {
        char text[128] = "PROXY ";
        size_t len = strlen(rests[i]);
        memcpy(text + 6, rests[i], len);
        memcpy(text + 6 + len, "\r\n", 2);
        check_bad(text, len + 8, "FROM TO PORT PORT");
    }
    BAD("PROXY UDP4 1.1.1.1 1.1.1.1 1 1\r\n", "expected PROXY TCP4, TCP6 or UNKNOWN");
    BAD("PROXY unknown\r\n", "expected PROXY TCP4, TCP6 or UNKNOWN");
    BAD("PROXY UNKNOWN\n" REQUEST, "one line that ends with CR LF");
    BAD("PROXY UNKNOWN a\rb" REQUEST, "one line that ends with CR LF");
    char text[PROXY_HEADER_LINE_MAX + 1] = "PROXY UNKNOWN ";
    memset(text + strlen(text), 'x', sizeof(text) - strlen(text));
    check_bad(text, sizeof(text), "expected at most 107 bytes with CR LF at their end");
}

static void malformed_binary(void **state)
{
    (void)state;
    BAD(SIGNATURE "\x11\x11\0\x0c" FROM_V4, "byte 12: expected version 2 and command 0 or 1, got");
    BAD(SIGNATURE "\x22\x11\0\x0c" FROM_V4, "byte 12: expected version 2 and command 0 or 1, got");
    BAD(SIGNATURE "\x21\x13\0\x0c" FROM_V4, "byte 13: expected a family and protocol such as 0x11");
    BAD(SIGNATURE "\x21\x41\0\x0c" FROM_V4, "byte 13: expected a family and protocol such as 0x11");
    BAD(SIGNATURE "\x21\x11\0\x0b" FROM_V4, "byte 14: expected a length of 12 or more, got 11");
    BAD(SIGNATURE "\x21\x21\0\x0c" FROM_V4, "byte 14: expected a length of 36 or more, got 12");
    BAD(SIGNATURE "\x21\x31\0\xd7" FROM_V4, "byte 14: expected a length of 216 or more, got 215");
    BAD("\r\n\r\n\0\r\nQUIt\n\x21\x11\0\x0c" FROM_V4, "expected PROXY at its beginning");
}

static void other_bytes(void **state)
{
    (void)state;
    BAD(REQUEST, "expected PROXY at its beginning, or the signature of version 2, got 'G");
    BAD("PUT / HTTP/1.1\r\n", "expected PROXY at its beginning");
    BAD("PROXYTCP4 1.1.1.1", "expected PROXY at its beginning");
    BAD("\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x01", "expected PROXY at its beginning");
    BAD("\0\0\0\0\0\0\0\0\0\0\0\0", "expected PROXY at its beginning");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines),
        cmocka_unit_test(binary),
        cmocka_unit_test(parts_behind_the_addresses_are_skipped),
        cmocka_unit_test(malformed_lines),
        cmocka_unit_test(malformed_binary),
        cmocka_unit_test(other_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
