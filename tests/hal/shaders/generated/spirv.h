/* SPDX-License-Identifier: MIT */
/* Words of the shaders in tests/hal/shaders/, by contrib/shaders.sh. */
#ifndef PTED_TESTS_HAL_SHADERS_GENERATED_SPIRV_H
#define PTED_TESTS_HAL_SHADERS_GENERATED_SPIRV_H

#include <stdint.h>

/* clang-format off */
extern const uint32_t increment_spirv[653];
extern const uint32_t mix_spirv[738];
extern const uint32_t number_spirv[753];
/* clang-format on */

#endif
