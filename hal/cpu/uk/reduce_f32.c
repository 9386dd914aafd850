/* SPDX-License-Identifier: MIT */
/* Reductions of rows, and functions of a row and its reduction. Four vectors hold the partial sums
 * of a row and are folded at the end, so the order of summation depends only on the length. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/math_f32.h"

#if defined UK_LEVEL_AVX512
/* Folds halves until one element is left. */
UK_INLINE float fold_sum(vf v)
{
    v += (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0x4e);
    v += (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0xb1);
    v += (vf)_mm512_permute_ps((__m512)v, 0x4e);
    v += (vf)_mm512_permute_ps((__m512)v, 0xb1);
    return v[0];
}
#else
UK_INLINE float fold_sum(vf v)
{
    UK_UNROLL
    for (int width = UK_VL / 2; width > 0; width /= 2) {
        UK_UNROLL
        for (int i = 0; i < width; i++) {
            v[i] += v[i + width];
        }
    }
    return v[0];
}
#endif

#if defined UK_LEVEL_AVX512
/* Four steps of a few instructions instead of a loop over sixteen lanes. */
UK_INLINE float fold_max(vf v)
{
    v = v_max(v, (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0x4e));
    v = v_max(v, (vf)_mm512_shuffle_f32x4((__m512)v, (__m512)v, 0xb1));
    v = v_max(v, (vf)_mm512_permute_ps((__m512)v, 0x4e));
    v = v_max(v, (vf)_mm512_permute_ps((__m512)v, 0xb1));
    return v[0];
}
#else
UK_INLINE float max_of(float a, float b)
{
    return a != a ? a : b != b ? b : a > b ? a : b;
}

UK_INLINE float fold_max(vf v)
{
    float max = v[0];
    for (int i = 1; i < UK_VL; i++) {
        max = max_of(max, v[i]);
    }
    return max;
}
#endif

#define ONES_8 -1, -1, -1, -1, -1, -1, -1, -1

/* The first |n| < UK_VL floats, and the remaining lanes of |other|. */
UK_INLINE vf load_part_or(const float *p, size_t n, vf other)
{
    static const int32_t lanes[32] = {ONES_8, ONES_8};
    vi is_there;
    memcpy(&is_there, lanes + 16 - n, sizeof(is_there));
    return v_select(is_there, v_load_part(p, n), other);
}

enum term { TERM_X, TERM_SQUARE, TERM_PRODUCT };

/* The term of one element: x, (x - shift)^2 or x * y. */
UK_INLINE vf term(vf x, vf y, vf shift, const enum term kind)
{
    vf d = x - shift;
    return kind == TERM_X ? x : kind == TERM_SQUARE ? d * d : x * y;
}

UK_INLINE float sum_terms(const float *x, const float *y, float shift, size_t n,
                          const enum term kind)
{
    vf sum[4] = {{0}}, vshift = v_splat(shift);
    size_t i = 0;
    for (; n - i >= 4 * UK_VL; i += 4 * UK_VL) {
        UK_UNROLL
        for (size_t j = 0; j < 4; j++) {
            sum[j] += term(v_load(x + i + j * UK_VL), v_load(y + i + j * UK_VL), vshift, kind);
        }
    }
    for (; n - i >= UK_VL; i += UK_VL) {
        sum[0] += term(v_load(x + i), v_load(y + i), vshift, kind);
    }
    if (i < n) {
        /* Missing lanes are set to the shift, which adds nothing. */
        vf last = load_part_or(x + i, n - i, vshift);
        sum[1] += term(last, v_load_part(y + i, n - i), vshift, kind);
    }
    return fold_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

float UK_NAME(sum_f32)(const float *x, size_t n)
{
    return sum_terms(x, x, 0.0f, n, TERM_X);
}

float UK_NAME(sum_squares_f32)(const float *x, size_t n)
{
    return sum_terms(x, x, 0.0f, n, TERM_SQUARE);
}

float UK_NAME(dot_f32)(const float *x, const float *y, size_t n)
{
    return sum_terms(x, y, 0.0f, n, TERM_PRODUCT);
}

float UK_NAME(max_f32)(const float *x, size_t n)
{
    vf max[2] = {v_splat(-INFINITY), v_splat(-INFINITY)};
    size_t i = 0;
    for (; n - i >= 2 * UK_VL; i += 2 * UK_VL) {
        max[0] = v_max(max[0], v_load(x + i));
        max[1] = v_max(max[1], v_load(x + i + UK_VL));
    }
    for (; n - i >= UK_VL; i += UK_VL) {
        max[0] = v_max(max[0], v_load(x + i));
    }
    if (i < n) {
        max[1] = v_max(max[1], load_part_or(x + i, n - i, v_splat(-INFINITY)));
    }
    return fold_max(v_max(max[0], max[1]));
}

/* y = e^(x - max); returns their sum, added in the order of sum_terms. */
static float exp_sum(float *y, const float *x, float max, size_t n)
{
    vf vmax = v_splat(max);
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        v_store(y + i, v_exp_normal(v_load(x + i) - vmax));
    }
    if (i < n) {
        v_store_part(y + i, v_exp_normal(v_load_part(x + i, n - i) - vmax), n - i);
    }
    return sum_terms(y, y, 0.0f, n, TERM_X);
}

/* For a row of |whole| vectors, at most three, and a part of one more, in registers: the same
 * operations on the same numbers. Missing lanes add e^-inf, which is 0, or do not change a NaN. */
UK_INLINE void softmax_short(float *y, const float *x, size_t n, const size_t whole)
{
    vf row[4], sum = {0}, max;
    size_t left = n - whole * UK_VL;
    max = row[whole] = load_part_or(x + whole * UK_VL, left, v_splat(-INFINITY));
    UK_UNROLL
    for (size_t i = 0; i < whole; i++) {
        row[i] = v_load(x + i * UK_VL);
        max = v_max(max, row[i]);
    }
    vf largest = v_splat(fold_max(max));
    UK_UNROLL
    for (size_t i = 0; i <= whole; i++) {
        row[i] = v_exp_normal(row[i] - largest);
        sum += row[i];
    }
    vf factor = v_splat(1.0f / fold_sum(sum));
    UK_UNROLL
    for (size_t i = 0; i < whole; i++) {
        v_store(y + i * UK_VL, row[i] * factor);
    }
    v_store_part(y + whole * UK_VL, row[whole] * factor, left);
}

void UK_NAME(softmax_f32)(float *y, const float *x, size_t n)
{
    must(uk_is_apart(y, x, n));
    switch (n / UK_VL) {
    case 0:
        softmax_short(y, x, n, 0);
        return;
    case 1:
        softmax_short(y, x, n, 1);
        return;
    case 2:
        softmax_short(y, x, n, 2);
        return;
    case 3:
        softmax_short(y, x, n, 3);
        return;
    default:
        break;
    }
    float sum = exp_sum(y, x, UK_NAME(max_f32)(x, n), n);
    UK_NAME(mul_scalar_f32)(y, y, 1.0f / sum, n);
}

/* x - max - log sum e^(x - max). The sum uses a temporary array, since y may be x. */
void UK_NAME(log_softmax_f32)(float *y, const float *x, size_t n)
{
    float max = UK_NAME(max_f32)(x, n), part[4 * UK_VL];
    double sum = 0.0;
    must(uk_is_apart(y, x, n));
    for (size_t i = 0; i < n; i += 4 * UK_VL) {
        size_t count = n - i < 4 * UK_VL ? n - i : 4 * UK_VL;
        sum += (double)exp_sum(part, x + i, max, count);
    }
    float log_sum = (float)log(sum);
    UK_NAME(sub_scalar_f32)(y, x, max, n);
    UK_NAME(sub_scalar_f32)(y, y, log_sum, n);
}

void UK_NAME(layer_norm_f32)(const struct uk_norm_f32 *l)
{
    const size_t n = l->n;
    must(uk_is_apart(l->y, l->x, n));
    float mean = sum_terms(l->x, l->x, 0.0f, n, TERM_X) / (float)n;
    float variance = sum_terms(l->x, l->x, mean, n, TERM_SQUARE) / (float)n;
    vf vmean = v_splat(mean), rstd = v_splat(1.0f / sqrtf(variance + l->epsilon));
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        vf v = (v_load(l->x + i) - vmean) * rstd;
        vf scale = l->scale ? v_load(l->scale + i) : v_splat(1.0f);
        vf shift = l->shift ? v_load(l->shift + i) : (vf){0};
        v_store(l->y + i, v * scale + shift);
    }
    if (i < n) {
        size_t rest = n - i;
        vf v = (v_load_part(l->x + i, rest) - vmean) * rstd;
        vf scale = l->scale ? v_load_part(l->scale + i, rest) : v_splat(1.0f);
        vf shift = l->shift ? v_load_part(l->shift + i, rest) : (vf){0};
        v_store_part(l->y + i, v * scale + shift, rest);
    }
}

enum fold { FOLD_ADD /* to the numbers that are there */, FOLD_SUM, FOLD_MAX };

UK_INLINE vf fold_pixel(vf v, vf in, const enum fold fold)
{
    return fold == FOLD_MAX ? v_max(v, in) : v + in;
}

/* One or more vectors of columns over the whole window; the results stay in registers meanwhile. */
UK_INLINE void fold_columns(float *y, const struct uk_window_f32 *w, size_t column,
                            const int vectors, const enum fold fold)
{
    vf v[4];
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        v[j] = fold == FOLD_ADD ? v_load(y + column + j * UK_VL)
                                : v_splat(fold == FOLD_MAX ? -INFINITY : 0.0f);
    }
    for (size_t line = 0; line < w->lines; line++) {
        const float *x = w->x + (ptrdiff_t)line * w->line + column;
        for (size_t i = 0; i < w->rows; i++, x += w->row) {
            UK_UNROLL
            for (int j = 0; j < vectors; j++) {
                v[j] = fold_pixel(v[j], v_load(x + j * UK_VL), fold);
            }
        }
    }
    UK_UNROLL
    for (int j = 0; j < vectors; j++) {
        v_store(y + column + j * UK_VL, v[j]);
    }
}

/* The last columns, fewer than a vector. */
UK_INLINE void fold_rest(float *y, const struct uk_window_f32 *w, size_t column,
                         const enum fold fold)
{
    size_t rest = w->n - column;
    vf v = fold == FOLD_ADD ? v_load_part(y + column, rest)
                            : v_splat(fold == FOLD_MAX ? -INFINITY : 0.0f);
    for (size_t line = 0; line < w->lines; line++) {
        const float *x = w->x + (ptrdiff_t)line * w->line + column;
        for (size_t i = 0; i < w->rows; i++, x += w->row) {
            v = fold_pixel(v, v_load_part(x, rest), fold);
        }
    }
    v_store_part(y + column, v, rest);
}

UK_INLINE void fold_window(float *y, const struct uk_window_f32 *w, const enum fold fold)
{
    size_t column = 0;
    for (; w->n - column >= 4 * UK_VL; column += 4 * UK_VL) {
        fold_columns(y, w, column, 4, fold);
    }
    for (; w->n - column >= UK_VL; column += UK_VL) {
        fold_columns(y, w, column, 1, fold);
    }
    if (column < w->n) {
        fold_rest(y, w, column, fold);
    }
}

void UK_NAME(rows_add_f32)(float *acc, const float *x, size_t rows, ptrdiff_t row, size_t n)
{
    struct uk_window_f32 w = {.x = x, .lines = 1, .rows = rows, .row = row, .n = n};
    fold_window(acc, &w, FOLD_ADD);
}

void UK_NAME(window_sum_f32)(float *y, const struct uk_window_f32 *w)
{
    fold_window(y, w, FOLD_SUM);
}

void UK_NAME(window_max_f32)(float *y, const struct uk_window_f32 *w)
{
    fold_window(y, w, FOLD_MAX);
}
