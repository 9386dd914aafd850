/* SPDX-License-Identifier: MIT */
/* Elements as doubles, for forms that need HAL_F64. Include this after element.glsl. */
layout(buffer_reference, scalar, buffer_reference_align = 8) buffer F64 { float64_t at[]; };

float64_t f64_of_bits(uint64_t bits)
{
    return packDouble2x32(unpackUint2x32(bits));
}

uint64_t f64_magnitude(float64_t v)
{
    return packUint2x32(unpackDouble2x32(v)) & 0x7ffffffffffffffful;
}

bool is_nan(float64_t v)
{
    return f64_magnitude(v) > 0x7ff0000000000000ul;
}

bool is_inf(float64_t v)
{
    return f64_magnitude(v) == 0x7ff0000000000000ul;
}

/* Numbers out of range and NaN become the lowest number. */
int64_t f64_to_i64(float64_t v)
{
    return v >= -9223372036854775808.0lf && v < 9223372036854775808.0lf ? int64_t(v) : INT64_LOWEST;
}

/* The same for types that fit into an int32. */
int64_t f64_to_i32(float64_t v)
{
    return v > -2147483649.0lf && v < 2147483648.0lf ? int64_t(v) : -2147483648l;
}

float64_t load_f64(uint64_t at, uint dtype)
{
    if (dtype == DT_F64) {
        return F64(at).at[0];
    }
    if (is_float(dtype)) {
        return float64_t(load_float(at, dtype));
    }
    return dtype == DT_U64 ? float64_t(U64(at).at[0]) : float64_t(load_int(at, dtype));
}

void store_f64(uint64_t at, uint dtype, float64_t v)
{
    if (dtype == DT_F64) {
        F64(at).at[0] = v;
    } else if (is_float(dtype)) {
        store_float(at, dtype, float(v));
    } else if (dtype == DT_BOOL) {
        store_int(at, dtype, v != 0 ? 1l : 0l);
    } else if (dtype == DT_U64 && v >= 9223372036854775808.0lf && v < 18446744073709551616.0lf) {
        U64(at).at[0] = uint64_t(v);
    } else if (dtype == DT_I64 || dtype == DT_U64 || dtype == DT_U32) {
        store_int(at, dtype, f64_to_i64(v));
    } else {
        store_int(at, dtype, f64_to_i32(v));
    }
}
