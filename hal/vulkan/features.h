/* SPDX-License-Identifier: MIT */
/*
 * What a physical device can do: the features that every shader relies on, without which it is not
 * opened, and the capabilities that single forms of kernels need (hal/capability.def).
 *
 * For tests, PTED_VULKAN_CAPABILITIES=-doubles,+gpu takes capabilities away and gives those that
 * the device can do but that do not pay there, "all" being every one, from left to right. With
 * +gpu a processor runs the forms for GPUs.
 */
#ifndef PTED_HAL_VULKAN_FEATURES_H
#define PTED_HAL_VULKAN_FEATURES_H

#include <stdbool.h>

#include "base/buf.h"
#include "hal/kernel.h"
#include "hal/vulkan/loader.h"

#define HAL_VULKAN_EXTENSIONS_MAX 4

/* Of matrices that are multiplied at once: M x K by K x N. */
struct hal_vulkan_shape {
    uint32_t m, n, k;
};

struct hal_vulkan_abilities {
    uint32_t capabilities; /* that forms are chosen by */
    uint32_t extensions;   /* that it has, of those in features.c */
    uint32_t subgroup;     /* invocations of one */
    bool full_subgroups;   /* can be required */
    bool is_processor;     /* invocations run on a processor's vector units */
    struct hal_vulkan_shape matrices_f16, matrices_s8; /* zeros: none */
};

/* ST_UNSUPPORTED: it lacks what every shader relies on. |name| is for the error. */
MUST_CHECK enum status hal_vulkan_check_features(const struct hal_vulkan_instance *instance,
                                                 VkPhysicalDevice physical, const char *name,
                                                 struct error *err);

void hal_vulkan_find_abilities(const struct hal_vulkan_instance *instance,
                               VkPhysicalDevice physical,
                               struct hal_vulkan_abilities *out_abilities);

/* "; gpu, subgroups of 32, matrices_f16 16x16x16"; nothing when there are none. */
void hal_vulkan_print_abilities(const struct hal_vulkan_abilities *abilities, struct buf *out);

/* vkCreateDevice() with the features and extensions for |abilities|; |info| has the queues. */
MUST_CHECK VkResult hal_vulkan_create_device(const struct hal_vulkan_instance *instance,
                                             VkPhysicalDevice physical,
                                             const struct hal_vulkan_abilities *abilities,
                                             VkDeviceCreateInfo info, VkDevice *out_device);

/* Memory of the host can be imported. */
bool hal_vulkan_can_import(const struct hal_vulkan_abilities *abilities);

#endif
