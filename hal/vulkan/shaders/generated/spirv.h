/* SPDX-License-Identifier: MIT */
/* Words of the shaders in hal/vulkan/shaders/, by contrib/shaders.sh. */
#ifndef PTED_HAL_VULKAN_SHADERS_GENERATED_SPIRV_H
#define PTED_HAL_VULKAN_SHADERS_GENERATED_SPIRV_H

#include <stdint.h>

/* clang-format off */
extern const uint32_t copy_spirv[1400];
/* clang-format on */

#endif
