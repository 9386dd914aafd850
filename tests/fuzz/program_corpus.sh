#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that once crashed, or took all memory or time: each is refused with a reason, or runs.
# Beside those in the corpus, copies of other tests' programs with one byte exchanged.
top=${top_srcdir:-.}
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
count=0
while read -r file offset byte; do
    count=$((count + 1))
    copy="$dir/$count-$(basename "$file")"
    cp "$top/$file" "$copy" && chmod u+w "$copy" &&
        printf '%b' "\\0$byte" | dd of="$copy" bs=1 seek="$offset" conv=notrunc 2>/dev/null ||
        exit 1
done <<END
tests/ops/sizes.pte 12439 11
tests/ops/conv_types.pte 49139 33
END
"${top_builddir:-.}/tests/fuzz/replay_program" "$top"/tests/fuzz/corpus/program/*.pte "$dir"/*.pte
