#!/bin/sh
# SPDX-License-Identifier: MIT
exec "${top_builddir:-.}/tests/hal/cts" cpu 1
