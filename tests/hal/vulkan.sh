#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The suite on the first Vulkan device, with the validation layer where it is installed: what that
# has to say is a failure. Without a device the suite skips itself.
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LOADER_LAYERS_ENABLE=VK_LAYER_KHRONOS_validation
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"${top_builddir:-.}/tests/hal/cts" vulkan:0 >"$log" 2>&1
status=$?
cat "$log"
if [ $status -eq 0 ] && grep -q 'Validation Error' "$log"; then
    echo "the validation layer complains"
    status=1
fi
exit $status
