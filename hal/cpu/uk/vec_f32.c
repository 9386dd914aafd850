/* SPDX-License-Identifier: MIT */
/* Elementwise functions of contiguous floats. The last vector of an array is computed in the same
 * way with fewer lanes, so an element's result does not depend on its position. */
#include "config.h"

#include "hal/cpu/uk/level.h"
#include "hal/cpu/uk/math_f32.h"

UK_INLINE vf v_add(vf a, vf b)
{
    return a + b;
}

UK_INLINE vf v_sub(vf a, vf b)
{
    return a - b;
}

UK_INLINE vf v_mul(vf a, vf b)
{
    return a * b;
}

UK_INLINE vf v_div(vf a, vf b)
{
    return a / b;
}

#define UNARY(upper, lower)                                                                        \
    void UK_NAME(lower##_f32)(float *y, const float *x, size_t n)                                  \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            v_store(y + i, v_##lower(v_load(x + i)));                                              \
        }                                                                                          \
        if (i < n) {                                                                               \
            v_store_part(y + i, v_##lower(v_load_part(x + i, n - i)), n - i);                      \
        }                                                                                          \
    }
UK_UNARY_F32(UNARY)
UNARY(GELU_SHORT, gelu_short)

#define BINARY(upper, lower)                                                                       \
    void UK_NAME(lower##_vector_f32)(float *y, const float *a, const float *b, size_t n)           \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            v_store(y + i, v_##lower(v_load(a + i), v_load(b + i)));                               \
        }                                                                                          \
        if (i < n) {                                                                               \
            vf va = v_load_part(a + i, n - i), vb = v_load_part(b + i, n - i);                     \
            v_store_part(y + i, v_##lower(va, vb), n - i);                                         \
        }                                                                                          \
    }
UK_BINARY_F32(BINARY)

#define SCALAR(upper, lower)                                                                       \
    void UK_NAME(lower##_scalar_f32)(float *y, const float *x, float s, size_t n)                  \
    {                                                                                              \
        vf vs = v_splat(s);                                                                        \
        size_t i = 0;                                                                              \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            v_store(y + i, v_##lower(v_load(x + i), vs));                                          \
        }                                                                                          \
        if (i < n) {                                                                               \
            v_store_part(y + i, v_##lower(v_load_part(x + i, n - i), vs), n - i);                  \
        }                                                                                          \
    }
UK_BINARY_F32(SCALAR)

#define REVERSED(upper, lower)                                                                     \
    void UK_NAME(lower##_reversed_f32)(float *y, const float *x, float s, size_t n)                \
    {                                                                                              \
        vf vs = v_splat(s);                                                                        \
        size_t i = 0;                                                                              \
        for (; n - i >= UK_VL; i += UK_VL) {                                                       \
            v_store(y + i, v_##lower(vs, v_load(x + i)));                                          \
        }                                                                                          \
        if (i < n) {                                                                               \
            v_store_part(y + i, v_##lower(vs, v_load_part(x + i, n - i)), n - i);                  \
        }                                                                                          \
    }
UK_BINARY_F32(REVERSED)

void UK_NAME(clamp_f32)(float *y, const float *x, float min, float max, size_t n)
{
    vf vmin = v_splat(min), vmax = v_splat(max);
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        v_store(y + i, v_clamp(v_load(x + i), vmin, vmax));
    }
    if (i < n) {
        v_store_part(y + i, v_clamp(v_load_part(x + i, n - i), vmin, vmax), n - i);
    }
}

UK_INLINE vf v_leaky_relu(vf x, vf slope)
{
    return v_select(x > 0.0f, x, x * slope);
}

void UK_NAME(leaky_relu_f32)(float *y, const float *x, float slope, size_t n)
{
    vf vslope = v_splat(slope);
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        v_store(y + i, v_leaky_relu(v_load(x + i), vslope));
    }
    if (i < n) {
        v_store_part(y + i, v_leaky_relu(v_load_part(x + i, n - i), vslope), n - i);
    }
}

void UK_NAME(add_scaled_f32)(float *y, const float *a, const float *b, float alpha, size_t n)
{
    vf valpha = v_splat(alpha);
    size_t i = 0;
    for (; n - i >= UK_VL; i += UK_VL) {
        v_store(y + i, v_load(a + i) + valpha * v_load(b + i));
    }
    if (i < n) {
        vf vb = v_load_part(b + i, n - i);
        v_store_part(y + i, v_load_part(a + i, n - i) + valpha * vb, n - i);
    }
}

/* Columns [j, j + vectors * UK_VL) of all rows, or |part| of them. */
UK_INLINE void affine_columns(const struct uk_affine_f32 *a, size_t j, const int vectors,
                              size_t part)
{
    vf min = v_splat(a->min), max = v_splat(a->max), scale[4], shift[4];
    UK_UNROLL
    for (int i = 0; i < vectors; i++) {
        size_t at = j + (size_t)i * UK_VL;
        scale[i] = part ? v_load_part(a->scale + at, part) : v_load(a->scale + at);
        shift[i] = !a->shift ? (vf){0}
                   : part    ? v_load_part(a->shift + at, part)
                             : v_load(a->shift + at);
    }
    const float *x = a->x + j;
    float *y = a->y + j;
    for (size_t r = 0; r < a->rows; r++, x += a->x_row, y += a->y_row) {
        UK_UNROLL
        for (int i = 0; i < vectors; i++) {
            vf in = part ? v_load_part(x, part) : v_load(x + i * UK_VL);
            vf out = v_clamp(shift[i] + in * scale[i], min, max);
            if (part) {
                v_store_part(y, out, part);
            } else {
                v_store(y + i * UK_VL, out);
            }
        }
    }
}

void UK_NAME(affine_f32)(const struct uk_affine_f32 *a)
{
    size_t j = 0;
    for (; a->n - j >= 4 * UK_VL; j += 4 * UK_VL) {
        affine_columns(a, j, 4, 0);
    }
    for (; a->n - j >= 2 * UK_VL; j += 2 * UK_VL) {
        affine_columns(a, j, 2, 0);
    }
    for (; a->n - j >= UK_VL; j += UK_VL) {
        affine_columns(a, j, 1, 0);
    }
    if (j < a->n) {
        affine_columns(a, j, 1, a->n - j);
    }
}
