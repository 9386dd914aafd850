/* SPDX-License-Identifier: MIT */
/*
 * The depthwise convolution of every level, and that of small groups, against plain loops in double
 * precision: kernels, strides, dilations, paddings up to more than the image, channels around the
 * vector lengths.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

#define GUARD 12345.0f

struct shape {
    uint32_t height, width, channels, kernel_h, kernel_w, stride, dilation, pad;
    uint32_t group; /* 0: depthwise */
};

static void run(const struct hal_cpu_uk *uk, const struct uk_dw_f32 *d)
{
    if (d->group > 0) {
        uk->group_f32(d);
    } else {
        uk->dw_f32(d);
    }
}

static uint32_t out_extent(uint32_t in, uint32_t kernel, const struct shape *s)
{
    return (in + 2 * s->pad - s->dilation * (kernel - 1) - 1) / s->stride + 1;
}

/* Channel |c| of a pixel at |x|, for the weights of its first input at |w|. */
static double tap_at(const struct uk_dw_f32 *d, const float *x, const float *w, uint32_t c)
{
    uint32_t group = d->group ? d->group : 1;
    double sum = 0;
    for (uint32_t i = 0; i < group; i++) {
        sum += (double)x[c / group * group + i] * (double)w[i * d->kernel_w * d->channels + c];
    }
    return sum;
}

static double dw_at(const struct uk_dw_f32 *d, uint32_t y, uint32_t column, uint32_t c)
{
    double sum = d->bias ? (double)d->bias[c] : 0.0;
    uint32_t line = d->kernel_w * (d->group ? d->group : 1);
    for (uint32_t t = 0; t < d->kernel_h * d->kernel_w; t++) {
        int64_t in_y = (int64_t)(y * d->stride_h + t / d->kernel_w * d->dilation_h) - d->pad_top;
        int64_t in_x =
            (int64_t)(column * d->stride_w + t % d->kernel_w * d->dilation_w) - d->pad_left;
        if (in_y >= 0 && in_x >= 0 && in_y < d->height && in_x < d->width) {
            sum += tap_at(d, d->x + in_y * d->x_line + in_x * d->x_pixel,
                          d->w + (t / d->kernel_w * line + t % d->kernel_w) * d->channels, c);
        }
    }
    return fmin(fmax(sum, (double)d->min), (double)d->max);
}

/* Bands of columns give the very bytes of whole rows, which are there. */
static void check_bands(const struct hal_cpu_uk *uk, const struct uk_dw_f32 *whole, size_t y_floats)
{
    float *y = malloc(y_floats * sizeof(*y));
    assert_non_null(y);
    memcpy(y, whole->y, y_floats * sizeof(*y));
    for (uint32_t begin = 0, end; begin < whole->out_width; begin = end) {
        struct uk_dw_f32 band = *whole;
        end = begin + 5 < whole->out_width ? begin + 5 : whole->out_width;
        band.y = y + begin * whole->y_pixel;
        band.out_width = end - begin;
        band.pad_left -= (ptrdiff_t)begin * whole->stride_w;
        run(uk, &band);
    }
    assert_memory_equal(y, whole->y, y_floats * sizeof(*y));
    free(y);
}

static void check(const struct hal_cpu_uk *uk, const struct shape *s, bool bias, float min)
{
    /* Pixels of x are two floats apart, those of y three. */
    uint32_t out_height = out_extent(s->height, s->kernel_h, s);
    uint32_t out_width = out_extent(s->width, s->kernel_w, s);
    size_t x_pixel = s->channels + 2, y_pixel = s->channels + 3;
    size_t y_floats = (size_t)out_height * out_width * y_pixel;
    float *x = random_floats((size_t)s->height * s->width * x_pixel, 1);
    size_t inputs = s->group ? s->group : 1;
    float *w = random_floats(s->kernel_h * inputs * s->kernel_w * s->channels, 2);
    float *b = random_floats(s->channels, 3), *y = random_floats(y_floats, 4);
    struct uk_dw_f32 d = {.x = x,
                          .x_line = (ptrdiff_t)(s->width * x_pixel),
                          .x_pixel = (ptrdiff_t)x_pixel,
                          .w = w,
                          .bias = bias ? b : NULL,
                          .y = y,
                          .y_line = (ptrdiff_t)(out_width * y_pixel),
                          .y_pixel = (ptrdiff_t)y_pixel,
                          .channels = s->channels,
                          .height = s->height,
                          .width = s->width,
                          .out_width = out_width,
                          .kernel_h = s->kernel_h,
                          .kernel_w = s->kernel_w,
                          .stride_h = s->stride,
                          .stride_w = s->stride,
                          .dilation_h = s->dilation,
                          .dilation_w = s->dilation,
                          .pad_top = s->pad,
                          .pad_left = s->pad,
                          .group = s->group,
                          .min = min,
                          .max = 6.0f};
    for (size_t i = 0; i < y_floats; i++) {
        y[i] = GUARD;
    }
    d.row_end = out_height / 2;
    run(uk, &d);
    d.row_begin = d.row_end;
    d.row_end = out_height;
    run(uk, &d);
    check_bands(uk, &d, y_floats);
    for (size_t i = 0; i < y_floats; i++) {
        uint32_t c = (uint32_t)(i % y_pixel), pixel = (uint32_t)(i / y_pixel);
        if (c >= s->channels) {
            assert_true(y[i] == GUARD);
            continue;
        }
        double want = dw_at(&d, pixel / out_width, pixel % out_width, c);
        if (!(fabs((double)y[i] - want) <= 1e-5 * (double)inputs)) {
            fail_msg("%s: %ux%ux%u, groups of %zu, kernel %ux%u, stride %u, dilation %u, pad %u, "
                     "at %zu: %g, expected %g",
                     uk->name, s->height, s->width, s->channels, inputs, s->kernel_h, s->kernel_w,
                     s->stride, s->dilation, s->pad, i, (double)y[i], want);
        }
    }
    free(x);
    free(w);
    free(b);
    free(y);
}

static void level_shapes(const struct hal_cpu_uk *uk)
{
    static const uint32_t channels[] = {1, 3, 4, 8, 15, 16, 17, 33, 70, 144};
    static const uint32_t kernels[][2] = {{3, 3}, {5, 5}, {3, 5}, {1, 3}, {7, 7}, {2, 2}, {1, 1}};
    for (size_t i = 0; i < 10; i++) {
        for (size_t k = 0; k < 7; k++) {
            for (uint32_t stride = 1; stride <= 3; stride++) {
                uint32_t pad = (uint32_t)(i + k + stride) % 4;
                struct shape s = {9,      17, channels[i], kernels[k][0], kernels[k][1],
                                  stride, 1,  pad,         0};
                check(uk, &s, k & 1, stride == 2 ? 0.0f : -INFINITY);
                s.width = 7;
                check(uk, &s, true, -0.5f);
                s.dilation = 2;
                s.height = s.width = 13;
                check(uk, &s, !(k & 1), -INFINITY);
                s.dilation = 3;
                s.height = 19;
                s.width = 43; /* several blocks side by side */
                check(uk, &s, k & 1, -INFINITY);
                s.dilation = 1;
                check(uk, &s, k & 1, -INFINITY);
            }
        }
    }
}

static void test_shapes(void **state)
{
    (void)state;
    each_level(level_shapes);
}

static void level_groups(const struct hal_cpu_uk *uk)
{
    static const uint32_t kernels[][2] = {{3, 3}, {1, 3}, {5, 5}, {1, 1}};
    for (uint32_t group = 1; group <= uk->group_max; group *= 2) {
        for (uint32_t i = 0; i < 16; i++) {
            uint32_t channels = uk->group_max + i * i / group * group;
            uint32_t stride = i % 3 + 1, dilation = i % 5 == 4 ? 2 : 1;
            struct shape s = {9,      17,       channels, kernels[i / 4][0], kernels[i / 4][1],
                              stride, dilation, i % 4,    group};
            check(uk, &s, i & 1, stride == 2 ? 0.0f : -INFINITY);
            s.height = 19;
            s.width = 43;
            check(uk, &s, true, -0.5f);
            s.width = 4; /* no blocks */
            s.pad = 2;
            s.dilation = 1;
            check(uk, &s, true, -0.5f);
        }
    }
}

static void test_groups(void **state)
{
    (void)state;
    each_level(level_groups);
}

/* Padding so wide that some outputs see no input at all: they are the bias. So are all outputs of
 * an image without columns. */
static void level_far_padding(const struct hal_cpu_uk *uk)
{
    struct shape s = {3, 4, 20, 3, 3, 1, 1, 6, 0};
    check(uk, &s, true, -INFINITY);
    s.width = 1;
    check(uk, &s, true, -INFINITY);
    s.dilation = 4;
    check(uk, &s, false, -INFINITY);
    s.width = 0;
    check(uk, &s, true, -INFINITY);
}

static void test_far_padding(void **state)
{
    (void)state;
    each_level(level_far_padding);
}

static void level_nan(const struct hal_cpu_uk *uk)
{
    float x[20], w[20], y[20];
    for (int i = 0; i < 20; i++) {
        x[i] = i == 7 ? NAN : -1.0f;
        w[i] = 1.0f;
    }
    struct uk_dw_f32 d = {.x = x,
                          .x_pixel = 20,
                          .w = w,
                          .y = y,
                          .y_pixel = 20,
                          .channels = 20,
                          .height = 1,
                          .width = 1,
                          .out_width = 1,
                          .row_end = 1,
                          .kernel_h = 1,
                          .kernel_w = 1,
                          .stride_h = 1,
                          .stride_w = 1,
                          .dilation_h = 1,
                          .dilation_w = 1,
                          .min = 0.0f,
                          .max = 6.0f};
    uk->dw_f32(&d);
    for (int i = 0; i < 20; i++) {
        assert_true(i == 7 ? isnan(y[i]) : y[i] == 0.0f);
    }
}

static void test_nan(void **state)
{
    (void)state;
    each_level(level_nan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_far_padding),
        cmocka_unit_test(test_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
