/* SPDX-License-Identifier: MIT */
/*
 * Instruction set levels of the CPU, found at run time: the rows of isa.def. A level builds on
 * another one, its base, and has everything that the base has. Levels form a tree; their order in
 * the table means nothing except that a machine prefers the last one that it has.
 *
 * There is one level in use in the process, since packed weights and the kernels that read them
 * have to agree: the first device that is opened settles it, and it stays until the last one is
 * gone. Without a device it is what $PTED_CPU says, or the best that the machine has.
 */
#ifndef PTED_HAL_CPU_ISA_H
#define PTED_HAL_CPU_ISA_H

#include <stdbool.h>

#include "base/status.h"

struct hal_cpu_uk;

enum hal_cpu_isa {
#define ISA(NAME, name, arch, base, is_here) HAL_CPU_##NAME,
#include "hal/cpu/isa.def"
#undef ISA
    HAL_CPU_ISA_COUNT
};

const char *hal_cpu_isa_name(enum hal_cpu_isa isa);

/* "avx2" and so on; false: no level of this name. */
bool hal_cpu_isa_parse(const char *name, enum hal_cpu_isa *out_isa);

/* The level that |isa| builds on; HAL_CPU_GENERIC: itself. */
enum hal_cpu_isa hal_cpu_isa_base(enum hal_cpu_isa isa);

/* Does |isa| include |other|: is it the same level, or does it build on it? */
bool hal_cpu_isa_has(enum hal_cpu_isa isa, enum hal_cpu_isa other);

/* Does this machine, with this operating system and this build, run |isa|? */
bool hal_cpu_isa_supported(enum hal_cpu_isa isa);
enum hal_cpu_isa hal_cpu_isa_best(void);

/* The micro-kernels of |isa|; NULL: a level of another architecture, which this build lacks. */
const struct hal_cpu_uk *hal_cpu_isa_kernels(enum hal_cpu_isa isa);

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
