/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "base/share.h"

static uint64_t take_all(struct share *share, uint64_t client)
{
    uint64_t count = 0;
    while (share_take(share, client, 1) == SHARE_TAKEN) {
        count++;
    }
    return count;
}

static void a_client_alone_takes_all_but_what_is_kept(void **state)
{
    (void)state;
    struct share share;
    share_init(&share, 256, 64);
    assert_int_equal(take_all(&share, 7), 192);
    assert_int_equal(share_take(&share, 7, 1), SHARE_CLIENT_IS_UP);
    assert_int_equal(share_held(&share, 7), 192);
    assert_int_equal(share_used(&share), 192);
    assert_false(share_is_over(&share, 7)); /* nobody has needed the others */
    share_give(&share, 7, 192);
    assert_int_equal(share_held(&share, 7), 0);
    share_fini(&share);
}

static void those_who_come_later_find_some(void **state)
{
    (void)state;
    struct share share;
    struct share_stats stats;
    share_init(&share, 256, 64);
    assert_int_equal(take_all(&share, 1), 192);
    assert_int_equal(take_all(&share, 2), 32);
    assert_int_equal(take_all(&share, 3), 16);
    assert_int_equal(take_all(&share, 4), 8);
    assert_true(share_is_over(&share, 1));
    assert_false(share_is_over(&share, 4));
    share_stats(&share, &stats);
    assert_int_equal(stats.used, 248);
    assert_int_equal(stats.client_count, 4);
    assert_int_equal(stats.most_held, 192);
    share_give(&share, 1, 192);
    share_give(&share, 2, 32);
    assert_false(share_is_over(&share, 3));
    share_give(&share, 3, 16);
    share_give(&share, 4, 8);
    share_stats(&share, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.used_peak, 248);
    assert_int_equal(stats.client_count, 0);
    share_fini(&share);
}

static void nobody_is_bound_by_the_size_alone(void **state)
{
    (void)state;
    struct share share;
    share_init(&share, 16, 4);
    assert_int_equal(take_all(&share, 1), 12);
    assert_int_equal(take_all(&share, SHARE_NOBODY), 4);
    assert_int_equal(share_take(&share, 2, 1), SHARE_ALL_IN_USE);
    share_give(&share, SHARE_NOBODY, 4);
    share_give(&share, 1, 12);
    share_fini(&share);
}

/* All of |amount| or none; an amount that exceeds what is free is told apart from a share. */
static void amounts_are_taken_whole(void **state)
{
    (void)state;
    struct share share;
    share_init(&share, 1000, 250);
    assert_int_equal(share_take(&share, 1, 750), SHARE_TAKEN);
    assert_int_equal(share_look(&share, 2, 126), SHARE_CLIENT_IS_UP);
    assert_int_equal(share_take(&share, 2, 125), SHARE_TAKEN);
    assert_int_equal(share_take(&share, 3, 126), SHARE_ALL_IN_USE);
    assert_int_equal(share_take(&share, 3, UINT64_MAX), SHARE_ALL_IN_USE);
    assert_int_equal(share_take(&share, 3, 0), SHARE_TAKEN);
    assert_int_equal(share_held(&share, 3), 0);
    share_resize(&share, 500, 125); /* more is in use now than there is */
    assert_int_equal(share_take(&share, 3, 1), SHARE_ALL_IN_USE);
    assert_true(share_is_over(&share, 1));
    share_give(&share, 1, 750);
    share_give(&share, 2, 125);
    share_fini(&share);
}

static void the_last_unit_is_for_one_who_has_none(void **state)
{
    (void)state;
    struct share share;
    share_init(&share, 4, 1);
    assert_int_equal(take_all(&share, 1), 3);
    assert_int_equal(take_all(&share, 2), 1);
    assert_int_equal(share_take(&share, 3, 1), SHARE_ALL_IN_USE);
    share_give(&share, 1, 3);
    share_give(&share, 2, 1);
    share_fini(&share);
}

static void units_change_hands(void **state)
{
    (void)state;
    struct share share;
    share_init(&share, 4, 1);
    assert_int_equal(take_all(&share, 1), 3);
    assert_true(share_move(&share, 1, 2, 2));
    assert_int_equal(share_held(&share, 1), 1);
    assert_int_equal(share_held(&share, 2), 2);
    assert_true(share_move(&share, 2, 2, 2));
    assert_true(share_move(&share, 2, SHARE_NOBODY, 2));
    assert_int_equal(share_held(&share, 2), 0);
    share_give(&share, SHARE_NOBODY, 2);
    share_give(&share, 1, 1);
    share_fini(&share);
}

static void all_is_given_back_at_once(void **state)
{
    (void)state;
    struct share share;
    struct share_stats stats;
    share_init(&share, 100, 25);
    for (uint64_t client = 1; client <= 20; client++) {
        assert_int_equal(share_take(&share, client, client % 3 + 1), SHARE_TAKEN);
    }
    share_clear(&share);
    share_stats(&share, &stats);
    assert_int_equal(stats.used, 0);
    assert_int_equal(stats.client_count, 0);
    assert_int_equal(stats.most_held, 0);
    assert_int_equal(take_all(&share, 7), 75);
    share_give(&share, 7, 75);
    share_fini(&share);
}

static void says_who_has_the_units(void **state)
{
    (void)state;
    struct share share;
    struct error err;
    share_init(&share, 4, 1);
    assert_int_equal(take_all(&share, 1), 3);
    assert_fails(err, share_refuse(&share, SHARE_CLIENT_IS_UP, 1, "generations", &err),
                 ST_EXHAUSTED, "this client has 3 of 4 generations, the others are for other");
    assert_fails(err, share_refuse(&share, SHARE_ALL_IN_USE, 1, "generations", &err), ST_EXHAUSTED,
                 "all 4 generations are in use");
    share_give(&share, 1, 3);
    share_fini(&share);
}

/* Clients come and go in an order without a pattern; a plain array is what the table is compared
 * with. */
static void the_table_forgets_nobody(void **state)
{
    (void)state;
    enum { CLIENTS = 500, STEPS = 200000 };
    static uint64_t held[CLIENTS + 1];
    struct share share;
    struct share_stats stats;
    uint64_t random = 1, sum = 0;
    share_init(&share, UINT64_MAX, 0);
    for (int i = 0; i < STEPS; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407;
        uint64_t client = 1 + (random >> 33) % CLIENTS, key = client << 40;
        if (random >> 63 && held[client]) {
            share_give(&share, key, held[client]);
            sum -= held[client];
            held[client] = 0;
        } else {
            assert_int_equal(share_take(&share, key, client), SHARE_TAKEN);
            held[client] += client;
            sum += client;
        }
    }
    share_stats(&share, &stats);
    assert_int_equal(stats.used, sum);
    for (uint64_t client = 1; client <= CLIENTS; client++) {
        assert_int_equal(share_held(&share, client << 40), held[client]);
        share_give(&share, client << 40, held[client]);
    }
    share_fini(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_client_alone_takes_all_but_what_is_kept),
        cmocka_unit_test(those_who_come_later_find_some),
        cmocka_unit_test(nobody_is_bound_by_the_size_alone),
        cmocka_unit_test(amounts_are_taken_whole),
        cmocka_unit_test(the_last_unit_is_for_one_who_has_none),
        cmocka_unit_test(units_change_hands),
        cmocka_unit_test(all_is_given_back_at_once),
        cmocka_unit_test(says_who_has_the_units),
        cmocka_unit_test(the_table_forgets_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
