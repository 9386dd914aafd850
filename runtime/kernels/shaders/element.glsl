/* SPDX-License-Identifier: MIT */
/*
 * Elements in shaders, with the rules of runtime/kernels/convert.h: halves are computed in float
 * and rounded once, to nearest even; integers are computed in 64 bits and truncated. The constants
 * of all families include this file.
 */
#include "base/dtype.h"
#include "hal/vulkan/shaders/kernel.glsl"
#include "runtime/kernels/convert.h"

#define INT64_LOWEST (-0x7fffffffffffffffl - 1l)
#define INT64_HIGHEST 0x7fffffffffffffffl
#define INF uintBitsToFloat(0x7f800000u)
#define NAN uintBitsToFloat(0x7fc00000u)

/* Compilers may optimise comparisons with NaN away, but not bit operations. */
bool is_nan(float v)
{
    return (floatBitsToUint(v) & 0x7fffffffu) > 0x7f800000u;
}

bool is_inf(float v)
{
    return (floatBitsToUint(v) & 0x7fffffffu) == 0x7f800000u;
}

float f16_to_f32(uint h)
{
    uint exponent = h >> 10 & 31u, bits = (h & 0x7fffu) << 13;
    if (exponent == 31u) {
        bits += 224u << 23;
    } else if (exponent != 0u) {
        bits += 112u << 23;
    } else {
        bits = floatBitsToUint(float(h & 0x3ffu) * 5.9604644775390625e-8); /* 2^-24 */
    }
    return uintBitsToFloat(bits | (h & 0x8000u) << 16);
}

uint f32_to_f16(float v)
{
    uint bits = floatBitsToUint(v), sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) {
        return sign | 0x7e00u;
    }
    if (bits >= 0x47800000u) {
        return sign | 0x7c00u;
    }
    uint shift = 13u;
    if (bits < 0x38800000u) { /* a subnormal half */
        uint exponent = bits >> 23;
        if (exponent < 102u) {
            return sign;
        }
        shift = 126u - exponent;
        bits = (bits & 0x7fffffu) | 0x800000u;
    } else {
        bits -= 112u << 23;
    }
    uint whole = bits >> shift, rest = bits & (1u << shift) - 1u, tie = 1u << shift - 1u;
    return sign | whole + uint(rest > tie || (rest == tie && (whole & 1u) == 1u));
}

float bf16_to_f32(uint h)
{
    return uintBitsToFloat(h << 16);
}

uint f32_to_bf16(float v)
{
    uint bits = floatBitsToUint(v);
    return is_nan(v) ? bits >> 16 | 0x40u : bits + 0x7fffu + (bits >> 16 & 1u) >> 16;
}

/* A double's bits as a float, rounded; numbers below the smallest normal float become 0. */
float f64_to_f32(uint64_t v)
{
    uint sign = uint(v >> 32) & 0x80000000u;
    int exponent = int(v >> 52 & 0x7fful) - 1023;
    uint64_t fraction = v & 0xffffffffffffful;
    if (exponent == 1024) {
        return uintBitsToFloat(sign | 0x7f800000u | uint(fraction != 0ul) << 22);
    }
    if (exponent < -126) {
        return uintBitsToFloat(sign);
    }
    uint whole = uint(fraction >> 29), rest = uint(fraction & 0x1ffffffful);
    uint bits = uint(min(exponent, 128) + 127) << 23 | (exponent > 127 ? 0u : whole);
    if (exponent <= 127) {
        bits += uint(rest > 0x10000000u || (rest == 0x10000000u && (whole & 1u) == 1u));
    }
    return uintBitsToFloat(sign | bits);
}

/* A float as a double's bits; numbers below the smallest normal float become 0. */
uint64_t f32_to_f64(float v)
{
    uint bits = floatBitsToUint(v), exponent = bits >> 23 & 255u;
    uint64_t sign = uint64_t(bits >> 31) << 63, fraction = uint64_t(bits & 0x7fffffu) << 29;
    if (exponent == 0u) {
        return sign;
    }
    return sign | uint64_t(exponent == 255u ? 2047u : exponent + 896u) << 52 | fraction;
}

/* Numbers out of range and NaN become the lowest number. */
int64_t f32_to_i64(float v)
{
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? int64_t(v) : INT64_LOWEST;
}

/* The same for types that fit into an int32. */
int64_t f32_to_i32(float v)
{
    return v >= -2147483648.0 && v < 2147483648.0 ? int64_t(v) : -2147483648l;
}

uint dtype_width(uint dtype)
{
    switch (dtype) {
#define DTYPE(name, bytes, ...)                                                                    \
    case DT_##name:                                                                                \
        return bytes;
#include "base/dtype.def"
#undef DTYPE
    }
    return 0u;
}

bool is_float(uint dtype)
{
    return dtype == DT_F32 || dtype == DT_F16 || dtype == DT_BF16;
}

/* Not for doubles and complex numbers. */
int64_t load_int(uint64_t at, uint dtype)
{
    switch (dtype) {
    case DT_I8:
        return int64_t(int8_t(U8(at).at[0]));
    case DT_I16:
        return int64_t(int16_t(U16(at).at[0]));
    case DT_I32:
        return int64_t(int32_t(U32(at).at[0]));
    case DT_U8:
        return int64_t(U8(at).at[0]);
    case DT_U16:
        return int64_t(U16(at).at[0]);
    case DT_U32:
        return int64_t(U32(at).at[0]);
    case DT_BOOL:
        return U8(at).at[0] != uint8_t(0) ? 1l : 0l;
    }
    return int64_t(U64(at).at[0]);
}

float load_float(uint64_t at, uint dtype)
{
    switch (dtype) {
    case DT_F16:
        return f16_to_f32(uint(U16(at).at[0]));
    case DT_BF16:
        return bf16_to_f32(uint(U16(at).at[0]));
    }
    return F32(at).at[0];
}

float load_f32(uint64_t at, uint dtype)
{
    if (is_float(dtype)) {
        return load_float(at, dtype);
    }
    return dtype == DT_U64 ? float(U64(at).at[0]) : float(load_int(at, dtype));
}

int64_t load_i64(uint64_t at, uint dtype)
{
    return is_float(dtype) ? f32_to_i64(load_float(at, dtype)) : load_int(at, dtype);
}

bool load_truth(uint64_t at, uint dtype)
{
    return is_float(dtype) ? load_float(at, dtype) != 0 : load_int(at, dtype) != 0l;
}

void store_int(uint64_t at, uint dtype, int64_t v)
{
    switch (dtype_width(dtype)) {
    case 1:
        U8(at).at[0] = dtype == DT_BOOL ? uint8_t(v != 0l) : uint8_t(v);
        break;
    case 2:
        U16(at).at[0] = uint16_t(v);
        break;
    case 4:
        U32(at).at[0] = uint32_t(v);
        break;
    default:
        U64(at).at[0] = uint64_t(v);
    }
}

void store_float(uint64_t at, uint dtype, float v)
{
    switch (dtype) {
    case DT_F16:
        U16(at).at[0] = uint16_t(f32_to_f16(v));
        break;
    case DT_BF16:
        U16(at).at[0] = uint16_t(f32_to_bf16(v));
        break;
    default:
        F32(at).at[0] = v;
    }
}

void store_f32(uint64_t at, uint dtype, float v)
{
    if (is_float(dtype)) {
        store_float(at, dtype, v);
    } else if (dtype == DT_BOOL) {
        store_int(at, dtype, v != 0 ? 1l : 0l);
    } else if (dtype == DT_U64 && v >= 9223372036854775808.0 && v < 18446744073709551616.0) {
        U64(at).at[0] = uint64_t(v);
    } else if (dtype == DT_I64 || dtype == DT_U64 || dtype == DT_U32) {
        store_int(at, dtype, f32_to_i64(v));
    } else {
        store_int(at, dtype, f32_to_i32(v));
    }
}

void store_i64(uint64_t at, uint dtype, int64_t v)
{
    if (is_float(dtype)) {
        store_float(at, dtype, float(v));
    } else {
        store_int(at, dtype, v);
    }
}
