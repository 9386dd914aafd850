/* SPDX-License-Identifier: MIT */
/* The loops of resizing: those of each level that this machine can run have the results of the
 * definition in hal/resize.h. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "hal/cpu/resize.h"
#include "server/media/image.h"
#include "server/media/resize_axis.h"
#include "tests/hal/levels.h"

#define LOOP_INPUTS 300
#define LOOP_BYTES ((size_t)4 * LOOP_INPUTS)

static uint8_t cut(int64_t sum)
{
    int64_t value = (sum + (1 << (HAL_RESIZE_BITS - 1))) >> HAL_RESIZE_BITS;
    return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

static void across(const struct hal_resize_axis *axis, const uint8_t *row, uint8_t *out)
{
    for (size_t i = 0; i < axis->count; i++) {
        for (size_t c = 0; c < 4; c++) {
            int64_t sum = 0;
            for (size_t k = 0; k < axis->taps[i]; k++) {
                sum += (int64_t)row[4 * (axis->from[i] + k) + c] *
                       hal_resize_weight(axis, i * axis->stride + k);
            }
            out[4 * i + c] = cut(sum);
        }
    }
}

static void down(const struct hal_resize_axis *axis, uint32_t i, const uint8_t *const *rows,
                 size_t len, uint8_t *out)
{
    for (size_t at = 0; at < len; at++) {
        int64_t sum = 0;
        for (size_t k = 0; k < axis->taps[i]; k++) {
            sum += (int64_t)rows[k][at] * hal_resize_weight(axis, (size_t)i * axis->stride + k);
        }
        out[at] = cut(sum);
    }
}

static void check_pack(const struct hal_resize *rows, const uint8_t *pixels)
{
    static uint8_t fast[LOOP_BYTES + HAL_RESIZE_PAD];
    for (int is_bgr = 0; is_bgr < 2; is_bgr++) {
        memset(fast, 0x5a, sizeof(fast));
        rows->pack(pixels, 77, is_bgr, fast);
        for (size_t i = 0; i < 77; i++) {
            for (size_t c = 0; c < 3; c++) {
                assert_int_equal(fast[3 * i + c], pixels[4 * i + (is_bgr ? 2 - c : c)]);
            }
        }
        assert_int_equal(fast[3 * 77], 0x5a); /* the next bytes are others' */
    }
}

/* Rows and columns that are resized with |rows| are as defined. The row ends where the memory that
 * may be read ends. */
static void check_loops(const struct hal_resize *rows, struct hal_resize_axis *axis,
                        const uint8_t *pixels)
{
    static uint8_t plain[LOOP_BYTES + HAL_RESIZE_PAD], fast[LOOP_BYTES + HAL_RESIZE_PAD];
    const uint8_t *taps[LOOP_INPUTS];
    if (rows->is_packed) {
        axis_pack(axis, LOOP_INPUTS + HAL_RESIZE_PAD / 4);
        assert_true(axis->is_packed);
    }
    across(axis, pixels, plain);
    rows->across(axis, pixels, fast);
    assert_memory_equal(fast, plain, (size_t)4 * axis->count);
    if (rows->is_packed) {
        memset(axis->blocks, 0,
               axis->block_count * HAL_RESIZE_BLOCK_BYTES * ((axis->count + 3) / 4));
        axis_pack(axis, UINT32_MAX);
    }
    for (uint32_t i = 0; i < axis->count; i++) {
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            taps[k] = pixels + k % 7;
        }
        down(axis, i, taps, 100, plain);
        rows->down(axis, i, taps, 100, fast);
        assert_memory_equal(fast, plain, 100);
    }
    check_pack(rows, pixels);
}

static void check_axis(const struct hal_resize *rows, const struct axis_task *task)
{
    struct hal_resize_axis axis;
    void *memory = NULL;
    uint8_t *pixels = malloc(LOOP_BYTES + HAL_RESIZE_PAD);
    assert_non_null(pixels);
    assert_int_equal(posix_memalign(&memory, 64, axis_bytes(task)), 0);
    memset(memory, 0, axis_bytes(task));
    for (size_t i = 0; i < LOOP_BYTES + HAL_RESIZE_PAD; i++) {
        pixels[i] = (uint8_t)(i % 97 < 48 ? i * i * 31 >> 3 : i % 2 * 255);
    }
    axis_init(&axis, task, memory);
    check_loops(rows, &axis, pixels);
    free(memory);
    free(pixels);
}

/* Smaller, larger, with all counts of taps up to 30, and with all inputs as taps. */
static void check_level(const struct hal_resize *rows)
{
    static const uint32_t counts[] = {1, 2, 3, 20, 21, 38, 77, 160, 299, 300};
    for (int filter = IMAGE_BOX; filter <= IMAGE_LANCZOS; filter++) {
        for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
            const struct axis_task task = {.in_count = LOOP_INPUTS - 1,
                                           .in_length = LOOP_INPUTS - 1,
                                           .out_count = counts[i],
                                           .count = counts[i] < 299 ? counts[i] : 298,
                                           .filter = (enum image_filter)filter,
                                           .is_reversed = i % 2};
            if (task.in_count != task.out_count) {
                check_axis(rows, &task);
            }
        }
    }
}

static void test_levels(void **state)
{
    (void)state;
    for (unsigned isa = 0; isa < HAL_CPU_ISA_COUNT; isa++) {
        if (has_level((enum hal_cpu_isa)isa)) {
            check_level(hal_cpu_resize((enum hal_cpu_isa)isa));
        }
    }
    assert_ptr_equal(hal_resize(), hal_cpu_resize(hal_cpu_isa()));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_levels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
