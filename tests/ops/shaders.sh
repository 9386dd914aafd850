#!/bin/sh
# SPDX-License-Identifier: MIT
#
# Every case of tests/ops with the dispatches that have a SPIR-V form run on the first Vulkan device
# as well (shadow.c). With arguments, those families only.
exec "$(dirname "$0")/../validated.sh" "${top_builddir:-.}/tests/ops/test_shaders" --brief "$@"
