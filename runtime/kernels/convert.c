/* SPDX-License-Identifier: MIT */
/*
 * Conversions between element types and classes: one function for each pair, generated from one
 * list of types. Half-precision types go through float in blocks, by the micro-kernels. Called by
 * kernels on any worker.
 */
#include "config.h"

#include "runtime/kernels/convert.h"

#include "hal/cpu/uk.h"
#include "runtime/emit/emit.h"

/* Types that C has: NATIVE(dtype, C type, value v as a number, number v as a value). */
/* clang-format off */
#define NATIVE_TYPES(XX)                                                                           \
    XX(F32, float, v, FLOAT) XX(F64, double, v, FLOAT)                                             \
    XX(I8, int8_t, v, INT) XX(I16, int16_t, v, INT) XX(I32, int32_t, v, INT)                       \
    XX(I64, int64_t, v, INT) XX(U8, uint8_t, v, INT) XX(U16, uint16_t, v, INT)                     \
    XX(U32, uint32_t, v, INT) XX(U64, uint64_t, v, U64) XX(BOOL, uint8_t, v != 0, BOOL)
#define HALF_TYPES(XX) XX(F16, f16) XX(BF16, bf16)
/* clang-format on */

#define FITS_I32(type) (sizeof(type) < 4 || (sizeof(type) == 4 && !((type)-1 > 0)))
/* A class's number |v| as a value of each kind of type. */
#define FLOAT_FROM_FLOAT(type) (type) v
#define FLOAT_FROM_INT(type) (type) v
#define INT_FROM_FLOAT(type)                                                                       \
    (type)(FITS_I32(type) ? to_i32((double)v) : rt_convert_to_i64((double)v))
#define INT_FROM_INT(type) (type) v
#define U64_FROM_FLOAT(type) to_u64((double)v)
#define U64_FROM_INT(type) (type) v
#define BOOL_FROM_FLOAT(type) (type)(v != 0)
#define BOOL_FROM_INT(type) (type)(v != 0)
/* A value |v| of a type as a number of its class. */
#define I64_OF_FLOAT rt_convert_to_i64((double)v)
#define I64_OF_INT (int64_t) v
#define I64_OF_U64 (int64_t) v
#define I64_OF_BOOL v != 0

static int64_t to_i32(double v)
{
    return v > -0x1p31 - 1 && v < 0x1p31 ? (int32_t)v : INT32_MIN;
}

static uint64_t to_u64(double v)
{
    return v >= 0x1p63 && v < 0x1p64 ? (uint64_t)v : (uint64_t)rt_convert_to_i64(v);
}

/* The loop stands twice so that the compiler sees the contiguous case. */
#define EACH(packed_stride, body)                                                                  \
    if (stride == (int64_t)(packed_stride)) {                                                      \
        for (int64_t i = 0, at = 0; i < count; i++, at += (int64_t)(packed_stride)) {              \
            body;                                                                                  \
        }                                                                                          \
    } else {                                                                                       \
        for (int64_t i = 0, at = 0; i < count; i++, at += stride) {                                \
            body;                                                                                  \
        }                                                                                          \
    }

#define LOAD(name, type, class_type, value)                                                        \
    static void name(void *to, const char *from, int64_t stride, int64_t count)                    \
    {                                                                                              \
        class_type *y = to;                                                                        \
        EACH(sizeof(type), const type v = *(const type *)(const void *)(from + at);                \
             y[i] = (class_type)(value))                                                           \
    }

#define STORE(name, type, class_type, value)                                                       \
    static void name(char *to, int64_t stride, const void *from, int64_t count)                    \
    {                                                                                              \
        const class_type *x = from;                                                                \
        EACH(sizeof(type), const class_type v = x[i]; *(type *)(void *)(to + at) = value)          \
    }

#define XX(dtype, type, number, kind)                                                              \
    LOAD(load_##dtype##_f32, type, float, number)                                                  \
    LOAD(load_##dtype##_f64, type, double, number)                                                 \
    LOAD(load_##dtype##_i64, type, int64_t, I64_OF_##kind)                                         \
    LOAD(load_##dtype##_truth, type, uint8_t, v != 0)                                              \
    STORE(store_##dtype##_f32, type, float, kind##_FROM_FLOAT(type))                               \
    STORE(store_##dtype##_f64, type, double, kind##_FROM_FLOAT(type))                              \
    STORE(store_##dtype##_i64, type, int64_t, kind##_FROM_INT(type))                               \
    STORE(store_##dtype##_truth, type, uint8_t, (type)(v != 0))
NATIVE_TYPES(XX)
#undef XX

/* ---- halves -------------------------------------------------------------------------------- */

#define BLOCK 64

typedef void widen_f(float *y, const uint16_t *x, size_t n);
typedef void narrow_f(uint16_t *y, const float *x, size_t n);

static void load_half(widen_f *widen, rt_load_f *convert, char *to, size_t to_bytes,
                      const char *from, int64_t stride, int64_t count)
{
    uint16_t halves[BLOCK];
    float floats[BLOCK];

    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t n = count - done < BLOCK ? count - done : BLOCK;
        for (int64_t i = 0; i < n; i++) {
            halves[i] = *(const uint16_t *)(const void *)(from + (done + i) * stride);
        }
        widen(floats, halves, (size_t)n);
        convert(to + (size_t)done * to_bytes, (const char *)floats, sizeof(float), n);
    }
}

static void store_half(narrow_f *narrow, rt_load_f *convert, char *to, int64_t stride,
                       const char *from, size_t from_bytes, int64_t count)
{
    uint16_t halves[BLOCK];
    float floats[BLOCK];

    for (int64_t done = 0; done < count; done += BLOCK) {
        int64_t n = count - done < BLOCK ? count - done : BLOCK;
        convert(floats, from + (size_t)done * from_bytes, (int64_t)from_bytes, n);
        narrow(halves, floats, (size_t)n);
        for (int64_t i = 0; i < n; i++) {
            *(uint16_t *)(void *)(to + (done + i) * stride) = halves[i];
        }
    }
}

#define HALF(dtype, lower, class, class_type, class_dtype)                                         \
    static void load_##dtype##_##class(void *to, const char *from, int64_t stride, int64_t count)  \
    {                                                                                              \
        load_half(hal_cpu_uk()->lower##_to_f32, load_F32_##class, to, sizeof(class_type), from,    \
                  stride, count);                                                                  \
    }                                                                                              \
    static void store_##dtype##_##class(char *to, int64_t stride, const void *from, int64_t count) \
    {                                                                                              \
        store_half(hal_cpu_uk()->f32_to_##lower, load_##class_dtype##_f32, to, stride, from,       \
                   sizeof(class_type), count);                                                     \
    }

#define XX(dtype, lower)                                                                           \
    HALF(dtype, lower, f64, double, F64)                                                           \
    HALF(dtype, lower, i64, int64_t, I64)                                                          \
    HALF(dtype, lower, truth, uint8_t, BOOL)                                                       \
    static void load_##dtype##_f32(void *to, const char *from, int64_t stride, int64_t count)      \
    {                                                                                              \
        if (stride == (int64_t)sizeof(uint16_t)) {                                                 \
            hal_cpu_uk()->lower##_to_f32(to, (const uint16_t *)(const void *)from, (size_t)count); \
        } else {                                                                                   \
            load_half(hal_cpu_uk()->lower##_to_f32, load_F32_f32, to, sizeof(float), from, stride, \
                      count);                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void store_##dtype##_f32(char *to, int64_t stride, const void *from, int64_t count)     \
    {                                                                                              \
        if (stride == (int64_t)sizeof(uint16_t)) {                                                 \
            hal_cpu_uk()->f32_to_##lower((uint16_t *)(void *)to, from, (size_t)count);             \
        } else {                                                                                   \
            store_half(hal_cpu_uk()->f32_to_##lower, load_F32_f32, to, stride, from,               \
                       sizeof(float), count);                                                      \
        }                                                                                          \
    }
HALF_TYPES(XX)
#undef XX

/* ---- complex numbers ----------------------------------------------------------------------- */

/* Reals become complex numbers; complex numbers give their real parts. A bool is true where the
 * number differs from 0. */
#define REAL_AND_COMPLEX(dtype)                                                                    \
    static void load_##dtype##_c128(void *to, const char *from, int64_t stride, int64_t count)     \
    {                                                                                              \
        double *y = to;                                                                            \
        for (int64_t i = 0; i < count; i++) {                                                      \
            load_##dtype##_f64(&y[2 * i], from + i * stride, 0, 1);                                \
            y[2 * i + 1] = 0;                                                                      \
        }                                                                                          \
    }                                                                                              \
    static void store_##dtype##_c128(char *to, int64_t stride, const void *from, int64_t count)    \
    {                                                                                              \
        const double *x = from;                                                                    \
        for (int64_t i = 0; i < count; i++) {                                                      \
            double v = x[2 * i];                                                                   \
            if (DT_##dtype == DT_BOOL) {                                                           \
                v = v != 0 || x[2 * i + 1] != 0;                                                   \
            }                                                                                      \
            store_##dtype##_f64(to + i * stride, 0, &v, 1);                                        \
        }                                                                                          \
    }
#define XX(dtype, ...) REAL_AND_COMPLEX(dtype)
NATIVE_TYPES(XX)
HALF_TYPES(XX)
#undef XX

/* A complex type is two numbers of a real type; only the real parts go to the class of reals. */
#define COMPLEX_OF_CLASS(dtype, part, class, class_type)                                           \
    static void store_##dtype##_##class(char *to, int64_t stride, const void *from, int64_t count) \
    {                                                                                              \
        const class_type *x = from;                                                                \
        for (int64_t i = 0; i < count; i++) {                                                      \
            const double v[2] = {(double)x[i], 0};                                                 \
            store_##part##_f64(to + i * stride, (int64_t)dtype_bytes(DT_##part), v, 2);            \
        }                                                                                          \
    }
#define COMPLEX(dtype, part)                                                                       \
    static void load_##dtype##_c128(void *to, const char *from, int64_t stride, int64_t count)     \
    {                                                                                              \
        int64_t bytes = (int64_t)dtype_bytes(DT_##part);                                           \
        if (stride == 2 * bytes) {                                                                 \
            load_##part##_f64(to, from, bytes, 2 * count);                                         \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i < count; i++) {                                                      \
            load_##part##_f64((double *)to + 2 * i, from + i * stride, bytes, 2);                  \
        }                                                                                          \
    }                                                                                              \
    /* The real parts, in the form of other types. */                                              \
    static void load_##dtype##_f32(void *to, const char *from, int64_t stride, int64_t count)      \
    {                                                                                              \
        load_##part##_f32(to, from, stride, count);                                                \
    }                                                                                              \
    static void load_##dtype##_f64(void *to, const char *from, int64_t stride, int64_t count)      \
    {                                                                                              \
        load_##part##_f64(to, from, stride, count);                                                \
    }                                                                                              \
    static void load_##dtype##_i64(void *to, const char *from, int64_t stride, int64_t count)      \
    {                                                                                              \
        load_##part##_i64(to, from, stride, count);                                                \
    }                                                                                              \
    static void load_##dtype##_truth(void *to, const char *from, int64_t stride, int64_t count)    \
    {                                                                                              \
        uint8_t *y = to, parts[2];                                                                 \
        for (int64_t i = 0; i < count; i++) {                                                      \
            load_##part##_truth(parts, from + i * stride, (int64_t)dtype_bytes(DT_##part), 2);     \
            y[i] = parts[0] | parts[1];                                                            \
        }                                                                                          \
    }                                                                                              \
    static void store_##dtype##_c128(char *to, int64_t stride, const void *from, int64_t count)    \
    {                                                                                              \
        int64_t bytes = (int64_t)dtype_bytes(DT_##part);                                           \
        for (int64_t i = 0; i < count; i++) {                                                      \
            store_##part##_f64(to + i * stride, bytes, (const double *)from + 2 * i, 2);           \
        }                                                                                          \
    }                                                                                              \
    COMPLEX_OF_CLASS(dtype, part, f32, float)                                                      \
    COMPLEX_OF_CLASS(dtype, part, f64, double)                                                     \
    COMPLEX_OF_CLASS(dtype, part, i64, int64_t)                                                    \
    COMPLEX_OF_CLASS(dtype, part, truth, uint8_t)
COMPLEX(C32, F16)
COMPLEX(C64, F32)
COMPLEX(C128, F64)

/* ---- tables -------------------------------------------------------------------------------- */

#define LOADS(dtype)                                                                               \
    [DT_##dtype] = {load_##dtype##_f32, load_##dtype##_f64, load_##dtype##_i64,                    \
                    load_##dtype##_truth, load_##dtype##_c128},
#define STORES(dtype)                                                                              \
    [DT_##dtype] = {store_##dtype##_f32, store_##dtype##_f64, store_##dtype##_i64,                 \
                    store_##dtype##_truth, store_##dtype##_c128},
#define XX_LOADS(dtype, ...) LOADS(dtype)
#define XX_STORES(dtype, ...) STORES(dtype)

static rt_load_f *const loads[DTYPE_COUNT][RT_CLASS_COUNT] = {
    NATIVE_TYPES(XX_LOADS) HALF_TYPES(XX_LOADS) LOADS(C32) LOADS(C64) LOADS(C128)};

static rt_store_f *const stores[DTYPE_COUNT][RT_CLASS_COUNT] = {
    NATIVE_TYPES(XX_STORES) HALF_TYPES(XX_STORES) STORES(C32) STORES(C64) STORES(C128)};

rt_load_f *rt_convert_load(enum dtype from, enum rt_class to)
{
    return loads[from][to];
}

rt_store_f *rt_convert_store(enum rt_class from, enum dtype to)
{
    return stores[to][from];
}

size_t rt_convert_class_bytes(enum rt_class class)
{
    static const size_t bytes[RT_CLASS_COUNT] = {sizeof(float), sizeof(double), sizeof(int64_t),
                                                 sizeof(uint8_t), 2 * sizeof(double)};
    return bytes[class];
}

/* Half-precision elements converted at a time: a few cache lines. */
#define HALVES_CHUNK 256

bool rt_convert_are_halves(const float *v, size_t count)
{
    uint16_t halves[HALVES_CHUNK];
    float back[HALVES_CHUNK];
    for (size_t at = 0; at < count; at += HALVES_CHUNK) {
        size_t n = count - at < HALVES_CHUNK ? count - at : HALVES_CHUNK;
        hal_cpu_uk()->f32_to_f16(halves, v + at, n);
        hal_cpu_uk()->f16_to_f32(back, halves, n);
        if (memcmp(back, v + at, n * sizeof(float)) != 0) {
            return false;
        }
    }
    return true;
}

enum rt_class rt_convert_class(enum dtype dtype)
{
    if (dtype == DT_F64 || dtype_infos[dtype].kind == DTYPE_COMPLEX) {
        return dtype == DT_F64 ? RT_CLASS_F64 : RT_CLASS_C128;
    }
    return dtype_is_float(dtype) ? RT_CLASS_F32 : RT_CLASS_I64;
}

bool rt_convert_is_direct(enum rt_class class, enum dtype dtype)
{
    static const enum dtype direct[RT_CLASS_COUNT] = {DT_F32, DT_F64, DT_I64, DT_BOOL, DT_C128};
    return direct[class] == dtype;
}

/* For two integer types it is the wider one. If a signed type cannot hold the unsigned one, it is a
 * type that holds both, if there is one. */
static enum dtype promote_ints(enum dtype a, enum dtype b)
{
    static const enum dtype twice[9] = {[1] = DT_I16, [2] = DT_I32, [4] = DT_I64, [8] = DT_I64};

    if (dtype_infos[a].kind == dtype_infos[b].kind) {
        return dtype_bytes(a) >= dtype_bytes(b) ? a : b;
    }
    enum dtype with_sign = dtype_infos[a].kind == DTYPE_INT ? a : b;
    enum dtype without = with_sign == a ? b : a;
    return dtype_bytes(with_sign) > dtype_bytes(without) ? with_sign : twice[dtype_bytes(without)];
}

enum dtype rt_convert_complex(enum dtype dtype)
{
    switch (dtype) {
    case DT_F16:
        return DT_C32;
    case DT_F64:
        return DT_C128;
    default:
        return DT_C64;
    }
}

enum dtype rt_convert_part(enum dtype dtype)
{
    return dtype == DT_C32 ? DT_F16 : dtype == DT_C64 ? DT_F32 : DT_F64;
}

/* At least one of them is complex; integers and bools never widen the result. */
static enum dtype promote_complex(enum dtype a, enum dtype b)
{
    bool a_is_complex = dtype_infos[a].kind == DTYPE_COMPLEX;
    bool b_is_complex = dtype_infos[b].kind == DTYPE_COMPLEX;
    enum dtype with = a_is_complex ? a : b, other = a_is_complex ? b : a;

    if (!(a_is_complex && b_is_complex)) {
        if (!dtype_is_float(other)) {
            return with;
        }
        other = rt_convert_complex(other);
    }
    return dtype_bytes(with) >= dtype_bytes(other) ? with : other;
}

enum dtype rt_convert_promote(enum dtype a, enum dtype b)
{
    bool a_is_float = dtype_is_float(a);
    bool b_is_float = dtype_is_float(b);

    if (a == b || b == DT_BOOL) {
        return a;
    }
    if (dtype_infos[a].kind == DTYPE_COMPLEX || dtype_infos[b].kind == DTYPE_COMPLEX) {
        return promote_complex(a, b);
    }
    if (a == DT_BOOL) {
        return b;
    }
    if (a_is_float && b_is_float) {
        return a == DT_F64 || b == DT_F64 ? DT_F64 : DT_F32;
    }
    if (a_is_float || b_is_float) {
        return a_is_float ? a : b;
    }
    return promote_ints(a, b);
}

struct rt_number rt_convert_arg(const struct rt_emit *emit, uint32_t index)
{
    const struct rt_value *value = rt_emit_value(emit, index);

    if (value->kind == RT_FLOAT) {
        double f = rt_emit_number(emit, index);
        return (struct rt_number){f, rt_convert_to_i64(f)};
    }
    if (value->kind == RT_BOOL) {
        bool b = rt_emit_number(emit, index) != 0;
        return (struct rt_number){b, b};
    }
    int64_t number = rt_emit_int(emit, index);
    return (struct rt_number){(double)number, number};
}

void rt_convert_store_number(struct rt_number number, enum dtype dtype, void *to)
{
    enum dtype_kind kind = dtype_infos[dtype].kind;

    if (kind == DTYPE_INT || kind == DTYPE_UINT) {
        rt_convert_store(RT_CLASS_I64, dtype)(to, 0, &number.i, 1);
    } else {
        rt_convert_store(RT_CLASS_F64, dtype)(to, 0, &number.f, 1);
    }
}
