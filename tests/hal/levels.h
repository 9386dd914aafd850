/* SPDX-License-Identifier: MIT */
/* For tests that run at every instruction set level of this machine. */
#ifndef PTED_TESTS_HAL_LEVELS_H
#define PTED_TESTS_HAL_LEVELS_H

#include <stdbool.h>
#include <stdio.h>

#include "hal/cpu/isa.h"

/* Can this machine run |isa|? If it cannot, says once that the level is skipped. */
static inline bool has_level(enum hal_cpu_isa isa)
{
    static bool is_said[HAL_CPU_ISA_COUNT];
    bool has = hal_cpu_isa_supported(isa);
    if (!has && !is_said[isa]) {
        printf("SKIP: no %s on this machine\n", hal_cpu_isa_name(isa));
        is_said[isa] = true;
    }
    return has;
}

#endif
