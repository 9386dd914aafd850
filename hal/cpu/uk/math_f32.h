/* SPDX-License-Identifier: MIT */
/*
 * Functions of one vector of floats: argument reduction, then a polynomial with the least maximal
 * relative error on the reduced range (our own fits). The error is at most 2 to 3 units in the last
 * place over the whole range of floats, including infinities, NaN and subnormals, unless a comment
 * says otherwise. tests/hal/test_uk_math.c measures it.
 */
#ifndef PTED_HAL_CPU_UK_MATH_F32_H
#define PTED_HAL_CPU_UK_MATH_F32_H

#include <math.h>

#include "hal/cpu/uk/simd.h"

#define SIGN_BIT 0x80000000u
#define MAGIC                                                                                      \
    12582912.0f /* 1.5 * 2^23: adding it rounds to an integer, which the low bits contain */
#define MAGIC_EXPONENT (MAGIC + 127.0f) /* the low bits contain the exponent of 2^n */
#define LOG2_E 1.44269504f
#define EXP_NORMAL_MIN (-87.3365f) /* the logarithm of 2^-126 */

UK_INLINE vf v_abs(vf x)
{
    return (vf)((vu)x & ~SIGN_BIT);
}

UK_INLINE vf v_neg(vf x)
{
    return (vf)((vu)x ^ SIGN_BIT);
}

/* |x|, which is not negative, with the sign of |sign|. */
UK_INLINE vf v_with_sign(vf x, vf sign)
{
    return (vf)((vu)x | ((vu)sign & SIGN_BIT));
}

UK_INLINE vf v_relu(vf x)
{
    return v_greater((vf){0}, x);
}

UK_INLINE vf v_sqrt(vf x)
{
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_sqrt_ps((__m512)x);
#elif defined UK_LEVEL_AVX2
    return (vf)_mm256_sqrt_ps((__m256)x);
#elif defined __SSE__
    return (vf)_mm_sqrt_ps((__m128)x);
#elif defined UK_LEVEL_NEON
    return (vf)vsqrtq_f32((float32x4_t)x);
#else
    UK_UNROLL
    for (int i = 0; i < UK_VL; i++) {
        x[i] = sqrtf(x[i]);
    }
    return x;
#endif
}

UK_INLINE vf v_rsqrt(vf x)
{
    return 1.0f / v_sqrt(x);
}

UK_INLINE vf v_reciprocal(vf x)
{
    return 1.0f / x;
}

UK_INLINE vf v_square(vf x)
{
    return x * x;
}

#if defined UK_LEVEL_NEON
UK_INLINE vf v_trunc(vf x)
{
    return (vf)vrndq_f32((float32x4_t)x);
}

UK_INLINE vf v_floor(vf x)
{
    return (vf)vrndmq_f32((float32x4_t)x);
}

UK_INLINE vf v_ceil(vf x)
{
    return (vf)vrndpq_f32((float32x4_t)x);
}

UK_INLINE vf v_round(vf x)
{
    return (vf)vrndnq_f32((float32x4_t)x);
}
#else
/* Has x a fraction? Floats from 2^23 on, infinities and NaN have none. */
UK_INLINE vi v_has_fraction(vf x)
{
    return v_abs(x) < 8388608.0f;
}

UK_INLINE vf v_trunc(vf x)
{
    vi fraction = v_has_fraction(x);
    vi whole = __builtin_convertvector((vf)(fraction & (vi)x), vi);
    return v_select(fraction, v_with_sign(__builtin_convertvector(whole, vf), x), x);
}

UK_INLINE vf v_floor(vf x)
{
    vf t = v_trunc(x);
    return v_select(t > x, t - 1.0f, t);
}

UK_INLINE vf v_ceil(vf x)
{
    vf t = v_trunc(x);
    return v_select(t < x, v_with_sign(v_abs(t + 1.0f), x), t);
}

UK_INLINE vf v_round(vf x)
{
    vf r = (v_abs(x) + 8388608.0f) - 8388608.0f;
    return v_select(v_has_fraction(x), v_with_sign(r, x), x);
}
#endif

UK_INLINE vf v_sign(vf x)
{
    vf one = v_with_sign(v_splat(1.0f), x);
    return v_select((x < 0.0f) | (x > 0.0f), one, v_select(x == x, (vf){0}, x));
}

/* 2^n, if that is a normal float. */
UK_INLINE vf v_power_of_two(vi n)
{
    return (vf)(((vu)n + 127u) << 23);
}

/*
 * x = n * ln 2 + r; e^x = 2^n * e^r. Results of 0, above all e^-inf in a mask, are not computed: an
 * underflow costs 50 times as much as any other result.
 */
#if defined UK_LEVEL_AVX512
/* n is a multiple of 1/32, so that r is small: 2^n is 2^floor(n), which one instruction multiplies,
 * times a number of a table. Shuffles and powers of two leave the pipes of multiply-adds free. To
 * add MAGIC_PART rounds to such a multiple, and the low five bits have the place in the table. */
#define MAGIC_PART (MAGIC / 32)

/* 2^(n - floor(n)), for the sum of n and MAGIC_PART. */
UK_INLINE vf v_power_part(vf biased)
{
    static const float powers[32] __attribute__((aligned(64))) = {
        1.0f,        1.0218972f,  1.04427373f, 1.06714046f, 1.09050775f, 1.1143868f,  1.13878858f,
        1.1637249f,  1.18920708f, 1.21524739f, 1.24185777f, 1.26905096f, 1.29683959f, 1.32523668f,
        1.35425556f, 1.38390994f, 1.41421354f, 1.44518077f, 1.47682619f, 1.50916445f, 1.54221082f,
        1.5759809f,  1.61049032f, 1.64575553f, 1.68179286f, 1.71861935f, 1.75625217f, 1.79470909f,
        1.8340081f,  1.87416768f, 1.91520655f, 1.95714414f};
    return (vf)_mm512_permutex2var_ps((__m512)v_load_aligned(powers), (__m512i)biased,
                                      (__m512)v_load_aligned(powers + UK_VL));
}

/* e^x, and 0 for x <= |zero|. */
UK_INLINE vf v_exp_above(vf x, const float zero)
{
    __mmask16 remains = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(zero), _CMP_NLE_UQ);
    vf clamped = v_clamp(x, v_splat(zero), v_splat(89.0f));
    vf biased = clamped * LOG2_E + MAGIC_PART;
    vf n = biased - MAGIC_PART;
    vf r = clamped - n * 0.693147182f + n * 1.90465421e-9f;
    vf power = v_power_part(biased);
    vf p = ((r * 0.166666667f + 0.5f) * r + 1.0f) * r * power + power;
    return (vf)_mm512_maskz_scalef_ps(remains, (__m512)p, (__m512)n);
}
#else
/* e^(x - n * ln 2), for n as near to x / ln 2 as an integer can be. */
UK_INLINE vf v_exp_rest(vf x, vf n)
{
    vf r = x - n * 0.693115234f;
    r = r - n * 3.19461850e-5f;
    vf p = v_splat(0.00138144649f);
    p = p * r + 0.00836878084f;
    p = p * r + 0.0416683927f;
    p = p * r + 0.166665196f;
    p = p * r + 0.49999994f;
    return p * (r * r) + r + 1.0f;
}

/* e^x, and 0 for x <= |zero|. 2^n is multiplied in two factors, because the result may be
 * subnormal. */
UK_INLINE vf v_exp_above(vf x, const float zero)
{
    vf clamped = v_clamp(x, v_splat(zero), v_splat(89.0f));
    vf biased = clamped * LOG2_E + MAGIC;
    vf p = v_exp_rest(clamped, biased - MAGIC);
    vi whole = (vi)((vu)biased - 0x4b400000u), half = whole >> 1;
    p = v_select(x <= zero, (vf){0}, p);
    return p * v_power_of_two(half) * v_power_of_two((vi)((vu)whole - (vu)half));
}
#endif

UK_INLINE vf v_exp(vf x)
{
    return v_exp_above(x, -104.0f);
}

/* e^x for x up to 88, and 0 for results less than 2^-126: a subnormal result costs as much as an
 * underflow. A mask that adds -100, as Swin's does, makes many of them. */
#if defined UK_LEVEL_AVX512
UK_INLINE vf v_exp_normal(vf x)
{
    return v_exp_above(x, EXP_NORMAL_MIN);
}
#else
UK_INLINE vf v_exp_normal(vf x)
{
    vf clamped = v_greater(v_splat(EXP_NORMAL_MIN), x);
    vf biased = clamped * LOG2_E + MAGIC_EXPONENT;
    vf p = v_exp_rest(clamped, biased - MAGIC_EXPONENT) * (vf)((vu)biased << 23);
    return (vf)((vi)p & ~(x <= EXP_NORMAL_MIN));
}
#endif

/* x = 2^e * m, m in [sqrt 1/2, sqrt 2): log x = e * ln 2 + log m. */
UK_INLINE vf v_log(vf x)
{
    vi tiny = x < 1.17549435e-38f;
    vf normal = v_select(tiny, x * 8388608.0f, x);
    vu bits = (vu)normal - 0x3f3504f3u;
    vi e = (vi)bits >> 23;
    vf exponent = __builtin_convertvector(e, vf) - v_select(tiny, v_splat(23.0f), (vf){0});
    vf f = (vf)((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    vf p = v_splat(0.0675205886f);
    p = p * f - 0.116849706f;
    p = p * f + 0.11890848f;
    p = p * f - 0.124043435f;
    p = p * f + 0.142190531f;
    p = p * f - 0.166680425f;
    p = p * f + 0.200021431f;
    p = p * f - 0.250000089f;
    p = p * f + 0.333333135f;
    vf square = f * f;
    vf low = p * (f * square) + exponent * 3.19461850e-5f;
    vf r = exponent * 0.693115234f + (f - (square * 0.5f - low));
    r = v_select(x < v_splat(INFINITY), r, x); /* infinity and NaN */
    r = v_select(x == 0.0f, v_splat(-INFINITY), r);
    return v_select(x < 0.0f, v_splat(NAN), r);
}

/* Returns the quadrant of x and the distance of x from its middle, for |x| up to 8192. */
UK_INLINE vf v_reduce_angle(vf x, vu *out_quadrant)
{
    vf biased = x * 0.636619772f + MAGIC;
    vf n = biased - MAGIC;
    *out_quadrant = (vu)biased;
    vf r = x - n * 1.5703125f;
    r = r - n * 0.00048375129699707031f;
    r = r - n * 7.549533620476723e-8f;
    return r - n * 2.5633440682570896e-12f;
}

/* sin (quadrant 0), cos (1), -sin, -cos of r in [-pi/4, pi/4]. */
UK_INLINE vf v_sin_quadrant(vf r, vu quadrant)
{
    vf z = r * r;
    vf s = v_splat(-0.000195166547f);
    s = s * z + 0.00833217334f;
    s = s * z - 0.166666552f;
    s = s * (z * r) + r;
    vf c = v_splat(2.44377279e-5f);
    c = c * z - 0.00138873619f;
    c = c * z + 0.0416666456f;
    c = c * (z * z) + (1.0f - 0.5f * z);
    vf v = v_select((vi)((quadrant & 1u) != 0u), c, s);
    return (vf)((vu)v ^ ((quadrant & 2u) << 30));
}

/* Outside of the range of the reduction, calls the C library for these lanes. */
UK_INLINE vf v_sin_far(vf x, vf r, float (*far)(float))
{
    vi near = v_abs(x) <= 8192.0f;
    for (int i = 0; i < UK_VL; i++) {
        if (!near[i]) {
            r[i] = far(x[i]);
        }
    }
    return r;
}

UK_INLINE bool v_all(vi mask)
{
    int32_t all = -1;
    UK_UNROLL
    for (int i = 0; i < UK_VL; i++) {
        all &= mask[i];
    }
    return all;
}

UK_INLINE vf v_sin(vf x)
{
    vu quadrant;
    vf near = v_clamp(x, v_splat(-8192.0f), v_splat(8192.0f));
    vf r = v_reduce_angle(near, &quadrant);
    r = v_sin_quadrant(r, quadrant);
    r = v_select(x == 0.0f, x, r);
    return v_all(v_abs(x) <= 8192.0f) ? r : v_sin_far(x, r, sinf);
}

UK_INLINE vf v_cos(vf x)
{
    vu quadrant;
    vf near = v_clamp(x, v_splat(-8192.0f), v_splat(8192.0f));
    vf r = v_reduce_angle(near, &quadrant);
    r = v_sin_quadrant(r, quadrant + 1u);
    return v_all(v_abs(x) <= 8192.0f) ? r : v_sin_far(x, r, cosf);
}

UK_INLINE vf v_tanh(vf x)
{
    vf t = v_abs(x), z = x * x;
    vf p = v_splat(-0.00571703678f);
    p = p * z + 0.0206505787f;
    p = p * z - 0.0537434965f;
    p = p * z + 0.133314908f;
    p = p * z - 0.333332837f;
    vf small = p * (z * t) + t;
    vf large = 1.0f - 2.0f / (v_exp_normal(v_lesser(v_splat(88.0f), t + t)) + 1.0f);
    return v_with_sign(v_select(t < 0.625f, small, large), x);
}

/* Up to 0.92 a polynomial; beyond it 1 - erfc, where the logarithm of erfc is a polynomial. */
UK_INLINE vf v_erf(vf x)
{
    vf t = v_abs(x), z = x * x;
    vf p = v_splat(8.38238775e-5f);
    p = p * z - 0.000814559695f;
    p = p * z + 0.00520128617f;
    p = p * z - 0.0268594995f;
    p = p * z + 0.112836972f;
    p = p * z - 0.376126349f;
    p = p * z + 0.128379166f;
    vf small = p * t + t;
    vf u = v_clamp(t, (vf){0}, v_splat(4.0f));
    vf q = v_splat(0.000197085843f);
    q = q * u - 0.00305445236f;
    q = q * u + 0.0222715698f;
    q = q * u - 0.104023926f;
    q = q * u - 0.637077391f;
    q = q * u - 1.12773764f;
    q = q * u - 0.00018071731f;
    vf large = 1.0f - v_exp_normal(q);
    return v_with_sign(v_select(t < 0.92f, small, large), x);
}

#define SIGMOID_BOUND 87.33f

#if defined UK_LEVEL_AVX512
/* 1 / (1 + e^-x), and 0 below -87.33, the logarithm of the smallest normal float. |near| is x, or
 * the bound that x exceeds. */
UK_INLINE vf v_sigmoid_near(vf near, vf x)
{
    __mmask16 remains = _mm512_cmp_ps_mask((__m512)x, _mm512_set1_ps(-SIGMOID_BOUND), _CMP_NLT_UQ);
    vf biased = near * -LOG2_E + MAGIC_PART;
    vf n = biased - MAGIC_PART;
    vf r = -(n * 0.693147182f) - near + n * 1.90465421e-9f;
    vf power = (vf)_mm512_scalef_ps((__m512)v_power_part(biased), (__m512)n);
    /* A term less than in e^x: 1 is added to the product. */
    vf d = ((0.5f * r + 1.00001466f) * r + 1.0f) * power + 1.0f;
    /* A division takes as long as all the rest. */
    vf y = (vf)_mm512_maskz_rcp14_ps(remains, (__m512)d);
    return y + y * (1.0f - d * y);
}
#else
/* e^(-x - n * ln 2), for n as near to -x / ln 2 as an integer can be. It is less exact than
 * v_exp_rest(), because 1 is added to its product with 2^n. */
UK_INLINE vf v_sigmoid_rest(vf x, vf n)
{
    vf r = -(n * 0.693115234f) - x;
    r = r - n * 3.19461850e-5f;
    vf p = v_splat(0.00829761947f);
    p = p * r + 0.0419156293f;
    p = p * r + 0.166675765f;
    p = p * r + 0.499988927f;
    p = p * r + 0.999999691f;
    return p * r + 1.00000007f;
}

/* Computes the same. */
UK_INLINE vf v_sigmoid_near(vf near, vf x)
{
    vf biased = near * -LOG2_E + MAGIC_EXPONENT;
    vf e = v_sigmoid_rest(near, biased - MAGIC_EXPONENT) * (vf)((vu)biased << 23);
    return (vf)((vi)(1.0f / (1.0f + e)) & ~(x < -SIGMOID_BOUND));
}
#endif

UK_INLINE vf v_sigmoid(vf x)
{
    return v_sigmoid_near(v_clamp(x, v_splat(-SIGMOID_BOUND), v_splat(SIGMOID_BOUND)), x);
}

/* x * sigmoid(u). If u is a NaN, x is one, too. */
UK_INLINE vf v_times_sigmoid(vf x, vf u)
{
#if defined UK_LEVEL_AVX512
    /* Of u and the bound the one nearer to 0, with the sign of u; the bound for a NaN. */
    vf near = (vf)_mm512_range_ps((__m512)u, _mm512_set1_ps(SIGMOID_BOUND), 2);
    return x * v_sigmoid_near(near, u);
#else
    return x * v_sigmoid(u);
#endif
}

UK_INLINE vf v_silu(vf x)
{
    return v_times_sigmoid(x, x);
}

/*
 * x * h for negative x, else x * (1 - h), with h = erfc(|x| / sqrt 2) / 2. The logarithm of erfc is
 * a polynomial; the error of erfc is at most 1.3e-7. From 14.5 on it is 0.
 */
UK_INLINE vf v_gelu(vf x)
{
    vf t = v_lesser(v_splat(14.5f), v_abs(x));
    vf q = v_splat(2.57401281e-08f);
    q = q * t - 9.8665862e-07f;
    q = q * t + 1.32172223e-05f;
    q = q * t - 6.0429451e-05f;
    q = q * t - 0.000255307852f;
    q = q * t + 0.00508989999f;
    q = q * t - 0.036506094f;
    q = q * t - 0.318266392f;
    q = q * t - 0.79788816f;
    vf h = 0.5f * v_exp_normal(q * t);
    return x * v_select(x < 0.0f, h, 1.0f - h);
}

/* 2^x, with a relative error below 8e-5; 0 below -150. */
UK_INLINE vf v_exp2_short(vf x)
{
#if defined UK_LEVEL_AVX512
    vf r = (vf)_mm512_reduce_ps((__m512)x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
#else
    vf n = v_floor(v_greater(v_splat(-252.0f), x)), r = x - n;
#endif
    vf p = v_splat(0.0780245289f);
    p = p * r + 0.226067141f;
    p = p * r + 0.695833564f;
    p = p * r + 0.999925196f;
#if defined UK_LEVEL_AVX512
    return (vf)_mm512_scalef_ps((__m512)p, (__m512)x); /* takes the floor of x itself */
#else
    vi whole = __builtin_convertvector(v_select(n == n, n, (vf){0}), vi), half = whole >> 1;
    return p * v_power_of_two(half) * v_power_of_two(whole - half);
#endif
}

/*
 * max(x, 0) - |x| * h, with h = erfc(|x| / sqrt 2) / 2, whose logarithm to the base 2 is a
 * polynomial: see gelu_short_f32 of uk.h. From 14 on h is 0.
 */
UK_INLINE vf v_gelu_short(vf x)
{
    vf t = v_lesser(v_splat(14.0f), v_abs(x));
    vf q = v_splat(-0.000233251209f);
    q = q * t + 0.00486977585f;
    q = q * t - 0.0445990413f;
    q = q * t - 0.469680995f;
    q = q * t - 1.14626086f;
    q = q * t - 1.00035906f;
    return v_relu(x) - t * v_exp2_short(q);
}

/* x * (1 + tanh u) / 2 = x / (1 + e^-2u), with u = sqrt(2 / pi) * (x + 0.044715 * x^3). */
UK_INLINE vf v_gelu_tanh(vf x)
{
    return v_times_sigmoid(x, x * (1.59576912f + 0.0713548163f * (x * x)));
}

UK_INLINE vf v_hardsigmoid(vf x)
{
    return v_clamp(x + 3.0f, (vf){0}, v_splat(6.0f)) * (1.0f / 6.0f);
}

UK_INLINE vf v_hardswish(vf x)
{
    return x * v_hardsigmoid(x);
}

#endif
