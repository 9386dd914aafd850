/* SPDX-License-Identifier: MIT */
/*
 * The elementwise functions of every level against the C library in double precision, over floats
 * of every magnitude and the special ones, in units in the last place of the true value.
 */
#include "config.h"

#include <float.h>

#include "hal/cpu/uk.h"
#include "hal/cpu/uk_subnormals.h"
#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

#define COUNT 200003 /* a multiple of no vector length */

static double relu(double x)
{
    return x < 0.0 ? 0.0 : x;
}

/* Not rsqrt(): math.h has one since C23. */
static double inverse_sqrt(double x)
{
    return 1.0 / sqrt(x);
}

static double reciprocal(double x)
{
    return 1.0 / x;
}

static double square(double x)
{
    return x * x;
}

static double neg(double x)
{
    return -x;
}

static double sign(double x)
{
    return x > 0.0 ? 1.0 : x < 0.0 ? -1.0 : isnan(x) ? x : 0.0;
}

static double sigmoid(double x)
{
    return 1.0 / (1.0 + exp(-x));
}

static double silu(double x)
{
    return x / (1.0 + exp(-x));
}

static double gelu(double x)
{
    return 0.5 * x * (1.0 + erf(x * sqrt(0.5)));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1.0 + tanh(sqrt(2.0 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
}

static double hardsigmoid(double x)
{
    return isnan(x) ? x : fmin(fmax(x + 3.0, 0.0), 6.0) / 6.0;
}

static double hardswish(double x)
{
    return x * hardsigmoid(x);
}

/* The difference that each may have: so many ulps of the result, or this part of |x|. */
static const struct function {
    const char *name;
    double (*f)(double);
    double ulps, part_of_x;
} functions[UK_UNARY_COUNT] = {
    [UK_ABS] = {"abs", fabs, 0, 0},
    [UK_NEG] = {"neg", neg, 0, 0},
    [UK_RELU] = {"relu", relu, 0, 0},
    [UK_SQRT] = {"sqrt", sqrt, 0.5, 0},
    [UK_RSQRT] = {"rsqrt", inverse_sqrt, 1.5, 0},
    [UK_RECIPROCAL] = {"reciprocal", reciprocal, 0.5, 0},
    [UK_SQUARE] = {"square", square, 0.5, 0},
    [UK_FLOOR] = {"floor", floor, 0, 0},
    [UK_CEIL] = {"ceil", ceil, 0, 0},
    [UK_TRUNC] = {"trunc", trunc, 0, 0},
    [UK_ROUND] = {"round", rint, 0, 0},
    [UK_SIGN] = {"sign", sign, 0, 0},
    [UK_EXP] = {"exp", exp, 2, 0},
    [UK_LOG] = {"log", log, 2, 0},
    [UK_SIN] = {"sin", sin, 2, 0},
    [UK_COS] = {"cos", cos, 2, 0},
    [UK_TANH] = {"tanh", tanh, 2, 0},
    [UK_ERF] = {"erf", erf, 2, 0},
    [UK_SIGMOID] = {"sigmoid", sigmoid, 4, 1.2e-38},
    [UK_SILU] = {"silu", silu, 4, 1.2e-38},
    [UK_GELU] = {"gelu", gelu, 4, 1e-7},
    [UK_GELU_TANH] = {"gelu_tanh", gelu_tanh, 4, 4e-7},
    [UK_HARDSIGMOID] = {"hardsigmoid", hardsigmoid, 2, 1e-7},
    [UK_HARDSWISH] = {"hardswish", hardswish, 4, 1e-6},
};

/* Distance in units in the last place of |want| as a float; 0 for the same special value. */
static double ulps(float got, double want)
{
    float nearest = (float)want;
    if (isnan(got) || isnan(nearest)) {
        return isnan(got) && isnan(nearest) ? 0.0 : INFINITY;
    }
    if (got == nearest) {
        return isinf(nearest) ? 0.0 : fabs((double)got - want) / 0x1p-149 < 0.5 ? 0.0 : 0.5;
    }
    if (isinf(nearest) || isinf(got)) {
        return fabs(want) < 3.4028235e38 * 1.0000002 && isinf(got) &&
                       fabs(want) > 3.4028234e38 * 0.9999998
                   ? 1.0
                   : INFINITY;
    }
    int exponent;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1.0, exponent - 24 < -149 ? -149 : exponent - 24);
}

static float *make_inputs(void)
{
    static const float special[] = {
        0.0f,      -0.0f,      INFINITY,   -INFINITY,  NAN,      1.0f,      -1.0f,     0.5f,
        -0.5f,     1.5f,       2.5f,       -2.5f,      FLT_MAX,  -FLT_MAX,  FLT_MIN,   -FLT_MIN,
        0x1p-149f, -0x1p-149f, 8388608,    8388607.5f, -8388609, 88.72283f, 88.72284f, -87.33655f,
        -103.97f,  -104.0f,    -150.0f,    0.625f,     0.92f,    4.0f,      8192.0f,   8193.0f,
        1e30f,     3.1415927f, 1.5707964f, 6.2831855f};
    const size_t special_count = sizeof(special) / sizeof(special[0]);
    float *x = random_floats(COUNT, 1);
    uint32_t seed = 99;
    memcpy(x, special, sizeof(special));
    for (size_t i = special_count; i < COUNT; i++) {
        uint32_t bits = next_random(&seed) << 16 ^ next_random(&seed);
        if (i % 4 == 0) {
            memcpy(&x[i], &bits, sizeof(bits)); /* any float at all */
        } else {
            x[i] = x[i] * ldexpf(1.0f, (int)(bits % 16) - 8);
        }
    }
    return x;
}

static void check_function(const struct hal_cpu_uk *uk, enum uk_unary which, const float *x)
{
    const struct function *f = &functions[which];
    float *y = random_floats(COUNT, 2);
    double worst = 0.0;
    uk->unary_f32[which](y, x, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        double want = f->f((double)x[i]), off = ulps(y[i], want);
        if (fabs((double)y[i] - want) <= f->part_of_x * fabs((double)x[i])) {
            off = fmin(off, f->ulps);
        }
        worst = fmax(worst, off);
        if (!(off <= f->ulps)) {
            fail_msg("%s %s(%.9g) = %.9g, expected %.9g: %g ulps", uk->name, f->name, (double)x[i],
                     (double)y[i], want, off);
        }
    }
    printf("%s %s: within %.2f ulps\n", uk->name, f->name, worst);
    free(y);
}

static void level_functions(const struct hal_cpu_uk *uk)
{
    float *x = make_inputs();
    for (int i = 0; i < UK_UNARY_COUNT; i++) {
        check_function(uk, (enum uk_unary)i, x);
    }
    free(x);
}

static void test_functions(void **state)
{
    (void)state;
    each_level(level_functions);
}

/* Results that are rounded to bfloat16: see uk.h. */
static void level_gelu_short(const struct hal_cpu_uk *uk)
{
    float *x = make_inputs(), *y = random_floats(COUNT, 2), one;
    uk->gelu_short_f32(y, x, COUNT);
    for (size_t i = 0; i < COUNT; i++) {
        double want = gelu((double)x[i]), off = fabs((double)y[i] - want);
        bool is_near = x[i] >= -5.5f ? off <= 3.4e-4 * fabs(want) || off <= 0x1p-126
                                     : y[i] <= 0.0f && y[i] > -3e-7f;
        if (!(isnan(x[i]) ? isnan(y[i]) : is_near || (double)y[i] == want)) {
            fail_msg("%s gelu_short(%.9g) = %.9g, expected %.9g", uk->name, (double)x[i],
                     (double)y[i], want);
        }
        if (i % 97 == 0) { /* the same alone and in a partial vector */
            uk->gelu_short_f32(&one, x + i, 1);
            assert_memory_equal(&one, &y[i], sizeof(one));
        }
    }
    free(x);
    free(y);
}

static void test_gelu_short(void **state)
{
    (void)state;
    each_level(level_gelu_short);
}

/* Where the C library and IEEE 754 keep the sign of zero, so do we. */
static void level_zeros(const struct hal_cpu_uk *uk)
{
    static const enum uk_unary keep[] = {UK_FLOOR, UK_CEIL, UK_TRUNC, UK_ROUND,
                                         UK_SIN,   UK_TANH, UK_ERF,   UK_SQRT};
    for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++) {
        float x[2] = {-0.0f, 0.0f}, y[2];
        uk->unary_f32[keep[i]](y, x, 2);
        assert_true(signbit(y[0]) && !signbit(y[1]));
    }
    float half = -0.5f, y;
    uk->unary_f32[UK_CEIL](&y, &half, 1);
    assert_true(y == 0.0f && signbit(y));
    uk->unary_f32[UK_ROUND](&y, &half, 1);
    assert_true(y == 0.0f && signbit(y));
}

static void test_zeros(void **state)
{
    (void)state;
    each_level(level_zeros);
}

/* An element is the same bits first in an array, alone, in the last partial vector, in place. */
static void level_same_bits(const struct hal_cpu_uk *uk)
{
    float *x = make_inputs(), y[50], one;
    for (int f = 0; f < UK_UNARY_COUNT; f++) {
        for (size_t i = 0; i + 50 < 2000; i += 37) {
            uk->unary_f32[f](y, x + i, 47);
            for (size_t j = 0; j < 47; j++) {
                uk->unary_f32[f](&one, x + i + j, 1);
                assert_memory_equal(&one, &y[j], sizeof(one));
            }
            memcpy(y, x + i, sizeof(y));
            uk->unary_f32[f](y, y, 46);
            assert_memory_equal(&y[46], x + i + 46, 4 * sizeof(float));
            uk->unary_f32[f](&one, x + i + 45, 1);
            assert_memory_equal(&one, &y[45], sizeof(one));
        }
    }
    free(x);
}

static void test_same_bits(void **state)
{
    (void)state;
    each_level(level_same_bits);
}

static float binary(enum uk_binary op, float a, float b)
{
    switch (op) {
    case UK_ADD:
        return a + b;
    case UK_SUB:
        return a - b;
    case UK_MUL:
        return a * b;
    case UK_DIV:
        return a / b;
    case UK_MIN:
        return isnan(a) || isnan(b) ? NAN : fminf(a, b);
    case UK_MAX:
        return isnan(a) || isnan(b) ? NAN : fmaxf(a, b);
    case UK_BINARY_COUNT:
        break;
    }
    return 0.0f;
}

static bool is_same(float a, float b)
{
    return a == b || (isnan(a) && isnan(b));
}

static void level_binary(const struct hal_cpu_uk *uk)
{
    float *a = make_inputs(), *b = make_inputs(), y[300];
    const float *second = b + 11; /* the special values meet each other */
    for (int op = 0; op < UK_BINARY_COUNT; op++) {
        for (size_t n = 0; n < 280; n += n < 40 ? 1 : 60) {
            y[n] = 7.0f;
            uk->binary_f32[op](y, a, second, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(is_same(y[i], binary((enum uk_binary)op, a[i], second[i])));
            }
            uk->scalar_f32[op](y, a, 0.75f, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(is_same(y[i], binary((enum uk_binary)op, a[i], 0.75f)));
            }
            uk->reversed_f32[op](y, a, -3.0f, n);
            for (size_t i = 0; i < n; i++) {
                assert_true(is_same(y[i], binary((enum uk_binary)op, -3.0f, a[i])));
            }
            assert_true(y[n] == 7.0f);
        }
    }
    free(a);
    free(b);
}

static void test_binary(void **state)
{
    (void)state;
    each_level(level_binary);
}

static void level_parameters(const struct hal_cpu_uk *uk)
{
    float *x = make_inputs(), y[100];
    uk->clamp_f32(y, x, -0.5f, 6.0f, 99);
    for (size_t i = 0; i < 99; i++) {
        float want = x[i] < -0.5f ? -0.5f : x[i] > 6.0f ? 6.0f : x[i];
        assert_true(is_same(y[i], want));
    }
    uk->leaky_relu_f32(y, x, 0.01f, 99);
    for (size_t i = 0; i < 99; i++) {
        assert_true(is_same(y[i], x[i] > 0.0f ? x[i] : x[i] * 0.01f));
    }
    uk->add_scaled_f32(y, x + 40, x + 50, 0.5f, 47);
    for (size_t i = 0; i < 47; i++) {
        /* Halving is exact, so fused or not is the same. */
        assert_true(is_same(y[i], x[40 + i] + x[50 + i] * 0.5f));
    }
    free(x);
}

static void test_parameters(void **state)
{
    (void)state;
    each_level(level_parameters);
}

/* What is written and what is read, and only until the mode is given back. */
static void test_subnormals(void **state)
{
    (void)state;
    volatile float tiny = FLT_MIN, quarter = 0.25f, large = 4;
    volatile float subnormal = tiny * quarter;
    assert_true(subnormal > 0 && subnormal * large == tiny);
    uint64_t mode = uk_subnormals_drop();
    volatile float written = tiny * quarter, read = subnormal * large;
    uk_subnormals_keep(mode);
    if (UK_SUBNORMALS_ARE_ZEROS) {
        assert_true(written == 0 && read == 0);
    }
    assert_true(subnormal * large == tiny);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_functions),  cmocka_unit_test(test_gelu_short),
        cmocka_unit_test(test_zeros),      cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_binary),     cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_subnormals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
