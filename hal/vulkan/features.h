/* SPDX-License-Identifier: MIT */
/*
 * What a physical device can do: the features that all shaders rely on, without which the device is
 * not opened, and the capabilities that single forms of kernels need (hal/capability.def).
 *
 * For tests, PTED_VULKAN_CAPABILITIES=-doubles,+gpu removes capabilities, or adds capabilities that
 * the device has but that are not worth using there; "all" means all of them. The list is processed
 * from left to right. With +gpu a processor runs the forms for GPUs.
 */
#ifndef PTED_HAL_VULKAN_FEATURES_H
#define PTED_HAL_VULKAN_FEATURES_H

#include <stdbool.h>

#include "base/buf.h"
#include "hal/kernel.h"
#include "hal/vulkan/loader.h"

#define HAL_VULKAN_EXTENSIONS_MAX 4

/* The shape of a matrix multiplication in one instruction: M x K by K x N. */
struct hal_vulkan_shape {
    uint32_t m, n, k;
};

struct hal_vulkan_abilities {
    uint32_t capabilities; /* bits of enum hal_capability; they select forms of kernels */
    uint32_t extensions;   /* bits of enum extension (features.c) */
    uint32_t subgroup;     /* invocations in a subgroup */
    bool full_subgroups;   /* pipelines can require full subgroups */
    bool is_processor;     /* invocations run on a processor's vector units */
    bool keeps_nan;        /* shaders can ask for comparisons and bounds that respect NaN */
    struct hal_vulkan_shape matrices_f16, matrices_s8; /* zeros: none */
};

/* Fails with ST_UNSUPPORTED: the device lacks a feature that all shaders rely on. |name| is for the
 * error. */
MUST_CHECK enum status hal_vulkan_check_features(const struct hal_vulkan_instance *instance,
                                                 VkPhysicalDevice physical, const char *name,
                                                 struct error *err);

void hal_vulkan_find_abilities(const struct hal_vulkan_instance *instance,
                               VkPhysicalDevice physical,
                               struct hal_vulkan_abilities *out_abilities);

/* Appends for example "; gpu, subgroups of 32, matrices_f16 16x16x16"; nothing if there are no
 * capabilities. */
void hal_vulkan_print_abilities(const struct hal_vulkan_abilities *abilities, struct buf *out);

/* vkCreateDevice() with the features and extensions of |abilities|; |info| has only the queues. */
MUST_CHECK VkResult hal_vulkan_create_device(const struct hal_vulkan_instance *instance,
                                             VkPhysicalDevice physical,
                                             const struct hal_vulkan_abilities *abilities,
                                             VkDeviceCreateInfo info, VkDevice *out_device);

/* Can memory of the host be imported? */
bool hal_vulkan_can_import(const struct hal_vulkan_abilities *abilities);

#endif
