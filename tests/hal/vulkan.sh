#!/bin/sh
# SPDX-License-Identifier: MIT
#
# The suite on the first Vulkan device. Without one the suite skips itself.
exec "$(dirname "$0")/../validated.sh" "${top_builddir:-.}/tests/hal/cts" vulkan:0
