/* SPDX-License-Identifier: MIT */
/* The drivers in this build, in the order in which devices are listed. */
#include "config.h"

#include "hal/cpu/device.h"
#include "hal/device_priv.h"

const struct hal_driver *const hal_drivers[] = {
    &hal_cpu_driver,
    NULL,
};
