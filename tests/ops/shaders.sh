#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every case of tests/ops with the dispatches that have a SPIR-V form run on the first Vulkan device
# as well (shadow.c), under the validation layer where it is installed: what that has to say is a
# failure. With arguments, those families only. PTED_RUN, if it is set, runs the program.
export VK_INSTANCE_LAYERS=VK_LAYER_KHRONOS_validation
export VK_LOADER_LAYERS_ENABLE=VK_LAYER_KHRONOS_validation
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086 # a command and its arguments
${PTED_RUN-} "${top_builddir:-.}/tests/ops/test_shaders" --brief "$@" >"$log" 2>&1
status=$?
cat "$log"
if [ $status -eq 0 ] && grep -q 'Validation Error' "$log"; then
    echo "the validation layer complains"
    status=1
fi
exit $status
