/* SPDX-License-Identifier: MIT */
/*
 * The matrix product and the convolutions of every level against plain loops in double precision:
 * the edges of the tiles and panels, gathered rows, bias, residual, clamp, NaN, and that a row's
 * result is the same bits however it is asked for.
 */
#include "config.h"

#include "hal/cpu/uk.h"
#include "tests/hal/uk_gemm_support.h"

#define ONE_RUN(k) (k), 1, SEGMENTS_MAX

static void setup(const struct hal_cpu_uk *uk, const struct problem *p, struct operands *o)
{
    set_up_product(uk, p, false, o);
}

static void run_problem(const struct hal_cpu_uk *uk, const struct problem *p)
{
    check_product(uk, p, false);
}

/* Every m to past two tiles, every n to past two panels. */
static void level_edges(const struct hal_cpu_uk *uk)
{
    static const uint32_t ks[] = {0, 1, 2, 7, 33};
    for (uint32_t m = 1; m <= 2 * uk->f32_mr + 1; m++) {
        for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
            uint32_t k = ks[(m + n) % 5];
            run_problem(uk, &(struct problem){1, m, n, ONE_RUN(k), (m & 1) != 0, (n & 1) != 0,
                                              n % 3 ? -INFINITY : -0.5f, m % 3 ? INFINITY : 0.5f});
        }
    }
}

static void test_edges(void **state)
{
    (void)state;
    each_level(level_edges);
}

/* Deep and wide enough for blocks of k, blocks of panels and copied tiles. */
static void level_blocks(const struct hal_cpu_uk *uk)
{
    static const struct problem problems[] = {
        {1, 40, 300, ONE_RUN(1500), true, true, 0.0f, INFINITY},
        {1, 40, 308, ONE_RUN(1500), true, true, -1.0f, 6.0f}, /* a part of the last vector */
        {1, 40, 300, ONE_RUN(1023), true, true, -1.0f, 6.0f}, /* rows of A 4096 bytes apart */
        {1, 5, 200, ONE_RUN(2047), false, false, -INFINITY, INFINITY},
        {7, 9, 129, ONE_RUN(1023), true, false, -INFINITY, INFINITY},
        {3, 7, 16, ONE_RUN(40), true, true, 0.0f, 6.0f},
        {1, 1, 700, ONE_RUN(900), true, false, -INFINITY, INFINITY},
        {2, 1, 97, ONE_RUN(64), true, true, -INFINITY, INFINITY},
    };
    for (size_t i = 0; i < sizeof(problems) / sizeof(problems[0]); i++) {
        run_problem(uk, &problems[i]);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    each_level(level_blocks);
}

static void level_same_bits(const struct hal_cpu_uk *uk)
{
    check_same_bits(
        uk, &(struct problem){4, 25, 9 * uk->f32_nr + 5, ONE_RUN(1023), true, true, -9.0f, 9.0f},
        false);
}

static void test_same_bits(void **state)
{
    (void)state;
    each_level(level_same_bits);
}

static void level_in_place_residual(const struct hal_cpu_uk *uk)
{
    check_residual_in_place(uk, false);
}

static void test_in_place_residual(void **state)
{
    (void)state;
    each_level(level_in_place_residual);
}

static void level_nan(const struct hal_cpu_uk *uk)
{
    check_nan(uk, false);
}

static void test_nan(void **state)
{
    (void)state;
    each_level(level_nan);
}

/* A convolution: image |h| x |w| x |channels|, OIHW weights, padding 1 by leaving taps out. */
struct conv {
    uint32_t h, w, channels, out_channels, kernel, dilation;
};

static double conv_at(const struct conv *v, const float *x, const float *weights, int y, int column,
                      uint32_t out)
{
    double sum = 0.0;
    int pad = (int)(v->dilation * (v->kernel - 1) / 2), kernel = (int)v->kernel;
    for (int t = 0; t < kernel * kernel; t++) {
        int in_y = y - pad + t / kernel * (int)v->dilation;
        int in_x = column - pad + t % kernel * (int)v->dilation;
        if (in_y < 0 || in_x < 0 || in_y >= (int)v->h || in_x >= (int)v->w) {
            continue;
        }
        for (uint32_t c = 0; c < v->channels; c++) {
            size_t at = ((size_t)in_y * v->w + (size_t)in_x) * v->channels + c;
            size_t tap = ((size_t)out * v->channels + c) * (size_t)(kernel * kernel) + (size_t)t;
            sum += (double)x[at] * (double)weights[tap];
        }
    }
    return sum;
}

/* The taps of the pixel at (y, column) that lie in the image. */
static uint32_t list_taps(const struct conv *v, int y, int column, struct uk_segment *segments)
{
    uint32_t count = 0;
    int pad = (int)(v->dilation * (v->kernel - 1) / 2), kernel = (int)v->kernel;
    for (int t = 0; t < kernel * kernel; t++) {
        int dy = t / kernel * (int)v->dilation - pad, dx = t % kernel * (int)v->dilation - pad;
        if (y + dy >= 0 && y + dy < (int)v->h && column + dx >= 0 && column + dx < (int)v->w) {
            segments[count++] = (struct uk_segment){
                ((ptrdiff_t)dy * (int)v->w + dx) * (ptrdiff_t)v->channels, (size_t)t * v->channels};
        }
    }
    return count;
}

static void check_conv(const struct hal_cpu_uk *uk, const struct conv *v)
{
    size_t taps = (size_t)v->kernel * v->kernel, depth = taps * v->channels;
    size_t pixels = (size_t)v->h * v->w;
    float *x = random_floats(pixels * v->channels, 7);
    float *weights = random_floats(depth * v->out_channels, 8);
    float *packed = random_floats(uk_packed_f32_floats(uk, depth, v->out_channels), 9);
    float *c = random_floats(pixels * v->out_channels, 10);
    struct uk_segment segments[25];
    struct uk_pack_f32 pack = {.src = weights,
                               .column = (ptrdiff_t)depth,
                               .outer_stride = 1,
                               .inner_stride = (ptrdiff_t)taps,
                               .n = v->out_channels,
                               .outer_count = (uint32_t)taps,
                               .inner_count = v->channels,
                               .packed = packed};
    uk->pack_f32(&pack, 0, uk_panels_f32(uk, v->out_channels));
    int inset = (int)(v->dilation * (v->kernel - 1) / 2);
    for (int y = 0; y < (int)v->h; y++) {
        for (int column = 0; column < (int)v->w;) {
            /* The middle of the line in one go, its ends by the pixel. */
            int inside = column >= inset ? (int)v->w - inset - column : 0;
            struct uk_gemm_f32 g = {.a = x + ((size_t)y * v->w + (size_t)column) * v->channels,
                                    .a_row = v->channels,
                                    .segments = segments,
                                    .segment_count = list_taps(v, y, column, segments),
                                    .run = v->channels,
                                    .b = packed,
                                    .k = depth,
                                    .c = c + ((size_t)y * v->w + (size_t)column) * v->out_channels,
                                    .c_row = v->out_channels,
                                    .lines = 1,
                                    .m = inside > 0 ? (uint32_t)inside : 1,
                                    .n = v->out_channels,
                                    .min = -INFINITY,
                                    .max = INFINITY};
            uk->gemm_f32(&g);
            column += (int)g.m;
        }
    }
    for (size_t i = 0; i < pixels * v->out_channels; i++) {
        size_t pixel = i / v->out_channels;
        double want = conv_at(v, x, weights, (int)(pixel / v->w), (int)(pixel % v->w),
                              (uint32_t)(i % v->out_channels));
        assert_true(fabs((double)c[i] - want) <= tolerance((uint32_t)depth));
    }
    free(x);
    free(weights);
    free(packed);
    free(c);
}

static void level_conv(const struct hal_cpu_uk *uk)
{
    static const struct conv convs[] = {
        {9, 11, 3, 8, 3, 1},  {7, 19, 16, 40, 3, 1}, {12, 13, 5, 33, 3, 2},
        {8, 8, 70, 20, 5, 1}, {6, 40, 64, 64, 3, 1}, {5, 5, 200, 300, 3, 1},
    };
    for (size_t i = 0; i < sizeof(convs) / sizeof(convs[0]); i++) {
        check_conv(uk, &convs[i]);
    }
}

static void test_conv(void **state)
{
    (void)state;
    each_level(level_conv);
}

/* Packing from [N][K] is packing from [K][N] of the transpose; a range of panels is that range. */
static void level_pack(const struct hal_cpu_uk *uk)
{
    uint32_t k = 37, n = 3 * uk->f32_nr + 1, nr = uk->f32_nr;
    size_t floats = uk_packed_f32_floats(uk, k, n);
    float *nk = random_floats((size_t)n * k, 11), *packed = random_floats(floats, 12);
    struct uk_pack_f32 pack = {.src = nk,
                               .column = k,
                               .inner_stride = 1,
                               .n = n,
                               .outer_count = 1,
                               .inner_count = k,
                               .packed = packed};
    uk->pack_f32(&pack, 0, 4);
    assert_int_equal(floats, 4 * (size_t)nr * k);
    for (size_t i = 0; i < floats; i++) {
        size_t panel = i / (k * nr), row = i / nr % k, column = panel * nr + i % nr;
        assert_true(packed[i] == (column < n ? nk[column * k + row] : 0.0f));
    }
    for (size_t i = 0; i < floats; i++) {
        packed[i] = GUARD;
    }
    uk->pack_f32(&pack, 1, 3);
    for (size_t i = 0; i < floats; i++) {
        size_t panel = i / (k * nr);
        assert_int_equal(packed[i] == GUARD, panel < 1 || panel >= 3);
    }
    free(nk);
    free(packed);
}

static void test_pack(void **state)
{
    (void)state;
    each_level(level_pack);
}

static void test_packed_size(void **state)
{
    const struct hal_cpu_uk *uk = hal_cpu_isa_kernels(HAL_CPU_GENERIC);
    (void)state;
    assert_int_equal(uk_packed_f32_floats(uk, 10, 1), 10 * uk->f32_nr);
    assert_int_equal(uk_packed_f32_floats(uk, 10, 0), 0);
    assert_int_equal(uk_packed_f32_floats(uk, SIZE_MAX / 8, 8), 0);
}

/* An activation is computed of what the product is without it, also in place of C's sums. Rows of C
 * are |row| floats apart. */
static void check_activation(const struct hal_cpu_uk *uk, struct uk_gemm_f32 g, size_t row)
{
    const size_t rows = (size_t)g.lines * g.m, floats = rows * row + 1;
    float *want = random_floats(floats, 0), *got = random_floats(floats, 0);
    g.c_row = (ptrdiff_t)row;
    g.c_line = (ptrdiff_t)(g.m * row);
    g.c = want;
    uk->gemm_f32(&g);
    for (size_t i = 0; i < rows; i++) {
        uk->unary_f32[UK_GELU](want + i * row, want + i * row, g.n);
    }
    g.c = got;
    g.activation = uk->unary_f32[UK_GELU];
    uk->gemm_f32(&g);
    assert_memory_equal(got, want, floats * sizeof(float));
    free(want);
    free(got);
}

static void level_activation(const struct hal_cpu_uk *uk)
{
    for (uint32_t n = 1; n <= 2 * uk->f32_nr + 1; n++) {
        struct problem p = {
            1 + n % 2,  1 + n % (2 * uk->f32_mr),  n,   ONE_RUN(n % 7 ? 9 : 1100), n % 3 != 0,
            n % 5 == 0, n % 4 ? -INFINITY : -0.5f, 2.0f};
        struct operands o;
        setup(uk, &p, &o);
        check_activation(uk, o.g, n);
        check_activation(uk, o.g, n + 3);
        teardown(&o);
    }
}

static void test_activation(void **state)
{
    (void)state;
    each_level(level_activation);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_edges),       cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_in_place_residual),
        cmocka_unit_test(test_nan),         cmocka_unit_test(test_activation),
        cmocka_unit_test(test_conv),        cmocka_unit_test(test_pack),
        cmocka_unit_test(test_packed_size),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
