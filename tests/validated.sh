#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Runs a command under Vulkan's validation layer, if that is installed. A message of the layer is a
# failure.
#
# usage: validated.sh COMMAND [ARGUMENT]...
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LOADER_LAYERS_ENABLE=VK_LAYER_KHRONOS_validation
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
"$@" >"$log" 2>&1
status=$?
cat "$log"
if [ $status -eq 0 ] && grep -q 'Validation Error' "$log"; then
    echo "the validation layer reports errors: expected none"
    status=1
fi
exit $status
