/* SPDX-License-Identifier: MIT */
/* The levels of micro-kernels that were built, and which of them serves. */
#include "config.h"

#include "hal/cpu/uk.h"

extern const struct hal_cpu_uk hal_cpu_uk_generic;
#ifdef PTED_CPU_X86
extern const struct hal_cpu_uk hal_cpu_uk_avx2, hal_cpu_uk_avx512, hal_cpu_uk_avx512_vnni;
#endif

const struct hal_cpu_uk *hal_cpu_uk_find(enum hal_cpu_isa isa)
{
#ifdef PTED_CPU_X86
    if (isa >= HAL_CPU_AVX512_VNNI) {
        return &hal_cpu_uk_avx512_vnni;
    }
    if (isa >= HAL_CPU_AVX512) {
        return &hal_cpu_uk_avx512;
    }
    if (isa >= HAL_CPU_AVX2) {
        return &hal_cpu_uk_avx2;
    }
#endif
    (void)isa;
    return &hal_cpu_uk_generic;
}

const struct hal_cpu_uk *hal_cpu_uk(void)
{
    return hal_cpu_uk_find(hal_cpu_isa());
}
