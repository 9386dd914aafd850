/* SPDX-License-Identifier: MIT */
/*
 * The loops of the pointwise family, pointwise_loops.c, except those of complex numbers. Loops with
 * doubles need WITH_F64 (pointwise_f64.comp). The variant gives the loop and its class. Division of
 * an integer by zero gives 0, and so does the remainder.
 */
#include "runtime/kernels/shaders/element.glsl"
#include "runtime/ops/pointwise.h"
#include "runtime/ops/shaders/loops.glsl"
#ifdef WITH_F64
#include "runtime/kernels/shaders/f64.glsl"
#endif

CONSTANTS(rt_pointwise_constants);
#include "runtime/kernels/shaders/loop.glsl"

const uint op = variant / RT_CLASS_COUNT;
const uint class = variant % RT_CLASS_COUNT;

#define TRUTHS_CASE(name, classes, inputs, truths, ...)                                            \
    case RT_PW_##name:                                                                             \
        return truths;
#define INPUTS_CASE(name, classes, inputs, ...)                                                    \
    case RT_PW_##name:                                                                             \
        return inputs;
#define GIVES_CASE(name, classes, inputs, truths, gives_truth, cost)                               \
    case RT_PW_##name:                                                                             \
        return gives_truth == 1;

uint truths_of()
{
    switch (op) {
        RT_PW_LOOPS(TRUTHS_CASE)
    }
    return 0;
}

uint inputs_of()
{
    switch (op) {
        RT_PW_LOOPS(INPUTS_CASE)
    }
    return 0;
}

bool gives_truth()
{
    switch (op) {
        RT_PW_LOOPS(GIVES_CASE)
    }
    return false;
}

/* An operand in the loop's class; a truth is 0 or 1. */
struct Operand {
    float f;
    int64_t i;
#ifdef WITH_F64
    float64_t d;
#endif
};

Operand read_operand(uint index, int64_t position)
{
    bool is_truth = class == RT_CLASS_TRUTH || (truths_of() >> index & 1u) == 1u;
    uint loop = K.inputs[index].loop, dtype = K.inputs[index].dtype;
    Operand v;
    v.f = 0.0;
    v.i = 0l;
    if (loop == 0u) {
#ifdef WITH_F64
        v.d = f64_of_bits(K.inputs[index].number.f);
#endif
        v.i = K.inputs[index].number.i;
        v.f = f64_to_f32(K.inputs[index].number.f);
        if (is_truth) {
            v.i = class == RT_CLASS_I64 ? int64_t(v.i != 0l) : int64_t(K.inputs[index].number.f << 1 != 0ul);
        }
        return v;
    }
    uint64_t at = loop_address(loop, position);
#ifdef WITH_F64
    if (dtype == DT_F64 || class == RT_CLASS_F64) {
        v.d = load_f64(at, dtype);
        v.f = float(v.d);
        v.i = is_truth ? int64_t(v.d != 0) : f64_to_i64(v.d);
        return v;
    }
#endif
    if (is_truth) {
        v.i = int64_t(load_truth(at, dtype));
    } else if (class == RT_CLASS_I64) {
        v.i = load_i64(at, dtype);
    } else {
        v.f = load_f32(at, dtype);
    }
    return v;
}

#define F(name, expr)                                                                              \
    case RT_PW_##name:                                                                             \
        return expr;

#define PARAM(i) f64_to_f32(K.params[i].f)

int64_t div_i64(int64_t a, int64_t b)
{
    return b == 0l ? 0l : b == -1l ? -a : a / b;
}

int64_t mod_i64(int64_t a, int64_t b)
{
    return b == 0l || b == -1l ? 0l : a - a / b * b;
}

bool is_apart(int64_t mod, int64_t b)
{
    return mod != 0l && (mod < 0l) != (b < 0l);
}

int64_t pow_i64(int64_t base, int64_t exponent)
{
    int64_t result = 1l;
    if (exponent < 0l) {
        return base == 1l || (base == -1l && (exponent & 1l) == 0l) ? 1l : base == -1l ? -1l : 0l;
    }
    for (; exponent > 0l; exponent >>= 1, base *= base) {
        result *= (exponent & 1l) == 1l ? base : 1l;
    }
    return result;
}

int64_t loop_i64(int64_t a, int64_t b, int64_t c)
{
    switch (op) {
        F(copy, a)
        F(abs, a < 0l ? -a : a)
        F(neg, -a)
        F(sign, int64_t(a > 0l) - int64_t(a < 0l))
        F(relu, max(a, 0l))
        F(clamp, min(max(a, K.params[0].i), K.params[1].i))
        F(floor, a)
        F(ceil, a)
        F(trunc, a)
        F(round, a)
        F(logical_not, int64_t(a == 0l))
        F(bitwise_not, ~a)
        F(add, a + K.params[0].i * b)
        F(sub, a - K.params[0].i * b)
        F(mul, a * b)
        F(div_trunc, div_i64(a, b))
        F(div_floor, div_i64(a, b) - int64_t(is_apart(mod_i64(a, b), b)))
        F(fmod, mod_i64(a, b))
        F(remainder, mod_i64(a, b) + (is_apart(mod_i64(a, b), b) ? b : 0l))
        F(pow, pow_i64(a, b))
        F(maximum, max(a, b))
        F(minimum, min(a, b))
        F(eq, int64_t(a == b))
        F(ne, int64_t(a != b))
        F(lt, int64_t(a < b))
        F(le, int64_t(a <= b))
        F(gt, int64_t(a > b))
        F(ge, int64_t(a >= b))
        F(logical_and, a & b)
        F(logical_or, a | b)
        F(logical_xor, a ^ b)
        F(bitwise_and, a & b)
        F(bitwise_or, a | b)
        F(bitwise_xor, a ^ b)
        F(shift_left, b < 0l || b > 63l ? 0l : a << int(b))
        F(shift_right, a >> int(b < 0l || b > 63l ? 63l : b))
        F(where, a != 0l ? b : c)
        F(bounds, min(max(a, b), c))
    }
    return 0l;
}

#ifdef WITH_F64
#define PARAM_F64(i) f64_of_bits(K.params[i].f)

float64_t maximum(float64_t a, float64_t b)
{
    return is_nan(a) || a > b ? a : b;
}

float64_t minimum(float64_t a, float64_t b)
{
    return is_nan(a) || a < b ? a : b;
}

float64_t loop_f64(float64_t a, float64_t b, float64_t c, bool truth)
{
    switch (op) {
        F(copy, a)
        F(abs, abs(a))
        F(neg, -a)
        F(sign, float64_t(a > 0) - float64_t(a < 0))
        F(square, a * a)
        F(relu, a < 0 ? 0.0lf : a)
        F(clamp, minimum(maximum(a, PARAM_F64(0)), PARAM_F64(1)))
        F(leaky_relu, a > 0 ? a : a * PARAM_F64(0))
        F(sqrt, a < 0 ? float64_t(NAN) : sqrt(a))
        F(rsqrt, a < 0 ? float64_t(NAN) : 1.0lf / sqrt(a))
        F(reciprocal, 1.0lf / a)
        F(floor, floor(a))
        F(ceil, ceil(a))
        F(trunc, trunc(a))
        F(round, roundEven(a))
        F(isnan, float64_t(is_nan(a)))
        F(isinf, float64_t(is_inf(a)))
        F(add, a + PARAM_F64(0) * b)
        F(sub, a - PARAM_F64(0) * b)
        F(mul, a * b)
        F(div, a / b)
        F(div_trunc, trunc(a / b))
        F(maximum, maximum(a, b))
        F(minimum, minimum(a, b))
        F(eq, float64_t(a == b))
        F(ne, float64_t(a != b))
        F(lt, float64_t(a < b))
        F(le, float64_t(a <= b))
        F(gt, float64_t(a > b))
        F(ge, float64_t(a >= b))
        F(where, truth ? b : c)
        F(bounds, minimum(maximum(a, b), c))
    }
    return 0.0lf;
}

/* Writes results that involve doubles; false if the caller has to write the result. */
bool put_f64(uint64_t to, Operand a, Operand b, Operand c, vec3 params)
{
    if (class == RT_CLASS_F64) {
        store_f64(to, K.out, loop_f64(a.d, b.d, c.d, a.i != 0l));
    } else if (K.out == DT_F64 && class == RT_CLASS_F32) {
        F64(to).at[0] = float64_t(loop_f32(op, a.f, b.f, c.f, a.i != 0l, params));
    } else if (K.out == DT_F64) {
        F64(to).at[0] = float64_t(loop_i64(a.i, b.i, c.i));
    } else {
        return false;
    }
    return true;
}
#else
#define put_f64(to, a, b, c, params) false
#endif

void main()
{
    vec3 params = vec3(PARAM(0), PARAM(1), PARAM(2));
    EACH_POSITION(i)
    {
        Operand a = read_operand(0u, i), b = a, c = a;
        if (inputs_of() > 1u) {
            b = read_operand(1u, i);
        }
        if (inputs_of() > 2u) {
            c = read_operand(2u, i);
        }
        uint64_t to = loop_address(0u, i);
        if (put_f64(to, a, b, c, params)) {
            continue;
        }
        if (class != RT_CLASS_F32) {
            store_i64(to, K.out, loop_i64(a.i, b.i, c.i));
        } else if (gives_truth()) {
            store_i64(to, K.out, int64_t(loop_f32(op, a.f, b.f, c.f, a.i != 0l, params)));
        } else {
            store_f32(to, K.out, loop_f32(op, a.f, b.f, c.f, a.i != 0l, params));
        }
    }
}
