/* SPDX-License-Identifier: MIT */
/* The loops of the pointwise family on one element of floats; see pointwise_loops.c. */
#include "runtime/ops/pointwise.h"
#include "runtime/kernels/shaders/math.glsl"

float maximum(float a, float b)
{
    return is_nan(a) ? a : is_nan(b) ? b : a > b ? a : b;
}

float minimum(float a, float b)
{
    return is_nan(a) ? a : is_nan(b) ? b : a < b ? a : b;
}

float logit(float a, float eps)
{
    a = eps < 0 ? a : a < eps ? eps : a > 1.0 - eps ? 1.0 - eps : a;
    return log_f32(a / (1.0 - a));
}

/* alpha, scale, input_scale */
float elu(float a, vec3 p)
{
    return a < 0 ? p.x * p.y * expm1_f32(a * p.z) : p.y * a;
}

#define F(name, expr)                                                                              \
    case RT_PW_##name:                                                                             \
        return expr;

/* |p| has the parameters. If |op| is not a constant, the compiler includes all loops. */
float loop_f32(uint op, float a, float b, float c, bool truth, vec3 p)
{
    switch (op) {
        F(copy, a)
        F(abs, abs(a))
        F(neg, -a)
        F(sign, float(a > 0) - float(a < 0))
        F(square, a * a)
        F(relu, a < 0 ? 0.0 : a)
        F(clamp, minimum(maximum(a, p.x), p.y))
        F(leaky_relu, a > 0 ? a : a * p.x)
        F(elu, elu(a, p))
        F(gelu, 0.5 * a * one_plus_erf(a * 0.70710678118654752440))
        F(gelu_tanh, a * sigmoid_f32(1.59576912160573071176 * (a + 0.044715 * a * a * a)))
        F(sigmoid, sigmoid_f32(a))
        F(logit, logit(a, p.x))
        F(exp, exp_f32(a))
        F(expm1, expm1_f32(a))
        F(log, log_f32(a))
        F(log1p, log1p_f32(a))
        F(log2, log_f32(a) * 1.44269504088896341)
        F(log10, log_f32(a) * 0.43429448190325182)
        F(sqrt, a < 0 ? NAN : sqrt(a))
        F(rsqrt, a < 0 ? NAN : 1.0 / sqrt(a))
        F(reciprocal, 1.0 / a)
        F(erf, erf_f32(a))
        F(sin, sin_f32(a, 0))
        F(cos, sin_f32(a, 1))
        F(tan, tan_f32(a))
        F(asin, asin_f32(a))
        F(acos, acos_f32(a))
        F(atan, atan_f32(a))
        F(sinh, sinh_f32(a))
        F(cosh, cosh_f32(a))
        F(tanh, tanh_f32(a))
        F(asinh, asinh_f32(a))
        F(acosh, acosh_f32(a))
        F(atanh, atanh_f32(a))
        F(floor, floor(a))
        F(ceil, ceil(a))
        F(trunc, trunc(a))
        F(round, roundEven(a))
        F(isnan, float(is_nan(a)))
        F(isinf, float(is_inf(a)))
        F(add, a + p.x * b)
        F(sub, a - p.x * b)
        F(mul, a * b)
        F(div, a / b)
        F(div_trunc, trunc(a / b))
        F(div_floor, floor_div_f32(a, b))
        F(fmod, fmod_f32(a, b))
        F(remainder, floor_mod_f32(a, b))
        F(pow, pow_f32(a, b))
        F(atan2, atan2_f32(a, b))
        F(glu, a * sigmoid_f32(b))
        F(maximum, maximum(a, b))
        F(minimum, minimum(a, b))
        F(eq, float(a == b))
        F(ne, float(a != b))
        F(lt, float(a < b))
        F(le, float(a <= b))
        F(gt, float(a > b))
        F(ge, float(a >= b))
        F(where, truth ? b : c)
        F(silu, a * sigmoid_f32(a))
        F(hardsigmoid, min(max(a + 3.0, 0.0), 6.0) / 6.0)
        F(hardswish, a * (min(max(a + 3.0, 0.0), 6.0) / 6.0))
        F(bounds, minimum(maximum(a, b), c))
    }
    return 0.0;
}

#undef F
