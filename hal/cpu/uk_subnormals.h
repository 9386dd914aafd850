/* SPDX-License-Identifier: MIT */
/*
 * Subnormal numbers: too small to be normal floats. A product with one takes a processor a hundred
 * cycles or more, and a network whose activations fade out may have no other numbers: its products
 * would take twenty times as long. Kernels that sum products therefore read and write subnormal
 * numbers as zeros, as XNNPACK always does; the error of a sum is less than 2^-126 for each
 * product.
 */
#ifndef PTED_HAL_CPU_UK_SUBNORMALS_H
#define PTED_HAL_CPU_UK_SUBNORMALS_H

#include <stdint.h>

#if defined(__x86_64__)
#include <xmmintrin.h>

#define UK_SUBNORMALS_ARE_ZEROS 0x8040u /* of results, of operands */

static inline uint64_t uk_float_mode(void)
{
    return _mm_getcsr();
}

static inline void uk_set_float_mode(uint64_t mode)
{
    _mm_setcsr((unsigned)mode);
}
#elif defined(__aarch64__)
#define UK_SUBNORMALS_ARE_ZEROS 0x1000000u

static inline uint64_t uk_float_mode(void)
{
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}

static inline void uk_set_float_mode(uint64_t mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode));
}
#else
#define UK_SUBNORMALS_ARE_ZEROS 0u

static inline uint64_t uk_float_mode(void)
{
    return 0;
}

static inline void uk_set_float_mode(uint64_t mode)
{
    (void)mode;
}
#endif

/* Treats subnormals as zeros on the calling thread until the returned value is passed to the
 * function below. */
static inline uint64_t uk_subnormals_drop(void)
{
    uint64_t mode = uk_float_mode();
    uk_set_float_mode(mode | UK_SUBNORMALS_ARE_ZEROS);
    return mode;
}

static inline void uk_subnormals_keep(uint64_t mode)
{
    uk_set_float_mode(mode);
}

#endif
