/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "server/http/forwarded.h"
#include "server/http/head.h"
#include "server/http/proxies.h"

static struct options options;
static struct proxies proxies;
static struct head head;

static int begin(void **state)
{
    static const struct option_texts texts = {
        .items = {"10.0.0.0/8", "192.0.2.7", "fd00::/8", "unix"}, .count = 4};
    struct error err;
    (void)state;
    options_init(&options);
    head_init(&head, &options.params);
    return proxies_read(&proxies, &texts, &err) == ST_OK ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    head_fini(&head);
    return 0;
}

/* ---- proxies --------------------------------------------------------------------------------- */

static bool is_proxy(const char *ip)
{
    struct address address;
    assert_true(address_read_ip(span_str(ip), &address));
    address_set_port(&address, 4711);
    return proxies_have(&proxies, &address);
}

static void networks_hold_addresses(void **state)
{
    (void)state;
    assert_true(is_proxy("10.0.0.0") && is_proxy("10.255.255.255"));
    assert_true(is_proxy("192.0.2.7") && is_proxy("::ffff:192.0.2.7"));
    assert_true(is_proxy("fd00::1") && is_proxy("fdff:ffff::"));
    assert_false(is_proxy("11.0.0.0") || is_proxy("9.255.255.255"));
    assert_false(is_proxy("192.0.2.6") || is_proxy("192.0.2.8"));
    assert_false(is_proxy("fc00::1") || is_proxy("fe00::1") || is_proxy("::1"));
    const struct address path = {.storage = {.ss_family = AF_UNIX}}, nothing = {.len = 0};
    assert_true(proxies_have(&proxies, &path));
    assert_false(proxies_have(&proxies, &nothing));
}

static void a_network_of_one_family_holds_none_of_the_other(void **state)
{
    (void)state;
    static const struct option_texts texts = {.items = {"::/0"}, .count = 1};
    struct proxies all;
    struct address address;
    struct error err;
    assert_ok(err, proxies_read(&all, &texts, &err));
    assert_true(address_read_ip(span_str("2001:db8::1"), &address) && proxies_have(&all, &address));
    assert_true(address_read_ip(span_str("192.0.2.1"), &address) && !proxies_have(&all, &address));
    assert_true(address_read_ip(span_str("::ffff:192.0.2.1"), &address) &&
                !proxies_have(&all, &address));
}

static void settings_of_bad_form_are_refused(void **state)
{
    static const char *const rows[][2] = {
        {"", "expected ADDR, ADDR/BITS or unix, got ''"},
        {"proxy.example.org", "expected ADDR, ADDR/BITS or unix, got 'proxy.example.org'"},
        {"10.0.0.1:80", "expected ADDR"},
        {"[::1]", "expected ADDR"},
        {"10.0.0/8", "expected ADDR"},
        {"10.0.0.0/", "expected ADDR"},
        {"10.0.0.0/8 ", "expected ADDR"},
        {"10.0.0.0/+8", "expected ADDR"},
        {"10.0.0.0/0008", "expected ADDR"},
        {"10.0.0.0/33", "expected at most 32 bits, got '10.0.0.0/33'"},
        {"::/129", "expected at most 128 bits"},
        {"::ffff:10.0.0.0/104", "expected at most 32 bits"},
        {"10.1.0.0/8", "expected an address whose bits behind the first 8 are 0"},
        {"fd00::1/127", "expected an address whose bits behind the first 127 are 0"},
    };
    (void)state;
    struct error err;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_fails(err, proxies_verify(rows[i][0], &err), ST_INVALID, rows[i][1]);
    }
    assert_ok(err, proxies_verify("0.0.0.0/0", &err));
    assert_ok(err, proxies_verify("fd00::1/128", &err));
    assert_ok(err, proxies_verify("::ffff:10.0.0.1", &err));
    assert_ok(err, proxies_verify("unix", &err));
}

/* ---- lists ----------------------------------------------------------------------------------- */

static void add_field(const char *name, const char *value, size_t len)
{
    struct error err;
    head_add_name(&head, span_str(name));
    assert_int_equal(head_add_value(&head, span_of(value, len / 2), &err), 0);
    assert_int_equal(head_add_value(&head, span_of(value + len / 2, len - len / 2), &err), 0);
    head_end_field(&head);
}

/* Each line of |lines| is one of the field, with others between them. */
static void read_lines(const char *name, const char *lines)
{
    head_reset(&head);
    for (const char *line = lines; *line;) {
        size_t len = strcspn(line, "\n");
        add_field("Host", "h", 1);
        add_field(name, line, len);
        line += len + (line[len] == '\n');
    }
    add_field("User-Agent", "x", 1);
}

struct row {
    const char *lines, *client; /* "": none, "!": malformed; "!ADDR": likewise, behind that proxy */
};

static void check_row(const char *name, enum http_field field, const struct row *row)
{
    struct address address;
    struct error err;
    char text[ADDRESS_TEXT_MAX + 1] = "";
    bool is_found;
    read_lines(name, row->lines);
    enum status status = forwarded_find(&proxies, &head, field, &address, &is_found, &err);
    bool is_good = status == ST_OK;
    text[0] = '!';
    text[1] = '\0';
    if (is_found) {
        address_print(&address, text + 1);
    }
    if (strcmp(text + is_good, row->client) != 0) {
        fail_msg("%s: %s: client '%s', expected '%s'", name, row->lines, text + is_good,
                 row->client);
    }
    assert_true(is_good || strstr(err.text, name) == err.text);
}

static void x_forwarded_for(void **state)
{
    static const struct row rows[] = {
        {"", ""},
        {"203.0.113.9", "203.0.113.9"},
        {" 203.0.113.9\t", "203.0.113.9"},
        {"203.0.113.9:4711", "203.0.113.9"},
        {"2001:db8::1", "2001:db8::1"},
        {"2001:DB8:0:0::1", "2001:db8::1"},
        {"[2001:db8::1]", "2001:db8::1"},
        {"[2001:db8::1]:443", "2001:db8::1"},
        {"::ffff:203.0.113.9", "::ffff:203.0.113.9"},
        /* the last one that is no proxy's */
        {"198.51.100.1, 203.0.113.9", "203.0.113.9"},
        {"198.51.100.1,203.0.113.9,10.0.0.1", "203.0.113.9"},
        {"198.51.100.1, 203.0.113.9, 10.0.0.1 , fd00::7", "203.0.113.9"},
        {"203.0.113.9,, ,10.0.0.1,", "203.0.113.9"},
        {"nonsense, 203.0.113.9, 10.0.0.1", "203.0.113.9"},
        {"10.0.0.1, 10.0.0.2", "10.0.0.1"},
        /* several lines are one list */
        {"198.51.100.1\n203.0.113.9", "203.0.113.9"},
        {"198.51.100.1\n203.0.113.9\n10.0.0.1", "203.0.113.9"},
        {"198.51.100.1, 203.0.113.9\n10.0.0.1\n10.0.0.2, 10.0.0.3", "203.0.113.9"},
        {"1.1.1.1\n2.2.2.2\n3.3.3.3\n4.4.4.4\n5.5.5.5\n6.6.6.6\n7.7.7.7\n8.8.8.8\n203.0.113.9",
         "203.0.113.9"},
        {"203.0.113.9\n10.0.0.1\n10.0.0.2\n10.0.0.3\n10.0.0.4\n10.0.0.5\n10.0.0.6\n10.0.0.7",
         "203.0.113.9"},
        {"203.0.113.9\n10.0.0.1\n10.0.0.2\n10.0.0.3\n10.0.0.4\n10.0.0.5\n10.0.0.6\n10.0.0.7\n"
         "10.0.0.8",
         "10.0.0.1"}, /* a line too many */
        /* a quote protects nothing */
        {"\", 203.0.113.9", "203.0.113.9"},
        {"\"a, 203.0.113.9, 10.0.0.1", "203.0.113.9"},
        /* the proxy does not say */
        {"unknown", ""},
        {"203.0.113.9, Unknown", ""},
        {"203.0.113.9, _hidden, 10.0.0.1", "10.0.0.1"},
        /* no addresses */
        {"nonsense", "!"},
        {"203.0.113.9, nonsense", "!"},
        {"203.0.113.9, nonsense, 10.0.0.1", "!10.0.0.1"},
        {"203.0.113", "!"},
        {"203.0.113.256", "!"},
        {"203.0.113.09", "!"},
        {"203.0.113.9:", "!"},
        {"203.0.113.9:123456", "!"},
        {"203.0.113.9:8o", "!"},
        {"2001:db8::1::2", "!"},
        {"[2001:db8::1", "!"},
        {"[2001:db8::1]x", "!"},
        {"[2001:db8::1]:", "!"},
        {"[203.0.113.9]", "!"},
        {"[]", "!"},
        {":", "!"},
        {"_", "!"},
        {"unix:", "!"},
        {"\"203.0.113.9\"", "!"},
        {"for=203.0.113.9", "!"},
        {"203.0.113.9 10.0.0.1", "!"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row("X-Forwarded-For", HTTP_X_FORWARDED_FOR, &rows[i]);
    }
}

/* The first rows are those of RFC 7239, section 4 and 6. */
static void forwarded(void **state)
{
    static const struct row rows[] = {
        {"", ""},
        {"for=\"_gazonk\"", ""},
        {"For=\"[2001:db8:cafe::17]:4711\"", "2001:db8:cafe::17"},
        {"for=192.0.2.60;proto=http;by=203.0.113.43", "192.0.2.60"},
        {"for=192.0.2.43, for=198.51.100.17", "198.51.100.17"},
        {"for=_SEVKISEK", ""},
        {"for=unknown", ""},
        {"for=\"192.0.2.43:47011\"", "192.0.2.43"},
        {"for=\"192.0.2.43:_port\"", "192.0.2.43"},
        {"for=192.0.2.43\nfor=\"[2001:db8:cafe::17]\"", "2001:db8:cafe::17"},
        /* the last one that is no proxy's */
        {"for=198.51.100.1, for=203.0.113.9;by=\"[fd00::2]\" , for=\"10.0.0.1:80\"", "203.0.113.9"},
        {"for=198.51.100.1\nfor=203.0.113.9, for=10.0.0.1\nfor=\"[fd00::7]\"", "203.0.113.9"},
        {"for=10.0.0.1,for=10.0.0.2", "10.0.0.1"},
        {"nonsense, for=203.0.113.9", "203.0.113.9"},
        {"proto=https ; for=203.0.113.9 ;; host=a", "203.0.113.9"},
        {"for=203.0.113.9;secret=\"a,b;c=\\\"d\\\\\"", "203.0.113.9"},
        {"for=203.0.113.9;secret=\"a\", for=10.0.0.1;x=\"b,c\"", "203.0.113.9"},
        {"FOR=\"203.0.\\113.9\"", "203.0.113.9"},
        /* the proxy does not say */
        {"for=203.0.113.9, by=10.0.0.1", ""},
        {"for=203.0.113.9, for=_x;by=_y, for=10.0.0.1", "10.0.0.1"},
        {"for=\"unknown:80\"", ""},
        /* malformed */
        {"203.0.113.9", "!"},
        {"for=", "!"},
        {"for=\"\"", "!"},
        {"for", "!"},
        {"=203.0.113.9", "!"},
        {"for =203.0.113.9", "!"},
        {"for= 203.0.113.9", "!"},
        {"for=203.0.113.9:80", "!"}, /* needs quotes */
        {"for=[2001:db8::1]", "!"},
        {"for=\"2001:db8::1\"", "2001:db8::1"},
        {"for=\"203.0.113.9", "!"},
        {"for=\"203.0.113.9\"x", "!"},
        {"for=\"203.0.113.9\\", "!"},
        {"for=203.0.113.9;for=203.0.113.9", "!"},
        {"for=203.0.113.9;proto", "!"},
        {"for=\"203.0.113.9\", for=\", for=203.0.113.9", "!"},
        {"for=\"", "!"},
        {"\"", "!"},
        /* what a client has sent without an end cannot name the client */
        {"for=198.51.100.1;x=\", for=\"[2001:db8::1]:4711\";by=\"[2001:db8::2]\"", "!"},
        {"for=198.51.100.1;x=\"\\, for=203.0.113.9", "!"},
        {"for=198.51.100.1;x=\"\nfor=203.0.113.9", "203.0.113.9"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        check_row("Forwarded", HTTP_FORWARDED, &rows[i]);
    }
}

/* Of a list of proxies alone only so many are read. */
static void work_is_bounded(void **state)
{
    static const char first[] = "203.0.113.9", next[] = ",10.0.0.1";
    char list[sizeof(first) + FORWARDED_HOPS_MAX * (sizeof(next) - 1)];
    size_t len = sizeof(first) - 1;
    (void)state;
    memcpy(list, first, len);
    for (int i = 1; i < FORWARDED_HOPS_MAX; i++) {
        memcpy(list + len, next, sizeof(next));
        len += sizeof(next) - 1;
    }
    check_row("X-Forwarded-For", HTTP_X_FORWARDED_FOR, &(struct row){list, first});
    memcpy(list + len, next, sizeof(next));
    check_row("X-Forwarded-For", HTTP_X_FORWARDED_FOR, &(struct row){list, next + 1});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_hold_addresses),
        cmocka_unit_test(a_network_of_one_family_holds_none_of_the_other),
        cmocka_unit_test(settings_of_bad_form_are_refused),
        cmocka_unit_test(x_forwarded_for),
        cmocka_unit_test(forwarded),
        cmocka_unit_test(work_is_bounded),
    };
    return cmocka_run_group_tests(tests, begin, end);
}
