/* SPDX-License-Identifier: MIT */
/* The table of resources: names, what is kept, the words of a refusal. */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "base/resource.h"

static void each_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (enum resource one = 0; one < RESOURCE_COUNT; one++) {
        assert_true(resource_name(one)[0] != '\0');
        for (enum resource other = 0; other < one; other++) {
            assert_string_not_equal(resource_name(one), resource_name(other));
        }
    }
}

/* Only a share by client keeps anything: the rule of base/share.h is about clients. */
static void clients_with_few_find_some(void **state)
{
    (void)state;
    assert_int_equal(resource_kept(RESOURCE_CONNECTIONS, 4096), 1024);
    assert_int_equal(resource_kept(RESOURCE_TURNS, 4096), 0);
    for (enum resource resource = 0; resource < RESOURCE_COUNT; resource++) {
        assert_true(resource_kept(resource, 100) == 0 ||
                    resource_party(resource) == RESOURCE_PARTY_CLIENT);
    }
}

static void refusals_name_what_there_is_none_of(void **state)
{
    (void)state;
    struct share share;
    struct error err;
    share_init(&share, 1, resource_kept(RESOURCE_CONNECTIONS, 1));
    assert_int_equal(share_take(&share, 1, 1), SHARE_TAKEN);
    enum share_taken taken = share_take(&share, 2, 1);
    assert_int_equal(taken, SHARE_ALL_IN_USE);
    assert_fails(err, resource_refuse(RESOURCE_CONNECTIONS, &share, taken, 2, &err), ST_EXHAUSTED,
                 "all 1 connections are in use");
    share_give(&share, 1, 1);
    share_fini(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_has_a_name_of_its_own),
        cmocka_unit_test(clients_with_few_find_some),
        cmocka_unit_test(refusals_name_what_there_is_none_of),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
