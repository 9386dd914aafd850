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
