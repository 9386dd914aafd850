/* SPDX-License-Identifier: MIT */
/*
 * The loops of the pointwise family and the one kernel that runs them. Each loop is an expression,
 * written once for float and double (type-generic math) and once for 64-bit integers; a float loop
 * calls its micro-kernel if there is one. The kernel gives the loops packed operands: in place if
 * memory holds them so, otherwise converted into scratch, a chunk at a time.
 *
 * Division of an integer by zero is a fault, and so is the remainder. Integers wrap around.
 */
#include "config.h"

#include "runtime/ops/pointwise.h"

#include <math.h>
#include <string.h>
#include <tgmath.h>

#include "hal/cpu/uk.h"
#include "runtime/ops/shaders/generated/spirv.h"

#define TYPE_f32 float
#define TYPE_f64 double
#define TYPE_i64 int64_t
#define TYPE_truth uint8_t
#define PARAM_f32(k) ((float)run->params[k].f)
#define PARAM_f64(k) (run->params[k].f)
#define PARAM_i64(k) (run->params[k].i)

/* ---- expressions that are more than an expression ------------------------------------------ */

static int64_t wrap_add(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a + (uint64_t)b);
}

static int64_t wrap_sub(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a - (uint64_t)b);
}

static int64_t wrap_mul(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t div_i64(const struct rt_pointwise_run *run, int64_t a, int64_t b)
{
    if (b == 0) {
        hal_fault(run->args, HAL_FAULT_DIVISION, NULL);
        return 0;
    }
    return b == -1 ? wrap_sub(0, a) : a / b;
}

static int64_t mod_i64(const struct rt_pointwise_run *run, int64_t a, int64_t b)
{
    if (b == 0) {
        hal_fault(run->args, HAL_FAULT_DIVISION, NULL);
    }
    return b == 0 || b == -1 ? 0 : a % b;
}

static int64_t floor_div_i64(const struct rt_pointwise_run *run, int64_t a, int64_t b)
{
    int64_t mod = mod_i64(run, a, b);
    return div_i64(run, a, b) - (mod != 0 && (mod < 0) != (b < 0));
}

static int64_t floor_mod_i64(const struct rt_pointwise_run *run, int64_t a, int64_t b)
{
    int64_t mod = mod_i64(run, a, b);
    return mod != 0 && (mod < 0) != (b < 0) ? mod + b : mod;
}

static int64_t pow_i64(int64_t base, int64_t exponent)
{
    int64_t result = 1;

    if (exponent < 0) {
        if (base == 1 || base == -1) {
            return exponent % 2 == 0 ? 1 : base;
        }
        return 0;
    }
    for (; exponent > 0; exponent >>= 1, base = wrap_mul(base, base)) {
        if (exponent & 1) {
            result = wrap_mul(result, base);
        }
    }
    return result;
}

static int64_t shift_left_i64(int64_t a, int64_t by)
{
    return by < 0 || by > 63 ? 0 : (int64_t)((uint64_t)a << by);
}

/* Arithmetic, as every compiler does it. */
static int64_t shift_right_i64(int64_t a, int64_t by)
{
    return a >> (by < 0 || by > 63 ? 63 : by);
}

/* Python's floor division, which matches a remainder with the divisor's sign. */
#define FLOOR_MOD(type, name)                                                                      \
    static type name(type a, type b)                                                               \
    {                                                                                              \
        type mod = fmod(a, b);                                                                     \
        return mod != 0 && (mod < 0) != (b < 0) ? mod + b : mod;                                   \
    }
FLOOR_MOD(float, floor_mod_f32)
FLOOR_MOD(double, floor_mod_f64)

#define FLOOR_DIV(type, name)                                                                      \
    static type name(type a, type b)                                                               \
    {                                                                                              \
        if (b == 0) {                                                                              \
            return a / b;                                                                          \
        }                                                                                          \
        type mod = fmod(a, b);                                                                     \
        type quotient = (a - mod) / b;                                                             \
        if (mod != 0 && (mod < 0) != (b < 0)) {                                                    \
            quotient -= 1;                                                                         \
        }                                                                                          \
        /* The division above may have been rounded away from an exact integer; this corrects it.  \
         */                                                                                        \
        return quotient == 0 ? copysign((type)0, a / b) : rint(quotient);                          \
    }
FLOOR_DIV(float, floor_div_f32)
FLOOR_DIV(double, floor_div_f64)

/* A NaN on either side wins. */
#define MAXIMUM(a, b) ((a) > (b) || (a) != (a) ? (a) : (b))
#define MINIMUM(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* ---- makers of loops ----------------------------------------------------------------------- */

#define LOOP1(name, class, result, expr)                                                           \
    static void loop_##name##_##class(const struct rt_pointwise_run *run)                          \
    {                                                                                              \
        const TYPE_##class *x = run->in[0];                                                        \
        TYPE_##result *y = run->out;                                                               \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const TYPE_##class a = x[i];                                                           \
            y[i] = (TYPE_##result)(expr);                                                          \
        }                                                                                          \
    }

/* With parameters p0, p1, p2. */
#define LOOP1P(name, class, expr)                                                                  \
    static void loop_##name##_##class(const struct rt_pointwise_run *run)                          \
    {                                                                                              \
        const TYPE_##class *x = run->in[0];                                                        \
        const TYPE_##class p0 = PARAM_##class(0), p1 = PARAM_##class(1), p2 = PARAM_##class(2);    \
        TYPE_##class *y = run->out;                                                                \
        (void)p0, (void)p1, (void)p2;                                                              \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const TYPE_##class a = x[i];                                                           \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }

#define LOOP2(name, class, result, expr)                                                           \
    static void loop_##name##_##class(const struct rt_pointwise_run *run)                          \
    {                                                                                              \
        const TYPE_##class *x0 = run->in[0], *x1 = run->in[1];                                     \
        TYPE_##result *y = run->out;                                                               \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const TYPE_##class a = x0[i], b = x1[i];                                               \
            y[i] = (TYPE_##result)(expr);                                                          \
        }                                                                                          \
    }

#define LOOP2P(name, class, expr)                                                                  \
    static void loop_##name##_##class(const struct rt_pointwise_run *run)                          \
    {                                                                                              \
        const TYPE_##class *x0 = run->in[0], *x1 = run->in[1];                                     \
        const TYPE_##class p0 = PARAM_##class(0);                                                  \
        TYPE_##class *y = run->out;                                                                \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const TYPE_##class a = x0[i], b = x1[i];                                               \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }

/* |first| is the class of the first operand. */
#define LOOP3(name, first, class, expr)                                                            \
    static void loop_##name##_##class(const struct rt_pointwise_run *run)                          \
    {                                                                                              \
        const TYPE_##first *x0 = run->in[0];                                                       \
        const TYPE_##class *x1 = run->in[1], *x2 = run->in[2];                                     \
        TYPE_##class *y = run->out;                                                                \
        for (size_t i = 0; i < run->count; i++) {                                                  \
            const TYPE_##first a = x0[i];                                                          \
            const TYPE_##class b = x1[i], c = x2[i];                                               \
            y[i] = (expr);                                                                         \
        }                                                                                          \
    }

/* Floats, rounded to the half type in parameter 0 if there is one: PyTorch rounds a quotient of
 * halves before it takes the floor. */
static void round_halves(const struct rt_pointwise_run *run, float *y)
{
    uint16_t halves[RT_PW_CHUNK];

    if (run->params[0].i == DT_F16) {
        hal_cpu_uk()->f32_to_f16(halves, y, run->count);
        hal_cpu_uk()->f16_to_f32(y, halves, run->count);
    } else if (run->params[0].i == DT_BF16) {
        hal_cpu_uk()->f32_to_bf16(halves, y, run->count);
        hal_cpu_uk()->bf16_to_f32(y, halves, run->count);
    }
}

static void loop_div_trunc_f32(const struct rt_pointwise_run *run)
{
    const float *a = run->in[0], *b = run->in[1];
    float *y = run->out;

    for (size_t i = 0; i < run->count; i++) {
        y[i] = a[i] / b[i];
    }
    round_halves(run, y);
    hal_cpu_uk()->unary_f32[UK_TRUNC](y, y, run->count);
}

/* floor_div_f32() with a rounding after each step. */
static void floor_div_halves(const struct rt_pointwise_run *run, float *y, const float *a,
                             const float *b)
{
    for (size_t i = 0; i < run->count; i++) {
        y[i] = a[i] - fmodf(a[i], b[i]);
    }
    round_halves(run, y);
    for (size_t i = 0; i < run->count; i++) {
        y[i] /= b[i];
    }
    round_halves(run, y);
    for (size_t i = 0; i < run->count; i++) {
        float mod = fmodf(a[i], b[i]);
        y[i] -= mod != 0 && (mod < 0) != (b[i] < 0);
    }
    round_halves(run, y);
    for (size_t i = 0; i < run->count; i++) {
        y[i] = b[i] == 0   ? a[i] / b[i]
               : y[i] == 0 ? copysignf(0, a[i] / b[i])
                           : floorf(y[i]) + (y[i] - floorf(y[i]) > 0.5F);
    }
}

static void loop_div_floor_f32(const struct rt_pointwise_run *run)
{
    const float *a = run->in[0], *b = run->in[1];
    float *y = run->out;

    if (run->params[0].i != 0) {
        float quotients[RT_PW_CHUNK]; /* |y| may be one of the operands */
        floor_div_halves(run, quotients, a, b);
        memcpy(y, quotients, run->count * sizeof(*y));
        return;
    }
    for (size_t i = 0; i < run->count; i++) {
        y[i] = floor_div_f32(a[i], b[i]);
    }
}

#define UK1(name, upper)                                                                           \
    static void loop_##name##_f32(const struct rt_pointwise_run *run)                              \
    {                                                                                              \
        hal_cpu_uk()->unary_f32[UK_##upper](run->out, run->in[0], run->count);                     \
    }

#define UK2(name, upper)                                                                           \
    static void loop_##name##_f32(const struct rt_pointwise_run *run)                              \
    {                                                                                              \
        hal_cpu_uk()->binary_f32[UK_##upper](run->out, run->in[0], run->in[1], run->count);        \
    }

/* Floats: both widths, or the micro-kernel and double. */
#define FLOAT1(name, expr) LOOP1(name, f32, f32, expr) LOOP1(name, f64, f64, expr)
#define FLOAT1_UK(name, upper, expr) UK1(name, upper) LOOP1(name, f64, f64, expr)
#define FLOAT2(name, expr) LOOP2(name, f32, f32, expr) LOOP2(name, f64, f64, expr)
#define NUMBER1_UK(name, upper, expr, int_expr)                                                    \
    FLOAT1_UK(name, upper, expr) LOOP1(name, i64, i64, int_expr)
#define COMPARE(name, op)                                                                          \
    LOOP2(name, f32, truth, a op b) LOOP2(name, f64, truth, a op b) LOOP2(name, i64, truth, a op b)

/* ---- the loops ----------------------------------------------------------------------------- */

static void loop_copy_f32(const struct rt_pointwise_run *run)
{
    memmove(run->out, run->in[0], run->count * sizeof(float));
}

static void loop_copy_f64(const struct rt_pointwise_run *run)
{
    memmove(run->out, run->in[0], run->count * sizeof(double));
}

static void loop_copy_i64(const struct rt_pointwise_run *run)
{
    memmove(run->out, run->in[0], run->count * sizeof(int64_t));
}

NUMBER1_UK(abs, ABS, fabs(a), a < 0 ? wrap_sub(0, a) : a)
NUMBER1_UK(neg, NEG, -a, wrap_sub(0, a))
FLOAT1(sign, (a > 0) - (a < 0)) /* of a NaN: 0 */
LOOP1(sign, i64, i64, (a > 0) - (a < 0))
NUMBER1_UK(relu, RELU, a < 0 ? 0 : a, a < 0 ? 0 : a)
NUMBER1_UK(floor, FLOOR, floor(a), a)
NUMBER1_UK(ceil, CEIL, ceil(a), a)
NUMBER1_UK(trunc, TRUNC, trunc(a), a)
NUMBER1_UK(round, ROUND, rint(a), a)
FLOAT1_UK(square, SQUARE, a *a)
FLOAT1_UK(sqrt, SQRT, sqrt(a))
FLOAT1_UK(rsqrt, RSQRT, 1 / sqrt(a))
FLOAT1_UK(reciprocal, RECIPROCAL, 1 / a)
FLOAT1_UK(exp, EXP, exp(a))
FLOAT1_UK(log, LOG, log(a))
FLOAT1_UK(sin, SIN, sin(a))
FLOAT1_UK(cos, COS, cos(a))
FLOAT1_UK(tanh, TANH, tanh(a))
FLOAT1_UK(erf, ERF, erf(a))
FLOAT1_UK(sigmoid, SIGMOID, 1 / (1 + exp(-a)))
FLOAT1_UK(gelu, GELU, 0.5 * a * (1 + erf(a * 0.70710678118654752440)))
FLOAT1_UK(gelu_tanh, GELU_TANH,
          0.5 * a * (1 + tanh(0.79788456080286535588 * (a + 0.044715 * a * a * a))))
UK1(silu, SILU)
UK1(hardsigmoid, HARDSIGMOID)
UK1(hardswish, HARDSWISH)
LOOP1(expm1, f64, f64, expm1(a))
LOOP1(log1p, f64, f64, log1p(a))
FLOAT1(log2, log2(a))
FLOAT1(log10, log10(a))
FLOAT1(tan, tan(a))
FLOAT1(asin, asin(a))
FLOAT1(acos, acos(a))
FLOAT1(atan, atan(a))
FLOAT1(sinh, sinh(a))
FLOAT1(cosh, cosh(a))
FLOAT1(asinh, asinh(a))
FLOAT1(acosh, acosh(a))
FLOAT1(atanh, atanh(a))
LOOP1(isnan, f32, truth, a != a)
LOOP1(isnan, f64, truth, a != a)
LOOP1(isinf, f32, truth, fabs(a) == INFINITY)
LOOP1(isinf, f64, truth, fabs(a) == INFINITY)
LOOP1(logical_not, truth, truth, a == 0)
LOOP1(bitwise_not, i64, i64, ~a)

/* alpha, scale, input_scale */
LOOP1P(elu, f64, a < 0 ? p0 * p1 * expm1(a * p2) : p1 * a)
/* eps; a negative one is absent */
#define LOGIT_CLAMP (p0 < 0 ? a : a < p0 ? p0 : a > 1 - p0 ? 1 - p0 : a)
LOOP1P(logit, f32, log(LOGIT_CLAMP / (1 - LOGIT_CLAMP)))
LOOP1P(logit, f64, log(LOGIT_CLAMP / (1 - LOGIT_CLAMP)))
LOOP1P(leaky_relu, f64, a > 0 ? a : a * p0)
/* The upper bound is applied last; a bound of NaN makes every result NaN. */
LOOP1P(clamp, f64, MINIMUM(MAXIMUM(a, p0), p1))
LOOP1P(clamp, i64, MINIMUM(MAXIMUM(a, p0), p1))

/* Numbers for which a loop of its own corrects what micro-kernels compute. */
#define CORRECTED 128

/* exp(x) - 1 loses the digits of a small x. The rounding error of u = exp(x) is that of an exp(y)
 * with y = log(u), so (u - 1) / y * x has all digits. |y| may be |x|. */
static void expm1_f32(float *y, const float *x, size_t n)
{
    float u[CORRECTED], l[CORRECTED];
    for (size_t done = 0; done < n; done += CORRECTED) {
        size_t count = n - done < CORRECTED ? n - done : CORRECTED;
        hal_cpu_uk()->unary_f32[UK_EXP](u, x + done, count);
        hal_cpu_uk()->unary_f32[UK_LOG](l, u, count);
        for (size_t i = 0; i < count; i++) {
            float a = x[done + i], less = u[i] - 1;
            bool is_small = fabsf(a) < 0.5F, is_exact = u[i] == 1;
            y[done + i] = is_exact ? a : is_small ? less / l[i] * a : less;
        }
    }
}

/* log(1 + x), likewise: the rounding error of u = 1 + x is that of log(u) / (u - 1). */
static void log1p_f32(float *y, const float *x, size_t n)
{
    float u[CORRECTED], l[CORRECTED];
    for (size_t done = 0; done < n; done += CORRECTED) {
        size_t count = n - done < CORRECTED ? n - done : CORRECTED;
        for (size_t i = 0; i < count; i++) {
            u[i] = 1 + x[done + i];
        }
        hal_cpu_uk()->unary_f32[UK_LOG](l, u, count);
        for (size_t i = 0; i < count; i++) {
            float a = x[done + i], less = u[i] - 1;
            y[done + i] = u[i] == 1 ? a : less == a ? l[i] : l[i] * (a / less);
        }
    }
}

static void loop_expm1_f32(const struct rt_pointwise_run *run)
{
    expm1_f32(run->out, run->in[0], run->count);
}

static void loop_log1p_f32(const struct rt_pointwise_run *run)
{
    log1p_f32(run->out, run->in[0], run->count);
}

static void loop_elu_f32(const struct rt_pointwise_run *run)
{
    float alpha = PARAM_f32(0), scale = PARAM_f32(1), input_scale = PARAM_f32(2);
    float scaled[CORRECTED], *y = run->out;
    const float *x = run->in[0];
    for (size_t done = 0; done < run->count; done += CORRECTED) {
        size_t count = run->count - done < CORRECTED ? run->count - done : CORRECTED;
        for (size_t i = 0; i < count; i++) {
            scaled[i] = x[done + i] * input_scale;
        }
        expm1_f32(scaled, scaled, count);
        for (size_t i = 0; i < count; i++) {
            float a = x[done + i];
            y[done + i] = a < 0 ? alpha * scale * scaled[i] : scale * a;
        }
    }
}

static void loop_leaky_relu_f32(const struct rt_pointwise_run *run)
{
    hal_cpu_uk()->leaky_relu_f32(run->out, run->in[0], PARAM_f32(0), run->count);
}

static void loop_clamp_f32(const struct rt_pointwise_run *run)
{
    float low = PARAM_f32(0), high = PARAM_f32(1), *y = run->out;

    if (low != low || high != high) {
        for (size_t i = 0; i < run->count; i++) {
            y[i] = NAN;
        }
        return;
    }
    hal_cpu_uk()->clamp_f32(y, run->in[0], low, high, run->count);
}

static void loop_add_f32(const struct rt_pointwise_run *run)
{
    float alpha = PARAM_f32(0);
    if (alpha == 1) {
        hal_cpu_uk()->binary_f32[UK_ADD](run->out, run->in[0], run->in[1], run->count);
    } else {
        hal_cpu_uk()->add_scaled_f32(run->out, run->in[0], run->in[1], alpha, run->count);
    }
}

static void loop_sub_f32(const struct rt_pointwise_run *run)
{
    float alpha = PARAM_f32(0);
    if (alpha == 1) {
        hal_cpu_uk()->binary_f32[UK_SUB](run->out, run->in[0], run->in[1], run->count);
    } else {
        hal_cpu_uk()->add_scaled_f32(run->out, run->in[0], run->in[1], -alpha, run->count);
    }
}

LOOP2P(add, f64, a + p0 * b)
LOOP2P(add, i64, wrap_add(a, wrap_mul(p0, b)))
LOOP2P(sub, f64, a - p0 * b)
LOOP2P(sub, i64, wrap_sub(a, wrap_mul(p0, b)))
UK2(mul, MUL)
LOOP2(mul, f64, f64, a *b)
LOOP2(mul, i64, i64, wrap_mul(a, b))
UK2(div, DIV)
LOOP2(div, f64, f64, a / b)
LOOP2(div_trunc, f64, f64, trunc(a / b))
LOOP2(div_trunc, i64, i64, div_i64(run, a, b))
LOOP2(div_floor, f64, f64, floor_div_f64(a, b))
LOOP2(div_floor, i64, i64, floor_div_i64(run, a, b))
FLOAT2(fmod, fmod(a, b))
LOOP2(fmod, i64, i64, mod_i64(run, a, b))
LOOP2(remainder, f32, f32, floor_mod_f32(a, b))
LOOP2(remainder, f64, f64, floor_mod_f64(a, b))
LOOP2(remainder, i64, i64, floor_mod_i64(run, a, b))
FLOAT2(pow, pow(a, b))
LOOP2(pow, i64, i64, pow_i64(a, b))
FLOAT2(atan2, atan2(a, b))
LOOP2(glu, f64, f64, a / (1 + exp(-b)))

static void loop_glu_f32(const struct rt_pointwise_run *run)
{
    hal_cpu_uk()->unary_f32[UK_SIGMOID](run->out, run->in[1], run->count);
    hal_cpu_uk()->binary_f32[UK_MUL](run->out, run->out, run->in[0], run->count);
}
UK2(maximum, MAX)
LOOP2(maximum, f64, f64, MAXIMUM(a, b))
LOOP2(maximum, i64, i64, MAXIMUM(a, b))
UK2(minimum, MIN)
LOOP2(minimum, f64, f64, MINIMUM(a, b))
LOOP2(minimum, i64, i64, MINIMUM(a, b))
COMPARE(eq, ==)
COMPARE(ne, !=)
COMPARE(lt, <)
COMPARE(le, <=)
COMPARE(gt, >)
COMPARE(ge, >=)
LOOP2(logical_and, truth, truth, a &&b)
LOOP2(logical_or, truth, truth, a || b)
LOOP2(logical_xor, truth, truth, !a != !b)
LOOP2(bitwise_and, i64, i64, a &b)
LOOP2(bitwise_or, i64, i64, a | b)
LOOP2(bitwise_xor, i64, i64, a ^ b)
LOOP2(shift_left, i64, i64, shift_left_i64(a, b))
LOOP2(shift_right, i64, i64, shift_right_i64(a, b))
LOOP3(where, truth, f32, a ? b : c)
LOOP3(where, truth, f64, a ? b : c)
LOOP3(where, truth, i64, a ? b : c)
/* a limited to [b, c]; a NaN in any of them wins. */
LOOP3(bounds, f32, f32, MINIMUM(MAXIMUM(a, b), c))
LOOP3(bounds, f64, f64, MINIMUM(MAXIMUM(a, b), c))
LOOP3(bounds, i64, i64, MINIMUM(MAXIMUM(a, b), c))

/* ---- tables -------------------------------------------------------------------------------- */

#define LOOPS_N(name)                                                                              \
    {                                                                                              \
        loop_##name##_f32, loop_##name##_f64, loop_##name##_i64, NULL                              \
    }
#define LOOPS_F(name)                                                                              \
    {                                                                                              \
        loop_##name##_f32, loop_##name##_f64, NULL, NULL                                           \
    }
#define LOOPS_I(name)                                                                              \
    {                                                                                              \
        NULL, NULL, loop_##name##_i64, NULL                                                        \
    }
#define LOOPS_T(name)                                                                              \
    {                                                                                              \
        NULL, NULL, NULL, loop_##name##_truth                                                      \
    }

#define LOOPS_C(name)                                                                              \
    {                                                                                              \
        loop_##name##_f32, loop_##name##_f64, loop_##name##_i64, NULL, rt_pointwise_##name##_c128  \
    }
#define LOOPS_G(name)                                                                              \
    {                                                                                              \
        loop_##name##_f32, loop_##name##_f64, NULL, NULL, rt_pointwise_##name##_c128               \
    }
#define LOOPS_S(name)                                                                              \
    {                                                                                              \
        loop_##name##_f32, NULL, NULL, NULL, NULL                                                  \
    }
#define LOOPS_Z(name)                                                                              \
    {                                                                                              \
        NULL, NULL, NULL, NULL, rt_pointwise_##name##_c128                                         \
    }

static rt_pointwise_loop_f *const loops[RT_PW_COUNT][RT_CLASS_COUNT] = {
#define PW(name, classes, ...) [RT_PW_##name] = LOOPS_##classes(name),
    RT_PW_LOOPS(PW)
#undef PW
};

const struct rt_pointwise_info rt_pointwise_infos[RT_PW_COUNT] = {
#define PW(name, classes, ...) [RT_PW_##name] = {__VA_ARGS__},
    RT_PW_LOOPS(PW)
#undef PW
};

bool rt_pointwise_has_loop(enum rt_pointwise_op op, enum rt_class class)
{
    return loops[op][class] != NULL;
}

rt_pointwise_loop_f *rt_pointwise_loop(enum rt_pointwise_op op, enum rt_class class)
{
    return loops[op][class];
}

const char *rt_pointwise_name(enum rt_pointwise_op op)
{
    static const char *const names[RT_PW_COUNT] = {
#define PW(name, ...) [RT_PW_##name] = #name,
        RT_PW_LOOPS(PW)
#undef PW
    };
    return names[op];
}

/* ---- the kernel ---------------------------------------------------------------------------- */

struct input {
    enum rt_class class;
    uint32_t operand; /* operand of the nest; 0: |buffer| holds the number for all chunks */
    bool is_direct;
    int64_t stride;
    uint32_t width; /* bytes of an element that is moved unchanged; 0: |load| converts it */
    rt_load_f *load;
    char *buffer;
};

static void splat(const struct rt_number *number, enum rt_class class, char *buffer)
{
    enum dtype from = class == RT_CLASS_I64 ? DT_I64 : DT_F64;
    const void *value = from == DT_I64 ? (const void *)&number->i : (const void *)&number->f;
    rt_convert_load(from, class)(buffer, value, 0, RT_PW_CHUNK);
}

static void open_input(struct input *input, const struct rt_pointwise_constants *k, uint32_t index,
                       char *buffer)
{
    const struct rt_pointwise_operand *operand = &k->inputs[index];

    input->class = rt_pointwise_infos[k->op].truths >> index & 1 ? RT_CLASS_TRUTH : k->class;
    input->operand = operand->loop;
    input->buffer = buffer;
    if (operand->loop == 0) {
        splat(&operand->number, input->class, buffer);
        return;
    }
    input->stride = k->loop.strides[operand->loop][k->loop.rank - 1];
    input->is_direct = rt_convert_is_direct(input->class, operand->dtype) &&
                       input->stride == (int64_t)rt_convert_class_bytes(input->class);
    input->load = rt_convert_load(operand->dtype, input->class);
}

/* As open_input(), for a loop that computes in |dtype|. */
static void open_typed(struct input *input, const struct rt_pointwise_constants *k, uint32_t index,
                       enum dtype dtype, char *buffer)
{
    const struct rt_pointwise_operand *operand = &k->inputs[index];
    uint64_t element;

    *input = (struct input){
        .operand = operand->loop,
        .width = (uint32_t)dtype_bytes(dtype),
        .buffer = buffer,
    };
    if (operand->loop == 0) {
        rt_convert_store_number(operand->number, dtype, &element);
        rt_copy_run(buffer, input->width, (const char *)&element, 0, RT_PW_CHUNK, input->width);
        return;
    }
    input->stride = k->loop.strides[operand->loop][k->loop.rank - 1];
    input->is_direct = input->stride == input->width;
}

/* The input's elements from position |done| of the run on, contiguous. */
static const void *read_input(const struct input *input, const struct rt_cursor *cursor,
                              int64_t done, int64_t count)
{
    if (input->operand == 0) {
        return input->buffer;
    }
    const char *from = cursor->ptrs[input->operand] + done * input->stride;
    if (input->is_direct) {
        return from;
    }
    if (input->width > 0) {
        rt_copy_run(input->buffer, input->width, from, input->stride, count, input->width);
    } else if (input->stride != 0 || done == 0) {
        input->load(input->buffer, from, input->stride, count);
    }
    return input->buffer;
}

static void pointwise_tile(const struct hal_args *args, struct hal_tile tile)
{
    const struct rt_pointwise_constants *k = args->constants;
    const struct rt_pointwise_info *info = &rt_pointwise_infos[k->op];
    enum rt_class out_class = info->gives_truth ? RT_CLASS_TRUTH : k->class;
    int64_t out_stride = k->loop.strides[0][k->loop.rank - 1];
    bool out_is_direct = rt_convert_is_direct(out_class, k->out) &&
                         out_stride == (int64_t)rt_convert_class_bytes(out_class);
    rt_store_f *store = rt_convert_store(out_class, k->out);
    uint32_t typed_out = 0; /* bytes of an element when it is not converted */
    rt_pointwise_loop_f *loop = loops[k->op][k->class];
    struct input inputs[RT_PW_INPUTS_MAX] = {0};
    char *buffer = args->scratch;
    struct rt_pointwise_run run = {.params = k->params, .args = args};
    struct rt_cursor cursor;
    enum dtype dtype;
    rt_pointwise_loop_f *typed = rt_pointwise_typed_loop(k, &dtype);

    for (uint32_t i = 0; i < info->inputs; i++) {
        char *space = buffer + (i + 1) * RT_PW_CHUNK * RT_CLASS_BYTES_MAX;
        if (typed) {
            open_typed(&inputs[i], k, i, dtype, space);
        } else {
            open_input(&inputs[i], k, i, space);
        }
    }
    if (typed) {
        loop = typed;
        out_is_direct = out_stride == (int64_t)dtype_bytes(k->out);
        typed_out = (uint32_t)dtype_bytes(k->out);
    }
    rt_loop_cursor_init(&cursor, &k->loop, args->bindings, tile.x);
    while (rt_loop_cursor_next(&cursor)) {
        for (int64_t done = 0; done < cursor.count; done += RT_PW_CHUNK) {
            int64_t count = cursor.count - done;
            count = count < RT_PW_CHUNK ? count : RT_PW_CHUNK;
            char *out = cursor.ptrs[0] + done * out_stride;
            for (uint32_t i = 0; i < info->inputs; i++) {
                run.in[i] = read_input(&inputs[i], &cursor, done, count);
            }
            run.out = out_is_direct ? out : buffer;
            run.count = (size_t)count;
            loop(&run);
            if (!out_is_direct && typed_out > 0) {
                rt_copy_run(out, out_stride, buffer, typed_out, count, typed_out);
            } else if (!out_is_direct) {
                store(out, out_stride, buffer, count);
            }
        }
    }
}

/* One pipeline for each loop and class: a shader with all loops would use as many registers as the
 * most expensive one. */
#define KERNEL(class, pw, words, needs)                                                            \
    [RT_PW_##pw] = {.name = "pointwise",                                                           \
                    .cpu = pointwise_tile,                                                         \
                    .spirv = {HAL_SPIRV_FORM(words, needs)},                                       \
                    .variant = RT_PW_VARIANT(RT_PW_##pw, RT_CLASS_##class)},
#define F32(name, ...) KERNEL(F32, name, pointwise_spirv, 0)
#define I64(name, ...) KERNEL(I64, name, pointwise_spirv, 0)
#define TRUTH(name, ...) KERNEL(TRUTH, name, pointwise_spirv, 0)
const struct hal_kernel rt_pointwise_kernels[RT_CLASS_COUNT][RT_PW_COUNT] = {
    [RT_CLASS_F32] = {RT_PW_LOOPS(F32)},
    [RT_CLASS_I64] = {RT_PW_LOOPS(I64)},
    [RT_CLASS_TRUTH] = {RT_PW_LOOPS(TRUTH)},
};
#undef F32
#undef I64
#undef TRUTH

/* For loops with doubles. */
#define F32(name, ...) KERNEL(F32, name, pointwise_f64_spirv, HAL_F64)
#define F64(name) KERNEL(F64, name, pointwise_f64_spirv, HAL_F64)
#define I64(name, ...) KERNEL(I64, name, pointwise_f64_spirv, HAL_F64)
#define TRUTH(name, ...) KERNEL(TRUTH, name, pointwise_f64_spirv, HAL_F64)
static const struct hal_kernel f64_kernels[RT_CLASS_COUNT][RT_PW_COUNT] = {
    [RT_CLASS_F32] = {RT_PW_LOOPS(F32)},
    [RT_CLASS_F64] = {RT_PW_F64_LOOPS(F64)},
    [RT_CLASS_I64] = {RT_PW_LOOPS(I64)},
    [RT_CLASS_TRUTH] = {RT_PW_LOOPS(TRUTH)},
};
#undef F32
#undef F64
#undef I64
#undef TRUTH

static const struct hal_kernel cpu_kernel = {.name = "pointwise", .cpu = pointwise_tile};

const struct hal_kernel *rt_pointwise_kernel(const struct rt_pointwise_constants *k)
{
    bool has_f64 = k->class == RT_CLASS_F64 || k->out == DT_F64;
    bool is_complex = k->class == RT_CLASS_C128 || dtype_infos[k->out].kind == DTYPE_COMPLEX;

    for (uint32_t i = 0; i < rt_pointwise_infos[k->op].inputs; i++) {
        enum dtype dtype = k->inputs[i].dtype;
        has_f64 |= k->inputs[i].loop > 0 && dtype == DT_F64;
        is_complex |= k->inputs[i].loop > 0 && dtype_infos[dtype].kind == DTYPE_COMPLEX;
    }
    if (k->class == RT_CLASS_F32 && (k->op == RT_PW_div_trunc || k->op == RT_PW_div_floor) &&
        k->params[0].i != 0) {
        return &cpu_kernel; /* quotients of halves are rounded before the floor */
    }
    const struct hal_kernel *kernel =
        is_complex ? &cpu_kernel : &(has_f64 ? f64_kernels : rt_pointwise_kernels)[k->class][k->op];
    return kernel->cpu ? kernel : &cpu_kernel;
}
