/* SPDX-License-Identifier: MIT */
/*
 * Faults on demand: what hardware does once in a year has to be tried on every day. inject.def is
 * the list of places, the environment (PTED_VULKAN_FAULTS) says which of their calls fail; without
 * it nothing ever does. Counted over the whole process, so that a device that is opened again has
 * its own luck.
 */
#ifndef PTED_HAL_VULKAN_INJECT_H
#define PTED_HAL_VULKAN_INJECT_H

#include "hal/vulkan/loader.h"

enum hal_vulkan_place {
#define INJECT(name, word, result) HAL_VULKAN_##name,
#include "hal/vulkan/inject.def"
#undef INJECT
    HAL_VULKAN_PLACES
};

/* The place's failure if it is this call's turn, else VK_SUCCESS. Any thread. */
VkResult hal_vulkan_inject(enum hal_vulkan_place place);

#endif
