#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that once crashed, or took all memory or time: each is refused with a reason, or runs.
exec "${top_builddir:-.}/tests/fuzz/replay_program" \
    "${top_srcdir:-.}"/tests/fuzz/corpus/program/*.pte
