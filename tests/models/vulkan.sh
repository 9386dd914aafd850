#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Models on a Vulkan device, under the validation layer where it is installed: the bundled ones, and
# of the larger collection those that were exported for Vulkan. PTED_TEST_MODELS names others.
here=$(dirname "$0")
"${PTE:-${top_builddir:-.}/pte}" devices | grep '^vulkan:' | grep -qv 'cannot be used' || {
    echo 'there is no Vulkan device'
    exit 77
}
export PTED_DEVICE=vulkan VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
bundled=$(for file in "$here"/*.json; do basename "$file" .json; done)
# shellcheck disable=SC2086 # lists of words
exec "$here/run_models.py" ${PTED_TEST_MODELS:-$bundled vk_add_mul vk_digits vk_digits_fp16 \
    vk_encoder vk_mlp vk_mobilenet_v2}
