/* SPDX-License-Identifier: MIT */
/*
 * The drivers in this build, one a row, in the order in which devices are listed and "auto" asks.
 * The host's own driver comes first. No other file of this folder knows which drivers there are.
 */
#include "config.h"

#include "hal/cpu/device.h"
#include "hal/device_priv.h"
#ifdef PTED_VULKAN
#include "hal/vulkan/device.h"
#endif

const struct hal_driver *const hal_drivers[] = {
    &hal_cpu_driver,
#ifdef PTED_VULKAN
    &hal_vulkan_driver,
#endif
    NULL,
};
