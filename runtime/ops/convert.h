/* SPDX-License-Identifier: MIT */
/*
 * Element types in kernels. A kernel computes in one of five classes and converts what it reads and
 * writes, so that an inner loop is written once a class and not once a type: halves are computed in
 * float and rounded once, small integers in 64 bits and cut off, which is what wraps in C.
 *
 * A float that no int32 holds (for uint32 and int64: no int64) becomes the smallest one, which is
 * then cut off for narrower types; a bool is what differs from 0, also when a file holds other
 * bytes than 0 and 1.
 */
#ifndef PTED_RUNTIME_OPS_CONVERT_H
#define PTED_RUNTIME_OPS_CONVERT_H

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

/* A number in both forms, so that a loop takes the one of its class. */
struct rt_number {
    double f;
    int64_t i;
};

#ifndef HAL_SHADER
/* |count| elements, |stride| bytes apart, into packed elements of a class; or out of them. */
typedef void rt_load_f(void *to, const char *from, int64_t stride, int64_t count);
typedef void rt_store_f(char *to, int64_t stride, const void *from, int64_t count);

/* For each pair. From a complex type to a class without a second part, and to a real type, go the
 * real parts; a truth is what differs from 0 in either part. */
rt_load_f *rt_load(enum dtype from, enum rt_class to);
rt_store_f *rt_store(enum rt_class from, enum dtype to);

size_t rt_class_bytes(enum rt_class class);

/* In what numbers of this type are computed; a bool counts as an integer. */
enum rt_class rt_class_of(enum dtype dtype);

/* Is the type, packed, what a kernel of that class reads and writes? */
bool rt_class_is_direct(enum rt_class class, enum dtype dtype);

/* The complex type of numbers of a real one (of integers: of float32), and the other way. */
enum dtype rt_complex_of(enum dtype dtype);
enum dtype rt_part_of(enum dtype dtype);

/* Is each of |count| floats a number that a half holds? */
bool rt_are_halves(const float *v, size_t count);

/* What torch computes in when both types meet; dims play no part. */
enum dtype rt_promote(enum dtype a, enum dtype b);

struct rt_emit;

/* An S or F argument at the concrete dims. */
struct rt_number rt_number_arg(const struct rt_emit *emit, uint32_t index);

/* The number as one element of any type, into |to|; how a kernel's constant is made. */
void rt_number_store(struct rt_number number, enum dtype dtype, void *to);

/* As in C, but defined for all: out of range, and NaN, is INT64_MIN. */
static inline int64_t rt_to_i64(double v)
{
    return v >= -0x1p63 && v < 0x1p63 ? (int64_t)v : INT64_MIN;
}
#endif

#endif
