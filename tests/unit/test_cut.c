/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "runtime/emit/cut.h"

#include "hal/device.h"
#include "hal/kernel.h"
#include "runtime/emit/minmax.h"
#include "tests/unit/unit.h"

static const uint32_t words[1];
static const struct hal_kernel plain = {.spirv = HAL_SPIRV(words)}, hosted = {.name = "hosted"},
                               teams = {.spirv = {HAL_SPIRV_FORM(words, HAL_SUBGROUPS),
                                                  HAL_SPIRV_FORM(words, 0)}},
                               matrices = {.spirv = {HAL_SPIRV_FORM(words, HAL_MATRICES_F16)}};

/* A machine as a driver describes it. */
static const struct rt_machine *machine_of(uint32_t capabilities, const struct hal_kernel *kernel)
{
    const struct hal_device_props props = {.capabilities = capabilities};
    return rt_cut_machine(&props, kernel);
}

static const struct rt_machine *gpu(void)
{
    return machine_of(HAL_GPU, &plain);
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static void test_small_work_is_one_tile(void **state)
{
    (void)state;
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 0), 1);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 7999), 1);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 8000), 2);
}

static void test_few_tiles_are_a_power_of_two(void **state)
{
    (void)state;
    for (int64_t ns = 0; ns <= 200000; ns += 100) {
        int64_t tiles = rt_cut_tiles(rt_cut_workers(2), ns);
        assert_int_equal(tiles & (tiles - 1), 0);
    }
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 200000), 8);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 200001), 16);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 1000000), 40);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), INT64_MAX), 512);
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
    assert_int_equal(rt_cut_length(rt_cut_workers(2), 1000, 0, 300), 300);
}

/* Work so long that workers get up to |tiles| tiles of it. */
static struct rt_cut product_of(int64_t lines, int64_t pixels, int64_t panels, int64_t tiles)
{
    return (struct rt_cut){.images = 1,
                           .groups = 1,
                           .lines = lines,
                           .pixels = pixels,
                           .panels = panels,
                           .width = 16,
                           .rows = 14,
                           .per_read = 12,
                           .per_input = rt_cut_reads(12, 1, 1),
                           .has_big_form = true,
                           .ns = tiles * 4000};
}

static int64_t tiles_of(const struct rt_cut *cut)
{
    return ceil_div(cut->images, cut->band_images) * cut->groups *
           ceil_div(cut->lines, cut->band_y) * ceil_div(cut->pixels, cut->band_x) *
           ceil_div(cut->panels, cut->block);
}

static void check_product(int64_t lines, int64_t pixels, int64_t panels, int64_t tiles)
{
    struct rt_cut cut = product_of(lines, pixels, panels, tiles);
    rt_cut_product(rt_cut_workers(2), &cut);
    assert_int_equal(cut.band_images, 1);
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
    struct rt_cut cut = product_of(lines, pixels, panels, tiles);
    rt_cut_product(rt_cut_workers(2), &cut);
    return cut;
}

/* One row of a matrix is cut between its columns, many rows between the rows. */
static void test_the_operand_that_is_read_less_is_cut(void **state)
{
    (void)state;
    struct rt_cut row = product(1, 1, 32, 8), rows = product(1, 3136, 2, 8);
    struct rt_cut column = product(4, 1, 10, 2); /* four lines of a pixel each count as rows */
    assert_int_equal(row.band_x, 1);
    assert_int_equal(tiles_of(&row) % 2, 0);
    assert_int_equal(rows.block, 2);
    assert_int_equal(tiles_of(&rows) % 2, 0);
    assert_int_equal(column.block, 5);
    assert_int_equal(column.band_y, 4);
}

/* Each number of workers gets as many tiles as it needs, and not many more: tiles read again. */
static void test_products_have_a_few_tiles_for_each_worker(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 64; workers++) {
        struct rt_cut cut = product_of(1, 1024, 64, 1000);
        rt_cut_product(rt_cut_workers(workers), &cut);
        int64_t tiles = tiles_of(&cut), turns = ceil_div(tiles, workers);
        assert_between(turns, 1, 9);
        assert_true(4 * tiles >= 3 * turns * workers);
    }
    assert_ptr_equal(rt_cut_workers(1000), rt_cut_workers(64));
}

/* Where there is not a tile worth taking for each of many workers, some of them take one. */
static void test_many_workers_share_a_small_product(void **state)
{
    (void)state;
    for (uint32_t workers = 2; workers <= 64; workers++) {
        struct rt_cut cut = product_of(1, 784, 4, 60);
        rt_cut_product(rt_cut_workers(workers), &cut);
        assert_between(tiles_of(&cut), workers < 28 ? workers : 28, 64);
    }
}

/* Other work that is small is cut into more tiles where there are more workers. */
static void test_many_workers_get_more_tiles(void **state)
{
    (void)state;
    assert_int_equal(rt_cut_tiles(rt_cut_workers(2), 200000), 8);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(8), 200000), 8);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(16), 200000), 16);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(64), 200000), 32);
    assert_int_equal(rt_cut_tiles(rt_cut_workers(64), 1600000), 64);
}

static void test_workers_have_tiles_of_a_fixed_length(void **state)
{
    (void)state;
    assert_int_equal(rt_cut_things(rt_cut_workers(2), RT_WORK_ELEMENTS, 1, 1, 1), 16384);
    assert_int_equal(rt_cut_things(rt_cut_workers(2), RT_WORK_EXP, 1 << 20, 1000, 1000), 8);
    assert_int_equal(rt_cut_things(rt_cut_workers(2), RT_WORK_FOLD, 9, 1 << 20, 1 << 20), 1);
    assert_int_equal(rt_cut_things(rt_cut_workers(2), RT_WORK_MACS, 9, 0, 0), 65536);
    assert_int_equal(rt_cut_units(rt_cut_workers(2), RT_WORK_COPY, 1, 4), 131072);
    assert_int_equal(rt_cut_block(rt_cut_workers(2), 1000, 64, 48), 48);
}

/* One worker has nobody to share with, and each tile would read the weights again. */
static void test_one_worker_gets_large_tiles(void **state)
{
    const struct hal_device_props one = {.is_host = true, .workers = 1},
                                  two = {.is_host = true, .workers = 2};
    const struct rt_machine *machine = rt_cut_machine(&one, &plain);
    struct rt_cut cut = {.images = 1, .groups = 1, .lines = 1, .pixels = 196, .panels = 8,
                         .width = 32, .rows = 14, .ns = 1000000, .shares_panels = true};
    (void)state;
    assert_ptr_equal(rt_cut_machine(&two, &plain), rt_cut_workers(2));
    assert_int_equal(rt_cut_tiles(machine, 4000000), 1);
    assert_int_equal(rt_cut_tiles(machine, 40000000), 10); /* a call can end between them */
    rt_cut_product(machine, &cut);
    assert_int_equal(cut.band_x, 196);
    assert_int_equal(cut.block, 8);
}

/* Each device that is not a GPU, including processors that Vulkan offers as devices. */
static void test_only_gpus_are_cut_for_lanes(void **state)
{
    (void)state;
    assert_int_equal(machine_of(0, &plain)->lanes, 1);
    assert_int_equal(machine_of(HAL_SUBGROUPS | HAL_F64, &teams)->lanes, 1);
    assert_int_equal(machine_of(HAL_GPU, &hosted)->lanes, 1);
    assert_ptr_equal(machine_of(HAL_GPU, &teams), gpu());
    assert_true(gpu()->lanes > 1);
    assert_true(machine_of(HAL_GPU | HAL_SUBGROUPS, &teams)->lanes > gpu()->lanes);
    assert_true(machine_of(HAL_GPU | HAL_MATRICES_F16, &matrices)->high > gpu()->high);
}

/* Small work has one step of all lanes a tile; more work has more tiles up to the room of the
 * device, then tiles of a few steps, then as many steps as needed. */
static void test_lanes_share_elements(void **state)
{
    const struct rt_machine *m = gpu();
    const int64_t room = m->lanes * m->few_tiles;
    (void)state;
    assert_int_equal(rt_cut_things(m, RT_WORK_ELEMENTS, 1, 1, 1), m->lanes);
    assert_int_equal(rt_cut_things(m, RT_WORK_ELEMENTS, room, 1, 1), m->lanes);
    assert_int_equal(rt_cut_things(m, RT_WORK_ELEMENTS, 2 * room, 1, 1), 2 * m->lanes);
    assert_int_equal(rt_cut_things(m, RT_WORK_ELEMENTS, 9 * room, 1, 1), m->steps * m->lanes);
    assert_int_equal(rt_cut_things(m, RT_WORK_MACS, 4 * room, 100, 1), m->lanes);
    for (int64_t count = 1; count < (int64_t)1 << 36; count *= 3) {
        int64_t tile = rt_cut_things(m, RT_WORK_ELEMENTS, count, 1, 1);
        assert_int_equal(tile % m->lanes, 0);
        assert_between(ceil_div(count, tile), 1, m->tiles_max);
    }
}

static void test_rows_are_a_lanes_or_shared(void **state)
{
    const struct rt_machine *m = gpu(), *by_subgroup = machine_of(HAL_GPU | HAL_SUBGROUPS, &teams);
    (void)state;
    assert_int_equal(rt_cut_things(m, RT_WORK_EXP, 1000, 10, rt_cut_row(m, 10)), m->lanes);
    assert_int_equal(rt_cut_things(m, RT_WORK_EXP, 1000, 100, rt_cut_row(m, 100)), m->lanes);
    assert_int_equal(
        rt_cut_things(by_subgroup, RT_WORK_EXP, 1000, 100, rt_cut_row(by_subgroup, 100)), 1);
    assert_int_equal(rt_cut_things(m, RT_WORK_EXP, 1000, 4096, rt_cut_row(m, 4096)), 1);
    assert_int_equal(rt_cut_things(m, RT_WORK_EXP, 3 * m->tiles_max, 4096, 4096), 3);
    assert_int_equal(rt_cut_block(m, 1000, 4096, 48), 1);
    assert_int_equal(rt_cut_block(m, 1000 * m->tiles_max, 4096, 48), 48);
}

static void test_units_are_whole_steps(void **state)
{
    const struct rt_machine *m = gpu();
    (void)state;
    for (int64_t unit = 1; unit <= 16; unit *= 2) {
        for (int64_t total = 1; total < (int64_t)1 << 36; total *= 5) {
            int64_t units = rt_cut_units(m, RT_WORK_COPY, total, unit);
            assert_int_equal(units % (m->lanes * unit), 0);
            assert_between(ceil_div(total, units), 1, m->tiles_max);
        }
    }
}

static struct rt_cut lanes_product(struct rt_cut cut)
{
    rt_cut_product(gpu(), &cut);
    return cut;
}

/* Tiles are whole multiples of the block that is multiplied at a time, except at an edge. */
static void test_products_for_lanes(void **state)
{
    const struct rt_machine *m = gpu();
    struct rt_cut matrix = lanes_product(product_of(1, 1024, 64, 1));
    struct rt_cut image = lanes_product(product_of(56, 56, 8, 1));
    struct rt_cut narrow = lanes_product(product_of(1, 3, 1, 1));
    (void)state;
    assert_int_equal(matrix.band_x, m->high);
    assert_int_equal(matrix.block * matrix.width, m->wide);
    assert_int_equal(tiles_of(&matrix), 32 * 16);
    assert_int_equal(image.band_y * image.band_x % m->high, 0);
    assert_int_equal(tiles_of(&narrow), 1);
}

/* Tiles are larger if there are enough of them and the size is a whole multiple. */
static void test_large_products_for_lanes(void **state)
{
    const struct rt_machine *m = gpu();
    struct rt_cut large = lanes_product(product_of(1, 4096, 256, 1));
    struct rt_cut narrow = lanes_product(product_of(1, 1 << 18, 4, 1));
    struct rt_cut uneven = lanes_product(product_of(112, 7, 2048, 1));
    (void)state;
    assert_int_equal(large.band_x, m->big_high);
    assert_int_equal(large.block * large.width, m->big_wide);
    assert_int_equal(tiles_of(&large), 64 * 32);
    assert_int_equal(narrow.block * narrow.width, m->wide);
    assert_true(uneven.band_x * uneven.band_y <= m->high);
}

/* Small images that share their weights fill a tile together; others must not. */
static void test_images_share_tiles(void **state)
{
    struct rt_cut cut = product_of(2, 2, 4, 1), apart;
    (void)state;
    cut.images = 100;
    apart = lanes_product(cut);
    cut.shares_panels = true;
    cut = lanes_product(cut);
    assert_int_equal(cut.band_images, gpu()->high / 4);
    assert_int_equal(apart.band_images, 1);
}

static void test_products_have_not_too_many_tiles(void **state)
{
    const int64_t sizes[] = {1, 2, 7, 31, 33, 197, 1024, 60000};
    (void)state;
    for (size_t i = 0; i < 8 * 8 * 8; i++) {
        struct rt_cut cut =
            product_of(sizes[i / 64], sizes[i / 8 % 8], rt_min(sizes[i % 8], 8000), 1);
        cut = lanes_product(cut);
        assert_between(cut.band_y, 1, cut.lines);
        assert_between(cut.band_x, 1, cut.pixels);
        assert_between(cut.block, 1, cut.panels);
        assert_between(tiles_of(&cut), 1, gpu()->tiles_max);
    }
}

static void test_bands_of_images(void **state)
{
    struct rt_cut_image wide = {.images = 8, .lines = 7, .pixels = 7, .channels = 960, .macs = 9};
    struct rt_cut_image narrow = {
        .images = 1, .lines = 112, .pixels = 112, .channels = 4, .macs = 9};
    (void)state;
    rt_cut_bands(gpu(), &wide);
    rt_cut_bands(gpu(), &narrow);
    assert_int_equal(wide.band_x * wide.band_y, 1);
    assert_int_equal(narrow.band_x * narrow.band_y * narrow.channels, gpu()->lanes);
    wide.ns = 40000;
    rt_cut_bands(rt_cut_workers(2), &wide);
    assert_int_equal(wide.band_x, 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_work_is_one_tile),
        cmocka_unit_test(test_few_tiles_are_a_power_of_two),
        cmocka_unit_test(test_an_axis_has_an_even_number_of_tiles),
        cmocka_unit_test(test_products_of_any_size),
        cmocka_unit_test(test_the_operand_that_is_read_less_is_cut),
        cmocka_unit_test(test_many_workers_share_a_small_product),
        cmocka_unit_test(test_many_workers_get_more_tiles),
        cmocka_unit_test(test_workers_have_tiles_of_a_fixed_length),
        cmocka_unit_test(test_products_have_a_few_tiles_for_each_worker),
        cmocka_unit_test(test_one_worker_gets_large_tiles),
        cmocka_unit_test(test_only_gpus_are_cut_for_lanes),
        cmocka_unit_test(test_lanes_share_elements),
        cmocka_unit_test(test_rows_are_a_lanes_or_shared),
        cmocka_unit_test(test_units_are_whole_steps),
        cmocka_unit_test(test_products_for_lanes),
        cmocka_unit_test(test_large_products_for_lanes),
        cmocka_unit_test(test_images_share_tiles),
        cmocka_unit_test(test_products_have_not_too_many_tiles),
        cmocka_unit_test(test_bands_of_images),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
