/* SPDX-License-Identifier: MIT */
/* The Vulkan loader and its instance. The first device that is opened loads them, all devices share
 * them, and the last reference releases them. */
#ifndef PTED_HAL_VULKAN_LOADER_H
#define PTED_HAL_VULKAN_LOADER_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan.h>

#include "base/status.h"
#include "hal/vulkan/matrix.h"

#define HAL_VULKAN_DEVICES_MAX 16 /* physical devices that are considered */

struct hal_vulkan_instance {
    VkInstance handle;
    VkPhysicalDevice devices[HAL_VULKAN_DEVICES_MAX];
    uint32_t device_count;
#define GLOBAL(name) PFN_##name name;
#define INSTANCE(name) PFN_##name name;
#define DEVICE(name)
#define OPTIONAL(name)
#include "hal/vulkan/functions.def"
#undef GLOBAL
#undef INSTANCE
#undef DEVICE
#undef OPTIONAL
    hal_vulkan_matrix_list_f *list_matrices; /* NULL: no driver has any matrices */
};

/* Fails with ST_UNSUPPORTED: there is no loader, or it does not support Vulkan 1.2. Any thread. */
MUST_CHECK enum status hal_vulkan_instance_acquire(const struct hal_vulkan_instance **out_instance,
                                                   struct error *err);
void hal_vulkan_instance_release(void);

/* Returns the name of a result, for example "VK_ERROR_OUT_OF_DEVICE_MEMORY". */
const char *hal_vulkan_result_name(VkResult result);

/* Writes "WHAT: VK_…" into |err| and returns the status for |result|, which is an error. */
enum status hal_vulkan_error(struct error *err, VkResult result, const char *what);

#endif
