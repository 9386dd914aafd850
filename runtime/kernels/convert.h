/* SPDX-License-Identifier: MIT */
/*
 * Element types in kernels. A kernel computes in one of five classes and converts its operands on
 * reading and writing, so that an inner loop is written once for each class and not for each type.
 * Half-precision types are computed in float and rounded once. Small integers are computed in 64
 * bits and truncated, which equals wrapping in C.
 *
 * A float outside the range of int32 (for uint32 and int64: of int64) becomes the smallest integer
 * of that type and is then truncated for narrower types. A bool is true where a byte differs from
 * 0, even if a file holds bytes other than 0 and 1.
 */
#ifndef PTED_RUNTIME_KERNELS_CONVERT_H
#define PTED_RUNTIME_KERNELS_CONVERT_H

#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"

enum rt_class {
    RT_CLASS_F32,
    RT_CLASS_F64,
    RT_CLASS_I64,
    RT_CLASS_TRUTH, /* a byte, 0 or 1 */
    RT_CLASS_C128,  /* two doubles */
    RT_CLASS_COUNT,
};

#define RT_CLASS_BYTES_MAX 16

/* A number in both forms; a loop takes the one of its class. */
struct rt_number {
    double f;
    int64_t i;
};

#ifndef HAL_SHADER
/* Converts |count| elements, |stride| bytes apart, into packed elements of a class, or back. */
typedef void rt_load_f(void *to, const char *from, int64_t stride, int64_t count);
typedef void rt_store_f(char *to, int64_t stride, const void *from, int64_t count);

/* For each pair of types. A conversion from a complex type to a real type or class takes the real
 * parts; a bool is true where either part differs from 0. */
rt_load_f *rt_convert_load(enum dtype from, enum rt_class to);
rt_store_f *rt_convert_store(enum rt_class from, enum dtype to);

size_t rt_convert_class_bytes(enum rt_class class);

/* Returns the class in which numbers of this type are computed; a bool counts as an integer. */
enum rt_class rt_convert_class(enum dtype dtype);

/* Does a kernel of that class read and write packed elements of this type directly? */
bool rt_convert_is_direct(enum rt_class class, enum dtype dtype);

/* Returns the complex type for a real one (for integers: of float32), and the reverse. */
enum dtype rt_convert_complex(enum dtype dtype);
enum dtype rt_convert_part(enum dtype dtype);

/* Does a half hold each of |count| floats exactly? */
bool rt_convert_are_halves(const float *v, size_t count);

/* Returns the type in which torch computes when both types meet; dims play no part. */
enum dtype rt_convert_promote(enum dtype a, enum dtype b);

struct rt_emit;

/* Returns an S or F argument, evaluated at concrete dims. */
struct rt_number rt_convert_arg(const struct rt_emit *emit, uint32_t index);

/* Writes the number as one element of any type to |to|; this is how a kernel's constant is made. */
void rt_convert_store_number(struct rt_number number, enum dtype dtype, void *to);

/* Converts as a C cast, but defined everywhere: NaN and numbers out of range give INT64_MIN. */
static inline int64_t rt_convert_to_i64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
#endif

#endif
