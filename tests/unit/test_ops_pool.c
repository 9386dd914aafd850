/* SPDX-License-Identifier: MIT */
/*
 * Compares pools and resampling with plain loops in double, over random windows, with channels
 * innermost (the vectorised kernels) and outermost (the others). Also tests the rules for NaN,
 * padding and divisors.
 */
#include "config.h"

#include "tests/unit/unit.h"

#include <math.h>
#include <string.h>

#include "runtime/emit/emit.h"
#include "runtime/ops/op.h"
#include "tests/unit/ops_call.h"

#define ROOM 8192

static struct rt_emit call;
static struct error err;
static float x[ROOM], y[ROOM];
static int64_t indices[ROOM];

struct scene {
    bool is_last; /* channels */
    int64_t dims[4], out[4];
    int64_t kernel[2], stride[2], pad[2], dilation[2];
    bool ceil;
    struct rt_tensor from, to;
};

static int64_t count_windows(int64_t in, const struct scene *s, int i)
{
    int64_t reach = s->dilation[i] * (s->kernel[i] - 1) + 1, room = in + 2 * s->pad[i] - reach;
    if (room < 0) {
        return 0;
    }
    int64_t count = room / s->stride[i] + 1;
    if (s->ceil && room % s->stride[i] && count * s->stride[i] < in + s->pad[i]) {
        count++;
    }
    return count;
}

static bool draw_scene(struct scene *s, int64_t dilation)
{
    *s = (struct scene){.is_last = draw(2),
                        .dims = {1 + draw(2), 1 + draw(9), 1 + draw(9), 1 + draw(9)},
                        .ceil = draw(2)};
    for (int i = 0; i < 2; i++) {
        s->kernel[i] = 1 + draw(4);
        s->stride[i] = 1 + draw(3);
        s->dilation[i] = 1 + draw(dilation);
        s->pad[i] = draw((s->dilation[i] * (s->kernel[i] - 1) + 1) / 2 + 1);
        s->out[2 + i] = count_windows(s->dims[2 + i], s, i);
        s->out[i] = s->dims[i];
    }
    for (int i = 0; i < ROOM; i++) {
        x[i] = (float)(draw(2001) - 1000) / 64;
        y[i] = 77;
    }
    return s->out[2] > 0 && s->out[3] > 0;
}

static void begin(struct scene *s, const struct rt_op *family, const char *name)
{
    call_init(&call, family, name);
    s->from = s->is_last ? call_channels_last(&call, DT_F32, s->dims, x)
                         : call_tensor(&call, DT_F32, 4, s->dims, x);
    s->to = s->is_last ? call_channels_last(&call, DT_F32, s->out, y)
                       : call_tensor(&call, DT_F32, 4, s->out, y);
    assert_true(s->from.numel <= ROOM && s->to.numel <= ROOM);
    call_arg(&call, s->from);
    call_out(&call, s->to);
}

static int64_t at(const struct rt_tensor *t, int64_t n, int64_t c, int64_t h, int64_t w)
{
    return n * t->strides[0] + c * t->strides[1] + h * t->strides[2] + w * t->strides[3];
}

/* Calls |check| for every element of the output. */
typedef void check_f(const struct scene *s, const int64_t *o);

static void each(const struct scene *s, check_f *check)
{
    int64_t o[4];
    for (o[0] = 0; o[0] < s->out[0]; o[0]++) {
        for (o[1] = 0; o[1] < s->out[1]; o[1]++) {
            for (o[2] = 0; o[2] < s->out[2]; o[2]++) {
                for (o[3] = 0; o[3] < s->out[3]; o[3]++) {
                    check(s, o);
                }
            }
        }
    }
}

/* ---- windows --------------------------------------------------------------------------------- */

struct window {
    double sum, max;
    int64_t place, inside, padded;
};

static struct window look(const struct scene *s, const int64_t *o)
{
    struct window win = {.max = -INFINITY, .place = -1};

    for (int64_t i = 0; i < s->kernel[0]; i++) {
        for (int64_t j = 0; j < s->kernel[1]; j++) {
            int64_t h = o[2] * s->stride[0] - s->pad[0] + i * s->dilation[0];
            int64_t w = o[3] * s->stride[1] - s->pad[1] + j * s->dilation[1];
            win.padded += h < s->dims[2] + s->pad[0] && w < s->dims[3] + s->pad[1];
            if (h < 0 || h >= s->dims[2] || w < 0 || w >= s->dims[3]) {
                continue;
            }
            double value = (double)x[at(&s->from, o[0], o[1], h, w)];
            win.inside++;
            win.sum += value;
            if (value > win.max || isnan(value)) {
                win.max = value;
                win.place = h * s->dims[3] + w;
            }
        }
    }
    return win;
}

static void add_windows(const struct scene *s)
{
    call_arg_ints(&call, 2, s->kernel);
    call_arg_ints(&call, 2, s->stride);
    call_arg_ints(&call, 2, s->pad);
}

static bool has_indices;

static void check_max(const struct scene *s, const int64_t *o)
{
    struct window win = look(s, o);
    double got = (double)y[at(&s->to, o[0], o[1], o[2], o[3])];

    assert_true(got == win.max || (isnan(got) && isnan(win.max)));
    if (has_indices && win.inside > 0) {
        int64_t i = ((o[0] * s->out[1] + o[1]) * s->out[2] + o[2]) * s->out[3] + o[3];
        assert_int_equal(indices[i], win.place);
    }
}

static void test_max_pool(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 400; round++) {
        if (!draw_scene(&s, 2)) {
            continue;
        }
        x[draw(50)] = NAN;
        begin(&s, rt_ops_pool, "max_pool2d");
        add_windows(&s);
        call_arg_ints(&call, 2, s.dilation);
        call_arg_bool(&call, s.ceil);
        has_indices = draw(2);
        if (has_indices) {
            call_out(&call, call_tensor(&call, DT_I64, 4, s.out, indices));
        }
        assert_ok(err, call_run(&call, &err));
        each(&s, check_max);
    }
}

static bool counts_padding;
static int64_t divisor;

static void check_average(const struct scene *s, const int64_t *o)
{
    struct window win = look(s, o);
    int64_t by = divisor ? divisor : counts_padding ? win.padded : win.inside;

    assert_float_equal(y[at(&s->to, o[0], o[1], o[2], o[3])], win.sum / (double)by, 1e-4);
}

static void test_avg_pool(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 400; round++) {
        if (!draw_scene(&s, 1)) {
            continue;
        }
        counts_padding = draw(2);
        divisor = draw(3) == 0 ? 1 + draw(5) : 0;
        begin(&s, rt_ops_pool, "avg_pool2d");
        add_windows(&s);
        call_arg_bool(&call, s.ceil);
        call_arg_bool(&call, counts_padding);
        if (divisor) {
            call_arg_int(&call, divisor);
        } else {
            call_arg_none(&call);
        }
        assert_ok(err, call_run(&call, &err));
        each(&s, check_average);
    }
}

static void check_adaptive(const struct scene *s, const int64_t *o)
{
    int64_t top = o[2] * s->dims[2] / s->out[2], left = o[3] * s->dims[3] / s->out[3];
    double sum = 0, count = 0;

    for (int64_t h = top; (double)h < (double)((o[2] + 1) * s->dims[2]) / (double)s->out[2]; h++) {
        for (int64_t w = left; (double)w < (double)((o[3] + 1) * s->dims[3]) / (double)s->out[3];
             w++) {
            sum += (double)x[at(&s->from, o[0], o[1], h, w)];
            count++;
        }
    }
    assert_float_equal(y[at(&s->to, o[0], o[1], o[2], o[3])], sum / count, 1e-4);
}

static void test_adaptive_pool(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 200; round++) {
        draw_scene(&s, 1);
        s.out[2] = 1 + draw(11);
        s.out[3] = 1 + draw(11);
        begin(&s, rt_ops_pool, "adaptive_avg_pool2d");
        call_arg_ints(&call, 2, s.out + 2);
        assert_ok(err, call_run(&call, &err));
        each(&s, check_adaptive);
    }
}

/* For integers, the divided sum is rounded towards zero, and the maximum keeps all 64 bits. */
static void test_pools_of_integers(void **ctx)
{
    int64_t in[] = {INT64_MAX - 1, INT64_MAX, -3, 2}, out = 0;

    (void)ctx;
    call_init(&call, rt_ops_pool, "max_pool2d");
    call_arg(&call, call_tensor(&call, DT_I64, 3, INTS(1, 2, 2), in));
    call_arg_ints(&call, 1, INTS(2));
    call_arg_ints(&call, 0, INTS(0));
    call_arg_ints(&call, 1, INTS(0));
    call_arg_ints(&call, 1, INTS(1));
    call_arg_bool(&call, false);
    call_out(&call, call_tensor(&call, DT_I64, 3, INTS(1, 1, 1), &out));
    assert_ok(err, call_run(&call, &err));
    assert_true(out == INT64_MAX);
    in[0] = -4;
    in[1] = -2;
    call_init(&call, rt_ops_pool, "avg_pool2d");
    call_arg(&call, call_tensor(&call, DT_I64, 3, INTS(1, 2, 2), in));
    call_arg_ints(&call, 1, INTS(2));
    call_arg_ints(&call, 0, INTS(0));
    call_arg_ints(&call, 1, INTS(0));
    call_arg_bool(&call, false);
    call_arg_bool(&call, true);
    call_arg_none(&call);
    call_out(&call, call_tensor(&call, DT_I64, 3, INTS(1, 1, 1), &out));
    assert_ok(err, call_run(&call, &err));
    assert_true(out == -1);
}

/* ---- resampling ------------------------------------------------------------------------------ */

static bool aligns;

static double source_of(int64_t place, int64_t in, int64_t out)
{
    if (aligns) {
        return out > 1 ? (double)place * (double)(in - 1) / (double)(out - 1) : 0;
    }
    return fmax(0, ((double)place + 0.5) * (double)in / (double)out - 0.5);
}

static void check_bilinear(const struct scene *s, const int64_t *o)
{
    double h = source_of(o[2], s->dims[2], s->out[2]), w = source_of(o[3], s->dims[3], s->out[3]);
    double sum = 0;

    for (int64_t i = 0; i < s->dims[2]; i++) {
        for (int64_t j = 0; j < s->dims[3]; j++) {
            double a = fmax(0, 1 - fabs(fmin(h, (double)(s->dims[2] - 1)) - (double)i));
            double b = fmax(0, 1 - fabs(fmin(w, (double)(s->dims[3] - 1)) - (double)j));
            sum += a * b * (double)x[at(&s->from, o[0], o[1], i, j)];
        }
    }
    assert_float_equal(y[at(&s->to, o[0], o[1], o[2], o[3])], sum, 1e-4);
}

static void check_nearest(const struct scene *s, const int64_t *o)
{
    int64_t h = o[2] * s->dims[2] / s->out[2], w = o[3] * s->dims[3] / s->out[3];

    assert_float_equal(y[at(&s->to, o[0], o[1], o[2], o[3])], x[at(&s->from, o[0], o[1], h, w)], 0);
}

static void test_upsample(void **ctx)
{
    struct scene s;

    (void)ctx;
    for (int round = 0; round < 400; round++) {
        draw_scene(&s, 1);
        aligns = draw(2);
        /* For powers of two, positions by float division and by integer division agree. */
        s.out[2] = s.dims[2] << draw(3);
        s.out[3] = s.dims[3] << draw(2);
        begin(&s, rt_ops_upsample, round % 2 ? "upsample_nearest2d" : "upsample_bilinear2d");
        call_arg_ints(&call, 2, s.out + 2);
        if (round % 2 == 0) {
            call_arg_bool(&call, aligns);
        }
        call_arg_none(&call);
        assert_ok(err, call_run(&call, &err));
        each(&s, round % 2 ? check_nearest : check_bilinear);
    }
}

/* The sum of a window wraps, and so does the smallest integer divided by -1. */
static void test_sums_wrap(void **state)
{
    const char *const names[] = {"avg_pool2d", "avg_pool3d"};
    int64_t in[4] = {INT64_MAX, 1, 0, 0}, out[1];
    (void)state;
    for (uint32_t axes = 2; axes <= 3; axes++) {
        const int64_t dims[] = {1, 1, 1, 2, 2}, ones[] = {1, 1, 1, 1, 1}, zeros[] = {0, 0, 0};
        const int64_t kernel[] = {1, 2, 2};
        call_init(&call, axes == 2 ? rt_ops_pool : rt_ops_pool_volume, names[axes - 2]);
        call_arg(&call, call_tensor(&call, DT_I64, (uint8_t)(axes + 2),
                                    axes == 2 ? INTS(1, 1, 2, 2) : dims, in));
        call_arg_ints(&call, axes, axes == 2 ? kernel + 1 : kernel);
        call_arg_ints(&call, axes, ones);
        call_arg_ints(&call, axes, zeros);
        call_arg_bool(&call, false);
        call_arg_bool(&call, true);
        call_arg_int(&call, -1);
        call_out(&call, call_tensor(&call, DT_I64, (uint8_t)(axes + 2), ones, out));
        assert_ok(err, call_run(&call, &err));
        assert_int_equal(out[0], INT64_MIN);
    }
}

/* A factor that points beyond the image: the windows stay inside and use its last pixel. */
static void test_windows_stay_inside(void **state)
{
    static const enum dtype dtypes[] = {DT_F32, DT_F64, DT_U8};
    (void)state;
    for (size_t i = 0; i < sizeof(dtypes) / sizeof(dtypes[0]); i++) {
        int64_t memory[16] = {0}, result[12];
        call_init(&call, rt_ops_antialias, "upsample_bilinear2d_aa");
        call_arg(&call, call_tensor(&call, dtypes[i], 4, INTS(1, 1, 2, 5), memory));
        call_arg_ints(&call, 2, INTS(3, 4));
        call_arg_bool(&call, false);
        call_arg_float(&call, 0.1);
        call_arg_float(&call, 1e-300);
        memset(result, 0xff, sizeof(result));
        call_out(&call, call_tensor(&call, dtypes[i], 4, INTS(1, 1, 3, 4), result));
        assert_ok(err, call_run(&call, &err));
        for (size_t byte = 0; byte < 12 * dtype_bytes(dtypes[i]); byte++) {
            assert_int_equal(((uint8_t *)result)[byte], 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_max_pool),
        cmocka_unit_test(test_avg_pool),
        cmocka_unit_test(test_adaptive_pool),
        cmocka_unit_test(test_pools_of_integers),
        cmocka_unit_test(test_upsample),
        cmocka_unit_test(test_sums_wrap),
        cmocka_unit_test(test_windows_stay_inside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
