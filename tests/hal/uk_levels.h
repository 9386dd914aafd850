/* SPDX-License-Identifier: MIT */
/* Shared by the tests of the micro-kernels: every level of this machine, numbers to feed them. */
#ifndef PTED_TESTS_HAL_UK_LEVELS_H
#define PTED_TESTS_HAL_UK_LEVELS_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hal/cpu/uk.h"
#include "tests/hal/levels.h"

typedef void uk_test_f(const struct hal_cpu_uk *uk);

/* Runs |test| on every level that this machine can run, and says which it cannot. */
static inline void each_level(uk_test_f *test)
{
    for (unsigned i = 0; i < HAL_CPU_ISA_COUNT; i++) {
        enum hal_cpu_isa isa = (enum hal_cpu_isa)i;
        if (has_level(isa)) {
            test(hal_cpu_isa_kernels(isa));
        }
    }
}

#ifdef PTED_CPU_X86
#include "tests/hal/amx_soft.h"
#include "tests/hal/vnni_soft.h"
#endif

/* Runs |test| on the kernels of AMX with instructions in software, where all others that they need
 * are there. Tests that use this or the next function are linked with $(SOFT_LIBS). */
static inline void amx_soft_level(uk_test_f *test)
{
#ifdef PTED_CPU_X86
    if (has_level(HAL_CPU_AVX512_BF16)) {
        test(&amx_soft);
    }
#else
    (void)test;
#endif
}

/* Likewise, on those of AMX and of AVX-VNNI. */
static inline void soft_levels(uk_test_f *test)
{
    amx_soft_level(test);
#ifdef PTED_CPU_X86
    if (has_level(HAL_CPU_AVX2)) {
        test(&vnni_soft);
    }
#endif
}

static inline uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

/* Floats in [-1, 1); 64-byte aligned; free() them. */
static inline float *random_floats(size_t n, uint32_t seed)
{
    size_t bytes = (n * sizeof(float) + 64) / 64 * 64;
    float *x = aligned_alloc(64, bytes);
    if (!x) {
        abort();
    }
    for (size_t i = 0; i < n; i++) {
        x[i] = (float)next_random(&seed) / 0x1p23f - 1.0f;
    }
    return x;
}

#endif
