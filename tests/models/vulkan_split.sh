#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Some models as on a device whose own memory the host does not see: constants are uploaded, inputs
# and results are staged, and what the host computes on the way is copied to it and back. Kernels
# run in their forms for GPUs, too.
export PTED_VULKAN_MEMORY=split PTED_VULKAN_CAPABILITIES=+gpu
PTED_TEST_MODELS=${PTED_TEST_MODELS:-branches digits mobile mlp tally unet vk_images xnn_int8} \
    exec "$(dirname "$0")/vulkan.sh"
