/* SPDX-License-Identifier: MIT */
/* Which value of a program is which of a reference, and how much they differ. */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "server/cli/pairs.h"

#define COUNT 8

static float numbers[16][COUNT];

/* A tensor of eight floats that is like no other one. */
static struct pairs_tensor tensor(const char *name, uint32_t seed, float factor)
{
    static uint32_t used;
    float *to = numbers[used++ % 16];
    for (uint32_t i = 0; i < COUNT; i++) {
        to[i] = factor * (float)((i * 37 + seed * seed * 29) % 101 - 50);
    }
    return (struct pairs_tensor){name, DT_F32, {.rank = 1, .dims = {COUNT}}, to};
}

static void find(struct pairs *pairs, struct pairs_row *rows)
{
    assert_true(pairs_find(pairs, rows));
}

/* stem (folded into relu), relu, head (wrong), softmax (wrong, too). */
static void the_first_that_differs(void **state)
{
    (void)state;
    const struct pairs_tensor got[] = {tensor("out", 9, 1.1f), tensor("relu.2", 2, 1),
                                       tensor("gemm.3", 3, 1.1f)};
    const struct pairs_tensor want[] = {tensor("stem", 1, 1), tensor("relu", 2, 1),
                                        tensor("head", 3, 1), tensor("output_0", 9, 1)};
    const struct pairs_edge edges[] = {{2, 3}, {0, 1}, {1, 2}};
    struct pairs pairs = {got, want, 3, 4, .result_count = 1, .edges = edges, .edge_count = 3};
    struct pairs_row rows[4];
    find(&pairs, rows);
    assert_int_equal(rows[0].kind, PAIRS_FOLDED);
    assert_int_equal(rows[1].kind, PAIRS_EQUAL);
    assert_int_equal(rows[1].got, 1);
    assert_int_equal(rows[2].kind, PAIRS_DIFFERS);
    assert_int_equal(rows[2].got, 2);
    assert_true(fabs(rows[2].difference.relative - 0.1) < 1e-6);
    assert_true(fabs(rows[2].difference.distance - 0.1) < 1e-6);
    assert_int_equal(rows[3].kind, PAIRS_DIFFERS);
    assert_int_equal(rows[3].got, 0);
    assert_int_equal(pairs_first(&pairs, rows), 2);
    pairs.tolerance = 0.2;
    find(&pairs, rows);
    assert_int_equal(pairs_first(&pairs, rows), PAIRS_NONE);
}

/* A branch that is equal says nothing of a wrong one beside it; without edges it would. */
static void branches(void **state)
{
    (void)state;
    const struct pairs_tensor got[] = {tensor("a.1", 1, -1), tensor("b.2", 2, 1)};
    const struct pairs_tensor want[] = {tensor("a", 1, 1), tensor("b", 2, 1)};
    const struct pairs_edge edges[] = {{0, 1}};
    struct pairs pairs = {got, want, 2, 2, .edges = edges};
    struct pairs_row rows[2], guess;
    uint32_t which;
    pairs.edge_count = 1;
    find(&pairs, rows);
    assert_int_equal(rows[0].kind, PAIRS_FOLDED);
    const struct pairs_tensor three[] = {want[0], want[1], tensor("sum", 5, 1)};
    const struct pairs_edge sum[] = {{0, 2}};
    struct pairs apart = {got, three, 2, 3, .edges = sum, .edge_count = 1};
    struct pairs_row more[3];
    find(&apart, more);
    assert_int_equal(more[0].kind, PAIRS_ABSENT);
    assert_int_equal(pairs_first(&apart, more), 0);
    assert_true(pairs_guess(&apart, more, 0, &which, &guess));
    assert_int_equal(which, 0);
    assert_int_equal(guess.got, 0);
    assert_true(fabs(guess.difference.distance - 2) < 1e-6);
}

/* [1,2,1,4] with the channels last is [1,1,4,2]. */
static void channels_last(void **state)
{
    (void)state;
    static const float nchw[] = {1, 2, 3, 4, 5, 6, 7, 8}, nhwc[] = {1, 5, 2, 6, 3, 7, 4, 8.5};
    const struct pairs_tensor got = {"add.1", DT_F32, {.rank = 4, .dims = {1, 1, 4, 2}}, nhwc};
    const struct pairs_tensor want = {"add", DT_F32, {.rank = 4, .dims = {1, 2, 1, 4}}, nchw};
    const struct pairs pairs = {&got, &want, 1, 1, .edges = NULL};
    struct pairs_row row;
    assert_true(pairs_find(&pairs, &row));
    assert_int_equal(row.kind, PAIRS_DIFFERS);
    assert_true(row.difference.max_abs == 0.5);
    assert_int_equal(row.difference.at, 7);
    assert_true(row.difference.got == 8.5 && row.difference.want == 8);
}

static void numbers_that_are_none(void **state)
{
    (void)state;
    static const float got_at[] = {NAN, INFINITY, 3, -INFINITY, 1},
                       want_at[] = {NAN, INFINITY, NAN, INFINITY, 1};
    const struct shape shape = {.rank = 1, .dims = {5}};
    const struct pairs_tensor got = {"x.1", DT_F32, shape, got_at};
    const struct pairs_tensor want = {"x.1", DT_F32, shape, want_at};
    const struct pairs pairs = {&got, &want, 1, 1, .edges = NULL};
    struct pairs_row row;
    assert_true(pairs_find(&pairs, &row));
    assert_int_equal(row.kind, PAIRS_DIFFERS);
    assert_int_equal(row.difference.strange, 2);
    assert_int_equal(row.difference.at, 2);
    assert_true(row.difference.max_abs == 0);
}

static void types_and_dims(void **state)
{
    (void)state;
    static const int64_t integers[] = {1, 2, 3, 4};
    static const int32_t narrow[] = {1, 2, 3, 5};
    const struct shape shape = {.rank = 1, .dims = {4}}, other = {.rank = 2, .dims = {2, 2}};
    const struct pairs_tensor got[] = {{"n.1", DT_I64, shape, integers},
                                       {"f.2", DT_F32, shape, integers},
                                       {"z.3", DT_I64, shape, NULL}};
    const struct pairs_tensor want[] = {{"n.1", DT_I32, shape, narrow},
                                        {"f.2", DT_I64, shape, integers},
                                        {"f.2", DT_F32, other, integers},
                                        {"z.3", DT_I64, shape, integers}};
    const struct pairs pairs = {got, want, 3, 4, .edges = NULL};
    struct pairs_row rows[4];
    assert_true(pairs_find(&pairs, rows));
    assert_int_equal(rows[0].kind, PAIRS_DIFFERS); /* an integer is equal or it is not */
    assert_true(rows[0].difference.max_abs == 1);
    for (uint32_t i = 1; i < 4; i++) {
        assert_int_equal(rows[i].kind, PAIRS_SHAPE);
    }
}

static void tolerances(void **state)
{
    (void)state;
    assert_true(pairs_tolerance(DT_F32, DT_F32, 0) == exp2(-12));
    assert_true(pairs_tolerance(DT_F64, DT_F32, 0) == exp2(-12));
    assert_true(pairs_tolerance(DT_F16, DT_F32, 0) == exp2(-5.5));
    assert_true(pairs_tolerance(DT_F32, DT_BF16, 0) == exp2(-4));
    assert_true(pairs_tolerance(DT_F32, DT_F32, 8) == exp2(-4));
    assert_true(pairs_tolerance(DT_I32, DT_I32, 0) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_that_differs), cmocka_unit_test(branches),
        cmocka_unit_test(channels_last),          cmocka_unit_test(numbers_that_are_none),
        cmocka_unit_test(types_and_dims),         cmocka_unit_test(tolerances),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
