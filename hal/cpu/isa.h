/* SPDX-License-Identifier: MIT */
/*
 * Instruction set levels of the CPU, detected at run time: the rows of isa.def. A level builds on
 * another one, its base, and has everything that the base has. Levels form a tree; their order in
 * the table only matters for the default, the last row that the machine has.
 *
 * The process uses one level at a time, because packed weights must match the kernels that read
 * them. The first device that is opened chooses the level, which is kept until the last device is
 * closed. Without a device it is the level of $PTED_CPU, or the best level of the machine.
 */
#ifndef PTED_HAL_CPU_ISA_H
#define PTED_HAL_CPU_ISA_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct hal_cpu_uk;

enum hal_cpu_isa {
#define ISA(NAME, name, arch, base, is_here) HAL_CPU_##NAME,
#include "hal/cpu/isa.def"
#undef ISA
    HAL_CPU_ISA_COUNT
};

const char *hal_cpu_isa_name(enum hal_cpu_isa isa);

/* Finds the level with a name such as "avx2"; false if there is none. */
bool hal_cpu_isa_parse(const char *name, enum hal_cpu_isa *out_isa);

/* Can this machine, with this operating system and this build, run |isa|? */
bool hal_cpu_isa_supported(enum hal_cpu_isa isa);
enum hal_cpu_isa hal_cpu_isa_best(void);

/* Returns the micro-kernels of |isa|; NULL: the build lacks it, because it is for another
 * architecture. */
const struct hal_cpu_uk *hal_cpu_isa_kernels(enum hal_cpu_isa isa);

/* What Linux says of an aarch64 processor: AT_HWCAP and AT_HWCAP2 of the auxiliary vector. */
struct hal_cpu_hwcap {
    uint64_t first, second;
};

/* Has a processor with these words all of these features? */
static inline bool hal_cpu_hwcap_has(struct hal_cpu_hwcap words, uint64_t first, uint64_t second)
{
    return (words.first & first) == first && (words.second & second) == second;
}

/* Has an aarch64 processor with these words |isa|, and all that it builds on? False for levels of
 * other architectures. Any machine can ask. */
bool hal_cpu_hwcap_supports(struct hal_cpu_hwcap words, enum hal_cpu_isa isa);

/* Returns the level in use. Any thread. */
enum hal_cpu_isa hal_cpu_isa(void);

/* Chooses the level for a device: |name|, else that of the open devices, else $PTED_CPU, else the
 * best level. ST_UNSUPPORTED if the machine lacks it, ST_INVALID if another open device uses a
 * different level. */
MUST_CHECK enum status hal_cpu_isa_acquire(const char *name, enum hal_cpu_isa *out_isa,
                                           struct error *err);
void hal_cpu_isa_release(void);

#endif
