/* SPDX-License-Identifier: MIT */
/*
 * Operators that only move elements. Input elements count from 0, so that every element of an
 * output tells its origin. Each test has a rule for the expected origin.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

#define ROOM 4096

static struct rt_emit call;
static int32_t input[ROOM], output[ROOM];
static struct rt_tensor self, out;
static struct error err;

/* The position in the input for |index| of the output; -1 for the value 99. */
typedef int64_t rule_f(const int64_t *index);

static void begin(const struct rt_op *family, const char *name, uint8_t rank, const int64_t *dims)
{
    call_init(&call, family, name);
    for (int32_t i = 0; i < ROOM; i++) {
        input[i] = i;
        output[i] = -7;
    }
    self = call_tensor(&call, DT_I32, rank, dims, input);
}

static void run(uint8_t rank, const int64_t *dims)
{
    out = call_tensor(&call, DT_I32, rank, dims, output);
    assert_true(out.numel < ROOM && self.numel < ROOM);
    call_out(&call, out);
    assert_ok(err, call_run(&call, &err));
    assert_int_equal(output[out.numel], -7);
}

static void expect(rule_f *rule)
{
    int64_t index[SHAPE_RANK_MAX];

    for (int64_t i = 0; i < out.numel; i++) {
        int64_t rest = i;
        for (uint8_t d = out.rank; d-- > 0;) {
            index[d] = rest % out.dims[d];
            rest /= out.dims[d];
        }
        int64_t from = rule(index);
        assert_int_equal(output[i], from < 0 ? 99 : from);
    }
}

/* Many tests have one list of ints as their second argument. */
#define ARG_INTS(...)                                                                              \
    call_arg_ints(&call, sizeof(INTS(__VA_ARGS__)) / sizeof(int64_t), INTS(__VA_ARGS__))

static int64_t permuted(const int64_t *i)
{
    return i[1] * 20 + i[2] * 5 + i[0];
}

static void test_permute(void **ctx)
{
    (void)ctx;
    begin(rt_ops_view, "permute", 3, INTS(3, 4, 5));
    call_arg(&call, self);
    ARG_INTS(-1, 0, 1);
    run(3, INTS(5, 3, 4));
    expect(permuted);
}

static int64_t repeated(const int64_t *i)
{
    return i[1] % 3 * 4 + i[2] % 4;
}

static void test_repeat(void **ctx)
{
    (void)ctx;
    begin(rt_ops_view, "repeat", 2, INTS(3, 4));
    call_arg(&call, self);
    ARG_INTS(2, 3, 2);
    run(3, INTS(2, 9, 8));
    expect(repeated);
}

static int64_t shuffled(const int64_t *i)
{
    int64_t channel = i[1] * 4 + i[2] % 2 * 2 + i[3] % 2;
    return ((i[0] * 12 + channel) * 3 + i[2] / 2) * 5 + i[3] / 2;
}

static void test_pixel_shuffle(void **ctx)
{
    (void)ctx;
    begin(rt_ops_view, "pixel_shuffle", 4, INTS(2, 12, 3, 5));
    call_arg(&call, self);
    call_arg_int(&call, 2);
    run(4, INTS(2, 3, 6, 10));
    expect(shuffled);
}

static int64_t unshuffled(const int64_t *i)
{
    int64_t h = i[2] * 2 + i[1] / 2 % 2, w = i[3] * 2 + i[1] % 2;
    return ((i[0] * 3 + i[1] / 4) * 6 + h) * 10 + w;
}

static void test_pixel_unshuffle(void **ctx)
{
    (void)ctx;
    begin(rt_ops_view, "pixel_unshuffle", 4, INTS(2, 3, 6, 10));
    call_arg(&call, self);
    call_arg_int(&call, 2);
    run(4, INTS(2, 12, 3, 5));
    expect(unshuffled);
}

static int64_t sliced(const int64_t *i)
{
    return i[0] * 40 + (1 + 2 * i[1]) * 4 + i[2];
}

/* Start -9 of 10 is 1, an end beyond the tensor is its end, and the step is 2. */
static void test_slice(void **ctx)
{
    (void)ctx;
    begin(rt_ops_slice, "slice", 3, INTS(3, 10, 4));
    call_arg(&call, self);
    call_arg_int(&call, 1);
    call_arg_int(&call, -9);
    call_arg_int(&call, INT64_MAX);
    call_arg_int(&call, 2);
    run(3, INTS(3, 5, 4));
    expect(sliced);
}

static void test_select(void **ctx)
{
    static const int32_t column[] = {3, 7, 11};

    (void)ctx;
    begin(rt_ops_slice, "select", 2, INTS(3, 4));
    call_arg(&call, self);
    call_arg_int(&call, 1);
    call_arg_int(&call, -1);
    run(1, INTS(3));
    assert_memory_equal(output, column, sizeof(column));
    call.arg_count--;
    call_arg_int(&call, -5);
    assert_fails(err, call_run(&call, &err), ST_INVALID,
                 "index -5 does not exist in a dim of size 4");
}

static void test_narrow_is_checked(void **ctx)
{
    (void)ctx;
    begin(rt_ops_slice, "narrow", 2, INTS(3, 4));
    call_arg(&call, self);
    call_arg_int(&call, 1);
    call_arg_int(&call, 2);
    call_arg_int(&call, 3);
    call_out(&call, call_tensor(&call, DT_I32, 2, INTS(3, 3), output));
    assert_fails(err, call_run(&call, &err), ST_INVALID,
                 "3 elements from 2 on do not fit a dim of 4");
}

/* The middle piece is missing because nothing uses it. */
static void test_split(void **ctx)
{
    static const int32_t first[] = {0, 1, 5, 6}, last[] = {4, 9};
    int32_t a[4] = {0}, c[2] = {0};

    (void)ctx;
    begin(rt_ops_slice, "split", 2, INTS(2, 5));
    call_arg(&call, self);
    call_arg_int(&call, 2);
    call_arg_int(&call, -1);
    struct rt_tensor one = call_tensor(&call, DT_I32, 2, INTS(2, 2), a);
    struct rt_tensor three = call_tensor(&call, DT_I32, 2, INTS(2, 1), c);
    call_item(&call, &one);
    call_item(&call, NULL);
    call_item(&call, &three);
    assert_ok(err, call_run(&call, &err));
    assert_memory_equal(a, first, sizeof(first));
    assert_memory_equal(c, last, sizeof(last));
    assert_int_equal(call.dispatch_count, 2);
}

static int64_t scatter_step;

/* The part counts from 1000 on. */
static int64_t scattered(const int64_t *i)
{
    int64_t at = i[1] - 2;
    bool is_part = at >= 0 && at % scatter_step == 0 && i[1] < 9;
    return is_part ? 1000 + i[0] * ((6 + scatter_step) / scatter_step) + at / scatter_step
                   : i[0] * 11 + i[1];
}

static void test_slice_scatter(void **ctx)
{
    (void)ctx;
    for (scatter_step = 1; scatter_step <= 8; scatter_step++) {
        int64_t length = (7 + scatter_step - 1) / scatter_step;
        begin(rt_ops_slice, "slice_scatter", 2, INTS(3, 11));
        call_arg(&call, self);
        call_arg(&call, call_tensor(&call, DT_I32, 2, INTS(3, length), input + 1000));
        call_arg_int(&call, 1);
        call_arg_int(&call, 2);
        call_arg_int(&call, 9);
        call_arg_int(&call, scatter_step);
        run(2, INTS(3, 11));
        expect(scattered);
    }
}

static int64_t select_scattered(const int64_t *i)
{
    return i[1] == 4 ? 1000 + i[0] : i[0] * 5 + i[1];
}

static void test_select_scatter(void **ctx)
{
    (void)ctx;
    begin(rt_ops_slice, "select_scatter", 2, INTS(3, 5));
    call_arg(&call, self);
    call_arg(&call, call_tensor(&call, DT_I32, 1, INTS(3), input + 1000));
    call_arg_int(&call, 1);
    call_arg_int(&call, -1);
    run(2, INTS(3, 5));
    expect(select_scattered);
}

static int64_t flipped(const int64_t *i)
{
    return (2 - i[0]) * 20 + i[1] * 5 + 4 - i[2];
}

static void test_flip(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "flip", 3, INTS(3, 4, 5));
    call_arg(&call, self);
    ARG_INTS(0, -1);
    run(3, INTS(3, 4, 5));
    expect(flipped);
}

static int64_t diagonal(const int64_t *i)
{
    return (2 + i[1]) * 15 + i[0] * 5 + i[1];
}

static void test_diagonal(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "diagonal", 3, INTS(4, 3, 5));
    call_arg(&call, self);
    call_arg_int(&call, -2);
    call_arg_int(&call, 0);
    call_arg_int(&call, 2);
    run(2, INTS(3, 2));
    expect(diagonal);
}

static int64_t unfolded(const int64_t *i)
{
    return (i[0] * 2 + i[2]) * 3 + i[1];
}

static void test_unfold(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "unfold", 2, INTS(9, 3));
    call_arg(&call, self);
    call_arg_int(&call, 0);
    call_arg_int(&call, 4);
    call_arg_int(&call, 2);
    run(3, INTS(3, 3, 4));
    expect(unfolded);
}

static int64_t strided(const int64_t *i)
{
    return 2 + i[0] + 3 * i[1];
}

static void test_as_strided(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "as_strided", 1, INTS(20));
    call_arg(&call, self);
    ARG_INTS(4, 5);
    ARG_INTS(1, 3);
    call_arg_int(&call, 2);
    run(2, INTS(4, 5));
    expect(strided);
    call.arg_count--;
    call_arg_int(&call, 6);
    assert_fails(err, call_run(&call, &err), ST_INVALID,
                 "elements 6 to 21 do not fit a tensor of 20");
    call.arg_count -= 2;
    ARG_INTS(1, INT64_MAX);
    call_arg_none(&call);
    assert_fails(err, call_run(&call, &err), ST_INVALID, "stride");
}

static int64_t joined(const int64_t *i)
{
    return i[1] < 2 ? (i[0] * 2 + i[1]) * 4 + i[2] : 100 + (i[0] * 3 + i[1] - 2) * 4 + i[2];
}

/* An empty tensor of one dim may stand among the others. */
static void test_cat(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "cat", 3, INTS(3, 2, 4));
    struct rt_tensor second = call_tensor(&call, DT_I32, 3, INTS(3, 3, 4), input + 100);
    struct rt_tensor nothing = call_tensor(&call, DT_I32, 1, INTS(0), NULL);
    call_item(&call, &self);
    call_item(&call, &nothing);
    call_item(&call, &second);
    call_arg_items(&call);
    call_arg_int(&call, -2);
    run(3, INTS(3, 5, 4));
    expect(joined);
}

static int64_t stacked(const int64_t *i)
{
    return i[1] * 100 + i[0] * 4 + i[2];
}

static void test_stack(void **ctx)
{
    (void)ctx;
    begin(rt_ops_stride, "stack", 2, INTS(3, 4));
    struct rt_tensor second = call_tensor(&call, DT_I32, 2, INTS(3, 4), input + 100);
    call_item(&call, &self);
    call_item(&call, &second);
    call_arg_items(&call);
    call_arg_int(&call, 1);
    run(3, INTS(3, 2, 4));
    expect(stacked);
}

/* Both inputs and the output with their channels innermost. */
static void test_cat_of_images(void **ctx)
{
    int32_t *y = output;

    (void)ctx;
    begin(rt_ops_stride, "cat", 1, INTS(1));
    struct rt_tensor a = call_channels_last(&call, DT_I32, INTS(1, 2, 3, 5), input);
    struct rt_tensor b = call_channels_last(&call, DT_I32, INTS(1, 4, 3, 5), input + 100);
    call_item(&call, &a);
    call_item(&call, &b);
    call_arg_items(&call);
    call_arg_int(&call, 1);
    call_out(&call, call_channels_last(&call, DT_I32, INTS(1, 6, 3, 5), output));
    assert_ok(err, call_run(&call, &err));
    for (int32_t pixel = 0; pixel < 15; pixel++, y += 6) {
        for (int32_t c = 0; c < 6; c++) {
            assert_int_equal(y[c], c < 2 ? pixel * 2 + c : 100 + pixel * 4 + c - 2);
        }
    }
}

/* ---- pads ------------------------------------------------------------------------------------ */

static int64_t before[2];
static int64_t sizes[2];

static int64_t padded(const int64_t *i)
{
    int64_t h = i[1] - before[0], w = i[2] - before[1];
    bool is_inside = h >= 0 && h < sizes[0] && w >= 0 && w < sizes[1];
    return is_inside ? (i[0] * sizes[0] + h) * sizes[1] + w : -1;
}

/* Every combination of growing, keeping and cropping at the four sides, of 3 x 4. */
static void test_constant_pad(void **ctx)
{
    (void)ctx;
    sizes[0] = 3;
    sizes[1] = 4;
    for (int code = 0; code < 5 * 5 * 5 * 5; code++) {
        int64_t top = code % 5 - 2, bottom = code / 5 % 5 - 2;
        int64_t left = code / 25 % 5 - 2, right = code / 125 - 2;
        if (3 + top + bottom < 0 || 4 + left + right < 0) {
            continue;
        }
        before[0] = top;
        before[1] = left;
        begin(rt_ops_pad, "constant_pad", 3, INTS(2, 3, 4));
        call_arg(&call, self);
        ARG_INTS(left, right, top, bottom);
        call_arg_int(&call, 99);
        run(3, INTS(2, 3 + top + bottom, 4 + left + right));
        expect(padded);
    }
}

static int64_t reflect(int64_t at, int64_t size)
{
    return at < 0 ? -at : at >= size ? 2 * (size - 1) - at : at;
}

static int64_t reflected(const int64_t *i)
{
    return (i[0] * 4 + reflect(i[1] - 2, 4)) * 5 + reflect(i[2] - 3, 5);
}

static int64_t nearest(int64_t at, int64_t size)
{
    return at < 0 ? 0 : at >= size ? size - 1 : at;
}

static int64_t replicated(const int64_t *i)
{
    return (i[0] * 4 + nearest(i[1] - 2, 4)) * 5 + nearest(i[2] - 3, 5);
}

static void test_edge_pads(void **ctx)
{
    (void)ctx;
    begin(rt_ops_pad, "reflection_pad2d", 3, INTS(2, 4, 5));
    call_arg(&call, self);
    ARG_INTS(3, 4, 2, 3);
    run(3, INTS(2, 9, 12));
    expect(reflected);
    begin(rt_ops_pad, "replication_pad2d", 3, INTS(2, 4, 5));
    call_arg(&call, self);
    ARG_INTS(3, 7, 2, 9);
    run(3, INTS(2, 15, 15));
    expect(replicated);
}

static void test_reflection_is_checked(void **ctx)
{
    (void)ctx;
    begin(rt_ops_pad, "reflection_pad1d", 2, INTS(2, 4));
    call_arg(&call, self);
    ARG_INTS(4, 0);
    call_out(&call, call_tensor(&call, DT_I32, 2, INTS(2, 8), output));
    assert_fails(err, call_run(&call, &err), ST_INVALID,
                 "cannot pad 4 elements to 8 with 4 before");
}

static int64_t rolled(const int64_t *i)
{
    return (i[0] + 1) % 3 * 20 + i[1] * 5 + (i[2] + 3) % 5;
}

static int64_t rolled_all(const int64_t *i)
{
    return (i[0] * 20 + i[1] * 5 + i[2] + 7) % 60;
}

static void test_roll(void **ctx)
{
    (void)ctx;
    begin(rt_ops_pad, "roll", 3, INTS(3, 4, 5));
    call_arg(&call, self);
    ARG_INTS(-1, 2);
    ARG_INTS(0, 2);
    run(3, INTS(3, 4, 5));
    expect(rolled);
    begin(rt_ops_pad, "roll", 3, INTS(3, 4, 5));
    call_arg(&call, self);
    ARG_INTS(-67);
    call_arg_ints(&call, 0, INTS(0));
    run(3, INTS(3, 4, 5));
    expect(rolled_all);
}

static int64_t diagonal_number;

static void test_tril(void **ctx)
{
    static const int64_t diagonals[] = {INT64_MIN, -3, -1, 0, 2, 9, INT64_MAX};

    (void)ctx;
    for (size_t k = 0; k < sizeof(diagonals) / sizeof(diagonals[0]); k++) {
        diagonal_number = diagonals[k];
        begin(rt_ops_pad, "tril", 3, INTS(2, 4, 6));
        call_arg(&call, self);
        call_arg_int(&call, diagonal_number);
        run(3, INTS(2, 4, 6));
        for (int64_t i = 0; i < 48; i++) {
            int64_t row = i / 6 % 4, column = i % 6;
            assert_int_equal(output[i], column - row <= diagonal_number ? i : 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_permute),
        cmocka_unit_test(test_repeat),
        cmocka_unit_test(test_pixel_shuffle),
        cmocka_unit_test(test_pixel_unshuffle),
        cmocka_unit_test(test_slice),
        cmocka_unit_test(test_select),
        cmocka_unit_test(test_narrow_is_checked),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_slice_scatter),
        cmocka_unit_test(test_select_scatter),
        cmocka_unit_test(test_flip),
        cmocka_unit_test(test_diagonal),
        cmocka_unit_test(test_unfold),
        cmocka_unit_test(test_as_strided),
        cmocka_unit_test(test_cat),
        cmocka_unit_test(test_stack),
        cmocka_unit_test(test_cat_of_images),
        cmocka_unit_test(test_constant_pad),
        cmocka_unit_test(test_edge_pads),
        cmocka_unit_test(test_reflection_is_checked),
        cmocka_unit_test(test_roll),
        cmocka_unit_test(test_tril),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
