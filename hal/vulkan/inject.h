/* SPDX-License-Identifier: MIT */
/*
 * Injected faults, for tests of errors that hardware rarely has. inject.def lists the sites. The
 * environment variable PTED_VULKAN_FAULTS says which calls at these sites fail; without it, no call
 * fails. Calls are counted over the whole process: the count continues when a device is opened
 * again.
 */
#ifndef PTED_HAL_VULKAN_INJECT_H
#define PTED_HAL_VULKAN_INJECT_H

#include "hal/vulkan/loader.h"

enum hal_vulkan_site {
#define INJECT(name, word, result) HAL_VULKAN_##name,
#include "hal/vulkan/inject.def"
#undef INJECT
    HAL_VULKAN_SITES
};

/* Returns the site's error if this call is to fail, else VK_SUCCESS. Any thread. */
VkResult hal_vulkan_inject(enum hal_vulkan_site site);

#endif
