/* SPDX-License-Identifier: MIT */
/*
 * Instruction set levels of the CPU, found at run time. Each level includes the ones before it.
 *
 * There is one level in use in the process, since packed weights and the kernels that read them
 * have to agree: the first device that is opened settles it, and it stays until the last one is
 * gone. Without a device it is what $PTED_CPU says, or the best that the machine has.
 */
#ifndef PTED_HAL_CPU_ISA_H
#define PTED_HAL_CPU_ISA_H

#include <stdbool.h>

#include "base/status.h"

enum hal_cpu_isa {
    HAL_CPU_GENERIC,     /* the baseline of the architecture */
    HAL_CPU_AVX2,        /* with FMA and F16C */
    HAL_CPU_AVX512,      /* F, BW, DQ, VL */
    HAL_CPU_AVX512_VNNI, /* 8-bit dot products */
    HAL_CPU_AVX512_BF16, /* bfloat16 dot products */
    HAL_CPU_ISA_COUNT
};

const char *hal_cpu_isa_name(enum hal_cpu_isa isa);

/* "avx2" and so on; false: no level of this name. */
bool hal_cpu_isa_parse(const char *name, enum hal_cpu_isa *out_isa);

/* Does this machine, with this operating system, run |isa|? */
bool hal_cpu_isa_supported(enum hal_cpu_isa isa);
enum hal_cpu_isa hal_cpu_isa_best(void);

/* The level in use. Any thread. */
enum hal_cpu_isa hal_cpu_isa(void);

/*
 * Settles the level for a device: |name|, else $PTED_CPU, else the best there is. A level that the
 * machine lacks is ST_UNSUPPORTED; one that another open device contradicts is ST_INVALID.
 */
MUST_CHECK enum status hal_cpu_isa_acquire(const char *name, enum hal_cpu_isa *out_isa,
                                           struct error *err);
void hal_cpu_isa_release(void);

#endif
