/* SPDX-License-Identifier: MIT */
/* Reductions, rows and half precision of every level, against double precision and by the bit. */
#include "config.h"

#include <float.h>

#include "hal/cpu/uk.h"
#include "tests/hal/uk_levels.h"
#include "tests/unit/unit.h"

static const size_t lengths[] = {0,  1,  2,  3,  7,  8,  15,  16,  17,   31,  32,
                                 33, 48, 49, 63, 64, 65, 100, 127, 1000, 4099};
#define LENGTH_COUNT (sizeof(lengths) / sizeof(lengths[0]))
#define LENGTH_MAX 4099

static void assert_near(float got, double want, double tolerance)
{
    if (!(fabs((double)got - want) <= tolerance)) {
        fail_msg("%.9g, expected %.12g within %g", (double)got, want, tolerance);
    }
}

static void level_sums(const struct hal_cpu_uk *uk)
{
    float *x = random_floats(LENGTH_MAX, 1), *y = random_floats(LENGTH_MAX, 2);
    for (size_t l = 0; l < LENGTH_COUNT; l++) {
        size_t n = lengths[l];
        double sum = 0.0, squares = 0.0, dot = 0.0, max = -INFINITY;
        for (size_t i = 0; i < n; i++) {
            sum += (double)x[i];
            squares += (double)x[i] * (double)x[i];
            dot += (double)x[i] * (double)y[i];
            max = fmax(max, (double)x[i]);
        }
        double tolerance = 1e-7 * (double)(n + 4);
        assert_near(uk->sum_f32(x, n), sum, tolerance);
        assert_near(uk->sum_squares_f32(x, n), squares, tolerance);
        assert_near(uk->dot_f32(x, y, n), dot, tolerance);
        assert_true((double)uk->max_f32(x, n) == max);
    }
    free(x);
    free(y);
}

static void test_sums(void **state)
{
    (void)state;
    each_level(level_sums);
}

/* One NaN anywhere is the result; infinities meet as IEEE 754 says. */
static void level_special(const struct hal_cpu_uk *uk)
{
    float x[70];
    for (size_t at = 0; at < 70; at++) {
        for (size_t i = 0; i < 70; i++) {
            x[i] = (float)i;
        }
        x[at] = NAN;
        assert_true(isnan(uk->max_f32(x, 70)) && isnan(uk->sum_f32(x, 70)));
        x[at] = INFINITY;
        assert_true(uk->max_f32(x, 70) == INFINITY && uk->sum_f32(x, 70) == INFINITY);
        uk->softmax_f32(x, x, 70);
        assert_true(isnan(x[at]) && isnan(x[(at + 1) % 70]));
    }
}

static void test_special(void **state)
{
    (void)state;
    each_level(level_special);
}

/* Elements that a mask takes out have no part in a row, in short rows and in long ones, also if the
 * mask adds -100: a subnormal number would be slow to compute. */
static void level_masked(const struct hal_cpu_uk *uk)
{
    for (size_t n = 2; n < 70; n++) {
        float x[70], y[70];
        for (size_t i = 0; i < n; i++) {
            x[i] = i % 2 ? -INFINITY : 1.0f;
        }
        uk->softmax_f32(y, x, n);
        for (size_t i = 0; i < n; i++) {
            assert_near(y[i], i % 2 ? 0.0 : 1.0 / (double)((n + 1) / 2), 1e-6);
            assert_true(i % 2 == 0 || y[i] == 0.0f);
            x[i] = -INFINITY;
        }
        uk->softmax_f32(y, x, n);
        assert_true(isnan(y[0]) && isnan(y[n - 1]));
        x[n - 1] = NAN;
        uk->softmax_f32(y, x, n);
        assert_true(isnan(y[0]) && isnan(y[n - 1]));
        for (size_t i = 0; i < n; i++) {
            x[i] = i % 2 ? -88.0f - (float)i / 4.0f : 0.0f;
        }
        uk->softmax_f32(y, x, n);
        for (size_t i = 0; i < n; i++) {
            assert_near(y[i], i % 2 ? 0.0 : 1.0 / (double)((n + 1) / 2), 1e-6);
            assert_true(i % 2 == 0 || y[i] == 0.0f);
        }
    }
}

static void test_masked(void **state)
{
    (void)state;
    each_level(level_masked);
}

static void level_softmax(const struct hal_cpu_uk *uk)
{
    float *x = random_floats(LENGTH_MAX, 3), y[LENGTH_MAX], z[LENGTH_MAX];
    for (size_t l = 1; l < LENGTH_COUNT; l++) {
        size_t n = lengths[l];
        double sum = 0.0;
        for (size_t i = 0; i < n; i++) {
            x[i] = x[i] * 3.0f + (i % 3 ? 0.0f : 500.0f);
            sum += exp((double)x[i] - 500.0);
        }
        uk->softmax_f32(y, x, n);
        uk->log_softmax_f32(z, x, n);
        for (size_t i = 0; i < n; i++) {
            double want = exp((double)x[i] - 500.0) / sum;
            assert_near(y[i], want, want * 2e-6 + 1.2e-38);
            assert_near(z[i], (double)x[i] - 500.0 - log(sum), 1e-4);
            x[i] = (x[i] - (i % 3 ? 0.0f : 500.0f)) / 3.0f;
        }
        memcpy(z, x, n * sizeof(float));
        uk->softmax_f32(y, x, n);
        uk->softmax_f32(z, z, n);
        assert_memory_equal(y, z, n * sizeof(float));
        memcpy(z, x, n * sizeof(float));
        uk->log_softmax_f32(y, x, n);
        uk->log_softmax_f32(z, z, n);
        assert_memory_equal(y, z, n * sizeof(float));
    }
    free(x);
}

static void test_softmax(void **state)
{
    (void)state;
    each_level(level_softmax);
}

static void level_layer_norm(const struct hal_cpu_uk *uk)
{
    float *x = random_floats(LENGTH_MAX, 4), y[LENGTH_MAX];
    float *scale = random_floats(LENGTH_MAX, 5), *shift = random_floats(LENGTH_MAX, 6);
    for (size_t l = 1; l < LENGTH_COUNT; l++) {
        size_t n = lengths[l];
        double mean = 0.0, variance = 0.0;
        for (size_t i = 0; i < n; i++) {
            x[i] += 10.0f; /* a mean that a variance in one pass would drown in */
            mean += (double)x[i] / (double)n;
        }
        for (size_t i = 0; i < n; i++) {
            variance += ((double)x[i] - mean) * ((double)x[i] - mean) / (double)n;
        }
        struct uk_norm_f32 norm = {.y = y,
                                   .x = x,
                                   .scale = l % 2 ? scale : NULL,
                                   .shift = l % 3 ? shift : NULL,
                                   .n = n,
                                   .epsilon = 1e-2f};
        uk->layer_norm_f32(&norm);
        for (size_t i = 0; i < n; i++) {
            double want = ((double)x[i] - mean) / sqrt(variance + (double)norm.epsilon);
            want *= norm.scale ? (double)scale[i] : 1.0;
            want += norm.shift ? (double)shift[i] : 0.0;
            assert_near(y[i], want, 3e-5);
            x[i] -= 10.0f;
        }
    }
    free(x);
    free(scale);
    free(shift);
}

static void test_layer_norm(void **state)
{
    (void)state;
    each_level(level_layer_norm);
}

static void level_rows(const struct hal_cpu_uk *uk)
{
    float *x = random_floats(9 * 210, 7), sums[210], window_sums[210], maxima[210];
    for (size_t n = 1; n < 200; n++) {
        /* The nine rows as a window of 3 x 3. */
        const struct uk_window_f32 w = {
            .x = x, .line = 3 * 210, .row = 210, .lines = 3, .rows = 3, .n = n};
        for (size_t j = 0; j < 210; j++) {
            sums[j] = window_sums[j] = maxima[j] = 0.25f;
        }
        x[3 * 210 + n / 2] = NAN;
        uk->rows_add_f32(sums, x, 9, 210, n);
        uk->window_sum_f32(window_sums, &w);
        uk->window_max_f32(maxima, &w);
        for (size_t j = 0; j < n; j++) {
            float sum = 0.25f, window_sum = 0.0f, max = -INFINITY;
            for (size_t i = 0; i < 9; i++) {
                sum += x[i * 210 + j];
                window_sum += x[i * 210 + j];
                max = fmaxf(max, x[i * 210 + j]);
            }
            assert_true(j == n / 2
                            ? isnan(sums[j]) && isnan(window_sums[j]) && isnan(maxima[j])
                            : sums[j] == sum && window_sums[j] == window_sum && maxima[j] == max);
        }
        assert_true(sums[n] == 0.25f && window_sums[n] == 0.25f && maxima[n] == 0.25f);
        x[3 * 210 + n / 2] = 0.0f;
    }
    const struct uk_window_f32 empty = {.x = x, .lines = 3, .n = 210};
    uk->window_sum_f32(sums, &empty);
    uk->window_max_f32(maxima, &empty);
    assert_true(sums[209] == 0.0f && maxima[209] == -INFINITY);
    free(x);
}

static void test_rows(void **state)
{
    (void)state;
    each_level(level_rows);
}

/* The value of a binary16, from its parts. */
static double half_value(uint16_t h)
{
    int exponent = h >> 10 & 31, fraction = h & 1023;
    double sign = h & 0x8000 ? -1.0 : 1.0;
    if (exponent == 31) {
        return fraction ? NAN : sign * INFINITY;
    }
    return sign * (exponent ? ldexp(1024 + fraction, exponent - 25) : ldexp(fraction, -24));
}

/* All of them there and back; halfway between two of them goes to the even one. */
static void level_f16(const struct hal_cpu_uk *uk)
{
    static uint16_t halves[65536], back[65536];
    static float floats[65536];
    for (uint32_t i = 0; i < 65536; i++) {
        halves[i] = (uint16_t)i;
    }
    uk->f16_to_f32(floats, halves, 65535);
    uk->f16_to_f32(floats + 65535, halves + 65535, 1);
    uk->f32_to_f16(back, floats, 65536);
    for (uint32_t i = 0; i < 65536; i++) {
        double want = half_value((uint16_t)i);
        if (isnan(want)) {
            assert_true(isnan(floats[i]) && isnan(half_value(back[i])));
        } else {
            assert_true((double)floats[i] == want && back[i] == i);
        }
    }
    for (uint32_t i = 0; i < 0x7bff; i++) {
        float middle = (floats[i] + floats[i + 1]) / 2, above = nextafterf(middle, INFINITY);
        uk->f32_to_f16(back, &middle, 1);
        assert_int_equal(back[0], i + (i & 1));
        uk->f32_to_f16(back, &above, 1);
        assert_int_equal(back[0], i + 1);
    }
    const float large[] = {65519.996f, 65520.0f, FLT_MAX, -FLT_MAX, 0x1p-25f, -0x1p-149f};
    const uint16_t want[] = {0x7bff, 0x7c00, 0x7c00, 0xfc00, 0, 0x8000};
    uk->f32_to_f16(back, large, 6);
    assert_memory_equal(back, want, sizeof(want));
}

static void test_f16(void **state)
{
    (void)state;
    each_level(level_f16);
}

#define BF16_MOST 67 /* some vectors of every level, and a part of one */

/* Arrays of all lengths, whose neighbours stay. */
static void level_bf16(const struct hal_cpu_uk *uk)
{
    const uint32_t bits[10] = {0x3f800000, 0x3f808000, 0x3f818000, 0x3f808001, 0x7f7fffff,
                               0x7f800000, 0x7f800001, 0xff800000, 0x80000000, 0x00008001};
    const uint16_t want[10] = {0x3f80, 0x3f80, 0x3f82, 0x3f81, 0x7f80,
                               0x7f80, 0x7fc0, 0xff80, 0x8000, 1};
    for (size_t n = 0; n < BF16_MOST; n++) {
        const size_t kinds = n % 2 ? 10 : 9; /* with subnormal numbers and without */
        float x[BF16_MOST] = {0}, wide[BF16_MOST + 1];
        uint16_t y[BF16_MOST + 1];
        for (size_t i = 0; i < n; i++) {
            memcpy(x + i, bits + i % kinds, sizeof(*x));
        }
        y[n] = 77;
        wide[n] = 77;
        uk->f32_to_bf16(y, x, n);
        uk->bf16_to_f32(wide, y, n);
        for (size_t i = 0; i < n; i++) {
            uint32_t widened, expected = (uint32_t)want[i % kinds] << 16;
            memcpy(&widened, wide + i, sizeof(widened));
            assert_int_equal(y[i], want[i % kinds]);
            assert_int_equal(widened, expected);
        }
        assert_true(y[n] == 77 && wide[n] == 77);
    }
}

static void test_bf16(void **state)
{
    (void)state;
    each_level(level_bf16);
}

enum { APART = 5 }; /* rows of keys are further apart than they are long */

/* |n| rows of bytes, each with its scale behind it, and the same as floats in |kv|. */
static char *make_rows_of_bytes(float *kv, size_t n, size_t depth)
{
    size_t row = depth + sizeof(float) + APART;
    char *rows = malloc(n * row + 1);
    assert_non_null(rows);
    for (size_t j = 0; j < n; j++) {
        float scale = 0.25f / (float)(j + 3);
        for (size_t i = 0; i < depth; i++) {
            int8_t byte = (int8_t)((j * 83 + i * 37) % 255 - 127);
            memcpy(rows + j * row + i, &byte, 1);
            kv[j * (depth + APART) + i] = scale * (float)byte;
        }
        memcpy(rows + j * row + depth, &scale, sizeof(scale));
    }
    return rows;
}

/* A few queries and keys. */
static void run_attend(const struct hal_cpu_uk *uk, size_t rows, size_t n, size_t depth,
                       bool has_bytes)
{
    enum { SCORES_ROW = 16 };
    float *q = random_floats(rows * depth, 1), *kv = random_floats(n * (depth + APART), 2);
    char *bytes = has_bytes ? make_rows_of_bytes(kv, n, depth) : NULL;
    float *sums = random_floats(rows * depth + 1, 3), *before = random_floats(rows * depth, 3);
    float scores[9 * SCORES_ROW] = {0};
    struct uk_attend_f32 call = {
        .q = q,
        .scores = scores,
        .sums = sums,
        .kv = bytes ? (const void *)bytes : kv,
        .scores_row = SCORES_ROW,
        .kv_row =
            (ptrdiff_t)(bytes ? depth + sizeof(float) + APART : (depth + APART) * sizeof(float)),
        .rows = rows,
        .n = n,
        .depth = depth,
    };
    sums[rows * depth] = 99;
    (bytes ? uk->attend_scores_i8 : uk->attend_scores_f32)(&call);
    for (size_t r = 0; r < rows; r++) {
        for (size_t j = 0; j < SCORES_ROW; j++) {
            double want = 0;
            for (size_t i = 0; j < n && i < depth; i++) {
                want += (double)q[r * depth + i] * (double)kv[j * (depth + APART) + i];
            }
            assert_near(scores[r * SCORES_ROW + j], want, bytes ? 1e-4 : 1e-5);
        }
    }
    (bytes ? uk->attend_sums_i8 : uk->attend_sums_f32)(&call);
    for (size_t i = 0; i < rows * depth; i++) {
        double want = (double)before[i];
        for (size_t j = 0; j < n; j++) {
            want += (double)scores[i / depth * SCORES_ROW + j] *
                    (double)kv[j * (depth + APART) + i % depth];
        }
        assert_near(sums[i], want, bytes ? 1e-2 : 1e-4);
    }
    assert_true(sums[rows * depth] == 99);
    free(bytes);
    free(q);
    free(kv);
    free(sums);
    free(before);
}

static void level_attend(const struct hal_cpu_uk *uk)
{
    for (size_t rows = 1; rows <= 9; rows++) {
        for (size_t n = 0; n <= 10; n++) {
            for (size_t depth = 1; depth <= 140; depth += depth < 40 ? 5 : 31) {
                run_attend(uk, rows, n, depth, false);
                run_attend(uk, rows, n, depth, true);
            }
        }
    }
}

static void test_attend(void **state)
{
    (void)state;
    each_level(level_attend);
}

static double affine(const struct uk_affine_f32 *a, size_t r, size_t j)
{
    double x = (double)a->x[(ptrdiff_t)r * a->x_row + (ptrdiff_t)j] * (double)a->scale[j];
    double y = x + (a->shift ? (double)a->shift[j] : 0.0);
    return y < (double)a->min ? (double)a->min : y > (double)a->max ? (double)a->max : y;
}

/* Every number of columns to past the widest block; bytes between rows stay. */
static void level_affine(const struct hal_cpu_uk *uk)
{
    float *x = random_floats(5 * 203, 1), *scale = random_floats(200, 2);
    float *shift = random_floats(200, 3), *y = random_floats(5 * 205, 4);
    for (size_t n = 0; n <= 200; n++) {
        struct uk_affine_f32 a = {.y = y,
                                  .x = x,
                                  .scale = scale,
                                  .shift = n % 3 ? shift : NULL,
                                  .y_row = (ptrdiff_t)n + 5,
                                  .x_row = (ptrdiff_t)n + 3,
                                  .rows = n % 6,
                                  .n = n,
                                  .min = n % 2 ? 0.0f : -INFINITY,
                                  .max = n % 4 ? INFINITY : 0.5f};
        x[n / 2] = n % 7 ? x[n / 2] : NAN;
        for (size_t i = 0; i < 5 * 205; i++) {
            y[i] = 77.0f;
        }
        uk->affine_f32(&a);
        for (size_t r = 0; r < 5; r++) {
            for (size_t j = 0; j < n + 5; j++) {
                float got = y[r * (n + 5) + j];
                double want = r < a.rows && j < n ? affine(&a, r, j) : 77.0;
                assert_true(isnan(want) ? isnan(got) : fabs((double)got - want) <= 2e-7);
            }
        }
    }
    free(x);
    free(scale);
    free(shift);
    free(y);
}

static void test_affine(void **state)
{
    (void)state;
    each_level(level_affine);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),       cmocka_unit_test(test_special),
        cmocka_unit_test(test_masked),     cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_layer_norm), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_f16),        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_attend),     cmocka_unit_test(test_affine),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
