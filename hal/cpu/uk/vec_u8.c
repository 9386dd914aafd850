/* SPDX-License-Identifier: MIT */
/* Elementwise functions of 8-bit integers. Functions with scales compute in floats in registers. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/simd_u8.h"

UK_INLINE vf v_float(vi x)
{
    return __builtin_convertvector(x, vf);
}

UK_INLINE vb add_block(const struct uk_add_u8 *s, vb a, vb b)
{
    vi x[4], y[4];
    v_spread(a, x);
    v_spread(b, y);
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        vf v = v_float(y[q]) * v_splat(s->b_scale) + v_splat(s->bias);
        v = v_float(x[q]) * v_splat(s->a_scale) + v;
        x[q] = v_round_int(v_lesser(v, v_splat(s->max)));
    }
    return v_gather(x, 0, (uint8_t)s->min);
}

void UK_NAME(add_u8)(const struct uk_add_u8 *s)
{
    size_t i = 0, rest;
    vb y, none = {0};
    for (; s->n - i >= UK_VECTOR_BYTES; i += UK_VECTOR_BYTES) {
        y = add_block(s, V_GET(vb, s->a + i), s->b ? V_GET(vb, s->b + i) : none);
        V_PUT(s->y + i, y);
    }
    rest = s->n - i;
    if (rest > 0) {
        y = add_block(s, v_load_bytes(s->a + i, rest), s->b ? v_load_bytes(s->b + i, rest) : none);
        v_store_bytes(s->y + i, y, rest);
    }
}

UK_INLINE vb mul_block(const struct uk_mul_u8 *s, vb a, vb b)
{
    vi x[4], y[4];
    v_spread(a, x);
    v_spread(b, y);
    UK_UNROLL
    for (int q = 0; q < 4; q++) {
        vf v = (v_float(x[q]) - v_splat(s->a_zero)) * (v_float(y[q]) - v_splat(s->b_zero));
        v = v * v_splat(s->scale) + v_splat(s->bias);
        x[q] = v_round_int(v_lesser(v, v_splat(s->max)));
    }
    return v_gather(x, 0, (uint8_t)s->min);
}

void UK_NAME(mul_u8)(const struct uk_mul_u8 *s)
{
    size_t i = 0, rest;
    vb y;
    for (; s->n - i >= UK_VECTOR_BYTES; i += UK_VECTOR_BYTES) {
        y = mul_block(s, V_GET(vb, s->a + i), V_GET(vb, s->b + i));
        V_PUT(s->y + i, y);
    }
    rest = s->n - i;
    if (rest > 0) {
        y = mul_block(s, v_load_bytes(s->a + i, rest), v_load_bytes(s->b + i, rest));
        v_store_bytes(s->y + i, y, rest);
    }
}

UK_INLINE vb larger(vb a, vb b)
{
#ifdef V_NARROWS
    return v_max_1(a, b);
#else
    vb is_more = (vb)(a > b);
    return (a & is_more) | (b & ~is_more);
#endif
}

void UK_NAME(window_max_u8)(uint8_t *y, const struct uk_window_u8 *w)
{
    for (size_t j = 0; j < w->n; j += UK_VECTOR_BYTES) {
        size_t left = w->n - j < UK_VECTOR_BYTES ? w->n - j : UK_VECTOR_BYTES;
        vb most = {0};
        for (size_t l = 0; l < w->lines; l++) {
            const uint8_t *x = w->x + (ptrdiff_t)l * w->line + j;
            for (size_t r = 0; r < w->rows; r++, x += w->row) {
                most = larger(most, v_load_bytes(x, left));
            }
        }
        v_store_bytes(y + j, most, left);
    }
}

void UK_NAME(lookup_u8)(uint8_t *y, const uint8_t *x, const uint8_t table[256], size_t n)
{
    for (size_t i = 0; i < n; i++) {
        y[i] = table[x[i]];
    }
}

/* The sums of a block stay in registers, in the order of v_spread(), until all rows are added. */
void UK_NAME(rows_add_u8)(int32_t *acc, const uint8_t *x, size_t rows, ptrdiff_t row, size_t n)
{
    for (size_t c = 0; c < n; c += UK_VECTOR_BYTES) {
        size_t left = n - c, width = left < UK_VECTOR_BYTES ? left : UK_VECTOR_BYTES;
        vi sums[4] = {0};
        for (size_t i = 0; i < rows; i++) {
            vi y[4];
            v_spread(v_load_bytes(x + (ptrdiff_t)i * row + c, width), y);
            UK_UNROLL
            for (int q = 0; q < 4; q++) {
                sums[q] += y[q];
            }
        }
        for (size_t j = 0; j < width; j++) {
            acc[c + j] += sums[j / 4 % 4][j / 16 * 4 + j % 4];
        }
    }
}
