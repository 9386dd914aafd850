#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Some models as on a GPU, whatever the device is: with the forms of kernels for GPUs, and cut for
# them, into many small tiles (runtime/emit/cut.h).
export PTED_VULKAN_CAPABILITIES=+gpu
PTED_TEST_MODELS=${PTED_TEST_MODELS:-digits mlp mobile tally unet xnn_int8} \
    exec "$(dirname "$0")/vulkan.sh"
