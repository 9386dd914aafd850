/* SPDX-License-Identifier: MIT */
/* The text that `pte run` prints for results. */
#include "config.h"

#include "server/cli/print.h"

#include <math.h>
#include <string.h>

#include "tests/unit/unit.h"

static const struct cli_print_top unasked = {.count = CLI_PRINT_TOP_DEFAULT};
static struct buf out;

static const char *print(enum dtype dtype, struct shape shape, const void *bytes,
                         struct cli_print_top top)
{
    buf_reset(&out);
    cli_print_tensor(&out, "y", dtype, &shape, bytes, &top);
    buf_add_char(&out, '\0');
    assert_false(buf_failed(&out));
    return (const char *)out.ptr;
}

static void small_tensors_are_printed_whole(void **state)
{
    (void)state;
    const float f[6] = {1, -2.5f, 0.1f, 4, NAN, -INFINITY};
    const int64_t i[2] = {INT64_MIN, 3};
    const bool b[2] = {true, false};
    assert_string_equal(print(DT_F32, (struct shape){2, {2, 3}}, f, unasked),
                        "y: float32[2,3] [[1.0, -2.5, 0.1], [4.0, nan, -inf]]\n");
    assert_string_equal(print(DT_F32, (struct shape){0}, f, unasked), "y: float32[] 1.0\n");
    assert_string_equal(print(DT_I64, (struct shape){1, {2}}, i, unasked),
                        "y: int64[2] [-9223372036854775808, 3]\n");
    assert_string_equal(print(DT_BOOL, (struct shape){1, {2}}, b, unasked),
                        "y: bool[2] [true, false]\n");
    assert_string_equal(print(DT_F32, (struct shape){2, {1000000, 0}}, f, unasked),
                        "y: float32[1000000,0] []\n");
}

static void lines_are_short_and_columns_aligned(void **state)
{
    (void)state;
    int32_t i[40];
    for (int k = 0; k < 40; k++) {
        i[k] = k % 7 ? 1000000 + k : k;
    }
    assert_string_equal(
        print(DT_I32, (struct shape){2, {4, 10}}, i, unasked),
        "y: int32[4,10]\n"
        "  [[      0, 1000001, 1000002, 1000003, 1000004, 1000005, 1000006,       7, 1000008, "
        "1000009],\n"
        "   [1000010, 1000011, 1000012, 1000013,      14, 1000015, 1000016, 1000017, 1000018, "
        "1000019],\n"
        "   [1000020,      21, 1000022, 1000023, 1000024, 1000025, 1000026, 1000027,      28, "
        "1000029],\n"
        "   [1000030, 1000031, 1000032, 1000033, 1000034,      35, 1000036, 1000037, 1000038, "
        "1000039]]\n");
    const char *line = print(DT_I32, (struct shape){2, {1, 40}}, i, unasked);
    for (const char *end; (end = strchr(line, '\n')); line = end + 1) {
        assert_true(end - line <= 100);
    }
}

/* The first values and the range of a tensor that is too large to be printed whole. */
static void large_tensors_are_shortened(void **state)
{
    (void)state;
    static float f[2 * 3 * 20 * 20];
    for (int k = 0; k < 2400; k++) {
        f[k] = (float)k;
    }
    f[1] = NAN;
    assert_string_equal(print(DT_F32, (struct shape){4, {2, 3, 20, 20}}, f, unasked),
                        "y: float32[2,3,20,20], min 0, max 2399, mean 1200, 1 nan\n"
                        "  [[[[   0,  nan,    2, ...,   17,   18,   19],\n"
                        "     [  20,   21,   22, ...,   37,   38,   39],\n"
                        "     [  40,   41,   42, ...,   57,   58,   59],\n"
                        "     ...,\n"
                        "     [ 340,  341,  342, ...,  357,  358,  359],\n"
                        "     [ 360,  361,  362, ...,  377,  378,  379],\n"
                        "     [ 380,  381,  382, ...,  397,  398,  399]],\n"
                        "    ...,\n"
                        "    [[ 800,  801,  802, ...,  817,  818,  819],\n"
                        "     [ 820,  821,  822, ...,  837,  838,  839],\n"
                        "     [ 840,  841,  842, ...,  857,  858,  859],\n"
                        "     ...,\n"
                        "     [1140, 1141, 1142, ..., 1157, 1158, 1159],\n"
                        "     [1160, 1161, 1162, ..., 1177, 1178, 1179],\n"
                        "     [1180, 1181, 1182, ..., 1197, 1198, 1199]]],\n"
                        "   ...]\n");
}

static void ranges_of_integers_are_exact(void **state)
{
    (void)state;
    static int64_t i[200];
    static uint8_t b[200];
    i[7] = INT64_MAX - 1;
    i[8] = INT64_MAX;
    i[9] = INT64_MIN;
    b[3] = b[4] = 1;
    assert_non_null(strstr(print(DT_I64, (struct shape){1, {200}}, i, unasked),
                           "min -9223372036854775808, max 9223372036854775807, mean "));
    assert_non_null(
        strstr(print(DT_BOOL, (struct shape){1, {200}}, b, unasked), ", 2 of 200 true\n"));
}

static void scores_have_their_largest(void **state)
{
    (void)state;
    float f[30];
    for (int k = 0; k < 30; k++) {
        f[k] = (float)(k * 7 % 11);
    }
    f[11] = NAN;
    struct shape one = {2, {1, 10}}, three = {2, {3, 10}}, boxes = {2, {5, 6}},
                 image = {3, {3, 2, 5}};
    assert_non_null(
        strstr(print(DT_F32, one, f, unasked), "\n  top 5: 3: 10, 6: 9, 9: 8, 1: 7, 4: 6\n"));
    const char *rows = print(DT_F32, three, f, unasked);
    assert_non_null(strstr(rows, "\n  top 5 of row 0: 3: 10, 6: 9, 9: 8, 1: 7, 4: 6\n"
                                 "  top 5 of row 1: 4: 10, 7: 9, 2: 7, 5: 6, 8: 5\n"
                                 "  top 5 of row 2: 5: 10, 8: 9, 0: 8, 3: 7, 6: 6\n"));
    assert_null(strstr(print(DT_F32, boxes, f, unasked), "top"));
    assert_null(strstr(print(DT_F32, image, f, unasked), "top"));
    assert_null(
        strstr(print(DT_F32, one, f, (struct cli_print_top){.count = 0, .is_asked = true}), "top"));
    assert_non_null(
        strstr(print(DT_F32, boxes, f, (struct cli_print_top){.count = 1, .is_asked = true}),
               "  top 1 of row 0: 3: 10\n"));
    assert_non_null(
        strstr(print(DT_F32, one, f, (struct cli_print_top){.count = 99, .is_asked = true}),
               "  top 10: "));
}

/* Only if there are as many labels as classes. */
static void classes_have_labels(void **state)
{
    const float f[] = {0, 3, 1, 2};
    const struct span labels[] = {{(const uint8_t *)"a", 1},
                                  {(const uint8_t *)"b\x1b[2J", 5},
                                  {(const uint8_t *)"c", 1},
                                  {(const uint8_t *)"", 0}};
    struct cli_print_top top = {.count = 3, .is_asked = true, .labels = labels, .label_count = 4};
    (void)state;
    assert_non_null(strstr(print(DT_F32, (struct shape){1, {4}}, f, top),
                           "  top 3: 1 \"b\\u001b[2J\": 3, 3 \"\": 2, 2 \"c\": 1\n"));
    assert_non_null(
        strstr(print(DT_F32, (struct shape){2, {2, 2}}, f, top), "  top 2 of row 0: 1: 3, 0: 0\n"));
}

/* Of many rows the first and the last are printed. Of equal scores the first one is the largest. */
static void many_rows_are_shortened(void **state)
{
    (void)state;
    static float f[20 * 10];
    assert_non_null(strstr(print(DT_F32, (struct shape){2, {20, 10}}, f, unasked),
                           "  top 5 of row 3: 0: 0, 1: 0, 2: 0, 3: 0, 4: 0\n"
                           "  ...\n"
                           "  top 5 of row 16: 0: 0"));
}

static void scalars_have_pythons_names(void **state)
{
    (void)state;
    const int64_t i = -3;
    const double d = 0.5;
    const bool b = true;
    buf_reset(&out);
    cli_print_scalar(&out, "a", DT_I64, &i);
    cli_print_scalar(&out, "b", DT_F64, &d);
    cli_print_scalar(&out, "c", DT_BOOL, &b);
    buf_add_char(&out, '\0');
    assert_string_equal((const char *)out.ptr, "a: int -3\nb: float 0.5\nc: bool true\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_tensors_are_printed_whole),
        cmocka_unit_test(lines_are_short_and_columns_aligned),
        cmocka_unit_test(large_tensors_are_shortened),
        cmocka_unit_test(ranges_of_integers_are_exact),
        cmocka_unit_test(scores_have_their_largest),
        cmocka_unit_test(classes_have_labels),
        cmocka_unit_test(many_rows_are_shortened),
        cmocka_unit_test(scalars_have_pythons_names),
    };
    buf_init(&out, 1 << 20);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    buf_fini(&out);
    return failed;
}
