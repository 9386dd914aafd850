/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "hal/cpu/uk.h"

#include "base/check.h"

const struct hal_cpu_uk *hal_cpu_uk(void)
{
    const struct hal_cpu_uk *uk = hal_cpu_isa_kernels(hal_cpu_isa());
    must(uk); /* the level in use is always one that this build supports */
    return uk;
}
