/* SPDX-License-Identifier: MIT */
/*
 * Functions of floats with errors of a few units in the last place, including NaN and infinity: the
 * built-in functions may be off by 2^-11, or undefined. The polynomials are those of Cephes (S.
 * Moshier). Products and sums that must not be contracted or simplified are precise.
 */

/* v * 2^e, for |e| up to 250; subnormals may become 0. */
float scale2(float v, int e)
{
    int half_e = e / 2;
    v *= uintBitsToFloat(uint(half_e + 127) << 23);
    return v * uintBitsToFloat(uint(e - half_e + 127) << 23);
}

float exp_f32(float x)
{
    if (is_nan(x)) {
        return x;
    }
    if (x > 88.8) {
        return INF;
    }
    if (x < -104.0) {
        return 0.0;
    }
    float n = roundEven(x * 1.44269504088896341);
    precise float r = x - n * 0.693359375;
    r = r - n * -2.12194440e-4;
    float p = 1.9875691500e-4;
    p = p * r + 1.3981999507e-3;
    p = p * r + 8.3334519073e-3;
    p = p * r + 4.1665795894e-2;
    p = p * r + 1.6666665459e-1;
    p = p * r + 5.0000001201e-1;
    return scale2(p * r * r + r + 1.0, int(n));
}

float expm1_f32(float x)
{
    if (is_nan(x) || abs(x) > 0.5) {
        return exp_f32(x) - 1.0;
    }
    float p = 1.0 / 40320.0;
    p = p * x + 1.0 / 5040.0;
    p = p * x + 1.0 / 720.0;
    p = p * x + 1.0 / 120.0;
    p = p * x + 1.0 / 24.0;
    p = p * x + 1.0 / 6.0;
    p = p * x + 0.5;
    return p * x * x + x;
}

float log_f32(float x)
{
    if (is_nan(x) || x < 0) {
        return NAN;
    }
    if (is_inf(x)) {
        return x;
    }
    if ((floatBitsToUint(x) & 0x7fffffffu) == 0u) {
        return -INF;
    }
    int e = 0;
    if (floatBitsToUint(x) < 0x00800000u) { /* subnormal */
        x = float(floatBitsToUint(x));
        e = -149;
    }
    uint bits = floatBitsToUint(x);
    e += int(bits >> 23) - 126;
    float m = uintBitsToFloat((bits & 0x7fffffu) | 0x3f000000u); /* 0.5 to 1 */
    if (m < 0.70710678) {
        m += m;
        e--;
    }
    precise float f = m - 1.0;
    float z = f * f;
    float p = 7.0376836292e-2;
    p = p * f - 1.1514610310e-1;
    p = p * f + 1.1676998740e-1;
    p = p * f - 1.2420140846e-1;
    p = p * f + 1.4249322787e-1;
    p = p * f - 1.6668057665e-1;
    p = p * f + 2.0000714765e-1;
    p = p * f - 2.4999993993e-1;
    p = p * f + 3.3333331174e-1;
    precise float y = p * f * z + float(e) * -2.12194440e-4;
    y = y - 0.5 * z;
    y = f + y;
    return y + float(e) * 0.693359375;
}

float log1p_f32(float x)
{
    if (!(abs(x) < 0.5)) {
        return log_f32(1.0 + x);
    }
    precise float u = 1.0 + x;
    precise float d = u - 1.0;
    return d == 0 ? x : log_f32(u) * (x / d);
}

float tanh_f32(float x)
{
    float t = expm1_f32(2.0 * min(abs(x), 10.0));
    float y = is_nan(x) ? x : t / (t + 2.0);
    return x < 0 ? -y : is_nan(x) || x > 0 ? y : x;
}

float sinh_f32(float x)
{
    float t = expm1_f32(abs(x)), y = 0.5 * (t + t / (t + 1.0));
    if (abs(x) > 88.0) {
        t = exp_f32(0.5 * abs(x));
        y = 0.5 * t * t;
    }
    return x < 0 ? -y : x == 0 ? x : y;
}

float cosh_f32(float x)
{
    float t = exp_f32(abs(x));
    if (abs(x) > 88.0) {
        t = exp_f32(0.5 * abs(x));
        return 0.5 * t * t;
    }
    return 0.5 * (t + 1.0 / t);
}

float asinh_f32(float x)
{
    float a = abs(x);
    float y = a > 1e9 ? log_f32(a) + 0.69314718 : log1p_f32(a + a * a / (1.0 + sqrt(1.0 + a * a)));
    return x < 0 ? -y : x == 0 ? x : y;
}

float acosh_f32(float x)
{
    float t = x - 1.0;
    if (t < 0) {
        return NAN;
    }
    return x > 1e9 ? log_f32(x) + 0.69314718 : log1p_f32(t + sqrt(2.0 * t + t * t));
}

float atanh_f32(float x)
{
    float a = abs(x), y = 0.5 * log1p_f32(2.0 * a / (1.0 - a));
    return a == 1.0 ? (x < 0 ? -INF : INF) : x < 0 ? -y : x == 0 ? x : y;
}

/* Subtracts the nearest multiple of pi/2 from x, and returns that multiple modulo 4. For huge x it
 * uses the bits of 2/pi (Payne and Hanek). */
float reduce_angle(float x, inout int quadrant)
{
    float a = abs(x), r;
    if (a < 100000.0) {
        float n = roundEven(a * 0.636619772);
        precise float y = fma(n, -1.5703125, a);
        y = fma(n, -4.837512969970703125e-4, y);
        y = fma(n, -7.54978995489188216e-8, y);
        r = y;
        quadrant = int(n);
    } else {
        /* 2/pi in words; the bits below begin at the place of the exponent. */
        const uint digits[7] = uint[](0u, 0xa2f9836eu, 0x4e441529u, 0xfc2757d1u, 0xf534ddc0u,
                                      0xdb629599u, 0x3c439041u);
        uint bits = floatBitsToUint(a), m = (bits & 0x7fffffu) | 0x800000u;
        uint place = (bits >> 23) - 150u + 32u - 2u, word = place / 32u, shift = place % 32u;
        uint w[3];
        for (uint i = 0u; i < 3u; i++) {
            uint high = digits[word + i], low = digits[word + i + 1u];
            w[i] = shift == 0u ? high : high << shift | low >> 32u - shift;
        }
        uint64_t product = (uint64_t(m) * w[0] << 32) + uint64_t(m) * w[1] +
                           (uint64_t(m) * w[2] >> 32);
        quadrant = int(product >> 62);
        int64_t fraction = int64_t(product << 2);
        quadrant += fraction < 0l ? 1 : 0;
        r = float(fraction) * 8.51530395e-20; /* pi/2 / 2^64 */
    }
    quadrant = x < 0 ? -quadrant & 3 : quadrant & 3;
    return x < 0 ? -r : r;
}

float sin_near(float r)
{
    float z = r * r, p = -1.9515295891e-4;
    p = p * z + 8.3321608736e-3;
    p = p * z - 1.6666654611e-1;
    return p * z * r + r;
}

float cos_near(float r)
{
    float z = r * r, p = 2.443315711809948e-5;
    p = p * z - 1.388731625493765e-3;
    p = p * z + 4.166664568298827e-2;
    return p * z * z - 0.5 * z + 1.0;
}

/* The sine of x + |quarters| * pi/2. */
float sin_f32(float x, int quarters)
{
    int quadrant = 0;
    if (is_nan(x) || is_inf(x)) {
        return NAN;
    }
    float r = reduce_angle(x, quadrant);
    quadrant += quarters;
    float y = (quadrant & 1) == 0 ? sin_near(r) : cos_near(r);
    return (quadrant & 2) == 0 ? y : -y;
}

float tan_f32(float x)
{
    int quadrant = 0;
    if (is_nan(x) || is_inf(x)) {
        return NAN;
    }
    float r = reduce_angle(x, quadrant), s = sin_near(r), c = cos_near(r);
    return (quadrant & 1) == 0 ? s / c : -c / s;
}

float asin_near(float x)
{
    float z = x * x, p = 4.2163199048e-2;
    p = p * z + 2.4181311049e-2;
    p = p * z + 4.5470025998e-2;
    p = p * z + 7.4953002686e-2;
    p = p * z + 1.6666752422e-1;
    return p * z * x + x;
}

float asin_f32(float x)
{
    float a = abs(x);
    if (!(a <= 1.0)) {
        return NAN;
    }
    float y = a > 0.5 ? 1.57079632679 - 2.0 * asin_near(sqrt(0.5 * (1.0 - a))) : asin_near(a);
    return x < 0 ? -y : x == 0 ? x : y;
}

float acos_f32(float x)
{
    if (!(abs(x) <= 1.0)) {
        return NAN;
    }
    if (x > 0.5) {
        return 2.0 * asin_near(sqrt(0.5 * (1.0 - x)));
    }
    return x < -0.5 ? 3.14159265359 - 2.0 * asin_near(sqrt(0.5 * (1.0 + x)))
                    : 1.57079632679 - asin_near(x);
}

float atan_f32(float x)
{
    float a = abs(x), base = 0.0;
    if (is_nan(x) || x == 0) {
        return x;
    }
    if (a > 2.414213562373095) {
        base = 1.57079632679;
        a = -1.0 / a;
    } else if (a > 0.4142135623730950) {
        base = 0.78539816339;
        a = (a - 1.0) / (a + 1.0);
    }
    float z = a * a, p = 8.05374449538e-2;
    p = p * z - 1.38776856032e-1;
    p = p * z + 1.99777106478e-1;
    p = p * z - 3.33329491539e-1;
    float y = base + (p * z * a + a);
    return x < 0 ? -y : y;
}

bool is_negative(float v)
{
    return floatBitsToUint(v) >> 31 == 1u;
}

float atan2_f32(float y, float x)
{
    if (is_nan(x) || is_nan(y)) {
        return NAN;
    }
    float a;
    if (is_inf(x) && is_inf(y)) {
        a = 0.78539816339;
    } else if (y == 0) {
        a = 0.0;
    } else {
        a = x == 0 ? 1.57079632679 : atan_f32(abs(y) / abs(x));
    }
    a = is_negative(x) ? 3.14159265359 - a : a;
    return is_negative(y) ? -a : a;
}

float erfc_above_1(float a)
{
    float q = 1.0 / a, z = q * q, p;
    if (a < 2.0) {
        p = 2.326819970068386e-2;
        p = p * z - 1.387039388740657e-1;
        p = p * z + 3.687424674597105e-1;
        p = p * z - 5.824733027278666e-1;
        p = p * z + 6.210004621745983e-1;
        p = p * z - 4.944515323274145e-1;
        p = p * z + 3.404879937665872e-1;
        p = p * z - 2.741127028184656e-1;
        p = p * z + 5.638259427386472e-1;
    } else {
        p = -1.047766399936249e+1;
        p = p * z + 1.297719955372516e+1;
        p = p * z - 7.495518717768503e+0;
        p = p * z + 2.921019019210786e+0;
        p = p * z - 1.015265279202700e+0;
        p = p * z + 4.218463358204948e-1;
        p = p * z - 2.820767439740514e-1;
        p = p * z + 5.641895067754075e-1;
    }
    return exp_f32(-a * a) * q * p;
}

float erf_below_1(float x)
{
    float z = x * x, p = 7.853861353153693e-5;
    p = p * z - 8.010193625184903e-4;
    p = p * z + 5.188327685732524e-3;
    p = p * z - 2.685381193529856e-2;
    p = p * z + 1.128358514861418e-1;
    p = p * z - 3.761262582423300e-1;
    p = p * z + 1.128379165726710e+0;
    return p * x;
}

float erf_f32(float x)
{
    float a = abs(x);
    if (is_nan(x) || a < 1.0) {
        return erf_below_1(x);
    }
    float y = a > 10.0 ? 1.0 : 1.0 - erfc_above_1(a);
    return x < 0 ? -y : y;
}

/* 1 + erf(x), without cancellation far below 0. */
float one_plus_erf(float x)
{
    return x < -1.0 ? (x < -14.0 ? 0.0 : erfc_above_1(-x)) : 1.0 + erf_f32(x);
}

float sigmoid_f32(float x)
{
    return 1.0 / (1.0 + exp_f32(-x));
}

/* Exact: subtracts the quotient a few digits at a time. */
float fmod_f32(float x, float y)
{
    float a = abs(x), b = abs(y);
    if (is_nan(x) || is_nan(y) || is_inf(x) || b == 0) {
        return NAN;
    }
    if (is_inf(y)) {
        return x;
    }
    for (int i = 0; i < 20 && a >= b; i++) {
        int apart = int(floatBitsToUint(a) >> 23) - int(floatBitsToUint(b) >> 23);
        float c = scale2(b, max(apart - 21, 0));
        precise float rest = fma(-trunc(a / c), c, a);
        rest = rest < 0 ? rest + c : rest >= c ? rest - c : rest;
        a = rest;
    }
    return is_negative(x) ? -a : a;
}

float floor_mod_f32(float a, float b)
{
    float mod = fmod_f32(a, b);
    return mod != 0 && (mod < 0) != (b < 0) ? mod + b : mod;
}

float floor_div_f32(float a, float b)
{
    if (b == 0) {
        return a / b;
    }
    float mod = fmod_f32(a, b), quotient = (a - mod) / b;
    if (mod != 0 && (mod < 0) != (b < 0)) {
        quotient -= 1.0;
    }
    return quotient == 0 ? (is_negative(a / b) ? -0.0 : 0.0) : roundEven(quotient);
}

/* Uses a logarithm in two parts, because its error is multiplied by up to 88. */
float pow_f32(float a, float b)
{
    if (b == 0 || a == 1.0) {
        return 1.0;
    }
    if (is_nan(a) || is_nan(b)) {
        return NAN;
    }
    bool is_whole = trunc(b) == b, is_odd = is_whole && abs(b) < 16777216.0 && (int(b) & 1) != 0;
    bool negate = is_negative(a) && is_odd;
    float x = abs(a), y;
    if (is_inf(b)) {
        y = x == 1.0 ? 1.0 : (x > 1.0) == (b > 0) ? INF : 0.0;
    } else if (x == 0 || is_inf(x)) {
        y = (x == 0) == (b > 0) ? 0.0 : INF;
    } else if (a < 0 && !is_whole) {
        return NAN;
    } else {
        precise float high = log_f32(x);
        /* One Newton step on exp(high) = x gives the rounding error of |high|. */
        precise float low = x < 1e-30 || x > 1e30 ? 0.0 : (x - exp_f32(high)) / x;
        precise float product = b * high;
        precise float rest = fma(b, high, -product) + b * low;
        y = exp_f32(product);
        y = is_inf(y) || y == 0 ? y : y + y * rest;
    }
    return negate ? -y : y;
}
