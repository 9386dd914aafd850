/* SPDX-License-Identifier: MIT */
/*
 * Compares operators that take any memory order with plain loops: for channels-last tensors, for
 * mixed orders and across tiles. tests/ops compares the values with PyTorch.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

#define N 2
#define C 19
#define H 23
#define W 29
#define COUNT (N * C * H * W)

static const int64_t dims[4] = {N, C, H, W};
static const int64_t per_channel[4] = {1, C, 1, 1};

struct fixture {
    struct rt_emit call;
    struct error err;
    float a[COUNT], b[COUNT], got[COUNT], channels[C], shifts[C];
};

/* The position of element (n, c, y, x) in |order|. */
static size_t at(bool channels_last, int n, int c, int y, int x)
{
    return channels_last ? (((size_t)n * H + y) * W + x) * C + c
                         : (((size_t)n * C + c) * H + y) * W + x;
}

static struct fixture *new_fixture(void)
{
    struct fixture *f = calloc(1, sizeof(*f));

    assert_non_null(f);
    for (size_t i = 0; i < COUNT; i++) {
        f->a[i] = (float)((i * 2654435761u) % 1000) / 100 - 5;
        f->b[i] = (float)((i * 40503u) % 777) / 50 - 7;
        f->got[i] = NAN;
    }
    for (size_t c = 0; c < C; c++) {
        f->channels[c] = (float)c / 4 - 2;
        f->shifts[c] = 3 - (float)c / 8;
    }
    return f;
}

static struct rt_tensor image(struct fixture *f, bool channels_last, float *data)
{
    return channels_last ? call_channels_last(&f->call, DT_F32, dims, data)
                         : call_tensor(&f->call, DT_F32, 4, dims, data);
}

#define EACH_ELEMENT                                                                               \
    for (int n = 0; n < N; n++)                                                                    \
        for (int c = 0; c < C; c++)                                                                \
            for (int y = 0; y < H; y++)                                                            \
                for (int x = 0; x < W; x++)

static void add_images(bool a_last, bool b_last, bool out_last)
{
    struct fixture *f = new_fixture();

    call_init(&f->call, rt_ops_pointwise, "add");
    call_arg(&f->call, image(f, a_last, f->a));
    call_arg(&f->call, image(f, b_last, f->b));
    call_arg_int(&f->call, 2);
    call_out(&f->call, image(f, out_last, f->got));
    assert_ok(f->err, call_run(&f->call, &f->err));
    EACH_ELEMENT
    {
        float want = f->a[at(a_last, n, c, y, x)] + 2 * f->b[at(b_last, n, c, y, x)];
        assert_float_equal(f->got[at(out_last, n, c, y, x)], want, 1e-5);
    }
    free(f);
}

static void test_orders_may_be_mixed(void **state)
{
    (void)state;
    for (int orders = 0; orders < 8; orders++) {
        add_images(orders & 1, orders & 2, orders & 4);
    }
}

static void multiply_channels(bool last)
{
    struct fixture *f = new_fixture();

    call_init(&f->call, rt_ops_pointwise, "mul");
    call_arg(&f->call, image(f, last, f->a));
    call_arg(&f->call, call_tensor(&f->call, DT_F32, 4, per_channel, f->channels));
    call_out(&f->call, image(f, last, f->got));
    assert_ok(f->err, call_run(&f->call, &f->err));
    EACH_ELEMENT
    {
        size_t i = at(last, n, c, y, x);
        assert_float_equal(f->got[i], f->a[i] * f->channels[c], 1e-5);
    }
    free(f);
}

static void test_channels_are_broadcast_in_both_orders(void **state)
{
    (void)state;
    multiply_channels(false);
    multiply_channels(true);
}

static void apply_affine(bool in_last, bool out_last)
{
    struct fixture *f = new_fixture();
    const int64_t list[1] = {C};

    call_init(&f->call, rt_ops_norm, "affine");
    call_arg(&f->call, image(f, in_last, f->a));
    call_arg(&f->call, call_tensor(&f->call, DT_F32, 1, list, f->channels));
    call_arg(&f->call, call_tensor(&f->call, DT_F32, 1, list, f->shifts));
    call_out(&f->call, image(f, out_last, f->got));
    assert_ok(f->err, call_run(&f->call, &f->err));
    EACH_ELEMENT
    {
        float want = f->a[at(in_last, n, c, y, x)] * f->channels[c] + f->shifts[c];
        assert_float_equal(f->got[at(out_last, n, c, y, x)], want, 1e-5);
    }
    free(f);
}

static void test_affine_in_any_order(void **state)
{
    (void)state;
    for (int orders = 0; orders < 4; orders++) {
        apply_affine(orders & 1, orders & 2);
    }
}

/* The mean over the pixels, or over the channels. */
static void take_mean(bool last, bool of_channels)
{
    static const int64_t pixels[2] = {2, 3}, channel[1] = {1};
    static const int64_t by_channel[2] = {N, C}, by_pixel[3] = {N, H, W};
    struct fixture *f = new_fixture();
    double sums[COUNT / C] = {0};

    call_init(&f->call, rt_ops_reduce, "mean");
    call_arg(&f->call, image(f, last, f->a));
    call_arg_ints(&f->call, of_channels ? 1 : 2, of_channels ? channel : pixels);
    call_arg_bool(&f->call, false);
    call_arg_none(&f->call);
    call_out(&f->call, call_tensor(&f->call, DT_F32, of_channels ? 3 : 2,
                                   of_channels ? by_pixel : by_channel, f->got));
    assert_ok(f->err, call_run(&f->call, &f->err));
    EACH_ELEMENT
    {
        size_t out = of_channels ? ((size_t)n * H + y) * W + x : (size_t)n * C + c;
        sums[out] += (double)f->a[at(last, n, c, y, x)];
    }
    for (size_t i = 0; i < (of_channels ? N * H * W : N * C); i++) {
        assert_float_equal(f->got[i], sums[i] / (of_channels ? C : H * W), 1e-5);
    }
    free(f);
}

static void test_means_in_both_orders(void **state)
{
    (void)state;
    for (int orders = 0; orders < 4; orders++) {
        take_mean(orders & 1, orders & 2);
    }
}

/* The columns kernel runs if the orders need it, otherwise the rows kernel. */
static void test_memory_order_chooses_the_kernel(void **state)
{
    static const int64_t pixels[2] = {2, 3}, out_dims[2] = {N, C};
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct fixture *f = new_fixture();
        call_init(&f->call, rt_ops_reduce, "amax");
        call_arg(&f->call, image(f, last, f->a));
        call_arg_ints(&f->call, 2, pixels);
        call_arg_bool(&f->call, false);
        call_out(&f->call, call_tensor(&f->call, DT_F32, 2, out_dims, f->got));
        assert_ok(f->err, call_run(&f->call, &f->err));
        assert_string_equal(f->call.kernel, last ? "reduce_columns" : "reduce_rows");
        free(f);
    }
}

/* The position of a maximum counts in logical order, in every memory order. */
static void test_argmax_counts_logically(void **state)
{
    (void)state;
    for (int last = 0; last < 2; last++) {
        struct fixture *f = new_fixture();
        int64_t index = -1;
        for (size_t i = 0; i < COUNT; i++) {
            f->a[i] = 0;
        }
        f->a[at(last, 0, 7, 5, 3)] = 1;
        f->a[at(last, 0, 6, 20, 9)] = 1; /* earlier in logical order, later in memory order */
        call_init(&f->call, rt_ops_reduce, "argmax");
        call_arg(&f->call, image(f, last, f->a));
        call_arg_none(&f->call);
        call_arg_bool(&f->call, false);
        call_out(&f->call, call_tensor(&f->call, DT_I64, 0, NULL, &index));
        assert_ok(f->err, call_run(&f->call, &f->err));
        assert_int_equal(index, at(false, 0, 6, 20, 9));
        free(f);
    }
}

static void test_coefficients_of_a_batch_norm(void **state)
{
    static const int64_t list[1] = {3};
    float weight[3] = {2, -1, 0.5f}, variance[3] = {3.99f, 0.24f, 8.99f}, scale[3], shift[3];
    float mean[3] = {1, 2, 3}, bias[3] = {0.5f, 0, 1};
    struct rt_emit call;
    struct error err;

    (void)state;
    call_init(&call, rt_ops_norm, "bn_scale");
    call_arg(&call, call_tensor(&call, DT_F32, 1, list, weight));
    call_arg(&call, call_tensor(&call, DT_F32, 1, list, variance));
    call_arg_float(&call, 0.01);
    call_out(&call, call_tensor(&call, DT_F32, 1, list, scale));
    assert_ok(err, call_run(&call, &err));
    call_init(&call, rt_ops_norm, "bn_shift");
    call_arg(&call, call_tensor(&call, DT_F32, 1, list, bias));
    call_arg(&call, call_tensor(&call, DT_F32, 1, list, mean));
    call_arg(&call, call_tensor(&call, DT_F32, 1, list, scale));
    call_out(&call, call_tensor(&call, DT_F32, 1, list, shift));
    assert_ok(err, call_run(&call, &err));
    for (int i = 0; i < 3; i++) {
        double want = weight[i] / sqrt(variance[i] + 0.01);
        assert_float_equal(scale[i], want, 1e-6);
        assert_float_equal(shift[i], bias[i] - mean[i] * want, 1e-6);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_orders_may_be_mixed),
        cmocka_unit_test(test_channels_are_broadcast_in_both_orders),
        cmocka_unit_test(test_affine_in_any_order),
        cmocka_unit_test(test_means_in_both_orders),
        cmocka_unit_test(test_memory_order_chooses_the_kernel),
        cmocka_unit_test(test_argmax_counts_logically),
        cmocka_unit_test(test_coefficients_of_a_batch_norm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
