/* SPDX-License-Identifier: MIT */
/* The linker replaces getaddrinfo() by this function, so that names do not depend on the
 * machine. */
#include "config.h"

#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "server/http/address.h"

int __real_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out);
void __real_freeaddrinfo(struct addrinfo *infos);
void __wrap_freeaddrinfo(struct addrinfo *infos);

/* The name "twins" has two addresses, one of them listed twice. Other hosts must be numeric. */
static struct sockaddr_in twin4;
static struct sockaddr_in6 twin6;
static struct addrinfo twins[3];

int __wrap_getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                       struct addrinfo **out)
{
    if (strcmp(host, "twins") != 0) {
        struct addrinfo numeric = *hints;
        numeric.ai_flags |= AI_NUMERICHOST;
        return __real_getaddrinfo(host, port, &numeric, out);
    }
    uint16_t number = htons((uint16_t)strtol(port, NULL, 10));
    twin4 = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = number};
    twin6 = (struct sockaddr_in6){
        .sin6_family = AF_INET6, .sin6_addr = in6addr_loopback, .sin6_port = number};
    twins[0].ai_addr = twins[2].ai_addr = (struct sockaddr *)&twin4;
    twins[0].ai_addrlen = twins[2].ai_addrlen = sizeof(twin4);
    twins[1].ai_addr = (struct sockaddr *)&twin6;
    twins[1].ai_addrlen = sizeof(twin6);
    twins[0].ai_next = &twins[1];
    twins[1].ai_next = &twins[2];
    *out = twins;
    return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *infos)
{
    if (infos != twins) {
        __real_freeaddrinfo(infos);
    }
}

static struct address addresses[ADDRESS_COUNT_MAX];
static uint32_t count;

static void assert_url(uint32_t index, const char *expected)
{
    char text[ADDRESS_TEXT_MAX];
    assert_true(index < count);
    address_print_url(&addresses[index], text);
    assert_string_equal(text, expected);
}

static void numbers_are_urls(void **state)
{
    (void)state;
    struct error err;
    char text[ADDRESS_TEXT_MAX];
    assert_ok(err, address_resolve("127.0.0.1:8000", addresses, &count, &err));
    assert_int_equal(count, 1);
    assert_url(0, "http://127.0.0.1:8000");
    address_print(&addresses[0], text);
    assert_string_equal(text, "127.0.0.1:8000");
    assert_int_equal(address_port(&addresses[0]), 8000);
    assert_null(address_path(&addresses[0]));
    address_set_port(&addresses[0], 65535);
    assert_url(0, "http://127.0.0.1:65535");
    assert_ok(err, address_resolve("[::1]:80", addresses, &count, &err));
    assert_int_equal(count, 1);
    assert_url(0, "http://[::1]:80");
    address_set_port(&addresses[0], 81);
    assert_int_equal(address_port(&addresses[0]), 81);
    assert_url(0, "http://[::1]:81");
}

static void a_name_gives_each_of_its_addresses_once(void **state)
{
    (void)state;
    struct error err;
    assert_ok(err, address_resolve("twins:8000", addresses, &count, &err));
    assert_int_equal(count, 2);
    assert_url(0, "http://127.0.0.1:8000");
    assert_url(1, "http://[::1]:8000");
}

static void digits_are_addresses(void **state)
{
    static const char *const good[] = {"127.0.0.1", "::1", "2001:db8::17", "255.255.255.255"};
    static const char *const bad[] = {
        "",     "127.1", "127.0.0.01",  "127.0.0.1:80",     "[::1]",
        ":::1", "::1%1", "localhost",   " 127.0.0.1",       "0x7f.0.0.1",
        "::1 ", "1",     "1.2.3.4.5.6", "1:2:3:4:5:6:7:8:9"};
    struct address address;
    char text[ADDRESS_TEXT_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(address_read_ip(span_str(good[i]), &address));
        address_print(&address, text);
        assert_string_equal(text, good[i]);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(address_read_ip(span_str(bad[i]), &address));
    }
    assert_false(address_read_ip(span_of("127.0.0.1\0", 10), &address));
}

static void addresses_of_tls_say_so(void **state)
{
    (void)state;
    struct error err;
    assert_ok(err, address_resolve("tls:twins:8443", addresses, &count, &err));
    assert_int_equal(count, 2);
    assert_true(addresses[0].is_tls && addresses[1].is_tls);
    assert_url(0, "https://127.0.0.1:8443");
    assert_url(1, "https://[::1]:8443");
    assert_ok(err, address_resolve("tls:unix:/run/s", addresses, &count, &err));
    assert_url(0, "unix:/run/s (curl --unix-socket /run/s https://localhost/v2)");
    assert_ok(err, address_resolve("[::1]:80", addresses, &count, &err));
    assert_false(addresses[0].is_tls);
    assert_fails(err, address_resolve("tls:unix:", addresses, &count, &err), ST_INVALID,
                 "got 0 bytes");
    assert_fails(err, address_resolve("tls:tls:a:1", addresses, &count, &err), ST_INVALID,
                 "one of these, got 'tls:tls:a:1'");
}

static void an_unknown_name_is_refused(void **state)
{
    (void)state;
    struct error err;
    assert_fails(err, address_resolve("unknown:8000", addresses, &count, &err), ST_SYSTEM,
                 "listen on unknown:8000: ");
}

static void paths_have_a_maximal_length(void **state)
{
    (void)state;
    struct error err;
    char text[200] = "unix:", expected[64], shown[ADDRESS_TEXT_MAX];
    size_t max = sizeof(((struct sockaddr_un *)0)->sun_path) - 1;
    assert_ok(err, address_resolve("unix:/run/s", addresses, &count, &err));
    assert_string_equal(address_path(&addresses[0]), "/run/s");
    assert_url(0, "unix:/run/s (curl --unix-socket /run/s http://localhost/v2)");
    address_print(&addresses[0], shown);
    assert_string_equal(shown, "unix");
    memset(text + 5, 'x', max);
    assert_ok(err, address_resolve(text, addresses, &count, &err));
    assert_int_equal(strlen(address_path(&addresses[0])), max);
    text[5 + max] = 'x';
    snprintf(expected, sizeof(expected), "expected a path of 1 to %zu bytes, got %zu", max,
             max + 1);
    assert_fails(err, address_resolve(text, addresses, &count, &err), ST_INVALID, expected);
    assert_fails(err, address_resolve("unix:", addresses, &count, &err), ST_INVALID, "got 0 bytes");
}

static void addresses_from_the_kernel_are_printed(void **state)
{
    (void)state;
    count = 1;
    struct sockaddr_un *un = (struct sockaddr_un *)&addresses[0].storage;
    *un = (struct sockaddr_un){.sun_family = AF_UNIX};
    addresses[0].len = offsetof(struct sockaddr_un, sun_path);
    assert_url(0, "unix: (a socket without a name)");
    memcpy(un->sun_path, "\0name", 5);
    addresses[0].len += 5;
    assert_null(address_path(&addresses[0]));
    assert_url(0, "unix:@name (curl --abstract-unix-socket name http://localhost/v2)");
}

static void addresses_for_grpc_say_so(void **state)
{
    (void)state;
    struct error err;
    assert_ok(err, address_resolve("grpc:tls:twins:8001", addresses, &count, &err));
    assert_int_equal(count, 2);
    assert_true(addresses[0].is_tls && addresses[0].is_grpc && addresses[1].is_grpc);
    assert_url(0, "grpcs://127.0.0.1:8001");
    assert_ok(err, address_resolve("grpc:[::1]:8001", addresses, &count, &err));
    assert_false(addresses[0].is_tls);
    assert_url(0, "grpc://[::1]:8001");
    assert_ok(err, address_resolve("grpc:unix:/run/s", addresses, &count, &err));
    assert_url(0, "grpc://unix:/run/s");
    assert_ok(err, address_verify("grpc:8001", &err)); /* a host of that name */
    assert_false(address_is_grpc("grpc:8001"));
    assert_fails(err, address_verify("tls:grpc:a:1", &err), ST_INVALID, "got 'tls:grpc:a:1'");
    assert_fails(err, address_verify("grpc:grpc:a:1", &err), ST_INVALID, "got 'grpc:grpc:a:1'");
}

static void other_texts_are_refused(void **state)
{
    (void)state;
    struct error err;
    static const char *const bad[] = {"",       "8000",   ":8000",       "a:",      "a:x",
                                      "a:+1",   "a:1 ",   "a:65536",     "a:99999", "a:000001",
                                      "::1:80", "[::1]",  "[::1]:",      "[::1:80", "[]:80",
                                      "a]:80",  "/run/s", "http://a:80/"};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_fails(err, address_resolve(bad[i], addresses, &count, &err), ST_INVALID,
                     "--listen: expected ADDR:PORT, [ADDR6]:PORT, NAME:PORT or unix:PATH, or tls:, "
                     "grpc: or grpc:tls: and one of these, got '");
    }
    char text[300];
    memset(text, 'a', sizeof(text));
    memcpy(text + 254, ":80", 4);
    assert_fails(err, address_resolve(text, addresses, &count, &err), ST_INVALID, "--listen");
    assert_fails(err, address_resolve("[127.0.0.1]:80", addresses, &count, &err), ST_SYSTEM, "");
}

static bool is_loopback(const char *text)
{
    struct error err;
    assert_ok(err, address_resolve(text, addresses, &count, &err));
    return address_is_loopback(&addresses[0]);
}

static void loopback_addresses_are_known(void **state)
{
    (void)state;
    assert_true(is_loopback("127.0.0.1:80"));
    assert_true(is_loopback("127.255.0.7:80"));
    assert_true(is_loopback("[::1]:80"));
    assert_true(is_loopback("[::ffff:127.0.0.1]:80"));
    assert_false(is_loopback("0.0.0.0:80"));
    assert_false(is_loopback("128.0.0.1:80"));
    assert_false(is_loopback("10.127.0.1:80"));
    assert_false(is_loopback("[::]:80"));
    assert_false(is_loopback("[::ffff:10.0.0.1]:80"));
    assert_false(is_loopback("[::7f00:1]:80"));
    assert_false(is_loopback("unix:/run/s"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_urls),
        cmocka_unit_test(a_name_gives_each_of_its_addresses_once),
        cmocka_unit_test(digits_are_addresses),
        cmocka_unit_test(addresses_of_tls_say_so),
        cmocka_unit_test(an_unknown_name_is_refused),
        cmocka_unit_test(paths_have_a_maximal_length),
        cmocka_unit_test(addresses_from_the_kernel_are_printed),
        cmocka_unit_test(addresses_for_grpc_say_so),
        cmocka_unit_test(other_texts_are_refused),
        cmocka_unit_test(loopback_addresses_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
