/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/share.h"
#include "server/http/address.h"
#include "server/http/client.h"

static uint64_t of(const char *text)
{
    struct address address = {.len = 0};
    struct sockaddr_in *in = (struct sockaddr_in *)&address.storage;
    struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&address.storage;
    bool is_v6 = strchr(text, ':') != NULL;
    address.storage.ss_family = is_v6 ? AF_INET6 : AF_INET;
    assert_int_equal(inet_pton(address.storage.ss_family, text,
                               is_v6 ? (void *)&in6->sin6_addr : (void *)&in->sin_addr),
                     1);
    address_set_port(&address, (uint16_t)(uintptr_t)text); /* the port does not count */
    return client_of_address(&address);
}

static void an_address_is_a_client(void **state)
{
    (void)state;
    assert_true(of("192.0.2.1") == of("192.0.2.1"));
    assert_true(of("192.0.2.1") == of("::ffff:192.0.2.1"));
    assert_true(of("127.0.0.1") == of("::1"));
    assert_true(of("192.0.2.1") != of("192.0.2.2"));
    assert_true(of("192.0.2.1") != SHARE_NOBODY);
    assert_true(of("0.0.0.0") != SHARE_NOBODY);
    assert_true(of("::2") != SHARE_NOBODY); /* a proxy may name what nobody sends from */
    assert_true(of("::") != SHARE_NOBODY);
    assert_true(of("ff01::1") != of("0.0.0.0"));
}

static void a_network_of_ipv6_is_a_client(void **state)
{
    (void)state;
    assert_true(of("2001:db8:1:2::1") == of("2001:db8:1:2:ffff:ffff:ffff:ffff"));
    assert_true(of("2001:db8:1:2::1") != of("2001:db8:1:3::1"));
    assert_true(of("fe80::1") == of("fe80::2"));
}

static void kinds_never_meet(void **state)
{
    (void)state;
    struct address path = {.storage = {.ss_family = AF_UNIX}};
    assert_true(client_of_token(1) != client_of_connection(1));
    assert_true(client_of_token(1) != of("0.0.0.1"));
    assert_true(client_that_lasts(client_of_connection(1)) ==
                client_that_lasts(client_of_connection(2)));
    assert_true(client_that_lasts(client_of_token(1)) == client_of_token(1));
    assert_true(client_that_lasts(of("192.0.2.1")) == of("192.0.2.1"));
    assert_true(client_of_token(1) != client_of_token(2));
    assert_true(client_of_connection(3) != client_of_connection(4));
    assert_true(client_of_path() == client_of_path() && client_of_path() != SHARE_NOBODY);
    assert_true(client_of_path() != client_of_connection(0) &&
                client_of_path() != client_of_token(0));
    assert_true(client_of_address(&path) == SHARE_NOBODY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_is_a_client),
        cmocka_unit_test(a_network_of_ipv6_is_a_client),
        cmocka_unit_test(kinds_never_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
