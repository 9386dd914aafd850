/* SPDX-License-Identifier: MIT */
/*
 * The parts of VK_KHR_cooperative_matrix that the driver uses, with the registry's layout and
 * numbers: the build's headers may be older than the extension (1.3.255), while the device has it.
 */
#ifndef PTED_HAL_VULKAN_MATRIX_H
#define PTED_HAL_VULKAN_MATRIX_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#define HAL_VULKAN_MATRIX_EXTENSION "VK_KHR_cooperative_matrix"
#define HAL_VULKAN_MATRIX_FUNCTION "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"
#define HAL_VULKAN_MATRIX_FEATURES_TYPE ((VkStructureType)1000506000)
#define HAL_VULKAN_MATRIX_PROPERTIES_TYPE ((VkStructureType)1000506001)

enum hal_vulkan_matrix_element {
    HAL_VULKAN_MATRIX_F16 = 0,
    HAL_VULKAN_MATRIX_F32 = 1,
    HAL_VULKAN_MATRIX_S8 = 3,
    HAL_VULKAN_MATRIX_S32 = 5,
};

#define HAL_VULKAN_MATRIX_OF_SUBGROUP 3 /* VkScopeKHR: a subgroup */

struct hal_vulkan_matrix_features {
    VkStructureType type;
    void *next;
    VkBool32 matrices, robust_access;
};

/* A product that a device offers: |result| = |a| |b| + |c|. */
struct hal_vulkan_matrix_properties {
    VkStructureType type;
    void *next;
    uint32_t m, n, k;
    uint32_t a, b, c, result; /* enum hal_vulkan_matrix_element */
    VkBool32 saturates;
    uint32_t scope;
};

typedef VkResult(VKAPI_PTR hal_vulkan_matrix_list_f)(VkPhysicalDevice, uint32_t *count,
                                                     struct hal_vulkan_matrix_properties *);

#endif
