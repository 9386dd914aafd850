/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/resize.h"

#include "base/check.h"

/* clang-format off */
#define ISA(NAME, name, arch, base, is_here) extern const struct hal_resize hal_resize_##name;
#include "hal/cpu/isa.def"
#undef ISA

static const struct hal_resize *const tables[HAL_CPU_ISA_COUNT] = {
#define ISA(NAME, name, arch, base, is_here) [HAL_CPU_##NAME] = arch(&hal_resize_##name, NULL),
#include "hal/cpu/isa.def"
#undef ISA
};
/* clang-format on */

const struct hal_resize *hal_cpu_resize(enum hal_cpu_isa isa)
{
    must(isa < HAL_CPU_ISA_COUNT);
    return tables[isa];
}

const struct hal_resize *hal_resize(void)
{
    const struct hal_resize *resize = hal_cpu_resize(hal_cpu_isa());
    must(resize); /* the level in use is always one that this build supports */
    return resize;
}
