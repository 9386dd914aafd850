/* SPDX-License-Identifier: MIT */
/* The loops of resizing: each set that this machine can run has the results of the plain one. */
#include "config.h"

#include "tests/unit/unit.h"

#include <stdlib.h>
#include <string.h>

#include "server/media/image.h"
#include "server/media/resize_rows.h"

#define LOOP_INPUTS 300
#define LOOP_BYTES ((size_t)4 * LOOP_INPUTS)

/* Rows and columns that are resized with |rows| have the results of the plain loops. The row ends
 * where the memory that may be read ends. */
static void check_loops(const struct resize_rows *rows, struct axis *axis, const uint8_t *pixels)
{
    static uint8_t plain[LOOP_BYTES + RESIZE_ROW_PAD], fast[LOOP_BYTES + RESIZE_ROW_PAD];
    const uint8_t *taps[LOOP_INPUTS];
    if (rows->is_packed) {
        axis_pack(axis, LOOP_INPUTS + RESIZE_ROW_PAD / 4);
        assert_true(axis->is_packed);
    }
    resize_rows_plain.across(axis, pixels, plain);
    rows->across(axis, pixels, fast);
    assert_memory_equal(fast, plain, (size_t)4 * axis->count);
    if (rows->is_packed) {
        memset(axis->blocks, 0, axis->block_count * AXIS_BLOCK_BYTES * ((axis->count + 3) / 4));
        axis_pack(axis, UINT32_MAX);
    }
    for (uint32_t i = 0; i < axis->count; i++) {
        for (uint32_t k = 0; k < axis->taps[i]; k++) {
            taps[k] = pixels + k % 7;
        }
        resize_rows_plain.down(axis, i, taps, 100, plain);
        rows->down(axis, i, taps, 100, fast);
        assert_memory_equal(fast, plain, 100);
    }
    for (int is_bgr = 0; is_bgr < 2; is_bgr++) {
        resize_rows_plain.pack(pixels, 77, is_bgr, plain);
        rows->pack(pixels, 77, is_bgr, fast);
        assert_memory_equal(fast, plain, 77 * 3);
    }
}

static void check_axis(const struct resize_rows *rows, const struct axis_task *task)
{
    struct axis axis;
    void *memory = NULL;
    uint8_t *pixels = malloc(LOOP_BYTES + RESIZE_ROW_PAD);
    assert_non_null(pixels);
    assert_int_equal(posix_memalign(&memory, 64, axis_bytes(task)), 0);
    memset(memory, 0, axis_bytes(task));
    for (size_t i = 0; i < LOOP_BYTES + RESIZE_ROW_PAD; i++) {
        pixels[i] = (uint8_t)(i % 97 < 48 ? i * i * 31 >> 3 : i % 2 * 255);
    }
    axis_init(&axis, task, memory);
    check_loops(rows, &axis, pixels);
    free(memory);
    free(pixels);
}

/* Smaller, larger, with all counts of taps up to 30, and with all inputs as taps. */
static void test_loops(void **state)
{
    static const struct resize_rows *const sets[] = {
        &resize_rows_plain,
#ifdef PTED_CPU_X86
        &resize_rows_avx2,
        &resize_rows_avx512,
#endif
    };
    static const uint32_t counts[] = {1, 2, 3, 20, 21, 38, 77, 160, 299, 300};
    (void)state;
    for (size_t set = 0; set < sizeof(sets) / sizeof(sets[0]); set++) {
        for (int filter = IMAGE_BOX; filter <= IMAGE_LANCZOS; filter++) {
            for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
                struct axis_task task = {LOOP_INPUTS - 1,
                                         LOOP_INPUTS - 1,
                                         counts[i],
                                         0,
                                         counts[i] < 299 ? counts[i] : 298,
                                         (enum image_filter)filter,
                                         i % 2};
                if (task.in_count == task.out_count || !resize_rows_is_run(sets[set])) {
                    continue;
                }
                check_axis(sets[set], &task);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_loops)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
