/* SPDX-License-Identifier: MIT */
/*
 * The oracle as a table: one input, one offered value, one answer. Buffers have 64 elements of 4
 * bytes unless a row states otherwise.
 */
#include "config.h"

#include "runtime/program/oracle.h"

#include <stdio.h>
#include <string.h>

#include "hal/buffer.h"
#include "hal/device.h"
#include "tests/unit/unit.h"

#define BYTES 256
#define DYNAMIC(d) (1u << (d))

enum place { NOWHERE, HERE, ELSEWHERE };

struct fixture {
    struct hal_device *device, *other;
    struct hal_buffer *here, *elsewhere;
    struct error err;
};

static int set_up(void **state)
{
    static struct fixture f;
    const struct hal_device_options options = {.workers = 1};
    f = (struct fixture){0};
    assert_ok(f.err, hal_device_open("cpu", &options, &f.device, &f.err));
    assert_ok(f.err, hal_device_open("cpu", &options, &f.other, &f.err));
    assert_ok(f.err, hal_buffer_new(f.device, BYTES, &f.here, &f.err));
    assert_ok(f.err, hal_buffer_new(f.other, BYTES, &f.elsewhere, &f.err));
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    hal_buffer_unref(f->here);
    hal_buffer_unref(f->elsewhere);
    hal_device_unref(f->device);
    hal_device_unref(f->other);
    return 0;
}

static enum rt_oracle_answer ask(struct fixture *f, const struct rt_io *io,
                                 const struct rt_buffer_desc *given, struct rt_buffer_desc *wanted,
                                 size_t *bytes)
{
    f->err = (struct error){0};
    return rt_oracle(io, f->device, given, wanted, bytes, &f->err);
}

/* ---- types and dims -------------------------------------------------------------------------- */

struct type_row {
    struct rt_io io;
    enum dtype dtype;
    struct shape shape;
    const char *text; /* of the refusal; NULL: accepted */
    size_t bytes;
};

#define TENSOR(type, dynamic, ...)                                                                 \
    {                                                                                              \
        .kind = RT_IO_TENSOR, .dtype = DT_##type, .dynamic_dims = (dynamic), .shape = __VA_ARGS__  \
    }

static const struct type_row type_rows[] = {
    {TENSOR(F32, 0, {0}), DT_F32, {0}, NULL, 4},
    {TENSOR(F32, 0, {2, {3, 8}}), DT_F32, {2, {3, 8}}, NULL, 96},
    {TENSOR(BOOL, 0, {1, {3}}), DT_BOOL, {1, {3}}, NULL, 3},
    {TENSOR(F64, 0, {1, {3}}), DT_F64, {1, {3}}, NULL, 24},
    {TENSOR(F32, 0, {1, {0}}), DT_F32, {1, {0}}, NULL, 0},
    {TENSOR(F32, 0, {1, {3}}), DT_F64, {1, {3}}, "expected float32[3], got float64[3]", 0},
    {TENSOR(BOOL, 0, {1, {3}}), DT_U8, {1, {3}}, "expected bool[3], got uint8[3]", 0},
    {TENSOR(I64, 0, {1, {3}}), DT_I32, {1, {3}}, "expected int64[3], got int32[3]", 0},
    {TENSOR(F32, 0, {1, {3}}), DT_F32, {0}, "expected float32[3], got float32[]", 0},
    {TENSOR(F32, 0, {0}), DT_F32, {1, {1}}, "expected float32[], got float32[1]", 0},
    {TENSOR(F32, 0, {2, {3, 8}}),
     DT_F32,
     {2, {8, 3}},
     "expected float32[3,8], got float32[8,3]",
     0},
    {TENSOR(F32, 0, {1, {3}}), DT_F32, {1, {-3}}, "expected float32[3], got float32[-3]", 0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}), DT_F32, {2, {4, 8}}, NULL, 128},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}), DT_F32, {2, {1, 8}}, NULL, 32},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}), DT_F32, {2, {0, 8}}, NULL, 0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}),
     DT_F32,
     {2, {5, 8}},
     "dim 0 is 5, expected at most 4",
     0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}),
     DT_F32,
     {2, {INT64_MAX, 8}},
     "dim 0 is 9223372036854775807, expected at most 4",
     0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}),
     DT_F32,
     {2, {-1, 8}},
     "dim 0 is -1, expected 0 or more",
     0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}), DT_F32, {2, {INT64_MIN, 8}}, "expected 0 or more", 0},
    {TENSOR(F32, DYNAMIC(0), {2, {4, 8}}),
     DT_F32,
     {2, {4, 7}},
     "expected float32[?,8], got float32[4,7]",
     0},
    {TENSOR(F32, DYNAMIC(0) | DYNAMIC(1), {2, {INT64_MAX, INT64_MAX}}),
     DT_F32,
     {2, {INT64_MAX, INT64_MAX}},
     "too many bytes",
     0},
    {TENSOR(F32, DYNAMIC(0) | DYNAMIC(2), {3, {INT64_MAX, 0, INT64_MAX}}),
     DT_F32,
     {3, {INT64_MAX, 0, INT64_MAX}},
     "too many bytes",
     0},
    {{.kind = RT_IO_NONE}, DT_F32, {0}, "expected nothing, got float32[]", 0},
    {{.kind = RT_IO_INT, .dtype = DT_I64}, DT_I64, {0}, "expected an int, got int64[]", 0},
    {{.kind = RT_IO_FLOAT, .dtype = DT_F64}, DT_F64, {0}, "expected a float, got float64[]", 0},
    {{.kind = RT_IO_BOOL, .dtype = DT_BOOL}, DT_BOOL, {0}, "expected a bool, got bool[]", 0},
    {{.kind = RT_IO_STRING}, DT_U8, {1, {3}}, "expected a string, got uint8[3]", 0},
};

static void test_types(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof(type_rows) / sizeof(type_rows[0]); i++) {
        const struct type_row *row = &type_rows[i];
        struct rt_buffer_desc given = {.dtype = row->dtype, .shape = row->shape}, wanted;
        size_t bytes = 77;
        enum rt_oracle_answer answer = ask(f, &row->io, &given, &wanted, &bytes);
        size_t measured = 77;
        struct error refusal = {0};
        enum status status =
            rt_oracle_measure(&row->io, row->dtype, &row->shape, &measured, &refusal);
        assert_int_equal(status, f->err.code);
        assert_string_equal(refusal.text, f->err.text);
        assert_int_equal(measured, bytes);
        if (row->text) {
            if (answer != RT_ORACLE_UNSUPPORTED || !strstr(f->err.text, row->text)) {
                fail_msg("row %zu: answer %d, '%s'", i, answer, f->err.text);
            }
            continue;
        }
        if (answer != RT_ORACLE_ALLOCATE || bytes != row->bytes) {
            fail_msg("row %zu: answer %d, %zu bytes, '%s'", i, answer, bytes, f->err.text);
        }
        assert_int_equal(wanted.dtype, row->dtype);
        assert_true(shape_equal(&wanted.shape, &row->shape));
        assert_null(wanted.buffer);
        assert_false(wanted.has_strides);
        assert_int_equal(wanted.offset, 0);
    }
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct memory_row {
    const char *what;
    struct shape shape;
    bool has_strides;
    int64_t strides[4];
    size_t offset;
    enum place place;
    enum rt_oracle_answer answer;
    const char *text;
};

#define OUTSIDE "do not lie inside a buffer of 256 bytes"
#define HUGE_STEP (INT64_MAX / 2)

static const struct memory_row memory_rows[] = {
    {"packed", {2, {8, 8}}, false, {0}, 0, HERE, RT_ORACLE_USE, NULL},
    {"packed, said so", {2, {8, 8}}, true, {8, 1}, 0, HERE, RT_ORACLE_USE, NULL},
    {"nowhere", {2, {8, 8}}, false, {0}, 0, NOWHERE, RT_ORACLE_ALLOCATE, NULL},
    {"packed, elsewhere", {2, {8, 8}}, false, {0}, 0, ELSEWHERE, RT_ORACLE_CONVERT, NULL},
    {"a scalar", {0}, false, {0}, 252, HERE, RT_ORACLE_USE, NULL},
    {"a scalar with strides", {0}, true, {0}, 252, HERE, RT_ORACLE_USE, NULL},
    {"a scalar, one byte out", {0}, false, {0}, 253, HERE, RT_ORACLE_UNSUPPORTED, OUTSIDE},
    {"permuted", {2, {8, 8}}, true, {1, 8}, 0, HERE, RT_ORACLE_CONVERT, NULL},
    {"strided", {2, {4, 8}}, true, {16, 1}, 0, HERE, RT_ORACLE_CONVERT, NULL},
    {"reversed", {1, {64}}, true, {-1}, 252, HERE, RT_ORACLE_CONVERT, NULL},
    {"repeated", {2, {8, 8}}, true, {0, 1}, 0, HERE, RT_ORACLE_CONVERT, NULL},
    {"all one element", {2, {8, 8}}, true, {0, 0}, 252, HERE, RT_ORACLE_CONVERT, NULL},
    {"dims of 1 step anywhere",
     {3, {1, 8, 1}},
     true,
     {INT64_MIN, 1, INT64_MAX},
     0,
     HERE,
     RT_ORACLE_USE,
     NULL},
    {"aligned for the element", {1, {8}}, false, {0}, 4, HERE, RT_ORACLE_USE, NULL},
    {"misaligned", {1, {8}}, false, {0}, 1, HERE, RT_ORACLE_CONVERT, NULL},
    {"misaligned by half", {1, {8}}, true, {1}, 2, HERE, RT_ORACLE_CONVERT, NULL},
    {"up to the end", {1, {63}}, false, {0}, 4, HERE, RT_ORACLE_USE, NULL},
    {"a byte behind the end",
     {1, {63}},
     false,
     {0},
     5,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     "252 bytes at 5 " OUTSIDE},
    {"misaligned up to the end", {1, {63}}, false, {0}, 3, HERE, RT_ORACLE_CONVERT, NULL},
    {"an element too many", {1, {65}}, false, {0}, 0, HERE, RT_ORACLE_UNSUPPORTED, OUTSIDE},
    {"elsewhere, an element too many",
     {1, {65}},
     false,
     {0},
     0,
     ELSEWHERE,
     RT_ORACLE_UNSUPPORTED,
     OUTSIDE},
    {"a stride beyond the end",
     {2, {4, 8}},
     true,
     {19, 1},
     0,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     OUTSIDE},
    {"a stride up to the end", {2, {4, 7}}, true, {19, 1}, 0, HERE, RT_ORACLE_CONVERT, NULL},
    {"reversed, a byte before the beginning",
     {1, {64}},
     true,
     {-1},
     251,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     OUTSIDE},
    {"there and back", {2, {8, 8}}, true, {8, -1}, 28, HERE, RT_ORACLE_CONVERT, NULL},
    {"there and back, an element before",
     {2, {8, 8}},
     true,
     {8, -1},
     24,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     OUTSIDE},
    {"offset at the end", {1, {1}}, false, {0}, 256, HERE, RT_ORACLE_UNSUPPORTED, OUTSIDE},
    {"offset that is negative as a number",
     {1, {1}},
     false,
     {0},
     SIZE_MAX,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     OUTSIDE},
    {"strides whose product wraps",
     {1, {4}},
     true,
     {INT64_MAX},
     0,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     "the strides reach beyond all memory"},
    {"downwards",
     {1, {4}},
     true,
     {INT64_MIN},
     0,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     "the strides reach beyond all memory"},
    {"strides whose sum wraps",
     {3, {2, 2, 2}},
     true,
     {HUGE_STEP, HUGE_STEP, HUGE_STEP},
     0,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     "the strides reach beyond all memory"},
    {"bytes that wrap", {1, {2}}, true, {HUGE_STEP}, 0, HERE, RT_ORACLE_UNSUPPORTED, OUTSIDE},
    {"empty", {2, {0, 8}}, false, {0}, 0, HERE, RT_ORACLE_USE, NULL},
    {"empty, with any strides",
     {2, {0, 8}},
     true,
     {INT64_MIN, INT64_MAX},
     0,
     HERE,
     RT_ORACLE_USE,
     NULL},
    {"empty, misaligned", {2, {8, 0}}, false, {0}, 1, HERE, RT_ORACLE_USE, NULL},
    {"empty, at the end", {2, {8, 0}}, false, {0}, 256, HERE, RT_ORACLE_USE, NULL},
    {"empty, outside",
     {2, {8, 0}},
     false,
     {0},
     257,
     HERE,
     RT_ORACLE_UNSUPPORTED,
     "0 bytes at 257 " OUTSIDE},
    {"empty, elsewhere", {2, {0, 8}}, false, {0}, 0, ELSEWHERE, RT_ORACLE_CONVERT, NULL},
};

static void test_memory(void **state)
{
    struct fixture *f = *state;
    struct hal_buffer *const buffers[] = {NULL, f->here, f->elsewhere};
    for (size_t i = 0; i < sizeof(memory_rows) / sizeof(memory_rows[0]); i++) {
        const struct memory_row *row = &memory_rows[i];
        const struct rt_io io = TENSOR(F32, 0, row->shape);
        struct rt_buffer_desc given = {
            .dtype = DT_F32,
            .shape = row->shape,
            .has_strides = row->has_strides,
            .offset = row->offset,
            .buffer = buffers[row->place],
        };
        struct rt_buffer_desc wanted;
        size_t bytes = 77, expected;
        memcpy(given.strides, row->strides, sizeof(row->strides));
        enum rt_oracle_answer answer = ask(f, &io, &given, &wanted, &bytes);
        if (answer != row->answer || (row->text && !strstr(f->err.text, row->text))) {
            fail_msg("%s: answer %d, expected %d, '%s'", row->what, answer, row->answer,
                     f->err.text);
        }
        if (answer != RT_ORACLE_UNSUPPORTED) {
            assert_ok(f->err, shape_bytes(&row->shape, DT_F32, &expected, &f->err));
            assert_int_equal(bytes, expected);
            assert_true(shape_equal(&wanted.shape, &row->shape));
            assert_null(wanted.buffer);
            assert_false(wanted.has_strides);
        }
    }
}

/* Every element type may be used in place at byte 0 and at its own size, but not at half of its
 * size. */
static void test_alignment_of_types(void **state)
{
    struct fixture *f = *state;
    for (int dtype = 0; dtype < DTYPE_COUNT; dtype++) {
        size_t element = dtype_bytes((enum dtype)dtype), bytes;
        const struct rt_io io = {
            .kind = RT_IO_TENSOR, .dtype = (enum dtype)dtype, .shape = {1, {2}}};
        struct rt_buffer_desc given = {.dtype = io.dtype, .shape = io.shape, .buffer = f->here};
        struct rt_buffer_desc wanted;
        assert_int_equal(ask(f, &io, &given, &wanted, &bytes), RT_ORACLE_USE);
        assert_int_equal(bytes, 2 * element);
        given.offset = element;
        assert_int_equal(ask(f, &io, &given, &wanted, &bytes), RT_ORACLE_USE);
        given.offset = element / 2;
        assert_int_equal(ask(f, &io, &given, &wanted, &bytes),
                         element > 1 ? RT_ORACLE_CONVERT : RT_ORACLE_USE);
        given.offset = BYTES - 2 * element + 1;
        assert_int_equal(ask(f, &io, &given, &wanted, &bytes), RT_ORACLE_UNSUPPORTED);
    }
}

/* The longest text of a refusal. */
static void test_long_texts(void **state)
{
    struct fixture *f = *state;
    struct rt_io io = {.kind = RT_IO_TENSOR, .dtype = DT_BF16, .shape = {.rank = SHAPE_RANK_MAX}};
    struct rt_buffer_desc given = {.dtype = DT_BF16, .shape = {.rank = SHAPE_RANK_MAX}}, wanted;
    size_t bytes;
    for (int d = 0; d < SHAPE_RANK_MAX; d++) {
        io.shape.dims[d] = INT64_MAX;
        given.shape.dims[d] = INT64_MIN;
    }
    assert_int_equal(ask(f, &io, &given, &wanted, &bytes), RT_ORACLE_UNSUPPORTED);
    assert_memory_equal(f->err.text, "expected bfloat16[9223372036854775807,", 37);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_memory, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_alignment_of_types, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_long_texts, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
