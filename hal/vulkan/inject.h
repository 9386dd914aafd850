/* SPDX-License-Identifier: MIT */
/*
 * Injected faults: tests need to try every day what hardware does once a year. inject.def lists the
 * sites; the environment variable PTED_VULKAN_FAULTS says which calls at these sites fail;
 * without it no call does. Calls are counted over the whole process, so a device that is opened
 * again does not start at 1.
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

/* The site's error if this call is to fail, else VK_SUCCESS. Any thread. */
VkResult hal_vulkan_inject(enum hal_vulkan_site site);

#endif
