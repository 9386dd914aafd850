#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The suite as on a device whose own memory the host does not see, whatever the device is.
export PTED_VULKAN_MEMORY=split
exec "$(dirname "$0")/vulkan.sh"
