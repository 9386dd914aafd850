/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <string.h>

#include "base/shape.h"
#include "base/wide.h"
#include "tests/unit/unit.h"

static void test_bytes(void **state)
{
    (void)state;
    struct error err;
    size_t bytes;
    assert_ok(err, shape_bytes(&(struct shape){.rank = 0}, DT_F64, &bytes, &err));
    assert_int_equal(bytes, 8);
    assert_ok(err, shape_bytes(&(struct shape){3, {2, 0, 5}}, DT_F32, &bytes, &err));
    assert_int_equal(bytes, 0);
    assert_fails(err, shape_bytes(&(struct shape){2, {4, -1}}, DT_F32, &bytes, &err), ST_INVALID,
                 "dim 1 is -1");
    struct shape hidden = {3, {0, INT64_MAX, 4}};
    assert_fails(err, shape_bytes(&hidden, DT_F32, &bytes, &err), ST_TOO_LARGE, "too many bytes");
}

/* Bytes that no size can count, or more than half of the addresses. */
static void test_too_many_bytes(void **state)
{
    (void)state;
    struct error err;
    size_t bytes;
    const int64_t most = PTRDIFF_MAX / 8;
    assert_ok(err, shape_bytes(&(struct shape){1, {most}}, DT_F64, &bytes, &err));
    assert_true(bytes == (size_t)most * 8);
    assert_fails(err, shape_bytes(&(struct shape){1, {most + 1}}, DT_F64, &bytes, &err),
                 ST_TOO_LARGE, "too many bytes");
    assert_fails(err, shape_bytes(&(struct shape){2, {most, 16}}, DT_F32, &bytes, &err),
                 ST_TOO_LARGE, "too many bytes");
    assert_fails(err, shape_bytes(&(struct shape){2, {0, most + 1}}, DT_F64, &bytes, &err),
                 ST_TOO_LARGE, "too many bytes");
    bool has_32_bits = sizeof(size_t) == 4;
    assert_int_equal(wide_to_size(UINT64_C(1) << 32, &bytes), !has_32_bits);
    assert_true(wide_to_size(UINT32_MAX, &bytes) && bytes == UINT32_MAX);
}

static void test_strides_and_text(void **state)
{
    (void)state;
    struct shape shape = {3, {2, 0, 5}};
    int64_t strides[SHAPE_RANK_MAX];
    shape_strides(&shape, strides);
    assert_int_equal(strides[0], 5);
    assert_int_equal(strides[1], 5);
    assert_int_equal(strides[2], 1);
    char text[SHAPE_TEXT_MAX];
    assert_string_equal(shape_print(&shape, text), "[2,0,5]");
    struct shape long_shape = {.rank = SHAPE_RANK_MAX};
    for (int i = 0; i < SHAPE_RANK_MAX; i++) {
        long_shape.dims[i] = INT64_MIN;
    }
    assert_int_equal(strlen(shape_print(&long_shape, text)), 16 * 20 + 15 + 2);
}

static void test_reach(void **state)
{
    (void)state;
    const struct shape shape = {.rank = 3, .dims = {2, 1, 3}};
    int64_t low, high;
    assert_true(shape_reach(&shape, (const int64_t[SHAPE_RANK_MAX]){12, 99, 4}, &low, &high));
    assert_true(low == 0 && high == 20);
    assert_true(shape_reach(&shape, (const int64_t[SHAPE_RANK_MAX]){-12, 99, 4}, &low, &high));
    assert_true(low == -12 && high == 8);
    assert_true(shape_reach(&shape, (const int64_t[SHAPE_RANK_MAX]){0, 0, 0}, &low, &high));
    assert_true(low == 0 && high == 0);
    const int64_t most[SHAPE_RANK_MAX] = {INT64_MAX, 0, 1};
    assert_false(shape_reach(&shape, most, &low, &high));
    const int64_t twice[SHAPE_RANK_MAX] = {0, 0, INT64_MIN};
    assert_false(shape_reach(&shape, twice, &low, &high));
    assert_true(shape_is_packed(&shape, (const int64_t[SHAPE_RANK_MAX]){12, 99, 4}, 4));
    assert_true(shape_is_packed(&shape, (const int64_t[SHAPE_RANK_MAX]){3, -7, 1}, 1));
    assert_false(shape_is_packed(&shape, (const int64_t[SHAPE_RANK_MAX]){16, 4, 4}, 4));
    assert_false(shape_is_packed(&shape, (const int64_t[SHAPE_RANK_MAX]){-12, 4, 4}, 4));
    assert_true(shape_is_packed(&(struct shape){.rank = 0}, most, 8));
}

static void test_dtypes_meet(void **state)
{
    (void)state;
    enum dtype d, found;
    for (d = 0; d < DTYPE_COUNT; d++) {
        assert_true(dtype_from_executorch(dtype_infos[d].executorch, &found) && found == d);
        assert_int_equal(dtype_from_oip(span_str(dtype_infos[d].oip), &found), dtype_is_public(d));
        assert_true(!dtype_is_public(d) || found == d);
        if (dtype_is_public(d) && d != DT_BOOL) {
            assert_true(dtype_from_signature(dtype_infos[d].signature, &found) && found == d);
        } else {
            assert_int_equal(dtype_infos[d].signature, -1);
        }
    }
    assert_false(dtype_from_executorch(12, &found));
    assert_false(dtype_from_executorch(-1, &found));
    assert_false(dtype_from_oip(span_str("BYTES"), &found));
    assert_false(dtype_from_signature(12, &found));
    assert_false(dtype_from_signature(-1, &found));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_too_many_bytes),
        cmocka_unit_test(test_strides_and_text),
        cmocka_unit_test(test_reach),
        cmocka_unit_test(test_dtypes_meet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
