/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/ops/cut.h"

#include "tests/unit/unit.h"

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static void test_small_work_is_one_tile(void **state)
{
    (void)state;
    assert_int_equal(rt_cut_tiles(0), 1);
    assert_int_equal(rt_cut_tiles(7999), 1);
    assert_int_equal(rt_cut_tiles(8000), 2);
}

static void test_few_tiles_are_a_power_of_two(void **state)
{
    (void)state;
    for (int64_t ns = 0; ns <= 200000; ns += 100) {
        int64_t tiles = rt_cut_tiles(ns);
        assert_int_equal(tiles & (tiles - 1), 0);
    }
    assert_int_equal(rt_cut_tiles(200000), 8);
    assert_int_equal(rt_cut_tiles(200001), 16);
    assert_int_equal(rt_cut_tiles(1000000), 40);
    assert_int_equal(rt_cut_tiles(INT64_MAX), 512);
}

static void test_an_axis_has_an_even_number_of_tiles(void **state)
{
    (void)state;
    assert_int_equal(rt_cut_axis(56, 8), 7);
    assert_int_equal(rt_cut_axis(14, 8), 1); /* 2 would make 7 */
    assert_int_equal(rt_cut_axis(7, 4), 2);
    assert_int_equal(rt_cut_axis(7, 1), 7);
    assert_int_equal(rt_cut_axis(7, 100), 1); /* there is no even number */
    assert_int_equal(rt_cut_axis(0, 4), 1);
    assert_int_equal(rt_cut_length(1000, 0, 300), 300);
}

static void check_product(int64_t lines, int64_t pixels, int64_t panels, int64_t tiles)
{
    struct rt_cut cut = {.lines = lines, .pixels = pixels, .panels = panels, .rows = 14};
    rt_cut_product(&cut, tiles);
    assert_between(cut.band_y, 1, lines);
    assert_between(cut.band_x, 1, pixels);
    assert_between(cut.block, 1, panels);
    if (tiles == 1) {
        assert_int_equal(cut.band_y * cut.band_x * cut.block, lines * pixels * panels);
    }
}

static void test_products_of_any_size(void **state)
{
    const int64_t sizes[] = {1, 2, 3, 7, 14, 49, 100, 1000};
    (void)state;
    for (size_t i = 0; i < 8 * 8 * 8; i++) {
        for (int64_t tiles = 1; tiles <= 64; tiles *= 2) {
            check_product(sizes[i / 64], sizes[i / 8 % 8], sizes[i % 8], tiles);
        }
    }
}

static struct rt_cut product(int64_t lines, int64_t pixels, int64_t panels, int64_t tiles)
{
    struct rt_cut cut = {.lines = lines, .pixels = pixels, .panels = panels, .rows = 14};
    rt_cut_product(&cut, tiles);
    return cut;
}

/* One row of a matrix is cut between its columns, many rows between the rows. */
static void test_what_is_read_less_often(void **state)
{
    (void)state;
    struct rt_cut row = product(1, 1, 32, 8), rows = product(1, 3136, 2, 8);
    struct rt_cut column = product(4, 1, 10, 2); /* lines of a pixel: as four rows */
    assert_int_equal(row.block, 4);
    assert_int_equal(rows.block, 2);
    assert_int_equal(ceil_div(3136, rows.band_x), 8);
    assert_int_equal(column.block, 5);
    assert_int_equal(column.band_y, 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_work_is_one_tile),
        cmocka_unit_test(test_few_tiles_are_a_power_of_two),
        cmocka_unit_test(test_an_axis_has_an_even_number_of_tiles),
        cmocka_unit_test(test_products_of_any_size),
        cmocka_unit_test(test_what_is_read_less_often),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
